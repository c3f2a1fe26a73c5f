"""The cut between encoder and decoder is the same for every network, and a fixed encoder does not
move.
"""

import pytest
import torch
from torch import nn

from fedtables.models.catalogue import build, feature_shape, networks
from fedtables.models.cut import (
    Encoder,
    FixedEncoder,
    Latent,
    Translator,
    bottom_of,
    decoder_parameters,
    encode,
    flat_pooled,
    load_encoder,
    pooled,
    when_passed,
)
from fedtables.models.entry import ModelError

SCORES = {name for name, entry in networks().items() if entry.makes == "scores"}

PAPER = ["resnet34", "resnet18", "vgg19", "wrn-16-2", "mobilenetv2"]
SMALL = sorted(SCORES - {*PAPER, "densenet121", "resnet8-wide", "resnet8-wide-gn"})
"""Networks that are trained here for real; the code of the others is theirs or timm's."""


def state(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def images(count=4, channels=3, side=8):
    return torch.randn(count, channels, side, side, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", [*SMALL, "resnet18", "resnet10-slim+dense", "resnet-generator"])
def test_outputs_are_the_decoders_of_the_encoders_map(name):
    with torch.device("meta"):
        model, inputs = build(name, 3, 7, 16), torch.empty(2, 3, 16, 16)
        features, outputs = encode(model, inputs), model(inputs)
        assert features.shape == (2, *feature_shape(name, 3, 16))
        assert model.forward_head(features).shape == outputs.shape
        # Of the decoder's parameters the map has no gradient; outputs have one of all.
        names, parameters = zip(*model.named_parameters(), strict=True)
        gradients = torch.autograd.grad(features.sum(), parameters, allow_unused=True)
        unused = {name for name, gradient in zip(names, gradients, strict=True) if gradient is None}
        assert set(decoder_parameters(model)) == unused
        torch.autograd.grad(outputs.sum(), parameters)


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
    after = model.state_dict()
    changed = {name for name in before if not torch.equal(after[name], before[name])}
    assert set(decoder) <= changed
    # beside them only statistics of the decoder's BatchNorms
    owners = [{name.rpartition(".")[0] for name in names} for names in (changed, decoder)]
    assert owners[0] == owners[1]
    assert all(p.grad is None for name, p in model.named_parameters() if name not in decoder)


def test_a_fixed_encoder_offers_the_decoders_parameters_alone():
    model = build("cnn-small", 3, 4, 8)
    fixed = FixedEncoder(model)
    decoder = {f"model.{name}": p for name, p in decoder_parameters(model).items()}
    assert [name for name, _ in fixed.named_parameters()] == [*decoder]
    assert all(a is b for a, b in zip(fixed.parameters(), decoder.values(), strict=True))


def test_dropout_of_the_decoder_stays_on_in_training():
    class WithDropout(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)
            self.noise, self.drop = nn.Dropout(), nn.Dropout()

        def forward_features(self, images):
            return self.noise(self.encoder(images))

        def forward_head(self, features):
            return self.head(self.drop(features.mean(dim=(2, 3))))

    model = WithDropout()
    FixedEncoder(model).train()
    assert (model.noise.training, model.drop.training) == (False, True)


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
    assert pooled(large, (4, 4)) is large
    assert pooled(large, (3, 3)).shape == (1, 1, 3, 3)


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


# -- the lowest map of a U-Net --


def unet(name="unet-8-in"):
    torch.manual_seed(0)
    return build(name, 1, 1, 64).eval()


def test_maps_are_pooled_by_quarters_and_flat_without_what_is_left_over():
    maps = torch.arange(32.0).view(1, 2, 4, 4)
    # Rows 0 1 2 3 / 4 5 6 7 / ...: a quarter's mean is that of its corners, (0 + 1 + 4 + 5) / 4.
    quarters = [2.5, 4.5, 10.5, 12.5]
    assert flat_pooled(maps, 2).tolist() == [[*quarters, *(16 + value for value in quarters)]]
    maps = torch.arange(20.0).view(1, 1, 4, 5)
    assert flat_pooled(maps, 2).tolist() == [[3.0, 5.0, 13.0, 15.0]]


@pytest.mark.parametrize("name", ["unet-8-in", "unet-8-in-nonlocal"])
def test_the_latent_is_what_enters_the_bottom(name):
    model, seen = unet(name), []
    inputs = images(2, channels=1, side=64)
    handle = when_passed(model, seen.append)
    model(inputs)
    handle.remove()
    [lowest] = seen
    assert lowest.shape == (2, 8 * 16, 4, 4)
    assert torch.equal(Latent(model, 2)(inputs), flat_pooled(lowest, 2))
    assert len(seen) == 1
    assert not bottom_of(model)._forward_pre_hooks


def test_a_network_without_a_lowest_map_is_refused():
    with pytest.raises(ModelError, match=r"no lowest map in the middle.*use a U-Net such as unet"):
        bottom_of(build("cnn-small", 1, 3, 8))


def test_gradients_of_the_latent_reach_the_encoder_alone():
    model = unet()
    Latent(model, 2)(images(2, channels=1, side=64)).square().sum().backward()
    assert model.down[0][0][0].weight.grad.abs().sum() > 0
    assert model.head.weight.grad is None
