"""FedAD without some of its parts: clients that count alike, Eq. 7 without Eq. 9."""

import pytest
import torch

from fedtables.methods.fedad import FedAD
from fedtables.methods.fedad.losses import Ensemble, logit_loss, lower_loss, upper_loss
from tests.federation.tiny import (
    make_dense_federation,
    make_federation,
    make_reconstruction_federation,
)
from tests.methods.fedad.cases import transferred
from tests.methods.shards import client_with, network_inputs


def uneven():
    """Clients with 2 images of classes 0 and 1, and with 3 of class 1 and 1 of class 2."""
    return make_federation([client_with(0, [0, 1]), client_with(1, [1, 1, 1, 2])])


def test_clients_of_an_average_count_alike_where_they_have_samples():
    weighted, average = (FedAD(one_shot=True, ensemble=name) for name in ("weighted", "average"))
    assert weighted.class_counts(uneven()).tolist() == [[1, 1, 0], [0, 3, 1]]
    assert average.class_counts(uneven()).tolist() == [[1, 1, 0], [0, 1, 1]]
    for method, share in ((weighted, 1 / 4), (average, 1 / 2)):
        federation = uneven()
        found, teachers = transferred(federation, method)
        with torch.no_grad():
            first, second = (t(network_inputs(federation.public.images)) for t in teachers)
        expected = torch.stack(
            [first[:, 0], share * first[:, 1] + (1 - share) * second[:, 1], second[:, 2]], dim=1
        )
        torch.testing.assert_close(found.logits, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "outputs"), [(make_dense_federation, 2), (make_reconstruction_federation, 1)]
)
def test_of_dense_tasks_they_count_one_whatever_their_samples(make, outputs):
    federation = make((6, 4))
    counts = {
        name: FedAD(one_shot=True, ensemble=name).class_counts(federation).tolist()
        for name in ("weighted", "average")
    }
    assert counts == {
        "weighted": [[6] * outputs, [4] * outputs],
        "average": [[1] * outputs, [1] * outputs],
    }


@pytest.mark.parametrize("upper", [True, False])
def test_without_the_upper_bound_eq_9_is_left_out(upper):
    federation = make_dense_federation((4, 4))
    method = FedAD(one_shot=True, upper=upper)
    draws = torch.Generator().manual_seed(0)
    logits, consensus, diversity, outputs = torch.rand(4, 3, 2, 16, 16, generator=draws)
    ensemble = Ensemble(logits, torch.tensor([True, True]), consensus, diversity)
    batch = torch.tensor([2, 0])
    of = method.loss(federation, ensemble, federation.streams.shuffling("any"))
    seen, how = outputs[:2].softmax(dim=1), (method.rho, method.threshold)
    lower = lower_loss(seen, consensus[batch], *how)
    above = upper_loss(seen, diversity[batch], *how)
    assert (above < 0).all()
    expected = logit_loss(outputs[:2], logits[batch]) + lower + upper * above
    torch.testing.assert_close(of(outputs[:2], batch), expected.mean(dim=1))
