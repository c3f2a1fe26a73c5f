"""Records: what is written of a cell reads back unchanged."""

import json

import pytest

from fedtables.results.record import Measurement, Record
from tests.records import made_record

RECORD = made_record(
    seeds={"partition": 3},
    measurements=(Measurement("accuracy", 0.25, "epoch=1"), Measurement("classes", "0,1")),
    public={"asked": "cifar100", "used": "shapes-100"},
    statistic="after the last of 3 epochs or rounds",
    local_samples=30,
    server_samples=0,
    lineage=("mine", "fedavg"),
)


def test_a_record_survives_json():
    assert Record.from_json(json.loads(json.dumps(RECORD.to_json()))) == RECORD


def test_a_record_from_before_samples_were_counted_does_not_know_them():
    value = RECORD.to_json()
    del value["local_samples"], value["server_samples"], value["lineage"]
    old = Record.from_json(value)
    assert (old.local_samples, old.server_samples, old.lineage) == (None, None, ())


@pytest.mark.parametrize("missing", ["measurements", "table", "code"])
def test_a_record_without_a_required_field_is_refused(missing):
    value = RECORD.to_json()
    del value[missing]
    with pytest.raises((KeyError, TypeError)):
        Record.from_json(value)


def test_a_record_with_an_unknown_field_is_refused():
    with pytest.raises(TypeError):
        Record.from_json({**RECORD.to_json(), "surprise": 1})
