"""Images that are made, and what is seen in images, by hand."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

from benchmarks.measures.images import MEASURES, segmented
from benchmarks.reporting.printing import print_table
from benchmarks.reporting.writing import write_table
from benchmarks.running.events import record_of
from benchmarks.running.table_run import TableRun
from benchmarks.tables import registry
from benchmarks.tables.expansion import expand
from benchmarks.tables.selection import Selection
from federation.client import Client, Shard
from federation.data import LabelledSet
from federation.tasks.classification import Classification
from federation.tasks.segmentation import Segmentation
from reports.drawing import pictures
from reports.kinds.pictures import class_names
from results.arrays import pack, unpack
from results.frame import read_records
from results.record import Measurement
from results.store import TableFiles


def client_of(index, brightness):
    images = torch.full((3, 3, 2, 2), brightness, dtype=torch.uint8)
    targets = torch.arange(12).view(3, 2, 2) + index
    return Client(index, "x", "x", Shard(images, targets), (), f"{index}")


def made_run(made):
    federation = SimpleNamespace(clients=[client_of(0, 100), client_of(1, 200)])
    fitted = [SimpleNamespace(samples=made)]
    return SimpleNamespace(federation=federation, fitted=fitted, name="mine")


def test_the_first_of_each_client_is_kept_and_how_far_all_are_apart():
    made = torch.full((4, 3, 2, 2), 151, dtype=torch.uint8)  # two of each client
    taken = MEASURES["synthesis"].take(made_run(made))
    [apart] = taken.measurements
    assert apart.metric == "mean-absolute-error"
    assert apart.value == pytest.approx((51 + 49) / 2 / 255)
    shown = unpack(taken.arrays)
    assert shown["image/client 2"].max() == 200
    assert shown["target/client 2"].tolist() == [[1, 2], [3, 4]]
    assert shown["made/client 1"].max() == 151


@pytest.mark.parametrize("made", [None, torch.zeros(3, 3, 2, 2)])
def test_a_method_that_kept_no_images_is_refused(made):
    with pytest.raises(ValueError, match=r"mine kept no images.*set mine\.samples above 0"):
        MEASURES["synthesis"].take(made_run(made))


class Thresholds(nn.Module):
    """Class 1 where a pixel is above 0.5, else class 0; never class 2."""

    def forward(self, images):
        bright = (images > 0.5).float()
        return torch.cat([1 - bright, bright, torch.full_like(bright, -1.0)], dim=1)


def federation(task=None, images=6):
    """Images of 1 x 2 pixels: dark, bright. The truth says so of the first two, but of the other
    images all is class 2.
    """
    pixels = torch.tensor([0, 255], dtype=torch.uint8).expand(images, 1, 1, 2)
    target = torch.full((images, 1, 2), 2)
    target[:2] = torch.tensor([[0, 1]])
    target[3:4] = 255
    return SimpleNamespace(
        task=task or Segmentation(3),
        evaluation=SimpleNamespace(test_set=LabelledSet(pixels, target, "")),
        networks=SimpleNamespace(module=lambda checkpoint: Thresholds()),
        normalise=lambda images: images,
    )


def test_a_cell_measures_the_first_four_test_images_and_leaves_what_is_drawn_of_them():
    (found,), how, packed = segmented(federation(), ["the one checkpoint"])
    # Classes 0 and 1: two of three pixels, for the fourth image is not labelled; class 2: none.
    assert (found.metric, found.value) == ("miou", pytest.approx((2 / 3 + 2 / 3 + 0) / 3))
    assert how == "of the 4 test images shown, at the end of the run"
    arrays = unpack(packed)
    assert {name: (array.shape, array.dtype) for name, array in arrays.items()} == {
        "images": ((4, 1, 1, 2), np.uint8),
        "target": ((4, 1, 2), np.uint8),
        "predicted": ((4, 1, 2), np.uint8),
    }
    assert arrays["target"][:, 0].tolist() == [[0, 1], [0, 1], [2, 2], [255, 255]]
    assert arrays["predicted"][:, 0].tolist() == [[0, 1]] * 4
    assert arrays["images"][0].ravel().tolist() == [0, 255]


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(ValueError, match="a class per pixel, and the task is Classification"):
        segmented(federation(Classification(3)), ["the one checkpoint"])
    with pytest.raises(ValueError, match="one network predicts, and the method leaves 2"):
        segmented(federation(), ["client 1", "client 2"])


# -- a table's records --

PAPER, TABLE = registry.find_table("fedsa/figure3")
SEEDS = Selection(seeds=(1, 2))


def finished(cell, predicted, **changes):
    """A cell's record, whose images are as bright as its seed and whose network sees one class
    everywhere.
    """
    maps = {
        "images": np.full((4, 3, 2, 2), cell.seed),
        "target": np.ones((4, 2, 2)),
        "predicted": np.full((4, 2, 2), predicted),
    }
    record = record_of(
        cell,
        measurements=(Measurement("miou", 0.25),),
        arrays=pack({name: array.astype(np.uint8) for name, array in maps.items()}),
    )
    return replace(record, **changes)


def records_of(selection, **predicted):
    """Records of the rows named, by class."""
    return [
        finished(cell, predicted[cell.row])
        for cell in expand(PAPER, TABLE, selection)
        if cell.row in predicted
    ]


@pytest.mark.parametrize(
    ("used", "first", "count"), [("scenes", "wall", 8), ("taskonomy", "background", 17)]
)
def test_every_class_of_a_pixel_has_a_name(used, first, count):
    names = class_names(used)
    assert (names[0], len(set(names))) == (first, count)


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """Prints the figure as if its cells had left these records; returns the run, what is shown and
    the pictures drawn.
    """
    monkeypatch.setattr(TableRun, "all_records", lambda run: list(run.records.values()))
    drawn = []

    def draw(lines, titles, path, *rest):
        drawn.append((lines, titles, *rest))
        path.write_bytes(b"png")

    monkeypatch.setattr(pictures, "image_grid", draw)

    def show(records):
        run = TableRun(
            PAPER,
            TABLE,
            Selection(),
            expand(PAPER, TABLE, Selection()),
            TableFiles(tmp_path, "smoke", "fedsa/figure3"),
        )
        run.records = {record.cell: record for record in records}
        console = Console(file=io.StringIO(), width=200)
        print_table(console, run, write_table(run))
        return run, console.file.getvalue(), drawn

    return show


def test_the_picture_has_what_each_row_sees_of_every_image(shown):
    records = records_of(Selection(), transfer=0, fedsa=1)
    _, text, ((lines, titles, about, classes),) = shown(records)
    assert titles == ["input", "ground truth", "Transfer †", "FedSA"]
    assert [len(images) for _, images, _ in lines] == [4] * 4
    assert [patch.get_label() for patch in classes] == ["wall", "floor"]
    assert about.title == "Figure 3"
    assert any("taskonomy stand-in: generated scenes" in label for label in about.labels)
    assert "of the test images in the picture alone" in text


def test_it_is_drawn_again_when_a_prediction_changes_though_no_number_does(shown):
    for predicted in (0, 0, 1):
        *_, drawn = shown(records_of(Selection(), fedsa=predicted))
    assert len(drawn) == 2


# -- from the command line --


@pytest.fixture(scope="module")
def figure(tmp_path_factory, shared_command):
    """Two rows; then, the picture being lost, a command for one of them."""
    results = tmp_path_factory.mktemp("figure3")
    common = (
        "benchmarks",
        "reproduce",
        "fedsa/figure3",
        "--jobs",
        "1",
        "--results",
        str(results),
        "--only",
    )
    folder = results / "smoke" / "fedsa"
    first = shared_command(*common, "row=scratch,pseudo-label")
    assert first.returncode == 0, first.stdout[-2000:] + first.stderr
    before = (folder / "figure3.png").read_bytes()
    (folder / "figure3.png").unlink()
    second = shared_command(*common, "row=scratch")
    assert second.returncode == 0, second.stdout[-2000:] + second.stderr
    return folder, second.stdout, before


def test_what_is_drawn_is_what_was_measured(figure):
    records = read_records(figure[0] / "figure3.records.jsonl")
    made = {record.row: unpack(record.arrays) for record in records}
    for arrays in made.values():
        assert {name: array.shape for name, array in arrays.items()} == {
            "images": (4, 3, 16, 16),
            "target": (4, 16, 16),
            "predicted": (4, 16, 16),
        }
    with (figure[0] / "figure3.csv").open(newline="") as stream:
        measured = {
            line["row"]: (line["metric"], float(line["value"])) for line in csv.DictReader(stream)
        }
    assert made.keys() == {"scratch", "pseudo-label"}
    for row, arrays in made.items():
        seen, target = arrays["predicted"], arrays["target"]
        both = [((seen == c) & (target == c)).sum() for c in range(8)]
        either = [((seen == c) | (target == c)).sum() for c in range(8)]
        ious = [b / e for b, e in zip(both, either, strict=True) if e]
        assert measured[row] == ("miou", pytest.approx(sum(ious) / len(ious)))
