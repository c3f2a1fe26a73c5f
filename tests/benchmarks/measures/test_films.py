"""Where networks look in films, and how well they tell findings, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from fedtables.benchmarks.measures import films as films_measure
from fedtables.benchmarks.measures.films import MEASURES, overlapping, pointing_of
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.federation.data import LabelledSet
from fedtables.federation.tasks.images import Classification, MultiLabel
from fedtables.reports.drawing.pictures import finding_names
from fedtables.results.arrays import unpack
from fedtables.results.record import Measurement


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


def looking(central, local, targets, counts=None, tasks=(None, None), task=AB):
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
        networks=SimpleNamespace(device="cpu", module=lambda checkpoint: networks[checkpoint]),
        normalise=lambda images: images,
    )


def attention_of(made, fitted, percent=1):
    run = SimpleNamespace(federation=made, fitted=fitted, percent=percent)
    taken = MEASURES["attention"].take(run)
    return taken.measurements, taken.statistic, taken.arrays


def shares(found):
    return {m.metric: m.value for m in found}


def test_shares_are_of_positions_of_all_maps_of_findings_that_films_have():
    # Finding a: local models agree on column 1 and one of them looks at 0, the other at 2; the
    # central looks at 1 and 3.
    made = looking([(1, 3), (0,)], [[(0, 1), (0,)], [(1, 2), (0,)]], [[1, 0], [0, 0]])
    found, how, _ = attention_of(made, ["server"])
    assert shares(found) == {
        "attention-in-diversity": 0.5,
        "consensus-covered": 1.0,
        "attention-empty": 0.0,
    }
    assert how == "of 1 findings of the first 2 test films, at the end of the run; maps above 0.5"
    # With the second film's finding b, at whose column all look: (4 + 4) of (8 + 4) positions.
    found, how, _ = attention_of(
        looking([(1, 3), (0,)], [[(0, 1), (0,)], [(1, 2), (0,)]], [[1, 255], [0, 1]]),
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
    found, _, _ = attention_of(
        looking([(), ()], [[(0,), (1,)], [(1,), (1,)]], [[1, 0]]), ["server"]
    )
    assert shares(found) == {"attention-empty": 1.0}  # nor is there a consensus on finding a
    found, _, _ = attention_of(
        looking([(0,), ()], [[(0,), (1,)], [(0,), (1,)]], [[1, 1]]), ["server"]
    )
    assert shares(found) == {
        "attention-in-diversity": 1.0,
        "consensus-covered": 0.5,
        "attention-empty": 0.5,
    }


def test_only_clients_that_hold_a_finding_bound_it():
    made = looking([(0,), (0,)], [[(0,), (0,)], [(3,), (3,)]], [[1, 0]], counts=[(5, 5), (0, 5)])
    found, _, packed = attention_of(made, ["server"])
    assert shares(found) == {
        "attention-in-diversity": 1.0,
        "consensus-covered": 1.0,
        "attention-empty": 0.0,
    }
    assert (unpack(packed)["diversity"][0] == 255 * np.eye(4)[[0] * 4]).all()


def test_what_is_drawn_is_of_films_with_different_findings_that_a_local_model_looks_at():
    made = looking(
        [(0,), (0,)], [[(0,), (1,)], [(0,), (1,)]], [[0, 0], [1, 0], [1, 1], [1, 1], [0, 1]]
    )
    arrays = unpack(attention_of(made, ["server"])[2])
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
    blind = looking([(0,), (0,)], [[(), (1,)], [(), (1,)]], [[1, 0], [0, 1]])
    assert unpack(attention_of(blind, ["server"])[2])["finding"].tolist() == [1, 0]
    none = looking([(0,), (0,)], [[(), ()], [(), ()]], [[1, 0], [0, 1]])
    assert unpack(attention_of(none, ["server"])[2])["finding"].tolist() == [0, 1]


def test_what_has_no_attention_to_draw_is_named():
    looks = [(0,), (0,)]
    with pytest.raises(ValueError, match="multi-label task, and the task is Classification"):
        attention_of(looking(looks, [looks] * 2, [[1, 0]], task=Classification(2)), ["server"])
    with pytest.raises(ValueError, match="the method leaves 2"):
        attention_of(looking(looks, [looks] * 2, [[1, 0]]), ["server", "server"])
    with pytest.raises(
        ValueError, match="none of the first 1 test films has a finding that a client holds"
    ):
        attention_of(looking(looks, [looks] * 2, [[1, 0]], counts=[(0, 5), (0, 5)]), ["server"])


# -- a table's records --

PAPER, TABLE = registry.find_table("fedad/figure3")


def test_findings_are_named_in_the_order_in_which_a_file_counts_them():
    config = dict(expand(PAPER, TABLE, Selection())[0].config)
    assert finding_names(config)[:2] == ["cardiomegaly", "emphysema"]
    both = finding_names({**config, "data.name": "nih-cxr14+chexpert"})
    assert (len(both), both[-2:]) == (14, ["enlarged-cardiomediastinum", "lung-opacity"])


def pointing(columns, test, tasks=(), percent=1):
    """Networks by owner; each looks at a column of 4 x 4 films for every finding that it knows."""
    federation = SimpleNamespace(
        task=AB,
        clients=[SimpleNamespace(index=k, task=task) for k, task in enumerate(tasks)],
        networks=SimpleNamespace(device="cpu", module=lambda checkpoint: columns[checkpoint.owner]),
        normalise=lambda images: images,
        evaluation=SimpleNamespace(test_set=test),
    )
    models = [SimpleNamespace(owner=owner) for owner in columns]
    return SimpleNamespace(federation=federation, models=models, percent=percent)


def films(targets, where):
    """Films 4 x 4 whose findings are in the columns `where`, (films, findings)."""
    places = torch.zeros(len(targets), 2, 4, 4, dtype=torch.bool)
    for film, columns in enumerate(where):
        for finding, column in enumerate(columns):
            places[film, finding, :, column] = True
    images = torch.zeros(len(targets), 1, 4, 4, dtype=torch.uint8)
    return LabelledSet(images, torch.tensor(targets, dtype=torch.uint8), "", places=places)


def test_accuracy_is_of_pairs_of_a_film_and_a_finding_that_it_has():
    # It looks for a in column 0, where it is in one of two films that have it, and for b in column
    # 3, where it is; a finding that is absent or not known does not count.
    test = films([[1, 0], [1, 1], [255, 1]], [(0, 0), (2, 3), (0, 3)])
    taken = pointing_of(pointing({"server": Looking([(0,), (3,)])}, test, percent=100))
    assert shares(taken.measurements) == {"pointing-accuracy": 75, "attention-empty": 0}
    assert taken.statistic == "pointing of up to 4 findings of 3 test films"


def test_a_map_that_is_zero_everywhere_is_a_miss_and_is_counted():
    test = films([[1, 1], [1, 0]], [(0, 3), (0, 3)])
    taken = pointing_of(pointing({"server": Looking([(0,), ()])}, test))
    assert shares(taken.measurements) == {
        "pointing-accuracy": pytest.approx(2 / 3),
        "attention-empty": pytest.approx(1 / 3),
    }


def test_of_several_networks_it_is_the_mean_each_of_the_findings_that_it_knows():
    test = films([[1, 1]], [(0, 3)])
    columns = {"client-0": Looking([(0,), (0,)]), "client-1": Looking([(3,)])}
    taken = pointing_of(pointing(columns, test, tasks=(None, MultiLabel(("b",)))))
    assert shares(taken.measurements)["pointing-accuracy"] == 0.75  # 1 of 2, and 1 of 1


def test_films_without_places_or_without_a_known_finding_are_refused():
    columns, tasks = {"client-0": Looking([(0,)])}, (MultiLabel(("b",)),)
    test = films([[1, 0]], [(0, 0)])
    with pytest.raises(ValueError, match="has a finding that client-0 knows"):
        pointing_of(pointing(columns, test, tasks))
    unknown = LabelledSet(test.images, test.targets, "")
    with pytest.raises(ValueError, match="at which pixels a finding is"):
        pointing_of(pointing(columns, unknown, tasks))


FILMS = torch.arange(4, dtype=torch.uint8).view(4, 1, 1, 1).expand(4, 1, 2, 2)
"""Film i has pixels of i / 255."""


def site(*columns):
    """A test set of four films with the targets of each finding."""
    return LabelledSet(FILMS, torch.tensor(columns, dtype=torch.uint8).T, "")


def telling(task, outputs, clients=()):
    """Models, by owner, whose outputs for film i are row i of a table."""

    def module(checkpoint):
        table = torch.tensor(outputs[checkpoint.owner])
        network = torch.nn.Identity()
        network.forward = lambda images: table[(images[:, 0, 0, 0] * 255).round().long()]
        return network

    networks = SimpleNamespace(module=module)
    return SimpleNamespace(
        task=task,
        networks=networks,
        clients=clients,
        normalise=lambda images: images,
        owners=list(outputs),
    )


@pytest.fixture
def aucs_by_finding(monkeypatch):
    """What is taken of models on a test set of these findings, where others label `overlap`."""

    def take(made, test, findings, overlap, name):
        monkeypatch.setattr(films_measure, "tested", lambda run: (test, list(findings), name))
        run = SimpleNamespace(
            federation=made,
            models=[SimpleNamespace(owner=owner) for owner in made.owners],
            config={"findings.all": "+".join(overlap)},
            percent=1,
        )
        return MEASURES["findings"].take(run)

    return take


def server(task, table):
    return telling(task, {"server": table})


def test_every_shared_finding_has_an_auc_and_the_means_are_over_these(aucs_by_finding):
    # a: both positives above both negatives; b: of four pairs one is in order.
    made = server(AB, [[0.0, 2.0], [1.0, 1.0], [2.0, 3.0], [3.0, 0.0]])
    test = site([0, 0, 1, 1], [1, 1, 0, 0])
    taken = aucs_by_finding(made, test, ("a", "b"), ["a"], "here")
    assert taken.measurements == (
        Measurement("auc", 1.0, "class=a", 1, 1),
        Measurement("auc", 0.5, "class=b", 1, 1),
        Measurement("num-classes", 2.0, "class=all"),
        Measurement("mauc", 1.0, "class=overlap", 1, 1),
        Measurement("mauc", 0.75, "class=total", 2, 2),
    )
    assert (
        taken.statistic == "AUC on 4 test films of here, after training; films with each: a 2, b 2"
    )


def test_a_finding_without_both_kinds_has_no_number_and_is_named_with_its_counts(aucs_by_finding):
    made = server(MultiLabel(("a", "b", "c", "d")), [[float(i)] * 4 for i in range(4)])
    test = site([0, 0, 1, 1], [0, 0, 0, 255], [1, 1, 1, 1], [255] * 4)
    taken = aucs_by_finding(made, test, ("a", "b", "c", "d"), ["a", "b"], "here")
    assert taken.measurements == (
        Measurement("auc", 1.0, "class=a", 1, 1),
        Measurement("num-classes", 1.0, "class=all"),
        Measurement("mauc", 1.0, "class=overlap", 1, 2),
        Measurement("mauc", 1.0, "class=total", 1, 4),
    )
    assert taken.statistic.endswith(
        "; films with each: a 2; no AUC, and no part in the means: b (0 of 3 films), c (4 of 4"
        " films), d (not labelled)"
    )


def test_a_model_that_lacks_findings_of_the_test_set_has_no_total(aucs_by_finding):
    made = server(AB, [[float(i), 0.0] for i in range(4)])
    test = site([1, 1, 0, 0], [0, 0, 1, 1])  # of z and a: outputs are placed by name
    taken = aucs_by_finding(made, test, ("z", "a"), ["a"], "there")
    assert taken.measurements == (
        Measurement("auc", 1.0, "class=a", 1, 1),
        Measurement("num-classes", 1.0, "class=all"),
        Measurement("mauc", 1.0, "class=overlap", 1, 1),
    )
    # What the model does not know is no gap of the test set.
    assert taken.statistic == "AUC on 4 test films of there, after training; films with each: a 2"


def test_local_models_are_averaged_finding_by_finding_each_with_its_own_label_set(aucs_by_finding):
    own = MultiLabel(("b", "a"))
    clients = (SimpleNamespace(index=0, task=own), SimpleNamespace(index=1, task=None))
    tables = {
        "client-0": [[0.0, float(i)] for i in range(4)],
        "client-1": [[float(-i), 0.0] for i in range(4)],
    }
    made = telling(AB, tables, clients)
    taken = aucs_by_finding(made, site([0, 0, 1, 1]), ("a",), ["a"], "here")
    assert taken.measurements[0] == Measurement(
        "auc", 0.5, "class=a", 2, 2
    )  # 1 by the first, 0 by the second
    assert taken.statistic.startswith(
        "AUC on 4 test films of here, after training, mean over models;"
    )


def test_what_has_no_auc_at_all_is_said(aucs_by_finding):
    made = server(AB, [[0.0, 0.0]] * 4)
    with pytest.raises(ValueError, match="no finding has films of here both with and without it"):
        aucs_by_finding(made, site([0, 0, 0, 0]), ("a",), [], "here")
    made = server(Classification(2), [[0.0, 0.0]] * 4)
    with pytest.raises(
        ValueError, match="AUC by finding is of a multi-label task, and the task is Classification"
    ):
        aucs_by_finding(made, site([0, 0, 1, 1]), ("a",), [], "here")


def test_findings_overlap_that_all_sites_label():
    config = {
        "findings.one": "a+b+c",
        "findings.two": "c+d+a",
        "findings.uncertain": "zeros",
        "data.name": "one",
    }
    assert overlapping(config) == ["a", "c"]
