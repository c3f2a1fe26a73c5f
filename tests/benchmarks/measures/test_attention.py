"""FedAD's Figure 3: where networks look, by hand, and what a record leaves of it for the
picture.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.measures import films
from benchmarks.tables import registry
from benchmarks.tables.expansion import expand
from benchmarks.tables.selection import Selection
from federation.data import LabelledSet
from federation.tasks.classification import Classification
from federation.tasks.multi_label import MultiLabel
from reports.kinds.pictures import finding_names
from results.arrays import unpack


class Looking(nn.Module):
    """Looks, for finding c, at the pixels of the columns c: its features are one-hot maps of the
    columns, each a channel.
    """

    def __init__(self, columns, width=4):
        super().__init__()
        weight = torch.zeros(len(columns), width)
        for finding, chosen in enumerate(columns):
            weight[finding, list(chosen)] = 1.0
        self.head = nn.Linear(width, len(columns), bias=False)
        self.head.weight = nn.Parameter(weight)

    def forward_features(self, images):
        return torch.eye(4)[None, :, None, :].expand(len(images), 4, 4, 4).contiguous()

    def forward_head(self, features):
        return self.head(features.mean(dim=(2, 3)))

    def forward(self, images):
        return self.forward_head(self.forward_features(images))


AB = MultiLabel(("a", "b"))


def federation(central, local, targets, counts=None, tasks=(None, None), task=AB):
    """Films of 4 x 4 pixels; `central` and each of `local` are the columns that a network looks at,
    by finding.
    """
    networks = {
        "server": Looking(central),
        **{k: Looking(columns) for k, columns in enumerate(local)},
    }
    clients = [
        SimpleNamespace(index=k, task=tasks[k], label_counts=(counts or [(5, 5)] * 2)[k])
        for k in range(len(local))
    ]
    targets = torch.tensor(targets, dtype=torch.uint8)
    films = torch.arange(len(targets), dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 4, 4)
    return SimpleNamespace(
        task=task,
        clients=clients,
        evaluation=SimpleNamespace(test_set=LabelledSet(films, targets, "")),
        local_models=lambda: list(range(len(local))),
        networks=SimpleNamespace(module=lambda checkpoint: networks[checkpoint]),
        normalise=lambda images: images,
    )


def shares(found):
    return {m.metric: m.value for m in found}


def test_shares_are_of_positions_of_all_maps_of_findings_that_films_have():
    # Finding a: local models agree on column 1 and one of them looks at 0, the other at 2; the
    # central looks at 1 and 3.
    made = federation([(1, 3), (0,)], [[(0, 1), (0,)], [(1, 2), (0,)]], [[1, 0], [0, 0]])
    found, how, _ = films.attention_of(made, ["server"])
    assert shares(found) == {
        "attention-in-diversity": 0.5,
        "consensus-covered": 1.0,
        "attention-empty": 0.0,
    }
    assert how == "of 1 findings of the first 2 test films, at the end of the run; maps above 0.5"
    # With the second film's finding b, at whose column all look: (4 + 4) of (8 + 4) positions.
    found, how, _ = films.attention_of(
        federation([(1, 3), (0,)], [[(0, 1), (0,)], [(1, 2), (0,)]], [[1, 255], [0, 1]]),
        ["server"],
        100,
    )
    assert shares(found) == {
        "attention-in-diversity": pytest.approx(200 / 3),
        "consensus-covered": 100,
        "attention-empty": 0,
    }
    assert how.startswith("of 2 findings")


def test_a_share_of_nothing_is_left_out_and_maps_without_attention_are_counted():
    found, _, _ = films.attention_of(
        federation([(), ()], [[(0,), (1,)], [(1,), (1,)]], [[1, 0]]), ["server"]
    )
    assert shares(found) == {"attention-empty": 1.0}  # nor is there a consensus on finding a
    found, _, _ = films.attention_of(
        federation([(0,), ()], [[(0,), (1,)], [(0,), (1,)]], [[1, 1]]), ["server"]
    )
    assert shares(found) == {
        "attention-in-diversity": 1.0,
        "consensus-covered": 0.5,
        "attention-empty": 0.5,
    }


def test_only_clients_that_hold_a_finding_bound_it():
    made = federation([(0,), (0,)], [[(0,), (0,)], [(3,), (3,)]], [[1, 0]], counts=[(5, 5), (0, 5)])
    found, _, packed = films.attention_of(made, ["server"])
    assert shares(found) == {
        "attention-in-diversity": 1.0,
        "consensus-covered": 1.0,
        "attention-empty": 0.0,
    }
    assert (unpack(packed)["diversity"][0] == 255 * np.eye(4)[[0] * 4]).all()


def test_what_is_drawn_is_of_films_with_different_findings_that_a_local_model_looks_at():
    made = federation(
        [(0,), (0,)], [[(0,), (1,)], [(0,), (1,)]], [[0, 0], [1, 0], [1, 1], [1, 1], [0, 1]]
    )
    arrays = unpack(films.attention_of(made, ["server"])[2])
    assert {name: (array.shape, array.dtype) for name, array in arrays.items()} == {
        "images": ((2, 1, 4, 4), np.uint8),
        "finding": ((2,), np.uint8),
        "local": ((2, 2, 4, 4), np.uint8),
        "consensus": ((2, 4, 4), np.uint8),
        "diversity": ((2, 4, 4), np.uint8),
        "central": ((2, 4, 4), np.uint8),
    }
    assert arrays["finding"].tolist() == [0, 1]
    assert arrays["images"][:, 0, 0, 0].tolist() == [1, 2]
    assert (arrays["central"][0] == 255 * np.eye(4)[[0] * 4]).all()
    # Of finding a nobody has a map, so its film comes last; if that is so of all, they are shown
    # all the same.
    blind = federation([(0,), (0,)], [[(), (1,)], [(), (1,)]], [[1, 0], [0, 1]])
    assert unpack(films.attention_of(blind, ["server"])[2])["finding"].tolist() == [1, 0]
    none = federation([(0,), (0,)], [[(), ()], [(), ()]], [[1, 0], [0, 1]])
    assert unpack(films.attention_of(none, ["server"])[2])["finding"].tolist() == [0, 1]


def test_what_cannot_be_drawn_is_named():
    looks = [(0,), (0,)]
    with pytest.raises(ValueError, match="multi-label task, and the task is Classification"):
        films.attention_of(
            federation(looks, [looks] * 2, [[1, 0]], task=Classification(2)), ["server"]
        )
    with pytest.raises(ValueError, match="the method leaves 2"):
        films.attention_of(federation(looks, [looks] * 2, [[1, 0]]), ["server", "server"])
    with pytest.raises(
        ValueError, match="none of the first 1 test films has a finding that a client holds"
    ):
        films.attention_of(
            federation(looks, [looks] * 2, [[1, 0]], counts=[(0, 5), (0, 5)]), ["server"]
        )


# -- a table's records --

PAPER, TABLE = registry.find_table("fedad/figure3")


def test_findings_are_named_in_the_order_in_which_a_file_counts_them():
    config = dict(expand(PAPER, TABLE, Selection())[0].config)
    assert finding_names(config)[:2] == ["cardiomegaly", "emphysema"]
    both = finding_names({**config, "data.name": "nih-cxr14+chexpert"})
    assert (len(both), both[-2:]) == (14, ["enlarged-cardiomediastinum", "lung-opacity"])
