"""FedFTG: its losses and its draw of labels by hand, what crosses, and that it is FedAvg without
iterations that change anything.
"""

import math

import pytest
import torch

from fedtables.baselines.fedftg import FedFTG, discrepancy, drawn_labels, fidelity_loss
from fedtables.federation.channel import encoded_size
from fedtables.federation.samples import counted
from fedtables.methods.fedavg import FedAvg
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.shards import booked, distance, same_bits

HALVES = torch.tensor([[0.5, 0.5]]).log()
QUARTER = torch.tensor([[0.25, 0.75]]).log()


def quick(**changes):
    sizes = {"iterations": 2, "student_steps": 2, "generated": 4, "latent": 5, "width": 4}
    return FedFTG(**{"rounds": 2, "participation": 1.0, **sizes, **changes})


def test_labels_are_drawn_as_often_as_the_clients_hold_them_and_never_where_nobody_does():
    counts = torch.tensor([[0, 2, 0, 1, 0], [0, 1, 0, 0, 0]])
    uniform = torch.tensor([0.0, 0.7499, 0.75, 1 - 2**-24])
    assert drawn_labels(counts, uniform).tolist() == [1, 1, 3, 3]


def test_noisy_counts_are_drawn_by_too():
    assert drawn_labels(torch.tensor([[0.0, 1.5], [0.0, 1.5]]), torch.rand(9)).eq(1).all()


def test_a_client_counts_for_an_image_by_its_share_of_the_label():
    teachers = torch.stack([HALVES, QUARTER])
    to_half = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    found = discrepancy(HALVES, teachers, torch.tensor([[0.9], [0.1]]))
    assert found.item() == pytest.approx(0.1 * to_half, rel=1e-5)
    alpha = torch.tensor([[0.6], [0.4]])
    expected = 0.6 * math.log(2) + 0.4 * math.log(4)
    assert fidelity_loss(teachers, torch.tensor([0]), alpha).item() == pytest.approx(expected)


def test_both_losses_are_means_over_images_of_weights_of_their_own():
    teachers = torch.stack([torch.cat([HALVES, QUARTER]), torch.cat([QUARTER, HALVES])])
    alpha, labels = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])
    # Of both images the client with halves counts alone.
    loss = fidelity_loss(teachers, labels, alpha)
    assert loss.item() == pytest.approx(math.log(2))
    assert discrepancy(torch.cat([HALVES, HALVES]), teachers, alpha).item() == pytest.approx(0)


def test_equal_clients_are_an_ensemble_of_one():
    teacher, student = torch.randn(4, 3), torch.randn(4, 3)
    teachers, labels = torch.stack([teacher] * 3), torch.tensor([0, 1, 2, 0])
    alpha = torch.tensor([0.5, 0.3, 0.2])[:, None].expand(3, 4)
    one = discrepancy(student, teacher[None], torch.ones(1, 4))
    torch.testing.assert_close(discrepancy(student, teachers, alpha), one)
    errors = torch.nn.functional.cross_entropy(teacher, labels)
    torch.testing.assert_close(fidelity_loss(teachers, labels, alpha), errors)


def test_a_student_at_rest_is_fedavg_and_one_that_learns_is_not():
    plain = FedAvg(rounds=2, participation=1.0).fit(make_federation()).state
    still = {"student_lr": 1e-12, "student_weight_decay": 0.0}
    assert distance(plain, quick(**still).fit(make_federation()).state) < 1e-5
    assert distance(plain, quick().fit(make_federation()).state) > 1e-3


@pytest.mark.parametrize("setting", ["fidelity", "diversity"])
def test_each_of_the_generators_losses_reaches_the_average(setting):
    first = quick().fit(make_federation()).state
    assert not same_bits(first, quick(**{setting: 0.0}).fit(make_federation()).state)


def test_rates_fall_from_round_to_round(monkeypatch):
    seen, original = [], FedFTG.fine_tune

    def noted(method, this, teachers):
        original(method, this, teachers)
        seen.append(this.server["optimizer"].param_groups[0]["lr"])

    monkeypatch.setattr(FedFTG, "fine_tune", noted)
    quick(decay=0.5).fit(make_federation())
    assert seen == pytest.approx([0.01, 0.005])


def test_clients_send_label_counts_once_and_models_both_ways():
    federation = make_federation()
    quick().fit(federation)
    counts = encoded_size({"counts": torch.empty(CLASSES, dtype=torch.long)})
    model = encoded_size(federation.networks.initial("cnn-small").state_dict())
    expected = {(0, "up", "labels", k): (counts, 1) for k in (0, 1)}
    for number in (1, 2):
        for way in ("up", "down"):
            expected |= {(number, way, "parameters", k): (model, 1) for k in (0, 1)}
    assert booked(federation) == expected


def test_the_generator_and_the_average_are_the_networks_that_learn_at_the_server():
    with counted() as seen:
        quick().fit(make_federation())
    assert seen.total()["server"] == 2 * 2 * (4 + 2 * 4)  # rounds, iterations, one and two steps
