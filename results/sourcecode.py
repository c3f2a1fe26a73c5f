"""Digests of source code, so that a cached result is only used by the code that would compute it
again.

A digest covers a module and everything of this repository that it imports, at any depth, without
comments and docstrings: rewording a sentence keeps a cache, changing a line of code does not. The
packages that a module lies in are among what it imports.
"""

from __future__ import annotations

import ast
import functools
import sys
from importlib import metadata
from pathlib import Path

from results.files import digest

ROOT = Path(__file__).resolve().parent.parent
"""The repository: the import root of every module here."""


def _module_file(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
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


def _origin(node: ast.ImportFrom, path: Path) -> str:
    """The module that `from ... import` in the file `path` names; empty if it is relative and the
    file is not of this repository.
    """
    if node.level == 0:
        return node.module or ""
    folder = path.parents[node.level - 1]
    if not folder.is_relative_to(ROOT):
        return ""
    return ".".join([*folder.relative_to(ROOT).parts, *([node.module] if node.module else [])])


@functools.cache
def _parse(path: Path) -> tuple[str, frozenset[str]]:
    """Digest of one file's code, and the repository modules it imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (origin := _origin(node, path)):
            imported.add(origin)
            imported.update(f"{origin}.{alias.name}" for alias in node.names)
    return digest(ast.dump(_strip_docstrings(tree))), frozenset(
        m for m in imported if _module_file(m)
    )


def imported_modules(module: str) -> frozenset[str]:
    """The repository modules that `module` imports directly, wherever in the file. Raises
    ValueError if it is not ours.
    """
    path = _module_file(module)
    if path is None:
        raise ValueError(f"{module} is not a module of this repository")
    return _parse(path)[1]


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


@functools.cache
def source_digest(*modules: str) -> str:
    """Digest of `modules` and all repository code they import. Raises ValueError for a module that
    is not ours.
    """
    files = ((module, _module_file(module)) for module in sorted(source_modules(*modules)))
    return digest([(module, _parse(path)[0]) for module, path in files if path])


PACKAGES = ("torch", "torchvision", "timm", "numpy", "opacus")
"""Packages whose version may change a number."""


@functools.cache
def package_versions() -> dict[str, str]:
    """Versions of the packages that compute; a result is only reused under the same ones."""
    return {name: metadata.version(name) for name in PACKAGES}


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
    """The same for code outside the repository (a plug-in) and the repository code it imports: of
    a file, or of all modules of the package whose `__init__.py` or folder `path` is.
    """
    path = path.resolve()
    folder = path.parent if path.name == "__init__.py" else path
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [path]
    parsed = [_parse(file) for file in files]
    imports = sorted(frozenset().union(*(imported for _, imported in parsed)))
    return digest([*(code for code, _ in parsed), source_digest(*imports) if imports else ""])
