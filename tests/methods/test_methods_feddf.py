"""FedDF: the server's distillation beside plain PyTorch, and which weights it keeps."""

import math

import pytest
import torch

from fedtables.federation.augmentation import Augmentation
from fedtables.federation.data import PublicData, state_of
from fedtables.methods.fedavg import FedAvg, Round
from fedtables.methods.feddf import FedDF
from tests.federation.tiny import bright_images, make_federation
from tests.methods.shards import distance, network_inputs, recorded, same_bits, validation_set


def quick(**changes):
    fields = {"distillation_steps": 20, "evaluation_interval": 5, "patience": 20}
    return FedDF(**{"rounds": 1, "participation": 1.0, **fields, **changes})


def one_image_federation():
    """A federation whose public set repeats one image, so that every batch is the same."""
    images = bright_images(torch.tensor([1]), 7).repeat(3, 1, 1, 1)
    return make_federation(public=PublicData(images, "one image"), validation=validation_set())


def average_alone():
    return FedAvg(rounds=1, participation=1.0).fit(make_federation()).state


def test_the_server_starts_at_the_average_and_descends_the_divergence_with_adam_and_a_cosine(
    monkeypatch,
):
    federation = one_image_federation()
    scores = iter([1.0])
    monkeypatch.setattr(federation.evaluation, "validate", lambda model: {"accuracy": next(scores)})
    steps = {"distillation_steps": 3, "evaluation_interval": 3, "distillation_batch_size": 2}
    model, sent = recorded(quick(**steps, distillation_lr=0.01), federation)
    up = [tensors for t, tensors in sent if t.direction == "up"]

    image = network_inputs(federation.public.images[:1])
    student, teacher = (federation.networks.initial("cnn-small") for _ in range(2))
    teacher.eval()
    logits = []
    for state in up:
        teacher.load_state_dict(state)
        logits.append(teacher(image).detach())
    student.load_state_dict({name: (up[0][name] + up[1][name]) / 2 for name in up[0]})
    optimizer = torch.optim.Adam(student.parameters())
    for step in range(3):
        optimizer.param_groups[0]["lr"] = 0.01 * (1 + math.cos(math.pi * step / 3)) / 2
        target = (sum(logits) / 2).softmax(dim=1)
        loss = (target * (target.log() - student(image).log_softmax(dim=1))).sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 5.0)
        optimizer.step()
    torch.testing.assert_close(model.state, state_of(student), atol=1e-4, rtol=1e-3)
    assert distance(model.state, state_of(student)) < 0.02 * distance(
        model.state, FedAvg(rounds=1).fit(one_image_federation()).state
    )


FEW = {"distillation_steps": 40, "evaluation_interval": 2, "patience": 4}


@pytest.mark.parametrize(
    ("scores", "fields", "looks", "kept"),
    [
        ([0.4, 0.8, 0.5, 0.6], {}, 4, 1),
        ([0.5, 0.8, 0.8, 0.8], {}, 4, 1),  # of equally good ones the first
        # Looks after steps 2, 4, 6, 8; the best is after step 4, and patience ends with step 8.
        ([0.2, 0.9, *[0.3] * 20], FEW, 4, 1),
        ([0.5] * 30, FEW, 3, 0),  # counted from the first look,
        ([0.5] * 30, {**FEW, "may_keep_average": True}, 3, 0),  # or from the average
        ([0.01 * step for step in range(20)], {**FEW, "patience": 2}, 20, 19),  # gains in time
    ],
)
def test_the_weights_that_do_best_on_the_validation_set_are_kept(scores, fields, looks, kept):
    federation, seen = make_federation(validation=validation_set()), []

    def judge(model):
        seen.append(state_of(model))
        return {"accuracy": scores[len(seen) - 1]}

    federation.evaluation.validate = judge
    found = quick(**fields).fit(federation).state
    assert len(seen) == looks
    assert same_bits(found, seen[kept])
    assert not any(same_bits(found, other) for i, other in enumerate(seen) if i != kept)
    assert same_bits(found, average_alone()) == bool(fields.get("may_keep_average"))


def test_steps_too_few_for_a_look_are_kept_all_the_same():
    federation = make_federation(validation=validation_set())
    federation.evaluation.validate = None
    kept = quick(distillation_steps=4).fit(federation).state
    assert not same_bits(kept, average_alone())


@pytest.mark.parametrize("augmented", [False, True])
def test_teachers_and_student_see_public_images_and_where_they_are_augmented_the_same_ones(
    monkeypatch, augmented
):
    federation = make_federation(
        augmentation=Augmentation(horizontal_flip=True), validation=validation_set()
    )
    monkeypatch.setattr(federation.evaluation, "validate", lambda model: {"accuracy": 1.0})
    shown, forward = [], federation.forward

    def look(model, inputs):
        shown.append((model.training, inputs))
        return forward(model, inputs)

    monkeypatch.setattr(federation, "forward", look)
    average = federation.networks.initial("cnn-small")
    this = Round(federation, 1, federation.clients, average, {})
    quick(augmented=augmented).aggregate(this, iter([state_of(average)] * 2))
    each = 3 if augmented else 1  # plain images teachers see once, before
    assert [training for training, _ in shown] == [*[False] * (each - 1), True] * 20
    steps = [[inputs for _, inputs in shown[i : i + each]] for i in range(0, each * 20, each)]
    assert all(torch.equal(first, other) for first, *others in steps for other in others)
    public = network_inputs(federation.public.images)
    known = torch.cat([public, public.flip(-1)]) if augmented else public
    apart = [(batch[:, None] - known).abs().flatten(2).amax(dim=2) for batch, *_ in steps]
    nearest = torch.cat([distances.argmin(dim=1) for distances in apart])
    assert torch.cat(apart).amin(dim=1).max() < 1e-4
    assert {*nearest.tolist()} == {*range(len(known))}  # each image, and each mirrored
