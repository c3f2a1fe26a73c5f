"""The generator and the patch discriminator: published sizes, shapes and ranges, and how images are
enlarged.
"""

import pytest
import torch

from fedtables.models.generative import Generator, PairDiscriminator, PatchDiscriminator


def parameters(model):
    return sum(p.numel() for p in model.parameters())


def made(seed=0, **options):
    """A small generator in training mode; the same weights for the same seed and sizes."""
    torch.manual_seed(seed)
    return Generator(**{"latent": 5, "image_size": 8, "width": 4, **options})


def test_the_generator_has_the_published_number_of_parameters():
    with torch.device("meta"):
        assert parameters(Generator()) == 2_026_051
        assert parameters(Generator(latent=256)) == 4_581_955


def test_the_discriminator_has_the_published_number_of_parameters():
    with torch.device("meta"):
        assert parameters(PatchDiscriminator()) == 531_328
        # 4 x 4 x 3 x 8 + 8, then 4 x 4 x 8 x 16, a BatchNorm of 32, and 16 weights of the last
        # layer.
        assert parameters(PatchDiscriminator(width=8)) == 392 + 2048 + 32 + 16


@pytest.mark.parametrize(("size", "channels"), [(4, 3), (32, 1)])
def test_images_have_the_size_asked_for_and_lie_between_0_and_1(size, channels):
    images = made(image_size=size, channels=channels)(50 * torch.randn(6, 5))
    assert images.shape == (6, channels, size, size)
    assert 0 <= images.min() < images.max() <= 1


@pytest.mark.parametrize("size", [2, 30])
def test_a_size_that_is_no_multiple_of_4_is_refused(size):
    with pytest.raises(ValueError, match=f"multiple of 4 pixels, not {size}"):
        Generator(image_size=size)


def test_the_second_enlargement_may_be_bilinear_with_the_same_weights():
    latents = torch.randn(3, 5, generator=torch.Generator().manual_seed(1))
    nearest, bilinear, both = (
        made(upsampling=modes)
        for modes in (("nearest", "nearest"), ("nearest", "bilinear"), ("bilinear", "bilinear"))
    )
    assert all(
        torch.equal(a, b) for a, b in zip(nearest.parameters(), bilinear.parameters(), strict=True)
    )
    images = [network.eval()(latents) for network in (nearest, bilinear, both)]
    assert torch.equal(images[0], made().eval()(latents))
    assert not torch.allclose(images[0], images[1])
    assert not torch.allclose(images[1], images[2])


def test_the_discriminator_has_one_logit_per_patch():
    assert PatchDiscriminator(width=4)(torch.rand(3, 3, 8, 32)).shape == (3, 2, 8)


def test_the_discriminator_of_pix2pix_scores_patches_of_70_pixels():
    # Strides 2, 2, 2, 1, 1 of 4 x 4 pixels: one score sees 4, 7, 16, 34 and at last 70 pixels.
    with torch.device("meta"):
        model = PairDiscriminator(2, 1, (224, 256))
        assert model(torch.empty(2, 3, 224, 256)).shape == (2, 26, 30)
        # 4 x 4 convolutions, a bias in the first and the last, BatchNorm between them
        layers = [(3, 64, 64), (64, 128, 256), (128, 256, 512), (256, 512, 1024), (512, 1, 1)]
        assert parameters(model) == sum(16 * before * after + b for before, after, b in layers)
    critic = PairDiscriminator(1, 0, (128, 128)).eval()
    image = torch.rand(1, 1, 128, 128, requires_grad=True)
    (gradient,) = torch.autograd.grad(critic(image)[0, 7, 7], image)
    seen = gradient[0, 0].nonzero()
    assert (seen.max(dim=0).values - seen.min(dim=0).values + 1).tolist() == [70, 70]


@pytest.mark.parametrize(
    ("layers", "side", "patches"), [(3, 32, 2), (3, 64, 6), (2, 16, 2), (1, 16, 6)]
)
def test_a_discriminator_of_pairs_sees_an_image_beside_its_condition(layers, side, patches):
    critic = PairDiscriminator(3, 2, (side, side), width=4, layers=layers)
    pairs = torch.rand(2, 5, side, side, requires_grad=True)
    scores = critic(pairs)
    assert scores.shape == (2, patches, patches)
    scores.square().sum().backward()
    assert (pairs.grad.abs().amax(dim=(0, 2, 3)) > 0).all()  # of the condition's channels too


def test_a_discriminator_of_pairs_refuses_images_that_leave_it_no_patch():
    with pytest.raises(ValueError, match="3 layers takes sides of 24 pixels and more, not 16 x 32"):
        PairDiscriminator(3, 2, (16, 32))
