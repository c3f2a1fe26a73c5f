"""FedAD's tables: a cell for every printed number, the paper's settings in it, claims that are
judged, and Table 4 as a run.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from dataclasses import asdict

import pytest
from rich.console import Console

from benchmarks.publish.display import print_table
from benchmarks.publish.layout import _scaled
from benchmarks.publish.verdicts import judge_claims
from benchmarks.running.execute import make_method
from benchmarks.running.runner import TableRun
from benchmarks.tables import registry
from benchmarks.tables.cells import expand
from benchmarks.tables.selection import Selection
from results.published import claims, parse_column, published_table
from results.record import Measurement, Record
from results.store import TableFiles

PAPER = registry.papers()["fedad"]
PRINTED = ("table1", "table2", "table3", "table4")
PROFILES = ("smoke", "cpu", "paper")


def table_of(key):
    return next(table for table in PAPER.tables if table.key == key)


def cells(table, **changes):
    return expand(PAPER, table_of(table), Selection(**changes))


def config_of(table, row, profile="paper", add=(), **only):
    cell = cells(table, profile=profile, add=add, only={"row": row, **only})[0]
    return dict(cell.config)


# -- the spec --


def of_cell(cell):
    """The printed numbers that a cell has to yield."""
    return [
        printed
        for printed in published_table(cell.table)
        if printed.row == cell.row
        and f"{printed.column} ".startswith(f"{cell.column} ")
        and printed.value is not None
        and (parse_column(printed.column).keys() - parse_column(cell.column).keys() <= {"class"})
    ]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("table", PRINTED)
def test_every_printed_number_is_of_one_cell_and_every_cell_has_one(table, profile):
    found = cells(table, profile=profile)
    numbers = [(p.row, p.column, p.metric) for cell in found for p in of_cell(cell)]
    assert sorted(numbers) == sorted(
        (p.row, p.column, p.metric)
        for p in published_table(f"fedad/{table}")
        if p.value is not None
    )
    assert all({p.metric for p in of_cell(cell)} == set(cell.metrics) for cell in found)


@pytest.mark.parametrize(
    ("table", "count"),
    [("table1", 14), ("table2", 34), ("table3", 7), ("table4", 5), ("figure3", 2)],
)
def test_as_many_cells_as_the_paper_has_models(table, count):
    assert len(cells(table)) == count


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("table", [table.key for table in PAPER.tables])
def test_every_cells_method_can_be_made_and_no_two_are_the_same_cell(table, profile):
    found = cells(table, profile=profile, add=tuple(row.key for row in table_of(table).offered))
    for cell in found:
        method = make_method(registry.find_method(cell.method), dict(cell.config))
        own = {
            name.partition(".")[2] for name, _ in cell.config if name.startswith(f"{cell.method}.")
        }
        assert own <= {field.name for field in dataclasses.fields(method)}
    assert len({cell.key for cell in found}) == len(found)


def test_every_field_of_every_rows_method_is_on_the_card():
    names = {setting.name for setting in PAPER.every_setting}
    methods = {row.method for table in PAPER.tables for row in (*table.rows, *table.offered)}
    fields = {
        f"{name}.{field.name}"
        for name in methods
        for field in dataclasses.fields(registry.find_method(name).load())
    }
    assert fields <= names


def test_training_is_as_the_paper_says():
    config = config_of(
        "table2", "bound=yes dropout=0", dataset="nih-cxr14", clients="5", alpha="0.1"
    )
    plan = {
        name: config[f"{part}.{name}"]
        for part in ("local",)
        for name in ("optimizer", "lr", "final_lr", "epochs", "batch_size")
    }
    assert plan == {
        "optimizer": "sgd",
        "lr": 1e-3,
        "final_lr": 1e-6,
        "epochs": 15,
        "batch_size": 32,
    }
    assert [
        config[f"server.{name}"] for name in ("optimizer", "schedule", "lr", "final_lr", "epochs")
    ] == [
        "sgd",
        "cosine",
        1e-2,
        1e-3,
        20,
    ]
    assert (config["network.resnet-34"], config["network.server"], config["network.client"]) == (
        "resnet34",
        "resnet-34",
        "resnet-34",
    )
    assert (
        config["partition.clients"],
        config["partition.alpha"],
        config["partition.validation_share"],
    ) == (5, 0.1, 0.1)
    assert (config["data.name"], config["public.name"], config["data.image_size"]) == (
        "nih-cxr14",
        "rsna-pneumonia",
        512,
    )


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("bound=no dropout=0", (False, 0)),
        ("bound=yes dropout=0", (True, 0)),
        ("bound=yes dropout=1/k", (True, 1)),
        ("bound=yes dropout=2/k", (True, 2)),
    ],
)
def test_a_row_of_table_2_is_its_bound_and_its_dropout(row, expected):
    config = config_of("table2", row)
    assert (config["fedad.bounds"], config["fedad.dropped"]) == expected


@pytest.mark.parametrize(
    ("train", "sites", "clients"),
    [
        ("nih-cxr14", "nih-cxr14", 3),
        ("chexpert", "chexpert", 3),
        ("cross-domain", "nih-cxr14+chexpert", 6),
    ],
)
def test_a_column_of_table_1_trains_on_its_sites(train, sites, clients):
    config = config_of("table1", "fedad", train=train, test="chexpert")
    assert (config["data.name"], config["evaluation.test"], config["partition.clients"]) == (
        sites,
        "chexpert",
        clients,
    )


def test_findings_are_those_of_table_1():
    config = config_of("table1", "fedad")
    for site, count in (("nih-cxr14", 12), ("chexpert", 8)):
        printed = {
            parse_column(cell.column)["class"]
            for cell in published_table("fedad/table1")
            if cell.metric == "auc" and cell.value is not None and f"test={site}" in cell.column
        }
        own = config[f"findings.{site}"].split("+")
        assert set(own) == printed
        assert len(own) == count


@pytest.mark.parametrize("profile", PROFILES)
def test_one_run_is_shared_between_the_tables(profile):
    """A fit is a stage of what a configuration says of the run, whatever measures it: only headings
    differ.
    """
    shown = {"data.train", "evaluation.test"}

    def own(**where):
        cell, *_ = cells(profile=profile, **where)
        return {name: value for name, value in cell.config if name not in shown}

    fedad = own(table="table1", only={"row": "fedad", "train": "chexpert"})
    assert own(table="table4", only={"row": "fedad"}) == fedad
    assert (
        own(
            table="table2",
            only={
                "row": "bound=yes dropout=0",
                "dataset": "chexpert",
                "clients": "3",
                "alpha": "1",
            },
        )
        == fedad
    )
    all_films = own(table="table3", only={"row": "fedad", "public-size": "26684"})
    if profile == "paper":  # all of RSNA's films, by their number or by no limit
        assert (all_films.pop("partition.public_limit"), fedad.pop("partition.public_limit")) == (
            26_684,
            0,
        )
    assert all_films == fedad
    centralized = own(table="table1", only={"row": "centralized", "train": "chexpert"})
    for table in ("table2", "table3", "table4"):
        assert own(table=table, only={"row": "centralized", "dataset": "chexpert"}) == centralized
    figure = own(table="figure3", only={"row": "fedad"})
    assert figure == own(table="table1", only={"row": "fedad", "train": "nih-cxr14"})


@pytest.mark.parametrize("profile", ["smoke", "cpu"])
def test_sizes_of_the_public_set_are_scaled_alike(profile):
    sizes = {
        int(parse_column(cell.column)["public-size"]): dict(cell.config)["partition.public_limit"]
        for cell in cells("table3", profile=profile, only={"row": "fedad"})
    }
    whole = sizes[26_684]
    assert sizes == {
        size: round(size * whole / 26_684)
        for size in (1_000, 5_000, 10_000, 15_000, 20_000, 26_684)
    }


def test_offered_rows_differ_in_what_they_are_named_for():
    names = ("fedad-one-shot", "fedad-online", "fedad-scaled", "fedad-quantised")
    configs = {name: config_of("table4", name, add=names, profile="cpu") for name in names}
    assert [configs[name]["fedad.one_shot"] for name in names] == [True, False, True, True]
    assert [configs[name]["fedad.quantised"] for name in names] == [False, False, False, True]
    assert {name: configs[name]["fedad.bound_scale"] for name in names} == {
        "fedad-one-shot": "printed",
        "fedad-online": "printed",
        "fedad-scaled": "mean",
        "fedad-quantised": "printed",
    }


# -- claims --


def printed_records(table):
    """Records of the table's cells as if they had given what the paper prints."""
    return [
        Record(
            table=cell.table,
            row=cell.row,
            column=cell.column,
            seed=0,
            seeds={},
            profile=cell.profile,
            protocol=cell.protocol,
            cell=cell.key,
            code=cell.code,
            config=dict(cell.config),
            data=asdict(cell.data),
            statistic="as printed",
            measurements=tuple(
                Measurement(p.metric, p.value, p.column.removeprefix(cell.column).strip())
                for p in of_cell(cell)
            ),
        )
        for cell in cells(table)
    ]


def run_of(table, folder):
    return TableRun(
        PAPER,
        table_of(table),
        Selection(),
        cells(table),
        TableFiles(folder, "smoke", f"fedad/{table}"),
    )


@pytest.mark.parametrize("table", PRINTED)
def test_every_claim_is_decided_as_in_print_by_the_printed_numbers(table, tmp_path):
    """Whatever a claim needs is in the cells of its own table, so that a whole table decides it."""
    judged = {
        line["id"]: line for line in judge_claims(run_of(table, tmp_path), printed_records(table))
    }
    expected = {claim.id: claim for claim in claims("fedad") if claim.table == table}
    assert judged.keys() == expected.keys()
    for name, line in judged.items():
        held, _, whole = expected[name].cells.partition("/")
        assert (line["held"], line["failed"], line["undecided"]) == (
            held,
            str(int(whole) - int(held)),
            "0",
        ), name


# -- what is printed --


@pytest.fixture
def printed(tmp_path, monkeypatch):
    """Prints a table from records; returns what is shown and the folder."""
    monkeypatch.setattr(TableRun, "all_records", lambda run: list(run.records.values()))

    def show(table, records):
        run = run_of(table, tmp_path)
        run.records = {record.cell: record for record in records}
        console = Console(file=io.StringIO(), width=250)
        print_table(console, run)
        return run, console.file.getvalue()

    return show


def test_table_3_says_how_many_films_its_columns_have(printed):
    _, text = printed("table3", printed_records("table3"))
    sizes = [
        dict(cell.config)["partition.public_limit"]
        for cell in cells("table3", only={"row": "fedad"})
    ]
    told = (
        f"public-size 1000, 5000, 10000, 15000, 20000, 26684 are {', '.join(map(str, sizes))} here"
        " (partition.public_limit)"
    )
    assert told in text


def test_at_the_papers_scale_nothing_is_scaled(tmp_path):
    paper = [
        dataclasses.replace(record, config={**record.config, "partition.public_limit": int(size)})
        for record in printed_records("table3")
        if (size := parse_column(record.column)["public-size"]) != "none"
    ]
    assert len(paper) == 6
    run = run_of("table3", tmp_path)
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
    run, _ = printed("table1", printed_records("table1"))
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
        "benchmarks",
        "reproduce",
        "fedad/table4",
        "--jobs",
        "1",
        "--results",
        str(results),
        *settings,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    one = module_command(
        "benchmarks",
        "reproduce",
        "fedad/table1",
        "--jobs",
        "1",
        "--only",
        "train=cross-domain",
        "--results",
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
