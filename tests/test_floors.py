"""A file imports only from its own floor's folder and from floors below it; inside a floor, rooms
follow the same rule, and no modules import each other in a circle.
"""

import ast
import re

import pytest

from fedtables.results.sourcecode import PACKAGE, ROOT, imported_modules, source_modules

FLOOR = {
    "benchmarks": 5,
    "baselines": 4,
    "methods": 3,
    "federation": 2,
    "reports": 2,
    "datasets": 1,
    "models": 1,
    "privacy": 1,
    "metrics": 1,
    "results": 0,
}
"""`results` lies below the rest of floor 1: records, files and digests are what all others are
written with."""

ROOMS = {
    "benchmarks": (
        "commands",
        "reporting",
        "running",
        "contract",
        "measures",
        "attacks",
        "scenarios",
        "papers",
        "tables",
    ),
    "federation": (
        "own",
        "fitting",
        "method",
        "shared",
        "parts",
        "federation",
        "inside",
        "snapshots",
        "cache",
        "client",
        "training",
        "tasks",
        "graphs",
        "augmentation",
        "data",
        "windows",
        "channel",
        "execution",
        "events",
        "seeds",
        "samples",
        "watching",
        "surroundings",
        "costs",
        "memory",
    ),
    "reports": ("commands", "pages", "comparing", "measures", "drawing", "tables"),
}
"""Inside a floor, from the top down: a room imports from itself and from those behind it. A room is
a folder, or a file beside the folders; `__main__` and the speed benchmarks stand above all."""

FILES = sorted(path for folder in FLOOR for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_downwards(path):
    own, *_ = path.relative_to(ROOT).parts
    for imported in imported_modules(module_name(path)):
        other = imported.split(".")[1]
        assert other == own or FLOOR[own] > FLOOR[other], f"{path} imports {imported}"


def module_name(path):
    parts = PACKAGE, *path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.relative_to(ROOT).parts[0] in ROOMS], ids=module_name
)
def test_imports_run_downwards_between_rooms_too(path):
    _, floor, *inner = module_name(path).split(".")
    rooms = ROOMS[floor]
    if not inner or inner[0] in ("__main__", "speed"):
        return
    assert inner[0] in rooms, f"{path} lies in no room of {rooms}"
    for imported in imported_modules(module_name(path)):
        _, other, *within = imported.split(".")
        if other == floor and within:
            assert rooms.index(inner[0]) <= rooms.index(within[0]), f"{path} imports {imported}"


def test_no_modules_import_each_other_in_a_circle():
    modules = {module_name(path) for path in FILES}
    waiting = {
        module: {
            other for other in imported_modules(module) if other in modules and other != module
        }
        for module in modules
    }
    while free := {module for module, needed in waiting.items() if not needed & waiting.keys()}:
        waiting = {module: needed for module, needed in waiting.items() if module not in free}
    assert not waiting, f"these import each other: {sorted(waiting)}"


OF_ONE_PAPER = (
    "fedtables.methods",
    "fedtables.baselines",
    "fedtables.benchmarks.papers",
    "fedtables.benchmarks.attacks.targets",
)
"""Where papers and their methods are named; elsewhere only docstrings name them, as sources."""
PAPERS = re.compile("dlad|fedsa|fedad|fediod", re.IGNORECASE)


def names_in(tree):
    """Names and texts of code, without documentation."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in documentation:
                yield node.value
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (alias.name for alias in node.names)
        else:
            yield from (
                value
                for value in (getattr(node, field, None) for field in ("id", "attr", "name", "arg"))
                if isinstance(value, str)
            )


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_general_code_names_no_paper_and_none_of_their_methods(path):
    if module_name(path).startswith((*OF_ONE_PAPER, "fedtables.benchmarks.speed")):
        return
    named = {text for text in names_in(ast.parse(path.read_text())) if PAPERS.search(text)}
    assert not named, f"{path} names {sorted(named)}"


LINES = 400
"""The longest file that is still read in one sitting."""


def test_no_file_is_too_long_to_be_read_in_one_sitting():
    every = [*FILES, *(ROOT / "tests").rglob("*.py")]
    lengths = {path: len(path.read_text().splitlines()) for path in every}
    assert not {path: length for path, length in lengths.items() if length > LINES}


def test_no_module_holds_a_function_or_class_of_its_own_name():
    """So that a name in an import says which of the two it is. Speed benchmarks are left out: their
    records go by the function's name.
    """
    definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    assert not [
        module_name(path)
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, definition) and node.name == path.stem
        if not path.name.startswith("test_")
    ]


def test_no_device_is_written_into_the_code():
    for path in FILES:
        text = path.read_text()
        assert ".cuda()" not in text, path
        assert "weights_only=False" not in text, path
        assert "allow_pickle=True" not in text, path


def test_what_computes_a_cell_knows_no_command_and_no_picture():
    """So that a change of how results are asked for or shown computes none of them again."""
    shown = (
        "fedtables.reports.",
        "fedtables.benchmarks.commands",
        "fedtables.benchmarks.reporting",
    )
    assert not [
        m for m in source_modules("fedtables.benchmarks.running.execute") if m.startswith(shown)
    ]
