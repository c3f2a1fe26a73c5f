"""Which version of the suite this is."""

from __future__ import annotations

import tomllib

from results.sourcecode import ROOT


def suite_version() -> str:
    """`fedtables 1.2.3`, as the checkout's `pyproject.toml` has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['name']} {project['version']}"
