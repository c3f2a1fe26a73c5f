"""What the source of a method says, read without importing it, which takes seconds: the settings
that a spec leaves to its class, with the field's docstring as the source, and a line for `list`.
"""

import ast
import contextlib
import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.registry import MethodEntry
from fedtables.benchmarks.tables.spec import AS_CLASS, Scalar, Setting
from fedtables.results.sourcecode import module_file


def settled(setting: Setting) -> Setting:
    """The setting with a value and a source, where it leaves both to the class."""
    if setting.paper != AS_CLASS:
        return setting
    return replace(setting, paper=_default(setting.name), where=_source(setting.name))


def filled(
    config: Mapping[str, Scalar], methods: Collection[str] | None = None
) -> dict[str, Scalar]:
    """A configuration with defaults where it leaves a value to a class: of these methods, by
    default of all.
    """
    return {
        name: _default(name)
        if value == AS_CLASS and (methods is None or name.partition(".")[0] in methods)
        else value
        for name, value in config.items()
    }


@dataclass(frozen=True)
class Told:
    """A method in a line."""

    summary: str = ""
    """The first sentence of its class."""
    base: str = ""
    """The method that its class derives from; empty for none."""
    sends: tuple[str, ...] = ()
    """Kinds of payload that leave a client."""


def told_of(entries: Iterable[MethodEntry]) -> dict[str, Told]:
    """By name, what the classes of these methods say; nothing of one that has no title."""
    titled = {e.name: [n for n in _classes(Path(e.path)) if _assigned(n, "title")] for e in entries}
    found = {name: nodes[0] for name, nodes in titled.items() if nodes}
    names = {node.name: name for name, node in found.items()}

    def base_of(node: ast.ClassDef) -> str:
        bases = (base.id for base in node.bases if isinstance(base, ast.Name))
        return next((names[base] for base in bases if base in names), "")

    def sends_of(node: ast.ClassDef) -> tuple[str, ...]:
        if not (declared := _assigned(node, "sends")):
            return sends_of(found[base_of(node)]) if base_of(node) else ()
        texts = (part.value for part in ast.walk(declared) if isinstance(part, ast.Constant))
        return tuple(sorted(text for text in texts if isinstance(text, str)))

    return {
        name: Told(_sentence(ast.get_docstring(node) or ""), base_of(node), sends_of(node))
        for name, node in found.items()
    }


def _sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]


@functools.cache
def _default(setting: str) -> Scalar:
    """The default of a field, `fedad.rho`."""
    method, _, name = setting.partition(".")
    entry = registry.find_method(method)
    stated = (value for value, _ in _statements(Path(entry.path), name) if value is not None)
    for value in stated:
        return value
    [default] = [about.default for about in fields(entry.load()) if about.name == name]
    assert isinstance(default, bool | int | float | str)
    return default


def _source(setting: str) -> str:
    """The docstring of a field: of the nearest class that has one."""
    method, _, name = setting.partition(".")
    statements = _statements(Path(registry.find_method(method).path), name)
    return next((docstring for _, docstring in statements if docstring), "")


def _statements(path: Path, field: str) -> Iterator[tuple[Scalar | None, str]]:
    """What a method's file or package, and then those of the classes that it derives from, say of
    a field: its default, None where that is no plain value, and its docstring.
    """
    bases: list[Path] = []
    for body in _bodies(path):
        classes = [node for node in body if isinstance(node, ast.ClassDef)]
        for node in classes:
            for statement, after in itertools.pairwise([*node.body, ast.Pass()]):
                if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == field:
                    yield _plain(statement.value), _docstring(after)
        named = {base.id for node in classes for base in node.bases if isinstance(base, ast.Name)}
        bases += [
            file.parent if file.name == "__init__.py" else file
            for node in body
            if isinstance(node, ast.ImportFrom) and named & {alias.name for alias in node.names}
            if (file := module_file(str(node.module)))
        ]
    for base in bases:
        yield from _statements(base, field)


def _bodies(path: Path) -> Iterator[list[ast.stmt]]:
    """The statements of a file, or of each file of a package."""
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        yield ast.parse(file.read_bytes()).body


def _classes(path: Path) -> list[ast.ClassDef]:
    return [node for body in _bodies(path) for node in body if isinstance(node, ast.ClassDef)]


def _assigned(node: ast.ClassDef, name: str) -> ast.expr | None:
    """What the body of a class assigns to a name."""
    for statement in node.body:
        if isinstance(statement, ast.Assign) and name in map(ast.unparse, statement.targets):
            return statement.value
    return None


def _plain(value: ast.expr | None) -> Scalar | None:
    """A number, text or truth that is written out; None for anything else."""
    with contextlib.suppress(ValueError):
        plain: Scalar | None = ast.literal_eval(value) if value else None
        return plain
    return None


def _docstring(after: ast.stmt) -> str:
    """The text that a statement is, on one line; empty for another statement."""
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
        return " ".join(str(after.value.value).split())
    return ""
