"""`fedtables reports compare` from the command line: exit codes, every output, the speed
benchmarks.
"""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from fedtables.reports.commands import app
from fedtables.results.sourcecode import ROOT
from fedtables.results.store import write_csv
from tests.reports.comparing.sets import line

VALUES = {"fedavg": "0.90", "feddf": "0.80", "fedmd": "0.70"}
SEEDS = {"std": "0.01", "n": "3", "seeds": "0 1 2"}


def lines(**changes):
    """A table of three rows; `changes` are to the line of the row `feddf`."""
    whole = [line(row=row, value=value, **SEEDS) for row, value in VALUES.items()]
    whole[1] |= changes
    return whole


def write(tmp_path, name, content) -> Path:
    write_csv(tmp_path / name / "smoke" / "paper" / "table1.csv", content)
    return tmp_path / name


def report(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


@pytest.fixture
def base(tmp_path):
    return write(tmp_path, "base", lines())


@pytest.mark.parametrize(
    ("changes", "code", "headline"),
    [
        ({}, 0, "**No regression**. Cells: 3 same"),
        ({"value": "0.79"}, 0, "**No regression**. Cells: 2 same, 1 moved within spread"),
        ({"value": "0.70"}, 1, "**Regression**. Cells: 1 worse, 2 same"),
        ({"bytes_up": "11"}, 1, "**Regression**. Cells: 1 changed in bytes up, 2 same"),
        ({"row": "other"}, 1, "**Regression**. Cells: 1 vanished, 2 same, 1 new"),
    ],
)
def test_the_exit_code_says_whether_there_is_a_regression(base, tmp_path, changes, code, headline):
    done = report(base, write(tmp_path, "new", lines(**changes)))
    assert done.exit_code == code
    assert done.stdout.startswith(headline)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--output", "x", "--junit", "x"), "two outputs go to"),
        (("--html", "x", "--csv", "a/../x"), "two outputs go to"),
        (("--alpha", "0"), "is not a number from 1e-09 to 1"),
        (("--time-ratio", "-1"), "is not a number"),
        (("--base-speed", "x.json"), "go together"),
        (("--output", b"na\xffme".decode(errors="surrogateescape")), "is no UTF-8; rename it"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(base, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    done = report(base, base, *options)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert not (tmp_path / "x").exists()


def test_what_moved_within_spread_is_counted_and_listed_apart_in_every_output(base, tmp_path):
    outputs = {name: tmp_path / f"report.{name}" for name in ("csv", "html", "xml")}
    options = ("--csv", outputs["csv"], "--html", outputs["html"], "--junit", outputs["xml"])
    done = report(base, write(tmp_path, "new", lines(value="0.79")), *options)
    assert done.exit_code == 0
    assert done.stdout.startswith("**No regression**. Cells: 2 same, 1 moved within spread")
    assert "| smoke/paper/table1 feddf n=1 accuracy | moved within spread | 0.8000" in done.stdout
    rows = list(csv.DictReader(outputs["csv"].read_text().splitlines()))
    assert [row["verdict"] for row in rows[:3]] == ["same", "moved within spread", "same"]
    page = outputs["html"].read_text()
    listed = page.partition("<caption>Moved within spread</caption>")[2].partition("</table>")[0]
    assert listed.count("<tr") == 2  # the heading and the one that moved
    assert "feddf n=1 accuracy" in listed
    (suite,) = ElementTree.fromstring(outputs["xml"].read_text())
    told = {case.get("name"): case.findtext("system-out", "") for case in suite}
    moved = [name for name, text in told.items() if text.startswith("moved within spread: 0.8000")]
    assert moved == ["feddf n=1 accuracy"]
    assert suite.get("failures") == "0"


def test_a_committed_table_is_as_itself():
    table = ROOT / "results" / "cpu" / "dlad" / "table2.csv"
    assert report(table, table).stdout.startswith(
        "**No regression**. Cells: 48 same; time and memory: 2 same."
    )


@pytest.mark.slow
def test_all_committed_results_are_readable():
    assert report(ROOT / "results", ROOT / "results").exit_code == 0


@pytest.fixture
def written(base, tmp_path):
    """The four files about a table with a regression, hostile texts and a cost that was not
    compared.
    """
    failed = {
        **lines()[2],
        "metric": "",
        "value": "",
        "std": "",
        "status": "failed: <b>|`x`\x1b & worse",
    }
    paths = {kind: tmp_path / "out" / f"report.{kind}" for kind in ("md", "xml", "html", "csv")}
    options = (
        text
        for option, path in zip(
            ("--output", "--junit", "--html", "--csv"), paths.values(), strict=True
        )
        for text in (option, str(path))
    )
    done = report(base, write(tmp_path, "new", [*lines(value="0.70")[:2], failed]), *options)
    assert done.exit_code == 1
    return done.stdout, {kind: path.read_text() for kind, path in paths.items()}


def test_the_markdown_is_what_was_printed_and_keeps_its_columns(written):
    stdout, files = written
    assert files["md"] == stdout
    row = next(line for line in stdout.splitlines() if " failed " in line)
    assert row.endswith("|  | failed: \\<b>\\|\\`x\\` & worse |")
    assert (
        "Not compared: time, peak memory of smoke/paper/table1: no records beside the CSV (base and"
        " new)" in stdout
    )
    assert "Holm over 1 test," in stdout


def test_the_junit_file_has_a_case_per_cell(written):
    suites = ElementTree.fromstring(written[1]["xml"])
    (suite,) = suites
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("skipped")) == (
        "smoke/paper/table1",
        "4",
        "2",
        "1",
    )
    cases = {case.get("name"): case for case in suite}
    assert list(cases) == [f"{row} n=1 accuracy" for row in VALUES] + [
        "all cells time, peak memory"
    ]
    assert len(cases["fedavg n=1 accuracy"]) == 0
    failure = cases["feddf n=1 accuracy"].find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.text[:42]) == (
        "worse",
        "worse: 0.8000 ± 0.0100 -> 0.7000 ± 0.0100;",
    )
    assert "failed: <b>|`x` & worse" in cases["fedmd n=1 accuracy"].find("failure").text
    assert cases["all cells time, peak memory"].find("skipped") is not None


def test_the_page_needs_nothing_else_and_escapes_what_it_shows(written):
    page = written[1]["html"]
    for absent in ("://", "src=", "<b>"):
        assert absent not in page
    for there in ("default-src 'none'", "script-src 'none'", "failed: &lt;b&gt;|`x` &amp; worse"):
        assert there in page
    assert page.count("<caption>") == page.count("<table>") == 2
    row = '<th scope="row">smoke/paper/table1 feddf n=1 accuracy</th><td class="verdict">worse</td>'
    assert row in page


def test_the_csv_has_every_cell_with_all_digits(written):
    rows = list(csv.DictReader(written[1]["csv"].splitlines()))
    assert [row["verdict"] for row in rows] == ["same", "worse", "failed", "not compared"]
    assert (rows[1]["base"], rows[1]["new"], rows[2]["p"]) == ("0.8", "0.7", "")
    assert 0 < float(rows[1]["p"]) < 0.001


def test_the_markdown_stays_short(base, tmp_path):
    many = [{**lines()[0], "row": f"row{i}", "value": str(0.5 + i / 1000)} for i in range(40)]
    done = report(write(tmp_path, "many", [*many, lines()[0]]), base)
    assert done.stdout.count("| vanished |") == 30
    assert "... and 12 more." in done.stdout  # ten vanished ones and two new
    assert "Cells: 40 vanished, 1 same, 2 new" in done.stdout


def test_sets_without_a_common_table_or_cell_are_no_regression_but_refused(base, tmp_path):
    done = report(base, base / "smoke")
    assert done.exit_code == 2
    assert "no table in common: smoke/paper/table1; and paper/table1. Give two" in done.stderr
    elsewhere = [{**entry, "column": "n=2"} for entry in lines()]
    done = report(base, write(tmp_path, "elsewhere", elsewhere))
    assert done.exit_code == 2
    assert "the sets have no cell of smoke/paper/table1 in common" in done.stderr


def speed(tmp_path, name, medians, brand="A"):
    path = tmp_path / f"{name}.json"
    entries = [
        {"fullname": f"t.py::{test}", "stats": {"median": median}}
        for test, median in medians.items()
    ]
    path.write_text(
        json.dumps(
            {"machine_info": {"cpu": {"brand_raw": brand, "count": 2}}, "benchmarks": entries}
        )
    )
    return path


@pytest.mark.parametrize(
    ("new", "brand", "code", "counts"),
    [
        ({"a": 1.9, "b": 0.002}, "A", 0, "2 same"),
        ({"a": 2.1, "b": 0.002}, "A", 1, "1 slower, 1 same"),
        ({"a": 1.0}, "A", 1, "1 vanished, 1 same"),
        ({"a": 1.0, "b": 0.002, "c": 1.0}, "A", 0, "2 same, 1 new"),
        ({"a": 9.0, "b": 0.002}, "B", 0, "1 not compared"),
        ({"a": 9.0}, "B", 1, "1 vanished, 1 not compared"),
    ],
)
def test_speed_benchmarks_are_judged_by_their_medians_on_one_machine(
    base, tmp_path, new, brand, code, counts
):
    old, now = speed(tmp_path, "old", {"a": 1.0, "b": 0.002}), speed(tmp_path, "now", new, brand)
    done = report(
        base, base, "--base-speed", old, "--new-speed", now, "--csv", tmp_path / "report.csv"
    )
    assert done.exit_code == code
    assert f"speed benchmarks: {counts}." in done.stdout
    assert ("Not compared: median of speed: A, 2 cores and B, 2 cores." in done.stdout) == (
        brand == "B"
    )
    rows = [
        row
        for row in csv.DictReader((tmp_path / "report.csv").read_text().splitlines())
        if row["table"] == "speed"
    ]
    assert ("t.py::a" in [row["row"] for row in rows]) == (brand == "A")


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"machine_info": {}, "benchmarks": []}', '{"benchmarks": [{"fullname": "x"}]}'],
)
def test_a_file_that_is_no_benchmark_is_refused(base, tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    done = report(
        base, base, "--base-speed", tmp_path / "x.json", "--new-speed", tmp_path / "x.json"
    )
    assert done.exit_code == 2
    assert "x.json" in done.stderr


@pytest.mark.parametrize("option", ["--csv", "--output", "--junit", "--html"])
def test_no_output_replaces_an_input_a_table_a_folder_or_a_device(base, tmp_path, option):
    old = base / "smoke" / "paper" / "table1.csv"
    new = write(tmp_path, "new", lines()) / "smoke" / "paper" / "table1.csv"
    (tmp_path / "linked.csv").symlink_to(new)
    other = new.with_name("table1.md")
    new.with_name("table1.records.jsonl").write_text("")
    before = new.read_bytes()
    for name in (new, old, tmp_path / "linked.csv", other, new.parent, "/dev/null"):
        assert report(old, new, option, name).exit_code == 2
    assert new.read_bytes() == before
    assert not other.exists()
