"""`reproduce` as a user meets it: tables, resuming, workers, plug-ins, damage and merging."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from fedtables.federation.seeds import Seeds
from tests.benchmarks.commands.tables_of_cli import (
    COLUMN,
    environment_of,
    lines,
    options,
    run,
    table_csv,
)

ROOT = Path(__file__).resolve().parents[3]
TABLE = ("reproduce", "dlad/table2", *COLUMN)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """One column of Table II, run with two workers."""
    folder = tmp_path_factory.mktemp("finished")
    done = run(folder, *TABLE, "--jobs", "2")
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
    assert record["seeds"].keys() == asdict(Seeds()).keys()
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
    again = run(copy, *TABLE)
    assert again.returncode == 0
    assert "4 cells, 4 finished before, 0 to run" in again.stdout
    assert table_csv(copy).read_bytes() == before


def stopped(folder: Path, how: signal.Signals, kept: str, *arguments: str) -> tuple[int, str]:
    """Begins a command, and sends it a signal once `kept` has an entry, a folder of its cache; its
    exit code and errors.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "fedtables", *options(folder, *arguments)],
        cwd=ROOT,
        env=environment_of(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # a job in the background begins with it ignored
    )
    deadline = time.monotonic() + 120
    while not list((folder / "cache" / kept).rglob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(how)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def test_killed_in_the_middle_it_goes_on_and_ends_with_the_csv_of_two_workers(finished, tmp_path):
    arguments = (*TABLE, "--jobs", "1")
    stopped(tmp_path, signal.SIGKILL, "cells", *arguments)
    cells = tmp_path / "cache" / "cells"
    kept = {path: path.stat().st_mtime_ns for path in cells.rglob("*.json")}
    assert 1 <= len(kept) < 4
    again = run(tmp_path, *arguments)
    assert f"4 cells, {len(kept)} finished before" in again.stdout
    assert table_csv(tmp_path).read_bytes() == table_csv(finished).read_bytes()
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.slow
def test_ctrl_c_ends_with_a_word_and_keeps_what_is_finished(tmp_path):
    code, errors = stopped(tmp_path, signal.SIGINT, "stages", *TABLE)
    assert code == 130
    assert "goes on from there" in errors
    assert "Traceback" not in errors
    assert list((tmp_path / "cache" / "stages").rglob("*.json"))


def test_out_of_time_it_ends_with_a_word_keeps_what_is_finished_and_goes_on(finished, tmp_path):
    extra = ("--only", "row=global-avg", "--jobs", "1")
    ended = run(tmp_path, *TABLE, *extra, "--minutes", "0.001")
    assert ended.returncode == 75, ended.stderr
    assert "with 1 cells to go" in " ".join(ended.stderr.split())
    assert not table_csv(tmp_path).exists()
    again = run(tmp_path, *TABLE, *extra, "--minutes", "60")
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
    again = run(copy, *TABLE)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("1 cell to compute again: damaged cache entry") == 4
    assert "damaged cache entry, computed again" in again.stdout
    assert "stages fit: 4 computed" in again.stdout
    assert "stages local-model: 1 computed" in again.stdout
    assert table_csv(copy).read_bytes() == before


@pytest.mark.slow
def test_fresh_computes_everything_again(copy):
    before = table_csv(copy).read_bytes()
    again = run(copy, *TABLE, "--fresh")
    assert "0 finished before, 4 to run" in again.stdout
    assert "stages local-model: 10 computed" in again.stdout
    assert table_csv(copy).read_bytes() == before


PLUGIN = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_readmes_baseline_has_at_most_40_lines_and_becomes_a_row(copy):
    assert PLUGIN is not None
    code = PLUGIN[1]
    assert len(code.splitlines()) <= 40
    path = copy / "most_confident.py"
    path.write_text(code)
    added = ("--plugin", str(path), "--methods", "+most-confident,-global-avg")
    done = run(copy, *TABLE, *added)
    assert done.returncode == 0, done.stderr
    assert [line["row"] for line in lines(copy)] == [
        "client-resnet",
        "global-avg",  # dropped, but not from the files
        "global-labeled",
        "global-dlad",
        "most-confident",
    ]
    assert "Most confident client" in done.stdout
    assert "breaks the contract" not in done.stdout


@pytest.mark.slow
def test_the_readmes_baseline_is_ranked_by_the_command_of_the_leagues_page(tmp_path):
    assert PLUGIN is not None
    page = (ROOT / "docs" / "results" / "league.md").read_text()
    command = re.search(r"## Your own method\n.*?```console\n(.*?)\n```", page, re.DOTALL)
    assert command is not None
    path = tmp_path / "most_confident.py"
    path.write_text(PLUGIN[1])
    words = [str(path) if word == path.name else word for word in shlex.split(command[1])]
    assert words[0] == "fedtables"
    assert str(path) in words
    done = run(tmp_path, *words[1:])
    assert done.returncode == 0, done.stderr
    printed = " ".join(done.stdout.split())
    ranks = re.search(r"mean ranks of accuracy over 1 conditions: (.*?); a difference", printed)
    assert ranks is not None, done.stdout
    assert re.search(r"Most confident client \d+\.\d\d", ranks[1]), ranks[1]


def test_table_one_is_printed_from_the_partition_itself(tmp_path):
    done = run(tmp_path, "reproduce", "dlad/table1")
    assert done.returncode == 0, done.stderr
    found = lines(tmp_path, "dlad/table1")
    assert len(found) == 20
    assert {line["difference"] for line in found} == {"same"}


def test_another_way_of_running_has_files_of_its_own_that_say_so(tmp_path):
    name, label = "fediod/table1", "stacked3"
    only = "--only dataset=cifar10 --only alpha=1 --only row=fedavg --jobs 1"
    selected = ("reproduce", name, *only.split())
    plain, other = run(tmp_path, *selected), run(tmp_path, *selected, "--stacked", "3")
    assert (plain.returncode, other.returncode) == (0, 0), plain.stderr + other.stderr
    assert "0 finished before, 1 to run" in other.stdout
    base = table_csv(tmp_path, name)
    for text, file in ((plain.stdout, base), (other.stdout, base.with_suffix(f".{label}.csv"))):
        record = json.loads(file.with_suffix(".records.jsonl").read_text().splitlines()[0])
        assert record["machine"]["stacked"] == (3 if file != base else 1)
        card = file.with_suffix(".md").read_text()
        assert (
            f"Executed as {label}: numbers may differ from the default's by rounding." in card
        ) == (file != base)
        for shown in (text, card):
            assert (f"protocol paper; {label};" in " ".join(shown.split())) == (file != base)
    again = run(tmp_path, *selected)
    assert "1 finished before, 0 to run" in again.stdout


def test_only_the_cells_of_a_folder_are_merged_into_its_tables(copy):
    done = run(copy, *TABLE, "--only", "row=client-resnet")
    assert len(lines(copy)) == 4
    (copy / "results").rename(copy / "elsewhere")
    done = run(copy, *TABLE, "--only", "row=client-resnet")
    assert "1 cells, 1 finished before" in done.stdout
    assert [line["row"] for line in lines(copy)] == ["client-resnet"]
