"""`--config` and `--print-config`, as a user of the commands meets them."""

import re
import shlex
import tomllib

import pytest
import typer

from fedtables.benchmarks.commands import from_file
from tests.benchmarks.commands.tables_of_cli import run, table_csv

TABLE = ("reproduce", "dlad/table1", "--only", "row=iid", "--seeds", "1")


def asked(folder, *arguments):
    done = run(folder, *arguments, "--print-config")
    assert done.returncode == 0, done.stderr
    return tomllib.loads(done.stdout)


def test_a_printed_file_makes_the_same_table_and_one_like_it_is_kept_beside_that(tmp_path):
    by_words, by_file = tmp_path / "words", tmp_path / "file"
    printed = run(tmp_path, *TABLE, "--print-config").stdout
    assert not list(tmp_path.iterdir())  # nothing was run
    (tmp_path / "run.toml").write_text(printed)
    assert run(by_words, *TABLE).returncode == 0
    assert run(by_file, "reproduce", "--config", str(tmp_path / "run.toml")).returncode == 0
    first, second = (table_csv(folder, "dlad/table1") for folder in (by_words, by_file))
    assert first.read_bytes() == second.read_bytes()
    kept = first.with_suffix(".run.toml")
    assert kept.read_bytes() == second.with_suffix(".run.toml").read_bytes()
    told = {**tomllib.loads(printed), "profile": "smoke"}
    del told["results"]
    assert tomllib.loads(kept.read_text()) == told


def test_options_win_over_the_file_and_print_config_has_both(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        'tables = ["dlad/table2"]\nseeds = [0, 1]\nplugin = "own.py"\nresults = "out"\n'
        '[only]\ndataset = "mnist"\nrow = "a"\n[set]\nlocal.epochs = 2\n'
    )
    given = "--seeds 3 --only row=b --only row=c --set server.epochs=0.10 --jobs 2 --results other"
    told = asked(tmp_path, "reproduce", "--config", str(path), *shlex.split(given))
    assert told == {
        "tables": ["dlad/table2"],
        "only": {"dataset": "mnist", "row": ["b", "c"]},
        "seeds": [3],
        "set": {"local.epochs": 2, "server.epochs": "0.10"},
        "plugin": [str(tmp_path / "own.py")],
        "jobs": 2,
        "results": str(tmp_path / "results"),  # the last one given
    }
    others = asked(tmp_path, "reproduce", "dlad/table4", "--config", str(path))
    assert others["tables"] == ["dlad/table4"]


def test_a_switch_of_the_file_is_switched_off_on_the_command_line(tmp_path):
    path = tmp_path / "run.toml"
    switches = ("fresh", "replace", "plain", "require-real")
    path.write_text("".join(f"{name} = true\n" for name in switches))
    off = [f"--no-{name}" for name in switches]
    told = asked(tmp_path, "reproduce", "dlad/table1", "--config", str(path), *off)
    assert {name: told[name] for name in switches} == dict.fromkeys(switches, False)


def test_a_plan_takes_the_file_of_a_run_and_a_sweep_has_its_own(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        'tables = ["dlad/table2"]\nprecision = "bf16"\nresults = "out"\nlog-to = "tensorboard"\n'
        '[only]\nrow = "global-dlad"\ndataset = "mnist"\ndistribution = "iid"\n'
    )
    done = run(tmp_path, "plan", "--config", str(path))
    assert done.returncode == 0, done.stderr
    assert "dlad/table2" in done.stdout
    refused = run(tmp_path, "sweep", "--config", str(path))
    assert refused.returncode == 2
    assert "'precision'" in refused.stderr
    path.write_text('tables = "fediod/table5"\nepsilon = [10, 1]\n')
    assert asked(tmp_path, "sweep", "--config", str(path))["epsilon"] == ["1", "10"]


@pytest.mark.parametrize(
    ("arguments", "content", "message"),
    [
        ("reproduce", "jobs = 2", "A first one: fedtables reproduce"),
        ("reproduce dlad/table2", "set.local.epoch = 1", "did you mean local.epochs"),
        ("sweep", "tables = ['a', 'b']", "sweep needs exactly one table"),
    ],
)
def test_a_file_that_asks_for_nothing_there_is_gets_one_clear_line(
    tmp_path, arguments, content, message
):
    path = tmp_path / "run.toml"
    path.write_text(content)
    done = run(tmp_path, *shlex.split(arguments), "--config", str(path))
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert re.search(message, line)


def test_a_command_that_asks_for_nothing_has_no_file(tmp_path):
    done = run(tmp_path, "plan", "--print-config")
    assert done.returncode == 2
    assert done.stdout == ""


RUNS = """
[set]
local.epochs = 1
[[run]]
tables = ["dlad/table1"]
only = { row = "iid" }
[[run]]
tables = ["dlad/table99"]
[[run]]
tables = ["dlad/table1"]
only = { row = "niid1" }
"""


def test_the_runs_of_a_file_follow_one_another_and_one_that_is_refused_stops_no_other(tmp_path):
    path = tmp_path / "runs.toml"
    path.write_text(RUNS)
    done = run(tmp_path, "reproduce", "--config", str(path))
    assert done.returncode == 1
    told = [line for line in done.stdout.splitlines() if line.startswith("run ")]
    assert told == ["run 1 of 3", "run 2 of 3", "run 3 of 3"]
    assert re.search("run 2 is refused: .*table99", done.stderr)
    [csv] = (p for p in tmp_path.rglob("table1.set-*.csv") if "claims" not in p.name)
    assert {line.split(",")[0] for line in csv.read_text().splitlines()[1:]} == {"iid", "niid1"}
    printed = run(tmp_path, "reproduce", "--config", str(path), "--print-config")
    assert printed.returncode == 2
    assert "--print-config prints one run" in printed.stderr


def test_minutes_are_those_of_all_runs(monkeypatch):
    begun, taken = iter([0, 0, 60, 180]), []
    monkeypatch.setattr(from_file.time, "monotonic", lambda: next(begun))
    with pytest.raises(typer.Exit) as end:
        from_file.in_order([{"minutes": 2.0}] * 3, lambda minutes: taken.append(minutes))
    assert taken == [2, 1]  # after 1 minute 1 is left, after 3 none
    assert end.value.exit_code == from_file.OUT_OF_TIME
