"""What a command shows of a run: labels and titles from the records, claims from their values,
pictures of several metrics.
"""

from __future__ import annotations

import io
from dataclasses import asdict, replace

import pandas as pd
import pytest
from rich.console import Console

from benchmarks.publish import display
from benchmarks.publish.display import (
    draw,
    judge_claims,
    layout_of,
    made_table,
    print_table,
    values_of,
)
from benchmarks.running.runner import TableRun, finished_records
from benchmarks.tables import registry
from benchmarks.tables.cards import table_settings
from benchmarks.tables.cells import Selection, expand
from benchmarks.tables.spec import Paper, Row, Table
from reports.drawing import plots
from reports.tables.claims import Value
from reports.tables.table import last_epochs
from results.files import cache_home, write_atomic
from results.published import parse_column, published_table
from results.record import FAILED, Measurement, Record
from results.store import TableFiles, records_of, summarise
from tests.reports.drawn import line

COLUMN = "dataset=cifar10 alpha=0.1"
DIGITS = {"asked": "cifar10", "used": "digits", "origin": "surrogate", "digest": "d", "note": ""}
SCORES = ("inception-score", "adapted-inception-score")


def record(row, measurements, seed=0, **more):
    return Record(
        table="fediod/table7",
        row=row,
        column=COLUMN,
        seed=seed,
        seeds={"partition": seed},
        profile="smoke",
        cell=f"{row} {seed}",
        code="",
        measurements=measurements,
        **{"protocol": "paper", "data": DIGITS, **more},
    )


def scored(row, first, second, **more):
    return record(
        row,
        tuple(
            Measurement(name, value) for name, value in zip(SCORES, (first, second), strict=True)
        ),
        **more,
    )


@pytest.fixture
def run(tmp_path):
    """A run of FedIOD's Table 7 with the paper's rows."""
    rows = tuple(
        Row(key, "fediod", key)
        for key in dict.fromkeys(c.row for c in published_table("fediod/table7"))
    )
    table = Table(
        key="table7",
        title="Table 7",
        caption="Scores",
        rows=rows,
        columns=(parse_column(COLUMN),),
        axes={},
        metrics=SCORES,
        unit="percent",
    )
    paper = Paper(
        "fediod",
        "FedIOD",
        "",
        settings=(),
        tables=(table,),
        released_code=True,
        seed_axes=("partition",),
    )
    return TableRun(paper, table, Selection(), [], TableFiles(tmp_path, "smoke", "fediod/table7"))


def test_the_layout_names_every_data_set_once_the_public_one_apart(run):
    public = {**DIGITS, "asked": "cifar100"}
    records = [
        scored("gan", 2.0, 1.0),
        scored("gan mimic=eq8", 3.0, 2.0, public=public),
        scored("gan", 2.0, 1.0, seed=1),
    ]
    layout = layout_of(run, records)
    stand_in = [label for label in layout.labels if "stand-in" in label]
    assert stand_in[0].startswith("cifar10 stand-in: ")
    assert stand_in[1].startswith("public data of methods that use any: cifar100 stand-in: ")
    assert len(stand_in) == 2
    assert "2 seeds" in layout.labels
    assert layout.unit == "percent"


def test_without_public_images_the_layout_names_no_public_data(run):
    assert not any(
        "public" in label for label in layout_of(run, [scored("gan", 2.0, 1.0, public={})]).labels
    )


def test_the_papers_own_row_is_the_last_unless_the_table_names_another_or_none(run):
    last = run.table.rows[-1].key
    assert layout_of(run, [scored(last, 2.0, 1.0)]).own == last
    for own in ("gan", ""):
        run.table = replace(run.table, own=own)
        assert layout_of(run, [scored(last, 2.0, 1.0)]).own == own


def test_pictures_of_scores_say_by_which_networks(run):
    records = [
        scored("gan", 2.0, 1.0, statistic="by a network"),
        scored("gan", 2.0, 1.0, seed=1, statistic="by a network"),
    ]
    run.table = replace(run.table, measure="samples")
    assert layout_of(run, records).labels.count("by a network") == 1
    run.table = replace(run.table, measure="final")
    assert "by a network" not in layout_of(run, records).labels


@pytest.fixture
def printed(tmp_path, monkeypatch):
    """Prints FedIOD's Table 1 as if its selection's cells had all been run; returns what is
    shown.
    """

    def show(**selection):
        paper, table = registry.find_table("fediod/table1")
        chosen = Selection(**selection)
        run = TableRun(
            paper,
            table,
            chosen,
            expand(paper, table, chosen),
            TableFiles(tmp_path, "smoke", "fediod/table1"),
        )
        records = [
            Record(
                table=cell.table,
                row=cell.row,
                column=cell.column,
                seed=cell.seed,
                seeds={},
                profile=cell.profile,
                cell=cell.key,
                code=cell.code,
                protocol=cell.protocol,
                config=dict(cell.config),
                data=asdict(cell.data),
                public=asdict(cell.public) if cell.public else {},
                measurements=(Measurement("accuracy", 50.0),),
                statistic="best of 3" if cell.protocol == "released" else "after the last of 3",
            )
            for cell in run.cells
        ]
        run.records = {record.cell: record for record in records}
        console = Console(file=io.StringIO(), width=200)
        print_table(console, run, [])
        return console.file.getvalue()

    return show


def test_an_added_row_without_a_cell_is_told(printed):
    only = {"dataset": "cifar10", "alpha": "1"}
    shown = printed(add=("public-only", "fediod-own"), only=only)
    assert (
        "row public-only has no cell here: the public set's labels are not of the task's classes"
        in shown
    )
    assert shown.count("has no cell here") == 1
    assert "FedIOD, D(x) as own" in shown
    assert "has no cell here" not in printed(only=only)


def test_an_added_row_that_the_selection_leaves_out_is_told(printed):
    only = {"dataset": "cifar10", "alpha": "1", "row": "fediod"}
    assert "--only leaves out row fediod-own, which --methods adds" in printed(
        add=("fediod-own",), only=only
    )
    assert "leaves out" not in printed(
        add=("fediod-own",), only={**only, "row": "fediod,fediod-own"}
    )


def test_a_card_says_what_columns_set():
    _, table = registry.find_table("fedad/table2")
    assert "columns set partition.clients: 3, 5" in table_settings(table)
    assert "columns set data.name: nih-cxr14, chexpert" in table_settings(table)
    _, table = registry.find_table("dlad/table4")
    assert "all columns have data.name = cifar10" in table_settings(table)


def test_a_table_says_how_runs_became_its_numbers(printed):
    only = {"dataset": "cifar10", "alpha": "1", "row": "fedkd,fediod,fediod-released"}
    shown = printed(add=("fediod-released",), only=only)
    assert "FedKD, FedIOD: after the last of 3\n" in shown
    assert "FedIOD [released]: best of 3\n" in shown
    assert "each number: after the last of 3\n" in printed(only={**only, "row": "fedkd,fediod"})


def test_two_data_sets_with_one_stand_in_are_both_named(run):
    records = [
        scored("gan", 2.0, 1.0),
        scored("gan mimic=eq8", 3.0, 2.0, data={**DIGITS, "asked": "cifar100"}),
    ]
    assert sum("stand-in" in label for label in layout_of(run, records).labels) == 2


def test_a_row_under_another_protocol_than_the_tables_says_so(run):
    records = [scored("gan", 2.0, 1.0), scored("gan mimic=eq8", 3.0, 2.0, protocol="released")]
    assert layout_of(run, records).rows == {
        "gan": "gan",
        "gan mimic=eq8": "gan mimic=eq8 [released]",
    }
    released = replace(run, selection=Selection(protocol="released"))
    assert layout_of(released, records).rows == {
        "gan": "gan [paper]",
        "gan mimic=eq8": "gan mimic=eq8",
    }


def test_values_are_means_over_seeds_by_row_column_and_metric(run):
    records = [
        scored("gan", 2.0, 1.0),
        scored("gan", 3.0, 1.5, seed=1),
        scored("gan mimic=eq8", 9.0, 9.0, status=FAILED),
    ]
    keys = {"dataset": "cifar10", "alpha": "0.1"}
    assert values_of(records) == [
        Value("gan", keys, SCORES[0], 2.5),
        Value("gan", keys, SCORES[1], 1.25),
    ]


def test_claims_are_judged_on_the_metrics_of_the_records(run):
    rows = {
        "gan": (1.0, 1.0),
        "gan mimic=common": (1.5, 3.5),
        "gan mimic=eq8": (2.0, 2.0),
        "gan mimic=eq8 conf": (2.5, 4.0),
    }
    records = [
        scored(row, *scores)
        for row, scores in {**rows, "gan mimic=eq8 conf unique": (3.0, 3.0)}.items()
    ]
    found = {
        claim["id"]: (claim["verdict"], claim["fails_at"]) for claim in judge_claims(run, records)
    }
    assert found["fediod-t7-a"] == ("holds in 1 of 2", "[clause 2]")
    assert found["fediod-t7-b"] == ("holds in 6 of 8", "[clause 6] | [clause 8]")


def test_the_last_epoch_is_taken_of_each_metric():
    lines = [
        line("a", f"{COLUMN} epoch={epoch}", str(value * epoch), metric=metric)
        for epoch in (1, 2, 10)
        for metric, value in (("accuracy", 1.0), ("hd95", 3.0))
    ]
    ends = last_epochs(pd.DataFrame(lines))
    assert ends[["column", "metric", "value"]].values.tolist() == [
        [COLUMN, "accuracy", "10.0"],
        [COLUMN, "hd95", "30.0"],
    ]


def drawable(records):
    """The lines of the records' CSV, one by one."""
    return records_of(summarise(records))


@pytest.mark.parametrize("measure", ["final", "curve"])
def test_the_picture_of_a_run_with_two_metrics_is_written(run, measure):
    run.table = replace(run.table, measure=measure)
    epochs = ("epoch=1", "epoch=2") if measure == "curve" else ("",)
    records = [
        record(
            row.key, tuple(Measurement(metric, 2.0, epoch) for epoch in epochs for metric in SCORES)
        )
        for row in run.table.rows
    ]
    draw(run, made_table(run, layout_of(run, records), drawable(records), records))
    assert run.files.path("png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_is_drawn_again_only_if_it_would_differ_or_is_damaged(run, monkeypatch):
    drawn = []

    def table_plot(layout, lines, path):
        drawn.append(layout.title)
        write_atomic(path, f"picture {len(drawn)}")

    def draws(records, **layout):
        before = len(drawn)
        shown = replace(layout_of(run, records), **layout)
        draw(run, made_table(run, shown, drawable(records), records))
        return len(drawn) - before

    monkeypatch.setattr(plots, "table_plot", table_plot)
    records = [scored("gan", 2.0, 1.0)]
    path = run.files.path("png")
    assert draws(records) == 1
    assert draws(records) == 0
    assert draws([scored("gan", 2.5, 1.0)]) == 1
    assert draws(records) == 1
    assert draws(records, title="Another") == 1
    assert draws(records, title="Another", oracles=frozenset({"gan"})) == 1
    monkeypatch.setattr(display, "source_digest", lambda *modules: "other code")
    assert draws(records) == 1
    assert draws(records) == 0
    path.write_text("damaged")
    assert draws(records) == 1
    path.unlink()
    assert draws(records) == 1
    (note,) = (cache_home() / "pictures").iterdir()
    note.write_text(note.read_text().replace("shows", "show"))
    assert draws(records) == 1
    assert draws(records) == 0


def test_a_row_that_only_leaves_out_is_not_said_to_lack_public_labels(printed):
    shown = printed(add=("centralized",), only={"row": "fediod", "dataset": "cifar10"})
    assert "labels are not of the task" not in shown


def test_an_earlier_released_table_in_the_folder_does_not_break_the_claims_of_another(tmp_path):
    paper, table6 = registry.find_table("fediod/table6")
    files = TableFiles(tmp_path, "smoke", "fediod/table6", "released")
    files.write_records([record("gan=avg", ())])
    assert finished_records(paper, table6, Selection(protocol="released"), files) == []
