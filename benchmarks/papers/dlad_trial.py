"""DLAD's trial: MNIST at the paper's schedule, which `cpu` affords with a small network and fewer samples."""

from collections.abc import Mapping

from benchmarks.tables.spec import Expectation, Row, Setting, Table, grid

SETTINGS = (
    Setting("data.image_size", 28, "assumed", "the data set's own size; half of it at cpu, so that the schedule can be kept",
            cpu=14, smoke=8),
    Setting("partition.client_share", 0.5, "paper", "V-A: |D_i| is half the pool, 6,000; at cpu 4,000, of the whole pool of 12,000",
            cpu=1 / 3),
    Setting("partition.public_limit", 0, "paper", "V-A: all of X_dist, 48,000 (0 means no limit)", cpu=16_000, smoke=800),
    Setting("partition.test_limit", 0, "paper", "V-C: the data set's test split (0 means no limit)", cpu=4_000),
    Setting("network.resnet", "resnet18", "paper", "V-B; small-image stem below 64 pixels is ours", cpu="cnn-small", smoke="cnn-small"),
    Setting("local.batch_size", 250, "paper", "V-B", smoke=25),
    Setting("local.epochs", 50, "paper", "V-B", smoke=12),
    Setting("dlad.classifier_epochs", 20, "paper", "V-B", smoke=3),
    Setting("server.batch_size", 250, "paper", "V-B", smoke=50),
    Setting("server.epochs", 100, "paper", "V-B", smoke=8),
    Setting("evaluation.last_epochs", 10, "paper", "V-D: median test accuracy of the last ten epochs", smoke=3),
)  # fmt: skip

EXPECTATIONS = (
    Expectation(
        "dlad-trial-a",
        "Clients, Global (labeled) and Global (DLAD) are within 0.01 of Table II",
        "abs(accuracy[$row] - print:table2:accuracy[$row @ dataset=mnist]) <= 0.01 "
        "for all row in (client-resnet,global-labeled,global-dlad) and distribution",
        ("dlad-t2-d", "dlad-t2-e", "dlad-t2-f", "dlad-t2-i"),
    ),
    Expectation(
        "dlad-trial-b",
        "DLAD is above plain averaging wherever clients lack classes",
        "accuracy[global-dlad] > accuracy[global-avg] for all distribution in (niid1,niid2,niid3)",
        ("dlad-t2-a",),
    ),
)


def trial(rows: tuple[Row, ...], distributions: tuple[str, ...], axes: Mapping[str, str]) -> Table:
    """The trial of the rows of Table II."""
    return Table(
        key="trial",
        title="Trial",
        caption="MNIST at the paper's schedule (N = 10)",
        rows=rows,
        columns=grid(distribution=distributions),
        axes=axes,
        fixed={
            "data.name": "mnist", "partition.clients": 10, "network.client": "resnet", "network.server": "resnet",
        },
        settings=SETTINGS,
        expectations=EXPECTATIONS,
    )  # fmt: skip
