"""Regenerates the tables of `reference.ini`, which results/reference holds.

python -m tests.tools.reference FOLDER [--go-on]
"""

import argparse
import configparser
import shlex
import subprocess
import sys
from pathlib import Path

from fedtables.results.sourcecode import ROOT


def lines() -> dict[str, list[str]]:
    """What `reproduce` is given for each of the tables, by a name."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(Path(__file__).with_suffix(".ini"))
    return {name: shlex.split(words) for name, words in config["reference"].items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--go-on", action="store_true", help="after a table that failed, too")
    asked = parser.parse_args()
    for words in lines().values():
        command = [sys.executable, "-m", "fedtables", "reproduce", *words]
        done = subprocess.run([*command, "--results", asked.folder], cwd=ROOT, check=False)
        if done.returncode and not asked.go_on:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()
