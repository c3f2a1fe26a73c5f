"""Finds things by their place: papers in `benchmarks/papers/`, measures in `benchmarks/measures/`,
scenarios in `benchmarks/scenarios/`, methods in `methods/`, `baselines/` and the plug-ins in use.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fedtables.benchmarks.tables.declared import check_declared, method_classes
from fedtables.benchmarks.tables.measure import Measure
from fedtables.benchmarks.tables.plugins import loaded, module_of
from fedtables.benchmarks.tables.spec import Paper, SpecError, Table
from fedtables.results.names import near
from fedtables.results.plugins import place, plugged_in, using
from fedtables.results.sourcecode import (
    PACKAGE,
    ROOT,
    file_source_digest,
    folder_modules,
    module_file,
    source_digest,
    source_libraries,
)

if TYPE_CHECKING:
    from fedtables.federation.method import Method

FOLDERS = ("methods", "baselines")
TASK = "classification"
"""The task, `data.task`, of a configuration that names none."""
RESERVED = frozenset(
    (
        *("augmentation", "budget", "data", "evaluation", "findings", "local", "network"),
        *("partition", "pixels", "privacy", "private", "public", "server", "slices"),
    )
)
"""First words of settings, which no method may be called; nor what measures add to them."""


@functools.cache
def papers() -> dict[str, Paper]:
    """The files in `benchmarks/papers/` that define `PAPER`, by key: papers, and sets of tables of
    this suite's own. Raises SpecError for a table of a measure that does not exist, and if two
    tables have one name.
    """
    by_key = {}
    for key in _defining("papers", "PAPER"):
        by_key[key] = importlib.import_module(f"fedtables.benchmarks.papers.{key}").PAPER
        for table in by_key[key].tables:
            measure_module(table.measure)
        _claimed("tables are called", ((f"{key}/{t.key}", t.title) for t in by_key[key].tables))
    return by_key


def _defining(folder: str, name: str) -> list[str]:
    """The modules in `benchmarks/FOLDER/` that define `name`, and not what several of them
    share.
    """
    files = sorted((ROOT / "benchmarks" / folder).glob("*.py"))
    defines = re.compile(rf"^{name} = ", re.MULTILINE)
    return [path.stem for path in files if defines.search(path.read_text(encoding="utf-8"))]


def _claimed(claim: str, names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """By name, who claims it. Raises SpecError if two do."""
    claimed: dict[str, str] = {}
    for name, by in names:
        if name in claimed:
            first, second = (other.rpartition(".")[2] for other in (claimed[name], by))
            raise SpecError(f"two {claim} {name!r}: {first} and {second}")
        claimed[name] = by
    return claimed


@functools.cache
def scenarios() -> dict[str, str]:
    """The module of the scenario that claims each task, a value of `data.task`: of the files in
    `benchmarks/scenarios/` that state `TASKS`, which is read without running them. Raises SpecError
    if two claim one task.
    """
    tasks = []
    for stem in _defining("scenarios", "TASKS"):
        stated = _stated(ROOT / "benchmarks" / "scenarios" / f"{stem}.py", "TASKS")
        tasks += [(task, f"fedtables.benchmarks.scenarios.{stem}") for task in stated]
    return _claimed("scenarios claim the task", tasks)


def _stated(path: Path, name: str) -> Any:
    """The tuple or mapping that a file states as `name`, read without running it; empty if none."""
    text = path.read_text(encoding="utf-8")
    stated = re.search(rf"^{name} = ([({{].*?[)}}])", text, re.MULTILINE | re.DOTALL)
    return ast.literal_eval(stated[1]) if stated else {}


def scenario_module(task: str) -> str:
    """The module of the scenario that claims a task. Raises SpecError with near names.

    Nothing that runs a cell imports it by name, so that the code of a cell is that of its own
    scenario.
    """
    if task not in scenarios():
        raise SpecError(f"no scenario has the task {task!r}; {near(task, scenarios())}")
    return scenarios()[task]


def find_scenario(task: str) -> Any:
    """The scenario that claims a task: a module with a function `parts(configuration, data, seeds,
    device)`, which gives `fedtables.benchmarks.scenarios.scenario.Parts`. Raises SpecError with
    near names.
    """
    return importlib.import_module(scenario_module(task))


@functools.cache
def measures() -> dict[str, str]:
    """The module of every measure, by name: what `MEASURES` of the files in `benchmarks/measures/`
    have. Raises SpecError if two measures have one name.
    """
    modules = [
        f"fedtables.benchmarks.measures.{stem}" for stem in _defining("measures", "MEASURES")
    ]
    names = ((n, module) for module in modules for n in importlib.import_module(module).MEASURES)
    return _claimed("measures are called", names)


def measure_module(name: str) -> str:
    """The module of the measure called `name`. Raises SpecError with near names."""
    known = measures()
    if name not in known:
        raise SpecError(f"unknown measure {name!r}; {near(name, known)}")
    return known[name]


def find_measure(name: str) -> Measure:
    """The measure called `name`. Raises SpecError with near names."""
    measure = importlib.import_module(measure_module(name)).MEASURES[name]
    assert isinstance(measure, Measure)
    return measure


def all_tables() -> dict[str, Table]:
    """Every table and figure of every paper by `paper/table`, in order."""
    found = {f"{key}/{t.key}": t for key, paper in papers().items() for t in paper.tables}
    return dict(sorted(found.items()))


def find_table(name: str) -> tuple[Paper, Table]:
    """The paper and table called `paper/table`. Raises SpecError with near names."""
    tables = all_tables()
    if name not in tables:
        raise SpecError(f"unknown table {name!r}; {near(name, tables)}")
    return papers()[name.split("/")[0]], tables[name]


@functools.cache
def measure_settings() -> frozenset[str]:
    """First words of the settings that concern the cells of some measures alone."""
    return frozenset().union(*(find_measure(name).settings for name in measures()))


@dataclass(frozen=True)
class MethodEntry:
    """A method before it is imported: its name, and the file or package folder it comes from."""

    name: str
    folder: str
    """`methods`, `baselines` or `plugin`."""
    path: str

    @property
    def module(self) -> str:
        path = Path(self.path)
        plugin = self.folder == "plugin"
        return module_of(path) if plugin else f"{PACKAGE}.{self.folder}.{path.stem}"

    @property
    def code(self) -> str:
        """Digest of the source that the method is made of: all modules of a package, and of a
        plug-in what it imports from its own folder.
        """
        if self.folder == "plugin":
            return file_source_digest(Path(self.path))
        return source_digest(*self._modules)

    @property
    def libraries(self) -> dict[str, str]:
        """Versions of the libraries that this source imports, of a method of this package."""
        return source_libraries(*self._modules)

    @property
    def _modules(self) -> tuple[str, ...]:
        parts = folder_modules(self.module) if Path(self.path).is_dir() else ()
        return (self.module, *parts)

    def load(self) -> type[Method]:
        """The method's class. Raises SpecError if the file or package does not define exactly one
        method, changes flags of PyTorch when it is imported, or cannot be made a row of any table;
        a package may define it in any of its modules, and its `__init__.py` exports it.
        """
        plugin = self.folder == "plugin"
        module = loaded(self.path) if plugin else importlib.import_module(self.module)
        classes = method_classes(module)
        if (count := len(classes)) != 1:
            raise SpecError(
                f"{self.path} must define exactly one subclass of Method, it defines {count}"
            )
        check_declared(classes[0], self.path)
        return classes[0]


@contextlib.contextmanager
def used(paths: Iterable[str | Path]) -> Iterator[None]:
    """Inside, the plug-ins at these paths are in use, and no others: their methods, networks and
    data sets are found by name.

    Raises RefusedError for one that is not there, cannot be imported, defines nothing, or takes the
    name of another or of what is known.
    """
    places: dict[str, Path] = {}
    for plugin in paths:
        path = Path(plugin).resolve()
        if not path.is_file() and not _is_package(path):
            raise SpecError(
                f"--plugin {plugin}: no such file or package; a package needs an __init__.py"
            )
        if places.setdefault(path.stem, path) != path:
            raise SpecError(
                f"two plug-ins are called {path.stem!r}: {places[path.stem]} and {path}; rename one"
            )
    with using(*(loaded(str(path)) for path in places.values())):
        if places:
            _check_plugins()
        yield


def _check_plugins() -> None:
    """Raise RefusedError for a plug-in in use that defines nothing, or what nobody can use."""
    from fedtables.datasets.catalogue import sources
    from fedtables.models.catalogue import networks

    networks(), sources()
    known = {entry.path: entry for entry in methods().values()}
    for plugin in plugged_in():
        if entry := known.get(str(place(plugin))):
            entry.load()
        elif not any(hasattr(plugin, name) for name in ("NETWORKS", "SOURCES")):
            raise SpecError(f"{place(plugin)} defines no Method, no NETWORKS and no SOURCES")


def plugins_with(names: Iterable[str]) -> tuple[str, ...]:
    """Where the plug-ins in use lie that define one of these: a method, network or data set."""
    named = {*names}
    methods_of = {entry.path: entry.name for entry in methods().values()}
    paths = []
    for plugin in plugged_in():
        path = str(place(plugin))
        own = {methods_of.get(path), *getattr(plugin, "NETWORKS", ())}
        if named & {*own, *(source.name for source in getattr(plugin, "SOURCES", ()))}:
            paths.append(path)
    return tuple(paths)


@functools.cache
def own_methods() -> Mapping[str, MethodEntry]:
    """The methods of this package by name: of every file and package in `FOLDERS`. Raises SpecError
    as `methods`.
    """
    return _entries(
        (folder, path)
        for folder in FOLDERS
        for path in sorted((ROOT / folder).iterdir())
        if path.stem != "__init__" and (path.suffix == ".py" or _is_package(path))
    )


@functools.cache
def aliases() -> Mapping[str, tuple[str, str]]:
    """By former name of a method of this package, its name now and why it changed: of the files
    that state `ALIASES`, reasons by former names, which is read without running them.
    """
    return {
        former: (entry.name, reason)
        for entry in own_methods().values()
        if (file := module_file(entry.module)) is not None
        for former, reason in _stated(file, "ALIASES").items()
    }


def current(name: str) -> str:
    """The present name of a method that is called by a former one; a line on stderr then says so,
    once. Any other text as it is.
    """
    if name not in aliases():
        return name
    now, reason = aliases()[name]
    _told(f"{name} is now called {now}: {reason}.")
    return now


def current_setting(name: str) -> str:
    """A setting of a method that may be called by a former name, likewise."""
    section, *rest = name.split(".", 1)
    return ".".join((current(section), *rest))


@functools.cache
def _told(line: str) -> None:
    print(line, file=sys.stderr)


def methods() -> dict[str, MethodEntry]:
    """All methods by name: those of this package, and of the plug-ins in use. Raises SpecError if
    two claim one name.
    """
    plugins = (("plugin", place(plugin)) for plugin in plugged_in() if method_classes(plugin))
    return _entries(plugins, own_methods())


def _entries(
    places: Iterable[tuple[str, Path]], known: Mapping[str, MethodEntry] = MappingProxyType({})
) -> dict[str, MethodEntry]:
    """The `known` methods, and those at further places, by name."""
    entries = dict(known)
    for folder, path in places:
        name = path.stem.replace("_", "-")
        if name in RESERVED | measure_settings():
            raise SpecError(f"a method cannot be called {name!r}, settings are; rename {path}")
        if known and name in aliases():
            raise SpecError(
                f"a method cannot be called {name!r}, {aliases()[name][0]} was; rename {path}"
            )
        if name in entries:
            raise SpecError(
                f"two methods are called {name!r}: {entries[name].path} and {path}; rename one"
            )
        entries[name] = MethodEntry(name, folder, str(path))
    return entries


def _is_package(path: Path) -> bool:
    return (path / "__init__.py").is_file()


def find_method(name: str) -> MethodEntry:
    """The method called `name`, now or formerly. Raises SpecError with near names."""
    known = methods()
    if (now := current(name)) not in known:
        raise SpecError(f"unknown method {name!r}; {near(name, known)}")
    return known[now]


def lineage(name: str) -> tuple[str, ...]:
    """The method called `name`, and the methods that its class derives from, nearest first; the
    last is the root of its family. Raises SpecError with near names.
    """
    known = methods()
    return tuple(
        entry.name
        for base in find_method(name).load().__mro__
        for entry in known.values()
        if f"{base.__module__}.".startswith(f"{entry.module}.") and entry.load() is base
    )
