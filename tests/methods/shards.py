"""Clients of any size and network for the tiny federation, and gradient descent on them in plain
PyTorch.
"""

import torch
import torch.nn.functional as F

from fedtables.federation.channel import encoded_size
from fedtables.federation.client import Client, Shard
from fedtables.federation.data import LabelledSet
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.plan import TrainingPlan
from tests.federation.tiny import CLASSES, bright_images

WHOLE_BATCHES = TrainingPlan(epochs=2, batch_size=100, lr=0.1, optimizer="sgd")
"""Two steps down the gradient of all of a client's samples: nothing depends on their order."""
ONE_STEP = TrainingPlan(epochs=1, batch_size=100, lr=0.1, optimizer="sgd")
"""The first of them."""


def client_with(index, labels, network="cnn-small"):
    """A client that holds one bright image for each of `labels`."""
    targets = torch.tensor(labels, dtype=torch.long)
    counts = tuple(torch.bincount(targets, minlength=CLASSES).tolist())
    shard = Shard(bright_images(targets, index), targets)
    return Client(index, network, network, shard, counts, f"{network} {index} {labels}")


def uneven_clients(network="cnn-small"):
    """Five clients with 2, 4, 6, 8 and 10 samples of two classes each."""
    return [client_with(k, [k % CLASSES, (k + 1) % CLASSES] * (k + 1), network) for k in range(5)]


def mixed_clients():
    """Two clients with 12 and 6 samples and different networks."""
    return [client_with(0, [0, 1] * 6), client_with(1, [1, 2] * 3, "resnet8-narrow")]


def validation_set(device="cpu"):
    """Thirty images of all classes that nobody trains on."""
    labels = torch.arange(30) % CLASSES
    return LabelledSet(bright_images(labels, 300).to(device), labels.to(device), "validation")


TINY = Normalisation((0.5,), (0.25,))
"""How the tiny federation's networks see images."""


def network_inputs(images, normalise=TINY):
    """uint8 images as the tiny federation's networks see them, or those of a private server."""
    return (images / 255 - normalise.mean[0]) / normalise.std[0]


def descend(network, images, targets, steps=2, lr=0.1, penalty=lambda weights: 0.0):
    """`steps` of gradient descent on the mean cross-entropy of all samples, and a penalty on the
    weights; in place.
    """
    weights = list(network.parameters())
    for _ in range(steps):
        loss = F.cross_entropy(network(network_inputs(images)), targets) + penalty(weights)
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= lr * gradient
    return network


def trained_alone(rounds, federation):
    """What clients learn by themselves in as many rounds."""
    models = [federation.networks.initial(client.network) for client in federation.clients]
    for number in range(1, rounds + 1):
        for pair in zip(federation.clients, models, strict=True):
            federation.train_on_clients([pair], federation.local, "round", number)
    return [model.state_dict() for model in models]


def samples_of(client):
    """A client's images and targets, as only a test may see them."""
    return client.run(lambda shard: (shard.images, shard.targets))


def distance(first, second):
    """Euclidean distance of two states."""
    squares = [(first[name] - second[name]).square().sum() for name in first]
    return torch.stack(squares).sum().sqrt().item()


def same_bits(first, second):
    """Whether two states are equal to the last bit."""
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def copied(tensors):
    """A payload as it is now; the sender goes on working with its tensors."""
    return {name: tensor.clone() for name, tensor in tensors.items()}


def recorded(method, federation):
    """What a fit leaves, and all that crosses in it: each transfer with a copy of its tensors."""
    sent = []

    def deliver(transfer, tensors):
        sent.append((transfer, copied(tensors)))
        return tensors

    federation.channel.deliver = deliver
    return method.fit(federation), sent


def booked(federation):
    """Bytes and messages by round, direction, kind and client."""
    return {
        (t.round, t.direction, t.kind, t.client): (t.bytes, t.messages)
        for t in federation.channel.ledger
    }


def size(name, *shape, dtype=torch.float32):
    """Bytes of a message of one tensor."""
    return encoded_size({name: torch.empty(shape, dtype=dtype)})
