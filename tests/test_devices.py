"""Every method on a CUDA device that is not there: what is left on the CPU is caught on a machine
without a GPU.

Where there is one, what cannot be seen without content: that a fit repeats itself to the last bit,
and goes on after a cut.
"""

import contextlib
import itertools
from dataclasses import fields, replace
from types import SimpleNamespace

import pytest
import torch

from fedtables.baselines.standalone import Standalone
from fedtables.benchmarks.running.execute import prepare_device
from fedtables.benchmarks.scenarios.small import DISJOINT, small_method
from fedtables.benchmarks.tables import registry
from fedtables.federation import parts, snapshots
from fedtables.federation.execution import DEFAULT, Execution
from fedtables.federation.federation import Federation
from fedtables.federation.fitting import fit
from fedtables.federation.graphs import RECORDERS
from fedtables.models.catalogue import build, networks
from fedtables.privacy.plan import RELEASED
from tests.device_fits import PowerCutError, federation_on
from tests.fakedevice import DEVICE, KIND, fake_device
from tests.federation.replayed import PLANS, trained
from tests.methods.shards import same_bits
from tests.replayed_fits import THREE, TOGETHER, fitted

METHODS = sorted(registry.methods())


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

    monkeypatch.setattr(Federation, "steps", steps)


def variants(name):
    """The method as the contract runs it, with short loops; and, where it has such, with every
    switch the other way that may be.
    """
    method = small_method(registry.find_method(name))
    names = [field.name for field in fields(method)]
    method = replace(
        method,
        **{n: 1 for n in names if n.endswith("epochs")},
        **{n: 2 for n in names if n == "rounds"},
    )
    yield method
    switched = method
    for name in names:
        if isinstance(getattr(method, name), bool):
            with contextlib.suppress(ValueError):  # pixels are no classes, for one
                switched = replace(switched, **{name: not getattr(method, name)})
    if switched != method:
        yield switched


def cut(text, share):
    """Stops a fit before its second round."""
    if text.startswith("round 2/"):
        raise PowerCutError


def follow(method, folder, *, cuts=True, **changes):
    """A fit on a CUDA device without content, by default cut off before its second round and taken
    up again: what is left of it.
    """
    with fake_device() as watch:
        if cuts:
            with contextlib.suppress(PowerCutError):
                fit(federation_on(DEVICE, method, folder, cut, **changes), method)
        federation = federation_on(DEVICE, method, folder, **changes)
        checkpoints = fit(federation, method)
        for checkpoint in checkpoints:
            assert {tensor.device.type for tensor in checkpoint.state.values()} == {KIND}
            if checkpoint.network:
                federation.evaluation.test(federation.networks.module(checkpoint))
    return federation, watch


SENDING = {"asyndgan", "fedgen", "fedkd-gong", "fediod", "fediod-segmentation"}
"""Methods of which what crosses is compared with a true run's; with BatchNorm's buffers."""


LONG = {"asyndgan", "fediod-segmentation", "fediod-reconstruction"}
"""Methods whose fits take long on a device without content; the tests of their own losses are
quick.
"""


def slow_if_long(names):
    """The names as parameters, those in `LONG` for the slow tests."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in names]


@pytest.mark.parametrize("name", slow_if_long(METHODS))
def test_every_method_keeps_to_its_device_and_sends_what_a_true_run_sends(name, tmp_path, brief):
    method, *others = variants(name)
    changes = {"network.cnn": "resnet8-narrow"} if name in SENDING else {}
    followed, _ = follow(method, tmp_path / "0", **changes)
    if name in SENDING:
        true = federation_on("cpu", method, **changes)
        fit(true, method)
        assert followed.channel.ledger == true.channel.ledger
    for number, other in enumerate(others, 1):
        follow(other, tmp_path / str(number), cuts=False)


BY_BATCH = {
    *("dlad", "ds-fl", "fedad", "fedavg", "fedbe", "feddf", "fedkd-gong", "fedmd-plus", "fedproto"),
    *("fedsa", "fixmatch", "labeled-distillation", "noisy-student", "pseudo-label"),
}
"""Methods that take samples by batch in a way of their own; all others with the slow tests."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n not in BY_BATCH)) for n in METHODS],
)
def test_every_method_takes_samples_by_batch_that_stay_in_host_memory(
    name, tmp_path, brief, monkeypatch
):
    monkeypatch.setattr(parts, "MOST_ON_DEVICE", 0)
    method, *_ = variants(name)
    federation, _ = follow(method, tmp_path, cuts=False)
    assert federation.evaluation.test_set.images.device.type == "cpu"


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


@pytest.mark.parametrize(
    "name", sorted({*networks()} - {"densenet121"})
)  # the code of densenet-small, and slow
def test_every_network_keeps_to_its_device(name):
    with fake_device() as watch:
        watch.seeded = True  # for dropout, as a run does
        outputs = build(name, 3, 10, 32).to(DEVICE)(
            torch.ones(2, 3, *[32] * networks()[name].dims, device=DEVICE)
        )
        assert outputs.device.type == KIND
        outputs.sum().backward()


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
        with fake_device() as watch:
            federation = federation_on(DEVICE, Standalone())
            images = federation.public.images[:16].repeat(batches, 1, 1, 1)
            targets = torch.zeros(len(images), dtype=torch.int64, device=federation.networks.device)
            model = federation.networks.initial()
            watch.syncs.clear()
            federation.train(model, images, targets, federation.task.loss, federation.local)
            return watch.syncs

    assert syncs(1) == syncs(3)


WITH_STEPS = (
    "asyndgan",
    "co-boosting",
    "dense",
    "fedbe",
    "feddf",
    "fedftg",
    "fedgen",
    "fediod",
    "fediod-segmentation",
    "fixmatch",
    "meta-pseudo-labels",
    "noisy-student",
    "pseudo-label",
)
"""Methods with loops of their own; FedIOD's reconstruction has that of its segmentation."""
WAITS = (
    "federation/channel.py",
    "federation/augmentation.py",
)
"""What waits in a step and may: messages, once each, and strong views, for how many images undergo
each operation."""


@pytest.mark.parametrize("name", slow_if_long(WITH_STEPS))
def test_no_step_of_a_methods_own_loop_waits_but_for_messages_and_strong_views(
    name, tmp_path, monkeypatch
):
    method, *_ = variants(name)
    taken, waits = [], []

    def steps(loops, number, name=""):
        yield 0
        before = watch.syncs.copy()
        yield 1
        taken.append(name)
        waits.extend(watch.syncs - before)

    monkeypatch.setattr(Federation, "steps", steps)
    with fake_device() as watch:
        fit(federation_on(DEVICE, method, tmp_path), method)
    assert taken
    assert not [line for line in waits if not line.startswith(WAITS)]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_under_autocast_and_leaves_weights_in_single_precision(name, brief):
    """On the CPU, whose autocast mixes types as CUDA's does."""
    method, *_ = variants(name)
    for checkpoint in fit(federation_on("cpu", method, execution=Execution("bf16")), method):
        learnt = [w for w in checkpoint.state.values() if w.is_floating_point()]
        assert learnt
        assert {weights.dtype for weights in learnt} == {torch.float32}
        assert all(weights.isfinite().all() for weights in learnt)


class Taken:
    """A recorder of the device without content: it takes the step, and notes where it waits."""

    def __init__(self, watch):
        self.watch, self.waits = watch, []

    def aside(self):
        return contextlib.nullcontext()

    def record(self, step, generators):
        before = self.watch.syncs.copy()
        step()
        self.waits.append(self.watch.syncs - before)
        return step


@pytest.mark.parametrize(("name", "together"), [*((name, False) for name in PLANS), ("adam", True)])
def test_a_recorded_step_neither_waits_for_the_device_nor_copies_to_it(name, together, monkeypatch):
    execution = Execution(compile="graphs", stacked=2 if together else 1)
    sizes = [18, 16] if together else [18]
    with fake_device() as watch:
        recorder = Taken(watch)
        monkeypatch.setitem(RECORDERS, KIND, lambda device: recorder)
        trained(sizes, execution, together=together, device=DEVICE, **PLANS[name])
    assert recorder.waits
    assert not any(recorder.waits)


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
        **DISJOINT,
    }
    return settings if mechanism else {}


def transfers(federation, name):
    """What crossed; without the bytes of what is as long as noise decides, for that is drawn on
    the device.
    """
    ledger = federation.channel.ledger
    return [replace(line, bytes=0) for line in ledger] if name == "li-2019" else ledger


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
        assert repeated.channel.ledger == undisturbed.channel.ledger, mechanism
        sent, expected = (transfers(f, name) for f in (repeated, on_cpu))
        assert sent == expected, mechanism


@pytest.mark.parametrize("name", PLANS)
def test_replayed_steps_on_a_gpu_have_the_bits_of_those_that_are_taken_alone(
    name, gpu, monkeypatch
):
    sizes, graphs = [16, 30, 18], Execution(compile="graphs", stacked=3)
    common = {"device": gpu, **PLANS[name]}
    replayed = [trained(sizes, graphs, together=together, **common) for together in (False, True)]
    monkeypatch.delitem(RECORDERS, "cuda")
    taken = trained(sizes, graphs, together=False, **common)
    for own in replayed:
        for one, other in zip(taken, own, strict=True):
            assert same_bits(one, other)


@pytest.mark.parametrize("name", [*TOGETHER, "dlad"])
def test_a_fit_on_a_gpu_is_the_same_when_its_clients_are_side_by_side(name, gpu):
    alone, together = (fitted(name, gpu, stacked, **THREE) for stacked in (1, 2))
    for one, other in zip(alone, together, strict=True):
        assert same_bits(one.state, other.state)


@pytest.mark.parametrize("name", METHODS)
def test_a_fit_on_a_gpu_is_the_same_when_its_steps_are_replayed(name, gpu, monkeypatch):
    replayed = fitted(name, gpu)
    monkeypatch.delitem(RECORDERS, "cuda")
    for one, other in zip(fitted(name, gpu), replayed, strict=True):
        assert same_bits(one.state, other.state)


@pytest.mark.parametrize("name", sorted(networks()))
def test_a_network_gives_on_a_gpu_what_it_gives_on_a_cpu(name, gpu):
    torch.manual_seed(0)
    model = build(name, 3, 10, 32).eval()
    images = torch.randn(4, 3, *[32] * networks()[name].dims)
    expected = model(images)
    found = model.to(gpu)(images.to(gpu)).cpu()
    assert (found - expected).norm() < 1e-4 * expected.norm()
