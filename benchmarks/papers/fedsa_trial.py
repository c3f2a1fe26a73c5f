"""FedSA's trial: a small network, and teachers with images enough to have something to give."""

from benchmarks.tables.spec import Expectation, Row, Setting, Table, grid

FEW = "fraction=0.01"
SEMI_SUPERVISED = "(pseudo-label,noisy-student,fixmatch,meta-pseudo-labels)"

CHOSEN = "on a tenth of the target's unlabelled images, held out, and seed 7"

SETTINGS = (
    Setting("data.image_size", 16, "assumed", "so that runs can settle", smoke=8),
    Setting("private.name", "cifar100", "assumed",
            "real where ImageNet is absent: each of ten teachers has ten classes and 5,000 images"),
    Setting("network.client", "resnet8-narrow", "assumed", "a small network for small images"),
    Setting("network.server", "resnet8-narrow", "assumed", "as the teachers"),
    Setting("local.epochs", 20, "assumed", "teachers", smoke=4),
    Setting("server.epochs", {FEW: 120, "": 60}, "assumed", "Scratch and Transfer", smoke=14),
    Setting("augmentation.crop", 2, "assumed", "pixels of padding", smoke=1),
    *(
        Setting(f"{name}.{field}", value, "assumed", where, smoke=smoke)
        for name in ("fedsa", "fedavg-plus", "fedprox-plus")
        for field, value, where, smoke in (
            ("rounds", 16, f"T; {CHOSEN}: FedSA has no more after 32, and FedAvg+ none beyond what it moves from look to look", 2),
            ("local_epochs", 1, "E", 1),
            ("local_lr", {"protocol=released": 0.1, "": 1e-3}, "of 1e-3 and 1e-4 the better for FedAvg+ on 3,000 unlabelled training images and seed 7; the released script's 0.1", None),
            ("weak_epochs", {FEW: 20, "": 10}, "on the probe set before a selection; else before the first round", 5),
            ("adaptation_epochs", {f"method=fedsa {FEW}": 80, "method=fedsa": 40, FEW: 100, "": 50},
             "as many epochs of the probe set in all as Scratch, with those before two selections of FedSA's", {"method=fedsa": 4, "": 9}),
            ("adaptation_gap", 4, "looks, so that the record tells whether a run has settled", 1),
        )
    ),
    Setting("fedsa.selection_gap", 2, "assumed", "E_g", smoke=1),
    Setting("fedmd-plus.rounds", 20, "code", "FedMD's code", smoke=2),
    Setting("fedmd-plus.revisit_epochs", {FEW: 6, "": 3}, "assumed", "as many epochs of the probe set in all as Scratch", smoke=7),
    *(
        Setting(f"{name}.{field}", value, "assumed", where, smoke=smoke)
        for name, field, value, where, smoke in (
            ("pseudo-label", "steps", 3_000, f"ten times cpu's in the paper's tables; {CHOSEN}: 42.7 and 56.5 %", 60),
            ("pseudo-label", "interval", 150, "twenty looks", 60),
            ("pseudo-label", "ramp_start", 300, "T_1, as long a part of the steps as there", 6),
            ("pseudo-label", "ramp_end", 1_800, "T_2, the same", 36),
            ("noisy-student", "steps", 1_800, f"of each of four networks; {CHOSEN}, 5 %: 48.4, and 38.3 of 600", 25),
            ("fixmatch", "steps", 2_400, f"as Pseudo-Label's; {CHOSEN}: 45.5 and 58.1 %", 60),
            ("fixmatch", "interval", 120, "twenty looks", 60),
            ("meta-pseudo-labels", "steps", 3_000, f"as Pseudo-Label's; {CHOSEN}: 47.7 and 57.5 %", 30),
            ("meta-pseudo-labels", "interval", 150, "twenty looks", 30),
            ("meta-pseudo-labels", "student_wait", 300, "as long a part of the steps as in the paper's tables", 2),
            ("meta-pseudo-labels", "ramp", 500, "the same", 4),
        )
    ),
)  # fmt: skip

EXPECTATIONS = (
    Expectation(
        "fedsa-trial-a",
        "Teachers have something to give: Transfer is at least 5 points above Scratch with 1 % of the labels",
        "accuracy[transfer @ fraction=0.01] >= accuracy[scratch @ fraction=0.01] + 5",
        ("fedsa-t1-f",),
    ),
    Expectation(
        "fedsa-trial-b",
        "FedSA is above Scratch",
        "accuracy[fedsa] > accuracy[scratch] for all fraction",
        ("fedsa-t1-a", "fedsa-t1-f"),
    ),
    Expectation(
        "fedsa-trial-c",
        "FedSA is above the semi-supervised methods, which are below FedAvg+ and FedMD+",
        f"accuracy[fedsa] > accuracy[$row] for all row in {SEMI_SUPERVISED} and fraction"
        f" ; accuracy[$row] < min(accuracy[fedavg+|fedmd+]) for all row in {SEMI_SUPERVISED} and fraction",
        ("fedsa-t1-a", "fedsa-t1-c"),
    ),
    Expectation(
        "fedsa-trial-d",
        "FedSA is above FedAvg+, FedMD+ and FedProx+, and the first two are within 5 points of it",
        "accuracy[fedsa] > max(accuracy[fedavg+|fedmd+|fedprox+]) for all fraction"
        " ; accuracy[fedsa] - accuracy[$row] <= 5 for all row in (fedavg+,fedmd+) and fraction",
        ("fedsa-t1-a", "fedsa-t1-d"),
    ),
)


def trial(rows: tuple[Row, ...], offered: tuple[Row, ...]) -> Table:
    """The trial of the rows of Table 1."""
    return Table(
        key="trial",
        title="Trial",
        caption="CIFAR-10 at 16 pixels by labelled share of each class, with ten teachers on CIFAR-100",
        rows=rows,
        columns=grid(fraction=("0.01", "0.05")),
        axes={"fraction": "partition.probe_share"},
        fixed={"data.name": "cifar10"},
        measure="teachers",
        unit="percent",
        offered=offered,
        settings=SETTINGS,
        expectations=EXPECTATIONS,
    )
