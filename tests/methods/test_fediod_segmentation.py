"""FedIOD's Algorithm 1 for every pixel: its losses by hand, and every byte that crosses in it."""

import pytest
import torch

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.federation.channel import encoded_size
from fedtables.federation.tasks.pixels import BRATS, Regions
from fedtables.methods.fediod.losses import aggregate, entropy
from fedtables.methods.fediod_segmentation import (
    Answered,
    FedIODSegmentation,
    Server,
    as_classes,
    by_pixel,
)
from fedtables.models import catalogue
from fedtables.models.entry import NetworkEntry
from fedtables.models.networks.unet import UNet, unet_bn
from tests.federation.tiny import make_dense_federation
from tests.methods.fediod.cases import LN2, LN4, PI, patch_logits
from tests.methods.shards import booked, same_bits, size

NONE = torch.empty(0)


def settings(protocol):
    """The method's own, of the nuclei's Table 3."""
    selection = Selection(profile="paper", protocol=protocol, only={"row": "fediod"})
    cell = expand(*registry.find_table("fediod/table3"), selection)[0]
    own = "fediod-segmentation."
    config = dict(cell.config).items()
    return {name.removeprefix(own): value for name, value in config if name.startswith(own)}


RELEASED = {
    **dict(settings("released").items() - settings("paper").items()),
    "generator": "resnet-generator-bn-narrow",
}
"""What the authors' code sets otherwise, with a narrow generator of its form."""


def answered(**changes):
    parts = {"images": NONE, "scores": NONE, "losses": NONE, "logits": NONE, "own_scores": NONE}
    return Answered(**{**parts, **changes})


# -- pixels --


def test_every_pixel_is_a_sample():
    maps = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5)
    assert by_pixel(maps).shape == (40, 3)
    assert torch.equal(by_pixel(maps)[20 + 5 + 2], maps[1, :, 1, 2])
    assert torch.equal(by_pixel(torch.stack([maps, -maps]))[1], -by_pixel(maps))


def test_a_single_logit_is_that_of_the_second_of_two_classes():
    logits = torch.tensor([[[[-2.0, 0.5]]]])
    assert torch.equal(as_classes(logits), torch.tensor([[[[0.0, 0.0]], [[-2.0, 0.5]]]]))
    torch.testing.assert_close(as_classes(logits).softmax(dim=1)[:, 1:], logits.sigmoid())
    assert torch.equal(as_classes(maps := torch.ones(3, 2, 4, 4)), maps)


# -- losses --


def test_the_generator_is_confident_unique_realistic_and_hard_to_mimic():
    # The clients are certain of different classes at the first pixel, of none at the second.
    certain = 50.0
    logits = torch.zeros(2, 1, 2, 1, 2)
    logits[0, 0, 0, 0, 0] = logits[1, 0, 1, 0, 0] = certain
    realism, mimic = torch.tensor(0.3), torch.tensor(0.125)
    conf, unique = LN2 / 2, -entropy(PI).item() / 2
    loss = FedIODSegmentation().generator_loss(realism, logits, mimic, PI)
    assert loss.item() == pytest.approx(0.3 - 0.125 + conf + unique, abs=1e-6)
    method = FedIODSegmentation(mimic=0.0, confidence=3.0, uniqueness=2.0)
    loss = method.generator_loss(realism, logits, mimic, PI)
    assert loss.item() == pytest.approx(0.3 + 3 * conf + 2 * unique, abs=1e-6)


def test_realism_is_what_the_critics_say_and_the_distance_from_real_images():
    class Sized:
        def __init__(self, size):
            self.client = self
            self.size = size
            self.federation = make_dense_federation()

    low = torch.tensor(4 / 3).log().item()
    said = answered(scores=patch_logits(), losses=torch.tensor([[1.0, 3.0], [5.0, 5.0]]))
    by_client = (2 * LN2 + LN4 + low) / 4 + 2, LN4 + 5
    critics = [Sized(6), Sized(2)]
    loss = FedIODSegmentation().realism_loss(critics, said)
    assert loss.item() == pytest.approx(0.75 * by_client[0] + 0.25 * by_client[1])
    loss = FedIODSegmentation(**RELEASED).realism_loss(critics, said)
    assert loss.item() == pytest.approx(0.1 * sum(by_client))


def server(counts):
    return Server(None, None, PI, torch.tensor(counts), [], [])


def test_teachers_weigh_by_their_pixels_of_a_class_and_by_how_odd_they_find_the_image():
    # Eq. 8: D_k(x) is 5/8 and 3/8 at the first client, 3/4 at the second; E[D_k(x')] 1/2 and 1/4.
    said = answered(scores=patch_logits(), own_scores=torch.tensor([0.5, 0.25]))
    weights = FedIODSegmentation().teacher_weights(server([[30.0, 10.0], [10.0, 30.0]]), said)
    expected = torch.tensor([[5 / 9, 5 / 41], [3 / 7, 1 / 13]])
    torch.testing.assert_close(weights, torch.stack([expected, 1 - expected]))


@pytest.mark.parametrize(
    ("weights", "first"), [("size", [0.75, 0.75]), ("class-count", [0.75, 0.25]), ("sum", [1, 1])]
)
def test_teachers_weigh_by_samples_by_pixels_or_all_one(weights, first):
    method = FedIODSegmentation(weights=weights)
    found = method.teacher_weights(server([[30.0, 10.0], [10.0, 30.0]]), answered())
    assert torch.broadcast_to(found, (2, 1, 2))[0, 0].tolist() == first


def test_the_student_mimics_at_every_pixel_and_the_released_form_has_no_factor_of_t():
    logits = torch.tensor([[[[1.0, 0.0]], [[0.0, 0.0]]], [[[0.0, 2.0]], [[0.0, 0.0]]]])[:, None]
    ensemble = aggregate(logits, torch.ones(2, 1, 1, 1, 1))
    assert ensemble.tolist() == [[[[1, 2]], [[0, 0]]]]
    student = torch.zeros(1, 2, 1, 2)
    squares = FedIODSegmentation(printed_mimic=True).mimic_loss(student, ensemble)  # Eq. 10
    assert squares.item() == pytest.approx((1 + 4) / 2)
    limit = FedIODSegmentation().mimic_loss(student, ensemble)  # of Eq. 6
    assert limit.item() == pytest.approx((0.5 + 2) / 2 / (2 * 2))
    expected = [torch.tensor([z / 5, 0.0]).softmax(dim=0) for z in (1.0, 2.0)]
    divergence = sum((p * (2 * p).log()).sum() for p in expected).item() / 2
    released = FedIODSegmentation(**RELEASED)
    mimic = released.mimic_loss(student, ensemble)
    assert released.distillation * mimic.item() == pytest.approx(divergence, rel=1e-5)


# -- what crosses --


def quick(**changes):
    sizes = {
        "generator": "resnet-generator-narrow",
        "discriminator_width": 4,
        "discriminator_layers": 1,
        "features": "vgg16-random",
        "batch_size": 2,
        "steps": 3,
        "warmup_epochs": 1,
        "epochs": 1,
        "lr": 0.01,
    }
    return FedIODSegmentation(**{**sizes, **changes})


def sent_maps(k, n):
    return {(0, "up", "conditions", k): (size("maps", n, 16, 16, dtype=torch.int16), 1)}


def test_every_client_judges_and_teaches_every_image_to_the_byte():
    federation = make_dense_federation((8, 5))
    quick().fit(federation)
    images, scores = size("images", 4, 1, 16, 16), torch.empty(4, 6, 6)
    warm = {"0": scores, "1": torch.empty(2)}
    expected = {}
    for k, n in enumerate((8, 5)):
        expected |= sent_maps(k, n)
        for number in (1, 2):
            maps = size("maps", 4, 16, 16, dtype=torch.int16)
            expected[number, "down", "conditions", k] = (3 * maps, 3)
            expected[number, "down", "images", k] = (3 * images, 3)
            expected[number, "up", "losses", k] = (3 * size("outputs", 2), 3)
            expected[number, "up", "gradients", k] = (3 * images, 3)
        judged = encoded_size({"outputs": scores})
        expected[1, "up", "discriminator-outputs", k] = (3 * judged, 3)
        expected[2, "up", "discriminator-outputs", k] = (3 * (judged + size("own")), 6)
        expected[2, "up", "logits", k] = (3 * size("outputs", 4, 2, 16, 16), 3)
        all_three = encoded_size({**warm, "2": torch.empty(4, 2, 16, 16)})
        expected[1, "down", "gradients", k] = (3 * encoded_size(warm), 3)
        expected[2, "down", "gradients", k] = (3 * all_three, 3)
    assert booked(federation) == expected


def test_in_the_released_form_clients_judge_their_own_maps_and_no_map_goes_down():
    federation = make_dense_federation((8, 5))
    quick(**RELEASED, generator_lr=1e-3).fit(federation)
    expected = {}
    for k, n in enumerate((8, 5)):
        expected |= sent_maps(k, n)
        for number, images in ((1, 2), (2, 4)):
            pixels = size("images", images, 1, 16, 16)
            scores = torch.empty(2, 6, 6)
            asked = encoded_size({"0": scores, "1": torch.empty(2)})
            expected[number, "down", "images", k] = (3 * pixels, 3)
            judged = 3 * size("outputs", 2, 6, 6)
            expected[number, "up", "discriminator-outputs", k] = (judged, 3)
            expected[number, "up", "losses", k] = (3 * size("outputs", 2), 3)
            expected[number, "down", "gradients", k] = (3 * asked, 3)
            expected[number, "up", "gradients", k] = (3 * pixels, 3)
        expected[2, "up", "logits", k] = (3 * size("outputs", 4, 2, 16, 16), 3)
    assert booked(federation) == expected


# -- what is learnt --


def test_as_released_it_learns_to_segment_what_no_server_has_seen():
    federation = make_dense_federation()
    changes = {**RELEASED, "decay_epochs": 4, "generator_lr": 5e-3}
    model = quick(warmup_epochs=6, epochs=8, steps=4, **changes).fit(federation)
    assert len(model.history["miou"]) == 6 + 8  # the student waits while G and D_k warm up
    # Outside everywhere has a mean IoU of (3/4 + 0) / 2.
    assert federation.evaluation.test(federation.networks.module(model))["miou"] > 0.6


def tiny_unet(in_channels, outputs, sides):
    return unet_bn(2).build(in_channels, outputs, sides)


def test_a_student_with_dropout_repeats_itself(monkeypatch):
    """AsynDGAN's U-Net leaves out half of its last level in training."""
    tiny_unet.__module__ = UNet.__module__  # whose code is a part of stages' keys
    monkeypatch.setitem(catalogue.networks(), "unet-tiny", NetworkEntry(tiny_unet, "maps"))
    first, again = (
        quick(steps=1).fit(make_dense_federation(network="unet-tiny")) for _ in range(2)
    )
    assert same_bits(first.state, again.state)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"judges": "both"}, "unknown judges 'both'; known: all, own"),
        ({"weights": "eq9"}, "unknown weights 'eq9'; known: eq8, eq8-own, size, class-count, sum"),
        ({"judges": "own"}, "weights 'eq8' need every client's D_k on every image"),
        ({"gan_weights": "average"}, "unknown gan_weights 'average'; known: one, size"),
    ],
)
def test_settings_that_cannot_be_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        FedIODSegmentation(**fields)


def test_regions_that_may_lie_inside_each_other_are_refused():
    federation = make_dense_federation(task=Regions(BRATS))
    with pytest.raises(ValueError, match="may be of several of whole-tumour, tumour-core"):
        FedIODSegmentation(warmup_epochs=1, epochs=1).fit(federation)
