"""Taskonomy's encoder: the released layout, and weights that are checked before they are used."""

import pytest
import torch

from models.catalogue import build
from models.networks import taskonomy
from models.networks.taskonomy import ENCODERS, Bottleneck, TaskonomyResNet50, load_taskonomy
from models.weight_files import WeightFile
from results.files import DataError, file_digest


@pytest.fixture(scope="module")
def released():
    """The encoder's tensors as the authors' file has them: without a head, and without BatchNorm's
    counters.
    """
    torch.manual_seed(0)
    state = TaskonomyResNet50(3, 10, (256, 256)).state_dict()
    return {
        n: t
        for n, t in state.items()
        if not n.startswith("head.") and not n.endswith("num_batches_tracked")
    }


@pytest.fixture
def install(monkeypatch):
    """Puts content where the suite looks for the encoder of normals; the file goes when the test
    ends.
    """
    paths = []

    def put(content):
        path = ENCODERS["normal"].path
        path.parent.mkdir(parents=True)
        torch.save(content, path)
        paths.append(path)
        monkeypatch.setitem(
            ENCODERS, "normal", WeightFile(path.name, "https://example.invalid", file_digest(path))
        )

    yield put
    for path in paths:
        path.unlink()  # 100 MB, which pytest would keep


@pytest.mark.parametrize(("side", "left"), [(256, 16), (64, 4), (32, 2), (8, 1)])
def test_the_map_has_eight_channels_and_a_sixteenth_of_the_side(side, left):
    with torch.device("meta"):
        model = TaskonomyResNet50(3, 7, (side, side))
        features = model.forward_features(torch.empty(2, 3, side, side))
        assert features.shape == (2, 8, left, left)
        assert model.forward_head(features).shape == (2, 7)


def test_the_tensors_are_those_of_the_release(released):
    # Of a ResNet-50 without its linear layer 265: 53 convolutions, 53 BatchNorms of four; and of
    # the convolution to 8 channels 5.
    assert len(released) == 53 + 53 * 4 + 5
    shapes = {name: tuple(released[name].shape) for name in released}
    assert shapes["conv1.weight"] == (64, 3, 7, 7)
    assert shapes["layer1.0.downsample.0.weight"] == (256, 64, 1, 1)
    assert shapes["layer2.3.conv2.weight"] == (128, 128, 3, 3)
    assert shapes["layer4.0.downsample.1.running_var"] == (2048,)
    assert shapes["compress1.weight"] == (8, 2048, 3, 3)
    assert (
        "layer1.2.downsample.0.weight" not in shapes
    )  # the last block of a stage leaves pixels out, without a convolution


def test_the_encoder_is_a_resnet_50_and_a_convolution_to_eight_channels(released):
    trained = sum(t.numel() for n, t in released.items() if "running" not in n)
    assert (
        trained == 25_557_032 - 2_049_000 + 9 * 2048 * 8 + 2 * 8
    )  # torchvision's number, without its linear layer


def test_the_stride_is_in_the_last_block_of_the_first_two_stages():
    model = TaskonomyResNet50(3, 10, (32, 32))
    strided = [
        name
        for name, module in model.named_modules()
        if isinstance(module, Bottleneck) and module.conv2.stride == (2, 2)
    ]
    assert strided == ["layer1.2", "layer2.3"]


def test_a_blocks_shortcut_leaves_out_every_other_pixel():
    block = Bottleneck(8, 2, stride=2).eval()
    torch.nn.init.zeros_(block.bn3.weight)
    inputs = torch.rand(1, 8, 4, 4)
    assert torch.equal(block(inputs), inputs[:, :, ::2, ::2])


def test_a_released_encoder_is_loaded_and_the_head_stays(install, released):
    install({"epoch": 3, "state_dict": released})
    model = build("taskonomy-resnet50", 3, 10, 64)
    head = model.head.weight.clone()
    load_taskonomy(model, "normal")
    assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in released.items())
    assert torch.equal(model.head.weight, head)


def test_a_released_encoder_is_loaded_into_a_network_with_outputs_for_every_pixel(
    install, released
):
    install({"state_dict": released})
    model = build("taskonomy-resnet50+dense", 3, 2, 64)
    load_taskonomy(model.encoder, "normal")
    assert torch.equal(model.encoder.compress1.weight, released["compress1.weight"])


def test_absent_weights_are_refused_naming_file_and_address():
    with pytest.raises(
        DataError,
        match=(
            r"segment_semantic_encoder-bb30072.*absent\. Download"
            r" https://github\.com/alexsax/visual-prior"
        ),
    ):
        load_taskonomy(TaskonomyResNet50(3, 10, (32, 32)), "segment_semantic")


def test_weights_of_another_network_are_refused(install, released):
    install(
        {
            "state_dict": {
                name: tensor
                for name, tensor in released.items()
                if not name.startswith("compress_bn.")
            }
        }
    )
    with pytest.raises(DataError, match=r"does not fit Taskonomy's encoder: compress_bn\.weight"):
        load_taskonomy(TaskonomyResNet50(3, 10, (32, 32)), "normal")


def test_weights_that_the_encoder_has_no_place_for_are_refused(install, released):
    install({"state_dict": {**released, "decoder.weight": torch.ones(1)}})
    with pytest.raises(DataError, match=r"does not fit Taskonomy's encoder: decoder\.weight"):
        load_taskonomy(TaskonomyResNet50(3, 10, (32, 32)), "normal")


def test_a_file_without_a_state_is_refused(install):
    install({"conv1.weight": torch.ones(1)})
    with pytest.raises(DataError, match="has no weights under 'state_dict'"):
        load_taskonomy(TaskonomyResNet50(3, 10, (32, 32)), "normal")


def test_an_unknown_task_is_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match=r"no encoder of 'depth'; known: autoencoding, .*depth_zbuffer"
    ):
        load_taskonomy(TaskonomyResNet50(3, 10, (32, 32)), "depth")


def test_there_is_an_encoder_of_each_of_the_papers_25_tasks():
    assert len(ENCODERS) == 25
    assert all(len(file.sha256_head) == 64 for file in ENCODERS.values())
    assert len({file.sha256_head for file in taskonomy.ENCODERS.values()}) == 25
