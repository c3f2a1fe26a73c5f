"""What a method's card says, and that the page in docs is the one that the command writes."""

from __future__ import annotations

from benchmarks.reporting.method_cards import (
    card,
    cards_page,
    measured,
    needs_validation,
    places,
    summary,
)
from benchmarks.tables import registry
from methods.fedavg import FedAvg
from methods.feddf import FedDF
from methods.fedmd import FedMD
from reports.pages.build import league_of
from reports.tables.standings import Condition, standings_of
from results.sourcecode import ROOT
from tests.reports.tables.test_standings import LINES, line, scored


def test_a_card_says_what_the_class_declares():
    shown = card(registry.find_method("fedmd"), {"fedad/table4": ["fedmd"]}, None)
    assert (shown["title"], shown["name"], shown["measured"]) == ("FedMD", "fedmd", [])
    told = shown["declared"]
    assert told["leaves a client"] == "logits"
    assert told["private form"] == "dp-sgd (sends logits)"
    assert told["tables"] == "fedad/table4"
    assert "`fedmd.rounds=20`" in told["settings"]
    assert summary(FedMD).startswith("Algorithm 1: communicate logits on public data")
    bound = card(registry.find_method("centralized"), {}, None)["declared"]
    assert bound["upper bound, knows"] == "private-samples"


def test_a_validation_set_is_needed_where_the_class_asks_for_one():
    assert needs_validation(FedDF)
    assert not needs_validation(FedAvg)
    told = card(registry.find_method("feddf"), {}, None)["declared"]
    assert told["labelled validation set"] == "needed at the server"


def card_of(row, lines):
    """What the league says of a row, by hand."""
    found = standings_of([scored(lines)])
    return measured(found, next(method for method in found.methods if method.row == row))


def test_a_row_is_told_its_mean_rank_and_its_own_best_and_worst():
    # Of public images in and out, plain has 80 in both, and public 90 and 70.
    assert card_of("plain", LINES)[0] == (
        "**In the league, as Plain**: mean rank 1.50, 1 of 2;"
        " best rank 1 of 2, best of all, in league/toy `distribution=iid public=out`;"
        " worst rank 2 of 2, worst of all, in league/toy `distribution=iid public=in`."
    )
    assert card_of("bound", LINES)[0] == "**In the league, as Bound**."


def test_a_rank_that_is_the_same_everywhere_is_told_once():
    better = [line("public", "in", "accuracy", 90), line("public", "out", "accuracy", 80.5)]
    assert "mean rank 1.00, 1 of 2; 1 of 2 in every" in card_of("public", LINES[:2] + better)[0]
    assert "mean rank 2.00, 2 of 2; 2 of 2 in every" in card_of("plain", LINES[:2] + better)[0]


def test_conditions_are_gathered_by_table_and_column():
    def condition(table, column, public):
        return Condition("cpu", table, column, public)

    at = [condition("league/mnist", "distribution=iid", public) for public in ("in", "out")]
    at += [condition("league/mnist", "distribution=niid1", "out"), condition("a/b", "c=d", "none")]
    assert places(at) == (
        "MNIST `distribution=iid public=in|out`, `distribution=niid1 public=out`"
        " and a/b `c=d public=none`"
    )


def test_fronts_are_named_on_which_a_row_is():
    sent = [
        line(row, public, f"megabytes-{way}", megabytes)
        for row, public, megabytes in (
            ("plain", "none", 2),
            ("public", "in", 1),
            ("public", "out", 1),
        )
        for way in ("up", "down")
    ]
    # Both have 80 on the mean, and public sends less.
    assert card_of("public", LINES + sent)[0].endswith("front of accuracy against megabytes.")
    assert "front" not in card_of("plain", LINES + sent)[0]


def test_what_a_row_needs_is_said_by_its_properties():
    def held(name, value):
        column = f"distribution=iid public=in property={name}"
        return line("public", "in", "property", value, column=column)

    lines = card_of("public", [*LINES, held("asynchronous", "no"), held("distillation", "yes")])
    assert lines[2:6] == [
        "| what it needs and exchanges | |",
        "|---|---|",
        "| the fit looks at the public images | yes |",
        "| nothing comes down to a client, and none sends the same kind of thing in two rounds"
        " | no |",
    ]


def test_numbers_are_the_range_over_a_tables_conditions():
    more = [
        line("public", "in", "megabytes-up", 12.345),
        line("public", "out", "megabytes-up", 1_234.5),
        line("public", "in", "accuracy-at-epsilon-4", 55),
        line("public", "in", "accuracy-at-10-mb", 33),
        line("plain", "none", "megabytes-down", 2),
        line("public", "in", "a-metric-of-its-own", 0.5),
    ]
    assert card_of("public", [*LINES, *more])[2:] == [
        "| | league/toy |",
        "|---|---|",
        "| conditions | 2 |",
        "| Accuracy (%) | 70.0 to 90.0 |",
        "| Sent up (MB) | 12.3 to 1,234 |",
        "| a-metric-of-its-own | 0.5 |",
        "| Accuracy at epsilon 4 (%) | 55.0 |",
    ]


def test_the_page_in_docs_is_the_one_that_the_command_writes():
    entries = registry.methods().values()
    made = cards_page(entries, league_of(ROOT / "results"))
    assert (ROOT / "docs" / "methods.md").read_text() == made
