"""What the four semi-supervised baselines have in common: they learn at the server alone, of
pixels too.
"""

import pytest

from fedtables.baselines.fixmatch import FixMatch
from fedtables.baselines.meta_pseudo_labels import MetaPseudoLabels
from fedtables.baselines.noisy_student import NoisyStudent
from fedtables.baselines.pseudo_label import PseudoLabel
from fedtables.federation.samples import counted
from fedtables.federation.tasks.values import DenseRegression
from fedtables.federation.training.plan import TrainingPlan
from tests.baselines.probes import pixel_labelled, probed

SHORT = [
    PseudoLabel(steps=12, interval=3, unlabelled_batch_size=8, ramp_start=40, ramp_end=80),
    NoisyStudent(steps=3, iterations=3, ratio=2, operations=2, dropout=0.2),
    FixMatch(steps=12, interval=3, batch_size=8, mu=2, operations=2, cutout=0.25, ema_decay=0.9),
    MetaPseudoLabels(
        **{"steps": 12, "interval": 3, "batch_size": 8, "mu": 2, "operations": 2, "cutout": 0.25},
        **{"ema_decay": 0.9, "unlabelled_weight": 1.0, "ramp": 2, "student_wait": 2},
        **{"finetune_epochs": 3, "lr": 0.1},
    ),
]
SERVER = TrainingPlan(epochs=4, batch_size=4, lr=0.01)


def by_name(methods):
    return pytest.mark.parametrize("method", methods, ids=lambda method: type(method).__name__)


@pytest.mark.parametrize(
    ("method", "samples"),
    [
        (SHORT[0], 12 * (4 + 8)),
        (SHORT[1], 3 * 4 + 3 * 3 * (4 + 2 * 4)),  # the teacher, and three students
        (SHORT[2], 12 * (8 + 2 * 2 * 8)),  # weak and strong views
        (SHORT[3], 12 * (8 + 3 * 2 * 8) + 3 * 12),  # student and teacher; fine-tuning on 12 images
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, int) else "",
)
def test_the_server_sees_what_the_steps_take(method, samples):
    with counted() as count:
        method.fit(probed(server=SERVER))
    assert count.total() == {"local": 0, "server": samples}


@by_name(SHORT)
def test_a_label_for_every_pixel_is_learnt_too(method):
    model = method.fit(pixel_labelled(server=SERVER))
    assert len(model.history["miou"]) >= 4
    assert model.network == "cnn-small+dense"


@by_name(SHORT)
def test_a_task_without_classes_and_a_server_without_labels_are_refused(method):
    with pytest.raises(ValueError, match="pseudo-labels are classes"):
        method.fit(probed(task=DenseRegression(1)))
    with pytest.raises(ValueError, match="probe_share"):
        method.fit(probed(probe=None))
