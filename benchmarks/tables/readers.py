"""Readers of options: what a command line, a notebook or a file has becomes a value, or is refused.

They raise TypeError for a value of another kind.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, cast

from fedtables.benchmarks.tables.spec import Scalar, SpecError
from fedtables.results.command_line import number
from fedtables.results.names import near
from fedtables.results.numbers import MOST_WHOLE, shortened, whole_number


def choice(option: str, value: str, known: Iterable[str]) -> str:
    """The value, if it is known. Raises SpecError for another."""
    if value not in (words := tuple(known)):
        raise SpecError(f"{option} {value}: no such value; {near(value, words)}")
    return value


def one_of(option: str, known: Iterable[str]) -> Callable[[Any], str]:
    """Reads an option that takes some words alone."""
    return lambda value: choice(option, str(value), known)


def several(value: Any) -> list[Any]:
    """One value, or a list of several; none for None. Raises TypeError for a mapping."""
    if isinstance(value, Mapping):
        raise TypeError
    one = isinstance(value, str | Real | Path)
    return [] if value is None else [value] if one else list(value)


def text(value: Any) -> str:
    """Reads an option that takes a text. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError
    return value


def as_text(value: object) -> str:
    """A value as a command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_device_name(device: str) -> str:
    """Raise SpecError for what is no device's name; the name of none is empty."""
    if not isinstance(device, str) or not re.fullmatch(r"cuda:[0-9]{1,3}", device, re.ASCII):
        choice("--device", device, ("", "cpu", "cuda", "mps"))
    return device


def read_seeds(value: str | int | Iterable[int]) -> tuple[int, ...]:
    """`"0,1,2"` or numbers as seeds. Raises SpecError for anything but different whole numbers."""
    named = value.split(",") if isinstance(value, str) else several(value)
    try:
        seeds = tuple(
            whole_number(seed.strip() if isinstance(seed, str) else seed, 0) for seed in named
        )
    except ValueError:
        seeds = ()
    if not seeds or len(set(seeds)) < len(seeds):
        raise SpecError(
            f"--seeds takes different whole numbers from 0 to {MOST_WHOLE}, separated by commas, as"
            f" in --seeds 0,1,2; got {shortened(str(value))}"
        )
    return seeds


def read_only(value: Iterable[str] | Mapping[str, Any] | None) -> dict[str, tuple[str, ...]]:
    """`["dataset=mnist", "row=global-dlad"]`, or a mapping of keys to a value or several, as texts
    by key. Raises SpecError for anything but key=value, and for a key that a mapping has twice.
    """
    if isinstance(value, Mapping):
        named = {
            key: tuple(as_text(_scalar(one)) for one in several(values))
            for key, values in _flat(value, "--only").items()
        }
        for key, values in named.items():
            if not values:
                raise SpecError(f"--only {key}: it has no value")
        return named
    only: dict[str, tuple[str, ...]] = {}
    for key, one in _pairs(value, "--only takes key=value", "--only dataset=mnist"):
        only[key] = (*only.get(key, ()), one)
    return only


def read_settings(value: Iterable[str] | Mapping[str, Any] | None) -> dict[str, Scalar]:
    """`["local.epochs=2"]` or a mapping as settings by name, of which the last counts. A mapping
    may have `{"local": {"epochs": 2}}` too. Raises SpecError for anything but setting=value, and
    for a setting that a mapping has in both ways.
    """
    if isinstance(value, Mapping):
        return {name: _scalar(one) for name, one in _flat(value, "--set").items()}
    return dict(_pairs(value, "--set takes setting=value", "--set local.epochs=2"))


def _flat(named: Mapping[str, Any], option: str) -> dict[str, Any]:
    """The values of a mapping, and of those in it, by names with dots between."""
    found: dict[str, Any] = {}
    for name, value in _leaves(named):
        if name in found:
            raise SpecError(f"{option} {name}: it is there twice")
        found[name] = value
    return found


def _leaves(named: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in named.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _scalar(value: Any) -> Scalar:
    if not isinstance(value, str | Real):
        raise TypeError
    return cast(Scalar, value)


def _pairs(texts: Any, wanted: str, example: str) -> Iterable[tuple[str, str]]:
    for pair in several(texts):
        name, _, value = text(pair).partition("=")
        if not name or not value:
            raise SpecError(f"{wanted}, for example {example}; got {pair!r}")
        yield name, value


def number_or_none(value: Any) -> float | None:
    """Reads an option that takes a number, where it is given."""
    return None if value is None else number()(value)


def whether(value: Any) -> bool:
    """Reads a switch. Raises TypeError for what is neither true nor false."""
    if not isinstance(value, bool):
        raise TypeError
    return value
