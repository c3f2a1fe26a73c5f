"""FedProx+: the proximal term holds the student near what it received, and leaves the translator
alone.
"""

import torch

from fedtables.baselines.fedavg_plus import FedAvgPlus
from fedtables.baselines.fedprox_plus import FedProxPlus
from fedtables.federation.shared.amalgamation import hinted_for
from fedtables.federation.training.plan import Batch
from tests.methods.private_servers import private_servers, quick
from tests.methods.shards import same_bits

NO_BATCH = Batch(*[torch.zeros(0)] * 3)
"""A term of the weights alone looks at none."""


def test_it_reaches_the_student_and_not_the_translator():
    federation = private_servers(1)
    (client,), method = federation.clients, FedProxPlus(mu=2.0)
    hinted = hinted_for(federation, client, federation.networks.initial("cnn-small"))
    term = method.penalty(hinted.student)
    with torch.no_grad():
        for parameter in hinted.parameters():
            parameter += 1.0
    term(hinted, NO_BATCH).backward()
    for parameter in hinted.student.parameters():
        torch.testing.assert_close(parameter.grad, torch.full_like(parameter, 2.0))
    assert all(parameter.grad is None for parameter in hinted.translator.parameters())


def test_without_weight_it_is_fedavg_plus_and_with_it_another():
    plain = quick(FedAvgPlus).fit(private_servers(2))
    assert same_bits(quick(FedProxPlus, mu=0.0).fit(private_servers(2)).state, plain.state)
    assert not same_bits(quick(FedProxPlus, mu=1.0).fit(private_servers(2)).state, plain.state)
    assert plain.history["accuracy"][-1] >= 0.9
