"""Cells: what a selection gives, and what a cell's identity depends on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import cells, registry
from benchmarks.cells import Selection, expand, parse_methods, parse_only
from benchmarks.spec import SpecError
from datasets import catalogue
from results.files import DataError
from results.sourcecode import folder_modules, source_digest


@pytest.fixture
def table2():
    return registry.find_table("dlad/table2")


def test_a_table_has_a_cell_for_every_printed_number_and_seed(table2):
    assert len(expand(*table2, Selection())) == 48
    assert len(expand(*table2, Selection(seeds=(0, 1)))) == 96


def test_only_keeps_what_it_names_and_repeated_keys_are_united(table2):
    only = parse_only(["dataset=mnist", "dataset=cifar10", "row=global-dlad"])
    assert only == {"dataset": "mnist,cifar10", "row": "global-dlad"}
    found = expand(*table2, Selection(only=only))
    assert len(found) == 8
    assert {cell.row for cell in found} == {"global-dlad"}


def test_methods_are_added_and_dropped_by_sign():
    assert parse_methods("+mine, -global-avg") == (("mine",), ("global-avg",))
    with pytest.raises(SpecError, match=r"\+mine or -mine"):
        parse_methods("mine")


def test_a_row_that_is_there_cannot_be_added_again(table2):
    added = Selection(add=("standalone",))
    assert len(expand(*table2, added)) == 60
    with pytest.raises(SpecError, match="has that row already"):
        expand(*table2, replace(added, add=("standalone", "standalone")))


def test_a_cell_is_known_by_all_that_determines_its_numbers(table2):
    first = expand(*table2, Selection())[0]
    others = [
        replace(first, seed=1), replace(first, config=(*first.config, ("x", 1))), replace(first, threads=2),
        replace(first, data=replace(first.data, digest="other")), replace(first, device="cuda"),
    ]  # fmt: skip
    assert len({first.key, *(cell.key for cell in others)}) == 6
    assert replace(first, device="cuda:0").key == replace(first, device="cuda:1").key


def test_the_code_of_a_cell_covers_networks_and_package_versions(table2, monkeypatch):
    first = expand(*table2, Selection())[0]
    assert {"models.networks.cnn", "models.networks.resnet8"} <= set(folder_modules("models.networks"))
    code = first.code
    cells._code.cache_clear()
    monkeypatch.setattr(cells, "package_versions", lambda: {"torch": "0.0"})
    assert first.code != code
    cells._code.cache_clear()
    monkeypatch.undo()
    assert first.code == code
    assert source_digest("benchmarks.execute") != source_digest("benchmarks.execute", "models.networks.cnn")


def test_a_cell_has_no_fields_of_other_methods(table2):
    found = {cell.row: dict(cell.config) for cell in expand(*table2, Selection())}
    assert "dlad.temperature" in found["global-dlad"]
    assert not any(name.startswith("dlad.") for name in found["global-avg"])
    assert "local.epochs" in found["global-avg"]


def test_columns_whose_data_are_unusable_stop_a_run_but_not_the_merging_of_earlier_cells(table2, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
    catalogue._fingerprint.cache_clear()
    small = np.zeros((1, 28, 28), np.uint8)
    np.savez(tmp_path / "mnist.npz", x_train=small, y_train=[0], x_test=small, y_test=[0])
    real = Selection(profile="cpu", require_real=True)
    with pytest.raises(DataError, match="CIFAR-10 is needed"):
        expand(*table2, real)
    found = expand(*table2, real, skip_unusable=True)
    assert {cell.data.asked for cell in found} == {"mnist"}
    (tmp_path / "cifar10.npz").write_bytes(b"PK\x03\x04 half a file")
    assert {cell.data.asked for cell in expand(*table2, replace(real, require_real=False), skip_unusable=True)} >= {"mnist"}
