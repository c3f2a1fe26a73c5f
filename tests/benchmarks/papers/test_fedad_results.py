"""FedAD's tables with numbers in them: what is printed, and Table 4 as a run."""

from __future__ import annotations

import csv
import dataclasses
import io
import shlex

import pytest
from rich.console import Console

from benchmarks.reporting.layout import _scaled
from benchmarks.reporting.printing import print_table
from benchmarks.reporting.writing import write_table
from benchmarks.running.table_run import TableRun
from benchmarks.tables import registry
from benchmarks.tables.expansion import expand
from benchmarks.tables.selection import Selection
from results.published import parse_column, published_table
from tests.benchmarks.papers.printed_cells import printed_records, run_of


def records_and_run(table, folder):
    found = registry.find_table(f"fedad/{table}")
    return printed_records(*found), run_of(*found, folder)


# -- what is printed --


@pytest.fixture
def printed(tmp_path, monkeypatch):
    """Prints a table from records; returns what is shown and the folder."""
    monkeypatch.setattr(TableRun, "all_records", lambda run: list(run.records.values()))

    def show(table):
        records, run = records_and_run(table, tmp_path)
        run.records = {record.cell: record for record in records}
        console = Console(file=io.StringIO(), width=250)
        print_table(console, run, write_table(run))
        return run, console.file.getvalue()

    return show


def test_table_3_says_how_many_films_its_columns_have(printed):
    _, text = printed("table3")
    sizes = [
        dict(cell.config)["partition.public_limit"]
        for cell in expand(*registry.find_table("fedad/table3"), Selection(only={"row": "fedad"}))
    ]
    told = (
        f"public-size 1000, 5000, 10000, 15000, 20000, 26684 are {', '.join(map(str, sizes))} here"
        " (partition.public_limit)"
    )
    assert told in text


def test_at_the_papers_scale_nothing_is_scaled(tmp_path):
    records, run = records_and_run("table3", tmp_path)
    paper = [
        dataclasses.replace(record, config={**record.config, "partition.public_limit": int(size)})
        for record in records
        if (size := parse_column(record.column)["public-size"]) != "none"
    ]
    assert len(paper) == 6
    assert _scaled(run, paper) == []
    official = [dataclasses.replace(record, public={"used": "rsna-pneumonia"}) for record in paper]
    assert _scaled(run, official) == []
    # A set of 4,708 films that stands in has no more, whatever is asked for.
    small = [dataclasses.replace(record, public={"used": "pneumoniamnist"}) for record in paper]
    assert _scaled(run, small) == [
        "public-size 5000, 10000, 15000, 20000, 26684 are 4708, 4708, 4708, 4708, 4708 here"
        " (partition.public_limit)"
    ]


def test_table_1_is_drawn_metric_by_metric_without_columns_of_other_metrics(printed):
    run, _ = printed("table1")
    text = run.files.path("md").read_text()
    auc, count, mauc = (
        text.index(f"## {title}") for title in ("AUC", "Number of classes", "Mean AUC")
    )
    assert auc < mauc
    assert auc < count
    assert "overlap" not in text[auc : min(count, mauc)]
    assert run.files.path("png").exists()


# -- from the command line --


@pytest.fixture(scope="module")
def folder(tmp_path_factory, module_command):
    """Table 4 of a few films, and the cross-domain columns of Table 1, into one cache."""
    results = tmp_path_factory.mktemp("fedad")
    few = [
        "partition.pool_limit=120",
        "partition.test_limit=0",
        "local.epochs=1",
        "server.epochs=1",
        "fedavg.rounds=1",
        "feddf.rounds=1",
        "fedmd.rounds=1",
    ]
    settings = [text for setting in few for text in ("--set", setting)]
    done = module_command(
        *shlex.split("benchmarks reproduce fedad/table4 --jobs 1 --results"),
        str(results),
        *settings,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    one = module_command(
        *shlex.split("benchmarks reproduce fedad/table1 --jobs 1 --only train=cross-domain"),
        *shlex.split("--results"),
        str(results),
        *settings,
    )
    assert one.returncode == 0, one.stdout[-3000:] + one.stderr
    return results / "smoke" / "fedad", done.stdout, one.stdout


def lines(folder, table):
    (path,) = (p for p in folder.glob(f"{table}.set-*.csv") if "claims" not in p.name)
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_table_4s_properties_are_those_of_its_runs(folder):
    found = {
        (line["row"], parse_column(line["column"])["property"]): line["value"]
        for line in lines(folder[0], "table4")
        if line["metric"] == "property"
    }
    names = ("distillation", "param-transfer", "privacy", "asynchronous")
    assert {
        row: [found[row, name] for name in names] for row in ("fedavg", "feddf", "fedmd", "fedad")
    } == {
        "fedavg": ["no", "yes", "no", "no"],
        "feddf": ["yes", "yes", "no", "no"],
        "fedmd": ["yes", "no", "yes", "no"],
        "fedad": ["yes", "no", "yes", "yes"],
    }
    assert not any(
        row == "centralized" for row, _ in found
    )  # an upper bound is no way to exchange anything
    notes = {
        cell.row: cell.note for cell in published_table("fedad/table4")
    }  # of the two columns whose ticks were not lost
    for row in ("fedavg", "feddf", "fedmd", "fedad"):
        for name in ("distillation", "param-transfer"):
            assert f"{name}={found[row, name][0].upper()}" in notes[row]
    assert "FedAD: attention, labels, logits up and nothing down" in " ".join(folder[1].split())
    assert "param-transfer: parameters or gradients cross" in " ".join(folder[1].split())


def test_a_cross_domain_model_is_measured_on_both_sites(folder):
    found = lines(folder[0], "table1")
    assert {line["row"] for line in found} == {"fedad"}
    for site, count in (("nih-cxr14", 12), ("chexpert", 8)):
        own = [line for line in found if f"test={site} " in line["column"]]
        aucs = {
            parse_column(line["column"])["class"]: float(line["value"])
            for line in own
            if line["metric"] == "auc"
        }
        assert len(aucs) == count
        assert all(0 <= value <= 100 for value in aucs.values())
        means = {
            parse_column(line["column"])["class"]: float(line["value"])
            for line in own
            if line["metric"] != "auc"
        }
        assert means["all"] == count
        assert means["total"] == pytest.approx(sum(aucs.values()) / count)
        six = ("cardiomegaly", "atelectasis", "pneumothorax", "pneumonia", "edema", "consolidation")
        assert means["overlap"] == pytest.approx(sum(aucs[name] for name in six) / 6)
