"""What the site has beside docs/: files of the repository that pages link, and generated pages.

A hook of MkDocs (mkdocs.yml). Links between pages stay as they are on disk, so they work in the
repository too.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")
"""A link to a file: no address with a scheme, no anchor within the page."""


def linked(page: Path) -> dict[str, Path]:
    """The files of the repository, by link, that a page links outside of docs/."""
    targets = {link: (page.parent / link).resolve() for link in LINK.findall(page.read_text())}
    return {
        link: path
        for link, path in targets.items()
        if path.is_file() and path.is_relative_to(ROOT) and not path.is_relative_to(DOCS)
    }


def outside() -> list[Path]:
    """Every file outside of docs/ that a page links, and those that these link in turn."""
    found: dict[Path, None] = {}
    waiting = sorted(DOCS.rglob("*.md"))
    while waiting:
        targets = linked(waiting.pop()).values()
        new = [path for path in dict.fromkeys(targets) if path not in found]
        found |= dict.fromkeys(new)
        waiting += [path for path in new if path.suffix == ".md"]
    return sorted(found)


def place(path: Path) -> str:
    """Where a file of the repository lies in the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return f"repository/{path.relative_to(ROOT).as_posix()}"


def rewritten(markdown: str, page: Path) -> str:
    """The text of a page with links as the site has them. A link to nothing stays, and fails the
    strict build.
    """
    folder = Path(place(page)).parent

    def target(match: re.Match[str]) -> str:
        path = (page.parent / match[1]).resolve()
        if not path.is_file() or not path.is_relative_to(ROOT):
            return match[1]
        return Path(os.path.relpath(place(path), folder)).as_posix()

    return LINK.sub(target, markdown)


def commands() -> str:
    """The page of all commands, from their help."""
    import typer
    from typer.cli import get_docs_for_click

    from fedtables.benchmarks.commands.cli import app

    command = typer.main.get_command(app)
    for verb in command.commands.values():  # else Typer cuts their first sentences
        verb.short_help = (verb.help or "").split("\n\n")[0].replace("\n", " ")
    context = typer.Context(command, info_name="fedtables")
    return get_docs_for_click(obj=command, ctx=context, name="fedtables", title="Commands")


def settings() -> str:
    """The page of all settings of the papers' tables, with value and source."""
    from fedtables.benchmarks.reporting.cards import value_text
    from fedtables.benchmarks.tables import registry
    from fedtables.benchmarks.tables.defaults import settled
    from fedtables.reports.tables.markup import escaped, markdown_table

    parts = [
        "# Settings",
        "`--set NAME=VALUE` changes a setting for one run. `fedtables show TABLE` has those of one"
        " table, with their values under each profile. Fields of methods are on the page of"
        " [methods](methods.md).",
    ]
    for paper in registry.papers().values():
        rows = [
            (f"`{s.name}`", escaped(value_text(s.paper, "; ")), s.source, escaped(s.where))
            for s in {s.name: s for s in map(settled, paper.every_setting)}.values()
        ]
        head = ("setting", "paper", "source", "where")
        parts += [f"## {paper.key}", "\n".join(markdown_table(head, rows, str))]
    return "\n\n".join(parts) + "\n"


GENERATED: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands,
    "reference/settings.md": settings,
}
"""Pages that are written when the site is built."""


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages, and the files that pages link."""
    from mkdocs.structure.files import File

    for name, write in GENERATED.items():
        files.append(File.generated(config, name, content=write()))
    for path in outside():
        files.append(File.generated(config, place(path), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite a page's links."""
    name = page.file.src_uri
    if name in GENERATED:
        return markdown
    inside = name.partition("repository/")[2]
    return rewritten(markdown, ROOT / inside if inside else DOCS / name)
