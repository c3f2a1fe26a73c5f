"""The command line as a user meets it: tables, resuming, workers, plug-ins, damage, and everything
done wrong.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.tables import registry
from benchmarks.tables.cells import expand
from benchmarks.tables.selection import Selection
from tests.forking import run_forked

ROOT = Path(__file__).resolve().parents[3]
BRIEF = ("--set", "local.epochs=4", "--set", "server.epochs=3", "--set", "dlad.classifier_epochs=1")
"""A third of the smoke profile's epochs, where no number is compared with one of another run."""
COLUMN = (*BRIEF, "--only", "dataset=mnist", "--only", "distribution=niid1")


def options(folder: Path, *arguments: str) -> list[str]:
    """The arguments, with a results folder inside `folder` for commands that write one."""
    writes = arguments[0] in ("reproduce", "partition")
    return [*arguments, *(["--results", str(folder / "results")] if writes else [])]


def environment_of(folder: Path, **environment: str) -> dict[str, str]:
    """The environment with a cache and a data home inside `folder`."""
    return {
        **os.environ,
        "FEDTABLES_CACHE": str(folder / "cache"),
        "FEDTABLES_DATA": str(folder / "data"),
        "NO_COLOR": "1",
        "COLUMNS": "200",
        **environment,
    }


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command with its own cache, data home and results folder inside `folder`."""
    env = environment_of(folder, **environment)
    return run_forked("benchmarks", *options(folder, *arguments), timeout=900, env=env)


def table_csv(folder: Path, name: str = "dlad/table2") -> Path:
    """The table's file, whatever its settings; not that of another way of running."""
    whole = folder / "results" / "smoke" / f"{name}.csv"
    files = (p for p in whole.parent.glob(f"{whole.stem}*.csv") if "claims" not in p.name)
    return min(files, key=lambda path: len(path.name), default=whole)


def lines(folder: Path, name: str = "dlad/table2") -> list[dict[str, str]]:
    with table_csv(folder, name).open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """One column of Table II, run with two workers."""
    folder = tmp_path_factory.mktemp("finished")
    done = run(folder, "reproduce", "dlad/table2", *COLUMN, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    (folder / "output.txt").write_text(done.stdout)
    return folder


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    """A finished run that a test may damage."""
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_table_is_written_beside_the_published_numbers_and_labelled(finished):
    rows = {line["row"]: line for line in lines(finished)}
    assert list(rows) == ["client-resnet", "global-avg", "global-labeled", "global-dlad"]
    dlad = rows["global-dlad"]
    assert list(dlad)[:6] == ["row", "column", "metric", "value", "std", "n"]
    assert (dlad["column"], dlad["published"], dlad["n"]) == (
        "dataset=mnist distribution=niid1",
        "0.982",
        "1",
    )
    assert (dlad["data"], dlad["origin"], dlad["profile"]) == ("digits", "surrogate", "smoke")
    assert float(dlad["value"]) > float(rows["global-avg"]["value"])
    assert rows["client-resnet"]["bytes_up"] == "0"
    assert int(dlad["bytes_up"]) > int(rows["global-avg"]["bytes_up"]) > 0
    output = (finished / "output.txt").read_text()
    assert "profile smoke (reduced)" in output
    assert "digits (surrogate)" in output
    for suffix in ("md", "png", "records.jsonl", "claims.csv"):
        assert table_csv(finished).with_suffix(f".{suffix}").stat().st_size > 0


def test_a_record_carries_what_a_reader_needs_to_trust_it(finished):
    text = table_csv(finished).with_suffix(".records.jsonl").read_text()
    record = json.loads(text.splitlines()[-1])
    assert record["row"] == "global-dlad"
    assert set(record["seeds"]) == {
        "partition",
        "weights",
        "sampling",
        "shuffling",
        "noise",
        "attack",
    }
    assert record["bytes_by_kind"] == {"up/parameters": record["bytes_up"]}
    assert record["machine"]["packages"]["torch"]
    assert len(record["data"]["digest"]) == 64
    assert record["statistic"] == "median of the last 3 epochs"
    assert (
        json.loads(text.splitlines()[0])["statistic"]
        == "median of the last 3 epochs, mean over models"
    )  # of ten clients


def test_the_same_command_again_computes_nothing_and_writes_the_same_csv(copy):
    before = table_csv(copy).read_bytes()
    again = run(copy, "reproduce", "dlad/table2", *COLUMN)
    assert again.returncode == 0
    assert "4 cells, 4 finished before, 0 to run" in again.stdout
    assert table_csv(copy).read_bytes() == before


def test_one_worker_writes_the_same_csv_as_two(finished, tmp_path):
    assert run(tmp_path, "reproduce", "dlad/table2", *COLUMN, "--jobs", "1").returncode == 0
    assert table_csv(tmp_path).read_bytes() == table_csv(finished).read_bytes()


def test_killed_in_the_middle_it_goes_on_and_ends_with_the_same_csv(finished, tmp_path):
    arguments = ("reproduce", "dlad/table2", *COLUMN, "--jobs", "1")
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", *options(tmp_path, *arguments)],
        cwd=ROOT,
        env=environment_of(tmp_path),
        stdout=subprocess.DEVNULL,
    )
    cells = tmp_path / "cache" / "cells"
    deadline = time.monotonic() + 120
    while not list(cells.rglob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {path.name: path.stat().st_mtime_ns for path in cells.rglob("*.json")}
    assert 1 <= len(kept) < 4
    again = run(tmp_path, "reproduce", "dlad/table2", *COLUMN)
    assert f"4 cells, {len(kept)} finished before" in again.stdout
    assert table_csv(tmp_path).read_bytes() == table_csv(finished).read_bytes()
    assert {
        name: path.stat().st_mtime_ns
        for path in cells.rglob("*.json")
        if (name := path.name) in kept
    } == kept


@pytest.mark.slow
def test_ctrl_c_ends_with_a_word_and_keeps_what_is_finished(tmp_path):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "benchmarks",
            *options(tmp_path, "reproduce", "dlad/table2", *COLUMN),
        ],
        cwd=ROOT,
        env=environment_of(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # a job in the background begins with it ignored
    )
    deadline = time.monotonic() + 120
    while not list((tmp_path / "cache" / "stages").rglob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "goes on from there" in errors
    assert "Traceback" not in errors
    assert list((tmp_path / "cache" / "stages").rglob("*.json"))


def test_out_of_time_it_ends_with_a_word_keeps_what_is_finished_and_goes_on(finished, tmp_path):
    extra = ("--only", "row=global-avg", "--jobs", "1")
    ended = run(tmp_path, "reproduce", "dlad/table2", *COLUMN, *extra, "--minutes", "0.02")
    assert ended.returncode == 75, ended.stderr
    assert "with 1 cells to go" in " ".join(ended.stderr.split())
    assert not table_csv(tmp_path).exists()
    again = run(tmp_path, "reproduce", "dlad/table2", *COLUMN, *extra, "--minutes", "60")
    assert again.returncode == 0, again.stderr
    of_row = [line["value"] for line in lines(finished) if line["row"] == "global-avg"]
    assert [line["value"] for line in lines(tmp_path)] == of_row


def test_a_damaged_stage_and_a_damaged_cell_are_computed_again_and_said(copy):
    before = table_csv(copy).read_bytes()
    for path in (copy / "cache" / "cells").rglob("*.json"):
        path.write_text(path.read_text().replace('"status":"ok"', '"status":"OK"'))
    local = next((copy / "cache" / "stages" / "local-model").rglob("*.safetensors"))
    for stage in [local, *(copy / "cache" / "stages" / "fit").rglob("*.safetensors")]:
        raw = bytearray(stage.read_bytes())
        raw[-1] ^= 1
        stage.write_bytes(raw)
    again = run(copy, "reproduce", "dlad/table2", *COLUMN)
    assert again.returncode == 0, again.stderr
    assert "4 cells to compute again: damaged cache entry" in again.stdout
    assert "damaged cache entry, computed again" in again.stdout
    assert "stages fit: 4 computed" in again.stdout
    assert "stages local-model: 1 computed" in again.stdout
    assert table_csv(copy).read_bytes() == before


@pytest.mark.slow
def test_fresh_computes_everything_again(copy):
    before = table_csv(copy).read_bytes()
    again = run(copy, "reproduce", "dlad/table2", *COLUMN, "--fresh")
    assert "0 finished before, 4 to run" in again.stdout
    assert "stages local-model: 10 computed" in again.stdout
    assert table_csv(copy).read_bytes() == before


def test_a_table_is_filled_column_by_column(copy):
    assert (
        run(
            copy,
            "reproduce",
            "dlad/table2",
            *BRIEF,
            "--only",
            "dataset=mnist",
            "--only",
            "distribution=iid,niid3",
            "--only",
            "row=client-resnet",
        ).returncode
        == 0
    )
    found = {(line["row"], line["column"].split("=")[-1]) for line in lines(copy)}
    assert ("global-dlad", "niid1") in found
    assert {("client-resnet", d) for d in ("iid", "niid1", "niid3")} <= found


def test_several_seeds_give_mean_and_deviation(copy):
    done = run(
        copy,
        "reproduce",
        "dlad/table2",
        *COLUMN,
        "--only",
        "row=global-avg",
        "--seeds",
        "0,1",
    )
    assert done.returncode == 0
    found = next(line for line in lines(copy) if line["row"] == "global-avg")
    assert (found["n"], found["seeds"]) == ("2", "0 1")
    assert float(found["std"]) > 0


PLUGIN = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_readmes_baseline_has_at_most_40_lines_and_becomes_a_row(copy):
    assert PLUGIN is not None
    code = PLUGIN[1]
    assert len(code.splitlines()) <= 40
    path = copy / "most_confident.py"
    path.write_text(code)
    done = run(
        copy,
        "reproduce",
        "dlad/table2",
        *COLUMN,
        "--plugin",
        str(path),
        "--methods",
        "+most-confident,-global-avg",
    )
    assert done.returncode == 0, done.stderr
    assert [line["row"] for line in lines(copy)] == [
        "client-resnet",
        "global-labeled",
        "global-dlad",
        "most-confident",
    ]
    assert "Most confident client" in done.stdout
    check = run(copy, "check", "most-confident", "--plugin", str(path))
    assert check.returncode == 0, check.stdout
    assert "most-confident keeps the contract" in check.stdout


def test_check_names_the_broken_promise(tmp_path):
    path = tmp_path / "silent.py"
    path.write_text(
        "from dataclasses import dataclass\nfrom federation.method import Method\n\n\n"
        "@dataclass(frozen=True)\nclass Silent(Method):\n    sends = frozenset({'logits'})\n\n"
        "    def fit(self, federation):\n        return federation.local_models()\n"
    )
    check = run(tmp_path, "check", "silent", "--plugin", str(path))
    assert check.returncode == 1
    assert "broken" in check.stdout
    assert f"ledger shows [] going up ({path}:9)" in check.stdout


def test_check_tells_a_wrong_type_in_one_line_and_where(tmp_path):
    path = tmp_path / "bare.py"
    path.write_text(
        "from dataclasses import dataclass\nfrom federation.method import Method\n\n\n"
        "@dataclass(frozen=True)\nclass Bare(Method):\n    def fit(self, federation):\n"
        "        return [m.state for m in federation.local_models()]\n"
    )
    check = run(tmp_path, "check", "bare", "--plugin", str(path))
    assert check.returncode == 1
    found = check.stdout.splitlines()
    [broken] = [line for line in found if line.startswith("broken")]
    assert "fit returned list of dict; it must return a module" in broken
    assert broken.endswith(f"({path}:7)")
    judged = [line for line in found if line.startswith("not judged")]
    assert len(judged) == 4
    assert all(line.endswith(f"({path}:7)") for line in judged)


def test_check_tells_where_a_method_that_does_not_run_ends(tmp_path):
    path = tmp_path / "crash.py"
    path.write_text(
        "from dataclasses import dataclass\nfrom federation.method import Method\n\n\n"
        "@dataclass(frozen=True)\nclass Crash(Method):\n    def fit(self, federation):\n"
        "        nothing = 0\n        return 1 / nothing\n"
    )
    check = run(tmp_path, "check", "crash", "--plugin", str(path))
    assert check.returncode == 1
    text = " ".join(check.stderr.split())
    assert f"crash does not run: ZeroDivisionError: division by zero ({path}:9)" in text


def test_a_diverged_run_is_shown_as_failed_and_the_others_are_kept(tmp_path):
    path = tmp_path / "exploding.py"
    path.write_text(
        "from dataclasses import dataclass\nimport torch\nfrom federation.method import"
        " Method\n\n\n@dataclass(frozen=True)\nclass Exploding(Method):\n    def fit(self,"
        " federation):\n        return federation.distill(torch.full((len(federation.public), 10),"
        " torch.inf))\n"
    )
    extra = (
        "--only",
        "row=client-resnet,exploding",
        "--plugin",
        str(path),
        "--methods",
        "+exploding",
    )
    done = run(tmp_path, "reproduce", "dlad/table2", *COLUMN, *extra)
    assert done.returncode == 1
    assert "DivergedError" in done.stdout
    found = {line["row"]: line for line in lines(tmp_path)}
    assert found["exploding"]["status"].startswith("failed: DivergedError")
    assert found["exploding"]["value"] == ""
    assert found["client-resnet"]["status"] == "ok"
    again = (
        *COLUMN,
        "--only",
        "row=client-resnet",
        "--plugin",
        str(path),
        "--methods",
        "+exploding",
    )
    assert run(tmp_path, "reproduce", "dlad/table2", *again).returncode == 0
    assert [line["status"].split(":")[0] for line in lines(tmp_path)] == ["ok", "failed"]


def test_table_one_is_printed_from_the_partition_itself(tmp_path):
    done = run(tmp_path, "reproduce", "dlad/table1")
    assert done.returncode == 0, done.stderr
    found = lines(tmp_path, "dlad/table1")
    assert len(found) == 20
    assert {line["difference"] for line in found} == {"same"}


@pytest.mark.slow
def test_clients_are_trained_once_for_all_rows_and_client_counts(tmp_path):
    only = (
        *BRIEF,
        "--only",
        "distribution=niid1",
        "--only",
        "clients=5,10",
        "--only",
        "client-model=resnet,resnet+densenet",
    )
    plan = run(tmp_path, "plan", "dlad/table4", "--profile", "smoke", *only)
    assert plan.returncode == 0, plan.stderr
    trainings = re.search(r"local-model\s*│\s*(\d+)\s*│\s*(\d+)", plan.stdout)
    assert trainings is not None
    # ResNet clients 1-10 serve N = 5 and N = 10; the mixed case takes the first five of them and
    # DenseNet clients 6-10.
    assert int(trainings[2]) == 15
    done = run(tmp_path, "reproduce", "dlad/table4", *only, "--only", "row=global-dlad")
    assert done.returncode == 0, done.stderr
    log = table_csv(tmp_path, "dlad/table4").with_suffix(".log").read_text()
    assert len(re.findall(r"local-model .* computed", log)) == 15
    assert len(re.findall(r"client-classifier .* computed", log)) == 15
    mixed = [
        cell
        for cell in expand(*registry.find_table("dlad/table4"), Selection(profile="smoke"))
        if "resnet+densenet" in cell.column
    ]
    assert {cell.row for cell in mixed} == {
        "client-resnet",
        "client-densenet",
        "global-avg",
        "global-labeled",
        "global-dlad",
    }


@pytest.mark.slow
def test_the_curves_of_figure_two_have_every_epoch(tmp_path):
    done = run(
        tmp_path,
        "reproduce",
        "dlad/figure2",
        "--only",
        "distribution=niid1",
        "--only",
        "row=client-resnet,global-avg",
    )
    assert done.returncode == 0, done.stderr
    epochs = [
        line["column"] for line in lines(tmp_path, "dlad/figure2") if line["row"] == "client-resnet"
    ]
    assert epochs == [f"distribution=niid1 epoch={e}" for e in range(1, 13)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reproduce", "dlad/tabel2"), "did you mean .*dlad/table2"),
        (("reproduce",), "Try first: python -m benchmarks reproduce dlad/table2"),
        (("reproduce", "fediod/table9"), "not yet reproducible"),
        (("reproduce", "dlad/table2", "--profile", "cpuu"), "did you mean cpu"),
        (("reproduce", "dlad/table2", "--protocol", "released"), "released no code"),
        (
            ("reproduce", "dlad/table2", "--methods", "+dald"),
            "unknown method 'dald'; did you mean dlad",
        ),
        (("reproduce", "dlad/table2", "--methods", "dlad"), r"\+dlad or -dlad"),
        (
            ("reproduce", "dlad/table2", "--only", "dataset=mnits"),
            "no such value; did you mean mnist",
        ),
        (("reproduce", "dlad/table2", "--only", "datset=mnist"), "did you mean dataset"),
        (("reproduce", "dlad/table2", "--only", "mnist"), "key=value"),
        (("reproduce", "dlad/table2", "--seeds", "one"), "whole numbers"),
        (("reproduce", "dlad/table2", "--seeds", "0,0"), "different whole numbers"),
        (("reproduce", "dlad/table2", "--seeds", "-1"), "from 0"),
        (("reproduce", "dlad/table2", "--device", "gpu"), "no such value"),
        (("reproduce", "dlad/table2", "--log-to", "wandb"), "--log-to wandb: no such value"),
        (("reproduce", "dlad/table2", "--plugin", "nowhere.py"), "no such file"),
        (("reproduce", "dlad/table2", "--require-real"), "--require-real: MNIST is needed"),
        (
            ("reproduce", "dlad/table2", "--profile", "cpu", "--require-real"),
            "Run `python -m benchmarks data --download mnist`",
        ),
        (
            ("reproduce", "dlad/table2", "--precision", "bf61"),
            "--precision bf61: no such value; did you mean bf16",
        ),
        (
            ("reproduce", "dlad/table2", "--compile", "of"),
            "--compile of: no such value; did you mean off",
        ),
        (
            ("reproduce", "dlad/table2", "--precision", "tf32"),
            "only CUDA devices have it, this run is on cpu; use fp32 or bf16",
        ),
        (
            ("reproduce", "dlad/table2", "--compile", "reduce-overhead"),
            "this run is on cpu; use --compile default",
        ),
        (
            ("reproduce", "dlad/table2", "--stacked", "4", "--precision", "bf16"),
            "--stacked 4: .* in fp32 or tf32 and uncompiled",
        ),
        (
            ("reproduce", "dlad/table2", "--set", "privacy.epsilon=3"),
            "global-.*|dlad has no private form",
        ),
        (
            ("reproduce", "fediod/table1", "--set", "privacy.epsilon=3"),
            "fedgen has no private form under dp-sgd; it has none at all",
        ),
        (
            (
                "reproduce",
                "fediod/table1",
                "--only",
                "row=fedavg",
                "--set",
                "privacy.epsilon=3",
                "--set",
                "privacy.mechanism=pate",
            ),
            "fedavg has no private form under pate; it has one under dp-sgd",
        ),
        (("sweep", "fediod/table1", "--epsilon", "1,x"), "different positive numbers"),
        (("sweep", "fediod/table1", "--epsilon", "1,1"), "different positive numbers"),
        (("sweep", "fediod/table1", "--epsilon", "0"), "different positive numbers"),
        (("sweep", "fediod/table7"), "no number per row and column to sweep"),
        (("sweep", "fediod/tabel1"), "did you mean .*fediod/table1"),
        (("check", "dlda"), "did you mean dlad"),
        (("data", "--download", "cinic10"), "cannot be fetched by a program"),
        (("partition", "--clients", "7", "--dataset", "digits"), "use 5 or 10"),
        (
            ("partition", "--clients", "9000", "--kind", "dirichlet-fedkd", "--dataset", "digits"),
            "cannot share 1437 samples",
        ),
    ],
)
def test_what_a_user_does_wrong_gets_one_clear_message(tmp_path, arguments, message):
    done = run(tmp_path, *arguments)
    assert done.returncode == 1
    assert re.search(message, " ".join(done.stderr.split())), done.stderr
    assert "Traceback" not in done.stderr


def test_compiling_without_a_compiler_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "empty").mkdir()
    done = run(
        tmp_path,
        "reproduce",
        "dlad/table2",
        *COLUMN,
        "--compile",
        "default",
        PATH=str(tmp_path / "empty"),
        CXX="",
    )
    assert done.returncode == 1
    assert (
        "torch.compile needs a C++ compiler; install g++ or clang++, or leave --compile off"
        in " ".join(done.stderr.split())
    )
    assert not (tmp_path / "cache" / "cells").exists()


@pytest.mark.parametrize(
    ("name", "row", "options", "label", "held"),
    [
        pytest.param(
            *("dlad/table2", "client-resnet", ("--precision", "bf16"), "bf16", ("bf16", "off", 1)),
            marks=pytest.mark.slow,
        ),
        ("fediod/table1", "fedavg", ("--stacked", "3"), "stacked3", ("fp32", "off", 3)),
    ],
)
def test_another_way_of_running_has_files_of_its_own_that_say_so(
    tmp_path, name, row, options, label, held
):
    columns = {
        "dlad/table2": ("--only", "dataset=mnist", "--only", "distribution=niid1"),
        "fediod/table1": ("--only", "dataset=cifar10", "--only", "alpha=1"),
    }
    selected = ("reproduce", name, *columns[name], "--only", f"row={row}", "--jobs", "1")
    plain, other = run(tmp_path, *selected), run(tmp_path, *selected, *options)
    assert (plain.returncode, other.returncode) == (0, 0), plain.stderr + other.stderr
    assert "0 finished before, 1 to run" in other.stdout
    base = table_csv(tmp_path, name)
    for text, file in ((plain.stdout, base), (other.stdout, base.with_suffix(f".{label}.csv"))):
        record = json.loads(file.with_suffix(".records.jsonl").read_text().splitlines()[0])
        own = held if file != base else ("fp32", "off", 1)
        assert tuple(record["machine"][key] for key in ("precision", "compile", "stacked")) == own
        card = file.with_suffix(".md").read_text()
        assert (
            f"Executed as {label}: numbers may differ from the default's by rounding." in card
        ) == (file != base)
        for shown in (text, card):
            assert (f"protocol paper; {label};" in " ".join(shown.split())) == (file != base)
    again = run(tmp_path, *selected)
    assert "1 finished before, 0 to run" in again.stdout


def test_a_truncated_npz_is_named_before_anything_runs(tmp_path):
    home = tmp_path / "data"
    home.mkdir()
    np.savez(home / "mnist.npz", x_train=np.zeros((2, 28, 28), np.uint8))
    whole = (home / "mnist.npz").read_bytes()
    (home / "mnist.npz").write_bytes(whole[: len(whole) // 2])
    done = run(tmp_path, "reproduce", "dlad/table2", "--profile", "cpu", "--only", "dataset=mnist")
    assert done.returncode == 1
    assert "damaged or truncated" in done.stderr
    assert "get it again" in done.stderr


def test_a_results_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "results").write_text("a file where the folder should be")
    done = run(tmp_path, "reproduce", "dlad/table2", *COLUMN)
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert "--results FOLDER" in done.stderr
    assert not (tmp_path / "cache" / "cells").exists()


def test_a_method_that_returns_nothing_is_told_what_to_return(tmp_path):
    path = tmp_path / "nothing.py"
    path.write_text(
        "from dataclasses import dataclass\nfrom federation.method import"
        " Method\n\n\n@dataclass(frozen=True)\nclass Nothing(Method):\n    def fit(self,"
        " federation):\n        return None\n"
    )
    extra = ("--only", "row=nothing", "--plugin", str(path), "--methods", "+nothing")
    done = run(tmp_path, "reproduce", "dlad/table2", *COLUMN, *extra)
    assert done.returncode == 1
    assert "fit returned NoneType; it must return a module, a checkpoint" in done.stdout
    assert run(tmp_path, "check", "nothing", "--plugin", str(path)).returncode == 1


def test_only_the_cells_of_a_folder_are_merged_into_its_tables(copy):
    done = run(copy, "reproduce", "dlad/table2", *COLUMN, "--only", "row=client-resnet")
    assert len(lines(copy)) == 4
    (copy / "results").rename(copy / "elsewhere")
    done = run(copy, "reproduce", "dlad/table2", *COLUMN, "--only", "row=client-resnet")
    assert "1 cells, 1 finished before" in done.stdout
    assert [line["row"] for line in lines(copy)] == ["client-resnet"]


def test_list_show_and_data_say_what_there_is(tmp_path):
    listed = run(tmp_path, "list").stdout
    tables = registry.all_tables()
    assert listed.count("not yet") == sum(table is None for table in tables.values()) < len(tables)
    assert "scikit-learn digits" in listed
    shown = run(tmp_path, "show", "dlad/table3", "--profile", "cpu").stdout
    assert "0.5845" in shown
    assert re.search(r"local\.epochs\s*│ 50", shown)
    assert "2.30 " in run(tmp_path, "show", "fediod/table7").stdout.replace("2.3 ", "2.30 ")
    assert "--download mnist" in run(tmp_path, "data").stdout


def test_list_names_a_data_set_whose_file_is_damaged(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mnist.npz").write_bytes(b"half of it")
    assert re.search(r"MNIST\s*│ damaged", run(tmp_path, "list").stdout)


def test_a_damaged_table_of_labels_spoils_no_other_line_of_what_there_is(tmp_path):
    folder = tmp_path / "data" / "CheXpert-v1.0"
    folder.mkdir(parents=True)
    for name in ("train.csv", "valid.csv"):
        (folder / name).write_text("Path\n")
    assert re.search(r"CheXpert\s*│ damaged", run(tmp_path, "list").stdout)
    told = run(tmp_path, "data")
    assert told.returncode == 1
    assert re.search(r"unusable chexpert: .*train\.csv", told.stdout)
    assert "absent rsna-pneumonia" in told.stdout


def test_plan_counts_bytes_at_the_papers_scale_without_data(tmp_path):
    plan = run(
        tmp_path,
        "plan",
        "dlad/table2",
        "--profile",
        "paper",
        "--only",
        "dataset=cinic10",
        "--only",
        "row=global-avg",
    )
    assert plan.returncode == 0, plan.stderr
    sent = re.search(r"average-distillation\s*│\s*([\d,]+)", plan.stdout)
    assert sent is not None
    # Ten ResNet-18 for ten classes: 11,181,642 parameters and 9,600 running statistics in four
    # bytes, 20 step counters in eight.
    body = 4 * (11_181_642 + 9_600) + 8 * 20
    assert body * 10 < int(sent[1].replace(",", "")) < body * 10 * 1.001
    assert "CINIC-10 is not present" in plan.stdout
    assert "GPU-hours" in plan.stdout
    assert "weights: densenet121: absent" in plan.stdout
    assert "resnet34" not in plan.stdout  # a network of other papers


def test_plan_sums_tables_and_counts_once_what_they_share(tmp_path):
    file = tmp_path / "hours.md"
    plan = run(
        tmp_path,
        *("plan", "dlad/table2", "dlad/figure2", "--gpu", "h100", "--markdown", str(file)),
        *("--only", "distribution=niid1"),
    )
    assert plan.returncode == 0, plan.stderr
    # The clients of Figure 2 are those of Table II's columns of MNIST.
    rows = {
        line.split("|")[1].strip(" *"): [cell.strip(" *") for cell in line.split("|")[2:-1]]
        for line in file.read_text().splitlines()
        if line.startswith("|")
    }
    cells, stages = ({name: row[i] for name, row in rows.items()} for i in (0, 1))
    assert int(cells["all"]) == int(cells["dlad/table2"]) + int(cells["dlad/figure2"])
    assert int(stages["all"]) < int(stages["dlad/table2"]) + int(stages["dlad/figure2"])
    assert rows["dlad"] == rows["all"]
    assert "NVIDIA H100" in plan.stdout
    assert "A100" not in plan.stdout + file.read_text()


def test_plan_names_known_gpus(tmp_path):
    plan = run(tmp_path, "plan", "dlad/table2", "--gpu", "h10")
    assert plan.returncode == 1
    assert re.search("--gpu h10: .*did you mean h100", plan.stderr)
