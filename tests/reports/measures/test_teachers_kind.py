"""What is said of teachers beside a table, and left out of it."""

from types import SimpleNamespace

import pandas as pd

from fedtables.reports.measures.teachers import MEASURES
from fedtables.results.record import FAILED, Measurement
from tests.reports.written_results import record

ROWS = {"scratch": "Scratch", "transfer": "Transfer"}


def row_of(row, seed, *measured, **more):
    measurements = [Measurement(metric, value) for metric, value in measured]
    return record(row, "fraction=0.01", 1.0, seed, measurements=measurements, **more)


def told(*records, unit="percent"):
    layout = SimpleNamespace(rows=ROWS, unit=unit)
    return MEASURES["teachers"].remarks(
        SimpleNamespace(layout=layout, records=records, metrics=("accuracy",))
    )


def test_a_lead_is_taken_seed_by_seed():
    records = [
        row_of("scratch", 0, ("accuracy", 40.0)),
        row_of("scratch", 1, ("accuracy", 44.0)),
        row_of("transfer", 0, ("accuracy", 50.0), ("teacher-accuracy", 61.0)),
        row_of("transfer", 1, ("accuracy", 50.0), ("teacher-accuracy", 63.0)),
    ]
    assert told(*records) == [
        "fraction 0.01: Teachers' accuracy (%) on held-out images of their own classes, mean over"
        " teachers: 62.00 ± 1.41",
        "fraction 0.01: lead of Transfer over Scratch in Accuracy (%), seed by seed: 8.00 ± 2.83",
    ]
    assert [text[-5:] for text in told(*records[::2])] == ["61.00", "10.00"]


def test_without_the_first_row_there_is_no_lead_and_of_a_failure_nothing():
    alone = row_of("transfer", 0, ("accuracy", 0.5), ("teacher-accuracy", 0.61))
    (text,) = told(alone, unit="fraction")
    assert text.endswith(
        "Teachers' accuracy on held-out images of their own classes, mean over teachers: 0.6100"
    )
    assert told(row_of("transfer", 0, status=FAILED)) == []


def test_the_teachers_number_is_not_among_the_rows():
    lines = pd.DataFrame({"row": ["transfer"] * 2, "metric": ["accuracy", "teacher-accuracy"]})
    assert MEASURES["teachers"].shown(lines)["metric"].tolist() == ["accuracy"]
