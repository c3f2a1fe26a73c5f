"""Settings that a spec leaves to a method's class: the field's default, with its docstring as the
source.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import fields, replace

from benchmarks.tables import registry
from benchmarks.tables.spec import AS_CLASS, Scalar, Setting


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
    [default] = [f.default for f in fields(registry.find_method(method).load()) if f.name == name]
    assert isinstance(default, bool | int | float | str)
    return default


def _source(setting: str) -> str:
    """The docstring of a field: of the nearest class that has one."""
    method, _, name = setting.partition(".")
    texts = (_docstrings(base).get(name) for base in registry.find_method(method).load().__mro__)
    return next((text for text in texts if text), "")


@functools.cache
def _docstrings(of: type) -> dict[str, str]:
    """The docstrings of the fields that a class annotates itself."""
    if "__annotations__" not in vars(of):
        return {}
    [body] = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: " ".join(after.value.value.split())
        for field, after in itertools.pairwise(body.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    }
