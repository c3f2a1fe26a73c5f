"""Meta Pseudo Labels: the sign of the feedback, which the paper's own code and its followers have
the other way round.
"""

import math

import pytest
import torch
import torch.nn.functional as F

from fedtables.baselines.meta_pseudo_labels import (
    MetaPseudoLabels,
    consistency_loss,
    draw_labels,
    feedback,
    schedule,
)
from fedtables.federation.data import state_of
from fedtables.federation.execution import Execution
from fedtables.federation.seeds import Stream
from tests.baselines.probes import probed
from tests.methods.shards import network_inputs, same_bits


def stream(seed=0):
    return Stream(torch.Generator().manual_seed(seed), torch.device("cpu"))


def student_and_images(lr):
    """A federation, a student with an optimiser without momentum, and its labelled images."""
    federation = probed()
    student = federation.networks.initial("cnn-small").train()
    probe = federation.probe()
    return (
        federation,
        student,
        torch.optim.SGD(student.parameters(), lr),
        network_inputs(probe.images),
        probe.targets,
    )


def step(lr, wrong=False):
    """The feedback when the labelled images are the unlabelled ones too, pseudo-labelled with the
    truth, or all wrongly.
    """
    federation, student, optimizer, images, targets = student_and_images(lr)
    labels = (targets + 1) % 3 if wrong else targets
    return MetaPseudoLabels().student_step(
        federation, student, optimizer, images, targets, images, labels
    )


def test_the_feedback_is_positive_where_the_step_helped():
    assert feedback(torch.tensor(2.0), torch.tensor(0.5)).item() == 1.5
    assert step(0.05) > 0 > step(0.05, wrong=True)


def test_the_feedback_is_never_of_losses_in_bf16():
    federation = probed(execution=Execution("bf16"))
    student, probe = federation.networks.initial("cnn-small").train(), federation.probe()
    images = network_inputs(probe.images)
    in_bf16 = []
    student.register_forward_hook(lambda *_: in_bf16.append(torch.is_autocast_enabled("cpu")))
    optimizer = torch.optim.SGD(student.parameters(), 0.1)
    given = (federation, student, optimizer, images, probe.targets, images, probe.targets)
    MetaPseudoLabels().student_step(*given)
    assert in_bf16 == [False, True, False]


@pytest.mark.parametrize("wrong", [False, True])
def test_to_first_order_it_is_the_product_of_the_papers_two_gradients(wrong):
    lr = 1e-3
    _, student, optimizer, images, targets = student_and_images(lr)
    pseudo = F.cross_entropy(student(images), (targets + 1) % 3 if wrong else targets)
    slopes = torch.autograd.grad(pseudo, list(student.parameters()))
    for parameter, slope in zip(student.parameters(), slopes, strict=True):
        parameter.grad = slope
    optimizer.step()
    after = torch.autograd.grad(
        F.cross_entropy(student(images), targets), list(student.parameters())
    )
    h = lr * sum((new * old).sum() for new, old in zip(after, slopes, strict=True))
    assert step(lr, wrong).item() == pytest.approx(h.item(), rel=0.02)


def test_labels_are_drawn_with_their_probabilities():
    logits = torch.tensor([0.7, 0.2, 0.1]).log().expand(6000, 3)
    shares = torch.bincount(draw_labels(logits, stream()), minlength=3) / 6000
    torch.testing.assert_close(
        shares, torch.tensor([0.7, 0.2, 0.1]), atol=0.02, rtol=0
    )  # a deviation of 0.006
    assert torch.equal(draw_labels(logits, stream(1)), draw_labels(logits, stream(1)))


def test_labels_are_drawn_for_every_pixel():
    logits = torch.tensor([0.0, 50.0, 0.0]).view(1, 3, 1, 1).expand(2, 3, 4, 5)
    assert torch.equal(draw_labels(logits, stream()), torch.ones(2, 4, 5, dtype=torch.int64))


def test_udas_term_sharpens_and_masks():
    weak, strong = (
        torch.tensor([[math.log(2), 0.0], [0.0, 0.0]]),
        torch.tensor([[math.log(3), 0.0], [1.0, 2.0]]),
    )
    # (2/3, 1/3) at a temperature of 1/2 is (4/5, 1/5), against (3/4, 1/4); the other image is not
    # confident.
    expected = -(0.8 * math.log(0.75) + 0.2 * math.log(0.25)) / 2
    assert consistency_loss(weak, strong, 0.5, 0.6).item() == pytest.approx(expected)
    assert consistency_loss(weak, strong, 0.5, 0.9).item() == 0
    pixels = (logits.T.reshape(1, 2, 1, 2) for logits in (weak, strong))
    assert consistency_loss(*pixels, 0.5, 0.6).item() == pytest.approx(expected)


def test_a_learning_rate_waits_then_grows_then_falls():
    assert [schedule(step, 14, 2, 4) for step in (0, 1, 2, 3, 5, 6, 10, 14)] == pytest.approx(
        [0, 0, 0.25, 0.5, 1, 1, 0.5, 0]
    )
    assert [schedule(step, 4, 0, 0) for step in (0, 2, 4)] == pytest.approx([1, 0.5, 0])


BRIEF = {
    **{"steps": 4, "interval": 2, "batch_size": 4, "mu": 2, "ramp": 0, "finetune_epochs": 0},
    "student_wait": 0,
}


def quick(**fields):
    return MetaPseudoLabels(**{**BRIEF, **fields})


@pytest.mark.parametrize("wait", [0, 3])
def test_a_student_learns_nothing_before_it_has_waited(wait):
    learnt = []

    class Watched(MetaPseudoLabels):
        def student_step(self, federation, student, *rest):
            before = state_of(student)
            credit = super().student_step(federation, student, *rest)
            learnt.append(not same_bits(state_of(student), before))
            return credit

    Watched(**{**BRIEF, "steps": 5, "lr": 0.1, "student_wait": wait}).fit(probed())
    assert learnt == [False] * wait + [True] * (5 - wait)


def test_the_average_of_the_student_is_what_is_fine_tuned_and_returned():
    federation = probed()
    initial = federation.networks.initial("cnn-small").state_dict()
    assert same_bits(quick(ema_decay=1.0).fit(federation).state, initial)
    tuned = quick(ema_decay=1.0, finetune_epochs=1, finetune_lr=0.1).fit(probed())
    assert not same_bits(tuned.state, initial)
    assert same_bits(
        tuned.state,
        quick(ema_decay=1.0, lr=0.01, finetune_epochs=1, finetune_lr=0.1).fit(probed()).state,
    )


def test_a_budget_without_steps_for_the_student_is_refused():
    with pytest.raises(ValueError, match="leave nothing of 8000 steps"):
        MetaPseudoLabels(steps=8000)
