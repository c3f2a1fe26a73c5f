"""Every method whose steps are recorded and replayed fits what it fits when they are taken: no loss
that it trains by is another function in each step.
"""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from benchmarks import contract
from benchmarks.tables import registry
from federation.fitting import fit
from federation.training import replay
from federation.training.execution import Execution
from tests.device_fits import federation_on
from tests.methods.shards import same_bits
from tests.tape import Tape

FEW_STEPS = {"fedavg", "fedavgm", "feddf", "fedgen", "fedprox", "li-2019"}
"""In a round here a client takes no more steps than come before a recording, or has a penalty."""
OWN_LOOPS = {"fixmatch", "meta-pseudo-labels", "noisy-student", "pseudo-label"}
SLOW = {"asyndgan", "fediod-reconstruction", "fediod-segmentation"}
"""What they have besides loops of their own is what others of their tasks have."""
METHODS = sorted({*registry.methods()} - FEW_STEPS - OWN_LOOPS - SLOW)


def fitted(name):
    method = contract.contract_method(registry.find_method(name))
    names = [field.name for field in fields(method)]
    method = replace(
        method,
        **{n: 2 for n in names if n.endswith("epochs")},
        **{n: 1 for n in names if n == "rounds"},
    )
    changes = {"local.epochs": 2, "local.batch_size": 4, "server.batch_size": 4}
    federation = federation_on("cpu", method, execution=Execution(compile="graphs"), **changes)
    return fit(federation, method)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_fits_the_same_when_its_steps_are_replayed(name, monkeypatch):
    taken = fitted(name)
    monkeypatch.setitem(replay.RECORDERS, "cpu", tape := Tape())
    replayed = fitted(name)
    assert tape.replayed
    for one, other in zip(taken, replayed, strict=True):
        assert same_bits(one.state, other.state)
