"""FedAD where networks answer for pixels, and where they make images."""

import pytest
import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from fedtables.baselines.average_distillation import AverageDistillation
from fedtables.federation.client import Client, Shard
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.federation.tasks.values import Reconstruction
from fedtables.federation.training.loops import predict
from fedtables.federation.training.plan import TrainingPlan
from fedtables.federation.windows import Window
from fedtables.methods.fedad import FedAD
from fedtables.methods.fedad.losses import Ensemble, logit_loss, lower_loss, upper_loss
from fedtables.methods.feddf import FedDF
from fedtables.methods.fedmd import FedMD
from fedtables.models.entry import ModelError
from tests.federation.tiny import CLASSES, bright_images, make_federation
from tests.methods.fedad.cases import transferred
from tests.methods.shards import network_inputs

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
    found, teachers = transferred(federation, method)
    with torch.no_grad():
        first, second = (teacher(network_inputs(federation.public.images)) for teacher in teachers)
    torch.testing.assert_close(found.logits, 0.25 * first + 0.75 * second, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.consensus, torch.minimum(first.softmax(1), second.softmax(1)))
    torch.testing.assert_close(found.diversity, torch.maximum(first.softmax(1), second.softmax(1)))
    outputs = torch.randn(2, CLASSES, 8, 8)
    of = method.loss(federation, found, federation.streams.shuffling("any"))
    step, seen = of(outputs, torch.tensor([1, 4])), outputs.softmax(dim=1)
    terms = logit_loss(outputs, found.logits[[1, 4]])
    terms = terms + lower_loss(seen, found.consensus[[1, 4]], method.rho, method.threshold)
    terms = terms + upper_loss(seen, found.diversity[[1, 4]], method.rho, method.threshold)
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
    federation = dense_federation(public=larger())
    found, teachers = transferred(federation, FedAD(one_shot=True))
    whole = sum(transfer.bytes for transfer in federation.channel.ledger) / 2
    assert 0 <= whole - 6 * CLASSES * 12 * 12 * 4 < 200  # the rest is the message's header
    assert found.logits.shape == (6 * 4, CLASSES, 8, 8)  # from 0 and 4 along either side
    images, how = federation.public.images, {"normalise": federation.normalise}
    answers = [predict(teacher, images, window=Window((8, 8), 0.5), **how) for teacher in teachers]
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
    assert method.class_counts(federation).tolist() == [[3], [9]]  # Eq. 13
    found, teachers = transferred(federation, method)
    images = federation.public.images
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


def test_without_bounds_any_network_will_do():
    federation = image_federation(network="unet-8-in")
    model = FedAD(one_shot=True, bounds=False).fit(federation)
    assert len(model.history["psnr"]) == federation.server.epochs
    assert set(federation.channel.by_kind()) == {"up/logits"}


def test_attention_between_positions_is_of_whole_images():
    public = PublicData(torch.rand(2, 1, 48, 48), "larger", Window((32, 32)))
    with pytest.raises(ValueError, match="of whole images, not of windows"):
        FedAD(one_shot=True).fit(image_federation(public=public))


def test_a_network_without_a_non_local_block_has_no_attention_of_images():
    with pytest.raises(ModelError, match="no non-local block, whose attention this method needs"):
        FedAD(one_shot=True).fit(image_federation(network="unet-8-in"))
