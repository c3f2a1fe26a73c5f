"""Classification as a task: losses per sample, probabilities, the headline metric."""

import math

import pytest
import torch

from federation.tasks import Classification

TASK = Classification(3)
OUTPUTS = torch.tensor([[0.0, 0.0, 0.0], [math.log(2), 0.0, 0.0]])


def test_a_network_has_one_output_per_class():
    assert TASK.outputs == 3


def test_the_loss_is_cross_entropy_for_each_sample():
    # Probabilities of the second sample: 1/2, 1/4, 1/4.
    torch.testing.assert_close(TASK.loss(OUTPUTS, torch.tensor([1, 2])), torch.tensor([math.log(3), math.log(4)]))


def test_probabilities_are_the_softmax_over_classes():
    torch.testing.assert_close(TASK.probabilities(OUTPUTS), torch.tensor([[1 / 3, 1 / 3, 1 / 3], [0.5, 0.25, 0.25]]))


def test_the_distillation_loss_is_cross_entropy_with_the_teachers_probabilities():
    teacher = torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    expected = torch.tensor([math.log(3), 0.6 * math.log(2) + 0.4 * math.log(4)])
    torch.testing.assert_close(TASK.distillation_loss(OUTPUTS, teacher), expected)


def test_a_certain_teacher_is_a_label():
    labels = torch.tensor([2, 0])
    certain = torch.nn.functional.one_hot(labels, 3).float()
    torch.testing.assert_close(TASK.distillation_loss(OUTPUTS, certain), TASK.loss(OUTPUTS, labels))


def test_the_distillation_gradient_vanishes_when_the_student_agrees():
    outputs = OUTPUTS.clone().requires_grad_()
    TASK.distillation_loss(outputs, TASK.probabilities(OUTPUTS)).sum().backward()
    torch.testing.assert_close(outputs.grad, torch.zeros(2, 3))


def test_the_headline_metric_is_the_accuracy():
    assert TASK.metrics(torch.eye(3), torch.tensor([0, 1, 0])) == {"accuracy": pytest.approx(2 / 3)}
