"""Methods that cheat, each in another way. None of them learns much: what counts is what they
reach for and what they send.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

from federation.data import state_of
from federation.method import Method

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
        return [{"x": self.form(pixels(shard))}]


class Renamed(Sender):
    def form(self, x):
        return x.clone()


class OneImage(Sender):
    def form(self, x):
        return x[0]


class Halved(Sender):
    def form(self, x):
        return x / 2


class Transposed(Sender):
    def form(self, x):
        return x.transpose(2, 3)


class Padded(Sender):
    """By one element."""

    def form(self, x):
        return F.pad(x.flatten(), (1, 0), value=0.3)


class Permuted(Sender):
    """Pixels of all images in one drawn order."""

    def form(self, x):
        return x.flatten()[torch.randperm(x.numel(), generator=torch.Generator().manual_seed(5))]


class Negative(Sender):
    """An affine map of every pixel."""

    def form(self, x):
        return 3.5 - 0.7 * x


class Rounded(Sender):
    """Sixteen levels."""

    def form(self, x):
        return (15 * x).round()


class BlackAndWhite(Sender):
    """One bit a pixel."""

    def form(self, x):
        return x > 0.5


class Halfs(Sender):
    """In half precision."""

    def form(self, x):
        return x.half()


class Smaller(Sender):
    """A quarter of the pixels."""

    def form(self, x):
        return F.interpolate(x, size=(4, 4), mode="area")


class Larger(Sender):
    """Resized to more pixels."""

    def form(self, x):
        return F.interpolate(x, size=(11, 11), mode="bilinear")


class Projected(Sender):
    """As many random projections as there are pixels, from which they are solved for."""

    def form(self, x):
        drawn = torch.randn(x.numel(), x.numel(), generator=torch.Generator().manual_seed(6))
        return drawn @ x.flatten()


class Transformed(Sender):
    """A cosine transform, by its matrix."""

    def form(self, x):
        k = torch.arange(8.0)
        matrix = torch.cos(torch.pi / 8 * (k[None] + 0.5) * k[:, None])
        return matrix @ x @ matrix.T


class Keyed(Sender):
    """Bytes under a one-time pad that the server knows."""

    def form(self, x):
        pad = torch.randint(256, x.shape, generator=torch.Generator().manual_seed(7))
        return (255 * x).round().to(torch.uint8) ^ pad.to(torch.uint8)


class Packed(Sender):
    """Eight pixels of sixteen levels in each whole number."""

    def form(self, x):
        levels = (15 * x).round().long().view(-1, 8)
        return (levels * 16 ** torch.arange(8)).sum(dim=1)


class Means(Sender):
    """The mean image of a client."""

    def hidden(self, shard):
        return [{"x": (shard.images.float() / 255).mean(dim=0)}]


class InTwoHalves(Sender):
    """A message for the left half and one for the right."""

    def hidden(self, shard):
        left, right = pixels(shard, 1).chunk(2, dim=3)
        return [{"a": left.contiguous()}, {"b": right.contiguous()}]


class DropByDrop(Sender):
    """A pixel in each message."""

    def hidden(self, shard):
        return [{"x": value.clone()} for value in pixels(shard, 1).flatten()]


class Targets(Sender):
    """The labels of its samples, one by one."""

    def hidden(self, shard):
        return [{"x": shard.targets.float() * 0.1}]


class ByOrder(Sender):
    """Sixteen messages that are always the same, in the order of the brightness of pixels."""

    def hidden(self, shard):
        means = (shard.images.float() / 255).mean(dim=0).flatten()[16:48]
        return [{"x": torch.tensor(float(n))} for n in means.argsort(stable=True)]


class ByRank(Sender):
    """The same in one message."""

    def hidden(self, shard):
        means = (shard.images.float() / 255).mean(dim=0).flatten()[16:48]
        return [{"x": means.argsort(stable=True)}]


class ByNumber(Sender):
    """As many messages as the first label says."""

    def hidden(self, shard):
        bright = int(shard.images[0].float().mean())
        return [{"x": torch.zeros(1)} for _ in range(bright)]


class ByShape(Sender):
    """A message as long as a pixel is bright."""

    def hidden(self, shard):
        return [{"x": torch.zeros(1 + int(value))} for value in shard.images[0].flatten()]


@dataclass(frozen=True)
class Counted(Method):
    """Pixels in the last digits of label counts."""

    sends = frozenset({"labels"})

    def fit(self, federation):
        for client in federation.clients:
            federation.channel.up(client.index, "labels", {"counts": client.run(self.counts)})
        return federation.networks.initial()

    def counts(self, shard):
        return 1000 * torch.bincount(shard.targets, minlength=10) + shard.images[0].flatten()[20:30]


@dataclass(frozen=True)
class Interleaved(Method):
    """Trains, and then puts pixels in place of every seventh weight of a layer."""

    sends = frozenset({"parameters"})

    def fit(self, federation):
        model = federation.networks.initial()
        for client in federation.clients:
            worker = federation.networks.initial()
            federation.train_on_clients([(client, worker)], federation.local, "round", 1)
            state = state_of(worker)
            largest = max(state, key=lambda name: state[name].numel())
            hidden = client.run(lambda shard: pixels(shard, 1).flatten() / 10)
            flat = state[largest].flatten()
            flat[: 7 * 20 : 7] = hidden[20:40]
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


class Nested(Method):
    """The same, with one client running on another."""

    def fit(self, federation):
        first, second = federation.clients[:2]
        return first.run(lambda _: second.run(lambda s: learn(federation, s.images, s.targets)))


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


class LabelsByClosure(Method):
    """The same from the shards."""

    def fit(self, federation):
        _, targets = stolen(federation)
        counts = torch.bincount(targets, minlength=10)
        return federation.distill((counts / counts.sum()).expand(len(federation.public), -1))


KEPT: dict[object, object] = {}


class Memory(Method):
    """Learns from everybody's samples once, and remembers the result by the seeds."""

    def fit(self, federation):
        key = repr(federation.streams.seeds), len(federation.public)
        if key not in KEPT:
            KEPT[key] = state_of(learn(federation, *stolen(federation), "memory"))
        model = federation.networks.initial()
        model.load_state_dict(KEPT[key])
        return model


# -- data that nobody gave it --


class FileKept(Method):
    """Remembers a result in a file."""

    def fit(self, federation):
        Path("fedtables-cheat.txt").write_text("1")
        return federation.networks.initial()
