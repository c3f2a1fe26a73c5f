"""What the source of a method says of it, read without importing it: `list` answers at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tables.registry import MethodEntry


@dataclass(frozen=True)
class Told:
    """A method in a line."""

    summary: str
    """The first sentence of its class."""
    base: str
    """The method that its class derives from; empty for none."""
    sends: tuple[str, ...]
    """Kinds of payload that leave a client."""


def told_of(entries: Iterable[MethodEntry]) -> dict[str, Told]:
    """By name, what the classes of these methods say; nothing of one that has no title."""
    found = {entry.name: node for entry in entries if (node := _class_of(Path(entry.path)))}
    names = {node.name: name for name, node in found.items()}

    def base_of(node: ast.ClassDef) -> str:
        bases = (base.id for base in node.bases if isinstance(base, ast.Name))
        return next((names[base] for base in bases if base in names), "")

    def sends_of(node: ast.ClassDef) -> tuple[str, ...]:
        declared = _assigned(node, "sends")
        if declared is None:
            return sends_of(found[base_of(node)]) if base_of(node) else ()
        texts = (part.value for part in ast.walk(declared) if isinstance(part, ast.Constant))
        return tuple(sorted(text for text in texts if isinstance(text, str)))

    return {
        name: Told(_sentence(ast.get_docstring(node) or ""), base_of(node), sends_of(node))
        for name, node in found.items()
    }


def _class_of(path: Path) -> ast.ClassDef | None:
    """The class with a title, of a file or a package."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    nodes = (node for file in files for node in ast.parse(file.read_bytes()).body)
    classes = (node for node in nodes if isinstance(node, ast.ClassDef))
    return next((node for node in classes if _assigned(node, "title") is not None), None)


def _assigned(node: ast.ClassDef, name: str) -> ast.expr | None:
    """What the body of a class assigns to a name."""
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(statement, ast.Assign)
            return statement.value
    return None


def _sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]
