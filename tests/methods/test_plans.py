"""A plan of any method books the bytes of its run, without a sample or a weight."""

import pytest

from baselines.average_distillation import AverageDistillation
from baselines.centralized import Centralized
from baselines.fedkd import FedKD
from baselines.li_2019 import Li2019
from federation.costs import Meter, metering
from methods.dlad import DLAD
from methods.fedad import FedAD
from methods.feddf import FedDF
from methods.fedsa import FedSA
from tests.methods.every_method import METHODS, federation_of

ALL = [
    *(method for method in METHODS if not isinstance(method, FedSA | Li2019)),
    AverageDistillation(),
    Centralized(),
    DLAD(classifier_epochs=1),
    FedAD(),
    FedAD(one_shot=True),
    FedAD(bounds=False, dropped=1, quantised=True),
    FedDF(rounds=2, distillation_steps=3, augmented=True),
    FedKD(),
]
"""Not those two whose bytes hang on what they draw: FedSA's are in its own tests, as Li2019's."""


@pytest.mark.parametrize("method", ALL, ids=lambda method: type(method).__name__)
def test_a_plan_books_the_bytes_of_the_run(method):
    real, planned = (federation_of(method, device=device) for device in ("cpu", "meta"))
    method.fit(real)
    with metering(Meter()):
        method.fit(planned)
    assert planned.channel.by_kind() == real.channel.by_kind()
    messages = [sum(line.messages for line in f.channel.ledger) for f in (planned, real)]
    assert messages[0] == messages[1]
