"""A user's own settings are tried before anything runs."""

import importlib.metadata
import re
from dataclasses import replace

import pytest

from fedtables.benchmarks.running.trial import check_cells, try_settings
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand, unread
from fedtables.benchmarks.tables.readers import read_settings
from fedtables.benchmarks.tables.selection import Selection, typed_settings
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.models import weight_files
from fedtables.models.weight_files import needed
from fedtables.results.files import DataError

TABLE = registry.find_table("dlad/table2")
COLUMN = {"dataset": "mnist", "distribution": "niid1"}


def tried(*pairs: str, rows: str = "global-avg,global-dlad") -> list[str]:
    """The settings that are not read."""
    overrides = typed_settings(read_settings(pairs), TABLE[0])
    selection = Selection(only={**COLUMN, "row": rows}, overrides=overrides)
    cells = expand(*TABLE, selection)
    try_settings(cells, selection)
    return unread(cells, overrides)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("local.epochs=0", "epochs and batch_size must be at least 1"),
        ("local.optimizer=[/red]", r"unknown optimizer '\[/red\]'"),
        ("network.resnet=nosuch", "network.resnet"),
        ("data.image_size=0", "data.image_size is a number from 1"),
        ("data.image_size=2", "cnn-small takes sides from 4 pixels, not 2 x 2"),
        ("data.image_size=100000", "data.image_size is a number from 1, at most 4096"),
        ("partition.public_share=2", "partition.public_share is a number from 0, at most 1"),
        ("evaluation.settled=0", "evaluation.settled is a number above 0"),
        ("dlad.classifier_epochs=0", "dlad.classifier_epochs is a number from 1"),
        # What no cell reads:
        ("feddf.participation=0", "feddf.participation is a number above 0"),
        ("privacy.mechanism=foo", "--set privacy.mechanism=foo: .*dp-sgd"),
        ("privacy.delta=2", "delta is a number above 0, at most 1, not 2"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_reason(pair, message):
    with pytest.raises(SpecError, match=message):
        tried(pair)


def test_settings_that_no_row_reads_are_known():
    assert tried("local.epochs=2") == []
    assert tried("dlad.temperature=1", rows="global-avg") == ["dlad.temperature"]
    assert tried("dlad.temperature=1", "fedavg.rounds=3") == ["fedavg.rounds"]


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "-1", "1e30", "1_0", "9" * 40, "\u0661"])
@pytest.mark.parametrize("name", ["local.epochs", "local.lr", "fedavg.rounds", "fedprox.mu"])
def test_infinite_negative_and_astronomic_numbers_are_no_settings(name, value):
    with pytest.raises(SpecError, match=f"--set {name}=.*number from 0, at most"):
        typed_settings(read_settings([f"{name}={value}"]), TABLE[0])


def test_every_cell_is_read_before_the_first_runs():
    """As of a table of a user's own, whose settings nobody gave with `--set`."""
    cells = expand(*TABLE, Selection(only={**COLUMN, "row": "global-avg,global-dlad"}))
    check_cells(cells)
    wrong = {**dict(cells[1].config), "partition.kind": "dirichlet"}
    with pytest.raises(SpecError, match=r"global-dlad .*partition\.kind cannot be 'dirichlet'"):
        check_cells([cells[0], replace(cells[1], config=tuple(wrong.items()))])


def test_the_papers_profile_refuses_stand_ins_unless_it_is_told_to_take_them():
    random_weights = (("network.pretrained", "none"),)
    paper, cpu = (
        expand(*TABLE, Selection(profile=profile, only=COLUMN, overrides=random_weights))[:1]
        for profile in ("paper", "cpu")
    )
    told = "takes official data, and .* has mnist stand-in: .*--download mnist.* With --stand-ins"
    with pytest.raises(DataError, match=told):
        check_cells(paper)
    check_cells(paper, stand_ins=True)
    check_cells(cpu)


@pytest.mark.parametrize(
    ("table", "name"), [("dlad/table2", "resnet18"), ("fediod/table3", "vgg16")]
)
def test_weights_that_a_table_needs_are_told_before_anything_runs(table, name):
    cells = expand(*registry.find_table(table), Selection(profile="paper"))
    needing = [cell for cell in cells if weight_files.FILES[name] in needed(dict(cell.config))]
    command = f"which is absent. Run `fedtables data --download {name}`, or download https"
    with pytest.raises(DataError, match=re.escape(command)):
        check_cells(needing[:1], stand_ins=True)
    file = weight_files.FILES[name]
    file.path.parent.mkdir(parents=True)
    file.path.write_bytes(b"is read when a cell runs")
    check_cells(needing[:1], stand_ins=True)


def test_weights_whose_package_is_not_installed_are_told_before_anything_runs(monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    cells = expand(*registry.find_table("fediod/table7"), Selection())
    first = expand(*TABLE, Selection(only=COLUMN))
    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(DataError, match="not installed"):
        check_cells(cells[:1])
    check_cells(first)  # which have no use for them
