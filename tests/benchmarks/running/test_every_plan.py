"""Every table can be planned, under every profile and protocol."""

from __future__ import annotations

import pytest

from benchmarks.running.follow import Follower
from benchmarks.running.plan import make_plan
from benchmarks.tables import registry
from benchmarks.tables.expansion import expand
from benchmarks.tables.selection import Selection
from benchmarks.tables.spec import PROFILES, PROTOCOLS

QUICK = (("smoke", "paper", "dlad"),)
CASES = [
    pytest.param(
        paper,
        profile,
        protocol,
        id=f"{paper}-{profile}-{protocol}",
        marks=[pytest.mark.slow] * ((profile, protocol, paper) not in QUICK),
    )
    for paper, spec in registry.papers().items()
    if spec.tables
    for protocol in PROTOCOLS
    if protocol == "paper" or spec.released_code
    for profile in PROFILES
]


@pytest.mark.parametrize(("paper", "profile", "protocol"), CASES)
def test_every_table_of_a_paper_can_be_planned(paper, profile, protocol):
    spec, follower = registry.papers()[paper], Follower()
    for table in spec.tables:
        if protocol == "released" and not table.released:
            continue
        cells = expand(spec, table, Selection(profile=profile, protocol=protocol))
        plan = make_plan(cells, follower)
        assert plan.cells == len(cells)
        trains = registry.find_measure(table.measure).needs_fit(dict(cells[-1].config))
        assert (plan.work.flops > 0) == (plan.distinct["fit"] > 0)
        assert plan.distinct["fit"] > 0 or not trains, table.key
