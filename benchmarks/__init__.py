"""The command line and the runner: `python -m benchmarks --help`."""
