"""Scenarios by their place and their tasks."""

from __future__ import annotations

import pytest

from benchmarks.tables import registry, scenario_registry
from benchmarks.tables.spec import SpecError
from results.sourcecode import ROOT, imported_modules


@pytest.mark.parametrize(
    ("task", "name"),
    [
        (registry.TASK, "images"),
        ("classification", "images"),
        ("segmentation", "images"),
        ("findings", "films"),
    ],
)
def test_the_task_decides_on_the_scenario(task, name):
    scenario = scenario_registry.find_scenario(task)
    assert scenario.name == name
    assert scenario.module == f"benchmarks.scenarios.{name}"
    assert scenario.tasks == scenario.load().TASKS


def test_a_task_that_no_scenario_claims_is_refused_with_near_names():
    with pytest.raises(
        SpecError, match="no scenario has the task 'finding'; did you mean findings"
    ):
        scenario_registry.find_scenario("finding")


def test_a_file_with_tasks_is_a_scenario_and_no_task_has_two(tmp_path, monkeypatch):
    monkeypatch.setattr(scenario_registry, "ROOT", tmp_path)
    folder = tmp_path / "benchmarks" / "scenarios"
    folder.mkdir(parents=True)
    (folder / "volumes.py").write_text('TASKS = ("organs",)\nimport not_there\n')
    (folder / "helpers.py").write_text("SIZE = 3\n")
    scenario_registry.scenarios.cache_clear()
    try:
        assert scenario_registry.scenarios() == {
            "organs": scenario_registry.ScenarioEntry("volumes", ("organs",))
        }
        (folder / "slices.py").write_text('TASKS = ("lesions", "organs")\n')
        scenario_registry.scenarios.cache_clear()
        with pytest.raises(
            SpecError, match="two scenarios claim the task 'organs': slices and vol"
        ):
            scenario_registry.scenarios()
    finally:
        scenario_registry.scenarios.cache_clear()


def test_what_runs_a_cell_imports_no_scenario_by_name():
    """Else the code of every scenario were part of every cell's."""
    scenarios = {scenario.module for scenario in scenario_registry.scenarios().values()}
    waiting, reached = ["benchmarks.scenarios.assembly", "benchmarks.running.plan"], set()
    while waiting:
        module = waiting.pop()
        if module not in reached and (ROOT / (module.replace(".", "/") + ".py")).exists():
            reached.add(module)
            waiting += imported_modules(module)
    assert "benchmarks.running.execute" in reached
    assert not reached & scenarios
