"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def escape_cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def markdown_table(
    headings: Iterable[str],
    rows: Iterable[Iterable[str]],
    escape: Callable[[str], str] = escape_cell,
) -> list[str]:
    """The lines of a table; `escape` makes a text fit a cell."""
    heads = [escape(heading) for heading in headings]
    return [
        "|" + "".join(f" {head} |" if head else " |" for head in heads),
        "|---" * len(heads) + "|",
        *("| " + " | ".join(map(escape, row)) + " |" for row in rows),
    ]
