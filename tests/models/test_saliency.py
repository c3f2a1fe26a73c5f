"""Saliency of networks small enough to differentiate by hand."""

import pytest
import torch
from torch import nn

from models.catalogue import build
from models.saliency import grad_cam, input_gradient, unit_scaled


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


# -- the gradient with respect to the input ---------------------------------------------------------------------------


def test_the_gradient_of_a_linear_encoder_is_the_magnitude_of_its_weights_summed_over_the_maps_channels():
    model = Linear([[1.0, -2.0], [0.5, -3.0], [2.0, 1.0]], [[1.0, 1.0, 1.0]])
    found = input_gradient(model, images(count=3))
    assert found.shape == (3, 2, 2, 2)
    assert found[:, 0].unique().tolist() == [3.5]
    assert found[:, 1].unique().tolist() == [4.0]  # |-2 - 3 + 1|


def test_each_image_has_a_map_of_its_own():
    class Squared(Linear):
        def forward_features(self, images):
            return super().forward_features(images).square()

    model, inputs = Squared([[1.0, 0.0], [0.0, 3.0]], [[1.0, 1.0]]), images()
    torch.testing.assert_close(input_gradient(model, inputs), (2 * inputs * torch.tensor([1.0, 9.0])[:, None, None]).abs())


def test_the_decoder_does_not_matter_to_the_gradient():
    inputs, model = images(channels=3, side=8), build("cnn-small", 3, 4, 8)
    before = input_gradient(model, inputs)
    nn.init.zeros_(model.head.weight)
    nn.init.ones_(model.features[7].weight)
    assert torch.equal(input_gradient(model, inputs), before)


# -- Grad-CAM ---------------------------------------------------------------------------------------------------------


def seen(first, second):
    """One image of 1 x 2 pixels with two channels."""
    return torch.tensor([first, second])[None, :, None, :]


def test_channels_are_weighed_by_the_gradient_of_the_highest_score():
    model = Linear([[1.0, 0.0], [0.0, 1.0]], [[2.0, 2.0], [4.0, -2.0]])
    # Means 3 and 1 score 8 and 10. The second class's gradient is (4, -2) / 2 at each pixel: 2 * 4 - 0 and 2 * 2 - 2.
    found = grad_cam(model, seen([4.0, 2.0], [0.0, 2.0]))
    assert found.tolist() == [[[1.0, 0.0]]]  # 8 and 2, scaled
    three = grad_cam(model, torch.tensor([[4.0, 2.0, 3.0], [0.0, 2.0, 1.0]])[None, :, None, :])
    torch.testing.assert_close(three, torch.tensor([[[1.0, 0.0, 0.5]]]))


def test_evidence_against_the_class_counts_as_none():
    model = Linear([[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0]])
    found = grad_cam(model, torch.tensor([[4.0, 0.0, 2.0], [0.0, 8.0, 1.0]])[None, :, None, :])
    torch.testing.assert_close(found, torch.tensor([[[1.0, 0.0, 0.25]]]))  # 4, -8 and 1


def test_a_map_without_positive_evidence_is_empty_and_a_number():
    model = Linear([[1.0, 0.0], [0.0, 1.0]], [[-1.0, -1.0], [-3.0, -1.0]])
    assert grad_cam(model, images().abs()).tolist() == torch.zeros(2, 2, 2).tolist()


def test_every_image_is_scaled_by_itself_and_has_a_class_of_its_own():
    model = Linear([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    both = torch.cat([seen([8.0, 4.0], [1.0, 2.0]), seen([0.0, 0.5], [3.0, 9.0])])
    assert grad_cam(model, both).tolist() == [[[1.0, 0.0]], [[0.0, 1.0]]]


def test_a_class_of_pixels_scores_their_mean():
    encoder, decoder = [[1.0, 0.0], [0.0, 1.0]], [[2.0, 2.0], [4.0, -2.0]]
    inputs = images(count=4)
    torch.testing.assert_close(grad_cam(PerPixel(encoder, decoder), inputs), grad_cam(Linear(encoder, decoder), inputs))


def test_maps_have_the_side_of_the_images():
    found = grad_cam(build("resnet8-narrow", 3, 4, 16), images(count=3, channels=3, side=16))
    assert found.shape == (3, 16, 16)
    assert 0 <= found.min() <= found.max() <= 1


# -- both -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("saliency", [input_gradient, grad_cam])
@pytest.mark.parametrize("training", [True, False])
def test_a_network_is_looked_at_in_evaluation_mode_and_left_as_it_was(saliency, training):
    inputs, model = images(count=6, channels=3, side=8), build("resnet8-narrow", 3, 4, 8).train(training)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    together = saliency(model, inputs)
    assert model.training == training
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert not inputs.requires_grad
    assert not together.requires_grad
    torch.testing.assert_close(torch.cat([saliency(model, part) for part in inputs.split(2)]), together)  # as BatchNorm would not


def test_rows_are_scaled_by_their_own_least_and_greatest():
    rows = torch.tensor([[2.0, 4.0, 3.0], [-1.0, -1.0, 0.0]])
    assert unit_scaled(rows).tolist() == [[0.0, 1.0, 0.5], [0.0, 0.0, 1.0]]
    assert unit_scaled(rows[0].double()).tolist() == [0.0, 1.0, 0.5]


def test_a_row_of_equal_values_becomes_zero():
    assert unit_scaled(torch.tensor([[0.3, 0.3], [0.0, 0.0]])).tolist() == [[0.0, 0.0], [0.0, 0.0]]
