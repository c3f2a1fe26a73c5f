"""A fit of FedAD: what the student descends, what crosses, and what every party sees."""

from dataclasses import replace

import pytest
import torch

from fedtables.federation.augmentation import Augmentation
from fedtables.federation.channel import encoded_size
from fedtables.federation.data import state_of
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedad import FedAD
from fedtables.methods.fedad.losses import lower_loss, upper_loss
from fedtables.models.cut import encode
from fedtables.models.saliency import class_attention
from fedtables.privacy.plan import DP_SGD, PrivacyPlan
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.fedad.cases import SIDE, attention_of
from tests.methods.shards import (
    booked,
    distance,
    mixed_clients,
    network_inputs,
    recorded,
    size,
)

SHIFTED = Augmentation(rotation=20, shift=0.2)


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


COUNTS, LOGITS = size("counts", CLASSES, dtype=torch.long), size("logits", 6, CLASSES)
ATTENTION = size("attention", 6, CLASSES, SIDE, SIDE)


@pytest.mark.parametrize("one_shot", [False, True])
def test_clients_answer_in_every_epoch_or_once_for_all(one_shot):
    federation = make_federation(server=TrainingPlan(epochs=5, batch_size=3, lr=0.01))
    FedAD(one_shot=one_shot).fit(federation)
    expected = {(0, "up", "labels", k): (COUNTS, 1) for k in range(2)}
    for number in (0,) if one_shot else range(1, 6):
        expected |= {(number, "up", "logits", k): (LOGITS, 1) for k in range(2)}
        expected |= {(number, "up", "attention", k): (ATTENTION, 1) for k in range(2)}
    assert booked(federation) == expected


def test_in_bytes_values_take_a_quarter_and_a_scale_for_each_class():
    federation = make_federation()
    FedAD(one_shot=True, quantised=True).fit(federation)
    scales = {"least": torch.empty(CLASSES), "step": torch.empty(CLASSES)}

    def sent(*shape):
        return encoded_size({"values": torch.empty(*shape, dtype=torch.uint8), **scales})

    found = federation.channel.by_kind()
    assert found["up/logits"] == 2 * sent(6, CLASSES)
    assert found["up/attention"] == 2 * sent(6, CLASSES, SIDE, SIDE)
    assert size("a", 1000, CLASSES) / sent(1000, CLASSES) == pytest.approx(4, rel=0.1)


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


def test_networks_may_differ_and_their_maps_are_made_to_fit():
    federation = make_federation(mixed_clients())
    model, sent = recorded(FedAD(one_shot=True), federation)
    maps = [tensors["attention"] for t, tensors in sent if t.kind == "attention"]
    assert [tuple(own.shape[2:]) for own in maps] == [(2, 2), (2, 2)]
    assert len(model.history["accuracy"]) == federation.server.epochs


def test_with_noisy_counts_it_takes_weights_from_the_noise():
    protection = Protection(PrivacyPlan(DP_SGD, 50.0), FedAD.protections()[DP_SGD])
    model, sent = recorded(FedAD(one_shot=True), make_federation(protection=protection))
    counts = [tensors["counts"] for t, tensors in sent if t.kind == "labels"]
    assert [own.dtype for own in counts] == [torch.float32] * 2
    assert all(tensor.isfinite().all() for tensor in model.state.values())
    # Counts and training; what a noisy model says costs no more.
    assert len(protection.accountant.releases(0)) == 2
