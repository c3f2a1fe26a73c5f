"""A file imports only from its own floor's folder and from floors below it; nothing runs back
up.
"""

from __future__ import annotations

import pytest

from results.sourcecode import ROOT, imported_modules

FLOOR = {
    "benchmarks": 5,
    "baselines": 4,
    "methods": 3,
    "federation": 2,
    "reports": 2,
    "datasets": 1,
    "models": 1,
    "privacy": 1,
    "metrics": 1,
    "results": 0,
}
"""`results` lies below the rest of floor 1: records, files and digests are what all others are
written with."""

FILES = sorted(path for folder in FLOOR for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_downwards(path):
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    own = module.split(".")[0]
    for imported in imported_modules(module):
        other = imported.split(".")[0]
        assert other == own or FLOOR[own] > FLOOR[other], f"{module} imports {imported}"


def test_no_device_is_written_into_the_code():
    for path in FILES:
        text = path.read_text()
        assert ".cuda()" not in text, path
        assert "weights_only=False" not in text, path
        assert "allow_pickle=True" not in text, path
