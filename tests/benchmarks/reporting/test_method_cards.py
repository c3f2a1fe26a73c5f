"""What a method's card says, and that the page in docs is the one that the command writes."""

from fedtables.benchmarks.reporting.method_cards import (
    card,
    cards_page,
    measured,
    needs_validation,
    summary,
)
from fedtables.benchmarks.tables import registry
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.feddf import FedDF
from fedtables.methods.fedmd import FedMD
from fedtables.reports.pages.build import league_of
from fedtables.reports.tables.standings import standings_of
from fedtables.results.sourcecode import ROOT
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
        "**In the league, as Plain.** Mean rank 1.50, 1 of 2."
        " Best rank 1 of 2, in league/toy `distribution=iid public=out`."
        " Worst rank 2 of 2, in league/toy `distribution=iid public=in`."
    )
    assert card_of("bound", LINES)[0] == "**In the league, as Bound.**"


def test_a_rank_that_is_the_same_everywhere_is_told_once():
    better = [line("public", "in", "accuracy", 90), line("public", "out", "accuracy", 80.5)]
    assert "Mean rank 1.00, 1 of 2. Rank 1 of 2 in" in card_of("public", LINES[:2] + better)[0]
    assert "Mean rank 2.00, 2 of 2. Rank 2 of 2 in" in card_of("plain", LINES[:2] + better)[0]


def test_the_page_in_docs_is_the_one_that_the_command_writes():
    entries = registry.methods().values()
    made = cards_page(entries, league_of(ROOT / "results"))
    assert (ROOT / "docs" / "reference" / "methods.md").read_text() == made
