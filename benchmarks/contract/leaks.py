"""Whether what a client sends tells its samples: found by changing them, whatever form they are
sent in.

A client's fit is run four times with the same messages from the server: with its samples, with one
half of their pixels inverted, with the other half inverted and other targets, and with both. An
entry of a payload that adds up what the halves contribute,

    p(neither) + p(both) = p(one) + p(other),

is a sum of functions of single pixels or targets: a pixel itself, a quantised or transposed one,
one moved, padded or put between parameters, a resized image, and every linear read-out of samples.
What is learnt of samples is not: their pixels interact. Two controls say how many entries of a
payload have such a relation by chance: how many miss it narrowly, and, where many change by the
same amount, for how many p(one) = p(other).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import torch

from benchmarks.contract.fits import Message, of_client

FEWEST = 12
"""More entries than so many, and than chance explains, tell samples."""
PART = 8
"""Nor do fewer than this part of one sample's values, which is more where samples are large."""
BESIDE = 10
"""Deviations within so many times the tolerance, or so many whole numbers, miss narrowly."""
RELATIVE = 1e-4
"""Deviation of a sum that counts as none, of the change in the entry."""
SMALL = 1 / 20
"""Changes of less than this share of a value are not looked at: what is learnt in one small step is
nearly a sum."""
ROUNDED = 2
"""Deviation of whole numbers that rounding explains, where they change by 32 or more."""


@dataclass(frozen=True)
class Counts:
    """Entries of a payload that change with the samples."""

    additive: int = 0
    """That add up what the halves contribute."""
    missed: float = 0.0
    """That do by chance, as those say that miss it narrowly."""
    of_one: int = 0
    """That add up, and change with the one half, where many change by the same amount, as votes do
    and weights after one step."""
    of_other: int = 0
    """Such that do not change with it; labels, which are changed with the other, may explain
    them."""
    alike: int = 0
    """That are alike with either half changed, by which chance is known for both."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def tell(self, fewest: int = FEWEST) -> int:
        """How many entries are additive beyond `fewest` and what chance explains; 0 if these
        explain them.
        """
        most = fewest + self.missed + 6 * math.sqrt(self.missed)
        stepped = 2 * min(self.of_one, self.of_other)
        return (self.additive if self.additive > most else 0) + (
            stepped if stepped > fewest * (1 + self.alike) else 0
        )


def counts(
    neither: torch.Tensor, one: torch.Tensor, other: torch.Tensor, both: torch.Tensor
) -> Counts:
    """Of a tensor in the four runs."""
    p, p1, p2, p12 = (tensor.double().flatten() for tensor in (neither, one, other, both))
    change, largest = (p - p12).abs(), torch.maximum(p.abs(), p12.abs())
    if neither.is_floating_point():
        rounding = torch.finfo(neither.dtype).eps * largest
        changed, near = change > SMALL * largest, RELATIVE * change + 4 * rounding
        beside, share = (1 + BESIDE) * near, torch.full_like(near, 1 / BESIDE)
    else:
        changed, near = change > 0, torch.where(change >= 32, float(ROUNDED), 0.0)
        beside, share = near + BESIDE, (2 * near + 1) / (2 * BESIDE)
    steps = _in_steps(change, changed)
    apart = (p + p12 - p1 - p2).abs()
    additive = changed & (apart <= near)
    missed = changed & ~additive & ~steps & (apart <= beside)
    alike = changed & ((p1 - p2).abs() <= near)
    of_one = (p1 - p).abs() > near
    return Counts(
        int((additive & ~steps).sum()),
        float(share[missed].sum()),
        int((additive & steps & of_one).sum()),
        int((additive & steps & ~of_one).sum()),
        int((alike & steps).sum()),
    )


def _in_steps(change: torch.Tensor, changed: torch.Tensor) -> torch.Tensor:
    """Which entries change by an amount by which many others change too, as votes do."""
    few = torch.zeros_like(changed)
    levels = (change[changed].log() * 1000).round()
    _, which, members = levels.unique(return_inverse=True, return_counts=True)
    few[changed] = members[which] >= max(4, len(levels) // 50)
    return few


def find(
    neither: Sequence[Message],
    one: Sequence[Message],
    other: Sequence[Message],
    both: Sequence[Message],
    declared: frozenset[str],
    values: int = 0,
) -> str:
    """What is wrong with what clients sent in the four runs, whose messages have the same forms;
    empty if nothing is. Payloads of the kinds `declared` may tell samples, which have so many
    `values`.
    """
    fewest = max(FEWEST, values // PART)
    for client in sorted({message.client for message in neither}):
        runs = [of_client(messages, client) for messages in (neither, one, other, both)]
        if found := _of_client(client, runs, declared, fewest):
            return found
    return ""


def _of_client(
    client: int, runs: Sequence[Sequence[Message]], declared: frozenset[str], fewest: int
) -> str:
    together: Counter[str] = Counter()
    shaped = 0
    sums: dict[tuple[str, ...], Counts] = {}
    for neither, one, other, both in zip(*runs, strict=True):
        if neither.kind in declared:
            continue
        if neither.kind in OF_LABELS:
            if neither.content != one.content or other.content != both.content:
                return (
                    f"what client {client} sends as {neither.kind!r} depends on its images, not on"
                    " labels alone"
                )
            continue
        four = [message.tensors for message in (neither, one, other, both)]
        if any(_shapes(four[0]) != _shapes(tensors) for tensors in four):
            shaped += 1
            continue
        for name, tensor in four[0].items():
            found = counts(*(tensors[name] for tensors in four))
            if told := found.tell(fewest):
                return _tells(client, neither.kind, told)
            if labels := _of_labels(*(tensors[name] for tensors in four)):
                return _tells(client, neither.kind, labels)
            groups: list[tuple[str, ...]] = [(), (neither.kind,), (neither.kind, name)]
            for group in groups:
                sums[group] = sums.get(group, Counts()) + found
            if _reordered(tensor, four[3][name]):
                return _orders(client, neither.kind)
        together[neither.kind] += 1
    for group, total in sums.items():
        if told := total.tell(fewest):
            return _tells(client, group[0] if group else ", ".join(together), told)
    if shaped > FEWEST:
        return f"client {client} tells its samples by the shapes of {shaped} messages"
    before, after = ([message.content for message in run] for run in (runs[0], runs[3]))
    moved = sum(a != b for a, b in zip(before, after, strict=True))
    if moved > FEWEST and Counter(before) == Counter(after):
        return _orders(client, runs[0][0].kind)
    return ""


OF_LABELS = ("labels", "conditions")
"""Kinds of payload that tell labels, which is what they are for, and nothing of images."""


def _shapes(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _reordered(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether two tensors have the same many values in another order."""
    if before.numel() <= FEWEST or torch.equal(before, after):
        return False
    ordered = before.flatten().sort().values
    levels = 1 + int((ordered[1:] != ordered[:-1]).sum())
    same = torch.equal(ordered, after.flatten().sort().values)
    return same and 2 * levels > before.numel()


def _of_labels(
    neither: torch.Tensor, one: torch.Tensor, other: torch.Tensor, both: torch.Tensor
) -> int:
    """How many entries of a tensor change with the labels, if nothing of it does with the half
    whose images alone are changed.
    """
    alone = torch.equal(neither, one) and torch.equal(other, both)
    changed = int((neither != both).sum())
    return changed if alone and changed > FEWEST else 0


def _tells(client: int, kind: str, found: int) -> str:
    return (
        f"client {client} sends samples as {kind!r}: {found} numbers are sums over single"
        " pixels or labels, whatever form they have"
    )


def _orders(client: int, kind: str) -> str:
    return f"client {client} tells its samples by the order of what it sends as {kind!r}"


def unprotected(
    messages: Sequence[Message], other_noise: Sequence[Message], other_samples: Sequence[Message]
) -> str:
    """What in the messages of a private run has no noise: tensors, or more than `FEWEST` of their
    entries, that change with the samples and not with the noise; empty if nothing has none. The
    messages of the three runs have the same forms.
    """
    for message, noisy, other in zip(messages, other_noise, other_samples, strict=True):
        for name, tensor in message.tensors.items():
            another, changed = noisy.tensors[name], other.tensors[name]
            if not tensor.numel() or not tensor.shape == another.shape == changed.shape:
                continue
            moved = tensor != changed
            bare = moved & (tensor == another)
            # Noisy values that are cut off are the same extreme under any noise.
            within = (tensor != tensor.min()) & (tensor != tensor.max())
            if moved.any() and (torch.equal(bare, moved) or int((bare & within).sum()) > FEWEST):
                return (
                    f"no noise reaches {name!r} of what client {message.client} sends as"
                    f" {message.kind!r}"
                )
    return ""
