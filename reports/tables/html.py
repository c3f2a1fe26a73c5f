"""Renders the pages of this folder: `templates/NAME`, with everything escaped that is not markup
already.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).parents[1] / "templates"


def render(name: str, **values: Any) -> str:
    """The template with its values; a name that it uses and nobody gives is an error."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**values)
