"""Digests of source code, so that a cached result is only used by the code that would compute it
again.

A digest covers a module and everything of this repository that it imports, at any depth, without
comments and docstrings: rewording a sentence keeps a cache, changing a line of code does not. The
packages that a module lies in are among what it imports. Of the libraries that this code imports it
covers the versions.
"""

from __future__ import annotations

import ast
import functools
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from results.files import digest

ROOT = Path(__file__).resolve().parent.parent
"""The repository: the import root of every module here."""
INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders that libraries are installed in."""


def _module_file(module: str, root: Path | None = None) -> Path | None:
    """The file of a module below a folder, by default this repository's."""
    base = (root or ROOT).joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _strip_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        # Any bare string is documentation: of a module, a class, a function, or of the field above
        # it.
        node.body = [  # type: ignore[attr-defined]
            s
            for s in body
            if not (
                isinstance(s, ast.Expr)
                and isinstance(s.value, ast.Constant)
                and isinstance(s.value.value, str)
            )
        ]
    return tree


Import = tuple[int, str]
"""How many folders up an import looks, 0 for the import path, and what it names."""


@functools.cache
def _parse(text: str) -> tuple[str, frozenset[Import]]:
    """Digest of one file's code, and all that it may import."""
    tree = ast.parse(text)
    imports: set[Import] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.update((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = [node.module] if node.module else []
            names = [".".join([*origin, alias.name]) for alias in node.names]
            imports.update((node.level, name) for name in [*origin, *names])
    return digest(ast.dump(_strip_docstrings(tree))), frozenset(imports)


def _parsed(path: Path) -> tuple[str, frozenset[Import]]:
    """The same of a file as it is now; of one that is no Python, the digest of its bytes, and of
    one that was removed meanwhile, as if it were empty.
    """
    raw = path.read_bytes() if path.exists() else b""
    try:
        return _parse(raw.decode())
    except (SyntaxError, ValueError):
        return digest(raw), frozenset()


def _dotted(level: int, name: str, path: Path) -> str:
    """What an import in the file `path` names from the root of this repository; empty if it is
    relative and the file is not of this repository.
    """
    if level == 0:
        return name
    folder = path.parents[level - 1]
    if not folder.is_relative_to(ROOT):
        return ""
    return ".".join([*folder.relative_to(ROOT).parts, name])


@functools.cache
def _imported(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The modules of this repository that one of its files imports, and all that it may import
    beside, by dotted names.
    """
    names = frozenset(_dotted(*each, path) for each in _parsed(path)[1])
    ours = frozenset(filter(_module_file, names))
    return ours, names - ours


def imported_modules(module: str) -> frozenset[str]:
    """The repository modules that `module` imports directly, wherever in the file. Raises
    ValueError if it is not ours.
    """
    path = _module_file(module)
    if path is None:
        raise ValueError(f"{module} is not a module of this repository")
    return _imported(path)[0]


def source_modules(*modules: str) -> frozenset[str]:
    """`modules` and all repository code they import, at any depth, with the packages it lies in.
    Raises ValueError for a module that is not ours.
    """
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        waiting.extend(imported_modules(module))
        seen.add(module)
        package = module.rpartition(".")[0]
        if package and _module_file(package):
            waiting.append(package)
    return frozenset(seen)


def _files(*modules: str) -> list[tuple[str, Path]]:
    """`source_modules` in order, each with its file."""
    files = ((module, _module_file(module)) for module in sorted(source_modules(*modules)))
    return [(module, path) for module, path in files if path]


@functools.cache
def source_digest(*modules: str) -> str:
    """Digest of `modules`, of all repository code they import, of what they read from a text file
    (`NAME.txt` beside `NAME.py`), and of the versions of the libraries that this code imports.
    Raises ValueError for a module that is not ours.
    """
    code = [
        (module, _parsed(file)[0])
        for module, path in _files(*modules)
        for file in (path, path.with_suffix(".txt"))
        if file.exists()
    ]
    return digest([code, source_libraries(*modules)])


@functools.cache
def source_libraries(*modules: str) -> dict[str, str]:
    """Versions of the libraries that `modules`, and all repository code they import, import in
    turn, by the name of what is installed. Raises ValueError for a module that is not ours.
    """
    return _versions(name for _, path in _files(*modules) for name in _imported(path)[1])


def _versions(names: Iterable[str]) -> dict[str, str]:
    """Versions of what is installed of the modules called so, by the name of what is installed."""
    tops = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    tops -= {path.name for path in ROOT.iterdir()}
    installed = _distributions()
    found = {library for top in tops for library in installed.get(top, ())}
    return {library: metadata.version(library) for library in sorted(found)}


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    """What is installed, by the modules that it brings."""
    return metadata.packages_distributions()


def folder_modules(package: str) -> list[str]:
    """The modules of a package that is scanned rather than imported by name (`models.networks`)."""
    folder = ROOT.joinpath(*package.split("."))
    return [
        f"{package}.{path.stem}" for path in sorted(folder.glob("*.py")) if path.stem != "__init__"
    ]


def code_digest(module: str) -> str:
    """The digest of an imported module, of this repository or of a plug-in (a file or a
    package).
    """
    if _module_file(module) is not None:
        return source_digest(module)
    return file_source_digest(Path(str(sys.modules[module.partition(".")[0]].__file__)))


def file_source_digest(path: Path) -> str:
    """The same for code outside the repository (a plug-in), with all that `plugin_files` has, and
    the repository code and libraries it imports.
    """
    files = plugin_files(path)
    ours = sorted(filter(_module_file, _named(files)))
    code = [_parsed(file)[0] for file in files]
    return digest([code, source_digest(*ours) if ours else "", file_libraries(path)])


def file_libraries(path: Path) -> dict[str, str]:
    """`source_libraries` of a plug-in."""
    named = _named(plugin_files(path))
    ours = filter(_module_file, named)
    return {**source_libraries(*ours), **_versions(named)}


def _named(files: Iterable[Path]) -> frozenset[str]:
    """What files of a plug-in import by the import path."""
    return frozenset(name for file in files for level, name in _parsed(file)[1] if level == 0)


def plugin_files(path: Path) -> list[Path]:
    """The files of code outside the repository: the file `path`, or all of the package whose
    `__init__.py` or folder it is, and what `import` statements bring in, at any depth, from the
    folders that these lie in and from others on the import path that no library is installed in.
    """
    path = path.resolve()
    package = path.parent if path.name == "__init__.py" else path
    waiting = sorted(package.rglob("*.py")) if package.is_dir() else [path]
    elsewhere = [folder for folder in map(Path, sys.path) if not _is_installed(folder.resolve())]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        if _is_installed(file):
            continue
        for level, name in _parsed(file)[1]:
            beside = [package.parent, file.parent, *elsewhere]
            for folder in [file.parents[level - 1]] if level else beside:
                waiting += _brought(name, folder.resolve())
    return sorted(found)


def _brought(module: str, folder: Path) -> list[Path]:
    """The file of a module below a folder, which is not this repository, and those of the packages
    that it lies in.
    """
    if folder == ROOT:
        return []
    parts = module.split(".")
    names = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return [file.resolve() for name in names if (file := _module_file(name, folder))]


def _is_installed(path: Path) -> bool:
    """Whether a file or folder is where Python and its libraries are installed."""
    of_python = Path(sysconfig.get_path("stdlib")).resolve()
    return not INSTALLED.isdisjoint(path.parts) or path.is_relative_to(of_python)
