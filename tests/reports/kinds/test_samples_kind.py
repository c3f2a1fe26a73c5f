"""Scores that other networks gave than the paper's are not compared with print."""

from __future__ import annotations

from dataclasses import replace

from reports.kinds.numbers import KINDS
from results.record import FAILED
from tests.reports.written_results import COLUMNS, record

CONFIG = {
    "evaluation.extractor": "judge",
    "network.client": "resnet+densenet",
    "network.resnet": "small",
}
SCORED = record("a", COLUMNS[0], 1.0, config=CONFIG)


def test_the_plain_score_is_by_another_network_and_the_adapted_one_by_smaller_ones():
    assert KINDS["samples"].unlike([SCORED]) == {
        "inception-score": "by judge",
        "adapted-inception-score": "by small",
    }


def test_an_adapted_score_by_the_papers_networks_is_compared():
    whole = replace(SCORED, config={**CONFIG, "network.resnet": "resnet"})
    assert KINDS["samples"].unlike([whole]) == {"inception-score": "by judge"}


def test_cells_that_failed_say_nothing():
    assert KINDS["samples"].unlike([replace(SCORED, status=FAILED)]) == {}
