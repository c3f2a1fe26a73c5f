"""The picture of a partition: the label counts that its records keep."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from safetensors.numpy import load

from reports.kinds.classes import KIND
from results.arrays import pack
from results.record import FAILED
from tests.reports.drawn import layout
from tests.reports.written_results import COLUMNS, record

COUNTS = np.array([[4, 0], [1, 3]])


def held(row, counts, seed=0):
    return record(row, COLUMNS[0], 1.0, seed, arrays=pack({"counts": counts}))


def test_the_counts_of_each_row_are_those_of_the_lowest_seed():
    records = [held("a", 2 * COUNTS, 1), held("a", COUNTS), held("b", COUNTS.T)]
    kept = load(KIND.arrays(records))
    assert {row: counts.tolist() for row, counts in kept.items()} == {
        "a": COUNTS.tolist(),
        "b": COUNTS.T.tolist(),
    }


def test_rows_that_have_counts_are_drawn_in_bubbles_of_their_samples(drawn, tmp_path):
    failed = replace(held("b", COUNTS), status=FAILED, arrays="")
    records = [held("a", COUNTS), failed]
    (tmp_path / "c.safetensors").write_bytes(KIND.arrays(records))
    table = SimpleNamespace(
        records=records, arrays=tmp_path / "c.safetensors", layout=layout((COLUMNS[0],))
    )
    KIND.draw(table, tmp_path / "c.png")
    (axis,) = drawn[0].axes
    assert axis.get_title() == "Row A"
    (bubbles,) = axis.collections
    assert bubbles.get_offsets().tolist() == [[0, 0], [1, 0], [1, 1]]
    assert bubbles.get_sizes().tolist() == [40, 10, 30]  # 40 for the largest
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["4 samples"]


def test_records_without_counts_have_no_picture(drawn, tmp_path):
    older = record("a", COLUMNS[0], 1.0)
    assert KIND.arrays([older]) == b""
    table = SimpleNamespace(records=[older], arrays=tmp_path / "none", layout=layout())
    KIND.draw(table, tmp_path / "c.png")
    assert not drawn
