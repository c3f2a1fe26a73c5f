"""Tables in LaTeX: what a paper's reader sees, and nothing that LaTeX would trip over."""

import pytest

from fedtables.reports.pages.latex import escape, latex_table
from tests.reports.drawn import layout, line, table_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50 % of a_b & c", r"50 \% of a\_b \& c"),
        ("1 ± 2", r"1 $\pm$ 2"),
        ("#{x}", r"\#\{x\}"),
        ("a\\b", r"a\textbackslash{}b"),
        ("plain", "plain"),
    ],
)
def test_special_characters_are_printed_as_they_are(text, expected):
    assert escape(text) == expected


def test_a_table_has_measured_and_published_values_and_its_best_in_bold():
    columns = ("test=x", "test=y")
    lines = [
        line("a", "test=x", "0.5", std="0.01"),
        line("b", "test=x", "0.7"),
        line("b", "test=y", "0.25"),
        line("a", "test=y", "", **{"status": "failed: NaN"}),
    ]
    text = latex_table(layout(columns, key="none/such"), table_of(lines))
    rows = [row for row in text.splitlines() if row.startswith(("Row", "Bound"))]
    assert rows == [
        r"Row A & 0.5000 $\pm$ 0.0100 & failed \\",
        r"Row B & \textbf{0.7000} & 0.2500 \\",
        r"Bound \textdagger{} & -- & -- \\",
    ]
    assert r"\begin{tabular}{lrr}" in text
    assert "profile smoke (reduced)" in text


def test_the_published_value_stands_in_brackets():
    column = "dataset=mnist distribution=iid"
    found = layout((column,))
    text = latex_table(found, table_of([line("a", column, "0.5", "0.6")]))
    assert r"Row A & 0.5000 (0.6000) \\" in text
