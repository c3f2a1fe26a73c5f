"""FedSA's tables: the paper's settings in their cells."""

import pytest

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import PROFILES

PAPER = registry.papers()["fedsa"]


def cells(table, **changes):
    return expand(PAPER, next(t for t in PAPER.tables if t.key == table), Selection(**changes))


@pytest.mark.parametrize("profile", PROFILES)
def test_the_weak_target_of_table_3_learns_as_fedsas_does(profile):
    (selecting,) = cells("figure4a", profile=profile, only={"dataset": "cifar10"})
    weak = {
        name: value
        for name, value in selecting.config
        if name.startswith(("server.", "fedsa.weak", "augmentation."))
    }
    del weak["server.epochs"]  # the weak target has its own
    for cell in cells("table3", profile=profile, only={"dataset": "cifar10"}):
        assert weak.items() <= dict(cell.config).items()


@pytest.mark.parametrize("profile", PROFILES[:-1])
def test_the_released_rates_and_transforms_are_not_reduced(profile):
    names = (
        "server.lr",
        "fedsa.local_lr",
        "local.lr",
        "augmentation.crop",
        "augmentation.rotation",
        "fedsa.selected",
    )
    reduced, full = (
        dict(cells("table1", profile=p, protocol="released", only={"row": "fedsa"})[0].config)
        for p in (profile, "paper")
    )
    assert {name: reduced[name] for name in names} == {name: full[name] for name in names}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("fraction", ["0.01", "0.05", "0.10", "1.00"])
def test_rows_have_one_budget_of_probe_epochs(profile, fraction):
    """Before selections and in adaptation FedSA's target has as many as Scratch, and so have the
    other federated rows.
    """
    rows = {
        "row": "scratch,fedsa,fedavg+,fedprox+,fedmd+",
        "fraction": fraction,
        "student": "resnet-34",
        "dataset": "cifar10",
    }
    epochs = {}
    for cell in cells("table1", profile=profile, only=rows):
        config, name = dict(cell.config), cell.method
        if name == "scratch":
            epochs[name] = config["server.epochs"]
        elif name == "fedmd-plus":
            epochs[name] = config[f"{name}.rounds"] * config[f"{name}.revisit_epochs"]
        else:
            visits = (
                -(-config["fedsa.rounds"] // config["fedsa.selection_gap"])
                if name == "fedsa"
                else 1
            )
            epochs[name] = (
                visits * config[f"{name}.weak_epochs"] + config[f"{name}.adaptation_epochs"]
            )
    whole = fraction == "1.00" and profile != "paper"
    assert len(epochs) == 5
    assert (
        len({count for name, count in epochs.items() if name != "fedmd-plus" or not whole}) == 1
    ), epochs
