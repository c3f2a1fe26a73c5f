"""The lowest map of a U-Net, pooled by hand."""

import pytest
import torch
from torch import nn

from models.catalogue import build
from models.entry import ModelError
from models.latent import Latent, bottom_of, pooled, when_passed


def unet(name="unet-8-in"):
    torch.manual_seed(0)
    return build(name, 1, 1, 64).eval()


def images(count=2):
    return torch.rand(count, 1, 64, 64, generator=torch.Generator().manual_seed(0))


def test_maps_are_pooled_by_quarters_and_flat():
    maps = torch.arange(32.0).view(1, 2, 4, 4)
    # Rows 0 1 2 3 / 4 5 6 7 / ...: a quarter's mean is that of its corners, (0 + 1 + 4 + 5) / 4.
    quarters = [2.5, 4.5, 10.5, 12.5]
    assert pooled(maps, 2).tolist() == [[*quarters, *(16 + value for value in quarters)]]
    assert pooled(maps, 1).tolist() == [[7.5, 23.5]]
    assert torch.equal(pooled(maps, 4), maps.flatten(1))


def test_what_is_left_over_of_a_side_does_not_count():
    maps = torch.arange(20.0).view(1, 1, 4, 5)
    assert pooled(maps, 2).tolist() == [[3.0, 5.0, 13.0, 15.0]]


@pytest.mark.parametrize("name", ["unet-8-in", "unet-8-in-nonlocal"])
def test_it_is_what_enters_the_bottom(name):
    model, seen = unet(name), []
    handle = when_passed(model, seen.append)
    model(images())
    handle.remove()
    [lowest] = seen
    assert lowest.shape == (2, 8 * 16, 4, 4)
    latent = Latent(model, 2)
    assert torch.equal(latent(images()), pooled(lowest, 2))
    latent(images())
    assert len(seen) == 1  # the handle is removed
    assert not bottom_of(model)._forward_pre_hooks


def test_gradients_reach_the_encoder_alone():
    model = unet()
    Latent(model, 2)(images()).square().sum().backward()
    assert model.down[0][0][0].weight.grad.abs().sum() > 0
    assert model.head.weight.grad is None


@pytest.mark.parametrize("training", [True, False])
def test_it_is_in_the_mode_of_its_network(training):
    assert Latent(unet().train(training), 2).training == training


@pytest.mark.parametrize("model", [nn.Linear(1, 1), build("cnn-small", 1, 3, 8)])
def test_a_network_without_a_lowest_map_is_refused(model):
    with pytest.raises(ModelError, match=r"no lowest map in the middle.*use a U-Net such as unet"):
        bottom_of(model)
