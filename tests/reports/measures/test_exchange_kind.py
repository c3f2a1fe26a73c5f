"""What a scorecard says and draws beside its numbers."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd

from fedtables.reports.measures.exchange import EXCHANGED, MEASURES, SCORED
from fedtables.reports.tables.table import Layout, ShownTable
from fedtables.results.record import FAILED
from tests.reports.drawn import table_of
from tests.reports.tables.test_standings import LINES, TITLES
from tests.reports.written_results import COLUMNS, record


def made(lines):
    layout = Layout(
        key="league/toy",
        title="Toy",
        caption="A caption",
        rows=TITLES,
        oracles=frozenset({"bound"}),
        own="",
        x_axis="",
        columns=tuple(dict.fromkeys(line["column"] for line in lines)),
        labels=("smoke",),
    )
    return ShownTable(layout, table_of(lines), ())


def test_ranks_are_said_first_and_every_property_is_defined():
    ranks, *meanings = MEASURES["scorecard"].remarks(made(LINES))
    assert ranks.startswith("mean ranks of accuracy over 2 conditions: Plain 1.50, Public 1.50.")
    assert [text.partition(":")[0] for text in meanings] == list(SCORED)


def test_a_terminal_has_the_ranks_first_and_accuracy_alone():
    failed = {**LINES[1], "metric": "", "status": "failed: DivergedError"}
    lines = pd.DataFrame([LINES[1], {**LINES[1], "metric": "megabytes-up"}, failed])
    assert MEASURES["scorecard"].ranks_first
    assert MEASURES["scorecard"].brief(lines)["metric"].tolist() == ["accuracy", ""]


def test_of_one_method_there_are_no_ranks():
    assert MEASURES["scorecard"].remarks(made(LINES[:2]))[0].endswith("same conditions")


def test_who_breaks_the_contract_is_named_and_stands_in_no_picture(tmp_path):
    lines = [*LINES, {**LINES[1], "row": "other", "value": 95.0, "contract": "it forgets"}]
    table = made(lines)
    rows = {**TITLES, "other": "Other ✗"}
    table = replace(table, layout=replace(table.layout, rows=rows))
    ranks = MEASURES["scorecard"].remarks(table)[0]
    assert ranks.startswith("mean ranks of accuracy over 2 conditions: Plain 1.50, Public 1.50.")
    assert ranks.endswith(". Not ranked, because they break the contract: Other ✗")
    MEASURES["scorecard"].draw(table, tmp_path / "toy.png")
    MEASURES["scorecard"].draw(made(LINES), tmp_path / "without.png")
    assert (tmp_path / "toy.svg").read_text() == (tmp_path / "without.svg").read_text()


def test_a_picture_has_a_panel_for_each_condition(tmp_path):
    MEASURES["scorecard"].draw(made(LINES), tmp_path / "toy.png")
    text = (tmp_path / "toy.svg").read_text()
    assert text.count('id="axes_') == 2


def of_rows(titles, records):
    return SimpleNamespace(layout=SimpleNamespace(rows=titles), records=records)


def test_what_is_remarked_defines_every_property_and_names_what_crossed_in_each_row():
    sent = {"up/logits": 1, "up/attention": 1}
    one = record("fedad", COLUMNS[0], 1.0, bytes_by_kind=sent)
    both = replace(one, row="fedavg", bytes_by_kind={"up/parameters": 1, "down/parameters": 1})
    broken = replace(one, row="feddf", status=FAILED)
    titles = {"fedavg": "FedAvg", "feddf": "FedDF", "fedad": "FedAD"}
    *meanings, last = MEASURES["exchange"].remarks(of_rows(titles, [one, both, broken]))
    assert [text.partition(":")[0] for text in meanings] == list(EXCHANGED)
    assert (
        last == "sent: FedAvg: parameters up and parameters down; FedAD: attention, logits up and"
        " nothing down"
    )
    assert MEASURES["exchange"].remarks(of_rows({"feddf": "FedDF"}, [broken])) == meanings
