"""Markdown shows a text as it is."""

import pytest

from fedtables.reports.tables.markup import code, escaped, markdown_table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("<b>bold</b>", r"\<b>bold\</b>"),
        ("p < 0.05", "p < 0.05"),
        ("&amp; R&D", r"\&amp; R&D"),
        (r"$\input{x}$", r"\$\\input{x}\$"),
        ("*loud* + mimic *, tau 1", r"\*loud\* + mimic *, tau 1"),
        ("_so_ local_epochs", r"\_so\_ local_epochs"),
        ("[a](http://b) [released]", r"\[a](http://b) [released]"),
        (":x: at 10:30", r"\:x: at 10:30"),
        ("`code`", r"\`code\`"),
        ("# no\nheading", r"\# no heading"),
    ],
)
def test_nothing_of_a_text_is_markup(text, shown):
    assert escaped(text) == shown


def test_a_cell_is_one_cell():
    assert markdown_table(("a",), [("x|y\nz",)]) == ["| a |", "|---|", r"| x\|y z |"]


def test_code_may_have_backticks():
    assert code("python -m x") == "`python -m x`"
    assert code("a `b`") == "`` a `b` ``"
