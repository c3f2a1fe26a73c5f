"""A network that changes nothing: a floor for what maps images to images."""

import pytest
import torch

from models.catalogue import build
from models.networks.unchanged import Unchanged


def test_a_grey_image_is_its_own_reconstruction():
    image = torch.rand(2, 1, 5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Unchanged(1)(image), image)


def test_of_colours_every_output_is_the_mean():
    image = torch.tensor([0.25, 0.5, 0.75]).view(1, 3, 1, 1).expand(1, 3, 2, 2)
    made = Unchanged(2)(image)
    assert made.shape == (1, 2, 2, 2)
    assert made.unique().tolist() == [0.5]


def test_its_one_number_can_be_trained():
    model = build("unchanged", 1, 1, 4)
    assert [p.numel() for p in model.parameters()] == [1]
    model(torch.full((1, 1, 2, 2), 0.5)).sum().backward()
    assert model.gain.grad.item() == pytest.approx(4 * 0.5)
    with torch.no_grad():
        model.gain.fill_(2.0)
    assert model(torch.full((1, 1, 2, 2), 0.5)).unique().tolist() == [1.0]
