"""Copies of this checkout, to be edited or built."""

import shutil
from pathlib import Path

from fedtables.results.sourcecode import ROOT

FILES = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
LEFT_OUT = shutil.ignore_patterns(
    *("__pycache__", "cpu", "paper", "attack", "reference", "three-seeds")
)
"""Committed results, but for those that come with the package, and what Python writes."""


def copy_checkout(folder: Path) -> Path:
    """What the package is made of, in `folder`, which is returned. With `PYTHONPATH` its `typings`,
    Python imports the package from there.
    """
    for name in ("src", "typings", *(path.parent.name for path in ROOT.glob("*/__init__.py"))):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=LEFT_OUT)
    shutil.copytree(
        ROOT / "results" / "embedded", folder / "results" / "embedded", dirs_exist_ok=True
    )
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder
