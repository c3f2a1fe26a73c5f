"""Bytes from first principles: products of sourced factors, readings beside print, transfer times,
networks counted.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.commands.app import console
from benchmarks.commands.list import list_everything
from benchmarks.commands.plan import plan_tables
from benchmarks.commands.show import show_table
from benchmarks.papers.bytes import outlines
from benchmarks.tables import bandwidth, registry
from benchmarks.tables.bandwidth import (
    GB,
    Account,
    Factor,
    Flow,
    Reading,
    accounts,
    chosen,
    duration,
    seconds,
)
from benchmarks.tables.spec import SpecError
from results import published
from results.sourcecode import ROOT

FLOAT = Factor("size", 4, "bytes", "assumed", "float32")
ROUNDS = Factor("rounds", 10, "rounds", "paper", "3.1")
NETWORK = Factor("network", lambda: 1_000_000, "numbers", "network", "counted")
UP, DOWN = (
    Flow("models", "up", (ROUNDS, NETWORK, FLOAT)),
    Flow("labels", "down", (Factor("n", 7, "n", "data", ""), FLOAT)),
)
BOTH = Reading("both", (UP, DOWN), free="rounds")

EVERY = [
    (table, account)
    for paper in published.papers()
    for table in published.tables(paper)
    for account in accounts(f"{paper}/{table}")
]
EVERY += [("figure8", account) for account in accounts("fediod/figure8")]


def named(table, row):
    return next(account for account in accounts(table) if account.row == row)


# -- factors and readings --


def test_a_flow_is_the_product_of_its_factors_and_says_so():
    assert UP.size == 10 * 1_000_000 * 4
    assert UP.formula == "10 rounds x 1,000,000 numbers x 4 bytes"


def test_a_reading_is_the_sum_of_its_flows_by_direction():
    assert [BOTH.size("up"), BOTH.size("down"), BOTH.size()] == [40_000_000, 28, 40_000_028]
    assert BOTH.difference(0.05) == pytest.approx(40_000_028 / 50_000_000 - 1)


def test_a_network_is_built_only_when_its_size_is_asked_for():
    def refuse():
        raise AssertionError("built")

    factor = Factor("network", refuse, "numbers", "network", "")
    with pytest.raises(AssertionError, match="built"):
        _ = Flow("models", "up", (factor,)).size


def test_a_source_that_is_none_is_refused():
    with pytest.raises(
        ValueError, match="source must be one of paper, code, data, network, assumed, not 'hearsay'"
    ):
        Factor("rounds", 10, "rounds", "hearsay", "")


@given(printed=st.floats(1e-3, 1e4))
def test_with_the_value_that_print_needs_a_reading_meets_print(printed):
    met = replace(ROUNDS, value=BOTH.needed(printed))
    flows = tuple(
        replace(f, factors=tuple(met if factor == ROUNDS else factor for factor in f.factors))
        for f in BOTH.flows
    )
    assert Reading("met", flows).size() == pytest.approx(printed * GB, rel=1e-9)


def test_a_free_factor_that_no_flow_has_is_an_error():
    with pytest.raises(ValueError, match="both: no flow has the factor 'epochs'"):
        replace(BOTH, free="epochs").needed(1.0)


def test_the_closest_reading_is_nearest_to_print_on_either_side():
    half = Reading(
        "half", (replace(UP, factors=(*UP.factors, Factor("share", 0.5, "of them", "code", ""))),)
    )
    account = Account("a", "A", "", (BOTH, half))
    assert account.closest(0.035) is BOTH
    assert account.closest(0.025) is half
    assert account.closest(1.0) is BOTH


# -- the papers' tables --


def test_fedads_bandwidth_in_table_5_is_met_within_a_hundredth_by_one_clients_answers():
    account = named("fedad/table5", "fedad")
    printed = account.printed("fedad/table5")
    closest = account.closest(printed)
    assert closest.size() == closest.size("up") == 125 * 240 * 240 * 155 * 3 * 4 == 13_392_000_000
    assert abs(closest.difference(printed)) < 0.01
    assert (
        account.readings[0].size() == 3 * 13_392_000_000
    )  # what the ledger would count: all clients


def test_li_et_al_is_met_with_nine_tenths_of_the_updates():
    account = named("fedad/table5", "li-et-al")
    printed = account.printed("fedad/table5")
    assert (
        account.readings[0].size("up")
        == account.readings[0].size("down")
        == 600 * 3 * 4 * outlines.numbers("segresnet-3d", 4, 3, 224, 224, 144)
    )
    assert abs(account.closest(printed).difference(printed)) < 0.01
    assert account.closest(printed).size("up") == pytest.approx(
        0.9 * account.readings[0].size("up")
    )


def test_fedmd_is_met_within_a_hundredth_by_a_volume_in_every_local_iteration():
    account = named("fedad/table5", "fedmd")
    printed = account.printed("fedad/table5")
    assert account.closest(printed).size() == 20_000 * 240 * 240 * 155 * 3 * 4
    assert abs(account.closest(printed).difference(printed)) < 0.01


def test_no_reading_of_table_7_meets_print_and_what_it_would_take_is_known():
    for account in accounts("fedad/table7"):
        printed = account.printed("fedad/table7")
        assert all(abs(reading.difference(printed)) > 0.05 for reading in account.readings)
    outputs = named("fedad/table7", "fedad").readings[1]
    assert outputs.needed(866.0) == pytest.approx(866.0e9 / (3 * 6_986 * 256 * 256 * 4))


def test_figure_8_b_counts_both_ways_and_prints_nothing():
    fedavg, fediod = accounts("fediod/figure8")
    assert fedavg.printed("fediod/figure8") is fediod.printed("fediod/figure8") is None
    numbers = outlines.numbers("unet-64-bn", 3, 1, 224, 224)
    assert fedavg.readings[0].size("up") == 100 * 10 * 4 * numbers == 124_221_188_000
    # An image and its gradient, a map of logits and its gradient, 26 x 26 scores and theirs.
    answer = 4 * (3 * 224 * 224 + 224 * 224 + 26 * 26)
    assert (
        fediod.readings[0].size("up")
        == fediod.readings[0].size("down")
        == 400 * 11_057 * 10 * answer
    )


@pytest.mark.parametrize(
    ("table", "account"), EVERY, ids=lambda value: value if isinstance(value, str) else value.row
)
def test_every_account_is_whole(table, account):
    known: dict[str, Factor] = {}
    for reading in account.readings:
        assert reading.size() > 0
        assert not reading.free or reading.needed(1.0) != 0
        for flow in reading.flows:
            assert flow.direction in ("up", "down")
            assert [factor.unit for factor in flow.factors].count("bytes") == 1
    for factor in account.factors():
        assert known.setdefault(factor.name, factor) == factor  # a name stands for one factor
        assert factor.where
        assert math.isfinite(factor.amount)
    assert len({reading.title for reading in account.readings}) == len(account.readings)


def test_printed_numbers_are_those_of_the_published_tables():
    for table in ("fedad/table5", "fedad/table7"):
        cells = {
            c.row: c.value
            for c in published.published_table(table)
            if c.metric == "bandwidth-gb" and c.value is not None
        }
        assert {account.row: account.printed(table) for account in accounts(table)} == cells


@pytest.mark.parametrize("table", ["fedad/table5", "fedad/table7"])
def test_the_page_of_bandwidth_has_the_closest_readings(table):
    page = [
        line.split("|")[1:-1]
        for line in (ROOT / "docs" / "bandwidth.md").read_text().splitlines()
        if line.startswith("|")
    ]
    for account in accounts(table):
        printed = account.printed(table)
        closest = account.closest(printed)
        (told,) = (
            cells for cells in page if cells[0].strip() == f"{account.title}, Table {table[-1]}"
        )
        assert [cell.strip() for cell in told[2:]] == [
            f"{closest.size() / GB:,.2f}",
            f"{closest.difference(printed):+.2%}",
        ]


def test_tables_without_accounts_have_none():
    assert accounts("fedad/table1") == accounts("fedsa/table1") == accounts("dlad/table2") == ()
    assert bandwidth.tables("fedad") == ["fedad/table5", "fedad/table7"]
    assert bandwidth.tables("dlad") == []


def test_rows_can_be_chosen_and_nothing_else():
    found = accounts("fedad/table5")
    assert [account.row for account in chosen(found, {"row": "fedad,fedmd"})] == ["fedmd", "fedad"]
    assert chosen(found, {}) == found
    with pytest.raises(
        SpecError, match="row=fedaad: nothing is known of its bytes; did you mean fedad"
    ):
        chosen(found, {"row": "fedaad"})
    with pytest.raises(SpecError, match="row by row only: li-et-al, fedmd, fedad"):
        chosen(found, {"eps1": "1"})


# -- networks --


def unet(inputs, outputs, base, bias, norm):
    """Numbers in a U-Net by hand: `bias` per convolution and output channel, `norm` per normalised
    channel.
    """
    widths = [base * 2**level for level in range(5)]

    def pair(before, width):
        return 9 * width * (before + width) + 2 * width * (bias + norm)

    down = sum(
        pair(before, width) for before, width in zip([inputs, *widths], widths, strict=False)
    )
    up = sum(4 * 2 * width * width + bias * width + pair(2 * width, width) for width in widths[:-1])
    return down + up + (base + 1) * outputs


def test_u_nets_have_as_many_numbers_as_by_hand():
    assert outlines.numbers("unet-32-in", 1, 1, 256, 256) == unet(1, 1, 32, bias=0, norm=0)
    # Of BatchNorm weight, bias, running mean and variance.
    assert outlines.numbers("unet-64-bn", 3, 1, 224, 224) == unet(3, 1, 64, bias=1, norm=4)


def test_half_the_channels_are_about_a_quarter_of_the_numbers():
    half, whole = (
        outlines.numbers(name, 4, 3, 224, 224, 144)
        for name in ("segresnet-half-3d", "segresnet-3d")
    )
    assert (half, whole) == (1_176_843, 4_702_227)


def test_the_patch_discriminator_scores_patches():
    # 224, 112, 56 and 28 by strides of two, then 27 and 26.
    assert outlines.patches(224) == 26 * 26
    assert outlines.patches(256) == 30 * 30


# -- transfer times --


def test_a_megabyte_takes_eight_seconds_at_a_megabit():
    assert seconds(1e6, 1.0) == 8
    assert bandwidth.link_times(1e6, 0, 1.0) == ["8 s", "0 s"]
    assert bandwidth.link_columns(2.5) == ["up at 2.5 Mbit/s", "down at 2.5 Mbit/s"]
    assert bandwidth.link_times(1e6, 0, None) == bandwidth.link_columns(None) == []


@pytest.mark.parametrize(
    ("time", "text"),
    [(0, "0 s"), (119, "119 s"), (300, "5.0 min"), (7_200, "2.0 h"), (1_080_000, "12.5 days")],
)
def test_durations_are_in_a_unit_of_which_there_are_two(time, text):
    assert duration(time) == text


# -- what is printed --


def test_print_is_beside_every_reading_and_the_closest_is_marked():
    console = Console(file=io.StringIO(), width=200)
    bandwidth.show(console, "fedad/table5", [named("fedad/table5", "fedad")], link=100.0)
    shown = console.file.getvalue()
    assert "13.36 GB in print" in shown
    line = next(text for text in shown.splitlines() if "(closest)" in text)
    assert re.search(r"one client .*13\.39 .*12\.47 .*\+0\.24% .*17\.9 min", line)
    assert (
        "2 up: answers: 125 volumes x 240 rows x 240 columns x 155 slices x 3 maps x 4 bytes"
        in shown
    )
    assert re.search(r"public volumes\s+│ 125 volumes │ paper ", shown)
    assert "no proof" in shown


def test_without_a_printed_number_there_is_nothing_to_be_close_to():
    console = Console(file=io.StringIO(), width=200)
    bandwidth.show(console, "fediod/figure8", accounts("fediod/figure8"))
    shown = console.file.getvalue()
    assert "no number in print" in shown
    assert "closest" not in shown
    assert "difference" not in shown


def test_a_table_is_planned_as_it_runs_and_by_its_bytes(command):
    arguments = ("--link", "1000", "--only", "row=fedad", "--only", "modality=t1")
    done = command("benchmarks", "plan", "fedad/table7", *arguments)
    assert done.returncode == 0, done.stderr
    assert "fedad/table7 Table 7, profile smoke: 3 cells" in done.stdout
    assert "up at 1000 Mbit/s" in done.stdout
    assert "as this suite runs it" in done.stdout


@pytest.fixture
def no_runner(monkeypatch):
    """FedAD's Tables 6 and 7 as if they had no spec."""
    without = {**registry.all_tables(), "fedad/table6": None, "fedad/table7": None}
    monkeypatch.setattr(registry, "all_tables", lambda: without)


def test_a_table_without_a_runner_is_planned_by_its_bytes(no_runner, capsys, monkeypatch):
    monkeypatch.setattr(console, "_width", 200)  # of a console that other tests have used before
    plan_tables(["fedad/table7"], only=["row=fedad"], link=1000.0)
    shown = capsys.readouterr().out
    assert "fedad/table7 has no runner yet" in shown
    assert "up at 1000 Mbit/s" in shown
    assert "FL-MRCM (" not in shown


def test_a_table_without_a_runner_has_no_settings_and_without_bytes_no_plan(no_runner):
    message = "--set and --methods change runs, and fedad/table7 has no runner yet"
    with pytest.raises(SpecError, match=message):
        plan_tables(["fedad/table7"], override=["a=1"])
    with pytest.raises(SpecError, match="not yet reproducible"):
        plan_tables(["fedad/table6"])


def test_a_link_without_a_speed_is_refused(command):
    done = command("benchmarks", "plan", "dlad/table2", "--link", "0")
    assert done.returncode == 2
    assert "--link takes Mbit/s above 0, not 0" in " ".join(done.stderr.split())


def test_list_and_show_say_what_plan_knows(no_runner, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    list_everything()
    listed = capsys.readouterr().out
    assert re.search(r"fedad/table7\s*│.*│ not yet; plan", listed)
    assert re.search(r"fedad/table6\s*│.*│ not yet *│", listed)
    assert re.search(r"fedad/table4\s*│.*│ yes *│", listed)
    show_table("fedad/table7")
    shown = capsys.readouterr().out
    assert "Protocol card" not in shown
    assert "`python -m benchmarks plan fedad/table7` computes its bytes" in " ".join(shown.split())
