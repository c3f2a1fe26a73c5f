"""Whether networks look at what films have, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from benchmarks.measures.films import pointing_of
from federation.data import LabelledSet
from federation.tasks.multi_label import MultiLabel
from tests.benchmarks.measures.test_attention import AB, Looking


def fitted(*owners):
    return [SimpleNamespace(owner=owner) for owner in owners]


def federation(columns, tasks=()):
    """Networks by owner; each looks at a column of 4 x 4 films for every finding that it knows."""
    return SimpleNamespace(
        task=AB,
        clients=[SimpleNamespace(index=k, task=task) for k, task in enumerate(tasks)],
        networks=SimpleNamespace(module=lambda checkpoint: columns[checkpoint.owner]),
        normalise=lambda images: images,
    )


def films(targets, where):
    """Films 4 x 4 whose findings are in the columns `where`, (films, findings)."""
    places = torch.zeros(len(targets), 2, 4, 4, dtype=torch.bool)
    for film, columns in enumerate(where):
        for finding, column in enumerate(columns):
            places[film, finding, :, column] = True
    images = torch.zeros(len(targets), 1, 4, 4, dtype=torch.uint8)
    return LabelledSet(images, torch.tensor(targets, dtype=torch.uint8), "", places=places)


def shares(found):
    return {m.metric: m.value for m in found}


def test_accuracy_is_of_pairs_of_a_film_and_a_finding_that_it_has():
    # It looks for a in column 0, where it is in one of two films that have it, and for b in column
    # 3, where it is; a finding that is absent or not known does not count.
    test = films([[1, 0], [1, 1], [255, 1]], [(0, 0), (2, 3), (0, 3)])
    made = federation({"server": Looking([(0,), (3,)])})
    found, how = pointing_of(made, fitted("server"), test, 100)
    assert shares(found) == {"pointing-accuracy": 75, "attention-empty": 0}
    assert how == "pointing of up to 4 findings of 3 test films"


def test_a_map_that_is_zero_everywhere_is_a_miss_and_is_counted():
    test = films([[1, 1], [1, 0]], [(0, 3), (0, 3)])
    found, _ = pointing_of(federation({"server": Looking([(0,), ()])}), fitted("server"), test)
    assert shares(found) == {
        "pointing-accuracy": pytest.approx(2 / 3),
        "attention-empty": pytest.approx(1 / 3),
    }


def test_of_several_networks_it_is_the_mean_each_of_the_findings_that_it_knows():
    test = films([[1, 1]], [(0, 3)])
    made = federation(
        {"client-0": Looking([(0,), (0,)]), "client-1": Looking([(3,)])},
        tasks=(None, MultiLabel(("b",))),
    )
    found, _ = pointing_of(made, fitted("client-0", "client-1"), test)
    assert shares(found)["pointing-accuracy"] == 0.75  # 1 of 2, and 1 of 1


def test_films_without_places_or_without_a_known_finding_are_refused():
    made = federation({"client-0": Looking([(0,)])}, tasks=(MultiLabel(("b",)),))
    test = films([[1, 0]], [(0, 0)])
    with pytest.raises(ValueError, match="has a finding that client-0 knows"):
        pointing_of(made, fitted("client-0"), test)
    unknown = LabelledSet(test.images, test.targets, "")
    with pytest.raises(ValueError, match="at which pixels a finding is"):
        pointing_of(made, fitted("client-0"), unknown)
