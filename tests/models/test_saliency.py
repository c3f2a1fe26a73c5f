"""Saliency of networks small enough to differentiate by hand."""

import pytest
import torch
from torch import nn

from fedtables.models.catalogue import build
from fedtables.models.cut import encode
from fedtables.models.saliency import (
    Attentive,
    apart,
    class_attention,
    grad_cam,
    input_gradient,
    unit_scaled,
)


class Linear(nn.Module):
    """An encoder of 1 x 1 convolutions, and a decoder that weighs the means of its channels."""

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = nn.Parameter(torch.tensor(encoder)[:, :, None, None])
        self.decoder = nn.Parameter(torch.tensor(decoder))

    def forward_features(self, images):
        return nn.functional.conv2d(images, self.encoder)

    def forward_head(self, features):
        return features.mean(dim=(2, 3)) @ self.decoder.T


class PerPixel(Linear):
    """The same with scores for every pixel."""

    def forward_head(self, features):
        return nn.functional.conv2d(features, self.decoder[:, :, None, None])


def images(count=2, channels=2, side=2):
    return torch.randn(count, channels, side, side, generator=torch.Generator().manual_seed(0))


# -- the gradient with respect to the input --


def test_the_gradient_of_a_linear_encoder_is_the_magnitude_of_its_weights_over_channels():
    model = Linear([[1.0, -2.0], [0.5, -3.0], [2.0, 1.0]], [[1.0, 1.0, 1.0]])
    found = input_gradient(model, images(count=3))
    assert found.shape == (3, 2, 2, 2)
    assert found[:, 0].unique().tolist() == [3.5]
    assert found[:, 1].unique().tolist() == [4.0]  # |-2 - 3 + 1|


# -- Grad-CAM --


def test_evidence_against_the_class_counts_as_none():
    model = Linear([[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0]])
    found = grad_cam(model, torch.tensor([[4.0, 0.0, 2.0], [0.0, 8.0, 1.0]])[None, :, None, :])
    torch.testing.assert_close(found, torch.tensor([[[1.0, 0.0, 0.25]]]))  # 4, -8 and 1


def test_a_map_without_positive_evidence_is_empty_and_a_number():
    model = Linear([[1.0, 0.0], [0.0, 1.0]], [[-1.0, -1.0], [-3.0, -1.0]])
    assert grad_cam(model, images().abs()).tolist() == torch.zeros(2, 2, 2).tolist()


def test_a_class_of_pixels_scores_their_mean():
    encoder, decoder = [[1.0, 0.0], [0.0, 1.0]], [[2.0, 2.0], [4.0, -2.0]]
    inputs = images(count=4)
    torch.testing.assert_close(
        grad_cam(PerPixel(encoder, decoder), inputs), grad_cam(Linear(encoder, decoder), inputs)
    )


# -- attention of every class --


class Decoder(nn.Module):
    """Only a decoder: two hidden units that see the means of two channels, squared, and three
    classes that weigh the units.
    """

    def __init__(self):
        super().__init__()
        self.hidden = nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
        self.head = nn.Parameter(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]))

    def forward_features(self, images):
        return images

    def forward_head(self, features):
        return (features.mean(dim=(2, 3)) @ self.hidden.T).square() @ self.head.T


def one_by_one(model, features, create_graph=False):
    """The same attention with a backward pass for every class of every image."""
    rows = []
    for feature in features:
        row = []
        for score in range(model.forward_head(feature[None]).shape[1]):
            own = feature[None].detach().requires_grad_()
            (gradient,) = torch.autograd.grad(model.forward_head(own)[0, score], own)
            cam = sum(gradient[0, j].mean() * feature[j] for j in range(len(feature))).clamp(min=0)
            row.append(cam / cam.max() if cam.max() > 0 else cam)
        rows.append(torch.stack(row))
    return torch.stack(rows)


@pytest.mark.parametrize("name", ["resnet8-wide", "cnn-small", "vgg11-slim"])
def test_all_classes_in_one_pass_are_what_each_is_alone(name):
    model = build(name, 1, 4, 16).eval()
    features = encode(model, images(count=3, channels=1, side=16)).detach()
    outputs, maps = class_attention(model, features, create_graph=False)
    torch.testing.assert_close(outputs, model.forward_head(features))
    torch.testing.assert_close(maps, one_by_one(model, features), atol=1e-5, rtol=1e-4)


def test_behind_a_hidden_layer_channels_weigh_by_what_the_image_makes_of_it():
    features = torch.tensor([[[3.0, 1.0]], [[0.0, 2.0]]])[None]
    outputs, maps = class_attention(Decoder(), features, create_graph=False)
    # Means 2 and 1; units 4 and 5; d 16 = 2 * 4 * (1, 2), d 25 = 2 * 5 * (3, -1), and their
    # difference (-22, 26).
    assert outputs.tolist() == [[16.0, 25.0, -9.0]]
    torch.testing.assert_close(
        maps, torch.tensor([[[[24 / 40, 1.0]], [[1.0, 10 / 90]], [[0.0, 1.0]]]])
    )


@pytest.mark.parametrize("create_graph", [True, False])
def test_the_gradient_is_that_of_finite_differences_if_it_may_go_through_the_weights(create_graph):
    model = Decoder().double()
    features = torch.tensor(
        [[[[3.0, 1.0]], [[0.5, 2.0]]], [[[1.0, 2.0]], [[4.0, 0.5]]]], dtype=torch.float64
    )

    def maps(features, hidden):
        return torch.func.functional_call(
            Wrapped(model, create_graph), {"model.hidden": hidden}, (features,)
        )

    inputs = (features.requires_grad_(), model.hidden.detach().clone().requires_grad_())
    whole = torch.autograd.gradcheck(maps, inputs, raise_exception=create_graph)
    assert whole == create_graph


class Wrapped(nn.Module):
    """The maps of class_attention as a module's outputs."""

    def __init__(self, model, create_graph):
        super().__init__()
        self.model, self.create_graph = model, create_graph

    def forward(self, features):
        return class_attention(self.model, features, create_graph=self.create_graph)[1]


def test_a_map_without_evidence_is_zero_and_so_is_its_gradient():
    model = Linear([[1.0, 0.0], [0.0, 1.0]], [[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]])
    features = images().abs().requires_grad_()
    _, maps = class_attention(model, features, create_graph=True)
    assert maps[:, :2].tolist() == torch.zeros(2, 2, 2, 2).tolist()
    assert maps[:, 2].flatten(1).amax(dim=1).tolist() == [1.0, 1.0]
    found = torch.autograd.grad(
        (maps * torch.rand(2, 3, 2, 2))[:, :2].sum(), [features, model.decoder]
    )
    assert all((gradient == 0).all() for gradient in found)


@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
def test_where_gradients_are_off_the_attention_is_the_same_and_has_none(without):
    model, inputs = build("cnn-small", 1, 3, 8), images(channels=1, side=8)
    expected = class_attention(model, encode(model, inputs), create_graph=True)
    with without():
        found = class_attention(model, encode(model, inputs), create_graph=False)
    for own, same in zip(found, expected, strict=True):
        assert not own.requires_grad
        torch.testing.assert_close(own, same.detach())
    assert all(p.grad is None for p in model.parameters())


def test_under_autocast_the_attention_is_in_full_precision():
    model = build("cnn-small", 1, 3, 8)
    features = encode(model, images(channels=1, side=8)).detach()
    expected = class_attention(model, features, create_graph=False)
    with torch.autocast("cpu", torch.bfloat16):
        found = class_attention(model, features, create_graph=False)
    assert all(torch.equal(own, same) for own, same in zip(found, expected, strict=True))


def test_scores_of_pixels_are_refused():
    model = PerPixel([[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0]])
    with pytest.raises(ValueError, match="every pixel has scores"):
        class_attention(model, images(), create_graph=False)


def test_a_student_gives_both_while_it_trains_and_outputs_alone_when_it_is_measured():
    model, inputs = build("cnn-small", 1, 3, 8).eval(), images(count=230, channels=1, side=8)
    attentive = Attentive(model)
    torch.testing.assert_close(attentive(inputs), model(inputs))
    expected = class_attention(model, encode(model, inputs), create_graph=False)
    for both in (attentive.train()(inputs), Attentive(model.eval(), always=True)(inputs)):
        for own, same in zip(apart(both, 3, (2, 2)), expected, strict=True):
            torch.testing.assert_close(own, same, atol=1e-5, rtol=1e-4)


# -- both --


@pytest.mark.parametrize("saliency", [input_gradient, grad_cam])
@pytest.mark.parametrize("training", [True, False])
def test_a_network_is_looked_at_in_evaluation_mode_and_left_as_it_was(saliency, training):
    inputs, model = (
        images(count=6, channels=3, side=8),
        build("resnet8-narrow", 3, 4, 8).train(training),
    )
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    together = saliency(model, inputs)
    assert model.training == training
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert not inputs.requires_grad
    assert not together.requires_grad
    torch.testing.assert_close(
        torch.cat([saliency(model, part) for part in inputs.split(2)]), together
    )  # as BatchNorm would not


def test_rows_are_scaled_by_their_own_least_and_greatest():
    rows = torch.tensor([[2.0, 4.0, 3.0], [-1.0, -1.0, 0.0]])
    assert unit_scaled(rows).tolist() == [[0.0, 1.0, 0.5], [0.0, 0.0, 1.0]]
    assert unit_scaled(rows[0].double()).tolist() == [0.0, 1.0, 0.5]


def test_held_fixed_the_weights_pass_no_gradient_to_the_decoder_and_the_map_still_passes_its_own():
    model, features = Decoder(), torch.tensor([[[[3.0, 1.0]], [[0.5, 2.0]]]], requires_grad=True)
    _, maps = class_attention(model, features, create_graph=False)
    found = torch.autograd.grad(maps[0, 0, 0, 0], [features, model.hidden], allow_unused=True)
    # The first class's weights are to each other as 1 to 2: F_1 + 2 F_2 = 4 and 5, of which the
    # first is asked.
    torch.testing.assert_close(found[0], torch.tensor([[[[1 / 5, -4 / 25]], [[2 / 5, -8 / 25]]]]))
    assert found[1] is None
