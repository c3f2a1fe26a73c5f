"""A file that says what a run is, in TOML: its keys are a command's options, without dashes."""

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import Field
from pathlib import Path
from typing import Any

from fedtables.benchmarks.tables.request import Request, key_of, read_option
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.results.names import near, printable

MOST_BYTES = 2**20
"""More than any run needs: what never ends, as `/dev/zero`, is no such file."""
BARE = re.compile("[A-Za-z0-9_-]+", re.ASCII)


RUN = "run"
"""The key of a file's runs, if it has several: `[[run]]`."""


def read_runs(path: Path, options: Iterable[Field[Any]]) -> list[dict[str, Any]]:
    """What each run of a file asks for, in order, by the names of the options' fields. Each value
    is read as its option reads it. What stands above the first run holds for all. Paths start from
    the file's folder.

    Raises SpecError if it cannot be read, is no TOML or says nothing, for a key that none of the
    options has, and for a value that its option does not take.
    """
    parsed, options = _parsed(path), tuple(options)
    runs = parsed.pop(RUN, [{}])
    if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        raise SpecError(f"{path}: runs are written as [[{RUN}]], each with options of its own")
    common = _read(path, parsed, options)
    return [over(common, _read(path, run, options)) for run in runs]


def _read(path: Path, parsed: Mapping[str, Any], options: Iterable[Field[Any]]) -> dict[str, Any]:
    known = {key_of(about): about for about in options}
    asked = {}
    for key, value in parsed.items():
        if key not in known:
            raise SpecError(f"{path}: no option is called {key!r} here; {near(key, known)}")
        try:
            read = read_option(known[key], value)
        except SpecError as error:
            raise SpecError(f"{path}: {error}") from None
        except RecursionError:
            raise SpecError(f"{path}: {key} is nested too deep") from None
        asked[known[key].name] = started(known[key], read, path.parent)
    return asked


def plugins_of(path: Path) -> tuple[str, ...]:
    """The plug-ins that a file names, as it names them; none if it cannot be read."""
    about = Request.__dataclass_fields__["plugins"]
    with suppress(SpecError):
        return tuple(read_option(about, _parsed(path).get(key_of(about))))
    return ()


def _parsed(path: Path) -> dict[str, Any]:
    try:
        parsed = tomllib.loads(_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path} is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{path} is not valid TOML: {error}") from None
    if not parsed:
        raise SpecError(f'{path} says nothing; it begins with tables = ["PAPER/TABLE"]')
    return parsed


def _bytes(path: Path) -> bytes:
    """The content of a file or a pipe, without waiting for a pipe into which nobody writes."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
        os.set_blocking(stream.fileno(), True)
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    return content


def started(about: Field[Any], value: Any, folder: Path) -> Any:
    """The value of an option, of which paths start from a folder unless they are absolute."""
    if not about.metadata["of_paths"] or value is None:
        return value
    if isinstance(value, Path):
        return _shortest(folder / value)
    return tuple(str(_shortest(folder / one)) for one in value)


def _shortest(place: Path) -> Path:
    """The same place without `..`, unless a link before it leads elsewhere."""
    short = Path(os.path.normpath(place))
    return short if os.path.realpath(short) == os.path.realpath(place) else place


def over(read: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was read and what is given, which wins, of mappings key by key."""
    both = {**read, **given}
    for name, value in given.items():
        if isinstance(value, Mapping):
            both[name] = {**read.get(name, {}), **value}
    return both


def run_text(command: str, asked: Mapping[str, Any], remarks: Iterable[str] = ()) -> str:
    """The file of a run by its keys, for `read_runs`; remarks are comments."""
    named = {key: value for key, value in asked.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in asked.items() if key not in named}
    comments = (f"# {printable(text)}" for text in (f"fedtables {command} --config FILE", *remarks))
    lines = [*comments, *map(_line, plain.items())]
    for key, values in named.items():
        lines += ["", f"[{key}]", *map(_line, _as_numbers(values).items())]
    return "\n".join([*lines, ""])


def _line(pair: tuple[str, Any]) -> str:
    key, value = pair
    return f"{key if BARE.fullmatch(key) else _quoted(key)} = {_written(value)}"


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | Path):
        return _quoted(str(value))
    return f"[{', '.join(map(_written, value))}]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _as_numbers(named: Mapping[str, Any]) -> dict[str, Any]:
    """Values of settings or columns, one instead of a list of one, and texts of numbers as
    numbers.
    """
    found = {}
    for name, value in named.items():
        several = [
            _as_number(one) for one in (value if isinstance(value, list | tuple) else [value])
        ]
        found[name] = several[0] if len(several) == 1 else several
    return found


def _as_number(value: Any) -> Any:
    """The number that a text is, if its text is this one again."""
    for kind in (int, float) if isinstance(value, str) else ():
        with suppress(ValueError):
            if str(kind(value)) == value:
                return kind(value)
    return value
