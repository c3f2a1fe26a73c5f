"""Regenerates the tables of `regression/`, a file a run, which results/reference holds.

python -m tests.tools.reference FOLDER [--go-on]

They are every method and baseline, privacy and an attack, in the fewest cells in which each learns
far more than chance, three seeds each.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from fedtables.results.sourcecode import ROOT

RUNS = sorted((Path(__file__).parent / "regression").glob("*.toml"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--go-on", action="store_true", help="after a table that failed, too")
    asked = parser.parse_args()
    for run in RUNS:
        command = [sys.executable, "-m", "fedtables", "reproduce", "--config", str(run)]
        done = subprocess.run([*command, "--results", asked.folder], cwd=ROOT, check=False)
        if done.returncode and not asked.go_on:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()
