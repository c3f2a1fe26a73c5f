"""What tables of numbers say beside them: exchanges, judges of images, and ranks."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from reports.measures import exchange, images
from results.record import FAILED
from tests.records import made_record
from tests.reports.written_results import COLUMNS, record


def made(titles, records):
    return SimpleNamespace(layout=SimpleNamespace(rows=titles), records=records)


def test_what_is_remarked_defines_every_property_and_names_what_crossed_in_each_row():
    record = made_record(row="fedad", bytes_by_kind={"up/logits": 1, "up/attention": 1})
    both = replace(record, row="fedavg", bytes_by_kind={"up/parameters": 1, "down/parameters": 1})
    broken = replace(record, row="feddf", status=FAILED)
    titles = {"fedavg": "FedAvg", "feddf": "FedDF", "fedad": "FedAD"}
    *meanings, last = exchange.MEASURES["exchange"].remarks(made(titles, [record, both, broken]))
    assert [text.partition(":")[0] for text in meanings] == list(exchange.EXCHANGED)
    assert (
        last
        == "crossed: FedAvg: parameters up and parameters down; FedAD: attention, logits up and"
        " nothing down"
    )
    assert exchange.MEASURES["exchange"].remarks(made({"feddf": "FedDF"}, [broken])) == meanings


CONFIG = {
    "evaluation.extractor": "judge",
    "network.client": "resnet+densenet",
    "network.resnet": "small",
}
SCORED = record("a", COLUMNS[0], 1.0, config=CONFIG)


def test_the_plain_score_is_by_another_network_and_the_adapted_one_by_smaller_ones():
    assert images.MEASURES["samples"].unlike([SCORED]) == {
        "inception-score": "by judge",
        "adapted-inception-score": "by small",
    }


def test_an_adapted_score_by_the_papers_networks_is_compared():
    whole = replace(SCORED, config={**CONFIG, "network.resnet": "resnet"})
    assert images.MEASURES["samples"].unlike([whole]) == {"inception-score": "by judge"}


def test_cells_that_failed_say_nothing():
    assert images.MEASURES["samples"].unlike([replace(SCORED, status=FAILED)]) == {}
