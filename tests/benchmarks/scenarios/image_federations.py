"""Federations of images from the configurations of tables."""

from fedtables.baselines.standalone import Standalone
from fedtables.benchmarks.scenarios import images
from fedtables.benchmarks.scenarios.assembly import build_federation
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.defaults import filled
from fedtables.datasets import catalogue
from fedtables.federation.cache import StageCache
from fedtables.federation.parts import Run
from fedtables.federation.seeds import Seeds


def config_of(table: str, profile: str = "paper", **column: str):
    paper, found = registry.find_table(f"dlad/{table}")
    keys = {k.replace("_", "-"): v for k, v in column.items()}
    return filled(paper.config(found, found.rows[-1], keys, profile, "paper"))


def fediod_config(
    profile: str = "smoke",
    dataset: str = "cifar10",
    alpha: str = "1",
    row: str = "fedavg",
    **changes,
):
    paper, found = registry.find_table("fediod/table1")
    wanted = next(r for r in found.rows if r.key == row)
    keys = {"dataset": dataset, "alpha": alpha}
    return {**filled(paper.config(found, wanted, keys, profile, "paper")), **changes}


def federation_of(config, data, method=Standalone, device="cpu", **others):
    run = Run(Seeds(), StageCache(None), device)
    return build_federation(Configuration.parse(config), DataSets(data, **others), method, run)


def divide(config, labels, seeds, other=None, private=None, classes=0, owners=None):
    """The division of a flat configuration."""
    parsed = Configuration.parse(config)
    uses_public = parsed.public.name != ""
    return images.divide(
        parsed.partition,
        labels,
        seeds,
        other,
        private,
        classes,
        uses_public=uses_public,
        owners=owners,
    )


def build(config, device="cpu", name="cifar10", other: str = ""):
    """A federation on embedded data, with the public set of another data set if one is named."""
    data = catalogue.resolve(name, embedded=True)
    public = catalogue.resolve(other, embedded=True) if other else None
    return federation_of(config, data, device=device, public=public)


def fedsa_config(
    table: str = "table1", profile: str = "smoke", row: str = "fedsa", changes=None, **column: str
):
    paper, found = registry.find_table(f"fedsa/{table}")
    wanted = next(r for r in found.rows if r.key == row)
    keys = next(
        dict(c) for c in found.columns if all(c[name] == value for name, value in column.items())
    )
    return {**filled(paper.config(found, wanted, keys, profile, "paper")), **(changes or {})}
