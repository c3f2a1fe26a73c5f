"""Scratch training: the probe set, the server's plan, and nobody else."""

import pytest

from fedtables.baselines.scratch import Scratch
from fedtables.federation.training.plan import TrainingPlan
from tests.methods.private_servers import private_servers
from tests.methods.shards import descend


def test_two_steps_down_the_gradient_of_the_probe_set_by_hand():
    federation = private_servers(
        server=TrainingPlan(epochs=2, batch_size=100, lr=0.1, optimizer="sgd")
    )
    probe, model = federation.probe(), Scratch().fit(federation)
    by_hand = descend(
        federation.networks.initial("cnn-small"), probe.images, probe.targets
    ).state_dict()
    for name, tensor in model.state.items():
        assert tensor == pytest.approx(by_hand[name], abs=1e-5)
