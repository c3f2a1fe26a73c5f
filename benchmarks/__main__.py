"""`python -m benchmarks`, in a checkout: what the command `fedtables` was called before."""

import sys

from fedtables.benchmarks.commands.cli import main

if __name__ == "__main__":
    print(
        "`python -m benchmarks` is now `fedtables`, and goes in the next version", file=sys.stderr
    )
    main()
