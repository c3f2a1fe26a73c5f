"""Digests of source code, so that a cached result is only used by the code that would compute it
again.

A digest covers a module and everything of this package that it imports, at any depth, without
comments and docstrings: rewording a sentence keeps a cache, changing a line of code does not. The
packages that a module lies in are among what it imports. Of the libraries that this code imports it
covers the versions. Modules count by name and content, so a checkout and an installed package
agree.
"""

import ast
import functools
import sys
import sysconfig
import uuid
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from fedtables.results.files import digest

PACKAGE = "fedtables"
ROOT = Path(__file__).resolve().parent.parent
"""The folder whose `results/` is `fedtables.results`: a checkout, or the installed package."""
NO_NUMBERS = frozenset({"filelock", "pooch", "pydicom", "requests"})
"""Libraries that move no number: they lock and fetch files, or decode data whose content a key has.
One may be absent, or newer, and what was computed still counts."""
INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders that libraries are installed in."""


def module_file(module: str, folder: Path | None = None) -> Path | None:
    """The file of a module of this package, or of one below a folder. None if there is none. A name
    that `fedtables` itself gives stands for the module where it lives.
    """
    first, *parts = module.split(".")
    if (first == PACKAGE) is (folder is not None):
        return None
    if first == PACKAGE and not parts:
        return Path(str(sys.modules[PACKAGE].__file__)).resolve()
    if first == PACKAGE and parts[0] in (homes := vars(sys.modules[PACKAGE])["HOMES"]):
        return module_file(homes[parts[0]])
    base = folder.joinpath(first, *parts) if folder else ROOT.joinpath(*parts)
    paths = base.with_suffix(".py"), base / "__init__.py"
    return next((path for path in paths if path.is_file()), None)


class _WithoutTexts(ast.NodeTransformer):
    """Drops bare strings, which are documentation: of a module, a class, a function, or of the
    field above.
    """

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        value = getattr(node.value, "value", None)
        return None if isinstance(value, str) else node


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
    return digest(repr(_plain(_WithoutTexts().visit(tree)))), frozenset(imports)


def _plain(node: Any) -> Any:
    """A syntax tree as lists, without what is empty: so that all versions of Python agree, of which
    newer ones have more fields.
    """
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    return [type(node).__name__, *([name, _plain(value)] for name, value in fields)]


def _parsed(path: Path) -> tuple[str, frozenset[Import]]:
    """The same of a file as it is now; of one that is no Python, the digest of its bytes, and of
    one that was removed meanwhile, as if it were empty.
    """
    raw = path.read_bytes() if path.exists() else b""
    try:
        return _parse(raw.decode())
    except (SyntaxError, ValueError):
        return digest(raw), frozenset()


def _with_packages(module: str, folder: Path | None = None) -> list[Path]:
    """The files that `module_file` finds of a module and of the packages that it lies in."""
    parts = module.split(".")
    names = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return [file.resolve() for name in names if (file := module_file(name, folder))]


def _brought(file: Path, folders: Sequence[Path | None]) -> list[Path]:
    """What a file's imports bring in: relative ones from where it lies, others from `folders`, None
    for this package.
    """
    return [
        path
        for level, name in _parsed(file)[1]
        for folder in ([file.parents[level - 1]] if level else folders)
        for path in _with_packages(name, folder)
    ]


@functools.cache
def _brought_here(file: Path) -> list[Path]:
    """What a file of this package brings in of it."""
    return _brought(file, [None])


def _files(starts: Iterable[Path]) -> list[Path]:
    """Files of this package, and all that they bring in of it, at any depth."""
    waiting, found = list(starts), set[Path]()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _brought_here(file)
    return sorted(found)


def _files_of(modules: Iterable[str]) -> list[Path]:
    """The same of modules. Raises ValueError for a module that is not ours."""
    return _files(file for module in modules for file in _own(module))


def _own(module: str) -> list[Path]:
    """The file of a module of this package, behind those of the packages that it lies in."""
    if module_file(module) is None:
        raise ValueError(f"{module} is not a module of {PACKAGE}")
    return _with_packages(module)


def imported_modules(module: str) -> frozenset[str]:
    """The modules of this package that `module` imports directly, wherever in the file, none of
    them by a relative name. Raises ValueError if it is not ours.
    """
    *_, path = _own(module)
    return frozenset(name for _, name in _parsed(path)[1] if module_file(name))


def source_modules(*modules: str) -> frozenset[str]:
    """`modules` and all code of this package they import, at any depth, with the packages it lies
    in. Raises ValueError for a module that is not ours.
    """
    return frozenset(map(_name, _files_of(modules)))


def _name(path: Path) -> str:
    """The module of a file; empty for one outside this package."""
    if path == module_file(PACKAGE):
        return PACKAGE
    if not path.is_relative_to(ROOT):
        return ""
    parts = PACKAGE, *path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@functools.cache
def source_digest(*modules: str) -> str:
    """Digest of `modules`, of all code of this package they import, of what they read from a text
    file (`NAME.txt` beside `NAME.py`), and of the versions of the libraries that this code imports.
    Raises ValueError for a module that is not ours.
    """
    return _digest(_files_of(modules))


@functools.cache
def source_libraries(*modules: str) -> dict[str, str]:
    """Versions of the libraries that `modules`, and all code of this package they import, import in
    turn, by the name of what is installed. Raises ValueError for a module that is not ours.
    """
    return _libraries(_files_of(modules))


def _digest(files: Iterable[Path]) -> str:
    """Of the code of files, of text files beside them, and of the libraries that they import."""
    code = (
        (_name(path), _parsed(file)[0])
        for path in files
        for file in (path, path.with_suffix(".txt"))
        if file.exists()
    )
    return digest([sorted(code), _libraries(files)])


def _libraries(files: Iterable[Path]) -> dict[str, str]:
    """Versions of the libraries that files import, by the name of what is installed."""
    imports = (found for file in files for found in _parsed(file)[1])
    tops = {name.partition(".")[0] for level, name in imports if level == 0}
    tops -= {*sys.stdlib_module_names, PACKAGE}
    installed = _distributions()
    found = {library for top in tops for library in installed.get(top, ())} - NO_NUMBERS
    return {library: metadata.version(library) for library in sorted(found)}


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    """What is installed, by the modules that it brings."""
    return metadata.packages_distributions()


def folder_modules(package: str) -> list[str]:
    """The modules of a package that is scanned rather than imported by name, as is
    `fedtables.models.networks`.
    """
    folder = ROOT.joinpath(*package.split(".")[1:])
    return [
        f"{package}.{path.stem}" for path in sorted(folder.glob("*.py")) if path.stem != "__init__"
    ]


def code_digest(module: str) -> str:
    """The digest of an imported module, of this package or of a plug-in (a file or a
    package). Of code without a file, as in a notebook, it is another at every call: nobody can tell
    whether that has changed.
    """
    if module_file(module) is not None:
        return source_digest(module)
    for name in (module.partition(".")[0], module):  # of a package, all of it
        file = Path(getattr(sys.modules[name], "__file__", None) or "")
        if file.is_file():
            return file_source_digest(file)
    return uuid.uuid4().hex


def file_source_digest(path: Path) -> str:
    """The same for code outside this package (a plug-in), with all that `plugin_files` has, and
    the code of this package and libraries it imports.
    """
    return _digest(_with_ours(path))


def file_libraries(path: Path) -> dict[str, str]:
    """`source_libraries` of a plug-in."""
    return _libraries(_with_ours(path))


def _with_ours(path: Path) -> list[Path]:
    """`plugin_files` and the code of this package that they import."""
    files = plugin_files(path)
    ours = (file for path in files for file in _brought(path, [None]) if file not in files)
    return [*files, *_files(ours)]


def plugin_files(path: Path) -> list[Path]:
    """The files of code outside this package: the file `path`, or all of the package whose
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
        beside = {folder.resolve() for folder in (package.parent, file.parent, *elsewhere)}
        if not _is_installed(file):
            waiting += _brought(file, [*beside])
    return sorted(found)


def _is_installed(path: Path) -> bool:
    """Whether a file or folder is where Python and its libraries are installed."""
    of_python = Path(sysconfig.get_path("stdlib")).resolve()
    return not INSTALLED.isdisjoint(path.parts) or path.is_relative_to(of_python)
