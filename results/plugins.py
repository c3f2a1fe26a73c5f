"""Plug-ins in use: modules of a user's own, in which names are looked for as in the folders of this
package.

Who imports them says which are in use (`fedtables.benchmarks.tables.registry.used`); the catalogues
of networks and of data sets ask here.
"""

import functools
import importlib
import pkgutil
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from fedtables.results.files import RefusedError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
"""What a network or a data set may be called; settings join several by `+`."""

_in_use: tuple[ModuleType, ...] = ()


def plugged_in() -> tuple[ModuleType, ...]:
    """The plug-ins in which names are looked for now."""
    return _in_use


@contextmanager
def using(*modules: ModuleType) -> Iterator[None]:
    """Inside, these plug-ins are in use, and no others."""
    global _in_use
    before, _in_use = _in_use, modules
    try:
        yield
    finally:
        _in_use = before


def place(module: ModuleType) -> Path:
    """The file of a plug-in, or its folder if it is a package."""
    file = Path(str(module.__file__))
    return file.parent if file.name == "__init__.py" else file


def kept(size: int | None) -> Callable[[F], F]:
    """A decorator: `size` results of a function are kept, None for all, by its arguments, which
    have no keywords, and by the plug-ins in use: a name may mean something else in each.
    """

    def decorate(function: F) -> F:
        @functools.lru_cache(size)
        def found(plugins: tuple[ModuleType, ...], *arguments: Any) -> Any:
            return function(*arguments)

        @functools.wraps(function)
        def asked(*arguments: Any) -> Any:
            return found(_in_use, *arguments)

        asked.cache_clear = found.cache_clear  # type: ignore[attr-defined]
        return cast(F, asked)

    return decorate


Pairs = Callable[[Any], Iterable[tuple[str, T]]]
"""Makes names and entries of what a file lists."""


def listed(
    package: ModuleType, attribute: str, kind: type[T], pairs: Pairs[T]
) -> dict[str, tuple[T, ModuleType]]:
    """By name, what the files of a package and the plug-ins in use list in `attribute`, each with
    the module that lists it.

    Raises RefusedError for a file that cannot be imported, for a list of something else, and for a
    name that is none or is listed twice.
    """
    found: dict[str, tuple[T, ModuleType]] = {}
    for module in _listing(package, attribute):
        for name, entry in _entries(module, attribute, kind, pairs):
            if name in found:
                raise RefusedError(
                    f"two entries of {attribute} are called {name!r}: in"
                    f" {found[name][1].__file__} and in {module.__file__}; rename one"
                )
            found[name] = entry, module
    return found


def _listing(package: ModuleType, attribute: str) -> Iterator[ModuleType]:
    """The files of a package, and the plug-ins in use that have the attribute."""
    for info in pkgutil.iter_modules(package.__path__):
        name = f"{package.__name__}.{info.name}"
        with _refused(f"{name} cannot be imported", package.__path__):
            module = importlib.import_module(name)
        yield module
    yield from (plugin for plugin in _in_use if hasattr(plugin, attribute))


def _entries(
    module: ModuleType, attribute: str, kind: type[T], pairs: Pairs[T]
) -> Iterator[tuple[str, T]]:
    with _refused(f"{attribute} of {module.__file__} cannot be read", ()):
        entries = [*pairs(getattr(module, attribute))]
    for name, entry in entries:
        if not isinstance(entry, kind):
            raise RefusedError(
                f"{attribute} of {module.__file__}: {entry!r} is not a {kind.__name__}"
            )
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise RefusedError(
                f"{attribute} of {module.__file__}: nothing can be called {name!r}; a name has a to"
                " z, 0 to 9 and hyphens"
            )
        yield name, entry


@contextmanager
def _refused(what: str, folders: Iterable[str]) -> Iterator[None]:
    """Errors that nobody planned as RefusedError."""
    try:
        yield
    except Exception as error:
        raise RefusedError(
            f"{what}: {told(error, folders)}. See docs/howto/add-a-method.md."
        ) from error


def told(error: Exception, folders: Iterable[str]) -> str:
    """An error that nobody planned, in one line, with the line of a file in `folders`, or beside a
    plug-in in use, that it came from.
    """
    words = f"{type(error).__name__}: {' '.join(str(error).split())}"
    own = {*folders, *(str(place(module).parent) for module in _in_use)}
    lines = [
        f" ({Path(frame.filename).name}, line {frame.lineno})"
        for frame in traceback.extract_tb(error.__traceback__)
        if str(Path(frame.filename).parent) in own
    ]
    return words + "".join(lines[-1:])
