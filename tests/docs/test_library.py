"""The examples of docs/howto/own-script.md run as they are, one after another as in a notebook."""

import re

import numpy as np
import pytest
from torch import nn

from fedtables.results.sourcecode import ROOT

BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "own-script.md").read_text(), re.DOTALL
)


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """The names that the blocks with these words have left, each run after those before it."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        names = {}
        for word in words:
            [block] = [block for block in BLOCKS if word in block]
            exec(block, names)
        return names

    return run


def test_a_federation_of_own_tensors_is_fitted_by_both_methods(shown, tmp_path):
    names = shown("FedIOD(", "def perceptron")
    history = names["averaged"].history["accuracy"]
    assert len(history) == 3
    assert history[-1] > 0.5
    assert {"up/logits", "down/images"} <= {*names["federation"].channel.by_kind()}
    assert isinstance(names["model"], nn.Module)
    assert (tmp_path / "model.pt").is_file()
    assert isinstance(names["other"].networks.initial()[1], nn.Linear)


def test_a_partition_feeds_loaders_with_every_sample_once(shown):
    names = shown("DataLoader")
    assert sorted(np.concatenate(names["parts"]).tolist()) == list(range(len(names["labels"])))
    images, classes = next(iter(names["loaders"][0]))
    assert images.shape[1:] == (64,)
    assert {*classes.tolist()} <= {*range(10)}


def test_ledger_accountant_and_metrics_work_by_themselves(shown):
    names = shown("Accountant(")
    weights = 10 * 3 * 4 + 3 * 4
    assert weights < names["channel"].total("up") < weights + 200
    assert {*names["received"]} == {"weight", "bias"}
    assert 1.0 < names["accountant"].epsilon() < 8.0
    assert names["noise"] > 1.0
    assert names["measured"](names["Accuracy"](), names["scores"], names["truth"]) == (
        pytest.approx({"accuracy": 2 / 3})
    )


def test_no_example_is_left_out():
    assert len(BLOCKS) == 4
