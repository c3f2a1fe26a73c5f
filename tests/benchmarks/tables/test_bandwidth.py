"""Bytes beside print, by hand and by `plan`, and how long they take on a link."""

import re

import pytest
import torch

from fedtables.benchmarks.running.plan import make_plan
from fedtables.benchmarks.tables import bandwidth, registry
from fedtables.benchmarks.tables.bandwidth import beside_print, duration, seconds
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.models.catalogue import build
from fedtables.results import published
from fedtables.results.sourcecode import ROOT

VOLUME = 240 * 240 * 155 * 3 * 4
"""Bytes of an answer on a volume of BraTS: three maps in float32."""
SEGRESNET, UNET = 4_702_227, 7_756_097
"""Numbers in a network of Table 5 and of Table 7."""
SLICES = 2_583 * 15 + 369 * 120 + 436 * 150 + 2_874 * 15 + 369 * 120 + 434 * 130
"""Of the training subjects of F, B and I, T1 and T2 (4.3.1)."""
FEATURES = 512 * 2 * 2 * 4
"""Bytes of a slice's pooled features."""
MODELS = 50 * 3 * 2 * UNET * 4 * 2
"""Bytes of 50 rounds, three clients, T1 and T2, both ways."""
OUTPUT, ATTENTION = 256 * 256 * 4, 256 * 256 * 4
"""Bytes of a public slice's output, and of the attention between any two of 16 x 16 positions."""

READINGS = {
    "FedAD, Table 5": 125 * VOLUME,
    "Li et al. 2019, Table 5": 600 * 3 * SEGRESNET * 4 * 1.9,
    "FedMD, Table 5": 20_000 * VOLUME,
    "FL-MRCM, Table 7": 3 * MODELS + 50 * 2 * 2 * SLICES * FEATURES,
    "FL-MRCM, Table 7, as it runs here": MODELS + (50 + 49) * 0.9 * SLICES * FEATURES,
    "FedAD, Table 7, as it runs here, but for the two public sessions that are kept for test": (
        3 * (3_388 + 3_598) * 120 * (OUTPUT + ATTENTION)
    ),
    "FedAD, Table 7": 3 * (3_388 * 150 + 3_598 * 130) * OUTPUT,
}
"""Bytes by the row of the page of bandwidth that tells them."""
ROWS = {"FedAD": "fedad", "Li et al. 2019": "li-et-al", "FedMD": "fedmd", "FL-MRCM": "fl-mrcm"}


@pytest.mark.parametrize("told", READINGS)
def test_the_page_has_bytes_as_by_hand_and_how_far_print_is(told):
    page = (ROOT / "docs" / "reference" / "bandwidth.md").read_text(encoding="utf-8")
    title, number = re.match(r"(.+?), Table (\d)", told).groups()
    [printed] = [
        cell.value
        for cell in published.published_table(f"fedad/table{number}")
        if (cell.row, cell.metric) == (ROWS[title], "bandwidth-gb") and "=1" not in cell.column
    ]
    size = READINGS[told] / 1e9
    [line] = [line for line in page.splitlines() if line.startswith(f"| {told} |")]
    assert line.endswith(f"| {size:,.2f} | {size / printed - 1:+.2%} |")


@pytest.mark.parametrize(
    ("network", "shape", "outputs", "count"),
    [
        ("segresnet-3d", (4, 224, 224, 144), 3, SEGRESNET),
        ("unet-32-in", (1, 256, 256), 1, UNET),
    ],
)
def test_the_networks_have_as_many_numbers(network, shape, outputs, count):
    with torch.device("meta"):
        state = build(network, shape[0], outputs, shape[1:]).state_dict()
    assert sum(tensor.numel() for tensor in state.values()) == count


@pytest.mark.parametrize(
    ("table", "row", "size"),
    [
        pytest.param("fedad/table5", "fedad", 3 * READINGS["FedAD, Table 5"], id="one-shot"),
        pytest.param("fedad/table5", "li-et-al", 600 * 3 * SEGRESNET * 4 * 2, id="models"),
    ],
)
@pytest.mark.slow
def test_plan_counts_a_row_as_by_hand(table, row, size):
    paper, spec = registry.find_table(table)
    cells = expand(paper, spec, Selection(profile="paper", only={"row": row, "eps1": "none"}))
    [(_, _, here, _)] = beside_print(table, spec, make_plan(cells).sent)
    assert here == pytest.approx(size / 1e9, rel=1e-2)


def test_a_derived_column_is_the_sum_of_its_parts_beside_print():
    _, table = registry.find_table("fedad/table7")
    sent = {
        (row, f"train=b,f,i test={test} modality={modality}"): size
        for row in ("fedad", "zero-filled")
        for test in ("b", "f")
        for modality, size in (("t1", 10**9), ("t2", 3 * 10**9))
    }
    column = "train=b,f,i test=all modality=all"
    assert beside_print("fedad/table7", table, sent) == [("fedad", column, 4.0, 866.0)]


def test_without_a_printed_bandwidth_nothing_is_beside_it():
    _, table = registry.find_table("dlad/table2")
    assert beside_print("dlad/table2", table, {("global-dlad", "dataset=mnist"): 1}) == []


def test_plan_prints_bandwidth_beside_print_and_the_time_on_a_link(command):
    arguments = ("--link", "1000", "--only", "row=fedad", "--only", "test=b")
    done = command("plan", "fedad/table7", *arguments)
    assert done.returncode == 0, done.stderr
    assert "fedad/table7 Table 7, profile smoke: 2 cells" in done.stdout
    assert "up at 1000 Mbit/s" in done.stdout
    assert re.search(r"fedad.*modality=all.*866\.00", done.stdout)


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


def test_a_link_without_a_speed_is_refused(command):
    done = command("plan", "dlad/table2", "--link", "0")
    assert done.returncode == 2
    assert "--link must be above 0 Mbit/s, not 0" in " ".join(done.stderr.split())
