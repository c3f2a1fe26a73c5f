"""What a measure is given of a fitted federation, and of how many values a mean is."""

import math
from dataclasses import fields
from types import SimpleNamespace

import pytest

from fedtables.benchmarks.tables.measure import FittedCell, counted, mean_of_numbers
from fedtables.results.record import Measurement


def run(sizes, fitted, role=""):
    """Clients that hold as many samples, of roles a and b in turn, and models by their owners."""
    clients = [
        SimpleNamespace(index=k, size=size, role="ab"[k % 2]) for k, size in enumerate(sizes)
    ]
    given = {"role": role, "federation": SimpleNamespace(clients=clients)}
    models = [SimpleNamespace(owner=owner) for owner in fitted]
    return FittedCell(
        **{field.name: None for field in fields(FittedCell)} | given | {"fitted": models}
    )


THREE = ("client-0", "client-1", "client-2")


def owners(one):
    return tuple(model.owner for model in one.models)


def test_networks_of_clients_without_samples_are_in_no_mean():
    assert owners(run([5, 0, 7], THREE)) == ("client-0", "client-2")
    assert owners(run([5, 0, 7], THREE, role="a")) == ("client-0", "client-2")
    assert owners(run([0, 0], ["server"])) == ("server",)
    with pytest.raises(ValueError, match="no client of this row holds a sample"):
        owners(run([5, 0, 7], THREE, role="b"))
    assert owners(run([5, 0], [])) == ()  # a measure that needs no fit


def test_the_text_says_over_how_many_models_a_mean_is():
    assert run([5, 6, 7], THREE).over_models == "mean over models"
    assert run([5, 0, 7], THREE).over_models == (
        "mean over the models of 2 of 3 clients, the others hold no samples"
    )
    assert run([5, 0], ["server"]).over_models == ""


def test_a_mean_is_over_what_is_a_number_and_counts_the_values_of_all():
    assert mean_of_numbers([1.0, math.nan, 3.0]) == 2
    assert math.isnan(mean_of_numbers([math.nan]))
    assert mean_of_numbers([[1.0, 4.0], [3.0, math.nan]]).tolist() == [2, 4]
    found = counted("hd95", 2.0, [(3, 5), (5, 5)], "epoch=1")
    assert found == Measurement("hd95", 2.0, "epoch=1", 8, 10)
