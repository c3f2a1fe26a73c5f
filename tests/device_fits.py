"""Small federations on a device, which may be one that is not there."""

from fedtables.benchmarks.scenarios.assembly import build_federation
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.small import small_config, small_data
from fedtables.federation.cache import StageCache
from fedtables.federation.execution import DEFAULT
from fedtables.federation.parts import Run
from fedtables.federation.seeds import Seeds


class PowerCutError(Exception):
    """What ends a run in the middle; not a bug."""


SMALLER = {
    "partition.kind": "dirichlet-fedkd",
    "partition.alpha": 10,
    "partition.clients": 2,
    "partition.pool_limit": 30,
    "partition.public_limit": 16,
    "partition.test_limit": 16,
    "local.epochs": 1,
    "server.epochs": 2,
}
AUGMENTED = {
    "augmentation.shift": 0.1,
    "augmentation.channel_shift": 0.1,
    "augmentation.horizontal_flip": True,
    "augmentation.crop": 1,
    "augmentation.cutout": 2,
}
"""Every augmentation, of two clients with one batch each; images of dense tasks have none."""


def federation_on(
    device,
    method,
    folder=None,
    progress=lambda text, share: None,
    execution=DEFAULT,
    **changes,
):
    stages = StageCache(folder, device=device)
    config = {**small_config(type(method)), **SMALLER}
    if method.reconstructs:
        config["partition.kind"] = "by-site"
    elif not method.dense:
        config |= AUGMENTED
    return build_federation(
        Configuration.parse(config | changes),
        small_data(type(method)),
        type(method),
        Run(Seeds(), stages, device, progress=progress, execution=execution),
    )
