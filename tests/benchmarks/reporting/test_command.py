"""The command under a table makes the cells that it has."""

import shlex
import tomllib
from dataclasses import fields, replace

import pytest

from fedtables.benchmarks.reporting.command import command_of, run_file_of
from fedtables.benchmarks.running.events import record_of
from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.request import Request, requested
from fedtables.benchmarks.tables.runfile import read_runs
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.sweep import swept
from fedtables.federation.execution import DEFAULT, FAST, Execution
from fedtables.results.store import TableFiles


def run_of(tmp_path, name, selection, table=None):
    paper, printed = registry.find_table(name)
    chosen = table or printed
    cells = expand(paper, chosen, selection)
    files = TableFiles(tmp_path, selection.profile, name)
    return TableRun(paper, chosen, selection, cells, files)


@pytest.mark.parametrize(
    ("selection", "options"),
    [
        (Selection(), ""),
        (Selection(seeds=(0, 2)), "--seeds 0,2"),
        (Selection(only={"dataset": "cifar10"}), "--only dataset=cifar10"),
        (Selection(only={"row": "fedkd,fediod"}), "--only row=fedkd,fediod"),
        (Selection(add=("fediod-own",), drop=("fedgen",)), "--methods +fediod-own,-fedgen"),
        (Selection(protocol="released"), "--protocol released"),
        (Selection(device="cuda"), "--device cuda"),
        (
            Selection(overrides=(("local.epochs", 2), ("x.y", True))),
            "--set local.epochs=2 --set x.y=true",
        ),
    ],
)
def test_it_has_the_options_of_a_selection(tmp_path, selection, options):
    run = run_of(tmp_path, "fediod/table1", selection)
    command = command_of(run, [record_of(cell) for cell in run.cells])
    start = "fedtables reproduce fediod/table1 --profile smoke"
    assert command == f"{start} {options}".strip()


@pytest.mark.parametrize(
    ("trains", "texts"),
    [
        ("b,f", ["train=b,f"]),
        ("b,f,i", ["train=b,f,i"]),
        (("b", "f", "i"), ["train=b", "train=f", "train=i"]),
        (("b", "b,f,i"), ["train=b", "train=b,f,i"]),
    ],
)
def test_it_tells_a_value_with_commas_from_a_list(tmp_path, trains, texts):
    only = {"row": "standalone,fedad", "train": trains}
    run = run_of(tmp_path, "fedad/table7", Selection(only=only))
    words = shlex.split(command_of(run, [record_of(cell) for cell in run.cells]))
    assert [word for word in words if word.startswith("train=")] == texts


@pytest.mark.parametrize(
    ("execution", "options"),
    [
        (FAST, ""),
        (DEFAULT, " --precision fp32"),
        (replace(FAST, stacked=4), " --stacked 4"),
        (Execution(precision="tf32"), " --precision tf32"),
    ],
)
def test_it_leaves_out_how_a_profile_runs_of_itself(tmp_path, execution, options):
    selection = Selection(profile="gpu", device="cuda", execution=execution)
    run = run_of(tmp_path, "dlad/table2", selection)
    command = command_of(run, [record_of(cell) for cell in run.cells])
    assert command == f"fedtables reproduce dlad/table2 --profile gpu{options}"


def test_it_stands_for_all_commands_that_filled_a_table(tmp_path):
    parts = [
        run_of(tmp_path, "fediod/table1", Selection(only={"dataset": "cifar10", "alpha": alpha}))
        for alpha in ("1", "0.1")
    ]
    records = [record_of(cell) for run in parts for cell in run.cells]
    assert command_of(parts[1], records).endswith("--profile smoke --only dataset=cifar10")


def test_a_sweep_is_a_sweep_and_a_row_of_two_words_is_quoted(tmp_path):
    paper, table = registry.find_table("fediod/table5")
    selection = Selection(profile="cpu")
    derived, _ = swept(paper, table, selection, ("1", "10"))
    run = run_of(tmp_path, "fediod/table5", selection, derived)
    command = command_of(run, [record_of(cell) for cell in run.cells])
    assert command == ("fedtables sweep fediod/table5 --epsilon 1,10 --profile cpu")
    row = "gan=eq2 mimic=common tau=inf"
    run = run_of(tmp_path, "fediod/table6", replace(Selection(), add=(row,)))
    command = command_of(run, [record_of(cell) for cell in run.cells])
    assert shlex.split(command)[-2:] == ["--methods", f"+{row}"]


def test_the_file_of_a_run_says_what_its_command_says(tmp_path):
    plugin = tmp_path / "own" / "mine.py"
    plugin.parent.mkdir()
    plugin.write_text("NETWORKS = {}")
    selection = Selection(
        seeds=(0, 2),
        only={"dataset": "cifar10", "row": ("fedkd", "fediod"), "alpha": "0.1"},
        overrides=(("local.epochs", 2), ("network.client", "cnn")),
        threads=2,
    )
    run = run_of(tmp_path / "results", "fediod/table1", selection)
    records = [record_of(cell) for cell in run.cells]
    path = run.files.path("run.toml")
    path.parent.mkdir(parents=True)
    with registry.used([plugin]):
        path.write_text(run_file_of(run, records))
        command = command_of(run, records)
    asked = requested(**read_runs(path, fields(Request))[0])
    assert asked == requested(
        tables=["fediod/table1"],
        seeds="0,2",
        only=["dataset=cifar10", "alpha=0.1", "row=fedkd,fediod"],
        settings={"local.epochs": 2, "network.client": "cnn"},
        plugins=asked.plugins,
        threads=2,
    )
    assert [path.parent.joinpath(one).resolve() for one in asked.plugins] == [plugin]
    assert command.endswith("--plugin mine.py")
    assert tomllib.loads(path.read_text())["plugin"] == ["../../../own/mine.py"]


PLUGIN = """
from dataclasses import dataclass
from fedtables.federation.method import Method

@dataclass(frozen=True)
class Own(Method):
    title = "Own"

    def fit(self, federation):
        return federation.networks.initial()
"""


def filled(tmp_path, selection, plugins=(), threads=1):
    """Writes records and the file of a table's run, and returns the file's path."""
    with registry.used(plugins):
        run = run_of(tmp_path / "results", "dlad/table2", selection)
        run.records = {
            cell.key: record_of(cell, machine={"threads": threads}) for cell in run.cells
        }
        run.files.base.parent.mkdir(parents=True, exist_ok=True)
        records = [*run.records.values()]
        before = run.listed if run.files.path("records.jsonl").exists() else {}
        records += [old for old in before.values() if old.cell not in run.records]
        run.files.write_records(records)
        run.read_files()
        path = run.files.path("run.toml")
        path.write_text(run_file_of(run, records))
    return path


def mine(row):
    only = {"dataset": "mnist", "distribution": "iid", "row": row}
    return Selection(only=only, add=(row,) if row != "global-avg" else ())


@pytest.fixture
def own(tmp_path):
    """A plug-in that is a file, and one that is a package."""
    (tmp_path / "own" / "packed").mkdir(parents=True)
    (tmp_path / "own" / "my_file.py").write_text(PLUGIN)
    (tmp_path / "own" / "packed" / "__init__.py").write_text(PLUGIN)
    return [tmp_path / "own" / "my_file.py", tmp_path / "own" / "packed"]


def test_the_file_keeps_the_plug_ins_of_rows_that_an_earlier_command_left(tmp_path, own):
    for plugin, row in zip(own, ("my-file", "packed"), strict=True):
        filled(tmp_path, mine(row), [plugin])
    path = filled(tmp_path, mine("global-avg"))
    [asked] = read_runs(path, fields(Request))
    assert sorted(asked["plugins"]) == sorted(map(str, own))
    assert sorted(asked["methods"].split(",")) == ["+my-file", "+packed"]
    assert set(",".join(asked["only"]["row"]).split(",")) == {"global-avg", "my-file", "packed"}


def test_a_plug_in_that_no_file_names_any_more_is_left_out_and_that_is_said(tmp_path, own):
    filled(tmp_path, mine("packed"), own).write_text("damaged")
    path = filled(tmp_path, mine("global-avg"))
    assert "plugins" not in read_runs(path, fields(Request))[0]
    assert [line for line in path.read_text().splitlines() if "#" in line and "packed" in line]


def test_threads_are_those_of_the_records_and_none_where_they_differ(tmp_path, own):
    path = filled(tmp_path, mine("my-file"), own, threads=2)
    assert read_runs(path, fields(Request))[0]["threads"] == 2
    path = filled(tmp_path, mine("global-avg"))
    assert "threads" not in read_runs(path, fields(Request))[0]
    assert [line for line in path.read_text().splitlines() if "#" in line and "1, 2" in line]
