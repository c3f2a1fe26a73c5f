"""What rows had sent when they first had the best value that all of them reach, and claims judged
there.
"""

import pytest

from fedtables.reports.drawing import plots_curves
from fedtables.reports.drawing.figures import FIRST_REACHED, HIGHEST_COMMON
from fedtables.reports.tables.bandwidth import (
    at_which,
    only_common,
    sentences,
    summary,
    with_common,
)
from fedtables.reports.tables.table import ShownTable
from fedtables.results.record import FAILED, Measurement
from fedtables.results.store import records_of, summarise
from tests.records import made_record
from tests.reports.drawn import layout

PANEL = "panel=cifar10"


def record(row, curve, seed=0, column=PANEL, **more):
    """A record whose rounds have (GB, accuracy)."""
    measurements = tuple(
        Measurement(metric, value, f"round={number}")
        for number, point in enumerate(curve, 1)
        for metric, value in zip(("bandwidth-gb", "accuracy"), point, strict=True)
    )
    known = {"row": row, "column": column, "seed": seed, "measurements": measurements}
    return made_record(table="fediod/figure8", cell=f"{row} {seed}", **known, **more)


AVERAGING = [(1.0, 10.0), (2.0, 40.0), (3.0, 30.0), (4.0, 60.0)]
DISTILLATION = [(0.5, 20.0), (1.0, 35.0), (1.5, 45.0)]


def common(records):
    """GB and accuracy at the common value by row and seed."""
    added = only_common(with_common(records, "accuracy"))
    return {
        (r.row, r.seed): {m.metric: m.value for m in r.measurements}
        for r in added
        if r.measurements
    }


def test_a_row_that_breaks_the_contract_moves_no_common_value():
    broken = record("other", [(0.1, 5.0)], contract=("it forgets",))
    fair = [record("averaging", AVERAGING), record("distillation", DISTILLATION)]
    assert common([*fair, broken]) == common(fair)


def test_the_common_value_is_the_lowest_of_the_rows_best_and_is_reached_the_first_time():
    # The second row's best is 45; the first has that in its fourth round only.
    assert common([record("a", AVERAGING), record("b", DISTILLATION)]) == {
        ("a", 0): {"accuracy": 45.0, "bandwidth-gb": 4.0},
        ("b", 0): {"accuracy": 45.0, "bandwidth-gb": 1.5},
    }


def test_every_seed_has_a_common_value_of_its_own():
    records = [
        record("a", AVERAGING),
        record("b", DISTILLATION),
        record("a", DISTILLATION, 1),
        record("b", [(2.0, 35.0)], 1),
    ]
    assert {key: found["accuracy"] for key, found in common(records).items()} == {
        ("a", 0): 45.0,
        ("b", 0): 45.0,
        ("a", 1): 35.0,
        ("b", 1): 35.0,
    }
    assert (
        at_which(with_common(records, "accuracy"), "accuracy", "percent")
        == f" (at accuracy 40.00 % in {PANEL})"
    )


@pytest.mark.parametrize(
    "records",
    [
        [record("a", AVERAGING)],
        [record("a", AVERAGING), record("b", [], status=FAILED)],
        [record("a", AVERAGING), record("b", DISTILLATION), record("b", DISTILLATION, 1)],
        [record("a", AVERAGING), record("b", DISTILLATION, column="panel=other")],
    ],
    ids=["one row", "a failure", "seeds that differ", "columns that differ"],
)
def test_rows_that_cannot_be_compared_have_nothing_in_common(records):
    assert with_common(records, "accuracy") == records
    assert at_which(with_common(records, "accuracy"), "accuracy", "percent") == ""


# -- tables and sentences --


@pytest.fixture
def lines():
    records = [record(r, c, s) for s in (0, 1) for r, c in (("a", AVERAGING), ("b", DISTILLATION))]
    return summarise(with_common(records, "accuracy"))


def test_the_csv_has_every_round_and_the_common_value(lines):
    assert [
        (line["column"], line["metric"], line["value"], line["std"])
        for line in records_of(lines)
        if line["row"] == "b"
    ] == [
        *(
            (f"{PANEL} round={number}", metric, value, 0.0)
            for number, point in enumerate(DISTILLATION, 1)
            for metric, value in zip(("bandwidth-gb", "accuracy"), point, strict=True)
        ),
        (f"{PANEL} at=highest-common", "accuracy", 45.0, 0.0),
        (f"{PANEL} at=highest-common", "bandwidth-gb", 1.5, 0.0),
    ]


def test_the_table_has_the_end_of_every_curve_and_the_common_value(lines):
    shown = {
        (line["row"], line["column"], line["metric"]): line["value"]
        for line in records_of(summary(lines))
    }
    places = {("a", "end"): (60, 4), ("b", "end"): (45, 1.5)}
    places |= {("a", "highest-common"): (45, 4), ("b", "highest-common"): (45, 1.5)}
    assert shown == {
        (row, f"{PANEL} at={at}", metric): value
        for (row, at), values in places.items()
        for metric, value in zip(("accuracy", "bandwidth-gb"), values, strict=True)
    }


def test_a_sentence_says_at_which_accuracy_each_row_had_sent_how_much(lines):
    assert sentences(layout(unit="percent"), records_of(lines), "accuracy") == [
        "panel=cifar10: 45.00 is the highest Accuracy (%) that every row reaches; bandwidth until"
        " then: Row A 4.0000 GB, Row B 1.5000 GB"
    ]
    assert sentences(layout(), records_of(summarise([record("a", AVERAGING)])), "accuracy") == []


# -- the picture --


def test_curves_run_over_gigabytes_on_a_logarithmic_axis(drawn, tmp_path):
    records = [
        record("a", AVERAGING),
        record("b", DISTILLATION),
        record("top", [(0.0, 5.0), (0.0, 8.0)]),
    ]
    lines = summarise(with_common(records, "accuracy"))
    shown = ShownTable(layout(unit="percent"), lines, (), ("accuracy",))
    plots_curves.bandwidth_plot(shown, tmp_path / "t.png")
    (axis,) = drawn[0].axes
    assert (axis.get_xscale(), axis.get_xlabel()) == (
        "log",
        "Bandwidth (GB), all clients, up and down",
    )
    assert axis.get_ylabel() == "Accuracy (%)"
    curves = {line.get_label(): line for line in axis.get_lines()}
    assert [tuple(point) for point in curves["Row A"].get_xydata()] == AVERAGING
    assert set(curves["Bound †"].get_ydata()) == {
        8.0
    }  # sends nothing: a horizontal line at its end
    assert set(curves[HIGHEST_COMMON].get_ydata()) == {45.0}
    diamonds = [
        tuple(line.get_xydata()[0])
        for line in axis.get_lines()
        if line.get_marker() == "D" and len(line.get_xdata())
    ]
    assert diamonds == [(4.0, 45.0), (1.5, 45.0)]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()][-2:] == [
        HIGHEST_COMMON,
        FIRST_REACHED,
    ]


def test_a_model_that_learns_after_all_bytes_is_marked_at_its_end(drawn, tmp_path):
    records = [record("a", AVERAGING), record("b", [(2.0, 5.0), (2.0, 9.0), (2.0, 8.0)])]
    plots_curves.bandwidth_plot(
        ShownTable(layout(unit="percent"), summarise(records), (), ("accuracy",)),
        tmp_path / "t.png",
    )
    curves = {line.get_label(): line for line in drawn[0].axes[0].get_lines()}
    assert curves["Row B"].get_markevery() == [2]
    assert curves["Row A"].get_markevery() == 1


def test_the_seeds_spread_is_a_band_and_every_panel_has_axes(drawn, tmp_path):
    other = "panel=other"
    records = [
        record("a", AVERAGING),
        record("a", [(gb, value + 2) for gb, value in AVERAGING], 1),
        record("a", AVERAGING, column=other),
    ]
    plots_curves.bandwidth_plot(
        ShownTable(layout(unit="percent"), summarise(records), (), ("accuracy",)),
        tmp_path / "t.png",
    )
    bands = {
        axis.get_title(): len(axis.collections) for axis in drawn[0].axes if axis.get_visible()
    }
    assert bands == {"cifar10": 1, "other": 0}


def test_nothing_measured_is_no_picture(tmp_path):
    failed = summarise([record("a", [], status=FAILED, reason="lost")])
    plots_curves.bandwidth_plot(ShownTable(layout(), failed, (), ("accuracy",)), tmp_path / "t.png")
    assert not (tmp_path / "t.png").exists()
