"""Records of teachers, as FedSA's Table 3 and Figure 4a have them, for tests of what is made of
them.
"""

from fedtables.results.published import published_table
from fedtables.results.record import Measurement
from tests.records import made_record

METRICS = ("transfer-accuracy", "saliency-similarity")
COLUMNS = ("dataset=cifar10", "dataset=cifar100")


def record(row, column, *measurements, seed=0, table="fedsa/table3", **more):
    data = {"asked": "cifar10", "used": "cifar10", "origin": "real", "digest": "d", "note": ""}
    known = {"row": row, "column": column, "seed": seed, "measurements": measurements}
    cell = f"{row}{column}{seed}"
    return made_record(**{"table": table, "cell": cell, "data": data, **known, **more})


def teacher(number, column, accuracy, similarity, **more):
    pair = (Measurement(METRICS[0], accuracy), Measurement(METRICS[1], similarity))
    return record(f"teacher-{number}", column, *pair, **more)


def column_of(accuracies, similarities=(0.0, 0.5, 1.0), column=COLUMNS[0], **more):
    return [
        teacher(n, column, a, s, **more)
        for n, (a, s) in enumerate(zip(accuracies, similarities, strict=True), 1)
    ]


def printed_records(shift=0.0, columns=COLUMNS, seed=0):
    """Records with the published values, their accuracies moved by `shift`."""
    cells = {
        (c.row, c.column, c.metric): c.value
        for c in published_table("fedsa/table3")
        if c.column in columns
    }
    places = dict.fromkeys((row, column) for row, column, _ in cells)
    return [
        teacher(
            row.rpartition("-")[2],
            c,
            cells[row, c, METRICS[0]] + shift,
            cells[row, c, METRICS[1]],
            seed=seed,
        )
        for row, c in places
    ]


def selections(column="dataset=cifar10", seed=0):
    """A selection of three teachers and another: scores, and times drawn."""
    scores, times = [(1.0, 0.5, 0.0), (0.0, 0.5, 1.0)], [(2, 1, 0), (0, 0, 3)]
    return record(
        "fedsa",
        column,
        *(
            Measurement(metric, float(values[t][n]), f"selection={t + 1} teacher={n + 1}")
            for t in (0, 1)
            for n in (0, 1, 2)
            for metric, values in (("transferability", scores), ("selected", times))
        ),
        seed=seed,
        table="fedsa/figure4a",
    )
