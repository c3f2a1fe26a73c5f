"""Methods that cheat, each in another way. None of them learns much: what counts is what they
reach for and what they send.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from fedtables.datasets import catalogue
from fedtables.federation.data import state_of
from fedtables.federation.method import Method

# -- images in disguise --


def pixels(shard, count=4):
    """The first images, in [0, 1], (count, 1, 8, 8)."""
    return shard.images[:count].float() / 255


@dataclass(frozen=True)
class Sender(Method):
    """Sends what `hidden` makes of a client's samples, as features."""

    sends = frozenset({"features"})

    def fit(self, federation):
        for client in federation.clients:
            for sent in client.run(self.hidden):
                federation.channel.up(client.index, "features", sent)
        return federation.networks.initial()

    def hidden(self, shard):
        return [{"x": pixels(shard).clone()}]


class Beside(Sender):
    """Beside a tensor whose shape depends on samples."""

    def hidden(self, shard):
        return [{"x": pixels(shard), "y": torch.zeros(1 + int(shard.images[0].float().mean()))}]


class ByNumber(Sender):
    """As many messages as the first image is bright."""

    def hidden(self, shard):
        bright = int(shard.images[0].float().mean())
        return [{"x": torch.zeros(1)} for _ in range(bright)]


class ByFewer(Sender):
    """As many messages as the first image is dark."""

    def hidden(self, shard):
        dark = 255 - int(shard.images[0].float().mean())
        return [{"x": torch.zeros(1)} for _ in range(dark)]


@dataclass(frozen=True)
class Interleaved(Method):
    """Trains, and then puts pixels in place of every third weight of a layer."""

    sends = frozenset({"parameters"})

    def fit(self, federation):
        model = federation.networks.initial()
        for client in federation.clients:
            worker = federation.networks.initial()
            federation.train_on_clients([(client, worker)], federation.local, "round", 1)
            state = state_of(worker)
            largest = max(state, key=lambda name: state[name].numel())
            hidden = client.run(lambda shard: pixels(shard).flatten() / 10)
            flat = state[largest].flatten()
            flat[: 3 * len(hidden) : 3] = hidden
            state[largest] = flat.view(state[largest].shape)
            federation.channel.up(client.index, "parameters", state)
        return model


@dataclass(frozen=True)
class Opened(Method):
    """Declares images, and sends them as they are; but no oracle."""

    sends = frozenset({"images"})

    def fit(self, federation):
        for client in federation.clients:
            images = client.run(lambda shard: shard.images[:2].float())
            federation.channel.up(client.index, "images", {"images": images})
        return federation.networks.initial()


# -- around the channel --


def learn(federation, images, targets, *names):
    """A model of the federation's network, trained on images and targets."""
    model = federation.networks.initial()
    federation.train(model, images, targets, federation.task.loss, federation.local, *names)
    return model


def stolen(federation):
    """Everybody's samples, past what `run` returns."""
    images, targets = [], []
    for client in federation.clients:
        client.run(lambda shard: images.append(shard.images) or targets.append(shard.targets))
    return torch.cat(images), torch.cat(targets)


class Pool(Method):
    """Trains at the server on everybody's samples."""

    def fit(self, federation):
        return learn(federation, *stolen(federation), "pool")


class PersonalPool(Method):
    """Gives every client a model of everybody's samples."""

    def fit(self, federation):
        pooled = stolen(federation)
        return [
            federation.networks.checkpoint(learn(federation, *pooled, client.index))
            for client in federation.clients
        ]


class Neighbours(Method):
    """Trains each client on the samples of the next one too, and sends what it learnt."""

    sends = frozenset({"parameters"})

    def fit(self, federation):
        for client in federation.clients:
            after = federation.clients[(client.index + 1) % len(federation.clients)]
            held = []
            after.run(lambda shard, held=held: held.append((shard.images, shard.targets)))
            model = client.run(lambda shard, held=held: learn(federation, *held[0], "neighbour"))
            federation.channel.up(client.index, "parameters", state_of(model))
        return federation.networks.initial()


class Returned(Method):
    """Takes samples as what a function returns."""

    def fit(self, federation):
        images, targets = federation.clients[0].run(lambda s: (s.images[:50], s.targets[:50]))
        return learn(federation, images, targets)


class ShardKept(Method):
    """Keeps a shard, and opens it later."""

    def fit(self, federation):
        kept = []
        federation.clients[0].run(kept.append)
        return learn(federation, kept[0].images, kept[0].targets)


class LabelsByAttribute(Method):
    """Learns labels that nobody has sent: from the client's attribute."""

    def fit(self, federation):
        counts = torch.tensor([client.label_counts for client in federation.clients]).sum(dim=0)
        prior = (counts / counts.sum()).expand(len(federation.public), -1)
        return federation.distill(prior)


# -- data that nobody gave it --


class TestSplit(Method):
    """Loads the test split."""

    def fit(self, federation):
        test = catalogue.load("digits")["test"]
        return learn(federation, torch.from_numpy(test.images), torch.from_numpy(test.labels))


class TestSet(Method):
    """Trains on the test set that measures are given."""

    def fit(self, federation):
        test = federation.evaluation.test_set
        return learn(federation, test.images, test.targets)


class TestImages(Method):
    """Learns the test images with labels of its own, past the property."""

    def fit(self, federation):
        images = federation.evaluation._held.test.images
        return learn(federation, images, images.flatten(1).sum(dim=1).long() % 10)


class TestMetrics(Method):
    """Weighs every client's model by how good it is on the test set, and keeps the best."""

    def fit(self, federation):
        models = [federation.networks.module(own) for own in federation.local_models()]
        scores = [federation.evaluation.test(model)["accuracy"] for model in models]
        for model, score in zip(models, scores, strict=True):
            model.get_parameter(next(n for n, _ in model.named_parameters())).data.mul_(1 + score)
        return models[scores.index(max(scores))]


class PublicLabels(Method):
    """Takes the public set's labels past the oracle."""

    def fit(self, federation):
        labels = federation.evaluation._held.oracle_labels
        return federation.distill(F.one_hot(labels, 10).float())
