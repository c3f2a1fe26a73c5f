"""The deliberate faults of `mutations.toml`: every one still has its place, every method has one,
and a cheap one is found.
"""

from __future__ import annotations

import ast

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


def test_the_documentation_lists_every_fault_once():
    page = (ROOT / "docs/regression.md").read_text()
    assert [page.count(f"| {fault.name} |") for fault in FAULTS] == [1] * len(FAULTS)


@pytest.mark.slow
def test_a_fault_is_found(tmp_path):
    chosen = [fault for fault in FAULTS if fault.name == "public-only-labels-shifted"]
    ((_, found, _),) = judged(chosen, tmp_path, 1)
    assert found
