"""Federations in FedSA's problem: labelled images at the server, and clients with teachers of tasks
of their own.
"""

from dataclasses import fields

import torch

from fedtables.federation.client import Client, Shard
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.tasks.images import Classification
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedsa import FedSA
from fedtables.models.cut import decoder_parameters
from tests.federation.tiny import CLASSES, bright_images, make_federation
from tests.methods.shards import copied


def labelled(count, seed, side=8, device="cpu"):
    """`count` images of all classes in turn."""
    labels = torch.arange(count) % CLASSES
    images = bright_images(labels, seed, side).to(device)
    return LabelledSet(images, labels.to(device), f"{count} of {seed}, {side} pixels")


def private_server(index, network="cnn-small", side=8, samples=12, device="cpu"):
    """Client k, whose teacher tells two brightnesses apart: k and k + 1, which it numbers 0 and
    1.
    """
    own = torch.arange(samples) % 2
    shard = Shard(bright_images((own + index) % CLASSES, index, side).to(device), own.to(device))
    facts = (shard, (samples - samples // 2, samples // 2), f"private {index} {side} {samples}")
    own = (Classification(2), Normalisation((0.4,), (0.3,)))
    return Client(index, "teacher", network, *facts, *own)


def private_servers(clients=3, network="cnn-small", teachers="", side=8, device="cpu", **changes):
    """A federation whose server has twelve labelled and twelve unlabelled images, and thirty to be
    tested on.

    `network` is the target's, `teachers` that of the clients, if it is another; `clients` their
    number, or themselves.
    """
    if isinstance(clients, int):
        clients = [
            private_server(index, teachers or network, side, device=device)
            for index in range(clients)
        ]
    settings = {
        "clients": clients,
        "network": network,
        "device": device,
        "image_shape": (1, side, side),
        "probe": labelled(12, 400, side, device),
        "test": labelled(30, 200, side, device),
        "public": PublicData(labelled(12, 500, side, device).images, f"unlabelled, {side} pixels"),
        "server": TrainingPlan(epochs=20, batch_size=4, lr=0.01),
    }
    return make_federation(**{**settings, **changes})


SHORT = {
    **{"rounds": 2, "selection_gap": 1, "selected": 2, "weak_epochs": 3, "local_epochs": 1},
    **{"local_batch_size": 4, "adaptation_epochs": 3},
}


def quick(method=FedSA, **changes):
    """A method of FedSA's kind with little to do, unless `changes` say otherwise."""
    names = {field.name for field in fields(method)}
    short = {name: value for name, value in SHORT.items() if name in names}
    return method(**{**short, **changes})


def split(model, state=None):
    """The entries of a state that are the decoder's, and the others; buffers are where their
    parameters are.
    """
    state = state or copied(model.state_dict())
    modules = {name.rpartition(".")[0] for name in decoder_parameters(model)}
    decoder = {name: t for name, t in state.items() if name.rpartition(".")[0] in modules}
    return decoder, {name: t for name, t in state.items() if name not in decoder}
