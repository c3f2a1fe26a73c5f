"""FedSA: "Federated Selective Aggregation for Knowledge Amalgamation" (Xie et al., Chip 2023).

Its tables and the trial.
"""

from functools import partial

from fedtables.benchmarks.papers import shared
from fedtables.benchmarks.papers.fedsa_settings import (
    AXES,
    DATASETS,
    FEDSA,
    GRID,
    READINGS,
    ROWS,
    SETTINGS,
    TASKONOMY_AXES,
    TASKONOMY_ROWS,
)
from fedtables.benchmarks.tables.spec import Paper, Row, Scalar, Setting, Table, grid

_table = partial(Table, unit="percent", offered=READINGS)

# -- the trial: a small network, and teachers with images enough to have something to give ------------------------------

FEW = "fraction=0.01"

CHOSEN = "on a tenth of the target's unlabelled images, held out, and seed 7"
TRIAL_SETTINGS = (
    Setting("data.image_size", 16, "assumed", "so that runs can settle", smoke=8),
    Setting("private.name", "cifar100", "assumed", "real where ImageNet is absent"),
    Setting("partition.clients", 2, "assumed",
            f"of fifty classes and 25,000 images each. {CHOSEN}, Transfer leads Scratch by 10.2 and 7.9 points with 1 and 5 % of the labels; "
            "by 4.1 and 5.4 with five teachers of twenty classes, by 4.8 and 4.2 with ten of ten, by 5.6 and 2.4 with ten of ten and networks twice as wide"),
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


def _strategy(title: str, selection: str, weighting: str) -> tuple[str, dict[str, Scalar]]:
    return title, {"fedsa.selection": selection, "fedsa.weighting": weighting}


STRATEGIES = shared.variants("fedsa", {
    "fixed+unweighted": _strategy("Fixed + unweighted", "fixed", "equal"),
    "top-k+unweighted": _strategy("Top-K + unweighted", "top-k", "equal"),
    "top-k+positive-weighted": _strategy("Top-K + positive weighted", "top-k", "positive"),
    "top-k+negative-weighted": _strategy("Top-K + negative weighted", "top-k", "negative"),
    "least-k+positive-weighted": _strategy("Least-K + positive weighted", "least-k", "positive"),
    "random+positive-weighted": _strategy("Random + positive weighted", "random", "positive"),
})  # fmt: skip

[FINE_TUNED] = shared.variants(
    "fedsa", {"fedsa-fine-tune": ("FedSA, all of it adapts", {"fedsa.adaptation": "fine-tune"})}
)

PAPER = Paper(
    key="fedsa",
    title="Federated Selective Aggregation for Knowledge Amalgamation",
    citation="D. Xie, R. Yu, G. Fang, et al. Chip 2023",
    settings=SETTINGS,
    released_code=True,
    seed_axes=("partition", "weights", "sampling", "shuffling"),
    tables=(
        _table(
            key="table1",
            caption="Accuracy of the target network on CIFAR-10 and CIFAR-100 by labelled share of each class, and by student",
            rows=ROWS,
            columns=GRID,
            axes=AXES,
        ),
        _table(
            key="table2",
            caption="Strategies of selection and aggregation",
            rows=(*STRATEGIES, FEDSA),
            columns=GRID,
            axes=AXES,
        ),
        Table(
            key="table3",
            caption="Linear transfer accuracy of the frozen teachers, and the similarity of their saliency to the target network's",
            rows=tuple(
                Row(
                    f"teacher-{n}",
                    "transfer",
                    f"Teacher {n}",
                    upper_bound=True,
                    config={"transfer.teacher": n, "transfer.frozen": True},
                )
                for n in range(1, 11)
            ),
            columns=grid(dataset=DATASETS),
            axes={"dataset": "data.name"},
            fixed={"evaluation.selecting": "fedsa"},
            measure="transferability",
            metrics=("transfer-accuracy", "saliency-similarity"),
            unit="percent",
            own="",
        ),
        _table(
            key="table4",
            caption="Target networks amalgamated from teachers of other tasks (Taskonomy)",
            rows=TASKONOMY_ROWS,
            columns=grid(dataset=("taskonomy",), task=("classification", "segmentation")),
            axes=TASKONOMY_AXES,
            metrics=("accuracy", "miou"),
        ),
        _table(
            key="figure3",
            caption="Semantic segmentation of four test images (Taskonomy), by the networks of Table 4",
            rows=TASKONOMY_ROWS,
            columns=({"dataset": "taskonomy", "task": "segmentation"},),
            axes=TASKONOMY_AXES,
            measure="segmentations",
            metrics=("miou",),
            unit="",
        ),
        _table(
            key="figure4a",
            caption="Transferability of the teachers at each selection, and how often each was drawn",
            rows=(FEDSA,),
            columns=grid(dataset=DATASETS),
            axes={"dataset": "data.name"},
            measure="selection",
            metrics=("transferability", "selected"),
            unit="",
        ),
        _table(
            key="figure4b",
            title="Figure 4b, c",
            caption="Accuracy against the number of selected teachers",
            rows=(FEDSA,),
            columns=grid(dataset=DATASETS, k=("1", "2", "3", "4", "5")),
            axes={"dataset": "data.name", "k": "fedsa.selected"},
            x_axis="k",
        ),
        _table(
            key="trial",
            caption="CIFAR-10 at 16 pixels by labelled share of each class, with two teachers of 50 classes of CIFAR-100 each",
            rows=(*ROWS, FINE_TUNED),
            columns=grid(fraction=("0.01", "0.05")),
            axes={"fraction": "partition.probe_share"},
            fixed={"data.name": "cifar10"},
            measure="teachers",
            settings=TRIAL_SETTINGS,
        ),
    ),
)
