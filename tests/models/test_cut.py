"""The cut between encoder and decoder is the same for every network, and a fixed encoder does not
move.
"""

import pytest
import torch
from torch import nn

from models.catalogue import build, feature_shape, networks
from models.cut import (
    Encoder,
    FixedEncoder,
    Translator,
    decoder_parameters,
    encode,
    load_encoder,
    pooled,
)
from models.entry import ModelError

SCORES = {name for name, entry in networks().items() if entry.makes == "scores"}

PAPER = ["resnet34", "resnet18", "vgg19", "wrn-16-2", "mobilenetv2"]
SMALL = sorted(SCORES - {*PAPER, "densenet121", "resnet8-wide", "resnet8-wide-gn"})
"""Networks that are trained here for real; the code of the others is theirs or timm's."""


def state(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def images(count=4, channels=3, side=8):
    return torch.randn(count, channels, side, side, generator=torch.Generator().manual_seed(0))


NETWORKS = sorted(SCORES - {"densenet121"})  # the code of densenet-small, and slow


@pytest.mark.parametrize("name", [*NETWORKS, "resnet10-slim+dense", "resnet-generator"])
def test_outputs_are_the_decoders_of_the_encoders_map(name):
    with torch.device("meta"):
        model = build(name, 1, 7, 16)
        features = model.forward_features(torch.empty(2, 1, 16, 16))
        assert features.ndim == 4
        assert features.shape == (2, *feature_shape(name, 1, 16))
        assert model.forward_head(features).shape == model(torch.empty(2, 1, 16, 16)).shape


@pytest.mark.parametrize("name", [*SMALL, "cnn-small+dense", "resnet-generator-narrow"])
def test_encoder_and_decoder_compute_what_the_network_does(name):
    model = build(name, 3, 5, 8).eval()
    assert torch.equal(model(images()), model.forward_head(encode(model, images())))


@pytest.mark.parametrize("name", [*NETWORKS, "resnet10-slim+dense", "resnet-generator"])
def test_the_decoders_parameters_are_those_of_which_the_map_has_no_gradient(name):
    with torch.device("meta"):
        model = build(name, 3, 7, 16)
        names, parameters = zip(*model.named_parameters(), strict=True)
        gradients = torch.autograd.grad(
            encode(model, images(side=16).to("meta")).sum(), parameters, allow_unused=True
        )
        unused = {name for name, gradient in zip(names, gradients, strict=True) if gradient is None}
        assert set(decoder_parameters(model)) == unused
        torch.autograd.grad(
            model(images(side=16).to("meta")).sum(), parameters
        )  # raises if one is never used


def test_looking_for_the_decoder_leaves_the_network_as_it_is():
    model = build("resnet8-narrow", 3, 10, 8).train()
    model.bn.eval()
    before = state(model)
    parameters = decoder_parameters(model)
    assert parameters["head.weight"] is model.head.weight
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert [module for module in model.modules() if not module.training] == [model.bn]
    assert not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("name", [*SMALL, "resnet8-narrow+dense", "vgg11-slim+dense"])
def test_a_fixed_encoder_is_the_same_to_the_bit_after_training(name):
    torch.manual_seed(0)
    model = build(name, 3, 4, 8)
    decoder = decoder_parameters(model)
    before = state(model)
    fixed = FixedEncoder(model)
    optimizer = torch.optim.Adam(fixed.parameters(), lr=0.1)
    for _ in range(3):
        fixed.train()
        loss = fixed(images()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    changed = {
        name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])
    }
    assert set(decoder) <= changed
    owners = {name.rpartition(".")[0] for name in decoder}
    assert {
        name.rpartition(".")[0] for name in changed
    } == owners  # beside them only statistics of the decoder's BatchNorms
    assert all(
        parameter.grad is None
        for name, parameter in model.named_parameters()
        if name not in decoder
    )


def test_a_fixed_encoder_offers_the_decoders_parameters_alone():
    model = build("cnn-small", 3, 4, 8)
    fixed = FixedEncoder(model)
    assert [id(p) for p in fixed.parameters()] == [
        id(p) for p in decoder_parameters(model).values()
    ]
    assert [name for name, _ in fixed.named_parameters()] == [
        f"model.{name}" for name in decoder_parameters(model)
    ]
    assert [
        name for name, _ in nn.ModuleList([fixed]).named_parameters("x")
    ]  # as a part of something larger, all are seen


def test_a_fixed_encoder_evaluates_as_the_network_does():
    model = build("wrn-10-1", 3, 4, 8).eval()
    fixed = FixedEncoder(model)
    assert not fixed.training
    assert torch.equal(fixed(images()), model(images()))


def test_dropout_of_the_decoder_stays_on_in_training():
    class WithDropout(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.noise, self.drop, self.head = (
                nn.Conv2d(3, 4, 3),
                nn.Dropout(),
                nn.Dropout(),
                nn.Linear(4, 2),
            )

        def forward_features(self, images):
            return self.noise(self.encoder(images))

        def forward_head(self, features):
            return self.head(self.drop(features.mean(dim=(2, 3))))

    model = WithDropout()
    FixedEncoder(model).train()
    assert (model.noise.training, model.drop.training) == (False, True)


@pytest.mark.parametrize("name", [*SMALL, "resnet8-narrow+dense"])
def test_the_map_has_a_gradient_with_respect_to_every_image(name):
    model = build(name, 3, 4, 16).eval()
    inputs = images(side=16).requires_grad_()
    (gradient,) = torch.autograd.grad(encode(model, inputs).sum(), inputs)
    assert gradient.shape == inputs.shape
    assert gradient.isfinite().all()
    assert (gradient.abs().amax(dim=(1, 2, 3)) > 0).all()


@pytest.mark.parametrize("student", PAPER)
@pytest.mark.parametrize("teacher", PAPER)
def test_a_translated_map_has_the_shape_of_the_teachers(student, teacher):
    from_shape, to_shape = feature_shape(student, 3, 32), feature_shape(teacher, 3, 32)
    with torch.device("meta"):
        translated = Translator(from_shape[0], to_shape[0])(torch.empty(2, *from_shape))
        assert translated.shape == (2, to_shape[0], *from_shape[1:])
        side = min(from_shape[1:], to_shape[1:])
        assert (
            pooled(translated, side).shape
            == pooled(torch.empty(2, *to_shape), side).shape
            == (2, to_shape[0], *side)
        )


def test_a_translator_is_three_convolutions_of_1_x_1():
    translator = Translator(3, 5)
    convolutions = [module for module in translator.modules() if isinstance(module, nn.Conv2d)]
    assert [tuple(conv.weight.shape) for conv in convolutions] == [
        (3, 3, 1, 1),
        (5, 3, 1, 1),
        (5, 5, 1, 1),
    ]
    # weights of the convolutions, and a scale and a shift for each of their channels
    assert sum(p.numel() for p in translator.parameters()) == 9 + 15 + 25 + 2 * (3 + 5 + 5)


def test_a_translator_by_hand():
    # A negative value goes through three LeakyReLUs of slope 0.1; BatchNorm as new divides by
    # sqrt(1 + 1e-5).
    translator = Translator(1, 1).eval()
    for module in translator.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.ones_(module.weight)
    outputs = translator(torch.tensor([2.0, -2.0]).view(1, 1, 1, 2)).flatten()
    torch.testing.assert_close(outputs, torch.tensor([2.0, -0.002]), atol=1e-6, rtol=1e-4)


def test_a_larger_map_is_averaged():
    large = torch.arange(16.0).view(1, 1, 4, 4)
    assert pooled(large, (2, 2)).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert pooled(large, (4, 2)).shape == (1, 1, 4, 2)


def test_a_map_of_the_right_sides_is_returned_as_it_is():
    features = torch.zeros(1, 3, 2, 2)
    assert pooled(features, (2, 2)) is features


@pytest.mark.parametrize(
    ("to", "source"),
    [("wrn-10-1", "wrn-10-1+dense"), ("wrn-10-1+dense", "wrn-10-1"), ("cnn", "cnn")],
)
def test_an_encoder_is_taken_over_and_the_decoder_stays(to, source):
    model, other = build(to, 3, 4, 8), build(source, 3, 7, 8)
    other(images())  # statistics of BatchNorm that are not those of a new network
    before = {
        name: parameter.detach().clone() for name, parameter in decoder_parameters(model).items()
    }
    load_encoder(model, other)
    assert torch.equal(encode(model.eval(), images()), encode(other.eval(), images()))
    assert all(
        torch.equal(parameter, before[name])
        for name, parameter in decoder_parameters(model).items()
    )


def test_an_encoder_of_another_network_is_refused():
    with pytest.raises(ValueError, match="the networks' encoders differ"):
        load_encoder(build("cnn", 3, 4, 8), build("cnn-small", 3, 4, 8))


@pytest.mark.parametrize("name", ["unet-narrow", "unet-64-bn", "segresnet-half-3d"])
@pytest.mark.parametrize(
    "use", [decoder_parameters, FixedEncoder, lambda model: Encoder(model)(images())]
)
def test_a_network_whose_levels_are_joined_says_that_it_is_not_cut(name, use):
    with torch.device("meta"):
        model = build(name, 3, 4, 32)
    with pytest.raises(
        ModelError, match=r"^a \w+ is not cut into encoder and decoder, .*; use .* \+dense$"
    ):
        use(model)


def test_no_shape_is_known_of_a_map_that_there_is_not():
    with pytest.raises(ModelError, match="a UNet is not cut into encoder and decoder"):
        feature_shape("unet", 3, 32)


def test_the_map_of_an_image_of_two_sides():
    assert feature_shape("wrn-16-2", 3, (32, 48)) == (128, 8, 12)
