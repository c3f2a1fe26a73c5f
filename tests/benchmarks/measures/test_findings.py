"""FedAD's Table 1: the AUC of each finding that models and test set share, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from benchmarks.measures.films import aucs_by_finding, overlapping
from federation.data import LabelledSet
from federation.tasks.classification import Classification
from federation.tasks.multi_label import MultiLabel
from results.record import Measurement

FILMS = torch.arange(4, dtype=torch.uint8).view(4, 1, 1, 1).expand(4, 1, 2, 2)
"""Film i has pixels of i / 255."""


def site(*columns):
    """A test set of four films with the targets of each finding."""
    return LabelledSet(FILMS, torch.tensor(columns, dtype=torch.uint8).T, "")


def federation(task, outputs, clients=()):
    """Models, by owner, whose outputs for film i are row i of a table."""

    def module(checkpoint):
        table = torch.tensor(outputs[checkpoint.owner])
        network = torch.nn.Identity()
        network.forward = lambda images: table[(images[:, 0, 0, 0] * 255).round().long()]
        return network

    networks = SimpleNamespace(module=module)
    return SimpleNamespace(
        task=task, networks=networks, clients=clients, normalise=lambda images: images
    )


def server(task, table):
    return federation(task, {"server": table}), [SimpleNamespace(owner="server")]


AB = MultiLabel(("a", "b"))


def test_every_shared_finding_has_an_auc_and_the_means_are_over_these():
    # a: both positives above both negatives; b: of four pairs one is in order.
    made, fitted = server(AB, [[0.0, 2.0], [1.0, 1.0], [2.0, 3.0], [3.0, 0.0]])
    test = site([0, 0, 1, 1], [1, 1, 0, 0])
    found, how = aucs_by_finding(made, fitted, test, ("a", "b"), ["a"], "here")
    assert found == (
        Measurement("auc", 1.0, "class=a", 1, 1),
        Measurement("auc", 0.5, "class=b", 1, 1),
        Measurement("num-classes", 2.0, "class=all"),
        Measurement("mauc", 1.0, "class=overlap", 1, 1),
        Measurement("mauc", 0.75, "class=total", 2, 2),
    )
    assert how == "AUC on 4 test films of here, after training; films with each: a 2, b 2"


def test_a_finding_without_both_kinds_has_no_number_and_is_named_with_its_counts():
    made, fitted = server(MultiLabel(("a", "b", "c", "d")), [[float(i)] * 4 for i in range(4)])
    test = site([0, 0, 1, 1], [0, 0, 0, 255], [1, 1, 1, 1], [255] * 4)
    found, how = aucs_by_finding(made, fitted, test, ("a", "b", "c", "d"), ["a", "b"], "here")
    assert found == (
        Measurement("auc", 1.0, "class=a", 1, 1),
        Measurement("num-classes", 1.0, "class=all"),
        Measurement("mauc", 1.0, "class=overlap", 1, 2),
        Measurement("mauc", 1.0, "class=total", 1, 4),
    )
    assert how.endswith(
        "; films with each: a 2; no AUC, and no part in the means: b (0 of 3 films), c (4 of 4"
        " films), d (not labelled)"
    )


def test_a_model_that_lacks_findings_of_the_test_set_has_no_total():
    made, fitted = server(AB, [[float(i), 0.0] for i in range(4)])
    test = site([1, 1, 0, 0], [0, 0, 1, 1])  # of z and a: outputs are placed by name
    found, how = aucs_by_finding(made, fitted, test, ("z", "a"), ["a"], "there")
    assert found == (
        Measurement("auc", 1.0, "class=a", 1, 1),
        Measurement("num-classes", 1.0, "class=all"),
        Measurement("mauc", 1.0, "class=overlap", 1, 1),
    )
    # What the model does not know is no gap of the test set.
    assert how == "AUC on 4 test films of there, after training; films with each: a 2"


def test_local_models_are_averaged_finding_by_finding_each_with_its_own_label_set():
    own = MultiLabel(("b", "a"))
    clients = (SimpleNamespace(index=0, task=own), SimpleNamespace(index=1, task=None))
    tables = {
        "client-0": [[0.0, float(i)] for i in range(4)],
        "client-1": [[float(-i), 0.0] for i in range(4)],
    }
    made = federation(AB, tables, clients)
    fitted = [SimpleNamespace(owner=f"client-{k}") for k in range(2)]
    found, how = aucs_by_finding(made, fitted, site([0, 0, 1, 1]), ("a",), ["a"], "here")
    assert found[0] == Measurement("auc", 0.5, "class=a", 2, 2)  # 1 by the first, 0 by the second
    assert how.startswith("AUC on 4 test films of here, after training, mean over models;")


def test_what_has_no_auc_at_all_is_said():
    made, fitted = server(AB, [[0.0, 0.0]] * 4)
    with pytest.raises(ValueError, match="no finding has films of here both with and without it"):
        aucs_by_finding(made, fitted, site([0, 0, 0, 0]), ("a",), [], "here")
    made, fitted = server(Classification(2), [[0.0, 0.0]] * 4)
    with pytest.raises(ValueError, match="multi-label tasks, and the task is Classification"):
        aucs_by_finding(made, fitted, site([0, 0, 1, 1]), ("a",), [], "here")


def test_findings_overlap_that_all_sites_label():
    config = {
        "findings.one": "a+b+c",
        "findings.two": "c+d+a",
        "findings.uncertain": "zeros",
        "data.name": "one",
    }
    assert overlapping(config) == ["a", "c"]
