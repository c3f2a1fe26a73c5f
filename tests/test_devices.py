"""Every method on a CUDA device that is not there: what is left on the CPU is caught on a machine
without a GPU.

Where there is one, what cannot be seen without content: that a fit repeats itself to the last bit,
and goes on after a cut.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from baselines.standalone import Standalone
from benchmarks import contract
from benchmarks.running.execute import prepare_device
from benchmarks.scenarios.assembly import Run, build_federation
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.small import small_config, small_data
from benchmarks.tables import registry
from federation.blocks.remote import ask
from federation.caching import snapshots
from federation.caching.cache import StageCache
from federation.fitting import fit
from federation.method import Method
from federation.parties.client import Shard
from federation.parts.rounds import Rounds
from federation.parts.stacked import train_stacked
from federation.seeds import Seeds
from federation.tasks.classification import Classification
from federation.training.augmentation import Augmentation, augment
from federation.training.execution import DEFAULT
from federation.training.loops import Normalisation, TrainingPlan
from models.catalogue import build, networks
from privacy.plan import RELEASED
from tests.fakecuda import backward, fake_cuda, grad
from tests.methods.shards import same_bits

SMALLER = {
    "partition.kind": "dirichlet-fedkd",
    "partition.alpha": 10,
    "partition.clients": 2,
    "partition.pool_limit": 30,
    "partition.public_limit": 16,
    "partition.test_limit": 16,
    "local.epochs": 1,
    "server.epochs": 2,
}
AUGMENTED = {
    "augmentation.shift": 0.1,
    "augmentation.channel_shift": 0.1,
    "augmentation.horizontal_flip": True,
    "augmentation.crop": 1,
    "augmentation.cutout": 2,
}
"""Every augmentation, of two clients with one batch each; images of dense tasks have none."""

METHODS = sorted(registry.methods())

pytestmark = pytest.mark.skipif(
    not torch.backends.cuda.is_built(),
    reason=(
        "without CUDA's code in torch no CUDA tensor can be indexed, not even one without content"
    ),
)


class PowerCutError(Exception):
    """Not a bug."""


@pytest.fixture
def hasty(monkeypatch):
    """Every round leaves a snapshot."""
    monkeypatch.setattr(
        snapshots, "time", SimpleNamespace(monotonic=itertools.count(0, 1000).__next__)
    )


@pytest.fixture
def brief(monkeypatch, hasty):
    """The same, and loops of like steps run their first and their last."""

    def steps(loops, count, name=""):
        yield from sorted({0, count - 1})

    monkeypatch.setattr(Rounds, "steps", steps)


def variants(name):
    """The method as the contract runs it, with short loops; and, where it has such, with every
    switch the other way.
    """
    method = contract.contract_method(registry.find_method(name))
    names = [field.name for field in fields(method)]
    method = replace(
        method,
        **{n: 1 for n in names if n.endswith("epochs")},
        **{n: 2 for n in names if n == "rounds"},
    )
    yield method
    switches = {n: not getattr(method, n) for n in names if isinstance(getattr(method, n), bool)}
    if switches:
        yield replace(method, **switches)


def federation_on(device, method, folder=None, progress=lambda text, share: None, **changes):
    stages = StageCache(folder, device=device)
    config = {**small_config(type(method)), **SMALLER, **({} if method.dense else AUGMENTED)}
    return build_federation(
        Configuration.parse(config | changes),
        small_data(type(method)),
        type(method),
        Run(Seeds(), stages, device, progress=progress),
    )


def cut(text, share):
    """Stops a fit before its second round."""
    if text.startswith("round 2/"):
        raise PowerCutError


def follow(method, folder, **changes):
    """A fit on a CUDA device without content, cut off before its second round and taken up again:
    what is left of it.
    """
    with fake_cuda() as watch:
        with contextlib.suppress(PowerCutError):
            fit(federation_on("cuda:0", method, folder, cut, **changes), method)
        federation = federation_on("cuda:0", method, folder, **changes)
        checkpoints = fit(federation, method)
        for checkpoint in checkpoints:
            assert {tensor.device.type for tensor in checkpoint.state.values()} == {"cuda"}
            if checkpoint.network:
                federation.evaluation.test(federation.networks.module(checkpoint))
    return federation, watch


@pytest.mark.parametrize("name", METHODS)
def test_every_method_keeps_to_its_device(name, tmp_path, brief):
    for number, method in enumerate(variants(name)):
        follow(method, tmp_path / str(number))


OF_THE_AUTHORS = {
    "epochs": 2,
    "student_steps": 2,
    "weights": "size",
    "temperature": 10.0,
    "diversity": 1.0,
    "balance": 1.0,
    "optimizer": "sgd",
    "second_upsampling": "bilinear",
}


def test_fediods_other_terms_keep_to_their_device(tmp_path, brief):
    method, *_ = variants("fediod")
    follow(replace(method, **OF_THE_AUTHORS), tmp_path)


@pytest.mark.parametrize("name", ["asyndgan", "fedgen", "fedkd", "fediod", "fediod-segmentation"])
def test_what_crosses_is_what_crosses_in_a_true_run(name, tmp_path, brief):
    method, *_ = variants(name)
    with_buffers = {"network.cnn": "resnet8-narrow"}
    true = federation_on("cpu", method, **with_buffers)
    fit(true, method)
    followed, _ = follow(method, tmp_path, **with_buffers)
    assert followed.channel.ledger == true.channel.ledger


@pytest.mark.parametrize(
    "how",
    [
        Augmentation(rotation=5, horizontal_flip=True, cutout=2),
        Augmentation(horizontal_flip=True, crop=2),
    ],
)
def test_augmentation_keeps_to_its_device_and_never_waits_for_it(how):
    with fake_cuda() as watch:
        images = torch.ones(4, 3, 8, 8, device="cuda:0")
        assert (
            augment(images, how, torch.Generator("cuda:0"), mean=(0.5, 0.4, 0.3)).device
            == images.device
        )
    assert not watch.syncs


@pytest.mark.parametrize(
    "name", sorted({*networks()} - {"densenet121"})
)  # the code of densenet-small, and slow
def test_every_network_keeps_to_its_device(name):
    with fake_cuda() as watch:
        watch.seeded = True  # for dropout, as a run does
        outputs = build(name, 3, 10, 32).to("cuda:0")(
            torch.ones(2, 3, *[32] * networks()[name].dims, device="cuda:0")
        )
        assert outputs.device.type == "cuda"
        outputs.sum().backward()


def test_clients_that_train_together_keep_to_their_device():
    with fake_cuda():
        models = [
            build("resnet8-wide", 3, 10, 8).to("cuda:0", memory_format=torch.channels_last)
            for _ in range(3)
        ]
        shards = [
            Shard(
                torch.ones(n, 3, 8, 8, dtype=torch.uint8, device="cuda:0"),
                torch.zeros(n, dtype=torch.int64, device="cuda:0"),
            )
            for n in (8, 8, 4)
        ]
        train_stacked(
            models,
            shards,
            Classification(10).loss,
            TrainingPlan(epochs=1, batch_size=4),
            normalise=Normalisation((0.5,), (0.5,)),
            generators=[torch.Generator("cuda:0") for _ in models],
        )
        assert {entry.device.type for model in models for entry in model.state_dict().values()} == {
            "cuda"
        }


def test_a_resumed_optimiser_does_not_wait_for_the_device(tmp_path, brief):
    method, *_ = variants("fedgen")
    _, watch = follow(method, tmp_path)
    assert not [
        line
        for line in watch.syncs
        if line.startswith("baselines/fedgen.py") and line.endswith(" item")
    ]


def test_no_batch_of_training_waits_for_the_device():
    def syncs(batches):
        with fake_cuda() as watch:
            federation = federation_on("cuda:0", Standalone())
            images = federation.public.images[:16].repeat(batches, 1, 1, 1)
            targets = torch.zeros(len(images), dtype=torch.int64, device=federation.networks.device)
            model = federation.networks.initial()
            watch.syncs.clear()
            federation.train(model, images, targets, federation.task.loss, federation.local)
            return watch.syncs

    assert syncs(1) == syncs(3)


# -- methods that do not --


@dataclass(frozen=True)
class Mixer(Method):
    """Adds zeros from the CPU to what the clients say of the public images."""

    def fit(self, federation):
        outputs = [federation.public_outputs(model) for model in federation.local_models()]
        return federation.distill(sum(outputs, torch.zeros(10)))


@dataclass(frozen=True)
class Forgetful(Method):
    """Distils targets that are on the CPU."""

    def fit(self, federation):
        return federation.distill(torch.zeros(len(federation.public), 10))


@dataclass(frozen=True)
class Chooser(Method):
    """Picks public images by indices on the CPU, which a GPU would forgive and wait for."""

    def fit(self, federation):
        federation.public.images[torch.arange(3)]


@dataclass(frozen=True)
class Masker(Method):
    """Sets to zero what a mask on the CPU says."""

    def fit(self, federation):
        images = federation.public.images.clone()
        images[torch.ones(len(images), dtype=torch.bool)] = 0


@dataclass(frozen=True)
class Drawer(Method):
    """Draws numbers for the device from a generator on the CPU."""

    def fit(self, federation):
        torch.randn(
            3,
            device=federation.networks.device,
            generator=federation.streams.seeds.torch("shuffling", "own"),
        )


@dataclass(frozen=True)
class Homebody(Method):
    """Trains a layer that it did not move to the device."""

    def fit(self, federation):
        nn.Linear(64, 10)(federation.public.images.flatten(1).float())


@dataclass(frozen=True)
class Reader(Method):
    """Reads a tensor of the device as if it were the host's."""

    def fit(self, federation):
        return federation.label_counts().numpy()


@dataclass(frozen=True)
class Guarded(Method):
    """A client's guard adds noise from the CPU to the gradients that leave it: wrong in the
    backward pass alone.
    """

    def fit(self, federation):
        images = torch.ones(4, 64, device=federation.networks.device, requires_grad=True)
        (answer,) = ask(
            federation.channel,
            0,
            images,
            lambda x: {"logits": 2 * x},
            ["logits"],
            guard=lambda g: g + torch.randn(g.shape),
        )
        answer.sum().backward()


@dataclass(frozen=True)
class Dicer(Method):
    """Draws a layer's weights on the device."""

    def fit(self, federation):
        nn.Linear(64, 10, device=federation.networks.device)


@dataclass(frozen=True)
class Pooler(Method):
    """Learns through a layer whose gradient CUDA sums in any order."""

    def fit(self, federation):
        images = torch.ones(4, 3, 8, 8, device=federation.networks.device, requires_grad=True)
        nn.AdaptiveAvgPool2d(2)(images).sum().backward()


TWO_DEVICES = "(same device|two different devices).*cpu"
"""As torch says it, in one version or another."""


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Mixer, TWO_DEVICES),
        (Forgetful, "tensor on cpu is indexed with one on cuda"),
        (Chooser, "tensor on cuda:0 is indexed with one on cpu"),
        (Masker, "tensor on cuda:0 is indexed with one on cpu"),
        (Drawer, "cuda:0 is drawn from a generator on cpu"),
        (Homebody, TWO_DEVICES),
        (Reader, "content of a tensor on cuda:0 is read"),
        (Guarded, TWO_DEVICES),
        (Dicer, "which nobody has seeded"),
        (Pooler, "adaptive_avg_pool2d.* not the same in every run"),
    ],
)
def test_a_method_that_leaves_something_on_the_cpu_or_to_chance_is_caught(method, message):
    with pytest.raises(RuntimeError, match=message), fake_cuda():
        method().fit(federation_on("cuda:0", method()))


# -- the device itself --


def test_syncs_are_counted_by_the_line_that_asks():
    with fake_cuda() as watch:
        ones = torch.ones(3, device="cuda:0")
        for _ in range(2):
            assert ones.sum().item() == 1  # whatever it is
        assert ones[ones > 0].shape == (3,)
        assert len(ones.nonzero()) == 3
        ones.cpu().to("cuda:0")
    counted = sorted((key.partition(" ")[2], times) for key, times in watch.syncs.items())
    assert counted == [
        ("cpu to cuda", 1),
        ("cuda to cpu", 1),
        ("item", 2),
        ("mask", 1),
        ("nonzero", 1),
    ]
    assert all(key.startswith("tests/test_devices.py:") for key in watch.syncs)


def test_outside_nothing_has_changed():
    before = torch.Generator, torch.autograd.grad, torch.Tensor.numpy, nn.Module._apply
    with pytest.raises(ZeroDivisionError), fake_cuda():
        raise ZeroDivisionError
    assert before == (torch.Generator, torch.autograd.grad, torch.Tensor.numpy, nn.Module._apply)
    assert torch.ones(2).tolist() == [1, 1]


class Doubled(torch.autograd.Function):
    """Two outputs, of which one may not be used."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, first, second):
        return 2 * first + 3 * second


def test_gradients_are_those_of_autograd():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3)
    ).double()
    images = torch.rand(5, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    parameters = list(net.parameters())

    def loss():
        outputs = net(Doubled.apply(images)[0])
        return nn.functional.cross_entropy(
            outputs + outputs.square(), torch.tensor([0, 1, 2, 0, 1])
        )

    def penalty(take):
        (slope,) = take(loss(), [images], create_graph=True)
        return slope.square().sum()

    theirs = torch.autograd.grad
    inputs = [images, *parameters]
    for ours, true in zip(grad(loss(), inputs), theirs(loss(), inputs), strict=True):
        torch.testing.assert_close(ours, true)
    for ours, true in zip(
        grad(penalty(grad), parameters), theirs(penalty(theirs), parameters), strict=True
    ):
        torch.testing.assert_close(ours, true)
    backward(loss(), inputs=parameters)
    backward(loss(), inputs=parameters)
    assert images.grad is None
    for parameter, once in zip(parameters, theirs(loss(), parameters), strict=True):
        torch.testing.assert_close(parameter.grad, 2 * once)
    with pytest.raises(RuntimeError, match="not have been used"):
        grad(loss(), [torch.ones(2, requires_grad=True)])


# -- a real one, where there is one --


@pytest.fixture
def gpu():
    """A CUDA device as a run prepares it."""
    if not torch.cuda.is_available():
        pytest.skip("this machine has no CUDA device")
    prepare_device("cuda", torch.get_num_threads(), DEFAULT)
    yield "cuda"
    torch.use_deterministic_algorithms(False)


def private_under(mechanism):
    """Settings of a run under a mechanism of differential privacy; none for one that is not
    private.
    """
    noise = 1.0 if mechanism == RELEASED else 0.0
    settings = {
        "privacy.epsilon": 50.0,
        "privacy.mechanism": mechanism,
        "privacy.noise_multiplier": noise,
        "privacy.queries": 10,
    }
    return settings if mechanism else {}


@pytest.mark.parametrize("name", METHODS)
def test_a_gpu_repeats_itself_to_the_last_bit_after_a_cut_and_sends_what_a_cpu_sends(
    name, tmp_path, hasty, gpu
):
    method, *others = variants(name)
    runs = [(method, mechanism) for mechanism in ("", *type(method).protections())] + [
        (other, "") for other in others
    ]
    for number, (own, mechanism) in enumerate(runs):
        private = private_under(mechanism)
        undisturbed = federation_on(gpu, own, **private)
        whole = fit(undisturbed, own)
        folder = tmp_path / str(number)
        with contextlib.suppress(PowerCutError):
            fit(federation_on(gpu, own, folder, cut, **private), own)
        repeated = federation_on(gpu, own, folder, **private)
        for again, first in zip(fit(repeated, own), whole, strict=True):
            assert same_bits(again.state, first.state), mechanism
        on_cpu = federation_on("cpu", own, **private)
        fit(on_cpu, own)
        assert repeated.channel.ledger == undisturbed.channel.ledger == on_cpu.channel.ledger, (
            mechanism
        )


@pytest.mark.parametrize("name", sorted(networks()))
def test_a_network_gives_on_a_gpu_what_it_gives_on_a_cpu(name, gpu):
    torch.manual_seed(0)
    model = build(name, 3, 10, 32).eval()
    images = torch.randn(4, 3, *[32] * networks()[name].dims)
    expected = model(images)
    found = model.to(gpu)(images.to(gpu)).cpu()
    assert (found - expected).norm() < 1e-4 * expected.norm()
