"""Flat configurations and their sections: what is refused, what is taken as it is."""

import math
from dataclasses import dataclass

import pytest

from fedtables.benchmarks.scenarios.configuration import (
    SECTIONS,
    Configuration,
    NetworkSettings,
    PartitionSettings,
    read_section,
)
from fedtables.benchmarks.scenarios.small import CONFIG
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.federation.augmentation import Augmentation
from fedtables.federation.training.plan import TrainingPlan
from fedtables.privacy.plan import PrivacyPlan

PRIVATE = {"privacy.dp": "yes", "privacy.epsilon": 10, "privacy.mechanism": "dp-sgd"}


def parse(**changes):
    return Configuration.parse({**CONFIG, **changes})


def test_sections_hold_their_settings_and_defaults_for_the_others():
    parsed = parse()
    assert (parsed.data.name, parsed.data.image_size, parsed.data.task) == (
        "digits",
        8,
        "classification",
    )
    assert parsed.partition == PartitionSettings(
        "niid2",
        5,
        client_share=0.5,
        public_share=0.77,
        public_limit=200,
        validation_share=0.1,
        probe_share=0.1,
    )
    assert parsed.local == TrainingPlan(epochs=6, batch_size=16, lr=5e-3)
    assert parsed.server == TrainingPlan(epochs=15, batch_size=16, lr=5e-3)
    assert parsed.augmentation == Augmentation(rotation=5)
    assert (parsed.public.name, parsed.private.name) == (None, "")
    assert parse(**{"augmentation.rotation": 0}).augmentation is None


def test_some_epochs_alone_are_looked_at_where_a_statistic_is_of_the_last():
    assert parse().evaluation.looks == 0
    assert parse(**{"evaluation.looks": 20}).evaluation.looks == 20
    others = {"evaluation.statistic": "best", "evaluation.last_epochs": 3, "evaluation.at": 0.5}
    for name, value in others.items():
        with pytest.raises(SpecError, match=r"of all epochs: leave evaluation\.looks at 0"):
            parse(**{"evaluation.looks": 20, name: value})
    with pytest.raises(ValueError, match=r"evaluation\.looks is a number from 0, .* not -1"):
        parse(**{"evaluation.looks": -1})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("local.epoch", 1, "unknown setting 'local.epoch'; did you mean local.epochs"),
        ("server.learning_rate", 1, "unknown setting 'server.learning_rate'"),
        ("partition.client", 1, "did you mean partition.client_share or partition.clients"),
        ("local.epochs", "ten", "local.epochs is a whole number, not 'ten'"),
        ("partition.clients", 5.5, "partition.clients is a whole number, not 5.5"),
        ("partition.public_share", "most", "partition.public_share is a number, not 'most'"),
        ("network.client", 18, "network.client is text, not 18"),
        ("partition.kind", "dirichlet-fedkd", "needs a partition.alpha above 0, not 0.0"),
        ("partition.probe_order", "consecutiv", "cannot be 'consecutiv'; did you mean consecutive"),
        ("evaluation.statistic", "mean", "cannot be 'mean'; known: best, last"),
        ("evaluation.last_epochs", 0, r"last_epochs is a number from 1, .*, not 0"),
        ("evaluation.at", 0.0, r"evaluation\.at is a number above 0, at most 1, not 0\.0"),
    ],
)
def test_what_a_section_does_not_know_or_take_is_refused(name, value, message):
    with pytest.raises((SpecError, ValueError), match=message):
        parse(**{name: value})


def test_a_missing_setting_is_named():
    config = {name: value for name, value in CONFIG.items() if name != "local.epochs"}
    with pytest.raises(SpecError, match=r"local\.epochs is not set"):
        Configuration.parse(config)


def test_a_role_names_a_network_or_is_one():
    networks = parse(**{"network.resnet": "resnet8-narrow"}).network
    assert networks.named("resnet") == "resnet8-narrow"
    assert networks.named("wrn-16-2") == "wrn-16-2"


def test_mixed_clients_are_half_and_half_in_order():
    assert NetworkSettings("resnet", "resnet").client_roles(5) == ["resnet"] * 5
    mixed = NetworkSettings("resnet+densenet", "resnet").client_roles(10)
    assert mixed == ["resnet"] * 5 + ["densenet"] * 5


def test_privacy_is_a_plan_only_where_it_is_asked_for():
    assert parse().privacy is None
    assert parse(**{**PRIVATE, "privacy.dp": "no"}).privacy is None
    assert parse(**PRIVATE).privacy == PrivacyPlan("dp-sgd", 10.0)
    assert type(parse(**PRIVATE).privacy.epsilon) is float
    with pytest.raises(SpecError, match=r"privacy\.mechanism is not set"):
        parse(**{"privacy.epsilon": 10.0})


def test_the_released_noise_has_no_budget():
    released = parse(**{**PRIVATE, "privacy.mechanism": "released", "privacy.noise_multiplier": 1})
    assert released.privacy.epsilon == math.inf


@dataclass(frozen=True)
class Meals:
    """A section of one's own."""

    cooks: int = 1


def test_whoever_needs_settings_of_its_own_reads_them_in_the_same_way():
    assert read_section({"meals.cooks": 2, "local.epochs": 1}, "meals", Meals) == Meals(2)
    with pytest.raises(SpecError, match=r"unknown setting 'meals\.cook'; did you mean meals.cooks"):
        read_section({"meals.cook": 2}, "meals", Meals)


def test_no_method_can_be_called_what_settings_are():
    assert SECTIONS < registry.RESERVED
