"""The league: every method that learns a global classifier, under the same conditions and with the same budget.

No paper prints these tables. What is the same for all rows of a column: the clients and their samples, the networks, the
samples that networks learn from (`budget.samples`, clients and server together), and the number of trials by which settings
were chosen. A row's length in rounds or epochs follows from the budget.
"""

from dataclasses import replace

from benchmarks.papers.private import PRIVACY
from benchmarks.tables.spec import HELD_OUT, Paper, Row, Setting, Table, grid

IN_DOMAIN, OUT_OF_DOMAIN = "public=in", "public=out"
WITHOUT = (IN_DOMAIN, OUT_OF_DOMAIN)
"""Columns of rows that use no public images: none, so that each of their runs counts once."""
WITH = ("public=none",)
MIXED = "networks=mixed"

BOUNDS = (
    Row("centralized", "centralized", "Centralized", upper_bound=True, absent=WITHOUT),
    Row(
        "public-only",
        "public-only",
        "Public labels only",
        upper_bound=True,
        absent=("public=none|out",),
    ),
)
ALONE = Row("standalone", "standalone", "Standalone", absent=WITHOUT)
AVERAGING = (
    Row("fedavg", "fedavg", "FedAvg", absent=WITHOUT),
    Row("fedprox", "fedprox", "FedProx", absent=WITHOUT),
    Row("fedavgm", "fedavgm", "FedAvgM", absent=WITHOUT),
    Row("fedgen", "fedgen", "FedGEN", absent=WITHOUT),
)
FEDIOD = Row("fediod", "fediod", "FedIOD", absent=WITHOUT)
FEDDF = Row("feddf", "feddf", "FedDF", absent=WITH)
ANSWERING = (
    Row("fedmd", "fedmd", "FedMD", absent=WITH),
    Row("fedkd", "fedkd", "FedKD, one-shot", config={"fedkd.multi_round": False}, absent=WITH),
    Row(
        "fedkd-online",
        "fedkd",
        "FedKD, multi-round",
        config={"fedkd.multi_round": True},
        absent=WITH,
    ),
    Row("dlad", "dlad", "DLAD", absent=WITH),
    Row("fedad", "fedad", "FedAD", absent=WITH),
)
ROWS = (*BOUNDS, ALONE, *AVERAGING, FEDIOD, FEDDF, *ANSWERING)

MNIST = "dataset=mnist"
AVERAGED = "method=fedavg|fedprox|fedavgm|fedgen|feddf"
PUBLIC = ("none", "in", "out")
TRIED = "cpu, MNIST: the best of its trials (mnist-trials, without noise); else not tried"
OWN_TRIALS = "cpu: the best of its trials (privacy-trials)"
LOCAL_RATE = {f"{MNIST} method=fedavgm|fedgen|feddf": 0.1, MNIST: 0.03, AVERAGED: 0.1, "": 0.05}
SERVER_RATE = {
    f"{MNIST} row=fedkd-online": 3e-3,
    f"{MNIST} method=fedad": 3e-3,
    MNIST: 1e-2,
    "": 1e-3,
}
FEDIOD_RATE = {MNIST: 1e-2, "": 3e-3}
METRICS = (
    "accuracy",
    "weakest-clients-accuracy",
    "corrupted-accuracy",
    "rounds-to-end",
    "megabytes-up",
    "megabytes-down",
    "client-teraflops",
    "server-teraflops",
    "peak-megabytes",
)

SETTINGS = (
    Setting("data.image_size", 32, "assumed", "CIFAR's own size", cpu=16, smoke=8),
    Setting("budget.samples", 20_000_000, "assumed",
            "that networks learn from, of clients and server together, each time that one passes through a network",
            cpu={MNIST: 600_000, "": 500_000}, smoke=8_000),
    Setting("partition.kind", {"distribution=niid1": "niid1", "": "dirichlet-fedkd"}, "assumed",
            "by class with Dirichlet proportions; niid1: DLAD's, two classes a client"),
    Setting("partition.alpha", {"distribution=dirichlet-0.1": 0.1, "distribution=dirichlet-1": 1.0, "": 1e6}, "assumed",
            "IID: so large that every client has its tenth of each class"),
    Setting("partition.clients", 10, "assumed", "as in DLAD; half of FedIOD's"),
    Setting("partition.client_share", 0.1, "assumed", "niid1: as much as a tenth of the pool, drawn by class"),
    Setting("partition.public_share", 0.2, "assumed", "of the training split, for every row, so that all have the same clients"),
    Setting("partition.public_split", "", "assumed", "the training split"),
    Setting("partition.public_limit", 0, "assumed", "all of them (0 means no limit)", cpu=5_000, smoke=300),
    Setting("partition.pool_limit", 0, "assumed", "of all clients together (0 means no limit)", cpu=10_000, smoke=600),
    Setting("partition.validation_share", 0.1, "assumed",
            "of the pool: the server's, for every row; FedDF stops early by it, and learning rates were chosen by it"),
    Setting("partition.test_limit", 0, "assumed", "the whole test split (0 means no limit)", cpu=2_000, smoke=300),
    Setting("public.name", {
        "public=none": "", IN_DOMAIN: HELD_OUT, MNIST: "cifar100-grey", "dataset=cifar10": "cifar100", "": "cifar10"},
        "assumed", "in-domain: what is held out of the training split; out of domain: images of other classes"),
    Setting("network.client", {MIXED: "cnn-small+cnn", MNIST: "cnn", "": "resnet8-narrow"}, "assumed",
            "small, so that budgets are long enough; of two widths in turn where networks are mixed",
            cpu={MIXED: "cnn-small+cnn", MNIST: "cnn-small", "": "resnet8-narrow"},
            smoke={MIXED: "cnn-small+cnn", "": "cnn-small"}),
    Setting("network.server", {MNIST: "cnn", "": "resnet8-narrow"}, "assumed", "as the clients'",
            cpu={MNIST: "cnn-small", "": "resnet8-narrow"}, smoke="cnn-small"),
    Setting("network.pretrained", "none", "assumed", "random weights"),
    Setting("local.optimizer", "sgd", "assumed", "the averaging methods' own"),
    Setting("local.momentum", {AVERAGED: 0.0, "": 0.9}, "assumed", "a round's steps of what averages parameters have none"),
    Setting("local.schedule", {AVERAGED: "constant", "method=fedmd": "constant", "": "cosine"}, "assumed",
            "constant where local training is in rounds"),
    Setting("local.lr", {AVERAGED: 0.1, "": 0.05}, "assumed", TRIED, cpu=LOCAL_RATE),
    Setting("local.batch_size", 64, "assumed", "", cpu=32, smoke=32),
    Setting("local.epochs", {AVERAGED: 2, "": 40}, "assumed",
            "averaging methods: in a round; others: before their last stage, or as long as the budget has it",
            cpu={AVERAGED: 2, MNIST: 30, "": 20}, smoke={AVERAGED: 1, "": 4}),
    Setting("server.optimizer", "adam", "assumed", "of the global network where it learns from outputs"),
    Setting("server.lr", 1e-3, "assumed", TRIED, cpu=SERVER_RATE),
    Setting("server.batch_size", 128, "assumed", "", smoke=32),
    Setting("server.schedule", {"row=fedkd-online": "constant", "": "cosine"}, "assumed", "constant where it learns in rounds"),
    Setting("server.epochs", 20, "assumed", "FedMD's global network, on the last consensus; others: as long as the budget has it",
            smoke=4),
    Setting("augmentation.crop", {MNIST: 2, "": 4}, "assumed", "pixels of padding", cpu={MNIST: 1, "": 2}, smoke=1),
    Setting("augmentation.horizontal_flip", {MNIST: False, "": True}, "assumed", "digits are not their mirror images"),
    *(
        Setting(f"{name}.{field}", value, "assumed", where)
        for name in ("fedavg", "fedprox", "fedavgm", "fedgen", "feddf")
        for field, value, where in (
            ("rounds", 100, "as many as the budget allows"),
            ("participation", 0.4, "of the clients in a round; FedDF's text"),
        )
    ),
    Setting("fedgen.generator_steps", 50, "assumed", "in a round; FedGEN's code", smoke=5),
    Setting("fedprox.mu", 0.01, "assumed", "FedProx's authors tune it"),
    Setting("fedavgm.server_momentum", 0.9, "assumed", "Hsu et al. 2019"),
    Setting("fedavgm.server_lr", 0.1, "assumed", "at 1 ten updates add up; chosen in FedIOD's trial on held-out digits"),
    *(
        Setting(f"fedgen.generative_{name}", 1.0, "assumed", "FedGEN's code has 10, which leaves it at chance in FedIOD's trial")
        for name in ("alpha", "beta")
    ),
    Setting("feddf.distillation_steps", 1_000, "assumed", "in a round, at most; FedDF's code has 10,000", cpu=50, smoke=8),
    Setting("feddf.distillation_lr", 1e-3, "assumed", "FedDF's code; its trials are of the rate of its family's local training"),
    Setting("feddf.evaluation_interval", 100, "assumed", "FedDF's code", cpu=25, smoke=4),
    Setting("feddf.patience", 1_000, "assumed", "steps without a gain: never, for all have the same budget", cpu=50, smoke=8),
    Setting("fedmd.rounds", 20, "assumed", "as many as the budget allows"),
    Setting("fedmd.public_samples", 5_000, "assumed", "FedMD's code", cpu=1_000, smoke=100),
    Setting("fedmd.digest_lr", 1e-3, "assumed", TRIED, cpu={MNIST: 1e-2, "": 1e-3}),
    Setting("fedmd.digest_batch_size", 128, "assumed", "FedMD's code has 256", smoke=32),
    Setting("fedmd.revisit_epochs", 1, "assumed", "FedMD's code has 4"),
    Setting("dlad.classifier_epochs", 20, "assumed", "DLAD, V-B", cpu=2, smoke=1),
    Setting("fedad.one_shot", True, "assumed", "clients answer once"),
    Setting("fediod.epochs", 300, "assumed", "as many as the budget allows"),
    Setting("fediod.steps", 0, "assumed", "as many in an epoch as the largest client has batches", cpu=10, smoke=1),
    Setting("fediod.batch_size", 64, "assumed", "FedIOD's appendix", cpu=32, smoke=16),
    Setting("fediod.width", 64, "assumed", "FedIOD's code", cpu=32, smoke=8),
    Setting("fediod.discriminator_width", 128, "assumed", "FedIOD's code", cpu=32, smoke=8),
    Setting("fediod.lr", 1e-3, "assumed", TRIED, cpu=FEDIOD_RATE),
    Setting("fediod.generator_lr", 1e-3, "assumed", "FedIOD's appendix", cpu=2e-3),
    Setting("fediod.mimic", 1.0, "assumed", "Eq. 11; FedIOD's own page says what cpu has", cpu=2e-3),
    Setting("fediod.confidence", 1.0, "assumed", "Eq. 11", cpu=0.1),
    Setting("fediod.uniqueness", 1.0, "assumed", "Eq. 11", cpu=0.1),
    Setting("fediod.samples", 2_000, "assumed", "images of its generator, for the table of leakage", smoke=64),
    Setting("attack.network", {MNIST: "cnn-small", "": "resnet8-narrow"}, "assumed", "with its initial weights, as in the first round"),
    Setting("attack.clients", 5, "assumed", "among those that hold twice attack.images", smoke=2),
    Setting("attack.images", 24, "assumed", "private images of a client that are attacked", smoke=8),
    Setting("attack.shares", "gradient", "assumed", "or an update of several local steps"),
    Setting("attack.batch_size", 1, "assumed", "images behind a gradient, or behind a step of an update"),
    Setting("attack.local_steps", 1, "assumed", "behind an update"),
    Setting("attack.batch_norm", "eval", "assumed", "Inverting Gradients' released code"),
    Setting("attack.iterations", 4_800, "assumed", "Inverting Gradients' released code", cpu=600, smoke=20),
    Setting("attack.restarts", 1, "assumed", "starts at most"),
    Setting("evaluation.last_epochs", 1, "assumed", "accuracy at the end"),
)  # fmt: skip


def _table(
    dataset: str, title: str, distributions: tuple[str, ...], public: tuple[str, ...] = PUBLIC
) -> Table:
    return Table(
        key=dataset,
        title=title,
        caption=f"Methods on equal terms: {title}, the same clients, networks and budget",
        rows=ROWS,
        columns=grid(distribution=distributions, public=public),
        axes={"dataset": "data.name", "distribution": "", "public": ""},
        fixed={"data.name": dataset},
        measure="scorecard",
        metrics=METRICS,
        unit="percent",
        own="",
    )


ANY_NETWORK = (ALONE, FEDIOD, *ANSWERING)
"""Rows whose clients' networks may differ."""


def _mixed(dataset: str, title: str) -> Table:
    return replace(
        _table(dataset, title, ()),
        key=f"{dataset}-mixed",
        title=f"{title}, networks of two widths",
        caption=f"Methods whose clients' networks may differ, on equal terms: {title}",
        rows=ANY_NETWORK,
        columns=grid(distribution=("dirichlet-1",), networks=("mixed",), public=PUBLIC),
        axes={"dataset": "data.name", "distribution": "", "networks": "", "public": ""},
    )


ON_VALIDATION = Setting("evaluation.on", "validation", "assumed", "the server's tenth of the pool")


def _numbered(rows: str, values: tuple[float, ...]) -> dict[str, float]:
    return {f"trial={number} {rows}": value for number, value in enumerate(values, 1)}


ONE_RATE = "method=centralized|standalone|fedavg|fedprox|fedavgm|fedgen|feddf"
OF_OUTPUTS = {"trial=1": 1e-3, "trial=3": 1e-2, "": 3e-3}
TRIED_RATES = {
    "local.lr": {**_numbered(ONE_RATE, (0.01, 0.03, 0.1, 0.3)), "trial=4": 0.01, "": 0.03},
    "server.lr": {**_numbered("method=public-only", (1e-3, 3e-3, 1e-2, 3e-2)), **OF_OUTPUTS},
    "fedmd.digest_lr": OF_OUTPUTS,
    "fediod.lr": OF_OUTPUTS,
}
"""Four for every row: of local training; of the server where it learns from public labels alone; or, where something learns
from outputs, 0.03 for local training beside three rates of that, and 0.01 beside the middle one. A plug-in has those of
the method that it derives from, else those of what learns from outputs.
"""


def _trials(dataset: str, title: str) -> Table:
    return Table(
        key=f"{dataset}-trials",
        title=f"{title}, trials",
        caption=f"Learning rates of the methods' four trials: {title}, on validation samples",
        rows=ROWS,
        columns=grid(
            distribution=("dirichlet-1",), public=("none", "in"), trial=("1", "2", "3", "4")
        ),
        axes={"dataset": "data.name", "distribution": "", "public": "", "trial": ""},
        preparatory=True,
        fixed={"data.name": dataset},
        unit="percent",
        own="",
        settings=(
            ON_VALIDATION,
            *(
                Setting(name, rates, "assumed", "four trials of every row")
                for name, rates in TRIED_RATES.items()
            ),
        ),
    )


PRIVATE = (
    Setting("budget.samples", 1_000_000, "assumed", "less than the other tables', since each step costs noise",
            cpu=120_000, smoke=12_000),
    Setting("local.epochs", {AVERAGED: 1, "": 5}, "assumed", "fewer steps, for the same reason"),
    Setting("server.epochs", 5, "assumed", "FedMD's global network, so that its budget has rounds", smoke=4),
    Setting("local.batch_size", 64, "assumed", "drawn anew for every step, each sample with the same probability", smoke=16),
    Setting("local.lr", {AVERAGED: 0.1, "": 0.05}, "assumed", OWN_TRIALS, cpu={
        "private=yes row=fedkd": 0.03, "private=yes method=fediod": 0.03,
        "epsilon=1 method=fedavgm|feddf": 0.3, "epsilon=1 method=standalone": 0.03, "epsilon=1 method=fedmd": 0.01, "epsilon=1": 0.1,
        f"private=yes {AVERAGED}": 1.0, "epsilon=4 method=standalone|fedmd": 0.1, "private=yes": 0.3,
        "method=standalone|feddf": 0.1, AVERAGED: 0.3, "": 0.03}),
    Setting("server.lr", 1e-3, "assumed", OWN_TRIALS, cpu={
        "epsilon=1 row=fedkd": 1e-3, "private=yes row=fedkd": 3e-4, "epsilon=10 method=fediod": 1e-3, "private=yes method=fediod": 3e-4,
        "private=yes method=fedad": 3e-3, "row=fedkd-online": 3e-3, "": 1e-2}),
    Setting("fediod.steps", 0, "assumed", "as many in an epoch as the largest client has batches", cpu=2, smoke=1),
    Setting("privacy.queries", 300, "assumed", OWN_TRIALS,
            cpu={"epsilon=1|4 row=fedkd": 60, "epsilon=10 method=fediod": 60, "": 300}, smoke=20),
    Setting("privacy.votes_share", 0.7, "assumed", "as in FedIOD's trial"),
)  # fmt: skip


PRIVATE_ANSWERING = tuple(
    replace(row, config={**row.config, "privacy.mechanism": "dp-sgd"})
    if row.key == "fedkd-online"
    else row
    for row in ANSWERING
    if row.method != "dlad"
)
"""PATE votes on an image once, so FedKD in rounds has teachers by DP-SGD. DLAD has no private form."""


EPSILONS = ("1", "4", "10", "inf")
PRIVATE_ROWS = (ALONE, *AVERAGING[:3], FEDIOD, FEDDF, *PRIVATE_ANSWERING)
"""Those that have a private form, each by the mechanism that it declares."""


def _private(dataset: str, title: str) -> Table:
    return Table(
        key="privacy",
        title=f"{title}, private",
        caption=f"Methods under differential privacy: {title}, delta = 1e-5",
        rows=PRIVATE_ROWS,
        columns=grid(distribution=("dirichlet-1",), public=("none", "in"), epsilon=EPSILONS),
        axes={
            "dataset": "data.name",
            "distribution": "",
            "public": "",
            "epsilon": "privacy.epsilon",
        },
        fixed={"data.name": dataset},
        unit="percent",
        x_axis="epsilon",
        own="",
        settings=PRIVATE,
    )


NOISY_TRIALS: dict[str, dict[str, float]] = {
    "local.lr": {
        "row=fedkd": 0.03,
        "method=fediod": 0.03,
        **_numbered(f"epsilon=1 {AVERAGED}", (0.1, 0.3, 1.0, 3.0)),
        **_numbered("epsilon=1", (0.01, 0.03, 0.1, 0.3)),
        **_numbered(AVERAGED, (0.3, 1.0, 3.0, 10.0)),
        **_numbered("", (0.03, 0.1, 0.3, 1.0)),
    },
    "server.lr": {
        **_numbered("row=fedkd", (3e-4, 1e-3, 3e-4, 1e-3)),
        **_numbered("method=fediod", (3e-4, 1e-3, 3e-4, 1e-3)),
        **SERVER_RATE,
    },
    "fedmd.digest_lr": {"": 1e-2},
    "fediod.lr": FEDIOD_RATE,
    "privacy.queries": {
        **_numbered("row=fedkd", (60, 60, 300, 300)),
        **_numbered("method=fediod", (60, 60, 300, 300)),
        "": 300,
    },
}
"""Four for every row, of what its mechanism disturbs: the rate of DP-SGD; where clients vote, the server's rate, by which a
network learns from the votes, and their number.
"""
NOISELESS_TRIALS: dict[str, dict[str, float]] = {
    **TRIED_RATES,
    "local.lr": {**_numbered(AVERAGED, (0.03, 0.1, 0.3, 1.0)), **TRIED_RATES["local.lr"]},
    "privacy.queries": {"": 300},
}
"""As in the other tables, with higher rates for what averages parameters, since rounds are fewer."""


def _private_trials(dataset: str, title: str) -> Table:
    table = _private(dataset, title)
    return replace(
        table,
        key="privacy-trials",
        title=f"{title}, private, trials",
        caption=f"Settings of the methods' four trials, with noise and without: {title}, on validation samples",
        columns=grid(
            distribution=("dirichlet-1",),
            public=("none", "in"),
            epsilon=EPSILONS,
            trial=("1", "2", "3", "4"),
        ),
        axes={**table.axes, "trial": ""},
        x_axis="",
        preparatory=True,
        settings=(
            ON_VALIDATION,
            *(
                Setting(
                    name,
                    {
                        **{f"private=yes {where}".strip(): value for where, value in tried.items()},
                        **NOISELESS_TRIALS[name],
                    },
                    "assumed",
                    "four trials of every row",
                )
                for name, tried in NOISY_TRIALS.items()
            ),
            *(s for s in PRIVATE if s.name not in NOISY_TRIALS),
        ),
    )


INVERTED = {"attack.images_by": "inverting"}
LEAKING = (
    Row("gradient", "fedavg", "A gradient of one image: Inverting Gradients", config=INVERTED, absent=WITHOUT),
    Row("update", "fedavg", "Parameters after eight steps of eight images: Inverting Gradients", absent=WITHOUT,
        config={**INVERTED, "attack.shares": "update", "attack.local_steps": 8, "attack.batch_size": 8}),
    Row("fediod", "fediod", "FedIOD: the nearest generated image", config={"attack.images_by": "nearest-generated"}, absent=WITHOUT),
    Row("floor", "fedkd", "No attack: the nearest public image", config={"attack.images_by": "nearest-public"},
        absent=("public=none",)),
)  # fmt: skip


def _leakage(dataset: str, title: str) -> Table:
    return Table(
        key="leakage",
        title=f"{title}, leakage",
        caption=f"What the strongest attack at hand recovers of private images from what a client sends: {title}",
        rows=LEAKING,
        columns=grid(distribution=("dirichlet-1",), public=PUBLIC),
        axes={"dataset": "data.name", "distribution": "", "public": ""},
        fixed={"data.name": dataset},
        measure="leakage",
        metrics=("fid", "psnr", "ssim"),
        unit="",
        own="",
        settings=(
            Setting(
                "partition.public_limit", 2_000, "assumed", "as many as FedIOD generates", smoke=64
            ),
        ),
    )


PAPER = Paper(
    key="league",
    title="The league",
    citation="this suite",
    settings=(*SETTINGS, *PRIVACY),
    tables=(
        _trials("mnist", "MNIST"),
        _table("mnist", "MNIST", ("iid", "dirichlet-1", "dirichlet-0.1", "niid1")),
        _mixed("mnist", "MNIST"),
        _trials("cifar10", "CIFAR-10"),
        _table("cifar10", "CIFAR-10", ("iid", "dirichlet-1", "dirichlet-0.1", "niid1")),
        _private_trials("mnist", "MNIST"),
        _private("mnist", "MNIST"),
        _leakage("mnist", "MNIST"),
        _table("cifar100", "CIFAR-100", ("iid", "dirichlet-1", "dirichlet-0.1")),
    ),
    released_code=False,
    seed_axes=("partition", "weights", "sampling", "shuffling"),
    notes=(
        "Nothing here is printed by a paper: there is no published number to compare with.",
        "The budget is of samples that networks learn from. Outputs of finished networks (teachers, evaluation) are not in it; "
        "their cost is in the columns of FLOPs. What a second network learns from the same batch, as a generator or a "
        "discriminator does in FedIOD, counts again.",
        "The budget sets one length of each method, found by following its fit without computing it: rounds, epochs of its own, "
        "of its last stage at the server, or of its clients. Other lengths are settings, the same for all that have them.",
        "Rows that use no public images have the columns public=none alone. A fifth of the training split is held out as "
        "public images for every row, and a tenth of the clients' pool is the server's to choose by, so that clients are the same.",
        "Learning rates are chosen by tables of trials: four for every row, seed 7, Dirichlet 1 with public images of the clients' own "
        "data, accuracy on the server's validation samples; the best of what was tried, no optimum. Done for MNIST under cpu, whose rates "
        "league/leakage takes too; not yet for CIFAR-10, whose rates CIFAR-100 will take.",
        "The private table has four trials of its own at each epsilon, of what a row's mechanism disturbs. Epsilon is that of one fit: it does not "
        "include the choice of settings.",
        "Nothing at hand recovers images from logits, votes or label counts: for methods that send nothing else the table of leakage has the "
        "nearest public image as the floor, which a server has without any attack. Parameters of a model that was trained for hundreds of "
        "steps (DLAD) are not attacked.",
        "Centralized sees all clients' samples, and Public labels only the labels of the public images: bounds, not methods.",
        "Weakest clients: each client's accuracy is that on the test images weighted by its own label counts, of its own network "
        "where a method leaves it one; the column has the tenth percentile of clients.",
    ),
)  # fmt: skip
