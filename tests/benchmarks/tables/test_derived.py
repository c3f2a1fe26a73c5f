"""Columns computed from other columns, by hand, and the means that FedAD's Table 8 prints."""

from dataclasses import replace

import pytest

from fedtables.benchmarks.tables.derived import as_printed, combined, with_derived
from fedtables.benchmarks.tables.registry import find_table
from fedtables.benchmarks.tables.spec import Derived
from fedtables.metrics.names import SUBJECTS
from fedtables.results.published import format_column, published_table
from fedtables.results.record import FAILED, Measurement
from tests.reports.written_results import record

T1, T2 = {"modality": "t1"}, {"modality": "t2"}
SUM = Derived({"modality": "all"}, (T1, T2), ("bandwidth-gb",))
MEAN = Derived({"modality": "mean"}, (T1, T2), ("ssim", "psnr"), weights=SUBJECTS)


def cell(column, row="fedad", seed=0, **values):
    """A record with these metrics; of their names `_` stands for `-`."""
    found = tuple(Measurement(name.replace("_", "-"), v) for name, v in values.items())
    keys = {"measurements": found, "bytes_up": 30, "bytes_down": 4, "arrays": "packed"}
    return replace(record(row, format_column(column), 0.0, seed), **keys)


def numbers(found):
    return {m.metric: m.value for m in found.measurements}


def test_a_sum_of_columns():
    records = [cell(T1, bandwidth_gb=1.5, ssim=0.5), cell(T2, bandwidth_gb=0.25)]
    *same, made = with_derived(records, [SUM])
    assert same == records
    assert (made.row, made.column, made.seed) == ("fedad", "modality=all", 0)
    assert numbers(made) == {"bandwidth-gb": 1.75}
    assert (made.bytes_up, made.bytes_down, made.arrays) == (60, 8, "")


def test_a_mean_with_weights():
    records = [
        cell(T1, ssim=0.5, psnr=30.0, num_test_subjects=3.0),
        cell(T2, ssim=0.9, psnr=34.0, num_test_subjects=1.0),
    ]
    *_, made = with_derived(records, [MEAN])
    # (3 x 0.5 + 1 x 0.9) / 4 and (3 x 30 + 1 x 34) / 4
    assert numbers(made) == pytest.approx({"ssim": 0.6, "psnr": 31.0})


def test_a_mean_of_means_is_of_as_many_values_as_they_are_together():
    records = [
        replace(cell(column), measurements=(Measurement("ssim", 0.5, defined=n, of=5),))
        for column, n in ((T1, 5), (T2, 3))
    ]
    (made,) = combined(records, replace(MEAN, weights=""))
    assert (made.defined, made.of) == (8, 10)
    (made,) = combined([records[0], cell(T2, ssim=0.5)], replace(MEAN, weights=""))
    assert (made.defined, made.of) == (None, None)


def test_a_metric_that_a_part_lacks_has_no_mean_and_others_have():
    records = [
        cell(T1, ssim=0.5, psnr=30.0, num_test_subjects=3.0),
        cell(T2, ssim=0.9, num_test_subjects=1.0),
    ]
    *_, made = with_derived(records, [MEAN])
    assert numbers(made) == pytest.approx({"ssim": 0.6})
    records = [cell(T1, ssim=0.5), cell(T2, psnr=30.0)]
    assert combined(records, replace(MEAN, weights="")) == ()


@pytest.mark.parametrize(
    "second",
    [
        [],
        [replace(cell(T2, bandwidth_gb=1.0), status=FAILED, measurements=())],
        [replace(cell(T2, bandwidth_gb=1.0), status=FAILED)],
        [cell(T2, row="fl-mrcm", bandwidth_gb=1.0)],
        [cell(T2, seed=1, bandwidth_gb=1.0)],
        [cell(T2, ssim=1.0)],
    ],
    ids=["absent", "failed", "failed-late", "another-row", "another-seed", "another-metric"],
)
def test_without_all_parts_there_is_nothing(second):
    records = [cell(T1, bandwidth_gb=1.0), *second]
    assert with_derived(records, [SUM]) == records


def test_every_row_and_seed_has_its_own():
    records = [
        cell(column, row, seed, bandwidth_gb=float(10**seed))
        for row in ("fedad", "fl-mrcm")
        for seed in (0, 1)
        for column in (T1, T2)
    ]
    made = with_derived(records, [SUM])[len(records) :]
    assert [(r.row, r.seed, numbers(r)["bandwidth-gb"]) for r in made] == [
        ("fedad", 0, 2.0),
        ("fedad", 1, 20.0),
        ("fl-mrcm", 0, 2.0),
        ("fl-mrcm", 1, 20.0),
    ]


def test_a_metric_that_is_printed_alone_is_in_no_other_column_that_claims_read():
    records = [cell(T1, bandwidth_gb=1.5, ssim=0.5), cell(T2, bandwidth_gb=0.25, ssim=0.7)]
    alone = as_printed(records, [replace(SUM, alone=True)])
    assert [numbers(r) for r in alone] == [{"ssim": 0.5}, {"ssim": 0.7}, {"bandwidth-gb": 1.75}]
    assert as_printed(records, [SUM]) == with_derived(records, [SUM])
    assert with_derived(records, [replace(SUM, alone=True)])[:2] == records


# -- what FedAD prints --

PRINTED = published_table("fedad/table8")
VALUES = {(p.row, p.column, p.metric): p.value for p in PRINTED}
RULES = find_table("fedad/table8")[1].derived
UNIT = {"ssim": 1e-4, "psnr": 1e-2}
"""Of the last printed digit: a mean of rounded numbers, itself rounded, is off by one at most."""
OF_125 = {"fedavg t2 ssim", "fl-mrcm t2 psnr", "fedad t2 ssim"}
"""Means that come out with the 125 subjects of BraTS that the text has, not with the 128 of the
table."""
SLIPS = {
    "fedad t1 ssim": (0.8521, 0.8644),
    "fedad t1 psnr": (31.54, 31.78),
    "feddf t2 ssim": (0.8819, 0.8817),
    "feddf t2 psnr": (30.77, 30.75),
    "centralized t2 psnr": (30.56, 30.54),
}
"""Printed means that are not those of the printed columns with either number, and what these give
with the table's."""


def means(subjects_of_b=None):
    """The printed means by row, modality and metric, beside those of the printed columns; with
    another number of T2 subjects of BraTS if one is given.
    """
    found = {}
    for row in dict.fromkeys(p.row for p in PRINTED):
        records = []
        for column in (format_column(dict(keys)) for rule in RULES for keys in rule.of):
            own = {m: float(VALUES[row, column, m]) for m in (*UNIT, SUBJECTS)}
            if subjects_of_b and "test=b modality=t2" in column:
                own[SUBJECTS] = float(subjects_of_b)
            parts = tuple(Measurement(metric, value) for metric, value in own.items())
            records.append(replace(record(row, column, 0.0), measurements=parts))
        for made in with_derived(records, RULES)[len(records) :]:
            modality = made.column.partition("modality=")[2]
            for metric, value in numbers(made).items():
                found[f"{row} {modality} {metric}"] = (VALUES[row, made.column, metric], value)
    return found


def unlike(found):
    """Those that are further apart than by rounding."""
    return {
        name: (printed, value)
        for name, (printed, value) in found.items()
        if abs(printed - value) > UNIT[name.split()[-1]]
    }


def test_the_printed_means_are_those_of_the_printed_columns_but_for_slips_of_print():
    assert len(means()) == 20
    found = unlike(means())
    assert set(found) == OF_125 | set(SLIPS)
    for name, (printed, value) in SLIPS.items():
        assert found[name] == (printed, pytest.approx(value, abs=UNIT[name.split()[-1]] / 2))
    assert set(unlike(means(subjects_of_b=125))) == set(SLIPS)
