"""Small fits whose steps may be replayed."""

from dataclasses import fields, replace

from fedtables.benchmarks.scenarios.small import small_method
from fedtables.benchmarks.tables import registry
from fedtables.federation.execution import Execution
from fedtables.federation.fitting import fit
from tests.device_fits import federation_on

TOGETHER = ("fd", "fedavg", "fedavg-plus", "fedgen", "fedproto", "fedprox", "fedprox-plus", "fedsa")
"""Methods whose clients learn at the same time in a round; with and without a penalty."""
THREE = {"partition.clients": 3}
"""So that of clients two and two are together, one is left over."""


def fitted(name, device="cpu", stacked=1, **further):
    """What a method fits where whole steps may be replayed."""
    method = small_method(registry.find_method(name))
    names = [field.name for field in fields(method)]
    method = replace(
        method,
        **{n: 2 for n in names if n.endswith("epochs")},
        **{n: 2 if name in TOGETHER else 1 for n in names if n == "rounds"},
    )
    changes = {"local.epochs": 2, "local.batch_size": 2, "server.batch_size": 4, **further}
    federation = federation_on(
        device, method, execution=Execution(compile="graphs", stacked=stacked), **changes
    )
    return fit(federation, method)
