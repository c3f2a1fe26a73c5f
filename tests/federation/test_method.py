"""Every fit is a run of its own: guarded whatever class brings it, and held to what it declares."""

from typing import ClassVar

import pytest
import torch

from fedtables.datasets.access import AccessError
from fedtables.federation.fitting import fit
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.method import Method
from fedtables.methods.fedavg import FedAvg
from fedtables.privacy.plan import PrivacyPlan
from fedtables.privacy.releases import GaussianSteps
from tests.federation.tiny import make_federation


def private():
    return make_federation(protection=Protection(PrivacyPlan("dp-sgd", epsilon=8.0)))


class Sending(Method):
    """Sends images as `kind`, with or without a word to the accountant."""

    sends = frozenset({"parameters"})
    protected: ClassVar = {"dp-sgd": sends}
    kind = "parameters"
    told = False

    def fit(self, federation):
        client = federation.clients[0]
        if self.told and federation.privacy.mechanism:
            federation.privacy.spend(client, GaussianSteps(10.0, 1.0, 1))
        federation.channel.up(client.index, self.kind, {"x": torch.zeros(1)})
        return federation.networks.initial()


def sending(**attributes):
    return type("Own", (Sending,), {"protected": Sending.protected, **attributes})()


class Look:
    """A mixin."""

    def fit(self, federation):
        return self.look(federation)


def looking(look):
    return type("Mine", (Look, Method), {"look": staticmethod(look)})()


FITS = pytest.mark.parametrize(
    "run", [lambda method, own: method.fit(own), lambda method, own: fit(own, method)]
)
"""By a script, and by the runner."""


@FITS
@pytest.mark.parametrize(
    "look",
    [
        lambda federation: federation.evaluation.test_set,
        lambda federation: federation.clients[0].run(lambda shard: shard.images),
    ],
)
def test_a_fit_that_a_mixin_brings_is_guarded(run, look):
    with pytest.raises(AccessError):
        run(looking(look), make_federation())


def test_the_runner_guards_a_fit_that_a_class_got_later():
    method = looking(None)
    type(method).fit = lambda self, federation: federation.evaluation.test_set
    with pytest.raises(AccessError):
        fit(make_federation(), method)


@FITS
def test_a_private_federation_refuses_a_mixin_without_the_form(run):
    method = looking(lambda federation: federation.networks.initial())
    with pytest.raises(ValueError, match="Mine"):
        run(method, private())


def test_a_run_within_a_run_is_part_of_it():
    class Twice(Sending):
        def fit(self, federation):
            super().fit(federation)
            return super().fit(federation)

    federation = make_federation()
    Twice().fit(federation)
    assert [transfer.messages for transfer in federation.channel.ledger] == [2]


@FITS
@pytest.mark.parametrize("own", [make_federation, private])
def test_what_is_sent_without_being_declared_ends_the_fit(run, own):
    with pytest.raises(ValueError, match="Own sends images"):
        run(sending(kind="images", told=True), own())


def test_what_the_accountant_was_not_told_of_ends_a_private_fit():
    with pytest.raises(ValueError, match="accountant"):
        sending().fit(private())
    sending(told=True).fit(private())


def test_after_a_fit_that_failed_the_next_method_is_asked_for_its_own_form():
    def fails(self, federation):
        raise ZeroDivisionError

    federation = private()
    with pytest.raises(ZeroDivisionError):
        sending(fit=fails).fit(federation)
    with pytest.raises(ValueError, match="Mine"):
        looking(lambda federation: federation.networks.initial()).fit(federation)
    FedAvg(rounds=1, participation=1.0).fit(federation)
    assert federation.privacy.protection.kinds == FedAvg.protected["dp-sgd"]
