"""Units: the same metric as a fraction and in percent, and where a reader of numbers alone finds
the unit.
"""

import pytest

from fedtables.reports.tables.units import scale_of, unit_of


@pytest.mark.parametrize(
    ("metric", "unit", "title", "text", "bounds", "sign"),
    [
        ("accuracy", "fraction", "Accuracy", "70.3600", (0, 1), 1),
        ("accuracy", "percent", "Accuracy (%)", "70.36", (0, 100), 1),
        ("inception-score", "", "Inception score", "70.36", None, 1),
        ("hd95", "percent", "HD95 (pixel)", "70.36", None, -1),
        ("ssim", "percent", "SSIM", "70.3600", (0, 1), 1),
        ("num-classes", "percent", "Number of classes", "70", None, 0),
        ("fog", "percent", "fog", "70.3600", None, 0),
    ],
)
def test_titles_digits_and_ranges_follow_the_unit(metric, unit, title, text, bounds, sign):
    scale = scale_of(metric, unit)
    assert (scale.title, scale.text(70.36), scale.bounds, scale.sign) == (title, text, bounds, sign)


def test_texts_are_left_as_they_are():
    assert scale_of("classes", "").text("0-4,5") == "0-4,5"


@pytest.mark.parametrize(
    ("metric", "unit", "allowed"),
    [
        ("accuracy", "fraction", 0.02),
        ("accuracy", "percent", 2),
        ("hd95", "percent", 2),
        ("inception-score", "", 0.2),
        ("psnr", "", 1),
        ("bandwidth-gb", "", 0),
        ("fog", "", 0.1),
    ],
)
def test_a_tolerance_of_two_hundredths_in_each_unit(metric, unit, allowed):
    assert scale_of(metric, unit).allowance(0.02, -5.0) == pytest.approx(allowed)


@pytest.mark.parametrize(
    ("paper", "table", "metric", "values", "unit"),
    [
        ("fediod", "table1", "accuracy", [0.7], "percent"),
        ("dlad", "table2", "accuracy", [70.0], "fraction"),
        ("dlad", "figure2", "accuracy", [0.7, 1.0], "fraction"),
        ("elsewhere", "table1", "accuracy", [0.5, 70.0], "percent"),
        ("elsewhere", "table1", "accuracy", [], "fraction"),
        ("fediod", "table7", "inception-score", [2.4], ""),
    ],
)
def test_the_unit_is_that_of_print_and_without_print_that_of_the_size(
    paper, table, metric, values, unit
):
    assert unit_of(paper, table, metric, values) == unit
