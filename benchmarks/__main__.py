"""`python -m benchmarks`."""

from benchmarks.commands.cli import main

if __name__ == "__main__":
    main()
