"""Federations in FedSA's problem: labelled images at the server, and clients with teachers of tasks
of their own.
"""

from dataclasses import fields

import torch

from federation.client import Client, Shard
from federation.data import LabelledSet, PublicData
from federation.tasks.classification import Classification
from federation.training.inputs import Normalisation
from federation.training.plan import TrainingPlan
from methods.fedsa import FedSA
from models.cut import decoder_parameters
from tests.federation.tiny import CLASSES, bright_images, make_federation
from tests.methods.shards import copied

STUDENTS = ["wrn-10-1", "resnet10-slim", "vgg11-slim", "mobilenetv2-slim"]
"""Table 1's four, slim."""


def labelled(count, seed, side=8, device="cpu"):
    """`count` images of all classes in turn."""
    labels = torch.arange(count) % CLASSES
    return LabelledSet(
        bright_images(labels, seed, side).to(device),
        labels.to(device),
        f"{count} of {seed}, {side} pixels",
    )


def private_server(index, network="cnn-small", side=8, samples=12, device="cpu"):
    """Client k, whose teacher tells two brightnesses apart: k and k + 1, which it numbers 0 and
    1.
    """
    own = torch.arange(samples) % 2
    shard = Shard(bright_images((own + index) % CLASSES, index, side).to(device), own.to(device))
    digest = f"private {index} {side} {samples}"
    counts = (samples - samples // 2, samples // 2)
    return Client(
        index,
        "teacher",
        network,
        shard,
        counts,
        digest,
        Classification(2),
        Normalisation((0.4,), (0.3,)),
    )


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


def quick(method=FedSA, **changes):
    """A method of FedSA's kind with little to do, unless `changes` say otherwise."""
    short = {
        "rounds": 2,
        "selection_gap": 1,
        "selected": 2,
        "weak_epochs": 3,
        "local_epochs": 1,
        "local_batch_size": 4,
        "adaptation_epochs": 3,
    }
    return method(
        **{
            **{
                name: value
                for name, value in short.items()
                if name in {f.name for f in fields(method)}
            },
            **changes,
        }
    )


def split(model, state=None):
    """The entries of a state that are the decoder's, and the others; buffers are where their
    parameters are.
    """
    decoder, state = (
        {module_of(name) for name in decoder_parameters(model)},
        state or copied(model.state_dict()),
    )
    return [
        {name: t for name, t in state.items() if (module_of(name) in decoder) is wanted}
        for wanted in (True, False)
    ]


def module_of(name):
    return name.rpartition(".")[0]
