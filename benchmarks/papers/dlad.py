"""DLAD: "Adaptive Distillation for Decentralized Learning from Heterogeneous Clients" (Ma et al., ICPR 2020).

The authors released no code; what the text leaves open is marked `assumed`, with the reason.
"""

from functools import partial

from fedtables.benchmarks.papers.shared import PRIVACY
from fedtables.benchmarks.tables.spec import Paper, Row, Scalar, Setting, Table, as_class, grid

DISTRIBUTIONS = ("iid", "niid1", "niid2", "niid3")
MIXED = "resnet+densenet"
LONG = "table=table2|figure2"

CLIENTS = tuple(
    Row(f"client-{kind}", "standalone", title, role=kind, needs=("network.client", kind))
    for kind, title in (("resnet", "Client (ResNet)"), ("densenet", "Client (DenseNet)"))
)
ROWS = (
    *CLIENTS,
    Row("global-avg", "average-distillation", "Global (avg.)"),
    Row("global-labeled", "labeled-distillation", "Global (labeled)", upper_bound=True),
    Row("global-dlad", "dlad", "Global (DLAD)"),
)

AXES = {
    "dataset": "data.name",
    "distribution": "partition.kind",
    "clients": "partition.clients",
    "client-model": "network.client",
    "global-model": "network.server",
}

RESNETS: dict[str, Scalar] = {
    "partition.clients": 10,
    "network.client": "resnet",
    "network.server": "resnet",
}

SETTINGS = (
    Setting("data.image_size", {"dataset=mnist": 28, "": 32}, "assumed",
            "the data set's own size; the text does not say whether images were enlarged for ImageNet weights",
            cpu={"dataset=mnist": 28, "": 16}, smoke=8),
    Setting("partition.public_share", 0.8, "paper", "V-A: 80 % of the training set is X_dist, 20 % the client pool"),
    Setting("partition.public_split", {"dataset=cinic10": "valid", "": ""}, "paper",
            "V-A: CINIC-10's validation set is X_dist, its training set the pool"),
    Setting("partition.client_share", {"dataset=cinic10": 20_000 / 90_000, "": 0.5}, "paper",
            "V-A: |D_i| is half the pool (6,000 and 5,000), 20,000 of 90,000 for CINIC-10, duplicates allowed; "
            "drawn with replacement inside each class, since NIID1 asks for more of a class than the pool holds"),
    Setting("partition.public_limit", 0, "paper", "V-A: all of X_dist (0 means no limit)",
            cpu={"dataset=mnist": 0, "": 8000}, smoke=800, gpu=4_000),
    Setting("partition.pool_limit", 0, "paper", "V-A: all of the pool (0 means no limit)",
            cpu={"dataset=cinic10": 10_000, "": 0}, smoke=800),
    Setting("partition.test_limit", 0, "paper", "V-C: the data set's test split (0 means no limit)",
            cpu={"dataset=mnist": 0, "": 4000}, gpu=4_000),
    Setting("network.resnet", "resnet18", "paper", "V-B; small-image stem below 64 pixels is ours",
            cpu={"dataset=mnist": "cnn", "": "resnet8-narrow"}, smoke="cnn-small"),
    Setting("network.densenet", "densenet121", "assumed", "V-B says DenseNet; 121 layers is the usual one",
            cpu="densenet-small", smoke="densenet-tiny"),
    Setting("network.pretrained", "imagenet", "paper", "V-B: weights pre-trained on ImageNet", cpu="none", smoke="none"),
    Setting("local.optimizer", "adam", "paper", "V-B"),
    Setting("local.lr", 1e-3, "paper", "V-B", smoke=3e-3),
    Setting("local.batch_size", 250, "paper", "V-B", cpu=100, smoke=25),
    Setting("local.epochs", 50, "paper",
            "V-B. At cpu IID columns were cut short after 8 and 12. After 32 and 48, on held-out images and seed 7, CIFAR-10's is at 0.54 to "
            "0.55, CINIC-10's at 0.48 to 0.50. The other tables keep 8 and 12: they would take four times as long",
            cpu={"dataset=mnist": 6, LONG: 32, "": 8}, smoke={"dataset=cifar10": 8, "": 12}, gpu={"table=figure2": 5, "dataset=cinic10": 1, "": 4}),
    Setting("dlad.classifier_epochs", 20, "paper", "V-B", cpu=3, smoke=3, gpu=1),
    *as_class("dlad", "client_weight temperature"),
    Setting("server.optimizer", "adam", "paper", "V-B: the same optimisation"),
    Setting("server.lr", 1e-3, "paper", "V-B", smoke=3e-3),
    Setting("server.batch_size", 250, "paper", "V-B", cpu=100, smoke=50),
    Setting("server.epochs", 100, "paper", "V-B; see local.epochs", cpu={"dataset=mnist": 6, LONG: 48, "": 12}, smoke=8, gpu=5),
    Setting("augmentation.rotation", 20, "paper", "V-B, degrees", cpu={"dataset=mnist": 0, "": 10}, smoke=0),
    Setting("augmentation.shift", 0.2, "paper", "V-B, of width and of height", cpu={"dataset=mnist": 0, "": 0.1}, smoke=0),
    Setting("augmentation.channel_shift", 0.2, "assumed", "V-B gives 0.2 without a unit; read as a fraction of the pixel range",
            cpu={"dataset=mnist": 0, "": 0.1}, smoke=0),
    Setting("augmentation.horizontal_flip", True, "paper", "V-B, as written also for MNIST",
            cpu={"dataset=mnist": False, "": True}, smoke=False),
    Setting("evaluation.last_epochs", 10, "paper", "V-D: median test accuracy of the last ten epochs", cpu=3, smoke=3, gpu=1),
)  # fmt: skip

# -- the trial: the paper's schedule, which `cpu` affords with a small network and fewer samples ------------------------

TRIAL_SETTINGS = (
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

_table = partial(Table, axes=AXES)

PAPER = Paper(
    key="dlad",
    title="DLAD: Adaptive Distillation for Decentralized Learning from Heterogeneous Clients",
    citation="J. Ma, R. Yonetani, Z. Iqbal. ICPR 2020",
    settings=(*SETTINGS, *PRIVACY),
    released_code=False,
    seed_axes=("partition", "weights", "shuffling"),
    tables=(
        Table(
            key="table1",
            title="Table I",
            caption="The classes accessible by clients under different data distribution types",
            rows=(
                Row("iid", "standalone", "IID", config={"partition.kind": "iid"}),
                Row("niid1", "standalone", "Non-IID #1", config={"partition.kind": "niid1"}),
                Row("niid2", "standalone", "Non-IID #2", config={"partition.kind": "niid2"}),
                Row("niid3", "standalone", "Non-IID #3", config={"partition.kind": "niid3"}),
            ),
            columns=tuple({"client": f"5n+{k}"} for k in range(1, 6)),
            axes={"client": "partition.slot"},
            fixed={"data.name": "mnist", **RESNETS},
            measure="classes",
            metrics=("classes",),
        ),
        _table(
            key="table2",
            title="Table II",
            caption="Accuracy under different data sets and distributions (N = 10, ResNet for all models)",
            rows=ROWS,
            columns=grid(dataset=("mnist", "cifar10", "cinic10"), distribution=DISTRIBUTIONS),
            fixed=RESNETS,
        ),
        _table(
            key="table3",
            title="Table III",
            caption="Accuracy under different model architectures (N = 10, CIFAR-10, Non-IID #1)",
            rows=ROWS,
            columns=grid(**{"client-model": ("resnet", "densenet", MIXED), "global-model": ("resnet", "densenet")}),
            fixed={"data.name": "cifar10", "partition.kind": "niid1", "partition.clients": 10},
        ),
        _table(
            key="table4",
            title="Table IV",
            caption="Accuracy with increasing number of clients N (CIFAR-10, ResNet for the global model)",
            rows=ROWS,
            columns=tuple(
                {"clients": n, "client-model": model, "distribution": distribution}
                for distribution in ("niid1", "niid2", "niid3")
                for model in ("resnet", "densenet", MIXED)
                for n in ("5", "10", "20", "30")
                if (n, model) != ("5", MIXED)
            ),
            fixed={"data.name": "cifar10", "network.server": "resnet"},
            x_axis="clients",
        ),
        _table(
            key="figure2",
            caption="Accuracy by epoch on CINIC-10: clients, then the global model (N = 10)",
            rows=(CLIENTS[0], *ROWS[2:]),
            columns=grid(distribution=DISTRIBUTIONS),
            fixed={"data.name": "cinic10", **RESNETS},
            measure="curve",
            x_axis="epoch",
        ),
        _table(
            key="trial",
            caption="MNIST at the paper's schedule (N = 10)",
            rows=ROWS,
            columns=grid(distribution=DISTRIBUTIONS),
            fixed={"data.name": "mnist", **RESNETS},
            settings=TRIAL_SETTINGS,
        ),
    ),
)  # fmt: skip
