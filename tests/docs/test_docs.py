"""Every command that README and docs show works; every file they name exists."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import typer

from fedtables.benchmarks.commands.asked import selected, table_names
from fedtables.benchmarks.commands.cli import app
from fedtables.benchmarks.commands.from_file import asked_by
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.request import Request, requested
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import Paper, Table
from fedtables.results.files import RUNS
from fedtables.results.frame import read_records
from tests.docs.adding import DATA, DERIVED, NETWORK
from tests.tools import reference

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HOW_TO_REPRODUCE = ROOT / "docs" / "howto" / "reproduce.md"


def of_page(page: Path) -> list[str]:
    """The commands that a page shows."""
    return [
        line.split("  #")[0].strip()
        for block in re.findall(r"```bash\n(.*?)```", page.read_text(), re.DOTALL)
        for line in block.splitlines()
        if line.strip()
    ]


COMMANDS = list(dict.fromkeys(line for page in PAGES for line in of_page(page)))

SHOWN = {"damped.py": DERIVED, "my_net.py": NETWORK, "my_data.py": DATA}
"""Plug-ins of the pages on adding things."""

SLOW = {
    "fedtables reproduce dlad/table2": "first",
    "fedtables reproduce fedad/table4": "regression",
    "fedtables reproduce fediod/figure4": "regression",
}
"""Commands of half a minute and more, and the environment in which `.ci/run` runs the table
anyway."""
SLOW_BEGINNINGS = (
    "reproduce dlad/table2 --seeds",
    "reproduce fedad/",
    "reproduce fedsa/",
    "reproduce fediod/figure4",
    "reproduce fediod/trial --only row=fediod,standalone",
    "reproduce fediod/figure8",
    "reproduce fediod/table1 --only method=fediod",
    "reproduce fediod/table5",
    "sweep fediod/table1 --epsilon 2,10",
    "plan dlad/table2 fedad/table1 fediod/table1 fedsa/table1 --profile gpu",
    "plan dlad/table2 --profile paper",
    "plan dlad/table4 --profile paper",
    "plan fedad/table7",
    "plan league/mnist --profile cpu",
    "check damped",
    "verify",
)
"""How documented commands begin that take five seconds and more. Their arguments are read and
their cells counted; `tox run -e slow` runs them all, and the tests of each paper's tables run them
in small."""


def is_slow(line: str) -> bool:
    return line in SLOW or line.startswith(tuple(f"fedtables {words}" for words in SLOW_BEGINNINGS))


def without_execution(words: list[str]) -> list[str]:
    """Options of how training runs, each with its value, left out: a plan knows none."""
    how = {"--precision", "--compile", "--stacked"}
    return [w for w, before in zip(words, ["", *words], strict=False) if not how & {w, before}]


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """One results folder for all documented commands, as a reader would have."""
    folder = tmp_path_factory.mktemp("docs")
    for page, language, name in (
        (ROOT / "README.md", "python", "most_confident.py"),
        (HOW_TO_REPRODUCE, "toml", "run.toml"),
    ):
        block = re.search(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)
        assert block is not None
        (folder / name).write_text(block[1])
    for name, text in SHOWN.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    "line", [pytest.param(line, marks=[pytest.mark.slow] * is_slow(line)) for line in COMMANDS]
)
def test_a_documented_command_works(line, shared, shared_command):
    """Smoke commands run as they are; for reduced and full-scale ones, `plan` resolves the same
    arguments.

    Later commands read what earlier ones wrote, so one worker runs them all: `--dist loadfile` in
    tox.ini.
    """
    program, *words = shlex.split(line)
    assert program == "fedtables", line
    written = ("most_confident.py", "run.toml", "baseline", "who-holds-what.json", *SHOWN)
    words = [str(shared / w) if w in written else w for w in words]
    if words[0] == "reproduce":
        if "cpu" in words or "paper" in words:
            words = without_execution(["plan", *words[1:]])
        elif "--results" not in words:
            words += ["--results", str(shared / "runs")]
    elif words[0] in ("partition", "sweep", "attack"):
        words += ["--results", str(shared / "runs")]
    elif words[:2] in (["reports", "build"], ["reports", "draw"]):
        words += [str(shared / "runs"), "--output", str(shared / "report")]
    elif words[0] == "reports":
        words = [str(shared / w) if w.startswith(("runs/", "baseline/")) else w for w in words]
    done = shared_command(*words)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


def asked_for(words: list[str]) -> Iterator[tuple[Paper, Table, Selection]]:
    """The papers and tables that the arguments of `reproduce` name, each with the selection, of
    every run of a file.
    """
    command = typer.main.get_command(app).commands["reproduce"]
    context = command.make_context("reproduce", list(words))
    for asked in asked_by(context, context.params["config"], fields(Request)):
        request = requested(**asked)
        for name in table_names(request.tables, request.protocol):
            yield *registry.find_table(name), selected(request, [name])


@pytest.mark.parametrize(
    "line", [line for line in COMMANDS if is_slow(line) and " reproduce " in line]
)
def test_a_slow_command_takes_its_arguments_and_has_cells(line):
    for paper, table, selection in asked_for(shlex.split(line)[2:]):
        assert expand(paper, table, selection)


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A copy of the repository as a reader has it: with the committed results, and none of runs."""
    folder = tmp_path_factory.mktemp("clone") / "fedtables"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "build", str(RUNS))
    shutil.copytree(ROOT, folder, symlinks=True, ignore=left_out)
    return folder


ONE_CELL = {"dlad/table2": "--only distribution=iid --only row=client-resnet", "fediod/table1": ""}
"""What narrows a page's commands at `cpu` to a short cell each, by table."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [line for line in of_page(HOW_TO_REPRODUCE) if "--profile cpu" in line]
)
def test_a_command_at_cpu_runs_in_a_fresh_clone_with_an_empty_cache(line, clone):
    """Narrowed to one short cell, on stand-ins. The clone holds what the command asks for, computed
    by older code.
    """
    [table] = ONE_CELL.keys() & set(shlex.split(line))
    options = [*shlex.split(ONE_CELL[table]), "--set", "local.epochs=1"]
    command = [sys.executable, "-m", *shlex.split(line), *options]
    environment = {**os.environ, "PYTHONPATH": str(clone / "typings")}
    done = subprocess.run(
        command, cwd=clone, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "1 cells, 0 finished before, 1 to run" in done.stdout
    paper, _, name = table.partition("/")
    [records] = (clone / RUNS / "cpu" / paper).glob(f"{name}.*.records.jsonl")
    assert len(read_records(records)) == 1


@pytest.mark.parametrize("line", SLOW)
def test_a_slow_command_is_documented_and_is_run_by_ci(line):
    assert line in COMMANDS
    table = line.rpartition(" ")[2]
    assert f"tox run -e {SLOW[line]}" in (ROOT / ".ci" / "run").read_text()
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    told = [tomllib.loads(path.read_text()) for path in reference.RUNS]
    run = [config["testenv:first"]["commands"].split(), *(one["tables"] for one in told)]
    assert any(table in names for names in run)


def test_documented_tox_environments_exist_and_share_one_interpreter():
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    named = {name for page in PAGES for name in re.findall(r"tox run -e (\w+)", page.read_text())}
    named |= set(re.findall(r"tox run -e (\w+)", (ROOT / ".ci" / "run").read_text()))
    assert {"first", "tests"} <= named
    for name in named:
        assert f"testenv:{name}" in config
        assert "{[testenv]python_of_env}" in config[f"testenv:{name}"]["commands"]


def test_tox_has_no_line_that_is_too_long_to_read():
    assert max(map(len, (ROOT / "tox.ini").read_text().splitlines())) <= 120


def test_smoke_regenerates_every_table():
    """Papers by their names, and what is computed only if it is named."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    words = config["testenv:smoke"]["commands"].split()
    named = tomllib.loads((ROOT / words[words.index("--config") + 1]).read_text())["tables"]
    papers = registry.papers()
    apart = [f"{key}/{t.key}" for key in papers for t in papers[key].tables if t.preparatory]
    assert named == [*(key for key, paper in papers.items() if paper.tables), *apart]


def test_the_reference_holds_what_ci_regenerates():
    asked = {}
    for run in reference.RUNS:
        for paper, table, selection in asked_for(["--config", str(run)]):
            stem = ".".join(filter(None, (table.key, selection.variant)))
            path = f"{paper.key}/{stem}.records.jsonl"
            cells = {(c.row, c.column, c.seed) for c in expand(paper, table, selection)}
            asked.setdefault(path, set()).update(cells)
    kept = ROOT / "results" / "reference" / "smoke"
    held = {
        str(path.relative_to(kept)): {
            (entry["row"], entry["column"], entry["seed"])
            for entry in map(json.loads, path.read_text().splitlines())
        }
        for path in kept.rglob("*.records.jsonl")
    }
    assert held == asked
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    for command in config["testenv:reference"], config["testenv:regression"]:
        assert "-m tests.tools.reference" in command["commands"]
    speed = json.loads((ROOT / "results" / "reference" / "speed.json").read_text())
    assert {"node", "commit_info"}.isdisjoint({*speed["machine_info"], *speed})


def test_the_files_of_the_league_make_its_committed_cells():
    asked: dict[str, set[tuple[str, str, int]]] = {}
    for path in (ROOT / "docs" / "examples").glob("league*.toml"):
        for paper, table, selection in asked_for(["--config", str(path)]):
            cells = expand(paper, table, selection, skip_unusable=True)
            found = {(c.row, c.column, c.seed) for c in cells}
            asked[table.key] = asked.get(table.key, set()) | found
    kept = (ROOT / "results" / "cpu" / "league").glob("*.records.jsonl")
    held = {
        path.name.partition(".")[0]: {(r.row, r.column, r.seed) for r in read_records(path)}
        for path in kept
    }
    assert held == asked


def test_the_runs_of_the_papers_scale_are_there_and_none_is_made_twice():
    path = ROOT / "docs" / "examples" / "paper-scale.toml"
    runs = list(asked_for(["--config", str(path)]))
    assert {selection.profile for _, _, selection in runs} == {"paper"}
    cells = [cell.key for run in runs for cell in expand(*run)]
    assert len(cells) == len(set(cells)) > len(runs)


def test_the_readme_says_how_many_tables_run():
    run = sum("/table" in name for name in registry.all_tables())
    assert f"{run} of the 25 tables of the four papers run" in (
        ROOT / "README.md"
    ).read_text().replace("\n", " ")


def test_ci_and_the_workflow_run_the_same_script():
    assert "bash .ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
