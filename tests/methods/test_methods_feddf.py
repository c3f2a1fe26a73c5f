"""FedDF: the server's distillation beside plain PyTorch, and which weights it keeps."""

import math

import pytest
import torch

from federation.channel import Channel
from federation.costs import Meter, metering
from federation.parties.checkpoint import state_of
from federation.parties.data import PublicData
from federation.training.augmentation import Augmentation
from methods.fedavg import FedAvg
from methods.feddf import FedDF
from tests.federation.tiny import bright_images, make_federation
from tests.methods.shards import copied, distance, network_inputs, same_bits, validation_set


def quick(**changes):
    fields = {
        "rounds": 1,
        "participation": 1.0,
        "distillation_steps": 20,
        "evaluation_interval": 5,
        "patience": 20,
    }
    return FedDF(**{**fields, **changes})


def one_image_federation(**changes):
    """A federation whose public set repeats one image, so that every batch is the same."""
    images = bright_images(torch.tensor([1]), 7).repeat(3, 1, 1, 1)
    return make_federation(
        public=PublicData(images, "one image"), validation=validation_set(), **changes
    )


def test_the_server_starts_at_the_average_and_descends_the_divergence_with_adam_and_a_cosine(
    monkeypatch,
):
    up = []
    federation = one_image_federation(
        channel=Channel(
            inspect=lambda t, tensors: up.append(copied(tensors)) if t.direction == "up" else 0
        )
    )
    scores = iter([1.0])
    monkeypatch.setattr(federation.evaluation, "validate", lambda model: {"accuracy": next(scores)})
    model = quick(
        distillation_steps=3, evaluation_interval=3, distillation_batch_size=2, distillation_lr=0.01
    ).fit(federation)

    image = network_inputs(federation.public.images[:1])
    student, teacher = (
        federation.networks.initial("cnn-small"),
        federation.networks.initial("cnn-small").eval(),
    )
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


class Judge:
    """Stands in for the validation set: gives these scores in turn and remembers the weights it was
    shown.
    """

    def __init__(self, *scores):
        self.scores, self.seen = list(scores), []

    def __call__(self, model):
        self.seen.append(state_of(model))
        return {"accuracy": self.scores[len(self.seen) - 1]}


def judged(*scores, **fields):
    federation = make_federation(validation=validation_set())
    federation.evaluation.validate = Judge(*scores)
    return quick(**fields).fit(federation).state, federation.evaluation.validate.seen


def test_the_weights_that_do_best_on_the_validation_set_are_kept():
    kept, seen = judged(0.4, 0.8, 0.5, 0.6)
    assert len(seen) == 4
    assert same_bits(kept, seen[1])
    assert not any(same_bits(kept, other) for i, other in enumerate(seen) if i != 1)


def test_the_average_is_never_kept_however_well_it_does():
    kept, seen = judged(0.3, 0.2, 0.2, 0.2)  # the average is not even looked at
    assert same_bits(kept, seen[0])
    average = FedAvg(rounds=1, participation=1.0).fit(make_federation())
    assert not same_bits(kept, average.state)


def test_steps_too_few_for_a_look_are_kept_all_the_same():
    kept, seen = judged(distillation_steps=4, evaluation_interval=5)
    assert seen == []
    assert not same_bits(kept, FedAvg(rounds=1, participation=1.0).fit(make_federation()).state)


def test_the_average_may_be_kept_where_that_is_asked_for():
    kept, seen = judged(0.9, 0.8, 0.7, 0.6, 0.5, may_keep_average=True)
    assert same_bits(kept, seen[0])
    assert same_bits(kept, FedAvg(rounds=1, participation=1.0).fit(make_federation()).state)


def test_of_equally_good_weights_the_first_are_kept():
    kept, seen = judged(0.5, 0.8, 0.8, 0.8)
    assert same_bits(kept, seen[1])


def test_where_the_average_may_be_kept_the_validation_set_never_shows_worse():
    average, distilled = (
        make_federation(validation=validation_set()),
        make_federation(validation=validation_set()),
    )
    plain = FedAvg(rounds=1, participation=1.0).fit(average)
    rough = {"distillation_lr": 0.1, "evaluation_interval": 1, "distillation_steps": 10}
    model = quick(**rough, may_keep_average=True).fit(distilled)
    before, after = (
        average.evaluation.validate(average.networks.module(m))["accuracy"] for m in (plain, model)
    )
    assert after >= before


def test_distillation_stops_when_patience_steps_after_the_best_have_brought_no_gain():
    # Looks after steps 2, 4, 6, 8; the best is after step 4, and patience ends with step 8.
    kept, seen = judged(
        0.2, 0.9, *[0.3] * 20, distillation_steps=40, evaluation_interval=2, patience=4
    )
    assert len(seen) == 4
    assert same_bits(kept, seen[1])


def test_patience_is_counted_from_the_first_look_or_from_the_average_that_may_be_kept():
    few = {"distillation_steps": 40, "evaluation_interval": 2, "patience": 4}
    _, seen = judged(*[0.5] * 30, **few)
    assert len(seen) == 3  # after steps 2, 4 and 6
    _, seen = judged(*[0.5] * 30, **few, may_keep_average=True)
    assert len(seen) == 3  # at the average, and after steps 2 and 4


def test_a_gain_in_time_lets_distillation_go_on_to_its_last_step():
    scores = [step / 100 for step in range(10)]
    kept, seen = judged(*scores, distillation_steps=20, evaluation_interval=2, patience=2)
    assert len(seen) == 10
    assert same_bits(kept, seen[-1])


def test_without_a_validation_set_the_error_says_which_option_sets_one_aside():
    with pytest.raises(ValueError, match=r"validation set.*partition\.validation_share"):
        quick().fit(make_federation(validation=None))


def test_the_server_looks_at_public_images_and_no_others(monkeypatch):
    federation = make_federation(validation=validation_set())
    scores = iter(range(100))
    monkeypatch.setattr(federation.evaluation, "validate", lambda model: {"accuracy": next(scores)})
    shown = []
    hook = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, inputs: shown.append(inputs[0]) if type(module).__name__ == "CNN" else None
    )
    try:
        quick().aggregate(
            federation,
            federation.networks.initial("cnn-small"),
            federation.clients,
            [state_of(federation.networks.initial("cnn-small"))] * 2,
            1,
            {},
        )
    finally:
        hook.remove()
    public = network_inputs(federation.public.images)
    assert len(shown) == 2 + 20
    for batch in shown:
        nearest = (batch[:, None] - public).abs().flatten(2).amax(dim=2).amin(dim=1)
        assert nearest.max() < 1e-5


def test_where_images_are_augmented_teachers_and_student_see_the_same_ones(monkeypatch):
    federation = make_federation(
        augmentation=Augmentation(horizontal_flip=True), validation=validation_set()
    )
    monkeypatch.setattr(federation.evaluation, "validate", lambda model: {"accuracy": 1.0})
    shown = []
    forward = federation.forward

    def look(model, inputs):
        shown.append((model.training, inputs))
        return forward(model, inputs)

    monkeypatch.setattr(federation, "forward", look)
    average = federation.networks.initial("cnn-small")
    states = [state_of(federation.networks.initial("cnn-small"))] * 2
    quick(augmented=True).aggregate(federation, average, federation.clients, states, 1, {})
    assert [training for training, _ in shown] == [False, False, True] * 20
    steps = [[inputs for _, inputs in shown[i : i + 3]] for i in range(0, 60, 3)]
    assert all(torch.equal(first, other) for first, *others in steps for other in others)
    public = network_inputs(federation.public.images)
    either_way = torch.cat([public, public.flip(-1)])
    apart = [(batch[:, None] - either_way).abs().flatten(2).amax(dim=2) for batch, *_ in steps]
    nearest = torch.cat([distances.argmin(dim=1) for distances in apart])
    assert torch.cat(apart).amin(dim=1).max() < 1e-4
    assert {*nearest.tolist()} == {*range(2 * len(public))}  # each image, and each mirrored


def test_what_augmented_distillation_changes_is_what_the_run_augments():
    flipped = Augmentation(horizontal_flip=True)
    plain, mirrored = (
        quick(augmented=chosen).fit(
            make_federation(augmentation=flipped, validation=validation_set())
        )
        for chosen in (False, True)
    )
    assert not same_bits(plain.state, mirrored.state)
    unchanged = quick(augmented=True).fit(make_federation(validation=validation_set()))
    assert same_bits(
        unchanged.state, quick().fit(make_federation(validation=validation_set())).state
    )


def test_other_public_images_give_another_model_after_the_same_clients():
    def state(seed):
        public = PublicData(bright_images(torch.tensor([0, 1, 2] * 2), seed), f"public {seed}")
        federation = make_federation(public=public, validation=validation_set())
        scores = iter(range(100))
        federation.evaluation.validate = lambda model: {"accuracy": next(scores)}
        return quick().fit(federation).state

    assert same_bits(state(1), state(1))
    assert not same_bits(state(1), state(2))


@pytest.mark.parametrize("augmented", [False, True])
def test_a_plan_books_the_bytes_of_the_run(augmented):
    changes = {"augmentation": Augmentation(horizontal_flip=True)}
    real, planned = (
        make_federation(validation=validation_set(), **changes),
        make_federation(device="meta", validation=validation_set("meta"), **changes),
    )
    method = quick(rounds=2, augmented=augmented)
    method.fit(real)
    with metering(Meter()):
        method.fit(planned)
    assert planned.channel.ledger == real.channel.ledger


def test_it_learns():
    federation = make_federation(clients=3, validation=validation_set())
    model = quick(rounds=5).fit(federation)
    assert model.history["accuracy"][-1] >= 5 / 6
    assert len(model.history["accuracy"]) == 5
