"""The one place where a federation is put together: a scenario's parts, and what the configuration
says of all the rest.
"""

from collections.abc import Mapping
from dataclasses import replace

from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets, built_on
from fedtables.benchmarks.tables.registry import MethodEntry, find_scenario
from fedtables.benchmarks.tables.spec import DUPLICATES, Scalar
from fedtables.federation.federation import Federation
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.method import Method
from fedtables.federation.parts import Parts, Plans, Run, put_together
from fedtables.federation.tasks.base import conditioned
from fedtables.privacy.plan import RELEASED, PrivacyPlan
from fedtables.results.numbers import check_bounds


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
    parts = scenario.parts(configuration, data, run.seeds, built_on(run.device))
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
    networks, privacy = configuration.network, configuration.privacy
    if method.dense:
        conditioned(parts.task)
    protection = None
    if privacy is not None:
        kinds = method.kinds_under(privacy.mechanism)
        protection = Protection(privacy, kinds, _group(parts, privacy))
    roles = networks.client_roles(len(parts.clients))
    plans = Plans(
        clients=[networks.named(role) for role in roles],
        roles=roles,
        network=networks.named(networks.server),
        local=configuration.local,
        server=configuration.server,
        augmentation=configuration.augmentation,
        pretrained=networks.pretrained == "imagenet",
        looks=configuration.evaluation.looks,
    )
    return put_together(parts, plans, run, protection, method.oracle)


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
