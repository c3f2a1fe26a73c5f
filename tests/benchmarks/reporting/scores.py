"""Records of a table of two scores, FedIOD's Table 7."""

from fedtables.results.record import Measurement, Record

COLUMN = "dataset=cifar10 alpha=0.1"
DIGITS = {"asked": "cifar10", "used": "digits", "origin": "surrogate", "digest": "d", "note": ""}
SCORES = ("inception-score", "adapted-inception-score")


def record(row, measurements, seed=0, **more):
    return Record(
        table="fediod/table7",
        row=row,
        column=COLUMN,
        seed=seed,
        seeds={"partition": seed},
        profile="smoke",
        cell=f"{row} {seed}",
        code="",
        measurements=measurements,
        **{"protocol": "paper", "data": DIGITS, **more},
    )


def scored(row, first, second, **more):
    return record(
        row,
        tuple(
            Measurement(name, value) for name, value in zip(SCORES, (first, second), strict=True)
        ),
        **more,
    )
