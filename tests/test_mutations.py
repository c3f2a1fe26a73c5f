"""The deliberate faults of `mutations.toml`: every one still has its place, every method has one,
and a cheap one is found.
"""

from __future__ import annotations

import ast
import re

import pytest

from benchmarks.tables import registry
from tests.mutations import ROOT, command_of, faults, judged

FAULTS = faults()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_stands_once_in_its_file_and_leaves_it_a_program(fault):
    faulty = fault.applied((ROOT / fault.file).read_text())
    assert ast.dump(ast.parse(faulty)) != ast.dump(ast.parse((ROOT / fault.file).read_text()))
    assert "--seeds 0,1,2" in command_of(fault.cells)


def test_every_method_has_a_fault():
    assert {fault.method for fault in FAULTS} == set(registry.methods())


def test_the_documentation_lists_every_fault_once_and_counts_what_it_lists():
    page = (ROOT / "docs/regression.md").read_text()
    lines = re.findall(r"^\| (\S+) \| (\S+) \| .* \| (.+) \| (yes|no) \|$", page, re.MULTILINE)
    assert [(name, method) for name, method, *_ in lines] == [(f.name, f.method) for f in FAULTS]
    found = [(method, numbers) for _, method, numbers, verdict in lines if verdict == "yes"]
    failed = sum(numbers.endswith("failed") for _, numbers in found)
    methods = len({method for method, _ in found})
    for told in (
        f"All {len(lines)} faults have been run",
        f"{len(found)} of them are found",
        f"{len(found) - failed} by\ntheir numbers",
        f"Each of the {methods} methods has one that is.",
    ):
        assert told in page
    not_found = re.findall(r"^- `(\S+)`: ", page.partition("Those that are not found:")[2], re.M)
    assert not_found[: len(lines) - len(found)] == [n for n, *_, v in lines if v == "no"]


@pytest.mark.slow
def test_a_fault_is_found(tmp_path):
    chosen = [fault for fault in FAULTS if fault.name == "public-only-labels-shifted"]
    ((_, found, _),) = judged(chosen, tmp_path, 1)
    assert found
