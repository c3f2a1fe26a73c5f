"""Matrices of what was trained here and tested there."""

from fedtables.reports.drawing.plots_matrix import is_matrix, site_plot
from tests.reports.drawn import layout, line, shown, table_of

COLUMNS = [f"train={a} test={b}" for a in ("x", "y") for b in ("x", "y", "average")]
VALUES = ["0.9", "0.2", "0.55", "0.1", "0.8", "0.45"]


def lines(metric="dice", values=VALUES, published=""):
    return [
        line("a", column, value, metric=metric) | {"published": published}
        for column, value in zip(COLUMNS, values, strict=True)
    ]


def texts(axis):
    return [text.get_text() for text in axis.texts]


def test_one_row_of_two_keys_is_a_matrix():
    assert is_matrix(table_of(lines()))
    assert not is_matrix(table_of([*lines(), line("b", COLUMNS[0], "0.5")]))
    assert not is_matrix(table_of(lines()[:3]))  # of one site's model
    assert not is_matrix(table_of([line("a", "train=x", "0.5"), line("a", "train=y", "0.4")]))


def test_sites_that_train_are_down_and_sites_of_the_test_across(drawn, tmp_path):
    site_plot(shown(layout(COLUMNS), lines(published="0.7")), tmp_path / "m.png")
    [axis] = drawn[0].axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["x", "y"]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["x", "y", "average"]
    assert texts(axis)[0] == "0.900\n(0.700)"
    assert axis.get_title() == "Dice"


def test_a_number_is_marked_where_it_was_cut_short_or_leaves_out_values(drawn, tmp_path):
    first, *others = lines(published="0.7")
    short = first | {"defined": 112, "of": 610, "settled": "no"}
    site_plot(shown(layout(COLUMNS), [short, *others]), tmp_path / "m.png")
    [axis] = drawn[0].axes
    assert texts(axis)[:2] == ["0.900 §\n112 of 610\n(0.700)", "0.200\n(0.700)"]


def test_better_is_darker_also_where_lower_is_better(drawn, tmp_path):
    both = [*lines(), *lines("hd95", ["1", "9", "5", "8", "2", "6"])]
    site_plot(shown(layout(COLUMNS), both), tmp_path / "m.png")
    dice, distance = drawn[0].axes
    for axis in (dice, distance):
        inks = [text.get_color() for text in axis.texts]
        assert inks == ["white", "black", "black", "black", "white", "black"], axis.get_title()


def test_a_cell_that_was_not_measured_is_empty(drawn, tmp_path):
    site_plot(shown(layout(COLUMNS), lines(values=["", *VALUES[1:]])), tmp_path / "m.png")
    [axis] = drawn[0].axes
    assert len(texts(axis)) == 5
