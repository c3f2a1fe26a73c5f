"""The profile `gpu`: the papers' networks and images, with schedules that one GPU ends in half an
hour.
"""

import pytest

from fedtables.benchmarks.reporting.cards import reduced
from fedtables.benchmarks.running.hours import GPUS
from fedtables.benchmarks.running.plan import make_plan
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.results.sourcecode import ROOT

FIRST_TABLES = ("dlad/table2", "fedad/table1", "fediod/table1", "fedsa/table1")
"""The first of each paper in which something is trained."""
SCHEDULES = (
    *("epochs", "rounds", "steps", "last_epochs", "interval", "patience", "ramp", "student_wait"),
    *("ramp_start", "ramp_end", "ema_decay", "selection_gap", "adaptation_gap"),
)
IMAGES = (
    *("public_limit", "pool_limit", "target_limit", "test_limit"),
    *("public_samples", "saliency_samples", "samples"),
)
BATCHES = {
    *("noisy-student.ratio", "fixmatch.mu", "meta-pseudo-labels.mu"),
    *("meta-pseudo-labels.batch_size", "fedmd.digest_batch_size"),
}
"""What more is cut: unlabelled images in a step of FedSA's comparators, and FedMD's films, which
would not fit 80 GB beside all samples."""
SETTINGS = {
    setting.name: setting
    for paper in registry.papers().values()
    for setting in paper.every_setting
    if setting.is_reduced("gpu")
}


def is_schedule(name):
    return name in SCHEDULES or name.endswith(("_epochs", "_steps", "_interval"))


def test_schedules_and_numbers_of_images_are_cut_and_nothing_else():
    left = {name for name in SETTINGS if name.rpartition(".")[2] not in IMAGES}
    assert {name for name in left if not is_schedule(name.rpartition(".")[2])} == BATCHES
    assert len(left) < len(SETTINGS)


def test_images_and_networks_are_the_papers():
    names = {setting.name for paper in registry.papers().values() for setting in paper.settings}
    assert "data.image_size" in names
    assert not [name for name in SETTINGS if name.startswith(("data.", "network.", "private."))]


@pytest.mark.parametrize("name", FIRST_TABLES)
def test_what_is_cut_is_said_below_the_table(name):
    paper, table = registry.find_table(name)
    text = reduced(paper, table, "gpu", {row.method for row in table.rows})
    assert text.startswith("Profile gpu scales down ")
    assert "epochs" in text
    assert "partition.public_limit" in text
    assert "image_size" not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST_TABLES)
def test_a_first_table_is_planned_to_end_within_half_an_hour_as_the_page_says(name):
    plan = make_plan(expand(*registry.find_table(name), Selection(profile="gpu")))
    hours = GPUS["h100"].hours(plan)
    assert hours < 0.5
    page = (ROOT / "docs" / "results" / "hours.md").read_text(encoding="utf-8")
    lines = page.partition("## Profile `gpu`\n")[2].splitlines()
    (line,) = [line for line in lines if line.startswith(f"| {name} |")]
    # The page's plan is of all tables, whose like steps are followed once.
    assert float(line.split(" | ")[4]) == pytest.approx(hours, rel=0.01)
