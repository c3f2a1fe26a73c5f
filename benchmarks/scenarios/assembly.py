"""The one place where a federation is put together: a scenario's parts, and what the configuration
says of all the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch

from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets, Parts
from fedtables.benchmarks.tables.registry import MethodEntry, find_scenario
from fedtables.benchmarks.tables.spec import DUPLICATES, Scalar
from fedtables.federation.cache import StageCache
from fedtables.federation.channel import Channel
from fedtables.federation.client import Client
from fedtables.federation.execution import DEFAULT, Execution
from fedtables.federation.federation import Federation
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.inside.setup import HeldOut, Setup
from fedtables.federation.method import Method
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.base import conditioned
from fedtables.models.catalogue import network_for
from fedtables.privacy.plan import RELEASED, PrivacyPlan
from fedtables.results.numbers import check_bounds


@dataclass(frozen=True)
class Run:
    """How a federation is run: seeds, cache and device. On the device `meta` nothing is loaded or
    computed, only sizes are known.
    """

    seeds: Seeds
    stages: StageCache
    device: str = "cpu"
    channel: Channel | None = None
    """None for a new one."""
    progress: Callable[[str, float], None] = lambda text, share: None
    execution: Execution = DEFAULT


def make_method(entry: MethodEntry, config: Mapping[str, Scalar]) -> Method:
    """The method with the fields that the configuration sets as `<name>.<field>`.

    Raises ValueError for one that the method does not take.
    """
    method, prefix = entry.load(), f"{entry.name}."
    fields = {n.removeprefix(prefix): v for n, v in config.items() if n.startswith(prefix)}
    check_bounds(method, fields, prefix)
    return method(**fields)


def build_federation(
    configuration: Configuration, data: DataSets, method: type[Method], run: Run
) -> Federation:
    """The federation of one cell, by the scenario that claims its task.

    Raises DataError for absent or damaged data and impossible partitions, SpecError for a task that
    no scenario claims, ValueError for what `assemble` refuses.
    """
    scenario = find_scenario(configuration.data.task)
    parts = scenario.parts(configuration, data, run.seeds, run.device)
    return assemble(parts, configuration, method, run)


def assemble(
    parts: Parts, configuration: Configuration, method: type[Method], run: Run
) -> Federation:
    """A federation of a scenario's parts.

    Raises ValueError if differential privacy is asked for in a form that the method does not have
    or of samples that clients hold more than once, an augmentation of images whose targets are
    values of every pixel, a task that a method of dense tasks cannot learn, and for validation
    samples where none are held out.
    """
    parts = _looked_at(parts, configuration.evaluation.on)
    networks, plan = configuration.network, configuration.privacy
    if method.dense:
        conditioned(parts.task)
    if plan is not None and plan.mechanism not in method.protections():
        raise ValueError(f"{method.__name__} has no private form under {plan.mechanism}")
    protection = None
    if plan is not None:
        kinds = method.protections()[plan.mechanism]
        protection = Protection(plan, kinds, _group(parts, plan))
    if configuration.augmentation is not None and any(
        task.dense and task.classes is None
        for task in (parts.task, *(c.task for c in parts.clients if c.task))
    ):
        raise ValueError(
            "images with values for every pixel are not augmented: a direction among them would not"
            " turn with its image; leave augmentation.* off"
        )
    roles, dims = networks.client_roles(len(parts.clients)), len(parts.image_shape) - 1
    clients = tuple(
        Client(
            index,
            role,
            network_for(networks.named(role), dense=(client.task or parts.task).dense, dims=dims),
            client.shard,
            client.label_counts,
            client.digest,
            client.task,
            client.normalise,
        )
        for index, (role, client) in enumerate(zip(roles, parts.clients, strict=True))
    )
    setup = Setup(
        clients=clients,
        public=parts.public,
        probe=parts.probe,
        task=parts.task,
        network=network_for(networks.named(networks.server), dense=parts.task.dense, dims=dims),
        image_shape=parts.image_shape,
        normalise=parts.normalise,
        local=configuration.local,
        server=configuration.server,
        augmentation=configuration.augmentation,
        seeds=run.seeds,
        stages=run.stages,
        channel=run.channel or Channel(),
        device=torch.device(run.device),
        execution=run.execution,
        pretrained=networks.pretrained == "imagenet",
        progress=run.progress,
    )
    held = HeldOut(
        test=parts.test,
        further_tests=parts.further_tests,
        validation=parts.validation,
        oracle_labels=parts.oracle_labels,
        oracle_allowed=method.oracle,
        looks=configuration.evaluation.looks,
    )
    return Federation(setup, held, protection)


def _group(parts: Parts, plan: PrivacyPlan) -> int:
    """Samples of one group, such as a patient, that clients hold at most.

    Raises ValueError where one sample lies with them more than once: each copy spends the budget
    again, so that epsilon would cover an entry of a shard, and nobody's sample.
    """
    if (copies := parts.copies()) > 1 and plan.mechanism != RELEASED:
        raise ValueError(
            f"privacy.epsilon is of one sample, but clients hold one up to {copies} times here, and"
            f" each copy costs as much again; where clients draw from one pool set {DUPLICATES}="
            "false and partition.client_share=0.05, else choose a partition without overlap, or"
            " leave out privacy.epsilon"
        )
    return parts.largest_group()


def _looked_at(parts: Parts, on: str) -> Parts:
    """The parts with the samples that metrics are taken on as test samples. Raises ValueError as
    `assemble`.
    """
    if on == "test":
        return parts
    if parts.validation is None:
        raise ValueError(
            "evaluation.on=validation needs samples that are held out: set"
            " partition.validation_share"
        )
    return replace(parts, test=parts.validation, further_tests={})
