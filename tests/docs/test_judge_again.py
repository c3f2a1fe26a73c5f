"""Committed verdicts are what today's rules say of the committed records, those of other tables
among them.
"""

import pytest

from fedtables.reports.pages.result_files import Result, find_results
from fedtables.results.sourcecode import ROOT
from tests.tools.judge_again import judged

COMMITTED = [
    result for result in find_results(ROOT / "results") if result.profile == "cpu" and result.claims
]


@pytest.mark.parametrize("result", COMMITTED, ids=lambda result: f"{result.paper}/{result.name}")
def test_committed_claims_are_judged_by_todays_rules(result: Result):
    now = judged(result)
    committed = [{k: v for k, v in claim.items() if k != "check"} for claim in result.claims]
    assert committed == now, "judge them again: python -m tests.tools.judge_again results"
