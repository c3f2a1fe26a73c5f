"""FedIOD's trial: digits and a network small enough that the second stage can be run until it
settles, for what the paper claims of FedIOD in general.
"""

from dataclasses import replace

from benchmarks.tables.spec import Expectation, Row, Setting, Table, grid

BUDGETS = ("3.5", "6.0", "7.7", "10.0", "30.0", "100.0")
PRIVATE = tuple(f"epsilon={epsilon}" for epsilon in BUDGETS)
NO_PUBLIC = "method=standalone|centralized|fedavg|fedprox|fedavgm|fedgen|fediod"
OUT_OF_DOMAIN = "feddf|fedmd|fedkd"

ABLATION = (
    Row("common", "fediod", "FedIOD, common weights", config={"fediod.weights": "size"}),
    Row("average", "fediod", "FedIOD, Eq. 2 unweighted", config={"fediod.gan_weights": "average"}),
    Row("no-mimic", "fediod", "FedIOD, G without L_mimic", config={"fediod.mimic": 0.0}),
)

SETTINGS = (
    Setting("data.image_size", 16, "assumed", "so that the schedule can be kept; the paper has no digits", smoke=8),
    Setting("public.name", {NO_PUBLIC: "", "": "cifar100-grey"}, "assumed", "of another domain"),
    Setting("partition.clients", {"private=yes": 20, "": 10}, "assumed", "with privacy the paper's K; ten hold samples enough",
            smoke={"private=yes": 20, "": 4}),
    Setting("partition.pool_limit", 0, "assumed", "all training samples (0 means no limit)",
            cpu={"private=yes": 0, "": 10_000}, smoke=600),
    Setting("network.client", "cnn-small", "assumed", "a small network for small images"),
    Setting("network.server", "cnn-small", "assumed", "the same"),
    Setting("augmentation.horizontal_flip", False, "assumed", "digits are not their mirror images"),
    Setting("augmentation.crop", 2, "assumed", "pixels of padding", smoke=1),
    Setting("augmentation.cutout", 0, "assumed", "none on images so small"),
)  # fmt: skip

EXPECTATIONS = (
    Expectation(
        "fediod-trial-a",
        "FedIOD ends at least 20 points above the mean local model at alpha = 0.1",
        "accuracy[fediod @ alpha=0.1 epsilon=inf] >= accuracy[standalone @ alpha=0.1 epsilon=inf] + 20",
        ("fediod-t1-g",),
    ),
    Expectation(
        "fediod-trial-b",
        "FedIOD is above the methods that learn from public data of another domain",
        "accuracy[fediod @ epsilon=inf] > accuracy[$row @ epsilon=inf] "
        f"for all row in ({OUT_OF_DOMAIN.replace('|', ',')}) and alpha",
        ("fediod-t1-c",),
    ),
    Expectation(
        "fediod-trial-c",
        "The weights of Eq. 8 are better than common ones, those of Eq. 2 than none, and L_mimic helps G",
        "accuracy[fediod @ epsilon=inf] > accuracy[$row @ epsilon=inf] "
        "for all row in (common,average,no-mimic) and alpha",
        ("fediod-t6-a", "fediod-t6-b", "fediod-t6-f"),
    ),
    Expectation(
        "fediod-trial-d",
        "With privacy FedIOD rises with epsilon, and is 10 points above chance by epsilon = 30",
        "accuracy[fediod @ epsilon=100.0] > accuracy[fediod @ epsilon=3.5] for all alpha in (1)"
        " ; accuracy[fediod @ epsilon=30.0] >= 20 for all alpha in (1)",
        ("fediod-t5-e",),
    ),
)


def trial(rows: tuple[Row, ...], centralized: Row) -> Table:
    """The trial of the rows of Table 1, beside an upper bound and FedIOD's ablation; with privacy
    FedIOD alone.
    """
    return Table(
        key="trial",
        title="Trial",
        caption="Digits (MNIST at 16 pixels), run until it settles; with privacy among twenty clients",
        rows=tuple(
            row if row.key == "fediod" else replace(row, absent=PRIVATE)
            for row in (centralized, *ABLATION, *rows)
        ),
        columns=(
            *grid(alpha=("1", "0.1"), epsilon=("inf",)),
            *grid(alpha=("1",), epsilon=BUDGETS),
        ),
        axes={"alpha": "partition.alpha", "epsilon": "privacy.epsilon"},
        fixed={"data.name": "mnist"},
        unit="percent",
        released=False,
        settings=SETTINGS,
        expectations=EXPECTATIONS,
    )
