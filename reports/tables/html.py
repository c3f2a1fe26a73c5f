"""Renders the templates of this folder, `templates/NAME`: pages and XML with everything escaped
that is not markup already, Markdown by the filter `escaped`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports.tables.markup import code, escaped, markdown_table
from results.names import printable

TEMPLATES = Path(__file__).parents[1] / "templates"


def render(name: str, filters: Mapping[str, Any] | None = None, **values: Any) -> str:
    """The template with its values and filters of its own, ending in a line's end. A page is under
    a content security policy: it loads nothing, and runs no script but its own. A name that the
    template uses and nobody gives is an error.
    """
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


def inlined(name: str) -> Markup:
    """A style or script of this folder, for the page that it stands in."""
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
