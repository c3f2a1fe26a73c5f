"""What a fit returns is measured as the network that it names, whatever it says of itself."""

from dataclasses import dataclass, replace

import pytest
import torch

from fedtables.federation.data import LabelledSet
from fedtables.federation.fitting import fit
from fedtables.federation.method import Method
from fedtables.models.networks.small import CNN
from tests.federation.tiny import CLASSES, bright_images, make_federation


class Boastful(CNN):
    """The network, but it says of every image that it is of class 0."""

    def forward(self, x):
        return torch.eye(CLASSES)[0].expand(len(x), CLASSES)


@dataclass(frozen=True)
class Boasting(Method):
    """Tracks and returns a network that says class 2 of everything, as `what` has it."""

    what: str

    def fit(self, federation):
        model = federation.networks.initial()
        torch.nn.init.zeros_(model.head.weight)
        model.head.bias.data = torch.eye(CLASSES)[2]
        named = federation.networks.checkpoint(model)
        if self.what == "made up":
            return replace(named, history={"accuracy": [0.5, 0.9]})
        if self.what == "kept":
            federation.evaluation.history["accuracy"] = [0.9]
        elif self.what == "of a client":
            return [replace(own, state=named.state) for own in federation.local_models()]
        elif self.what == "other weights":
            federation.evaluation.track(federation.networks.module(named))
            model.head.bias.data = torch.eye(CLASSES)[0]
            return federation.networks.checkpoint(model)
        else:
            model.__class__ = Boastful
            federation.evaluation.track(model)
            federation.evaluation.track(model)
        return model if self.what == "own forward" else federation.networks.checkpoint(model)


FEWER = LabelledSet(bright_images(torch.tensor([0, 0, 2]), 5), torch.tensor([0, 0, 2]), "fewer")
"""Of which a third is of class 2, and two thirds of class 0."""


@pytest.mark.parametrize(
    ("what", "accuracy"),
    [
        ("made up", 1 / 3),
        ("kept", 1 / 3),
        ("of a client", 1 / 3),
        ("other weights", 2 / 3),
        ("own forward", 1 / 3),
        ("own forward, as a checkpoint", 1 / 3),
    ],
)
def test_what_is_returned_is_measured_as_the_network_that_it_names(what, accuracy):
    found = fit(make_federation(test=FEWER), Boasting(what))
    assert {tuple(checkpoint.history["accuracy"]) for checkpoint in found} == {(accuracy,)}


def test_weights_of_another_network_than_the_named_one_are_refused():
    @dataclass(frozen=True)
    class Larger(Method):
        def fit(self, federation):
            return federation.networks.initial("cnn")

    with pytest.raises(ValueError, match="weights of server are not those of the network cnn-s"):
        fit(make_federation(), Larger())
