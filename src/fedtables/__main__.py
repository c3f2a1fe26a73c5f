"""`python -m fedtables`: the same as the command `fedtables`."""

from fedtables.benchmarks.commands.cli import main

if __name__ == "__main__":
    main()
