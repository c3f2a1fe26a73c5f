"""`python -m benchmarks`."""

from fedtables.benchmarks.commands.cli import main

if __name__ == "__main__":
    main()
