"""Settings that a spec leaves to a method's class: the field's default, with its docstring as the
source.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path

from benchmarks.tables import registry
from benchmarks.tables.spec import AS_CLASS, Scalar, Setting
from results.sourcecode import ROOT


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

    They are read, for to import a method takes seconds.
    """
    bases: list[Path] = []
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        body = ast.parse(file.read_bytes()).body
        classes = [node for node in body if isinstance(node, ast.ClassDef)]
        for node in classes:
            for statement, after in itertools.pairwise([*node.body, ast.Pass()]):
                if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == field:
                    yield _plain(statement.value), _docstring(after)
        named = {base.id for node in classes for base in node.bases if isinstance(base, ast.Name)}
        bases += [
            ROOT.joinpath(*str(node.module).split("."))
            for node in body
            if isinstance(node, ast.ImportFrom) and named & {alias.name for alias in node.names}
        ]
    for base in bases:
        file = base if base.is_dir() else base.with_suffix(".py")
        if file.exists():
            yield from _statements(file, field)


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
