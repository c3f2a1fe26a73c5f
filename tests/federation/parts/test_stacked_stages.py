"""Networks that clients train once, several as one computation: they end where each would end
alone, and are stages like any other.
"""

import pytest
import torch

from federation.caching.cache import StageCache
from federation.parts.stacked import TrainingSet, train_stacked
from federation.samples import counted
from federation.tasks.classification import Classification
from federation.training.augmentation import Augmentation
from federation.training.execution import Execution
from federation.training.loops import Normalisation, TrainingPlan
from methods.dlad import DLAD
from methods.fedavg import FedAvg
from tests.federation.tiny import CLASSES, make_client, make_federation
from tests.methods.shards import same_bits, uneven_clients

PLAN = TrainingPlan(3, 4, 0.05, "sgd", momentum=0.9)


def federation(stacked, clients=None, how="off", **changes):
    return make_federation(
        clients or uneven_clients("cnn-small"),
        network="cnn-small",
        local=PLAN,
        execution=Execution(stacked=stacked, compile=how),
        **changes,
    )


def close(first, second):
    assert [a.history for a in first] == [b.history for b in second]
    for a, b in zip(first, second, strict=True):
        assert (a.network, a.outputs, a.owner) == (b.network, b.outputs, b.owner)
        torch.testing.assert_close(dict(a.state), dict(b.state), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stacked", [2, 5, 9])
def test_local_models_end_where_each_would_end_alone(stacked):
    close(federation(stacked).local_models(), federation(1).local_models())


def test_teachers_do_too_with_their_augmentation():
    how = Augmentation(rotation=20, channel_shift=0.2)
    close(
        federation(3, augmentation=how).stages.teachers(),
        federation(1, augmentation=how).stages.teachers(),
    )


def test_classifiers_do_too_with_their_sample_weights():
    alone, stacked = (DLAD(classifier_epochs=2).fit(federation(n)) for n in (1, 5))
    torch.testing.assert_close(dict(alone.state), dict(stacked.state), rtol=1e-3, atol=1e-4)


def test_side_by_side_they_have_the_bits_and_the_samples_of_those_alone():
    fits = []
    for stacked in (1, 3):
        with counted() as count:
            run = federation(stacked, how="graphs", augmentation=Augmentation(rotation=20))
            models = run.local_models()
            student = DLAD(classifier_epochs=2).fit(run)
            rounds = FedAvg(rounds=2, participation=1.0).fit(run)
        fits.append(([*models, student, rounds], count.total()))
    (alone, samples), (together, same_samples) = fits
    assert samples == same_samples
    for one, other in zip(alone, together, strict=True):
        assert one.history == other.history
        assert same_bits(one.state, other.state)


def test_clients_of_other_networks_and_tasks_train_apart():
    clients = [make_client(k) for k in range(3)] + [make_client(3, network="resnet8-narrow")]
    clients[1].task = Classification(CLASSES + 1)
    lines = []
    stacked = federation(4, clients, progress=lambda text, share: lines.append(text))
    close(stacked.stages.teachers(), federation(1, clients).stages.teachers())
    assert [line for line in lines if "together" in line] == [
        "2 clients together: teacher 1/4 and others"
    ]


def test_they_are_computed_once_and_know_that_they_were_stacked(tmp_path):
    first, second, alone = (federation(n, stages=StageCache(tmp_path)) for n in (5, 5, 1))
    models, again, others = (f.local_models() for f in (first, second, alone))
    assert all(event.computed for event in first.stages.cache.events)
    assert not any(event.computed for event in second.stages.cache.events)
    assert [m.lineage for m in models] == [m.lineage for m in again]
    assert not {m.lineage for m in models} & {m.lineage for m in others}


def test_what_is_there_is_not_trained_again(tmp_path):
    lost = federation(5, stages=StageCache(tmp_path)).local_models()[1].lineage
    for part in tmp_path.rglob(f"{lost}.*"):
        part.unlink()
    rest = federation(5, stages=StageCache(tmp_path))
    close(rest.local_models(), federation(5).local_models())
    assert [event.key for event in rest.stages.cache.events if event.computed] == [lost]


def test_each_counts_the_samples_that_it_has_seen_itself(tmp_path):
    def seen(stacked, folder):
        with counted() as amounts:
            federation(stacked, stages=StageCache(folder)).local_models()
        return amounts.total()

    found = seen(5, tmp_path / "a")
    assert found == seen(1, tmp_path / "b") == seen(5, tmp_path / "a")
    assert found["local"] > 0


def test_sample_weights_scale_each_samples_part_of_the_mean_loss():
    """One step of SGD at rate 1 on a single linear weight: with loss w x y the gradient is the mean
    of weight times x.
    """

    class Line(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.slope = torch.nn.Parameter(torch.zeros(1))

        def forward(self, inputs):
            return inputs.flatten(1) * self.slope

    images = torch.tensor([1.0, 3.0]).view(2, 1, 1, 1)
    models = [Line(), Line()]
    sets = [
        TrainingSet(images, torch.zeros(2), torch.tensor(weights))
        for weights in ((1.0, 1.0), (0.5, 2.0))
    ]
    seen = train_stacked(
        models,
        sets,
        lambda outputs, targets: outputs.squeeze(1),
        TrainingPlan(1, 2, 1.0, "sgd"),
        normalise=Normalisation((0.0,), (1.0,)),
        generators=[torch.Generator(), torch.Generator()],
    )
    assert seen == [2, 2]
    assert [model.slope.item() for model in models] == [-2.0, -(0.5 * 1 + 2 * 3) / 2]
