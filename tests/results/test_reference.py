"""The committed regression reference can fall: every cell is far above what no method gives."""

import numpy as np
import pytest

from fedtables.benchmarks.tables import registry
from fedtables.datasets import catalogue
from fedtables.reports.tables.resultset import read_set
from fedtables.results.sourcecode import ROOT

REFERENCE = read_set(ROOT / "results" / "reference" / "smoke")
FLOORS = ("zero-filled", "noise")
"""Rows that say what a table's metric is without any method."""


def metric_of(table: str) -> str:
    return registry.find_table(table.partition(".")[0])[1].metrics[0]


CELLS = [key for key in REFERENCE.cells if key[3] == metric_of(key[0]) and key[1] not in FLOORS]
DISTANCES = {"fid"}
"""Of what an attack recovers from the private images: it is at work where they are near."""
METHODS = {
    (name, record.row): registry.current(record.lineage[0])
    for name, records in REFERENCE.records.items()
    for record in records
}


def everything_foreground(data: str) -> float:
    """The mean Dice, over test images with ten pixels of tumour, of a prediction that takes every
    pixel for tumour.
    """
    masks = catalogue.load(data)["test"].annotations["tumour"] > 0
    masks = masks[masks.sum(axis=(1, 2)) >= 10]
    shares = masks.mean(axis=(1, 2))
    return float(np.mean(2 * shares / (1 + shares)))


def chance(key: tuple[str, str, str, str]) -> float:
    """What a cell's metric is without any method, in the table's unit."""
    cell = REFERENCE.cells[key]
    for row in FLOORS:
        if (floor := REFERENCE.cells.get((key[0], row, *key[2:]))) is not None:
            return floor["value"]
    whole = 100 if cell["unit"] == "percent" else 1
    if key[3] == "accuracy":
        return whole / catalogue.source(cell["data"]).classes
    if key[3] == "mauc":
        return whole / 2
    assert key[3] == "dice"
    return whole * everything_foreground(cell["data"])


@pytest.mark.parametrize("key", CELLS, ids=" ".join)
def test_a_cell_is_above_chance_by_more_than_three_standard_deviations(key):
    cell = REFERENCE.cells[key]
    assert (cell["status"], cell["n"]) == ("ok", 3)
    gain = cell["value"] - chance(key)
    assert (-gain if key[3] in DISTANCES else gain) > 3 * cell["std"]


def test_every_method_has_a_cell():
    assert set(METHODS.values()) == set(registry.methods())
