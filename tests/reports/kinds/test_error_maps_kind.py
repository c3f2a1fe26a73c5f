"""Reconstructions of a seed, together in one file, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from safetensors.numpy import load

from reports.drawing import errors
from reports.kinds.error_maps import KIND
from results.arrays import pack
from results.record import FAILED
from tests.reports.drawn import layout
from tests.reports.written_results import record

FIRST, SECOND = "test=b modality=t1", "test=i modality=t1"
"""Columns of a table of two sites."""


def shown(row, column, value, seed=0):
    """A record of a cell that is measured on one site."""
    arrays = {
        f"{kind}/b": np.full((2, 2), number, np.float32)
        for kind, number in (("image", 1), ("target", 2), ("predicted", value))
    }
    return record(row, column, 0.5, seed, arrays=pack(arrays))


def test_columns_have_their_input_and_truth_and_each_rows_image():
    records = [
        shown("a", FIRST, 3),
        shown("b", FIRST, 4),
        shown("a", SECOND, 5),
        shown("b", SECOND, 6, seed=1),
    ]
    found = load(KIND.arrays(records))
    assert {name: float(array[0, 0]) for name, array in found.items()} == {
        f"image/{FIRST}": 1,
        f"target/{FIRST}": 2,
        f"image/{SECOND}": 1,
        f"target/{SECOND}": 2,
        f"a/{FIRST}": 3,
        f"b/{FIRST}": 4,
        f"a/{SECOND}": 5,
    }


def test_without_arrays_there_is_no_file_and_nothing_is_said_or_drawn(tmp_path):
    records = [record("a", FIRST, 0.5), replace(shown("b", FIRST, 1), status=FAILED)]
    table = SimpleNamespace(records=records, arrays=tmp_path / "f", layout=layout())
    assert KIND.arrays(records) == b""
    assert KIND.remarks(table) == []
    KIND.draw(table, tmp_path / "f.png")
    assert list(tmp_path.iterdir()) == []


def test_the_seed_of_the_picture_is_told_where_there_are_several():
    one = KIND.remarks(SimpleNamespace(records=[shown("a", FIRST, 3, seed=2)]))
    several = KIND.remarks(SimpleNamespace(records=[shown("a", FIRST, 3, seed=s) for s in (2, 1)]))
    assert one[0].endswith("the mean of its absolute error on that slice")
    assert several == [one[0] + ", of seed 1"]


def test_it_is_drawn_by_the_tables_columns(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(errors, "draw_errors", lambda *arguments: calls.append(arguments))
    about = layout(columns=(FIRST, SECOND))
    table = SimpleNamespace(records=[shown("a", FIRST, 3)], arrays=tmp_path / "f", layout=about)
    KIND.draw(table, tmp_path / "f.png")
    rows = {"a": "Row A", "b": "Row B"}
    [(source, path, titles, columns, layout_given)] = calls
    assert (source, path, columns, layout_given) == (
        tmp_path / "f",
        tmp_path / "f.png",
        [FIRST, SECOND],
        about,
    )
    assert titles.items() >= rows.items()
