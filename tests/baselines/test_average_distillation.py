"""Plain distillation: the mean of the clients' probabilities."""

import torch

from fedtables.baselines.average_distillation import AverageDistillation
from tests.federation.tiny import make_federation


def test_the_global_model_imitates_the_mean_of_the_clients_probabilities(monkeypatch):
    federation = make_federation()
    distilled = []
    monkeypatch.setattr(federation, "distill", distilled.append)
    AverageDistillation().fit(federation)
    first, second = (
        federation.public_outputs(model).softmax(dim=1) for model in federation.local_models()
    )
    torch.testing.assert_close(distilled, [(first + second) / 2])
    torch.testing.assert_close(distilled[0].sum(dim=1), torch.ones(6))
