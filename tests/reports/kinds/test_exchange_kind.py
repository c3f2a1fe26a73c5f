"""What a table of exchanges says beside its numbers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from reports.kinds.numbers import KINDS, PROPERTIES
from results.record import FAILED, Record


def made(titles, records):
    return SimpleNamespace(layout=SimpleNamespace(rows=titles), records=records)


def test_what_is_remarked_defines_every_property_and_names_what_crossed_in_each_row():
    record = Record(
        table="fedad/table4",
        row="fedad",
        column="dataset=chexpert",
        seed=0,
        seeds={},
        profile="smoke",
        protocol="paper",
        cell="1",
        code="",
        bytes_by_kind={"up/logits": 1, "up/attention": 1},
    )
    both = replace(record, row="fedavg", bytes_by_kind={"up/parameters": 1, "down/parameters": 1})
    broken = replace(record, row="feddf", status=FAILED)
    titles = {"fedavg": "FedAvg", "feddf": "FedDF", "fedad": "FedAD"}
    *meanings, last = KINDS["exchange"].remarks(made(titles, [record, both, broken]))
    assert [text.partition(":")[0] for text in meanings] == list(PROPERTIES)
    assert (
        last
        == "crossed: FedAvg: parameters up and parameters down; FedAD: attention, logits up and"
        " nothing down"
    )
    assert KINDS["exchange"].remarks(made({"feddf": "FedDF"}, [broken])) == meanings
