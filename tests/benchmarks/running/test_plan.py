"""Plans: the same code path without the work, with hand-computed sizes."""

import re
from dataclasses import replace

import pytest
import torch

from fedtables.benchmarks.running import speed
from fedtables.benchmarks.running.follow import Follower, PlannedCell, PlannedStage
from fedtables.benchmarks.running.plan import Plan, make_plan
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import PROFILES, PROTOCOLS, SpecError
from fedtables.federation.costs import Work, Workload
from fedtables.federation.memory import Memory

ONLY = {"dataset": "mnist", "distribution": "niid1"}


def planned(table: str, profile: str, **only: str):
    return make_plan(expand(*registry.find_table(table), Selection(profile=profile, only=only)))


def test_one_column_counts_its_samples_by_hand():
    plan = planned("dlad/table2", "paper", **ONLY)
    # Clients 10 x 50 epochs x 6,000; classifiers 10 x 20 x (6,000 + 48,000); three global models of
    # 100 x 48,000.
    assert plan.work.training_samples == 10 * 50 * 6_000 + 10 * 20 * 54_000 + 3 * 100 * 48_000
    assert plan.distinct == {
        "local-model": 10,
        "client-classifier": 10,
        "public-outputs": 20,
        "fit": 4,
    }
    assert plan.needed["local-model"] == 40


def test_dlad_sends_models_and_classifiers_and_the_baseline_models_only():
    plan = planned("dlad/table2", "paper", **ONLY)
    model, classifier = (
        4 * (11_175_370 + 9_600) + 160,
        4 * (11_170_753 + 9_600) + 160,
    )  # ResNet-18 on grey images
    headers = plan.bytes_up["average-distillation"] - 10 * model
    assert 0 < headers < 10 * 20_000
    assert abs(plan.bytes_up["dlad"] - 10 * (model + classifier) - 2 * headers) < 10 * 64
    assert plan.bytes_up["standalone"] == 0


def test_absent_data_are_planned_at_their_official_size(tmp_path):
    plan = planned(
        "dlad/table2", "paper", dataset="cinic10", distribution="iid", row="client-resnet"
    )
    assert plan.work.training_samples == 10 * 50 * 20_000
    assert re.search("not present.*CINIC-10.tar.gz", plan.data["cinic10"])


FEDIOD = {"dataset": "cifar10", "alpha": "1"}


def test_averaging_sends_the_model_both_ways_in_every_round_for_the_share_of_clients():
    plan = planned("fediod/table1", "cpu", row="fedavg", **FEDIOD)
    # 20 rounds, 4 of 10 clients, ResNet-8 of 78,042 parameters and three BatchNorms each of 16, 32
    # and 64 channels.
    model = 4 * (78_042 + 2 * 3 * (16 + 32 + 64)) + 8 * 9
    assert plan.bytes_up["fedavg"] == plan.bytes_down["fedavg"]
    assert (
        0 < plan.bytes_up["fedavg"] - 20 * 4 * model < 20 * 4 * 6_000
    )  # the headers of the messages
    assert plan.distinct == {"fit": 1}


def test_fedkd_sends_its_logits_once_and_its_label_counts():
    plan = planned("fediod/table1", "paper", row="fedkd", **FEDIOD)
    assert plan.bytes_down["fedkd-gong"] == 0
    assert 0 < plan.bytes_up["fedkd-gong"] - 20 * (50_000 * 10 * 4 + 10 * 8) < 20 * 2 * 100
    # 500 local epochs over 50,000 samples, 200 of the server over the public set.
    assert plan.work.training_samples == (500 + 200) * 50_000


def test_fediod_books_every_step():
    only = planned("fediod/table1", "smoke", row="fediod", **FEDIOD)
    # Two epochs of four steps for four clients, a batch of 16 images of 8 x 8 pixels.
    images = 16 * 3 * 8 * 8 * 4
    headers = only.bytes_down["fediod"] - 2 * 4 * 4 * (images + 16 * 10 * 4 + 16 * 2 * 2 * 4)
    assert 0 < headers < 2 * 4 * 4 * 2 * 200


def test_a_cell_that_cannot_be_planned_is_named_with_its_reason():
    selection = Selection(add=("feddf",), only={"row": "feddf", "dataset": "mnist"})
    cells = expand(*registry.find_table("dlad/table2"), selection)
    why = r"feddf dataset=.* cannot be planned: .*partition\.validation_share"
    with pytest.raises(SpecError, match=why):
        make_plan(cells)


# -- what is followed once --


@pytest.mark.parametrize("name", ["fediod/table1", "fedsa/table1"])
def test_cells_followed_one_by_one_take_what_they_take_together(name, tmp_path, monkeypatch):
    """Steps, stages and parts of federations that cells share change no number."""
    paper, table = registry.find_table(name)
    only = {"fediod/table1": {"dataset": "cifar10"}, "fedsa/table1": {"fraction": "0.05"}}[name]
    wanted = "homogeneous student=resnet-34" if name == "fedsa/table1" else ""
    cells = [cell for cell in expand(paper, table, Selection(only=only)) if wanted in cell.column]
    shared = Follower()
    together = [shared.follow(cell) for cell in cells]
    for number, (cell, expected) in enumerate(zip(cells, together, strict=True)):
        monkeypatch.setenv("FEDTABLES_CACHE", str(tmp_path / str(number)))
        alone = Follower()
        assert alone.follow(cell) == expected
        assert alone.stages.items() <= shared.stages.items()


def test_a_plan_on_disk_is_the_plan_and_is_not_made_again(monkeypatch):
    paper, table = registry.find_table("dlad/table2")
    cells = expand(paper, table, Selection(only=ONLY))
    first = make_plan(cells)
    monkeypatch.setattr("fedtables.benchmarks.running.follow.fit", None)
    assert make_plan(cells) == first
    assert first.distinct["local-model"] == 10


def test_a_stage_is_counted_once_in_whatever_order_its_cells_are_added():
    paper, table = registry.find_table("dlad/table2")
    cells = expand(paper, table, Selection(only=ONLY))
    there, back = make_plan(cells), make_plan(cells[::-1])
    assert (there.work, there.distinct, there.needed) == (back.work, back.distinct, back.needed)
    assert there.bytes_sent == sum(there.bytes_up.values()) + sum(there.bytes_down.values())


def test_memory_is_of_a_cells_samples_and_of_what_needs_most_beside_them():
    stages = {
        "fit": PlannedStage("fit", Work(), Memory(100, 20), ("teacher",)),
        "teacher": PlannedStage("local-model", Work(), Memory(300, 7), ()),
    }
    plan = Plan()
    plan.add(PlannedCell("first", ("fit",), memory=Memory(50), held=Memory(1_000, 1_000)), stages)
    assert plan.memory == Memory(1_300, 1_020)
    plan.add(PlannedCell("second", ("fit",), held=Memory(900, 900)), stages)
    assert plan.memory == Memory(1_300, 1_020)
    plan.add(PlannedCell("third", ("teacher",), held=Memory(0, 2_000)), stages)
    assert plan.memory == Memory(1_300, 2_007)


def test_a_sum_counts_once_what_its_tables_share():
    paper, table = registry.find_table("dlad/table2")
    cells = expand(paper, table, Selection(only=ONLY))
    follower, total = Follower(), Plan()
    first, second = (make_plan(part, follower, (total,)) for part in (cells[:3], cells[2:]))
    both = make_plan([*cells[:3], *cells[2:]], follower)
    assert total == replace(both, sent={})  # which one table alone has
    assert total.cells == first.cells + second.cells
    assert max(first.work.flops, second.work.flops) < total.work.flops
    assert total.work.flops < first.work.flops + second.work.flops


# -- every table --

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


# -- what is not planned --


def test_attacks_are_named_with_the_most_that_they_can_take():
    plan = planned("fediod/figure4", "smoke")
    # Two clients with three images each, a message of one image, four starts at most.
    (text,) = plan.unplanned
    assert re.fullmatch(r"dlg attacks, .*: at most 24 starts of 60 iterations", text)
    assert (plan.cells, plan.unplanned[text], plan.distinct["fit"]) == (2, 1, 1)
    assert not planned("dlad/table1", "smoke").unplanned


# -- speed --

TINY = Workload("cnn-small", (1, 8, 8), 3, 4)


def test_a_plan_knows_which_networks_are_trained():
    plan = planned("dlad/table2", "smoke", **ONLY)
    by_clients, by_server = (Workload("cnn-small", (1, 8, 8), 10, size) for size in (25, 50))
    classifiers = replace(by_clients, outputs=1)
    assert set(plan.networks) == {by_clients, classifiers, by_server}  # of digits
    assert plan.workloads.total() == plan.work.flops
    # Three global models of 8 epochs on 800 public digits, three passes' work each; a pass is
    # convolutions 2 x 64 x 8 x 9 and 2 x 16 x 16 x 72, layers 2 x 64 x 32 and 2 x 32 x 10.
    forward = 2 * (64 * 8 * 9 + 16 * 16 * 72 + 64 * 32 + 32 * 10)
    assert plan.networks[by_server] == 3 * 8 * 800 * 3 * forward
    paper = planned("fediod/table1", "cpu", row="fedavg", **FEDIOD)
    # All but the looks at its rounds.
    load, held = Workload("resnet8-narrow", (3, 16, 16), 10, 64), paper.work.replayable_flops
    assert held == paper.work.flops - paper.work.look_flops
    assert paper.workloads == {(load, True): held, (load, False): paper.work.look_flops}
    penalised = planned("fediod/table1", "cpu", row="fedprox", **FEDIOD)
    assert penalised.work.replayable_flops == held


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_the_speed_is_the_work_of_a_training_on_one_core_by_its_shortest_time(monkeypatch):
    seen = []

    def trains(model, samples, training, inputs, **options):
        seen.append(
            (
                tuple(samples.images.shape),
                int(samples.targets.max()) < 3,
                training.plan.epochs,
                training.plan.batch_size,
                torch.get_num_threads(),
            )
        )
        yield from ()

    # Two trainings, of 4 and of 2 seconds.
    monkeypatch.setattr(speed, "training_steps", trains)
    monkeypatch.setattr(speed.time, "process_time", iter([0.0, 4.0, 10.0, 12.0]).__next__)
    # A sample forward: convolutions 2 x 64 x 8 x 9 and 2 x 16 x 16 x 72, layers 2 x 64 x 32 and 2 x
    # 32 x 3; trained three times.
    forward = 2 * (64 * 8 * 9 + 16 * 16 * 72 + 64 * 32 + 32 * 3)
    found = speed.training_speed(TINY, "cpu", seconds=5.0)
    assert (found.samples, found.flops) == (32 / 2, 3 * forward * 32 / 2)
    assert torch.get_num_threads() == 2
    assert seen == [((32, 1, 8, 8), True, 1, 4, 1)] * 2


@pytest.mark.parametrize(
    "load",
    [
        Workload("cnn-small+dense", (1, 8, 16), 3, 4),
        Workload("unet-narrow-3d", (1, 8, 8, 16), 2, 2),
        Workload("resnet-generator-narrow", (1, 16, 16), 3, 4),
    ],
    ids=["images", "volumes", "images of images"],
)
def test_the_speed_of_networks_that_make_maps_is_measured_too(load):
    assert speed.training_speed(load, "cpu", seconds=0.0).flops > 0
