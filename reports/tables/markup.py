"""Texts and tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from results.names import printable

_READ = re.compile(
    r"([\\`$|]|(?<=\S)\*|\*(?=\w)"  # code, formulas, columns, emphasis
    r"|<(?=[\w/!?])|&(?=#?\w+;)"  # HTML
    r"|\[(?=[^\]]*\][(\[])"  # links and images
    r"|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)|~(?=~)"
    r"|:(?=[\w+-]+:)|^[#>]|^\*(?= ))"  # emoji, headings, quotations, lists
)


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    return _READ.sub(r"\\\1", printable(text))


def code(text: str) -> str:
    """Text as code in a line; it may have backticks itself."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    gap = " " if len(fence) > 1 else ""
    return f"{fence}{gap}{' '.join(text.splitlines())}{gap}{fence}"


def markdown_table(
    headings: Iterable[str],
    rows: Iterable[Iterable[object]],
    escape: Callable[[str], str] = escaped,
) -> list[str]:
    """The lines of a table; `escape` makes a text fit a cell."""
    heads = [escape(heading) for heading in headings]
    return [
        "|" + "".join(f" {head} |" if head else " |" for head in heads),
        "|---" * len(heads) + "|",
        *("| " + " | ".join(escape(str(cell)) for cell in row) + " |" for row in rows),
    ]
