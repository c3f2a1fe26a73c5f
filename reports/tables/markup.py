"""Texts and tables in Markdown, and templates of `reports/templates`: pages and XML with everything
escaped that is not markup already, Markdown by the filter `escaped`.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from fedtables.results.names import printable

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


TEMPLATES = Path(__file__).parents[1] / "templates"


def render(name: str, filters: Mapping[str, Any] | None = None, **values: Any) -> str:
    """The template with its values and filters of its own, ending in a line's end. A page is under
    a content security policy: it loads nothing, and runs no script but its own. A name that the
    template uses and nobody gives is an error.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=not name.endswith(".md.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"escaped": escaped, "code": code, **(filters or {})}
    environment.globals |= {"inlined": inlined, "markdown_table": markdown_table}
    page = environment.get_template(name).render(**values).rstrip()
    page = "\n".join(map(printable, page.split("\n"))) + "\n"
    return page.replace(HEAD, HEAD + _policy(page), 1)


def inlined(name: str) -> str:
    """A style or script of this folder, for the page that it stands in."""
    from markupsafe import Markup

    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


HEAD = '<meta charset="utf-8">'


def _policy(page: str) -> str:
    """The policy as an element of the head: style and scripts of the page by their digests, and
    pictures that lie in it.
    """
    allowed = ["default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
    for tag in ("style", "script"):
        texts = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in texts)
        named = [f"'sha256-{digest.decode()}'" for digest in digests] or ["'none'"]
        allowed.append(f"{tag}-src {' '.join(named)}")
    return f'\n<meta http-equiv="Content-Security-Policy" content="{"; ".join(allowed)}">'
