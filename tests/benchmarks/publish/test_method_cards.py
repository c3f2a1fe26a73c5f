"""What a method's card says, and that the page in docs is the one that the command writes."""

from __future__ import annotations

from benchmarks.publish.method_cards import card, cards_page, measured, summary
from benchmarks.tables import registry
from methods.fedmd import FedMD
from reports.pages.build import league_of
from reports.tables.standings import standings_of
from results.sourcecode import ROOT
from tests.reports.tables.test_standings import LINES, line, scored


def test_a_card_says_what_the_class_declares():
    lines = card(registry.find_method("fedmd"), {"fedad/table4": ["fedmd"]}, None)
    assert lines[0] == "## FedMD: `fedmd`"
    assert "| leaves a client | logits |" in lines
    assert "| private form | dp-sgd (sends logits) |" in lines
    assert "| tables | fedad/table4 |" in lines
    assert any("`fedmd.rounds=20`" in text for text in lines)
    assert summary(FedMD).startswith("Algorithm 1: communicate logits on public data")


def test_an_upper_bound_is_said_to_be_one():
    lines = card(registry.find_method("centralized"), {}, None)
    assert "| upper bound, knows | private-samples |" in lines


def test_what_the_league_measured_stands_below():
    lines = [*LINES, line("plain", "none", "megabytes-up", 2), line("plain", "none", "server", 2)]
    text = measured(standings_of([scored(lines)]), "plain")
    assert text.startswith(
        "In the league, as Plain: mean rank 1.50, 1 of 2; accuracy 80.0 to 80.0 %"
    )
    assert "2.0 MB up at most" in text
    assert "best in `smoke league/toy distribution=iid public=out`" in text
    assert "worst in `smoke league/toy distribution=iid public=in`" in text
    assert "mean rank" not in measured(standings_of([scored(lines)]), "bound")


def test_the_page_in_docs_is_the_one_that_the_command_writes():
    entries = registry.methods().values()
    made = cards_page(entries, league_of(ROOT / "results"))
    assert (ROOT / "docs" / "methods.md").read_text() == made
