"""Digests of source code, so that a cached result is only used by the code that would compute it
again.

A digest covers a module and everything of this repository that it imports, at any depth, without
comments and docstrings: rewording a sentence keeps a cache, changing a line of code does not.
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


@functools.cache
def _parse(path: Path) -> tuple[str, frozenset[str]]:
    """Digest of one file's code, and the repository modules it imports."""
    tree = ast.parse(path.read_text())
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            imported.add(node.module)
            imported.update(f"{node.module}.{alias.name}" for alias in node.names)
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


@functools.cache
def source_digest(*modules: str) -> str:
    """Digest of `modules` and all repository code they import."""
    seen: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        path = _module_file(module)
        if path is None:
            raise ValueError(f"{module} is not a module of this repository")
        seen[module], imports = _parse(path)
        waiting.extend(imports)
    return digest(sorted(seen.items()))


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
    """The digest of an imported module, of this repository or from a plug-in file."""
    if _module_file(module) is not None:
        return source_digest(module)
    return file_source_digest(Path(str(sys.modules[module].__file__)))


def file_source_digest(path: Path) -> str:
    """The same for a file outside the repository (a plug-in) and the repository code it imports."""
    own, imports = _parse(path.resolve())
    return digest([own, source_digest(*sorted(imports)) if imports else ""])
