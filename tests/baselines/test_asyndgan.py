"""AsynDGAN: every byte that crosses, its generator's loss, and what its network learns from."""

import pytest
import torch

from fedtables.baselines.asyndgan import AsynDGAN
from fedtables.federation.channel import encoded_size
from fedtables.federation.shared.conditional_gan import Answer, Critic
from tests.federation.tiny import make_dense_federation, rectangles
from tests.methods.fediod.cases import patch_logits
from tests.methods.shards import booked, size


def quick(**changes):
    sizes = {
        "generator": "resnet-generator-narrow",
        "discriminator_width": 4,
        "discriminator_layers": 1,
        "features": "vgg16-random",
        "batch_size": 2,
        "steps": 3,
        "constant_epochs": 1,
        "decay_epochs": 1,
    }
    return AsynDGAN(**{**sizes, **changes})


IMAGES, SCORES = size("images", 2, 1, 16, 16), size("outputs", 2, 6, 6)
LOSSES = size("outputs", 2)
GRADIENTS = encoded_size({"0": torch.empty(2, 6, 6), "1": torch.empty(2)})


def test_each_client_gets_the_images_of_its_own_label_maps_and_answers_to_the_byte():
    federation = make_dense_federation((8, 5))
    quick().fit(federation)
    expected = {}
    for k, held in enumerate((8, 5)):
        maps = size("maps", held, 16, 16, dtype=torch.int16)
        expected[0, "up", "conditions", k] = (maps, 1)
        for number in (1, 2):
            expected[number, "down", "images", k] = (3 * IMAGES, 3)
            expected[number, "up", "discriminator-outputs", k] = (3 * SCORES, 3)
            expected[number, "up", "losses", k] = (3 * LOSSES, 3)
            expected[number, "down", "gradients", k] = (3 * GRADIENTS, 3)
            expected[number, "up", "gradients", k] = (3 * IMAGES, 3)
    assert booked(federation) == expected


@pytest.mark.parametrize(("weights", "shares"), [("one", (1.0, 1.0)), ("size", (0.75, 0.25))])
def test_the_generators_loss_is_a_tenth_of_the_clients_sum(weights, shares, monkeypatch):
    answers = iter(patch_logits().requires_grad_())
    losses = iter(torch.tensor([[1.0, 3.0], [5.0, 5.0]]))

    def answer(critic, images, conditions, step, own, others):
        zero = 0 * images.sum()  # nothing reaches the generator
        return Answer(next(answers) + zero, next(losses) + zero, ())

    monkeypatch.setattr(Critic, "answer", answer)
    seen = []
    monkeypatch.setattr(
        "fedtables.baselines.asyndgan.show", lambda name, number, value: seen.append(value.item())
    )
    method = quick(gan_weights=weights, steps=1, constant_epochs=1, decay_epochs=0)
    method.fit(make_dense_federation((6, 2)))
    ln2, ln4, low = torch.tensor([2.0, 4.0, 4 / 3]).log().tolist()
    by_client = ((2 * ln2 + ln4 + low) / 4 + 2, ln4 + 5)
    expected = 0.1 * sum(w * loss for w, loss in zip(shares, by_client, strict=True))
    assert seen == pytest.approx([expected])


def test_the_network_learns_from_an_image_of_every_label_map(monkeypatch):
    federation, seen = make_dense_federation((8, 5)), []
    monkeypatch.setattr(federation, "distill", lambda *given: seen.append(given))
    quick().fit(federation)
    ((targets, loss, images),) = seen
    assert torch.equal(targets, torch.cat([rectangles(n, k)[1] for k, n in enumerate((8, 5))]))
    assert loss == federation.task.loss
    assert images.shape == (13, 1, 16, 16)
    assert images.dtype == torch.uint8
