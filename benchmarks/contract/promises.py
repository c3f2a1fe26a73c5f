"""The promises that every method keeps, each checked by fits on a small federation, and the
verdicts on one method: in the test suite, by `fedtables check METHOD`, and for the rows
of plug-ins that a table has.
"""

import contextlib
import functools
import inspect
import itertools
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from fedtables.benchmarks.contract import fits
from fedtables.benchmarks.contract.fits import BrokenContractError, Fit
from fedtables.benchmarks.scenarios.small import EPSILON, LEAST, small_headline, small_method
from fedtables.benchmarks.tables.registry import MethodEntry
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.datasets.access import AccessError
from fedtables.federation.data import Checkpoint
from fedtables.federation.method import Method
from fedtables.privacy.plan import RELEASED
from fedtables.results.files import cache_home, digest, read_sealed_json, write_sealed_json
from fedtables.results.sourcecode import source_digest


@functools.lru_cache(maxsize=2)
def baseline(method: Method) -> Fit:
    """The brief plain run that several checks look at."""
    return Fit(method)


@functools.lru_cache(maxsize=2)
def replayed(method: Method) -> Fit:
    """The plain run with other samples on clients 0, 2, ..., but with the plain run's messages."""
    return Fit(method, changes=[fits.with_other_samples], replay=baseline(method))


@functools.lru_cache(maxsize=2)
def hidden_changed(method: Method) -> Fit:
    """The plain run with another test set, and with other labels of the public set, unless they are
    a declared oracle.
    """
    labels = [] if "public-labels" in method.oracle else [fits.with_other_public_labels]
    return Fit(method, changes=[*labels, fits.with_other_test_set])


def learns(method: Method) -> None:
    """It learns: far better than guessing on the test set."""
    fit = Fit(method, brief=False)
    headline = small_headline(type(method))
    scores = [fit.federation.evaluation.test(module)[headline] for module in fit.modules]
    if (score := sum(scores) / len(scores)) < LEAST[headline]:
        raise BrokenContractError(
            f"{headline} {score:.3f} with quick = {dict(method.quick)}, its own or"
            f" inherited, but the contract needs {LEAST[headline]:g}; give quick more rounds or"
            " steps, and check that the loss reaches the model"
        )


def is_deterministic(method: Method) -> None:
    """The same seeds give the same weights to the last bit; other seeds give others."""
    first = baseline(method).digests
    # A fit on other hidden data that learns the same has repeated itself: one fit for two promises.
    if first != hidden_changed(method).digests and first != Fit(method).digests:
        raise BrokenContractError(
            "two runs with the same seeds differ; draw from federation.streams, never from a global"
            " generator"
        )
    if first == Fit(method, seed=1).digests:
        raise BrokenContractError(
            "another seed gives the same weights; the method ignores federation.streams"
        )


def declares_what_it_sends(method: Method) -> None:
    """The kinds of payload that leave clients are exactly those in `sends`."""
    sent = {message.kind for message in baseline(method).sent}
    if sent != method.sends:
        raise BrokenContractError(
            f"sends = {sorted(method.sends)}, but the ledger shows {sorted(sent)} going up"
        )


def learns_nothing_hidden(method: Method) -> None:
    """With other labels of the public set, unless they are a declared oracle, and another test set
    it learns the same.
    """
    if baseline(method).digests != hidden_changed(method).digests:
        raise BrokenContractError(
            "its weights depend on the test set, or on labels of the public set; learn from other"
            " data and choose models by them, or declare oracle = {'public-labels'}"
        )


def keeps_private_samples_private(method: Method) -> None:
    """No payload that leaves a client is one of its samples or holds one, even scaled, reordered or
    cast.

    Unless it declares the oracle `private-samples`, an upper bound that pools the data, and sends
    them as `images`.
    """
    declared = {"images"} if "private-samples" in method.oracle else set()
    if method.reconstructs:  # whose conditions are undersampled samples
        declared.add("conditions")
    for message, other in zip(baseline(method).sent, replayed(method).sent, strict=True):
        for name, tensor in message.tensors.items() if message.kind not in declared else ():
            if count := fits.pixels_in(tensor, other.tensors[name]):
                raise BrokenContractError(
                    f"client {message.client} sends samples as {message.kind!r}: {count} values of"
                    f" {name!r} are pixels, whatever form they have; send what is learnt of them"
                )


def learns_from_clients_only_by_the_channel(method: Method) -> None:
    """With other samples on some clients but the same messages the server learns the same, and so
    do the other clients.
    """
    first, other = baseline(method), replayed(method)
    personal = not isinstance(first.fitted, torch.nn.Module | Checkpoint)
    if not personal and first.digests != other.digests:
        raise BrokenContractError(
            "the server's model depends on private data that did not cross the channel; send it"
            " with federation.channel.up"
        )
    sent = zip(first.sent, other.sent, strict=True)
    pairs: list[tuple[int, object, object]] = [(one.client, one, again) for one, again in sent]
    if personal:
        pairs += zip(itertools.count(), first.digests, other.digests)
    for client, one, another in pairs:
        if client % 2 and one != another:
            raise BrokenContractError(
                f"what client {client} learns or sends depends on samples of other clients that did"
                " not cross the channel"
            )


def keeps_its_budget(method: Method) -> None:
    """Under each mechanism of differential privacy that it names, it sends what it says, with noise
    in all of it, and spends no more than the budget.
    """
    for mechanism, kinds in type(method).protections().items():
        fit = Fit(method, mechanism=mechanism)
        if (sent := {message.kind for message in fit.sent}) != kinds:
            raise BrokenContractError(
                f"protected[{mechanism!r}] = {sorted(kinds)}, but the ledger shows"
                f" {sorted(sent)} going up"
            )
        if mechanism == RELEASED:
            continue
        assert fit.federation.privacy.protection is not None
        accountant = fit.federation.privacy.protection.accountant
        if silent := [m.client for m in fit.sent if not accountant.releases(m.client)]:
            raise BrokenContractError(
                f"under {mechanism} clients {sorted(set(silent))} told the accountant nothing; call"
                " federation.privacy.spend"
            )
        if (epsilon := accountant.epsilon()) > EPSILON:
            raise BrokenContractError(f"under {mechanism} epsilon is {epsilon:.3f} of {EPSILON:g}")
        _has_noise(fit)


def _has_noise(fit: Fit) -> None:
    """Every tensor that changes with the samples changes with the noise."""
    private = functools.partial(Fit, fit.method, mechanism=fit.mechanism, replay=fit)
    noisy, other = private(noise=1), private(changes=[fits.with_other_samples])
    for sent, again, changed in zip(fit.sent, noisy.sent, other.sent, strict=True):
        for name, tensor in sent.tensors.items():
            bare = torch.equal(tensor, again.tensors[name])
            if bare and not torch.equal(tensor, changed.tensors[name]):
                raise BrokenContractError(
                    f"under {fit.mechanism} no noise reaches {name!r} of what client {sent.client}"
                    f" sends as {sent.kind!r}"
                )


def leaves_data_alone(method: Method) -> None:
    """Public images are the same after the run as before."""
    fit = baseline(method)
    _ = fit.fitted
    if not torch.equal(fit.federation.public.images, Fit(method).federation.public.images):
        raise BrokenContractError("it changes images in place; work on a copy")


def learns_the_same_by_graphs(method: Method) -> None:
    """Under `--compile graphs` replayed steps teach it the same, to the last bit, as taken ones."""
    try:
        taken, replayed = (Fit(method, graphs=how).digests for how in ("taken", "replayed"))
    except RuntimeError as error:
        raise BrokenContractError(
            f"no CUDA graph can hold its steps ({error}); a loss, and a SteadyPenalty, never wait"
            " for the device"
        ) from error
    if taken != replayed:
        raise BrokenContractError(
            "steps that are replayed teach it otherwise than steps that are taken; a loss, and a"
            " SteadyPenalty, are the same function in every step, read what varies from tensors"
            " that stay, and draw from the streams that they name"
        )


CHECKS: tuple[Callable[[Method], None], ...] = (
    learns,
    is_deterministic,
    declares_what_it_sends,
    learns_nothing_hidden,
    keeps_private_samples_private,
    learns_from_clients_only_by_the_channel,
    keeps_its_budget,
    leaves_data_alone,
    learns_the_same_by_graphs,
)

KEPT, BROKEN, NOT_JUDGED = "kept", "broken", "not judged"


@dataclass(frozen=True)
class PromiseVerdict:
    """On one promise."""

    promise: str
    word: str
    """`KEPT`, `BROKEN` or `NOT_JUDGED`."""
    finding: str = ""
    place: str = ""
    """`FILE:LINE` of the method."""


def judge(entry: MethodEntry) -> Iterator[PromiseVerdict]:
    """Verdicts on all promises, one after another; of a method that does not repeat itself, nothing
    further is compared. Raises SpecError for a method that does not run.
    """
    subject, repeats = small_method(entry), True
    for check in CHECKS:
        promise = " ".join(str(check.__doc__).split("\n\n")[0].split())
        if not repeats:
            why = "no two runs can be compared"
            yield PromiseVerdict(promise, NOT_JUDGED, why, place(subject))
            continue
        try:
            check(subject)
            yield PromiseVerdict(promise, KEPT)
        except (BrokenContractError, AccessError) as error:
            repeats = check is not is_deterministic
            yield PromiseVerdict(promise, BROKEN, str(error), place(subject))
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}".splitlines()[0][:500]
            raise SpecError(
                f"{entry.name} does not run: {why} ({place(subject, error)})"
            ) from error


def place(method: Method, error: BaseException | None = None) -> str:
    """`FILE:LINE` of a method: of its line where `error` was raised, else of its `fit` or class."""
    kind = type(method)
    path = inspect.getsourcefile(kind)
    frames = traceback.extract_tb(error.__traceback__) if error else []
    lines = [frame.lineno for frame in frames if frame.filename == path]
    own = vars(kind).get("fit", kind)
    return f"{path}:{lines[-1] if lines else inspect.getsourcelines(own)[1]}"


def findings(entry: MethodEntry) -> tuple[str, ...]:
    """What promises a method does not keep, each once, as it was found; kept in the cache until
    its code or the contract's changes.
    """
    code = [entry.code, source_digest(__name__)]
    path = cache_home() / "contracts" / f"{digest([entry.name, code])}.json"
    with contextlib.suppress(FileNotFoundError):
        if kept := read_sealed_json(path):
            return tuple(kept["findings"])
    try:
        found = [v.finding for v in judge(entry) if v.word != KEPT]
    except SpecError as error:
        found = [str(error)]
    write_sealed_json(path, {"findings": (unique := list(dict.fromkeys(found)))})
    return tuple(unique)
