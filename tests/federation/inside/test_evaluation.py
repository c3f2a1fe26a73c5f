"""Tracking and validation, and labels for declared oracles alone."""

import pytest
import torch

from fedtables.federation.cache import StageCache
from fedtables.federation.costs import Meter, metering
from fedtables.federation.data import LabelledSet
from fedtables.federation.fitting import fit
from fedtables.federation.inside.evaluation import OracleError, is_looked_at
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedavg import FedAvg
from tests.federation.tiny import CLASSES, make_federation


def constant(federation, label):
    """A network that answers `label` to everything; a third of the test and of the validation set
    is right.
    """
    model = federation.networks.initial("cnn-small")
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.nn.functional.one_hot(torch.tensor(label), CLASSES))
    return model


def test_tracking_adds_the_test_metrics_to_the_history_that_a_checkpoint_takes():
    federation = make_federation()
    assert (
        federation.networks.checkpoint(
            federation.networks.initial("cnn-small"), "cnn-small"
        ).history
        == {}
    )
    model = constant(federation, 1)
    federation.evaluation.track(model)
    federation.evaluation.track(model)
    assert federation.evaluation.history == {"accuracy": [1 / 3, 1 / 3]}
    assert federation.networks.checkpoint(model, "cnn-small").history == {
        "accuracy": [1 / 3, 1 / 3]
    }


def test_the_own_model_of_a_client_has_a_history_of_its_own():
    federation = make_federation()
    evaluation = federation.evaluation
    evaluation.note("chosen", 2.0)
    evaluation.track(constant(federation, 1), "client-1")
    own = {"chosen": [2.0], "accuracy": [1 / 3]}
    assert evaluation.history == evaluation.history_of("client-0") == {"chosen": [2.0]}
    assert evaluation.history_of("client-1") == own
    model = constant(federation, 1)
    assert federation.networks.checkpoint(model, "cnn-small", "client-1").history == own
    restored = make_federation().evaluation
    restored.load_state_dict(evaluation.state_dict())
    assert restored.state_dict() == evaluation.state_dict()
    assert restored.history_of("client-1") == own
    evaluation.begin_history()
    assert evaluation.history_of("client-1") == {}


def test_a_test_set_with_groups_is_measured_by_them_too():
    plain = make_federation().evaluation.test_set
    groups = torch.tensor([7, 7, 7, 7, 3, 3])
    grouped = LabelledSet(plain.images, plain.targets, "test", groups)
    federation = make_federation(test=grouped)
    # One of the four images of group 7 is of class 1, one of the two of group 3.
    assert plain.targets.tolist() == [0, 1, 2, 0, 1, 2]
    assert federation.evaluation.test(constant(federation, 1)) == {
        "accuracy": 1 / 3,
        "accuracy-by-group": pytest.approx((1 / 4 + 1 / 2) / 2),
    }


def test_a_history_tells_the_metrics_on_further_sites_by_their_names():
    here = make_federation().evaluation.test_set
    there = LabelledSet(here.images[:2], torch.tensor([1, 2]), "there")
    federation = make_federation(further_tests={"b": there})
    federation.evaluation.track(constant(federation, 1))
    assert federation.evaluation.history == {"accuracy": [1 / 3], "accuracy@b": [1 / 2]}


def test_further_sites_are_a_part_of_what_identifies_the_test_samples():
    here = make_federation().evaluation.test_set

    def identity(**further):
        return make_federation(further_tests=further).evaluation.test_digest

    digests = [identity(), identity(b=here), identity(c=here), identity(b=here, c=here)]
    assert digests[0] == here.digest
    assert len(set(digests)) == 4


def test_validation_is_on_the_servers_own_set_and_not_on_the_test_set():
    images = torch.zeros(4, 1, 8, 8, dtype=torch.uint8)
    federation = make_federation(validation=LabelledSet(images, torch.tensor([1, 1, 1, 2]), "v"))
    assert federation.evaluation.validate(constant(federation, 1)) == {"accuracy": 0.75}
    assert federation.evaluation.test(constant(federation, 1)) == {"accuracy": 1 / 3}
    assert federation.evaluation.history == {}


def test_without_a_validation_set_the_setting_that_makes_one_is_named():
    federation = make_federation(validation=None)
    with pytest.raises(ValueError, match=r"partition\.validation_share above 0"):
        federation.evaluation.validate(federation.networks.initial("cnn-small"))


def test_public_labels_are_refused_to_a_method_that_did_not_declare_the_oracle():
    federation = make_federation(oracle_labels=torch.zeros(6), oracle_allowed=frozenset())
    with pytest.raises(OracleError, match="public data are unlabelled"):
        federation.evaluation.public_labels()


@pytest.mark.parametrize(
    ("looks", "of_ten"),
    [(0, list(range(1, 11))), (1, [10]), (3, [4, 7, 10]), (5, [2, 4, 6, 8, 10])],
)
def test_looks_are_evenly_spread_and_the_last_is_at_the_end(looks, of_ten):
    assert [number for number in range(1, 11) if is_looked_at(number, 10, looks)] == of_ten


@pytest.mark.parametrize(("looks", "epochs", "rounds"), [(0, 3, 4), (1, 1, 1), (2, 2, 2)])
def test_metrics_are_taken_after_as_many_epochs_and_rounds_as_are_looked_at(
    looks, epochs, rounds, tmp_path
):
    federation = make_federation(looks=looks, stages=StageCache(tmp_path))
    assert [len(m.history["accuracy"]) for m in federation.local_models()] == [epochs] * 2
    [model] = fit(federation, FedAvg(rounds=4))
    assert len(model.history["accuracy"]) == rounds


@pytest.mark.parametrize(("looks", "tests"), [(0, 6), (4, 4), (9, 6)])
def test_a_plan_counts_as_many_tests_as_there_are_looks(looks, tests):
    federation = make_federation(device="meta", looks=looks)
    model = federation.networks.initial()
    with metering(Meter()) as meter:
        for _ in federation.rounds(6, alike=True):
            federation.evaluation.track(model)
        assert meter.work.predicted_samples == 6 * tests  # six test images
        for _ in federation.rounds(6):
            federation.evaluation.track(model)
        assert meter.work.predicted_samples == 2 * 6 * tests
        plan = TrainingPlan(epochs=6, batch_size=3, lr=0.1)
        data = federation.evaluation.require_validation()
        loss = federation.task.loss
        federation.train(model, data.images, data.targets, loss, plan, "a plan", track=True)
        assert meter.work.predicted_samples == 3 * 6 * tests


def test_the_history_is_written_by_the_suite_alone():
    federation = make_federation()
    federation.evaluation.track(federation.networks.initial())
    measured = federation.evaluation.history
    federation.evaluation.history["accuracy"].append(1.0)
    federation.evaluation.history["precision"] = [1.0]
    assert federation.evaluation.history == measured
    federation.evaluation.note("chosen", 2.0)
    assert federation.evaluation.history == {**measured, "chosen": [2.0]}
    for name in ("accuracy", "accuracy@b"):
        with pytest.raises(ValueError, match=f"{name} is a metric"):
            federation.evaluation.note(name, 1.0)
