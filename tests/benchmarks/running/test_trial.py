"""A user's own settings are tried before anything runs."""

from __future__ import annotations

import pytest

from benchmarks.running.trial import try_settings
from benchmarks.tables import registry
from benchmarks.tables.cells import expand, unread
from benchmarks.tables.selection import Selection, parse_overrides
from benchmarks.tables.spec import SpecError

TABLE = registry.find_table("dlad/table2")
COLUMN = {"dataset": "mnist", "distribution": "niid1"}


def tried(*pairs: str, rows: str = "global-avg,global-dlad") -> list[str]:
    """The settings that are not read."""
    overrides = parse_overrides(pairs, TABLE[0])
    selection = Selection(only={**COLUMN, "row": rows}, overrides=overrides)
    cells = expand(*TABLE, selection)
    try_settings([TABLE], cells, selection)
    return unread(cells, overrides)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("local.epochs=0", "epochs and batch_size must be at least 1"),
        ("local.optimizer=[/red]", r"unknown optimizer '\[/red\]'"),
        ("network.resnet=nosuch", "network.resnet"),
        ("fediod.optimizer=nosuch", "--set fediod.optimizer=nosuch"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_reason(pair, message):
    with pytest.raises(SpecError, match=message):
        tried(pair)


def test_settings_that_no_row_reads_are_known():
    assert tried("local.epochs=2") == []
    assert tried("dlad.temperature=1", rows="global-avg") == ["dlad.temperature"]
    assert tried("dlad.temperature=1", "fedavg.rounds=3") == ["fedavg.rounds"]


def test_a_setting_of_a_row_that_was_left_out_is_tried_with_the_others_of_that_row():
    table = registry.find_table("fedsa/table1")
    overrides = parse_overrides(["meta-pseudo-labels.steps=150"], table[0])  # 1,048,576 in print
    narrow = Selection(only={"row": "scratch", "fraction": "0.10"}, overrides=overrides)
    try_settings([table], expand(*table, narrow), narrow)
    overrides = parse_overrides(["meta-pseudo-labels.steps=1"], table[0])
    narrow = Selection(only={"row": "scratch", "fraction": "0.10"}, overrides=overrides)
    with pytest.raises(SpecError, match=r"--set meta-pseudo-labels\.steps=1: .* of 1 steps"):
        try_settings([table], expand(*table, narrow), narrow)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "-1", "1e30", "1_0", "9" * 40, "\u0661"])
@pytest.mark.parametrize("name", ["local.epochs", "local.lr", "fedavg.rounds", "fedprox.mu"])
def test_infinite_negative_and_astronomic_numbers_are_no_settings(name, value):
    with pytest.raises(SpecError, match=f"--set {name}=.*number from 0, at most"):
        parse_overrides([f"{name}={value}"], TABLE[0])


def test_a_budget_may_be_infinite():
    assert dict(parse_overrides(["privacy.epsilon=inf"], TABLE[0])) == {
        "privacy.epsilon": float("inf")
    }
