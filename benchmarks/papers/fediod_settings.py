"""FedIOD's rows and settings in its classification tables.

Values marked `code` are those of the authors' release (lsl001006/FedIOD) or of a comparator's: FedKD
(gong-xuan/FedKD), FedDF (epfml), FedGEN (zhuangdizhu), FedMD (diogenes0319).
"""

from fedtables.benchmarks.papers import shared
from fedtables.benchmarks.tables.spec import Row, Setting, as_class

AVERAGING = "fedavg fedprox fedavgm fedgen feddf"
NO_PUBLIC = "method=standalone|centralized|fedavg|fedprox|fedavgm|fedgen|fediod"
AVERAGED = "method=" + AVERAGING.replace(" ", "|")

ROWS = (
    shared.STANDALONE,
    shared.FEDAVG,
    shared.FEDPROX,
    shared.FEDAVGM,
    shared.FEDGEN,
    shared.FEDDF,
    shared.FEDMD,
    shared.FEDKD,
    shared.FEDIOD,
)
[EQ10] = shared.variants(
    "fediod",
    {"fediod-eq10": ("FedIOD, Eq. 10 as printed", {"fediod.printed_mimic": True})},
    protocol="paper",
)
OFFERED = (
    Row("fediod-released", "fediod", "FedIOD", protocol="released"),
    *shared.variants("fediod", {
        "fediod-own": ("FedIOD, D(x) as own", {"fediod.weights": "eq8-own"}),
        "fediod-printed": ("FedIOD, linear Eq. 2", {"fediod.logarithmic": False}),
    }, protocol="paper"),
    EQ10,
    shared.CENTRALIZED,
    *shared.variants("fedkd-gong", {"fedkd-online": ("FedKD, multi-round", {"fedkd-gong.multi_round": True})}),
)  # fmt: skip

MANY = "table=table5|figure4"
"""Tables for which the cpu profile, too, has twenty clients and all samples: votes and private training need them."""
PRIVATE = "table=table5 private=yes row=fedkd|fediod"
"""Rows of Table 5 that learn from few noisy votes."""

SETTINGS = (
    Setting("data.image_size", 32, "paper", "CIFAR section: x = G(w) has a size of 32 x 32", cpu=16, smoke=8),
    Setting("public.name", {NO_PUBLIC: "", "dataset=cifar10": "cifar100", "": "cifar10"}, "assumed",
            "CIFAR-10 tables: CIFAR-100, as in FedKD's and FedDF's code. CIFAR-100 tables: their code has down-sampled ImageNet; "
            "here CIFAR-10, the pair that FedMD uses"),
    Setting("partition.kind", "dirichlet-fedkd", "code", "Dirichlet per class, slices in file order"),
    Setting("partition.clients", 20, "paper", "K, CIFAR section", cpu={MANY: 20, "": 10}, smoke=4),
    Setting("partition.validation_share", {"method=feddf": 0.1, "": 0.0}, "code",
            "FedDF's early stopping needs labelled validation data at the server; its clients share the rest"),
    Setting("partition.public_split", "", "assumed", "the public data set's training split"),
    Setting("partition.public_share", 0.0, "paper", "none of the clients' data set is public"),
    Setting("partition.public_limit", 0, "paper", "all of it (0 means no limit)", cpu=5000, smoke=300, gpu=5_000),
    Setting("partition.pool_limit", 0, "paper", "all training samples (0 means no limit)", cpu={MANY: 0, "": 20_000}, smoke=600, gpu={MANY: 0, "": 20_000}),
    Setting("partition.test_limit", 0, "paper", "the data set's test split (0 means no limit)", cpu=2000, smoke=300, gpu=2_000),
    Setting("network.client", "resnet8", "paper", "CIFAR section"),
    Setting("network.server", "resnet8", "paper", "CIFAR section"),
    Setting("network.resnet8", "resnet8-wide", "code",
            "4.9 million parameters; the appendix cites Lin et al. 2020, whose ResNet-8 has 78,042",
            cpu="resnet8-narrow", smoke="resnet8-narrow"),
    Setting("network.pretrained", "none", "paper", "the text names no pre-training"),
    Setting("local.optimizer", "sgd", "paper", "appendix; FedDF's code for the methods that average parameters uses it too"),
    Setting("local.lr", {AVERAGED: 0.1, "": 0.0025}, "code", "teachers: the paper's appendix; averaging methods: FedDF's code",
            cpu={AVERAGED: 0.1, "": 0.05}, smoke={AVERAGED: 0.1, "": 0.05}),
    Setting("local.momentum", {AVERAGED: 0.0, "": 0.9}, "code", "FedKD's code; averaging methods: FedDF's code"),
    Setting("local.weight_decay", {AVERAGED: 0.0, "": 3e-4}, "code", "FedKD's code; averaging methods: FedDF's code"),
    Setting("local.schedule", {AVERAGED: "constant", "": "cosine"}, "code", "FedKD's code; averaging methods: FedDF's code"),
    Setting("local.final_lr", {AVERAGED: 0.0, "": 0.001}, "code", "FedKD's code"),
    Setting("local.batch_size", {AVERAGED: 64, "": 16}, "code", "teachers: the paper's appendix; averaging methods: FedDF's code",
            cpu=64, smoke=16),
    Setting("local.epochs", {AVERAGED: 40, "": 500}, "code",
            "teachers: the paper's appendix; averaging methods: FedDF's code, per round",
            cpu={AVERAGED: 2, "": 20}, smoke={AVERAGED: 1, "": 3}, gpu={AVERAGED: 1, "": 5}),
    *shared.alike(AVERAGING, "rounds", 100, "code", "FedDF's released commands; the paper is silent", cpu=20, smoke=3, gpu=6),
    *shared.alike(AVERAGING, "participation", 0.4, "code", "FedDF's text; its commands say 0.1; the paper is silent", smoke=0.5),
    *as_class("fedprox", "mu"),
    *as_class("fedavgm", "server_momentum"),
    Setting("fedavgm.server_lr", 1.0, "assumed",
            "Hsu et al. 2019; the paper is silent. At cpu 0.1 was the best of 0.1, 0.3 and 1 on held-out samples, seed 7",
            cpu={"dataset=cifar100": 1.0, "": 0.1}),
    *shared.alike("fedgen", "generative_alpha generative_beta", 10.0, "code", "FedGEN's code; its set-up here is unknown", cpu=1.0),
    *as_class("fedgen", "noise hidden generator_batch_size generator_lr generator_weight_decay diversity decay"),
    Setting("fedgen.generator_steps", 50, "code", "FedGEN's code, for MNIST-like data; its set-up here is unknown", smoke=5),
    Setting("feddf.distillation_steps", 10_000, "code", "FedDF's code", cpu=150, smoke=20, gpu=100),
    *as_class("feddf", "distillation_batch_size distillation_lr clip_norm may_keep_average"),
    Setting("feddf.evaluation_interval", 100, "code", "FedDF's code", cpu=50, smoke=10, gpu=50),
    Setting("feddf.patience", 1_000, "code", "FedDF's code", cpu=100, smoke=10, gpu=100),
    Setting("feddf.augmented", False, "assumed", "FedDF's code augments public images; here they are as they are", released=True),
    Setting("fedmd.rounds", 20, "code", "FedMD's code; the paper is silent", cpu=6, smoke=2, gpu=3),
    Setting("fedmd.public_samples", 5_000, "code", "FedMD's code", cpu=2_000, smoke=100, gpu=1_000),
    *as_class("fedmd", "digest_epochs digest_batch_size digest_lr"),
    Setting("fedmd.revisit_epochs", 4, "code", "FedMD's code", cpu=2, smoke=1, gpu=1),
    *as_class("fedkd-gong", "multi_round"),
    Setting("server.optimizer", "adam", "code", "FedKD's code; also for FedMD's central model, which the paper leaves open"),
    Setting("server.lr", 1e-3, "code", "FedKD's code, constant"),
    Setting("server.batch_size", 512, "code", "FedKD's code", cpu={PRIVATE: 32, "": 128}, smoke=32),
    Setting("server.epochs", 200, "code", "FedKD's code; other at cpu, on few voted images", cpu={PRIVATE: 40, "": 30}, smoke=4, gpu=5),
    Setting("augmentation.crop", 4, "code", "pixels of padding", cpu=2, smoke=1),
    Setting("augmentation.horizontal_flip", True, "code", ""),
    Setting("augmentation.cutout", {AVERAGED: 0, "": 16}, "code", "FedKD's code; averaging methods: FedDF's code", cpu=0, smoke=0),
    Setting("fediod.epochs", 300, "paper", "appendix; fewer at cpu with DP, where each costs noise",
            cpu={f"{PRIVATE} protocol=paper": 2, "": 16}, smoke=2,
            released={"dataset=cifar10": 500, "alpha=0.1": 300, "": 800}, gpu=5),
    Setting("fediod.steps", 0, "code", "as many in an epoch as the largest client has batches", smoke=4),
    Setting("fediod.batch_size", 64, "paper", "appendix", cpu=32, smoke=16),
    *as_class("fediod", "latent generator_beta logarithmic printed_mimic gan_weights"),
    Setting("fediod.width", 64, "code", "2,026,051 parameters of G", cpu=32, smoke=8),
    Setting("fediod.discriminator_width", 128, "code", "531,328 parameters of D_k", cpu=32, smoke=8),
    Setting("fediod.second_upsampling", "nearest", "paper", "appendix: as Fang et al. 2021", released="bilinear"),
    Setting("fediod.optimizer", "adam", "paper", "appendix", released="sgd"),
    Setting("fediod.lr", 1e-3, "paper", "appendix, with a cosine", released=5e-3, cpu={"protocol=released": 5e-3, "": 3e-3}),
    Setting("fediod.final_lr", 0.0, "paper", "appendix", released=1e-5),
    Setting("fediod.generator_lr", 1e-3, "paper", "appendix, also for D_k", released=1e-4,
            cpu={"protocol=released": 1e-4, "": 2e-3}),
    Setting("fediod.augment_own", False, "assumed", "Algorithm 1 names no augmentation", released=True),
    Setting("fediod.weights", "eq8", "paper", "Eq. 8", released="class-count"),
    Setting("fediod.temperature", 0.0, "paper", "0 means infinity: the limit of Eq. 6. Eq. 10 prints at least 2C times more for it", released=10_001.0),
    Setting("fediod.gan", 1.0, "paper", "Eq. 11; the cross-entropy is summed over patches, as in the code",
            released={"dataset=cifar100 alpha=0.1": 0.6, "": 1.0}),
    Setting("fediod.mimic", 1.0, "paper", "Eq. 11. In the few steps of the cpu profile 0.1 and 1 drive G to adversarial "
            "noise. Released: the script for CIFAR-10, alpha = 0.1 is that of Table 6's second column; the script for "
            "alpha = 1 is used instead", released={"dataset=cifar10": 0.2, "": 1.0},
            cpu={"protocol=released": 0.2, "": 2e-3}),
    Setting("fediod.confidence", 1.0, "paper", "Eq. 11; less in the cpu profile for the same reason", released=1.0,
            cpu={"protocol=released": 1.0, "": 0.1}),
    Setting("fediod.uniqueness", 1.0, "paper", "Eq. 11; the same", released=0.0,
            cpu={"protocol=released": 0.0, "": 0.1}),
    Setting("fediod.diversity", 0.0, "paper", "not in the paper; the code's term has the other sign",
            released={"dataset=cifar10": 5.0, "": 0.0}),
    Setting("fediod.balance", 0.0, "paper", "not in the paper", released=10.0),
    Setting("fediod.student_steps", 1, "paper", "Algorithm 1", released=5),
    Setting("fediod.samples", 10_000, "assumed", "images for Table 7; the paper gives no number", cpu=2_000, smoke=64, gpu=2_000),
    Setting("attack.images_by", {"method=fediod": "generated", "": "dlg"}, "paper",
            "Fig. 4: DLG on FedAvg's shared parameters, FedIOD's synthetic images"),
    Setting("attack.network", "lenet-sigmoid", "assumed",
            "DLG's own network, with its initial weights: it needs second derivatives, which ReLU lacks; the paper does not say"),
    Setting("attack.clients", 9, "paper", "Fig. 4a: randomly selected; here among those that hold twice attack.images", smoke=2),
    Setting("attack.images", 64, "assumed",
            "private images of a client that are attacked, and images on either side of every distance, which falls with them; "
            "the paper gives no number", cpu=24, smoke=3),
    Setting("attack.shares", "gradient", "assumed",
            "a gradient, which DLG is made for, or an update of several local steps; from the first round, whose initial weights are known"),
    Setting("attack.batch_size", 1, "assumed", "images behind a gradient: DLG's experiments; the paper does not say"),
    Setting("attack.local_steps", 1, "assumed", "the same; an update is attacked as so many steps at local.lr"),
    Setting("attack.batch_norm", "eval", "assumed", "of networks that have it; Inverting Gradients' released code"),
    Setting("attack.iterations", {"row=fedavg-inverting": 4800, "": 300}, "assumed",
            "released code of DLG (L-BFGS; here with a line search, which reaches more) and of Inverting Gradients (Adam)",
            cpu={"row=fedavg-inverting": 300, "": 100}, smoke={"row=fedavg-inverting": 20, "": 60}),
    Setting("attack.restarts", {"row=fedavg-inverting": 1, "": 4}, "assumed",
            "starts at most, the next only where none succeeded; DLG's released code has one"),
    Setting("evaluation.last_epochs", 1, "assumed", "accuracy at the end"),
    Setting("evaluation.at", 1.0, "assumed", "share of the epochs after which a run is measured. Released: the first of 500 epochs at which "
            "the authors' accountant reaches the column's epsilon, with and without DP",
            released={f"table=table5 epsilon={e}": n / 500 for e, n in (("3.5", 35), ("6.0", 143), ("7.7", 238), ("10.0", 481))}
            | {"": 1.0}),
    Setting("evaluation.statistic", "last", "assumed", "the paper does not say; the code tracks the best test accuracy",
            released="best"),
)  # fmt: skip
