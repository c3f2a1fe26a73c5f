"""Plug-ins: files and packages of a user's own, imported as they are now."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from fedtables.benchmarks.tables.spec import SpecError
from fedtables.results.sourcecode import file_source_digest, plugin_files

PLUGIN = "fedtables_plugin_"
"""How the names of plug-ins' modules begin."""

_imported: dict[str, tuple[str, str]] = {}
"""The path and the code of each plug-in that this process has imported last, by its module."""
_beside: set[str] = set()
"""Modules that lie beside plug-ins: another may bring others that are called alike."""


def module_of(path: Path) -> str:
    """The name of a plug-in's module."""
    return f"{PLUGIN}{path.stem}"


def loaded(path: str) -> ModuleType:
    """A plug-in as it is now, though another may be called alike. Raises SpecError if it cannot be
    imported, or changes flags of PyTorch when it is.
    """
    name, file = module_of(Path(path)), Path(path)
    if name not in sys.modules or _imported.get(name) != (path, file_source_digest(file)):
        _import(name, file)
        _imported[name] = path, file_source_digest(file)
    return sys.modules[name]


def _import(name: str, path: Path) -> None:
    """Import a plug-in, and what lies beside it, anew. Raises SpecError."""
    from fedtables.federation.surroundings import flags, put_back

    source = path / "__init__.py" if path.is_dir() else path
    inside = [str(path)] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(name, source, submodule_search_locations=inside)
    if spec is None or spec.loader is None:
        raise SpecError(f"plug-in {path} is not a Python file; its name must end in .py")
    own = [other for other in sys.modules if other.startswith(f"{name}.")]
    for other in (*own, *_beside):
        sys.modules.pop(other, None)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    before = flags()
    try:
        with put_back():
            spec.loader.exec_module(module)
            after = flags()
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise SpecError(
            f"plug-in {path} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if changed := [flag for flag in before if before[flag] != after[flag]]:
        del sys.modules[name]
        raise SpecError(
            f"plug-in {path} changes for all rows, when it is imported:"
            f" {', '.join(changed)}; do that inside `fit`"
        )
    files = {str(file) for file in plugin_files(path)}
    _beside.update(
        other
        for other, brought in list(sys.modules.items())
        if getattr(brought, "__dict__", {}).get("__file__") in files
        and not other.startswith(PLUGIN)
    )
