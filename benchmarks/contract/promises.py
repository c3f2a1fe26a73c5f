"""The promises that every method keeps, checked on a small federation of real digits, or of
generated rooms or slices for methods of such tasks.

The same checks run in the test suite on every method found, by `python -m benchmarks check METHOD`
for whoever adds one, and for the rows of plug-ins that a table has.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterator
from dataclasses import fields

from benchmarks.contract.changes import BOTH, FIRST, SECOND
from benchmarks.contract.fits import (
    EPSILON,
    BrokenContractError,
    Fit,
    NotJudgedError,
    Outcome,
    of_client,
)
from benchmarks.contract.leaks import find, unprotected
from benchmarks.scenarios.small import LEAST, small_headline
from benchmarks.tables.registry import MethodEntry
from federation.method import Method
from privacy.plan import RELEASED


@functools.lru_cache(maxsize=2)
def baseline(method: Method) -> Outcome:
    """The brief plain run that several checks look at."""
    return Fit(method).outcome


@functools.lru_cache(maxsize=2)
def repeated(method: Method) -> Outcome:
    """The plain run again, with all labels shuffled that must not matter, and another test set. If
    it learns the same, the method repeats itself and reads none of them; if not, a run for each
    tells which it is.
    """
    hidden = "public-labels" not in method.oracle
    return Fit(method, shuffle_public_labels=hidden, other_test_set=True).outcome


@functools.lru_cache(maxsize=2)
def replayed(method: Method) -> Outcome:
    """The plain run with other private samples, but with the messages of the plain run."""
    return Fit(method, changes=BOTH, replay=baseline(method)).outcome


@functools.lru_cache(maxsize=2)
def repeats(method: Method) -> bool:
    """Whether the same seeds give the same weights to the last bit."""
    first = baseline(method).digest
    return first == repeated(method).digest or first == Fit(method).outcome.digest


def repeatable(method: Method) -> Outcome:
    """The plain run of a method that repeats itself. Raises NotJudgedError for another, of which
    two runs differ whatever else does.
    """
    if not repeats(method):
        raise NotJudgedError("two runs with the same seeds differ anyway")
    return baseline(method)


def learns(method: Method) -> None:
    """It learns: far better than guessing on the test set."""
    fit = Fit(method, brief=False).outcome
    if fit.no_model:
        raise BrokenContractError(fit.no_model)
    headline = small_headline(type(method))
    if fit.score < LEAST[headline]:
        raise BrokenContractError(
            f"{headline} {fit.score:.3f} with quick = {dict(method.quick)}, its own or"
            f" inherited, where {LEAST[headline]:g} is asked for; give quick more rounds or steps,"
            " and check that the loss reaches the model"
        )


def is_deterministic(method: Method) -> None:
    """The same seeds give the same weights to the last bit; other seeds give others."""
    if not repeats(method):
        raise BrokenContractError(
            "two runs with the same seeds differ; draw from federation.streams, never from a global"
            " generator"
        )
    if baseline(method).digest == Fit(method, seed=1).outcome.digest:
        raise BrokenContractError(
            "another seed gives the same weights; the method ignores federation.streams"
        )


def declares_what_it_sends(method: Method) -> None:
    """The kinds of payload that leave clients are exactly those in `sends`."""
    sent = baseline(method).kinds
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
        if first == shuffled.outcome.digest:
            raise BrokenContractError(
                "it declares the oracle public-labels but does not depend on them; drop the"
                " declaration"
            )
    elif first != repeated(method).digest and first != shuffled.outcome.digest:
        raise BrokenContractError(
            "it depends on labels of the public set; declare oracle = {'public-labels'} or do"
            " without"
        )


def never_reads_the_test_set(method: Method) -> None:
    """Another test set changes no weight: nothing was learnt from it or chosen by its metrics."""
    first = repeatable(method).digest
    other = Fit(method, other_test_set=True)
    if first != repeated(method).digest and first != other.outcome.digest:
        raise BrokenContractError(
            "its weights depend on the test set; choose models on other data, and learn from other"
            " images"
        )


def keeps_private_samples_private(method: Method) -> None:
    """No payload that leaves a client tells its samples, whatever form they are sent in.

    Unless it declares the oracle `private-samples`, an upper bound that pools the data, and sends
    them as `images`.
    """
    first = baseline(method)
    if not first.messages:
        return
    halves = [
        Fit(method, changes=half, replay=first, until_sent=True).outcome for half in (FIRST, SECOND)
    ]
    declared = frozenset({"images"}) if "private-samples" in method.oracle else frozenset()
    if method.reconstructs:  # whose conditions are undersampled samples
        declared |= method.sends & {"conditions"}
    one, other = (half.messages for half in halves)
    if found := find(first.messages, one, other, replayed(method).messages, declared, first.values):
        raise BrokenContractError(f"{found}; send what is learnt of them")


def learns_from_clients_only_by_the_channel(method: Method) -> None:
    """With other private samples but the same messages the server learns the same, and a client
    learns and sends the same if the samples are those of other clients.
    """
    first = repeatable(method)
    other = replayed(method)
    if not first.personal and first.digest != other.digest:
        raise BrokenContractError(
            "the server's model depends on private data that did not cross the channel; send it"
            " with federation.channel.up"
        )
    if not first.personal and not first.messages:
        return
    mixed = Fit(
        method, changes=BOTH, only_even=True, replay=first, until_sent=not first.personal
    ).outcome
    for client, expected in _expected(first, other):
        same = of_client(mixed.messages, client) == of_client(expected.messages, client)
        if first.personal and client < len(first.models):
            same = same and mixed.models[client] == expected.models[client]
        if not same:
            raise BrokenContractError(
                f"what client {client} learns or sends depends on samples of other clients that did"
                " not cross the channel"
            )


def _expected(first: Outcome, other: Outcome) -> Iterator[tuple[int, Outcome]]:
    """Every client, and in which of two runs it had the samples that it has where those of even
    clients alone are others.
    """
    clients = {message.client for message in first.messages}
    if first.personal:
        clients |= set(range(len(first.models)))
    for client in sorted(clients):
        yield client, first if client % 2 else other


def finds_nothing_elsewhere(method: Method) -> None:
    """While it fits it reads and writes no file but code, opens no connection, starts no process
    and does not search its own for data.
    """
    if asked := baseline(method).reached_for:
        raise BrokenContractError(f"{asked[0]} while it fits; it has what its federation gives")


def keeps_its_budget(method: Method) -> None:
    """Under each mechanism of differential privacy that it names, it sends what it says, and spends
    no more than the budget.
    """
    for mechanism, kinds in type(method).protections().items():
        fit = Fit(method, mechanism=mechanism).outcome
        if fit.kinds != kinds:
            raise BrokenContractError(
                f"protected[{mechanism!r}] = {sorted(kinds)}, but the ledger shows"
                f" {sorted(fit.kinds)} going up"
            )
        if mechanism == RELEASED:
            continue
        if fit.silent or fit.epsilon > EPSILON:
            raise BrokenContractError(
                f"under {mechanism} epsilon is {fit.epsilon:.3f} of {EPSILON:g}"
                + (
                    f", and clients {list(fit.silent)} told the accountant nothing; call"
                    " federation.privacy.spend"
                    if fit.silent
                    else ""
                )
            )
        if not fit.messages:
            continue
        other = Fit(method, mechanism=mechanism, noise=1, replay=fit, until_sent=True).outcome
        for message, another in zip(fit.messages, other.messages, strict=True):
            if message.content == another.content:
                raise BrokenContractError(
                    f"under {mechanism} no noise reaches what client {message.client} sends as"
                    f" {message.kind!r}"
                )
        changed = Fit(
            method, mechanism=mechanism, changes=BOTH, replay=fit, until_sent=True
        ).outcome
        if found := unprotected(fit.messages, other.messages, changed.messages):
            raise BrokenContractError(f"under {mechanism} {found}")


def learns_the_same_by_graphs(method: Method) -> None:
    """Under `--compile graphs` steps that are replayed teach it the same, to the last bit, as steps
    that are taken.
    """
    repeatable(method)
    taken = Fit(method, graphs="taken").outcome
    try:
        replayed = Fit(method, graphs="replayed").outcome
    except RuntimeError as error:
        raise BrokenContractError(
            f"no CUDA graph can hold its steps ({error}); a loss, and a SteadyPenalty, never wait"
            " for the device"
        ) from error
    if taken.digest != replayed.digest:
        raise BrokenContractError(
            "steps that are replayed teach it otherwise than steps that are taken; a loss, and a"
            " SteadyPenalty, are the same function in every step, read what varies from tensors"
            " that stay, and draw from the streams that they name"
        )


def leaves_data_alone(method: Method) -> None:
    """Private and public images are the same after the run as before."""
    if baseline(method).spoilt:
        raise BrokenContractError("it changes images or labels in place; work on a copy")


CHECKS: tuple[Callable[[Method], None], ...] = (
    learns,
    is_deterministic,
    declares_what_it_sends,
    never_reads_public_labels,
    never_reads_the_test_set,
    keeps_private_samples_private,
    learns_from_clients_only_by_the_channel,
    keeps_its_budget,
    leaves_data_alone,
    learns_the_same_by_graphs,
    finds_nothing_elsewhere,
)


def place(method: Method, error: BaseException | None = None) -> str:
    """`FILE:LINE` of a method: of its own line where `error` was raised; else of its `fit`, or of
    its class where that has none of its own.
    """
    kind = type(method)
    path = inspect.getsourcefile(kind)
    raised = [
        (f.filename, f.lineno) for f in traceback.extract_tb(getattr(error, "__traceback__", None))
    ]
    raised += getattr(error, "lines", [])  # of the process that it comes from
    lines = [line for filename, line in raised if filename == path]
    own = vars(kind).get("fit", kind)
    return f"{path}:{lines[-1] if lines else inspect.getsourcelines(own)[1]}"


def contract_method(entry: MethodEntry) -> Method:
    """The method as the contract runs it: its defaults, with local loops of at most three epochs,
    and what `quick` says.
    """
    method = entry.load()
    able = [field.name for field in fields(method) if field.init]
    brief = {name: 3 for name in able if name.endswith("epochs")} | dict(method.quick)
    return method(**{name: value for name, value in brief.items() if name in able})
