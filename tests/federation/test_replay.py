"""Steps that are recorded and replayed end where steps end that are taken."""

import pytest
import torch

from fedtables.federation.execution import Execution
from fedtables.federation.graphs import WARM_UP, Replayed, on_the_cpu
from tests.federation.replayed import PLANS, trained
from tests.methods.shards import same_bits


@pytest.fixture
def tape():
    with on_the_cpu() as tape:
        yield tape


@pytest.mark.parametrize("name", ["momentum", "adam"])  # RMSprop's rate is only on CUDA a tensor
def test_a_replayed_network_has_the_bits_of_one_that_took_its_steps(name):
    graphs = Execution(compile="graphs")
    usual = trained([30], Execution(), together=False, **PLANS[name])
    taken = trained([30], graphs, together=False, **PLANS[name])
    with on_the_cpu() as tape:
        replayed = trained([30], graphs, together=False, **PLANS[name])
    assert same_bits(taken[0], replayed[0])
    assert (tape.recorded, tape.replayed) == (1, 3 * 7 - WARM_UP)  # the last two images run alone
    # A rate in a tensor is in single precision.
    torch.testing.assert_close(dict(usual[0]), dict(taken[0]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_clients_side_by_side_have_the_bits_of_those_alone(tape, name):
    sizes = (30, 18, 16)  # 7, 4 and 4 full batches; two images are left, and two, and none
    graphs = Execution(stacked=3, compile="graphs")
    alone = trained(sizes, graphs, together=False, **PLANS[name])
    assert (tape.recorded, tape.replayed) == (3, 3 * (7 + 4 + 4) - 3 * WARM_UP)
    together = trained(sizes, graphs, together=True, **PLANS[name])
    assert (tape.recorded, tape.replayed) == (6, 2 * (3 * (7 + 4 + 4) - 3 * WARM_UP))
    for one, other in zip(alone, together, strict=True):
        assert same_bits(one, other)


def test_a_number_read_from_the_host_stays_what_it_was(tape):
    """Why a step has to read what varies from tensors."""
    total, numbers = torch.zeros(()), iter(range(1, 100))
    step = Replayed(lambda batch: total.add_(batch.sum() * next(numbers)), [], tape)
    for _ in range(WARM_UP):
        step(torch.ones(2))
    assert total.item() == 2 * (1 + 2 + 3)
    for _ in range(2):
        step(torch.ones(2))
    assert total.item() == 2 * (1 + 2 + 3 + 4 + 4)


def test_a_step_that_waits_for_the_device_is_not_recorded(tape):
    total = torch.zeros(())
    step = Replayed(lambda batch: total.add_(batch.sum().item()), [], tape)
    for _ in range(WARM_UP):
        step(torch.ones(2))
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
        step(torch.ones(2))


def test_without_a_recorder_every_step_is_taken():
    taken = []
    step = Replayed(taken.append, [], None)
    for number in range(6):
        step(torch.tensor(number))
    assert taken == list(range(6))
