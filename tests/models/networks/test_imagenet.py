"""Networks from timm: strides, poolings and heads for small images, and ImageNet weights."""

import itertools

import pytest
import timm
import torch
from torch import nn

from fedtables.models.catalogue import build
from fedtables.models.networks import imagenet
from fedtables.models.networks.imagenet import DepthwiseConv2d, load_imagenet, poolings_that_fit
from fedtables.models.weight_files import WeightFile
from fedtables.results.files import DataError, file_digest


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a state dict where the suite looks for a network's ImageNet weights."""

    def put(network, state):
        monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
        path = imagenet.IMAGENET[network].path
        path.parent.mkdir(exist_ok=True)
        torch.save(state, path)
        file = WeightFile(path.name, "https://example.invalid", file_digest(path)[:8])
        monkeypatch.setitem(imagenet.IMAGENET, network, file)

    return put


@pytest.fixture(scope="module")
def official():
    """A ResNet-18 as torchvision saves it: 1000 classes, three channels."""
    torch.manual_seed(0)
    return timm.create_model("resnet18").state_dict()


@pytest.mark.parametrize("classes", [10, 1000])
def test_everything_but_the_head_is_loaded(install, official, classes):
    install("resnet18", official)
    model = build("resnet18", 3, classes, 32)
    head = model.fc.weight.clone()
    load_imagenet(model, "resnet18")
    loaded = model.state_dict()
    own = [name for name in official if not name.startswith("fc.")]
    assert all(torch.equal(loaded[name], official[name]) for name in own)
    assert torch.equal(model.fc.weight, head)


def test_a_grey_image_gives_what_three_equal_channels_would(install, official):
    install("resnet18", official)
    grey, colour = (build("resnet18", channels, 10, 28).eval() for channels in (1, 3))
    load_imagenet(grey, "resnet18")
    load_imagenet(colour, "resnet18")
    image = torch.rand(1, 1, 28, 28)
    with torch.no_grad():
        same = colour.forward_features(image.expand(1, 3, 28, 28))
        torch.testing.assert_close(grey.forward_features(image), same)


def test_densenet_weights_load_under_torchvisions_old_names(install):
    torch.manual_seed(1)
    state = timm.create_model("densenet121").state_dict()
    old = {
        name.replace(".norm1.", ".norm.1.").replace(".conv1.", ".conv.1."): value
        for name, value in state.items()
    }
    assert set(old) != set(state)
    install("densenet121", old)
    model = build("densenet121", 3, 10, 32)
    load_imagenet(model, "densenet121")
    name = "features.denseblock1.denselayer1.conv1.weight"
    assert torch.equal(model.state_dict()[name], state[name])


def test_weights_of_another_network_are_refused(install, official):
    install("resnet18", {n: t for n, t in official.items() if not n.startswith("layer3.")})
    with pytest.raises(DataError, match=r"do not fit resnet18: layer3\.0\.conv1\.weight"):
        load_imagenet(build("resnet18", 3, 10, 32), "resnet18")


@pytest.mark.parametrize(
    ("network", "side", "shape"),
    [
        # without stride or pooling in the stem below 64 pixels
        *[
            (n, *case)
            for n in ("resnet18", "resnet34")
            for case in ((63, (512, 8)), (64, (512, 2)))
        ],
        ("densenet121", 32, (1024, 4)),
        ("densenet121", 224, (1024, 7)),
        # halved two times less
        *[("mobilenetv2", side, (1280, left)) for side, left in ((8, 1), (32, 4), (64, 2))],
        *[("mobilenetv2-slim", side, (128, left)) for side, left in ((8, 1), (32, 4), (64, 2))],
        # pooled as long as two pixels are left
        *[("vgg19", side, (512, left)) for side, left in ((8, 2), (28, 3), (32, 2), (224, 7))],
    ],
)
def test_small_images_keep_a_larger_map(network, side, shape):
    channels, left = shape
    with torch.device("meta"):
        features = build(network, 3, 10, side).forward_features(torch.empty(2, 3, side, side))
    assert features.shape == (2, channels, left, left)


def parameters(network, classes, side):
    with torch.device("meta"):
        return sum(p.numel() for p in build(network, 3, classes, side).parameters())


def test_sizes_are_the_published_ones():
    assert parameters("mobilenetv2", 1000, 32) == 3_504_872  # as torchvision states them
    assert parameters("vgg19", 1000, 224) == 143_678_248


def test_the_slim_mobilenet_has_a_quarter_of_the_channels_and_half_of_the_blocks():
    model = build("mobilenetv2-slim", 3, 10, 16)
    assert [len(stage) for stage in model.blocks] == [1, 1, 2, 2, 2, 2, 1]
    assert model.conv_head.in_channels == 80  # 320 / 4
    assert sum(p.numel() for p in model.parameters()) == 102_186
    assert any(isinstance(m, nn.ReLU6) for m in model.modules())


def test_depthwise_convolutions_alone_stay_in_float32_under_autocast():
    model = build("mobilenetv2-slim", 3, 10, 16)
    types: dict[bool, set[torch.dtype]] = {True: set(), False: set()}
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            depthwise = module.groups > 1
            assert isinstance(module, DepthwiseConv2d) == depthwise
            module.register_forward_hook(
                lambda _, __, outputs, depthwise=depthwise: types[depthwise].add(outputs.dtype)
            )
    with torch.autocast("cpu", torch.bfloat16):
        model(torch.randn(2, 3, 16, 16)).float().sum().backward()
    assert types == {True: {torch.float32}, False: {torch.bfloat16}}


def test_poolings_alone_are_left_out():
    layers = poolings_that_fit([1, 2, "M", 3, "M", 4, "M", 5, "M"], (8, 8))
    assert layers == [1, 2, "M", 3, "M", 4, 5]


def test_the_vgg_of_a_small_image_needs_one_linear_layer():
    # Of vgg19's 16 convolutions, by input and output channels, with biases and two parameters of
    # BatchNorm per channel.
    widths = [3, 64, 64, 128, 128, *[256] * 4, *[512] * 8]
    pairs = itertools.pairwise(widths)
    convolutions = sum(9 * before * after + 3 * after for before, after in pairs)
    assert parameters("vgg19", 10, 32) == convolutions + 512 * 10 + 10
