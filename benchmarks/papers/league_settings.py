"""The league's rows and settings: the same conditions for every method.

What `cpu` has as rates are the winners of the league's tables of trials.
"""

from fedtables.benchmarks.papers import shared
from fedtables.benchmarks.tables.spec import HELD_OUT, Row, Setting, as_class

IN_DOMAIN, OUT_OF_DOMAIN = "public=in", "public=out"
WITHOUT = (IN_DOMAIN, OUT_OF_DOMAIN)
"""Columns of rows that use no public images: none, so that each of their runs counts once."""
WITH = ("public=none",)
MIXED = "networks=mixed"

BOUNDS = (
    *shared.without(WITHOUT, shared.CENTRALIZED),
    Row("public-only", "public-only", "Public labels only", upper_bound=True, absent=("public=none|out",)),
)  # fmt: skip
ALONE, *AVERAGING, FEDIOD = shared.without(
    WITHOUT,
    shared.STANDALONE,
    shared.FEDAVG,
    shared.FEDPROX,
    shared.FEDAVGM,
    shared.FEDGEN,
    shared.FEDIOD,
)
CORRECTING = shared.without(
    WITHOUT,
    Row("fedntd", "fedntd", "FedNTD"),
    Row("moon", "moon", "MOON"),
    Row("scaffold", "scaffold", "SCAFFOLD"),
    Row("feddyn", "feddyn", "FedDyn"),
    Row("fedftg", "fedftg", "FedFTG"),
)
"""Rows that average parameters too, and correct what clients or server do beside."""
PROTOTYPES = Row("fedproto", "fedproto", "FedProto", absent=WITHOUT)
CLASSWISE = Row("fd", "fd", "FD", absent=WITHOUT)
DATA_FREE = shared.without(
    WITHOUT, Row("dense", "dense", "DENSE"), Row("co-boosting", "co-boosting", "Co-Boosting")
)
FEDDF, FEDBE, FEDMD, FEDAD = shared.without(
    WITH, shared.FEDDF, Row("fedbe", "fedbe", "FedBE"), shared.FEDMD, shared.FEDAD
)
ANSWERING = (
    FEDMD,
    *shared.without(WITH, Row("ds-fl", "ds-fl", "DS-FL"), Row("scarlet", "scarlet", "SCARLET")),
    *shared.variants("fedkd-gong", {
        "fedkd": ("FedKD, one-shot", {"fedkd-gong.multi_round": False}),
        "fedkd-online": ("FedKD, multi-round", {"fedkd-gong.multi_round": True}),
    }, absent=WITH),
    Row("dlad", "dlad", "DLAD", absent=WITH),
    FEDAD,
)  # fmt: skip
ROWS = (
    *BOUNDS, ALONE, *AVERAGING, *CORRECTING, CLASSWISE, PROTOTYPES, *DATA_FREE, FEDIOD,
    FEDDF, FEDBE, *ANSWERING,
)  # fmt: skip

SMALL = "dataset=femnist|pneumoniamnist"
"""Sets of fewer and simpler images."""
GREY = "dataset=mnist|femnist|pneumoniamnist"
AVERAGED = "method=fedavg|fedprox|fedavgm|fedgen|feddf|fedntd|moon|scaffold|feddyn|fedftg|fedbe"
FROM_NOISE = "method=dense|co-boosting"
"""Methods whose server makes images by a generator, and has the clients' networks."""
OWN_ROUNDS = "method=fd|fedproto"
"""Methods whose clients keep networks of their own and train them in rounds."""
PUBLIC = ("none", "in", "out")
TRIED = "cpu: the best of its trials (mnist-trials, cifar10-trials); else not tried"
LOCAL_RATE = {
    f"{GREY} method=fedavgm|fedgen|feddf": 0.1,
    f"{GREY} method=fd|co-boosting": 0.01,
    f"{GREY} method=fedftg": 0.3,
    GREY: 0.03,
    "method=feddf|centralized|scaffold|moon": 0.1,
    "method=fedproto|dense": 0.01,
    AVERAGED: 0.3,
    "": 0.03,
}
SERVER_RATE = {
    f"{GREY} row=fedkd-online": 3e-3,
    f"{GREY} method=fedad": 3e-3,
    GREY: 1e-2,
    "method=public-only|dlad": 1e-2,
    "row=fedkd-online": 1e-3,
    "method=fedkd-gong|fediod": 3e-3,
    "": 1e-3,
}
FEDIOD_RATE = {GREY: 1e-2, "": 3e-3}

SETTINGS = (
    Setting("data.image_size", 32, "assumed", "CIFAR's own size", cpu=16, smoke=8),
    Setting("budget.samples", 20_000_000, "assumed",
            "that networks learn from, of clients and server together, each time that one passes through a network",
            cpu={"dataset=mnist": 600_000, SMALL: 200_000, "": 500_000}, smoke=3_500),
    Setting("partition.kind", {"distribution=niid1": "niid1", "distribution=writers": "by-group", "": "dirichlet-fedkd"}, "assumed",
            "by class with Dirichlet proportions; niid1: DLAD's, two classes a client; writers: whole writers"),
    Setting("partition.alpha", {"distribution=dirichlet-0.1": 0.1, "distribution=dirichlet-1": 1.0, "": 1e6}, "assumed",
            "IID: so large that every client has its tenth of each class"),
    Setting("partition.clients", {"distribution=writers": 100, "": 10}, "assumed", "as in DLAD, half of FedIOD's; writers: cpu has 14",
            cpu={"distribution=writers": 8, "": 10}, smoke={"distribution=writers": 8, "": 10}),
    Setting("partition.client_share", 0.1, "assumed", "niid1: as much as a tenth of the pool, drawn by class"),
    Setting("partition.public_share", 0.2, "assumed", "of the training split, for every row, so that all have the same clients"),
    Setting("partition.public_split", "", "assumed", "the training split"),
    Setting("partition.public_limit", 0, "assumed", "all of them (0 means no limit)", cpu=5_000, smoke=200),
    Setting("partition.pool_limit", 0, "assumed", "of all clients together (0 means no limit)", cpu=10_000, smoke=600),
    Setting("partition.validation_share", 0.1, "assumed",
            "share of the pool, held by the server in every row. FedDF uses it to stop early; it also chose the learning rates"),
    Setting("partition.test_limit", 0, "assumed", "the whole test split (0 means no limit)", cpu=2_000, smoke=300),
    Setting("public.name", {
        "public=none": "", IN_DOMAIN: HELD_OUT, GREY: "cifar100-grey", "dataset=cifar10": "cifar100", "": "cifar10"},
        "assumed", "in-domain: what is held out of the training split; out of domain: images of other classes"),
    Setting("network.client", {MIXED: "cnn-small+cnn", GREY: "cnn", "": "resnet8-narrow"}, "assumed",
            "small, so that budgets are long enough; of two widths in turn where networks are mixed",
            cpu={MIXED: "cnn-small+cnn", GREY: "cnn-small", "": "resnet8-narrow"},
            smoke={MIXED: "cnn-small+cnn", "": "cnn-small"}),
    Setting("network.server", {GREY: "cnn", "": "resnet8-narrow"}, "assumed", "as the clients'",
            cpu={GREY: "cnn-small", "": "resnet8-narrow"}, smoke="cnn-small"),
    Setting("network.pretrained", "none", "assumed", "random weights"),
    Setting("local.optimizer", "sgd", "assumed", "the averaging methods' own"),
    Setting("local.momentum", {AVERAGED: 0.0, "": 0.9}, "assumed", "a round's steps of what averages parameters have none"),
    Setting("local.schedule", {AVERAGED: "constant", OWN_ROUNDS: "constant", "method=fedmd|ds-fl|scarlet": "constant", "": "cosine"}, "assumed",
            "constant where local training is in rounds"),
    Setting("local.lr", {AVERAGED: 0.1, "": 0.05}, "assumed", TRIED, cpu=LOCAL_RATE),
    Setting("local.batch_size", 64, "assumed", "", cpu=32, smoke=32),
    Setting("local.epochs", {AVERAGED: 2, OWN_ROUNDS: 2, "": 40}, "assumed",
            "methods in rounds: in each; others: before their last stage, or as long as the budget has it",
            cpu={AVERAGED: 2, OWN_ROUNDS: 2, f"{FROM_NOISE} dataset=femnist": 150, f"{FROM_NOISE} {GREY}": 50, FROM_NOISE: 45, GREY: 30, "": 20}, smoke=1),
    Setting("server.optimizer", "adam", "assumed", "of the global network where it learns from outputs"),
    Setting("server.lr", 1e-3, "assumed", TRIED, cpu=SERVER_RATE),
    Setting("server.batch_size", 128, "assumed", "", smoke=32),
    Setting("server.schedule", {"row=fedkd-online": "constant", "": "cosine"}, "assumed", "constant where it learns in rounds"),
    Setting("server.epochs", 20, "assumed", "FedMD's global network, on the last consensus; others: as long as the budget has it",
            smoke=4),
    Setting("augmentation.crop", {GREY: 2, "": 4}, "assumed", "pixels of padding", cpu={GREY: 1, "": 2}, smoke=1),
    Setting("augmentation.horizontal_flip", {GREY: False, "": True}, "assumed", "digits and chests are not their mirror images"),
    *(
        Setting(f"{name}.{field}", value, "assumed", where)
        for name in AVERAGED.removeprefix("method=").split("|")
        for field, value, where in (
            ("rounds", 100, "as many as the budget allows"),
            ("participation", 0.4, "of the clients in a round; FedDF's text"),
        )
    ),
    Setting("fedgen.generator_steps", 50, "assumed", "in a round; FedGEN's code", smoke=5),
    *as_class("fedprox", "mu"),
    *as_class("fedavgm", "server_momentum"),
    Setting("fedavgm.server_lr", 0.1, "assumed", "at 1 ten updates add up; chosen in FedIOD's trial on held-out digits"),
    *shared.alike("fedgen", "generative_alpha generative_beta", 1.0, "assumed",
           "FedGEN's code has 10, which leaves it at chance in FedIOD's trial"),
    Setting("feddf.distillation_steps", 1_000, "assumed", "in a round, at most; FedDF's code has 10,000", cpu=50, smoke=8),
    Setting("feddf.distillation_lr", 1e-3, "assumed", "FedDF's code; its trials are of the rate of its family's local training"),
    Setting("feddf.evaluation_interval", 100, "assumed", "FedDF's code", cpu=25, smoke=4),
    Setting("feddf.patience", 1_000, "assumed", "steps without a gain: never, for all have the same budget", cpu=50, smoke=8),
    *as_class("feddf", "may_keep_average augmented"),
    *as_class("fedntd", "temperature"),
    *as_class("moon", "temperature"),
    Setting("moon.projection", False, "assumed", "all rows have the same networks; MOON's paper adds a projection head"),
    *as_class("scaffold", "server_lr"),
    Setting("fedntd.beta", 1.0, "assumed", TRIED, cpu=0.3),
    Setting("moon.mu", 1.0, "assumed", TRIED, cpu=1.0),
    Setting("feddyn.alpha", 0.01, "assumed", TRIED, cpu={GREY: 0.1, "": 0.01}),
    *shared.alike("fd fedproto", "rounds", 30, "assumed", "as many as the budget allows"),
    Setting("fd.gamma", 1.0, "assumed", TRIED, cpu={GREY: 1.0, "": 0.1}),
    Setting("fedproto.prototype_weight", 1.0, "assumed", TRIED, cpu=1.0),
    *shared.alike("ds-fl scarlet", "rounds", 30, "assumed", "as many as the budget allows"),
    *shared.alike("ds-fl scarlet", "public_samples", 5_000, "assumed", "as FedMD's; PneumoniaMNIST: half a round is below 2 % of the budget",
                  cpu={"dataset=pneumoniamnist": 250, "": 1_000}, smoke=100),
    *shared.alike("ds-fl scarlet", "local_epochs distillation_epochs", 1, "assumed", "as FedMD's; SCARLET's code has 5"),
    *shared.alike("ds-fl scarlet", "distillation_batch_size", 128, "assumed", "as FedMD's; SCARLET's code has 100", smoke=32),
    Setting("ds-fl.distillation_lr", 0.1, "assumed", TRIED, cpu={GREY: 0.3, "": 0.1}),
    Setting("scarlet.distillation_lr", 0.1, "assumed", TRIED, cpu=0.1),
    *as_class("ds-fl", "temperature"),
    Setting("scarlet.beta", 2.0, "assumed", TRIED, cpu=2.0),
    *as_class("scarlet", "duration"),
    Setting("fedbe.samples", 10, "assumed", "released code", smoke=3),
    *as_class("fedbe", "distribution temperature"),
    Setting("fedbe.distillation_epochs", 20, "assumed", "in a round; released code", cpu=1, smoke=1),
    Setting("fedbe.cycle", 25, "assumed", "steps; released code", cpu=5, smoke=2),
    Setting("fedbe.swa_start", 500, "assumed", "steps of 20 epochs; released code; cpu: after as large a part", cpu=20, smoke=4),
    Setting("fedftg.width", 64, "assumed", "as FedIOD's", cpu=32, smoke=8),
    *shared.alike("dense co-boosting", "epochs", 200, "assumed", "as many as the budget allows"),
    *shared.alike("dense co-boosting", "generator_steps", 30, "assumed", "in an epoch; the papers", smoke=2),
    *shared.alike("dense co-boosting", "width", 64, "assumed", "as FedIOD's", cpu=32, smoke=8),
    *shared.alike("dense co-boosting", "batch_size", 128, "assumed", "the papers", cpu=64, smoke=64),
    *shared.alike("dense co-boosting", "lr", 0.01, "assumed", TRIED, cpu=0.01),
    Setting("dense.boundary", 0.5, "assumed", TRIED, cpu=1.0),
    Setting("co-boosting.mu", 0.1, "assumed", TRIED, cpu={GREY: 0.1, "": 0.01}),
    Setting("fedmd.rounds", 20, "assumed", "as many as the budget allows"),
    Setting("fedmd.public_samples", 5_000, "assumed", "FedMD's code", cpu=1_000, smoke=100),
    Setting("fedmd.digest_lr", 1e-3, "assumed", TRIED, cpu={GREY: 1e-2, "": 1e-3}),
    Setting("fedmd.digest_batch_size", 128, "assumed", "FedMD's code has 256", smoke=32),
    Setting("fedmd.revisit_epochs", 1, "assumed", "FedMD's code has 4"),
    Setting("dlad.classifier_epochs", 20, "assumed", "DLAD, V-B", cpu=2, smoke=1),
    Setting("fedad.one_shot", True, "assumed", "clients answer once"),
    Setting("fediod.epochs", 300, "assumed", "as many as the budget allows"),
    Setting("fediod.steps", 0, "assumed", "as many in an epoch as the largest client has batches; PneumoniaMNIST: half an epoch is below 2 % of the budget",
            cpu={"dataset=pneumoniamnist": 8, "": 10}, smoke=1),
    Setting("fediod.batch_size", 64, "assumed", "FedIOD's appendix", cpu=32, smoke=16),
    Setting("fediod.width", 64, "assumed", "FedIOD's code", cpu=32, smoke=8),
    Setting("fediod.discriminator_width", 128, "assumed", "FedIOD's code", cpu=32, smoke=8),
    Setting("fediod.lr", 1e-3, "assumed", TRIED, cpu=FEDIOD_RATE),
    Setting("fediod.generator_lr", 1e-3, "assumed", "FedIOD's appendix", cpu=2e-3),
    Setting("fediod.mimic", 1.0, "assumed", "Eq. 11; FedIOD's own page says what cpu has", cpu=2e-3),
    *shared.alike("fediod", "confidence uniqueness", 1.0, "assumed", "Eq. 11", cpu=0.1),
    Setting("fediod.samples", 2_000, "assumed", "images of its generator, for the table of leakage", smoke=64),
    Setting("attack.network", {GREY: "cnn-small", "": "resnet8-narrow"}, "assumed", "with its initial weights, as in the first round"),
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
