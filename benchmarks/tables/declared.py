"""A method's class: where a file defines it, and whether a table can make a row of it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Set
from types import ModuleType
from typing import TYPE_CHECKING

from fedtables.benchmarks.tables.spec import PLANS, SpecError
from fedtables.results.names import near
from fedtables.results.numbers import check_bounds

if TYPE_CHECKING:
    from fedtables.federation.method import Method


def method_classes(module: ModuleType) -> list[type[Method]]:
    """The subclasses of Method that a file, or a module of a package, defines."""
    from fedtables.federation.method import Method

    return [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Method)
        and f"{value.__module__}.".startswith(f"{module.__name__}.")
    ]


DECLARED: Mapping[str, tuple[type, str]] = {
    "title": (str, "a text"),
    "sends": (Set, "a set of payload kinds"),
    "oracle": (Set, "a set"),
    "protected": (Mapping, "a mapping"),
    "privacy": (Mapping, "a mapping"),
    "quick": (Mapping, "a mapping from fields to values"),
    "dense": (bool, "True or False"),
    "reconstructs": (bool, "True or False"),
}
"""What a method's class says of itself."""


@functools.cache
def check_declared(method: type[Method], path: str) -> None:
    """Raise SpecError for a method's class that no table can make a row of, and `check` cannot
    judge.
    """
    for name, (kind, words) in DECLARED.items():
        if not isinstance(value := getattr(method, name), kind):
            raise SpecError(f"{path}: {name} of {method.__name__} is {words}, not {value!r}")
    if "fit" in method.__abstractmethods__:
        raise SpecError(f"{path}: {method.__name__} has no fit(self, federation)")
    fields = {about.name: about for about in dataclasses.fields(method)}
    for name, about in fields.items():
        if about.init and about.default is about.default_factory is dataclasses.MISSING:
            raise SpecError(
                f"{path}: {method.__name__} has no default for its field {name}; give it one"
            )
    for name in method.quick:
        if name not in fields and not str(name).startswith(PLANS):
            raise SpecError(
                f"{path}: quick of {method.__name__} names {name!r}, which is not a field;"
                f" {near(str(name), fields)}"
            )
    quick = {n: v for n, v in method.quick.items() if n in fields and fields[n].init}
    defaults = {n: f.default for n, f in fields.items() if f.default is not dataclasses.MISSING}
    for what, values in (("its defaults", {}), ("its `quick`", quick)):
        try:
            check_bounds(method, {**defaults, **values})
            method(**values)
        except Exception as error:
            raise SpecError(
                f"{path}: {method.__name__} cannot be made with {what}:"
                f" {type(error).__name__}: {error}"
            ) from error
