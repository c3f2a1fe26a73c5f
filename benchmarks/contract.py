"""The contract that every method keeps, checked on a small federation of real digits, or of
generated rooms for a method of dense tasks.

The same checks run in the test suite on every method found, and by `python -m benchmarks check
METHOD` for whoever adds one.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace

import torch

from benchmarks.scenarios.assembly import Run, build_federation
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.small import LEAST, small_config, small_data
from benchmarks.tables.registry import MethodEntry
from benchmarks.tables.spec import Scalar
from federation.caching.cache import StageCache, content_digest
from federation.channel import Channel, Transfer
from federation.federation import Federation
from federation.fitting import listed
from federation.method import Fitted, Method
from federation.parties.checkpoint import Checkpoint
from federation.parties.client import Shard
from federation.seeds import Seeds
from federation.training.loops import unit_range
from privacy.plan import RELEASED

BRIEF: Mapping[str, Scalar] = {
    "partition.public_limit": 100,
    "local.epochs": 2,
    "server.epochs": 2,
}
"""What differs where it is enough to compare two fits, or to see what they send."""
BRIEF_STEPS: Mapping[str, int] = {
    "steps": 16,
    "interval": 8,
    "epochs": 2,
    "warmup_epochs": 1,
    "constant_epochs": 1,
    "decay_epochs": 1,
}
"""Most steps of a method's own loop in such a fit, in all and between two of its evaluations; and
most of its own epochs, of all kinds."""


EPSILON = 50.0
"""Budget of the contract's private runs."""


class BrokenContractError(AssertionError):
    """A method does not keep the contract; the message says which part, and what to do."""


def invert(images: torch.Tensor) -> None:
    """Stored images turned dark for bright, in place: uint8, or float32 in [0, 1]."""
    if images.is_floating_point():
        images.neg_().add_(1)
    else:
        images.bitwise_not_()


class NotJudgedError(Exception):
    """Another broken promise leaves no way to tell whether this one is kept."""


@dataclass
class Fit:
    """One run of the method under test."""

    method: Method
    brief: bool = True
    """By `BRIEF` and `BRIEF_STEPS`: too short to learn much."""
    seed: int = 0
    shuffle_public_labels: bool = False
    shuffle_test_labels: bool = False
    noise: int = 0
    """Seed of the noise of differential privacy."""
    mechanism: str = ""
    """Run it with differential privacy and a budget of `EPSILON`."""
    replay: Fit | None = None
    """Invert all private images, and deliver to the server what this other run sent."""
    payloads: list[tuple[Transfer, dict[str, torch.Tensor]]] = field(default_factory=list)
    data_before: str = ""
    """`data_digest` of its federation when the fit began."""

    def _inspect(self, transfer: Transfer, tensors: Mapping[str, torch.Tensor]) -> None:
        self.payloads.append(
            (transfer, {name: tensor.detach().clone() for name, tensor in tensors.items()})
        )

    def _deliver(
        self, transfer: Transfer, received: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        if self.replay is None or transfer.direction == "down":
            return received
        sent, tensors = self.replay.payloads[len(self.payloads) - 1]
        if (sent.kind, sent.client) != (transfer.kind, transfer.client):
            raise BrokenContractError(
                f"what client {transfer.client} sends next depends on its private images"
            )
        return {name: tensor.clone() for name, tensor in tensors.items()}

    @property
    def _private(self) -> dict[str, Scalar]:
        """Configuration of a private run."""
        if not self.mechanism:
            return {}
        noise = 1.0 if self.mechanism == RELEASED else 0.0
        return {
            "privacy.epsilon": EPSILON,
            "privacy.mechanism": self.mechanism,
            "privacy.noise_multiplier": noise,
            "privacy.queries": 50,
        }

    @functools.cached_property
    def federation(self) -> Federation:
        channel = Channel(self._inspect, self._deliver)
        axes = ("partition", "weights", "sampling", "shuffling")
        seeds = replace(Seeds.moving(axes, self.seed), noise=self.noise)
        federation = build_federation(
            Configuration.parse(
                {
                    **small_config(type(self.method)),
                    **(BRIEF if self.brief else {}),
                    **self._private,
                }
            ),
            small_data(type(self.method)),
            type(self.method),
            Run(seeds, StageCache(None), channel=channel),
        )
        if self.replay is not None:
            held = [client.run(lambda shard: shard._images) for client in federation.clients]
            for images in {images.data_ptr(): images for images in held}.values():
                invert(images)  # where shards are views of one tensor, once
        order = torch.Generator().manual_seed(1)
        if self.shuffle_public_labels:
            labels = federation.evaluation.labels_of_public
            if labels is not None:  # the scenario may have none to be read
                shuffled = labels[torch.randperm(len(labels), generator=order)]
                federation.evaluation.labels_of_public = shuffled
        if self.shuffle_test_labels:
            test = federation.evaluation.test_set
            federation.evaluation.test_set = replace(
                test, targets=test.targets[torch.randperm(len(test.targets), generator=order)]
            )
        return federation

    @functools.cached_property
    def fitted(self) -> Fitted:
        self.data_before = data_digest(self.federation)
        return (shortened(self.method) if self.brief else self.method).fit(self.federation)

    @functools.cached_property
    def modules(self) -> list[torch.nn.Module]:
        """The learnt model or models."""
        if isinstance(self.fitted, torch.nn.Module):
            return [self.fitted]
        try:
            checkpoints = listed(self.fitted)
        except TypeError as error:
            raise BrokenContractError(str(error)) from error
        return [self.federation.networks.module(checkpoint) for checkpoint in checkpoints]

    @functools.cached_property
    def digest(self) -> str:
        """Digest of everything learnt. Raises NotJudgedError where that is no model."""
        try:
            modules = self.modules
        except BrokenContractError as error:
            raise NotJudgedError("what fit returns cannot be compared") from error
        return "".join(content_digest(module.state_dict()) for module in modules)

    @property
    def is_personal(self) -> bool:
        """Whether it leaves one model per client, which stay with them, rather than one at the
        server.
        """
        return not isinstance(self.fitted, torch.nn.Module | Checkpoint)


def data_digest(federation: Federation) -> str:
    """Digest of all private and public images, and of the private targets."""
    shards = [
        client.run(lambda shard: content_digest({"x": shard.images, "y": shard.targets}))
        for client in federation.clients
    ]
    return "".join([*shards, content_digest({"public": federation.public.images})])


def shortened(method: Method) -> Method:
    """The method with loops of its own of at most `BRIEF_STEPS`, if it can be had so."""
    steps = {
        name: min(most, getattr(method, name))
        for name, most in BRIEF_STEPS.items()
        if isinstance(getattr(method, name, None), int)
    }
    try:
        return replace(method, **steps)
    except ValueError:  # its other fields do not fit such short loops
        return method


@functools.lru_cache(maxsize=2)
def baseline(method: Method) -> Fit:
    """The brief plain run that several checks look at."""
    return Fit(method)


@functools.lru_cache(maxsize=2)
def repeated(method: Method) -> Fit:
    """The plain run again, with all labels shuffled that must not matter. If it learns the same,
    the method repeats itself and reads none of them; if not, a run for each tells which it is.
    """
    hidden = "public-labels" not in method.oracle
    return Fit(method, shuffle_public_labels=hidden, shuffle_test_labels=True)


@functools.lru_cache(maxsize=2)
def repeats(method: Method) -> bool:
    """Whether the same seeds give the same weights to the last bit."""
    first = baseline(method).digest
    return first == repeated(method).digest or first == Fit(method).digest


def repeatable(method: Method) -> Fit:
    """The plain run of a method that repeats itself. Raises NotJudgedError for another, of which
    two runs differ whatever else does.
    """
    if not repeats(method):
        raise NotJudgedError("two runs with the same seeds differ anyway")
    return baseline(method)


def learns(method: Method) -> None:
    """It learns: far better than guessing on the test set."""
    fit = Fit(method, brief=False)
    headline = fit.federation.task.metric_names[0]
    values = [fit.federation.evaluation.test(module)[headline] for module in fit.modules]
    mean = sum(values) / len(values)
    if mean < LEAST[headline]:
        raise BrokenContractError(
            f"{headline} {mean:.3f} is no better than guessing; does the loss reach the model?"
        )


def is_deterministic(method: Method) -> None:
    """The same seeds give the same weights to the last bit; other seeds give others."""
    if not repeats(method):
        raise BrokenContractError(
            "two runs with the same seeds differ; draw from federation.streams, never from a global"
            " generator"
        )
    if baseline(method).digest == Fit(method, seed=1).digest:
        raise BrokenContractError(
            "another seed gives the same weights; the method ignores federation.streams"
        )


def declares_what_it_sends(method: Method) -> None:
    """The kinds of payload that leave clients are exactly those in `sends`."""
    fit = baseline(method)
    _ = fit.fitted
    sent = {t.kind for t in fit.federation.channel.ledger if t.direction == "up"}
    if sent != method.sends:
        raise BrokenContractError(
            f"sends = {sorted(method.sends)}, but the ledger shows {sorted(sent)} going up"
        )


def never_reads_public_labels(method: Method) -> None:
    """Shuffling the hidden labels of the public set changes nothing, unless an oracle is declared,
    which then matters.
    """
    first, shuffled = repeatable(method).digest, Fit(method, shuffle_public_labels=True)
    if "public-labels" in method.oracle:
        if first == shuffled.digest:
            raise BrokenContractError(
                "it declares the oracle public-labels but does not depend on them; drop the"
                " declaration"
            )
    elif first != repeated(method).digest and first != shuffled.digest:
        raise BrokenContractError(
            "it depends on labels of the public set; declare oracle = {'public-labels'} or do"
            " without"
        )


def never_reads_test_labels(method: Method) -> None:
    """Shuffling the test labels changes no weight: nothing was chosen by test accuracy."""
    first = repeatable(method).digest
    shuffled = Fit(method, shuffle_test_labels=True)
    if first != repeated(method).digest and first != shuffled.digest:
        raise BrokenContractError(
            "its weights depend on test labels; choose models on other data than the test set"
        )


def keeps_private_samples_private(method: Method) -> None:
    """No payload that leaves a client contains a sample, its own or another's, as bytes, in [0, 1],
    or normalised.

    Unless it declares the oracle `private-samples`: an upper bound that pools the data.
    """
    if "private-samples" in method.oracle:
        return
    fit = baseline(method)
    _ = fit.fitted
    for transfer, tensors in fit.payloads:
        if transfer.direction == "up":
            for tensor in tensors.values():
                if any(
                    client.run(_contains_sample, tensor, fit.federation)
                    for client in fit.federation.clients
                ):
                    raise BrokenContractError(
                        f"a raw private sample crosses from client {transfer.client} as"
                        f" {transfer.kind!r}"
                    )


def _contains_sample(shard: Shard, payload: torch.Tensor, federation: Federation) -> bool:
    size = shard.images[0].numel()
    if payload.numel() % size:
        return False
    sent = payload.reshape(-1, size).double()
    scaled = unit_range(shard.images)
    views = (shard.images, scaled, federation.normalise(scaled))
    return any(
        torch.cdist(sent, view.reshape(-1, size).double()).min().item() < 1e-6 * size
        for view in views
    )


def learns_from_clients_only_by_the_channel(method: Method) -> None:
    """With other private images but the same messages the server learns the same: nothing reached
    it around the channel.
    """
    first = repeatable(method)
    if not first.is_personal and first.digest != Fit(method, replay=first).digest:
        raise BrokenContractError(
            "the server's model depends on private data that did not cross the channel; send it"
            " with federation.channel.up"
        )


def keeps_its_budget(method: Method) -> None:
    """Under each mechanism of differential privacy that it names, it sends what it says, and spends
    no more than the budget.
    """
    for mechanism, kinds in type(method).protections().items():
        fit = Fit(method, mechanism=mechanism)
        _ = fit.fitted
        federation = fit.federation
        sent = {t.kind for t in federation.channel.ledger if t.direction == "up"}
        if sent != kinds:
            raise BrokenContractError(
                f"protected[{mechanism!r}] = {sorted(kinds)}, but the ledger shows {sorted(sent)}"
                " going up"
            )
        assert federation.privacy.protection is not None
        accountant = federation.privacy.protection.accountant
        senders = {t.client for t in federation.channel.ledger if t.direction == "up"}
        silent = sorted(client for client in senders if not accountant.releases(client))
        if mechanism != RELEASED and (silent or accountant.epsilon() > EPSILON):
            raise BrokenContractError(
                f"under {mechanism} epsilon is {accountant.epsilon():.3f} of {EPSILON:g}"
                + (
                    f", and clients {silent} told the accountant nothing; call"
                    " federation.privacy.spend"
                    if silent
                    else ""
                )
            )
        if mechanism == RELEASED:
            continue
        other = Fit(method, mechanism=mechanism, noise=1)
        _ = other.fitted
        for (transfer, payload), (_, theirs) in zip(fit.payloads, other.payloads, strict=True):
            same = all(torch.equal(payload[name], theirs[name]) for name in payload)
            if same and transfer.direction == "up":
                raise BrokenContractError(
                    f"under {mechanism} no noise reaches what client {transfer.client} sends as"
                    f" {transfer.kind!r}"
                )


def leaves_data_alone(method: Method) -> None:
    """Private and public images are the same after the run as before."""

    fit = baseline(method)
    _ = fit.fitted
    if data_digest(fit.federation) != fit.data_before:
        raise BrokenContractError("it changes images or labels in place; work on a copy")


CHECKS: tuple[Callable[[Method], None], ...] = (
    learns,
    is_deterministic,
    declares_what_it_sends,
    never_reads_public_labels,
    never_reads_test_labels,
    keeps_private_samples_private,
    learns_from_clients_only_by_the_channel,
    keeps_its_budget,
    leaves_data_alone,
)


def place(method: Method, error: BaseException | None = None) -> str:
    """`FILE:LINE` of a method: of its own line where `error` was raised; else of its `fit`, or of
    its class where that has none of its own.
    """
    kind = type(method)
    path = inspect.getsourcefile(kind)
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    lines = [frame.lineno for frame in frames if frame.filename == path]
    own = vars(kind).get("fit", kind)
    return f"{path}:{lines[-1] if lines else inspect.getsourcelines(own)[1]}"


def contract_method(entry: MethodEntry) -> Method:
    """The method as the contract runs it: its defaults, with local loops of at most three epochs,
    and what `quick` says.
    """
    method = entry.load()
    return method(
        **{f.name: 3 for f in fields(method) if f.name.endswith("epochs")} | dict(method.quick)
    )
