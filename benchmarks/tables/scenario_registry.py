"""Scenarios by the task that each claims, found by their place in `benchmarks/scenarios/`."""

from __future__ import annotations

import ast
import functools
import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from benchmarks.tables.spec import SpecError
from results.names import near
from results.sourcecode import ROOT


@dataclass(frozen=True)
class ScenarioEntry:
    """A scenario before it is imported. Its module has a function `parts(configuration, data,
    seeds, device)` that gives `benchmarks.scenarios.scenario.Parts`.
    """

    name: str
    """The file's."""
    tasks: tuple[str, ...]
    """Values of `data.task` that are its own."""

    @property
    def module(self) -> str:
        """Its dotted name. Nothing that runs a cell imports it by name, so that the code of a cell
        is that of its own scenario.
        """
        return f"benchmarks.scenarios.{self.name}"

    def load(self) -> ModuleType:
        return importlib.import_module(self.module)


@functools.cache
def scenarios() -> dict[str, ScenarioEntry]:
    """Scenarios by task: of every file in `benchmarks/scenarios/` that states `TASKS`, which is
    read without running the file. Raises SpecError if two claim one task.
    """
    by_task: dict[str, ScenarioEntry] = {}
    for path in sorted((ROOT / "benchmarks" / "scenarios").glob("*.py")):
        tasks = _stated_tasks(path)
        for task in tasks:
            if task in by_task:
                raise SpecError(
                    f"two scenarios claim the task {task!r}: {by_task[task].name} and {path.stem}"
                )
            by_task[task] = ScenarioEntry(path.stem, tasks)
    return by_task


def find_scenario(task: str) -> ScenarioEntry:
    """The scenario that claims a task. Raises SpecError with near names if there is none."""
    if task not in scenarios():
        raise SpecError(f"no scenario has the task {task!r}; {near(task, scenarios())}")
    return scenarios()[task]


def _stated_tasks(path: Path) -> tuple[str, ...]:
    """What a file states as `TASKS = (...)` at its top level; empty if it states nothing."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "TASKS" for target in statement.targets
        ):
            return tuple(ast.literal_eval(statement.value))
    return ()
