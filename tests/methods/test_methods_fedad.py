"""FedAD: its equations by hand, which way its losses push, what crosses, and sites with label sets
of their own.
"""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.modules.module import register_module_forward_pre_hook

from baselines.average_distillation import AverageDistillation
from baselines.centralized import Centralized
from baselines.standalone import Standalone
from federation.caching.snapshots import Snapshots
from federation.channel import Channel, encoded_size
from federation.costs import Meter, metering
from federation.parties.checkpoint import state_of
from federation.parties.client import Client, Shard
from federation.parties.data import LabelledSet, PublicData
from federation.parts.protection import Protection
from federation.tasks.multi_label import MultiLabel
from federation.tasks.reconstruction import Reconstruction
from federation.tasks.segmentation import Segmentation
from federation.training.augmentation import Augmentation
from federation.training.loops import TrainingPlan, predict
from federation.training.windows import Window
from methods.fedad import (
    Answers,
    Ensemble,
    FedAD,
    ensemble_logits,
    importance_weights,
    logit_loss,
    lower_loss,
    quantised,
    restored,
    soft_mask,
    upper_loss,
)
from methods.fedavg import FedAvg
from methods.feddf import FedDF
from methods.fedmd import FedMD
from models.cut import encode
from models.entry import ModelError
from models.saliency import class_attention
from privacy.plan import DP_SGD, PrivacyPlan
from tests.federation.tiny import CLASSES, bright_images, make_federation
from tests.methods.shards import (
    client_with,
    copied,
    distance,
    mixed_clients,
    network_inputs,
    same_bits,
    validation_set,
)

NAN = math.nan
SIDE = 2
"""Of the maps that `cnn-small` makes of images with 8 pixels."""


# -- Eq. 4 to 9 --


def test_clients_weigh_by_the_samples_that_they_hold_of_a_class():
    counts = torch.tensor(
        [[3, 0, 0, 5], [1, 2, 0, 5]]
    )  # the second class at one site alone, the third nowhere
    assert importance_weights(counts).tolist() == [[0.75, 0.0, 0.0, 0.5], [0.25, 1.0, 0.0, 0.5]]


def test_the_ensemble_is_a_weighted_sum_to_which_a_client_without_the_class_adds_nothing():
    logits = torch.tensor([[[4.0, NAN, 7.0]], [[8.0, -2.0, 9.0]]])
    weights = torch.tensor([[0.75, 0.0, 0.0], [0.25, 1.0, 0.0]])
    assert ensemble_logits(logits, weights).tolist() == [[5.0, -2.0, 0.0]]
    per_pixel = logits[..., None, None].expand(-1, -1, -1, 2, 3)
    assert ensemble_logits(per_pixel, weights)[0, :, 1, 2].tolist() == [5.0, -2.0, 0.0]


def test_the_soft_mask_is_a_steep_sigmoid_about_its_threshold():
    found = soft_mask(torch.tensor([0.5, 0.7, 0.3]), 10.0, 0.5)
    torch.testing.assert_close(
        found, torch.tensor([0.5, 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))])
    )


STUDENT, BOUND = [[1.0, 0.5], [0.0, 0.25]], [[0.5, 0.0], [1.0, 0.5]]
LOG3 = math.log(3)
"""With rho = 4 log 3 and b = 1/2 the mask of 1, 3/4, 1/2, 1/4 and 0 is 9/10, 3/4, 1/2, 1/4 and
1/10."""


@pytest.mark.parametrize(("scale", "factor"), [("printed", 1 / 4), ("mean", 1.0)])
def test_the_lower_loss_by_hand(scale, factor):
    student, consensus = torch.tensor([[STUDENT]]), torch.tensor([[BOUND]])
    found = lower_loss(student, consensus, 4 * LOG3, 0.5, scale)
    torch.testing.assert_close(
        found, torch.tensor([[-factor * (0.5 * 0.9 + 1.0 * 0.1 + 0.5 * 0.25) / 2.0]])
    )


@pytest.mark.parametrize(("scale", "factor"), [("printed", 1 / 4), ("mean", 1.0)])
def test_the_upper_loss_by_hand(scale, factor):
    student, diversity = torch.tensor([[STUDENT]]), torch.tensor([[BOUND]])
    found = upper_loss(student, diversity, 4 * LOG3, 0.5, scale)
    torch.testing.assert_close(
        found, torch.tensor([[-factor * (1.0 * 0.5 + 0.5 * 0.1 + 0.25 * 0.5) / 1.75]])
    )


def test_each_image_and_class_has_a_loss_of_its_own():
    student, bound = torch.tensor([STUDENT, BOUND]), torch.tensor([BOUND, [[1.0, 0.2], [0.6, 0.0]]])
    for loss in (lower_loss, upper_loss):
        together = loss(torch.stack([student, bound]), torch.stack([bound, student]), 10.0, 0.5)
        assert together.shape == (2, 2)
        alone = loss(bound[None, 1:], student[None, 1:], 10.0, 0.5)
        assert together[1, 1].item() == pytest.approx(alone.item())


def test_without_consensus_or_attention_there_is_no_loss_and_no_gradient_that_is_none():
    student, empty = (
        torch.tensor([[STUDENT]], requires_grad=True),
        torch.zeros(1, 1, 2, 2, requires_grad=True),
    )
    lower = lower_loss(student, empty.detach(), 10.0, 0.5)
    upper = upper_loss(empty, student.detach(), 10.0, 0.5)
    assert (lower.item(), upper.item()) == (0.0, 0.0)
    assert torch.autograd.grad(lower, student)[0].abs().sum() == 0
    assert torch.autograd.grad(upper, empty)[0].isfinite().all()


def test_the_lower_loss_pushes_attention_up_where_all_look_and_leaves_it_alone_elsewhere():
    student = torch.tensor([[STUDENT]], requires_grad=True)
    (slope,) = torch.autograd.grad(
        lower_loss(student, torch.tensor([[BOUND]]), 10.0, 0.5).sum(), student
    )
    inside = torch.tensor([[BOUND]]) > 0
    assert (slope[inside] < 0).all()  # descent raises the student's map
    assert (slope[~inside] == 0).all()


def test_the_upper_loss_pushes_attention_down_where_nobody_looks_and_up_where_somebody_does():
    student = torch.tensor([[[[1.0, 0.5], [0.4, 0.25]]]], requires_grad=True)
    diversity = torch.tensor([[[[1.0, 0.9], [0.0, 0.1]]]])
    (slope,) = torch.autograd.grad(upper_loss(student, diversity, 10.0, 0.5).sum(), student)
    assert (slope[diversity < 0.5] > 0).all()
    assert (slope[diversity > 0.5] < 0).all()


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["printed", "mean"]))
def test_bounded_losses_are_between_minus_one_and_zero(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    student, bound = torch.rand(2, 2, 3, 4, 4, generator=generator)
    for loss in (lower_loss, upper_loss):
        found = loss(student, bound, 10.0, 0.5, scale)
        assert ((found <= 0) & (found >= (-1 / 16 if scale == "printed" else -1.0))).all()


def test_the_logit_loss_is_the_absolute_difference_of_each_class():
    assert logit_loss(torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, -1.0]])).tolist() == [
        [2.0, 1.0]
    ]
    pixels = logit_loss(torch.tensor([[[[1.0, 4.0]]]]), torch.tensor([[[[0.0, 1.0]]]]))
    assert pixels.tolist() == [[2.0]]


# -- the whole loss --


def answers():
    """Two clients' answers for three images of three classes; one holds the first class alone, none
    the last.
    """
    generator = torch.Generator().manual_seed(1)
    maps = torch.rand(2, 3, 3, SIDE, SIDE, generator=generator)
    return Answers(
        torch.randn(2, 3, 3, generator=generator), maps, torch.tensor([[4, 1, 0], [0, 3, 0]])
    )


def test_the_total_is_the_mean_of_all_three_terms_over_the_classes_that_are_known():
    method, source = FedAD(rho=7.0, threshold=0.4, bound_scale="mean"), answers()
    logits, maps = torch.randn(2, 3), torch.rand(2, 3, SIDE, SIDE)
    batch = torch.tensor([2, 0])
    federation = make_federation()
    found = method.loss(federation, source.ensemble(), federation.streams.shuffling("any"))(
        torch.cat([logits, maps.flatten(1)], 1), batch
    )
    first, second = source.logits[:, batch]
    expected = torch.zeros(2)
    for c, ensemble, held in (
        (0, first[:, 0], [0]),
        (1, 0.25 * first[:, 1] + 0.75 * second[:, 1], [0, 1]),
    ):
        seen = source.maps[held][:, batch, c]
        how = (7.0, 0.4, "mean")
        lower = lower_loss(maps[:, c, None], seen.amin(dim=0)[:, None], *how)[:, 0]
        upper = upper_loss(maps[:, c, None], seen.amax(dim=0)[:, None], *how)[:, 0]
        expected += ((logits[:, c] - ensemble).abs() + lower + upper) / 2
    torch.testing.assert_close(found, expected)


def test_in_every_step_other_clients_are_left_out_and_the_others_weigh_accordingly():
    logits = torch.tensor([10.0, 20.0, 40.0, 80.0]).view(4, 1, 1).expand(4, 2, CLASSES)
    source = Answers(logits, None, torch.ones(4, CLASSES, dtype=torch.long))
    federation = make_federation()
    step = FedAD(bounds=False, dropped=1).loss(
        federation, source, federation.streams.shuffling("dropped", 1)
    )
    zeros, batch = torch.zeros(2, CLASSES), torch.tensor([0, 1])
    found = [step(zeros, batch) for _ in range(40)]
    means = {(150 - left_out) / 3 for left_out in (10, 20, 40, 80)}
    assert {round(losses[0].item(), 3) for losses in found} == {round(mean, 3) for mean in means}
    assert all(losses[0] == losses[1] for losses in found)  # of one step all images are alike
    alone = FedAD(bounds=False, dropped=3).loss(
        federation, source, federation.streams.shuffling("dropped", 1)
    )
    assert {alone(zeros, batch)[0].item() for _ in range(40)} == {10.0, 20.0, 40.0, 80.0}


def test_a_class_whose_only_holder_is_left_out_is_not_asked_of_the_student_in_that_step():
    logits = torch.tensor([[[8.0, 2.0]], [[NAN, 4.0]]])
    source = Answers(logits, None, torch.tensor([[1, 1], [0, 1]]))
    federation = make_federation(task=MultiLabel(("a", "b")))
    step = FedAD(bounds=False, dropped=1).loss(
        federation, source, federation.streams.shuffling("dropped", 1)
    )
    found = {step(torch.zeros(1, 2), torch.tensor([0])).item() for _ in range(20)}
    assert found == {5.0, 4.0}  # (8 + 2) / 2 of the first client, 4 / 1 of the second


def test_the_last_client_cannot_be_left_out():
    with pytest.raises(ValueError, match="2 local models cannot be left out of 2"):
        FedAD(dropped=2).fit(make_federation())
    with pytest.raises(
        ValueError, match="2 local models cannot be left out of 2"
    ):  # a client without samples is none
        FedAD(dropped=2).fit(
            make_federation([client_with(0, [0, 1]), client_with(1, [1, 2]), client_with(2, [])])
        )


@pytest.mark.parametrize("fields", [{"bound_scale": "sum"}, {"dropped": -1}, {"rho": 0.0}])
def test_settings_that_do_not_exist_are_refused(fields):
    with pytest.raises(ValueError, match=r"bound_scale|dropped|rho"):
        FedAD(**fields)


# -- a fit --

SHIFTED = Augmentation(rotation=20, shift=0.2)


def attention_of(model, images):
    with torch.no_grad():
        return class_attention(model, encode(model, network_inputs(images)), create_graph=False)


@pytest.mark.parametrize(
    "method", [FedAD(one_shot=True), FedAD(one_shot=True, second_order=False, bound_scale="mean")]
)
def test_the_student_descends_eq_12(method):
    federation = make_federation(
        server=TrainingPlan(epochs=3, batch_size=100, lr=0.05, optimizer="sgd")
    )
    fitted = method.fit(federation)

    images = federation.public.images
    teachers = [federation.networks.module(model) for model in federation.local_models()]
    logits, maps = zip(*(attention_of(teacher, images) for teacher in teachers), strict=True)
    counts = torch.tensor([[6.0, 6.0, 0.0], [0.0, 6.0, 6.0]])
    ensemble = sum(w * own for w, own in zip(counts / counts.sum(dim=0), logits, strict=True))
    shared = torch.stack(maps)[:, :, 1]
    consensus, diversity = (
        torch.stack([maps[0][:, 0], bound, maps[1][:, 2]], 1)
        for bound in (shared.amin(0), shared.amax(0))
    )

    student = federation.networks.initial("cnn-small")
    for _ in range(3):
        own, seen = class_attention(
            student, encode(student, network_inputs(images)), create_graph=method.second_order
        )
        how = (method.rho, method.threshold, method.bound_scale)
        loss = (
            (own - ensemble).abs()
            + lower_loss(seen, consensus, *how)
            + upper_loss(seen, diversity, *how)
        )
        gradients = torch.autograd.grad(loss.mean(), list(student.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(student.parameters(), gradients, strict=True):
                weight -= 0.05 * gradient
    torch.testing.assert_close(fitted.state, state_of(student), atol=1e-5, rtol=1e-4)
    without = replace(method, bounds=False).fit(make_federation(server=federation.server))
    assert distance(fitted.state, without.state) > 100 * distance(fitted.state, state_of(student))


def test_teachers_stay_as_they_are():
    federation = make_federation()
    before = [dict(model.state) for model in federation.local_models()]
    taught = []
    module = federation.networks.module
    federation.networks.module = lambda checkpoint: taught.append(module(checkpoint)) or taught[-1]
    FedAD(one_shot=True).fit(federation)
    assert len(taught) == 2
    for state, teacher in zip(before, taught, strict=True):
        assert same_bits(state, state_of(teacher))
        assert all(p.grad is None for p in teacher.parameters())
        assert not teacher.training


COUNTS = encoded_size({"counts": torch.empty(CLASSES, dtype=torch.long)})
LOGITS = encoded_size({"logits": torch.empty(6, CLASSES)})
ATTENTION = encoded_size({"attention": torch.empty(6, CLASSES, SIDE, SIDE)})


def booked(federation):
    return {
        (t.round, t.direction, t.kind, t.client): (t.bytes, t.messages)
        for t in federation.channel.ledger
    }


def test_in_one_shot_clients_answer_once_for_all_epochs():
    federation = make_federation(server=TrainingPlan(epochs=5, batch_size=3, lr=0.01))
    FedAD(one_shot=True).fit(federation)
    kinds = {"labels": COUNTS, "logits": LOGITS, "attention": ATTENTION}
    assert booked(federation) == {
        (0, "up", kind, k): (size, 1) for k in range(2) for kind, size in kinds.items()
    }


def test_online_clients_answer_in_every_epoch():
    federation = make_federation(server=TrainingPlan(epochs=5, batch_size=3, lr=0.01))
    FedAD().fit(federation)
    expected = {(0, "up", "labels", k): (COUNTS, 1) for k in range(2)}
    for number in range(1, 6):
        expected |= {(number, "up", "logits", k): (LOGITS, 1) for k in range(2)}
        expected |= {(number, "up", "attention", k): (ATTENTION, 1) for k in range(2)}
    assert booked(federation) == expected


def test_without_bounds_no_attention_crosses():
    federation = make_federation()
    FedAD(bounds=False).fit(federation)
    assert federation.channel.by_kind() == {"up/labels": 2 * COUNTS, "up/logits": 2 * 2 * LOGITS}


def test_a_client_without_samples_answers_nothing():
    federation = make_federation([client_with(0, [0, 1, 2]), client_with(1, [])])
    FedAD(one_shot=True).fit(federation)
    assert {t.client for t in federation.channel.ledger if t.kind != "labels"} == {0}


def test_in_bytes_values_take_a_quarter_and_a_scale_for_each_class():
    federation = make_federation()
    FedAD(one_shot=True, quantised=True).fit(federation)
    scales = {"least": torch.empty(CLASSES), "step": torch.empty(CLASSES)}

    def size(*shape):
        return encoded_size({"values": torch.empty(*shape, dtype=torch.uint8), **scales})

    found = federation.channel.by_kind()
    assert found["up/logits"] == 2 * size(6, CLASSES)
    assert found["up/attention"] == 2 * size(6, CLASSES, SIDE, SIDE)
    assert encoded_size({"a": torch.empty(1000, CLASSES)}) / size(1000, CLASSES) == pytest.approx(
        4, rel=0.1
    )


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_in_bytes_values_are_within_half_a_step(seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(7, 3, 2, 2, generator=generator) * torch.tensor([0.01, 1.0, 100.0]).view(
        3, 1, 1
    )
    values[:, 1, 1, 1] = 0.5
    found = restored(quantised(values))
    by_class = values.transpose(0, 1).flatten(1)
    step = (by_class.amax(dim=1) - by_class.amin(dim=1)) / 255
    assert ((found - values).abs() <= 0.51 * step.view(3, 1, 1)).all()


def test_a_class_of_equal_values_survives_in_bytes():
    values = torch.tensor([[2.5, 0.0], [2.5, 0.0]])
    assert restored(quantised(values)).tolist() == values.tolist()


def test_in_bytes_the_student_is_nearly_the_same():
    plan = TrainingPlan(epochs=3, batch_size=100, lr=0.05, optimizer="sgd")
    whole, small, without = (
        FedAD(one_shot=True, **fields).fit(make_federation(server=plan)).state
        for fields in ({}, {"quantised": True}, {"bounds": False})
    )
    assert 0 < distance(whole, small) < 0.5 * distance(whole, without)


def test_online_all_parties_see_the_same_images_and_other_ones_in_every_epoch():
    federation = make_federation(
        augmentation=SHIFTED, server=TrainingPlan(epochs=2, batch_size=100, lr=0.01)
    )
    shown, train = [], federation.train
    federation.train = lambda model, images, *rest, **named: (
        shown.append(images) or train(model, images, *rest, **named)
    )
    seen = []
    hook = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, inputs: (
            seen.append(inputs[0]) if type(module).__name__ == "Attentive" else None
        )
    )
    try:
        federation.local_models()
        shown.clear()
        FedAD().fit(federation)
    finally:
        hook.remove()
    assert len(shown) == 2
    assert not torch.equal(*shown)
    for own, images in zip(
        shown, (seen[0:3], seen[4:7]), strict=True
    ):  # two clients, the student, a look at the test set
        for batch in images:
            assert (batch[:, None] - network_inputs(own)).abs().flatten(2).amax(dim=2).amin(
                dim=1
            ).max() < 1e-5


def test_in_one_shot_images_are_plain():
    federation = make_federation(augmentation=SHIFTED)
    federation.local_models()
    shown, train = [], federation.train
    federation.train = lambda model, images, *rest, **named: (
        shown.append(images) or train(model, images, *rest, **named)
    )
    FedAD(one_shot=True).fit(federation)
    assert len(shown) == 2
    assert all(torch.equal(images, federation.public.images) for images in shown)


def test_networks_may_differ_and_their_maps_are_made_to_fit():
    federation = make_federation(mixed_clients())
    sent = []
    federation.channel.inspect = lambda t, tensors: sent.append((t.kind, copied(tensors)))
    model = FedAD(one_shot=True).fit(federation)
    assert [
        tuple(tensors["attention"].shape[2:]) for kind, tensors in sent if kind == "attention"
    ] == [(2, 2), (2, 2)]
    assert len(model.history["accuracy"]) == federation.server.epochs


@pytest.mark.parametrize(
    "method", [FedAD(), FedAD(one_shot=True), FedAD(bounds=False, dropped=1, quantised=True)]
)
def test_a_plan_books_the_bytes_of_the_run(method):
    real, planned = (
        make_federation(augmentation=SHIFTED),
        make_federation(device="meta", augmentation=SHIFTED),
    )
    method.fit(real)
    with metering(Meter()) as meter:
        method.fit(planned)
    assert planned.channel.by_kind() == real.channel.by_kind()
    assert (
        meter.training_samples == 2 * 3 * 12 + 2 * 6
    )  # two clients for three epochs, the student for two


@pytest.mark.parametrize(
    "method", [FedAD(), FedAD(one_shot=True, dropped=1), FedAD(dropped=2, quantised=True)]
)
def test_an_interrupted_fit_ends_as_if_nothing_had_happened(method, tmp_path):
    def federation(progress=lambda text, share: None):
        plan = TrainingPlan(
            epochs=4, batch_size=3, lr=0.01, optimizer="sgd", momentum=0.9, schedule="cosine"
        )
        return make_federation(clients=3, augmentation=SHIFTED, server=plan, progress=progress)

    def cut(text, share):
        if text.startswith("round 3/"):
            raise KeyboardInterrupt

    undisturbed, stopped, resumed = federation(), federation(cut), federation()
    expected = method.fit(undisturbed)
    stopped.stages.snapshots = Snapshots(tmp_path / "snapshot", every=0)
    with pytest.raises(KeyboardInterrupt):
        method.fit(stopped)
    resumed.stages.snapshots = Snapshots(tmp_path / "snapshot", every=0)
    found = method.fit(resumed)
    assert same_bits(found.state, expected.state)
    assert found.history == expected.history
    assert len(found.history["accuracy"]) == 4
    assert booked(resumed) == booked(undisturbed)


def test_with_noisy_counts_it_takes_weights_from_the_noise():
    protection = Protection(PrivacyPlan(DP_SGD, 50.0), FedAD.protections()[DP_SGD])
    sent = []
    channel = Channel(
        inspect=lambda t, tensors: sent.append(copied(tensors)) if t.kind == "labels" else None
    )
    federation = make_federation(protection=protection, channel=channel)
    model = FedAD(one_shot=True).fit(federation)
    assert [tensors["counts"].dtype for tensors in sent] == [torch.float32] * 2
    assert all(tensor.isfinite().all() for tensor in model.state.values())
    assert (
        len(protection.accountant.releases(0)) == 2
    )  # counts and training; what a noisy model says costs no more


@pytest.mark.parametrize("method", [FedAD(), FedAD(one_shot=True, bound_scale="mean")])
def test_it_learns(method):
    federation = make_federation(
        [client_with(index, [0, 1, 2] * 4) for index in range(2)],
        local=TrainingPlan(epochs=10, batch_size=4, lr=0.01),
        server=TrainingPlan(epochs=10, batch_size=5, lr=0.01),
        public=PublicData(validation_set().images, "thirty"),
    )
    assert method.fit(federation).history["accuracy"][-1] >= 5 / 6


# -- pixels --


def dense_client(index, samples=4):
    labels = torch.tensor([index % CLASSES, (index + 1) % CLASSES] * samples)[:samples]
    images = bright_images(labels, index)
    targets = labels[:, None, None].expand(-1, 8, 8).contiguous()
    return Client(
        index, "cnn", "cnn-small+dense", Shard(images, targets), (), f"dense {index} {samples}"
    )


def dense_federation(**changes):
    labels = torch.arange(6) % CLASSES
    pixels = labels[:, None, None].expand(-1, 8, 8).contiguous()
    return make_federation(
        [dense_client(0, 4), dense_client(1, 12)],
        network="cnn-small+dense",
        task=Segmentation(CLASSES),
        test=LabelledSet(bright_images(labels, 200), pixels, "test"),
        validation=LabelledSet(bright_images(labels, 300), pixels, "validation"),
        **changes,
    )


def test_of_pixels_the_probabilities_are_the_attention_and_clients_weigh_by_their_samples():
    federation = dense_federation()
    method = FedAD(one_shot=True)
    assert method.class_counts(federation).tolist() == [[4] * CLASSES, [12] * CLASSES]
    clients, teachers = (
        federation.clients,
        [federation.networks.module(model) for model in federation.local_models()],
    )
    found = method.transfer(
        federation, clients, teachers, method.class_counts(federation), federation.public.images
    )
    with torch.no_grad():
        first, second = (teacher(network_inputs(federation.public.images)) for teacher in teachers)
    torch.testing.assert_close(found.logits, 0.25 * first + 0.75 * second, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.consensus, torch.minimum(first.softmax(1), second.softmax(1)))
    torch.testing.assert_close(found.diversity, torch.maximum(first.softmax(1), second.softmax(1)))
    outputs = torch.randn(2, CLASSES, 8, 8)
    step = method.loss(federation, found, federation.streams.shuffling("any"))(
        outputs, torch.tensor([1, 4])
    )
    seen, how = outputs.softmax(dim=1), (method.rho, method.threshold)
    terms = logit_loss(outputs, found.logits[[1, 4]])
    terms = (
        terms
        + lower_loss(seen, found.consensus[[1, 4]], *how)
        + upper_loss(seen, found.diversity[[1, 4]], *how)
    )
    torch.testing.assert_close(step, terms.mean(dim=1))


def test_it_segments_and_sends_logits_alone():
    federation = dense_federation(server=TrainingPlan(epochs=20, batch_size=3, lr=0.01))
    model = FedAD(one_shot=True).fit(federation)
    assert model.history["miou"][-1] > model.history["miou"][0]
    assert set(federation.channel.by_kind()) == {"up/logits"}


def larger(count=6):
    """Public images of 12 x 12 pixels, which networks see through windows of 8 x 8."""
    images = bright_images(torch.arange(count) % CLASSES, 100, side=12)
    return PublicData(images, "larger", Window((8, 8), 0.5))


def test_larger_images_are_answered_for_whole_and_trained_on_in_patches():
    channel = Channel()
    federation = dense_federation(public=larger(), channel=channel)
    method = FedAD(one_shot=True)
    teachers = [federation.networks.module(model) for model in federation.local_models()]
    found = method.transfer(
        federation,
        federation.clients,
        teachers,
        method.class_counts(federation),
        federation.public.images,
    )
    whole = sum(transfer.bytes for transfer in channel.ledger) / 2
    assert 0 <= whole - 6 * CLASSES * 12 * 12 * 4 < 200  # the rest is the message's header
    assert found.logits.shape == (6 * 4, CLASSES, 8, 8)  # from 0 and 4 along either side
    answers = [
        predict(
            teacher,
            federation.public.images,
            normalise=federation.normalise,
            window=Window((8, 8), 0.5),
        )
        for teacher in teachers
    ]
    together = 0.25 * answers[0] + 0.75 * answers[1]
    torch.testing.assert_close(found.logits[-6:], together[:, :, 4:, 4:])
    torch.testing.assert_close(found.logits[6:12], together[:, :, 4:, :8])


@pytest.mark.parametrize(
    "method",
    [
        FedAD(one_shot=True),
        FedMD(rounds=1, public_samples=4, digest_lr=0.01, digest_batch_size=4),
        FedDF(rounds=1, participation=1.0, distillation_steps=4, evaluation_interval=2),
        AverageDistillation(),
    ],
    ids=["fedad", "fedmd", "feddf", "average-distillation"],
)
def test_of_larger_images_no_network_sees_more_than_it_takes(method):
    seen = set()

    def note(module, inputs):
        if inputs and inputs[0].ndim == 4 and inputs[0].shape[1] == 1:
            seen.add(tuple(inputs[0].shape[2:]))

    handle = register_module_forward_pre_hook(note)
    try:
        method.fit(dense_federation(public=larger()))
    finally:
        handle.remove()
    assert (8, 8) in seen
    assert (12, 12) not in seen


# -- images --

POSITIONS = 4
"""Of the last level's map of images of 32 x 32 pixels."""


def image_federation(sizes=(3, 9), **changes):
    """Clients with `sizes` grey images of 32 x 32 pixels, which are to be made of darker ones."""

    def pair(count, seed):
        images = torch.rand(count, 1, 32, 32, generator=torch.Generator().manual_seed(seed))
        return images / 2, images

    clients = [
        Client(
            index, "unet", "unet-8-in-nonlocal", Shard(*pair(size, index)), (), f"{index} {size}"
        )
        for index, size in enumerate(sizes)
    ]
    settings = {
        "network": "unet-8-in-nonlocal",
        "task": Reconstruction(),
        "image_shape": (1, 32, 32),
        "public": PublicData(pair(5, 100)[0], "public"),
        "test": LabelledSet(*pair(4, 200), "test"),
        "validation": None,
        "local": TrainingPlan(epochs=1, batch_size=4, lr=1e-3),
        "server": TrainingPlan(epochs=2, batch_size=4, lr=1e-3),
    }
    return make_federation(clients, **{**settings, **changes})


def test_of_images_attention_is_that_of_the_non_local_block_and_crosses_beside_them():
    federation = image_federation()
    method = FedAD(one_shot=True)
    teachers = [federation.networks.module(model) for model in federation.local_models()]
    counts = method.class_counts(federation)
    assert counts.tolist() == [[3], [9]]  # Eq. 13
    images = federation.public.images
    found = method.transfer(federation, federation.clients, teachers, counts, images)
    made, attention = [], []
    for teacher in teachers:
        seen = []
        teacher.bottom.register_forward_pre_hook(
            lambda block, inputs, seen=seen: seen.append(*inputs)
        )
        with torch.no_grad():
            made.append(teacher(federation.normalise(images)))
            attention.append(teacher.bottom.attention(seen[0])[:, None])
    torch.testing.assert_close(found.logits, 0.25 * made[0] + 0.75 * made[1], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.consensus, torch.minimum(*attention), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.diversity, torch.maximum(*attention), atol=1e-5, rtol=1e-4)
    assert found.consensus.shape == (5, 1, POSITIONS, POSITIONS)
    sent = federation.channel.by_kind()
    assert set(sent) == {"up/logits", "up/attention"}
    assert 0 <= sent["up/attention"] - 2 * 5 * POSITIONS**2 * 4 < 400


def test_the_loss_of_images_is_the_sum_of_its_three_terms_and_reaches_the_block():
    federation = image_federation()
    method = FedAD(one_shot=True, bound_scale="mean")
    student = federation.networks.initial()
    learner = method.attentive(federation, student)
    ensemble = Ensemble(
        torch.rand(5, 1, 32, 32),
        torch.tensor([True]),
        torch.full((5, 1, POSITIONS, POSITIONS), 0.2),
        torch.full((5, 1, POSITIONS, POSITIONS), 0.3),
    )
    batch = torch.tensor([0, 3])
    both = learner.train()(federation.normalise(federation.public.images[batch]))
    loss = method.loss(federation, ensemble, federation.streams.shuffling("any"))(both, batch)
    made, attention = method.parted(federation, both, 1, "unet-8-in-nonlocal")
    how = (method.rho, method.threshold, "mean")
    expected = (
        logit_loss(made, ensemble.logits[batch])
        + lower_loss(attention, ensemble.consensus[batch], *how)
        + upper_loss(attention, ensemble.diversity[batch], *how)
    )
    torch.testing.assert_close(loss, expected[:, 0])
    torch.testing.assert_close(attention.sum(dim=2), torch.ones(2, 1, POSITIONS))
    bounds = loss.sum() - logit_loss(made, ensemble.logits[batch]).sum()
    (gradient,) = torch.autograd.grad(bounds, student.down[0][0][0].weight)
    assert gradient.abs().sum() > 0


def test_without_bounds_any_network_reconstructs():
    federation = image_federation(
        network="unet-8-in",
        local=TrainingPlan(epochs=20, batch_size=3, lr=5e-3),
        server=TrainingPlan(epochs=20, batch_size=4, lr=5e-3),
    )
    model = FedAD(one_shot=True, bounds=False).fit(federation)
    assert model.history["psnr"][-1] > model.history["psnr"][0]
    assert set(federation.channel.by_kind()) == {"up/logits"}


def test_attention_between_positions_is_of_whole_images():
    public = PublicData(torch.rand(2, 1, 48, 48), "larger", Window((32, 32)))
    with pytest.raises(ValueError, match="of whole images, not of windows"):
        FedAD(one_shot=True).fit(image_federation(public=public))


def test_a_network_without_a_non_local_block_has_no_attention_of_images():
    with pytest.raises(ModelError, match="no non-local block, whose attention this method needs"):
        FedAD(one_shot=True).fit(image_federation(network="unet-8-in"))


# -- label sets of their own --

ALL = ("left", "right", "top")
SITES = [("left", "right"), ("left", "right"), ("top", "left"), ("top", "left")]
"""Which findings each of four clients labels, in its own order; `top` is labelled at two sites,
`right` at the others."""


def films(count, seed):
    """Dark images (n, 1, 8, 8), bright at the left, at the right, in the top rows' middle; and
    which of the three each is.
    """
    generator = torch.Generator().manual_seed(seed)
    found = torch.rand(count, 3, generator=generator) < 0.5
    images = torch.randint(0, 60, (count, 1, 8, 8), generator=generator)
    for finding, (rows, columns) in enumerate(
        [((0, 8), (0, 2)), ((0, 8), (6, 8)), ((0, 4), (3, 5))]
    ):
        images[:, :, rows[0] : rows[1], columns[0] : columns[1]] += 180 * found[:, finding].view(
            -1, 1, 1, 1
        )
    return images.to(torch.uint8), found.to(torch.uint8)


def film_client(index, own, samples=32):
    images, targets = films(samples, index)
    counts = tuple(
        int(targets[:, c].sum()) if finding in own else 0 for c, finding in enumerate(ALL)
    )
    columns = [ALL.index(finding) for finding in own]
    task = MultiLabel(own) if own != ALL else None
    return Client(
        index,
        "cnn",
        "cnn-small",
        Shard(images, targets[:, columns]),
        counts,
        f"films {index} {own}",
        task,
    )


def film_federation(sites=SITES, **changes):
    settings = {
        "clients": [film_client(index, own) for index, own in enumerate(sites)],
        "task": MultiLabel(ALL),
        "public": PublicData(films(40, 100)[0], "films"),
        "test": LabelledSet(*films(60, 200), "test films"),
        "validation": LabelledSet(*films(30, 300), "validation films"),
        "local": TrainingPlan(epochs=8, batch_size=8, lr=0.01),
        "server": TrainingPlan(epochs=8, batch_size=8, lr=0.01),
    }
    return make_federation(**{**settings, **changes})


@pytest.mark.parametrize(
    "method", [FedAD(), FedAD(one_shot=True, bound_scale="mean"), FedAD(dropped=1, quantised=True)]
)
def test_sites_with_other_findings_teach_a_student_all_of_them(method):
    federation = film_federation()
    model = method.fit(federation)
    assert model.outputs == 3
    assert model.history["mauc"][-1] > 0.9
    sent = [t.bytes for t in federation.channel.ledger if t.kind == "attention"]
    assert len(set(sent)) == 1  # of two classes each


def test_the_ensemble_of_a_finding_is_of_the_clients_that_label_it():
    federation = film_federation()
    method = FedAD(one_shot=True)
    teachers = [federation.networks.module(model) for model in federation.local_models()]
    counts = method.class_counts(federation)
    found = method.transfer(
        federation, federation.clients, teachers, counts, federation.public.images
    )
    logits, maps = zip(
        *(attention_of(teacher, federation.public.images) for teacher in teachers), strict=True
    )
    right = counts[:2, 1] / counts[:2, 1].sum()
    torch.testing.assert_close(
        found.logits[:, 1],
        right[0] * logits[0][:, 1] + right[1] * logits[1][:, 1],
        atol=1e-5,
        rtol=1e-4,
    )
    torch.testing.assert_close(
        found.consensus[:, 1], torch.minimum(maps[0][:, 1], maps[1][:, 1]), atol=1e-5, rtol=1e-4
    )
    # `top` comes first in the label set of the last two.
    torch.testing.assert_close(
        found.diversity[:, 2], torch.maximum(maps[2][:, 0], maps[3][:, 0]), atol=1e-5, rtol=1e-4
    )
    assert found.known.tolist() == [True] * 3


def test_a_client_is_not_heard_on_a_finding_that_it_does_not_label_whatever_its_counts_say():
    federation = film_federation()
    method = FedAD(one_shot=True, dropped=1)
    teachers = [federation.networks.module(model) for model in federation.local_models()]
    wrong = torch.full((4, 3), 5.0)
    found = method.transfer(
        federation, federation.clients, teachers, wrong, federation.public.images
    )
    assert found.counts.tolist() == [[5, 5, 0]] * 2 + [[5, 0, 5]] * 2
    assert found.ensemble().logits.isfinite().all()


def test_counts_of_findings_have_no_private_form():
    protection = Protection(PrivacyPlan(DP_SGD, 50.0), FedAD.protections()[DP_SGD])
    with pytest.raises(ValueError, match="one sample more changes several counts"):
        film_federation(protection=protection).label_counts()


@pytest.mark.parametrize(
    "method",
    [
        FedAvg(rounds=2, participation=1.0),
        FedDF(rounds=2, participation=1.0, distillation_steps=10, evaluation_interval=10),
        FedMD(rounds=1, public_samples=40, digest_batch_size=8),
        Centralized(),
        Standalone(),
    ],
    ids=lambda method: method.title,
)
def test_what_fedad_is_compared_with_learns_findings_too(method):
    allowed = frozenset({"private-samples"}) if method.oracle else frozenset()
    federation = film_federation([ALL] * 3, oracle_allowed=allowed)
    fitted = method.fit(federation)
    models = fitted if isinstance(fitted, list | tuple) else [fitted]
    assert all(
        federation.evaluation.test(federation.networks.module(model))["mauc"] > 0.85
        for model in models
    )


def test_a_site_alone_is_measured_by_its_own_findings():
    federation = film_federation()
    for model, own in zip(Standalone().fit(federation), SITES, strict=True):
        assert model.outputs == len(own)
        assert model.history["mauc"][-1] > 0.85
