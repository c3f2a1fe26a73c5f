"""FedNTD: not-true distillation by hand, and where it is FedAvg."""

import math

import pytest
import torch

from fedtables.baselines.fedntd import FedNTD, not_true, not_true_distillation
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedavg import FedAvg
from tests.federation.tiny import make_dense_federation, make_federation
from tests.methods.shards import same_bits

LN2, LN3 = math.log(2), math.log(3)


def test_the_own_label_is_left_out():
    logits = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    left = not_true(logits, torch.tensor([1, 2]))
    assert [sorted(row) for row in left.tolist()] == [[0, 2], [3, 4]]


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_loss_by_hand(temperature):
    # Of the classes that are not label 0 the teacher gives (3/4, 1/4), the student (1/2, 1/2).
    teacher = temperature * torch.tensor([[9.0, LN3, 0.0]])
    student = torch.tensor([[-5.0, 1.0, 1.0]])
    loss = not_true_distillation(student, teacher, torch.tensor([0]), temperature)
    divergence = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    assert loss.item() == pytest.approx(temperature**2 * divergence)


def test_it_is_the_mean_of_the_batch():
    teacher, student = torch.tensor([[0.0, LN2, 0.0]]), torch.zeros(1, 3)
    one = not_true_distillation(student, teacher, torch.tensor([0]), 1.0)
    both = not_true_distillation(
        torch.zeros(2, 3), torch.cat([teacher, student]), torch.tensor([0, 0]), 1.0
    )
    assert both.item() == pytest.approx(one.item() / 2)


def test_the_true_logits_of_neither_model_matter():
    student = torch.tensor([[1.0, 2.0, 4.0]], requires_grad=True)
    teacher, label = torch.tensor([[3.0, 0.0, 1.0]]), torch.tensor([1])
    loss = not_true_distillation(student, teacher, label, 3.0)
    loss.backward()
    assert student.grad[0, 1] == 0
    other = torch.tensor([[1.0, -7.0, 4.0]])
    assert torch.equal(loss, not_true_distillation(other, teacher, label, 3.0))
    assert torch.equal(loss, not_true_distillation(student, other - student + teacher, label, 3.0))


def test_of_two_classes_nothing_is_left_to_distil():
    logits = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    loss = not_true_distillation(logits, -logits, torch.tensor([0, 1, 0, 1]), 2.0)
    assert loss.item() == 0


def test_a_model_that_agrees_costs_nothing_and_has_no_gradient():
    logits = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = not_true_distillation(logits, logits.detach(), torch.tensor([0, 1, 2, 3]), 2.0)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-6)
    assert logits.grad.abs().max() < 1e-6


def test_with_beta_zero_it_is_fedavg_to_the_last_bit():
    found = FedNTD(rounds=3, beta=0.0).fit(make_federation(clients=5))
    plain = FedAvg(rounds=3).fit(make_federation(clients=5))
    assert same_bits(found.state, plain.state)


@pytest.mark.parametrize(("epochs", "same"), [(1, True), (2, False)])
def test_a_single_local_step_is_fedavgs(epochs, same):
    plan = {"local": TrainingPlan(epochs, 100, lr=0.1, optimizer="sgd")}
    settings = {"rounds": 1, "participation": 1.0}
    found = FedNTD(**settings, beta=10.0).fit(make_federation(**plan))
    plain = FedAvg(**settings).fit(make_federation(**plan))
    assert all(torch.allclose(found.state[n], plain.state[n], atol=1e-6) for n in plain.state) == (
        same
    )


def test_a_task_without_one_class_per_image_is_refused():
    with pytest.raises(ValueError, match="one class per image"):
        FedNTD(rounds=1).fit(make_dense_federation())
