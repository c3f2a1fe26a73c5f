"""The two loops of learning in bf16 and compiled."""

import copy
import os
import shutil

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.execution import DEFAULT, Execution
from fedtables.federation.training import loops
from fedtables.federation.training.inputs import Normalisation, unit_range
from fedtables.federation.training.loops import forward_pass, predict
from tests.federation.tiny import CLASSES, bright_images, make_federation
from tests.federation.training.one_pixel import fit, sgd

# -- precision --

CPU = torch.device("cpu")
GREY = Normalisation((0.5,), (0.25,))


class Listening(nn.Module):
    """A linear layer that notes of every pass whether it is under autocast, and in what type it
    answers.
    """

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, CLASSES)
        self.heard = []

    def forward(self, images):
        outputs = self.linear(images.flatten(1))
        self.heard.append((torch.is_autocast_enabled("cpu"), outputs.dtype))
        return outputs


def cross_entropy(outputs, targets):
    return F.cross_entropy(outputs, targets, reduction="none")


def bright_task():
    labels = torch.arange(30) % CLASSES
    return bright_images(labels, 0), labels


def learn(model, execution=DEFAULT, epochs=20, batch_size=5, **changes):
    images, labels = bright_task()
    plan = sgd(epochs, batch_size, 0.02)
    fit(model, images, labels, plan, cross_entropy, normalise=GREY, execution=execution, **changes)
    return model


def test_a_pass_in_bf16_is_close_to_one_in_single_precision_and_not_the_same():
    model, inputs = (
        make_federation().networks.initial("cnn-small"),
        GREY(unit_range(bright_task()[0])),
    )
    plain, half = (
        forward_pass(DEFAULT, CPU)(model, inputs),
        forward_pass(Execution("bf16"), CPU)(model, inputs),
    )
    assert torch.equal(plain, model(inputs))
    assert half.dtype == torch.float32
    assert 0 < (half - plain).abs().max() < 0.05
    assert forward_pass(Execution("bf16"), CPU, full_batch=False)(model, inputs).equal(
        half
    )  # precision is not a matter of size


def test_every_training_step_is_in_bf16_and_no_prediction_is():
    model, (images, _) = Listening(), bright_task()
    learn(
        model,
        Execution("bf16"),
        epochs=2,
        batch_size=20,
        after_epoch=lambda epoch: predict(model, images, normalise=GREY),
    )
    half, whole = (True, torch.bfloat16), (False, torch.float32)
    assert model.heard == [half, half, whole] * 2  # batches of 20 and 10, and a prediction
    model.eval()
    assert predict(model, images, normalise=GREY).equal(model(GREY(unit_range(images))))


def test_a_federation_trains_in_its_precision_and_evaluates_in_single():
    federation = make_federation(execution=Execution("bf16"))
    model = Listening()
    federation.train_on_clients([(federation.clients[0], model)], sgd(batch_size=4))
    assert set(model.heard) == {(True, torch.bfloat16)}
    assert federation.forward(model, torch.ones(2, 1, 8, 8)).dtype == torch.float32
    assert model.heard.pop() == (True, torch.bfloat16)
    model.heard.clear()
    federation.evaluation.test(model)
    federation.evaluation.validate(model)
    assert model.heard == [(False, torch.float32)] * 2


# -- compilation --


@pytest.fixture
def nothing_compiled():
    """Before the test, and after it."""
    loops._compiled.cache_clear()
    yield
    loops._compiled.cache_clear()
    torch.compiler.reset()


@pytest.fixture
def compiler(monkeypatch, nothing_compiled):
    """In place of torch.compile one that notes the sizes of the batches that go through what it
    made.
    """

    class Compiler:
        def __init__(self):
            self.sizes = []

        def __call__(self, function, **options):
            def compiled(autocast, model, inputs):
                self.sizes.append(len(inputs))
                return function(autocast, model, inputs)

            return compiled

    found = Compiler()
    monkeypatch.setattr(torch, "compile", found)
    return found


def test_full_batches_are_compiled_and_a_smaller_last_one_is_not(compiler):
    plain, compiled = learn(Listening(), epochs=2, batch_size=8), Listening()
    learn(compiled, Execution(compile="default"), epochs=2, batch_size=8)
    assert compiler.sizes == [8, 8, 8] * 2  # of 30 samples; six are left
    assert len(compiled.heard) == len(plain.heard) == 8


@pytest.mark.slow  # the compiler alone takes a dozen seconds
@pytest.mark.skipif(
    not any(map(shutil.which, [os.environ.get("CXX", "g++"), "g++", "clang++"])),
    reason="no C++ compiler",
)
@pytest.mark.usefixtures("nothing_compiled")
def test_compiled_training_takes_the_steps_of_eager_training(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    eager = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, CLASSES))
    compiled = copy.deepcopy(eager)
    learn(eager, epochs=2, batch_size=8)
    learn(compiled, Execution(compile="default"), epochs=2, batch_size=8)
    torch.testing.assert_close(compiled.state_dict(), eager.state_dict(), rtol=1e-4, atol=1e-4)
    assert [
        path for path in (tmp_path / "compiled").rglob("*") if path.is_file()
    ]  # else nothing was compiled
