"""The size of a picture, its title and footnote, the axes of metrics."""

import math
from dataclasses import replace

import pytest
from PIL import Image

from fedtables.reports.drawing.figures import (
    ONE_COLUMN,
    TWO_COLUMNS,
    Texts,
    chance_of,
    finish,
    limits,
    page,
    texts_of,
)
from fedtables.reports.tables.units import scale_of
from tests.reports.drawn import layout


@pytest.mark.parametrize(
    ("values", "bounds", "ends"),
    [
        ([0.2, 0.9], (0, 1), (0, 1.02)),
        ([20.0, 90.0], (0, 100), (0, 102)),
        ([math.nan, 5.0, 40.0], (0, 100), (0, 43.2)),  # 40 * 1.06, and 2 % of that
        ([99.0, 99.8], (0, 100), (98.8, 100)),  # a quarter of 0.8 on either side
        ([1.0, 4.0], (0, 100), (0, 4.3)),  # close together, but not far from zero
        ([60.0, 90.0], (50, 100), (50, 101)),  # from chance
        ([40.0, 90.0], (50, 100), (38.2, 101.2)),  # below it, with 3 % of 60 under the least
        ([10.0, 25.0], None, (0, 26.5)),
        ([33.0, 33.4], None, (32.9, 33.5)),
        ([math.nan], (0, 100), (0, 100)),
        ([], None, (0, 1)),
        ([0.0], None, (0, 1)),
    ],
)
def test_an_axis_ends_with_the_metric_or_with_the_values_that_do_not_reach_it(values, bounds, ends):
    assert limits(values, bounds) == pytest.approx(ends, abs=0.05)


@pytest.mark.parametrize(
    ("blocks", "need", "width", "lines"),
    [
        ([1], 2.0, ONE_COLUMN, [1]),
        ([2], 1.4, ONE_COLUMN, [2]),
        ([1, 1], 1.4, ONE_COLUMN, [2]),  # metrics of one panel each stand beside each other
        ([2], 2.0, TWO_COLUMNS, [2]),
        ([8], 1.2, TWO_COLUMNS, [4, 4]),
        ([6], 1.2, TWO_COLUMNS, [3, 3]),  # rather than five and one
        ([2, 1], 1.0, TWO_COLUMNS, [2, 1]),
    ],
)
def test_a_picture_is_one_column_or_two_wide_and_its_lines_are_of_one_length(
    blocks, need, width, lines
):
    figure, axes = page(blocks, [need] * len(blocks), 1.5)
    assert tuple(figure.get_size_inches()) == (width, 1.5 * len(lines))
    assert list(map(len, axes)) == blocks
    tops = [round(axis.get_position().y1, 3) for block in axes for axis in block]
    assert [tops.count(top) for top in dict.fromkeys(tops)] == lines


def test_a_title_says_which_table_it_is_and_what_of():
    assert texts_of(layout()) == Texts(
        "Table II. Accuracy", "dlad/table2: profile smoke (reduced); 1 seed."
    )


def test_chance_is_that_of_the_metric_or_of_the_columns_classes():
    one = replace(layout(), chance={"test=x": 0.1})
    assert chance_of(one, scale_of("auc", "percent"), "test=y") == 50
    assert chance_of(one, scale_of("accuracy", "percent"), "test=x epoch=3") == 10
    assert chance_of(one, scale_of("accuracy", "fraction"), "test=x") == 0.1
    assert math.isnan(chance_of(one, scale_of("accuracy", "percent"), "test=xy"))
    assert math.isnan(chance_of(one, scale_of("dice", "percent"), "test=x"))


def test_a_file_is_as_wide_as_the_picture_and_as_high_as_all_that_stands_on_it(tmp_path):
    sizes = []
    for texts in (Texts(), Texts("A title", "a note " * 40)):
        figure, [[axis]] = page([1], [1.0], 1.0)
        axis.plot([0, 1], label="a line")
        finish(figure, texts, tmp_path / "p.png")
        sizes.append(Image.open(tmp_path / "p.png").size)
    assert [width for width, _ in sizes] == [700, 700]
    # A line of the legend, and then a title and three lines of notes more.
    assert 200 < sizes[0][1] < 280
    assert 50 < sizes[1][1] - sizes[0][1] < 130
