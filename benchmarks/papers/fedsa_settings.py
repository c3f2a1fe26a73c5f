"""FedSA's rows and settings.

Values marked `code` are those of the authors' release (zju-vipa/KamalEngine, examples/amalgamation/fedka), or of a
comparator's. The paper names no optimiser, no number of rounds and no budget of any row but K.
"""

from fedtables.benchmarks.papers import shared
from fedtables.benchmarks.tables.spec import Row, Setting, as_class

FRACTIONS = ("0.01", "0.05", "0.10", "1.00")
STUDENTS = ("wrn-16-2", "resnet-18", "vgg-19", "mobilenet-v2")
DATASETS = ("cifar10", "cifar100")
NO_UNLABELLED = ("fraction=1.00",)
"""With all labels there is nothing left to pseudo-label."""

GRID = tuple(
    {"setting": setting, "student": student, "fraction": fraction, "dataset": dataset}
    for dataset in DATASETS
    for setting, student, fraction in (
        *(("homogeneous", "resnet-34", fraction) for fraction in FRACTIONS),
        *(("heterogeneous", student, "0.10") for student in STUDENTS),
    )
)
AXES = {
    "setting": "network.setting",
    "student": "network.server",
    "fraction": "partition.probe_share",
    "dataset": "data.name",
}

SCRATCH = Row("scratch", "scratch", "Scratch Training")
TRANSFER = Row("transfer", "transfer", "Transfer", upper_bound=True)
PSEUDO_LABEL = Row("pseudo-label", "pseudo-label", "Pseudo Label")
NOISY_STUDENT = Row("noisy-student", "noisy-student", "Noisy Student")
FIXMATCH = Row("fixmatch", "fixmatch", "FixMatch")
META = Row("meta-pseudo-labels", "meta-pseudo-labels", "Meta Pseudo Label")
FEDAVG = Row("fedavg+", "fedavg-plus", "FedAvg+")
FEDSA = Row("fedsa", "fedsa", "FedSA")
ROWS = (
    SCRATCH,
    *shared.without(("setting=heterogeneous",), TRANSFER),
    *shared.without(NO_UNLABELLED, PSEUDO_LABEL, NOISY_STUDENT, FIXMATCH, META),
    FEDAVG,
    Row("fedmd+", "fedmd-plus", "FedMD+"),
    Row("fedprox+", "fedprox-plus", "FedProx+"),
    FEDSA,
)
READINGS = (
    *shared.variants("fedsa", {
        "fedsa-cosine": ("FedSA, Eq. 2 without M", {"fedsa.transferability": "cosine"}),
        "fedsa-once": ("FedSA, probe set seen once", {"fedsa.retrain": False}),
    }),
    Row("fedsa-released", "fedsa", "FedSA", protocol="released"),
)  # fmt: skip
TASKONOMY_ROWS = (SCRATCH, TRANSFER, PSEUDO_LABEL, NOISY_STUDENT, FEDAVG, FEDSA)
TASKONOMY_AXES = {"dataset": "data.name", "task": "data.task"}


DENSE = "dataset=taskonomy"
CIFAR10 = "dataset=cifar10"
RELEASED = "protocol=released"
"""In reduced profiles too the released code's learning rates and transforms are its own."""
FEDERATED = "fedsa|fedavg-plus|fedprox-plus"
VISITS = f"method={FEDERATED}|fedmd-plus"

SETTINGS = (
    Setting("data.image_size", {DENSE: 64, "": 32}, "assumed",
            "32: CIFAR's own, and section 4.1 of ImageNet's subsets; Taskonomy's 256 are read at 64",
            cpu={DENSE: 32, "": 16}, smoke={DENSE: 16, "": 8}),
    Setting("private.name", {DENSE: "taskonomy", "": "imagenet32"}, "paper",
            "section 4.1: ten non-overlapped subsets of ImageNet"),
    Setting("partition.kind", {DENSE: "everyone", "": "class-groups"}, "paper",
            "section 4.1: sorted by label, distributed class by class; Taskonomy's teachers share its training set"),
    Setting("partition.clients", {DENSE: 6, "": 10}, "assumed",
            "ten: section 4.1; of Taskonomy's 25 teachers those of tasks for which every data set here has targets"),
    Setting("partition.teachers", {
        "task=segmentation": "edge_occlusion+image+depth_euclidean+normal+keypoints2d+class",
        "task=classification": "edge_occlusion+image+depth_euclidean+normal+keypoints2d+segment_semantic",
        "": "class"}, "assumed", "tasks of the teachers: all but the target"),
    Setting("partition.probe_share", 0.1, "assumed",
            "if no column sets it: section 4.2 has 10 % for Table 3. The paper names no share for Taskonomy's target data"),
    Setting("partition.probe_order", "random", "assumed", "section 4.2 extracts a share of each class",
            released="consecutive"),
    Setting("partition.target_split", {DENSE: "valid", "": "train"}, "paper",
            "where the target task's labelled and unlabelled images come from"),
    Setting("partition.target_limit", 0, "paper", "all of the target's training images (0 means no limit)", smoke=1000, gpu=10_000),
    Setting("partition.public_limit", 0, "assumed", "all that are not labelled (0 means no limit)", smoke=200, gpu=10_000),
    Setting("partition.pool_limit", 0, "paper", "all private images (0 means no limit)",
            cpu={DENSE: 2000, "": 0}, smoke={DENSE: 150, "": 500}, gpu=10_000),
    Setting("partition.test_limit", 0, "paper", "the data set's test split (0 means no limit)", smoke=200, gpu=2_000),
    Setting("network.client", {DENSE: "resnet-50", "": "resnet-34"}, "paper", "section 4.1"),
    Setting("network.server", {DENSE: "resnet-50", "": "resnet-34"}, "assumed",
            "where no column says it: as the teachers (homogeneous)"),
    Setting("network.resnet-34", "resnet34", "paper", "section 4.1, with a small-image stem (assumed)",
            cpu="resnet10-slim", smoke="resnet8-narrow"),
    Setting("network.resnet-50", "taskonomy-resnet50", "paper", "section 4.1: Taskonomy's teachers", cpu="resnet10-slim",
            smoke="resnet8-narrow"),
    Setting("network.wrn-16-2", "wrn-16-2", "paper", "section 4.1", cpu="wrn-10-1", smoke="wrn-10-1"),
    Setting("network.resnet-18", "resnet18", "paper", "section 4.1, with a small-image stem (assumed)",
            cpu="resnet8-narrow", smoke="resnet10-slim"),
    Setting("network.vgg-19", "vgg19", "paper", "section 4.1, with BatchNorm and one linear layer (assumed)",
            cpu="vgg11-slim", smoke="vgg11-slim"),
    Setting("network.mobilenet-v2", "mobilenetv2", "paper", "section 4.1, with a small-image stem (assumed)",
            cpu="mobilenetv2-slim", smoke="mobilenetv2-slim"),
    Setting("network.pretrained", "none", "paper", "the target network knows nothing but the probe set"),
    Setting("local.optimizer", "adam", "code", "teachers"),
    Setting("local.lr", 1e-3, "assumed", "teachers; the released script's 0.01", released=1e-2),
    Setting("local.batch_size", 64, "assumed", "teachers; the released script's 20", released=20),
    Setting("local.epochs", 10, "code",
            "teachers: 10 times 130,000 images. At cpu a teacher has 5,000 images of CIFAR-100, or 549 of Caltech-101",
            cpu={DENSE: 10, CIFAR10: 20, "": 60}, smoke=4),
    Setting("local.schedule", "cosine", "assumed", "teachers; the released script's never moves", released="constant"),
    Setting("server.optimizer", "adam", "code", "all that is learnt from the probe set"),
    Setting("server.lr", 1e-3, "assumed", "the released script's 0.1, of Adam, learns badly from scratch", released=0.1,
            smoke={RELEASED: 0.1, "": 2e-3}),
    Setting("server.weight_decay", 1e-4, "code", ""),
    Setting("server.batch_size", 64, "code", "", smoke=32),
    Setting("server.schedule", {VISITS: "constant", "table=table3": "constant", "": "cosine"}, "assumed",
            "constant where the probe set is visited repeatedly, as for the code's weak target (and in Table 3); otherwise one cosine",
            released="constant"),
    Setting("server.epochs", 80, "assumed",
            "Scratch and Transfer. The paper gives no budget for any row. Here: as many as FedSA's target has before selections "
            "and in adaptation, in every profile",
            cpu={DENSE: 200, "fraction=0.01": 120, "fraction=0.05": 24, "fraction=1.00": 4, "": 12},
            smoke={"fraction=1.00": 3, "": 14}, gpu={"fraction=0.01": 40, "fraction=0.05": 16, "fraction=1.00": 3, "": 8}),
    Setting("augmentation.crop", {DENSE: 0, "": 4}, "assumed",
            "pixels of padding, usual for CIFAR; the released script flips and rotates; none where pixels have targets",
            cpu={DENSE: 0, RELEASED: 0, "": 2}, smoke={DENSE: 0, RELEASED: 0, "": 1}, released=0),
    Setting("augmentation.horizontal_flip", {DENSE: False, "": True}, "code", "not where pixels have targets"),
    Setting("augmentation.rotation", 0.0, "assumed", "degrees", released={DENSE: 0.0, "": 15.0}),
    *(
        Setting(f"{name}.{field}", value, source, where, **reduced)
        for name in FEDERATED.split("|")
        for field, value, source, where, reduced in (
            ("rounds", 50, "code", "T; at cpu fewer where teachers have nine times as many images",
             {"cpu": {DENSE: 6, CIFAR10: 5, "": 10}, "smoke": 2, "gpu": 2}),
            ("local_epochs", 10, "code", "E", {"cpu": 1, "smoke": 1, "gpu": 1}),
            ("local_lr", 1e-3, "assumed",
             "Adam's default; the released script has 0.1. Lower at cpu where teachers know less than the target network, and for "
             "FedSA, which adapts only its decoder: see the notes",
             {"cpu": {RELEASED: 0.1, DENSE: 1e-3, f"{CIFAR10} method=fedavg-plus|fedprox-plus": 1e-3, "": 1e-4}, "released": 0.1}),
            ("weak_epochs", 10, "code", "on the probe set before a selection; FedAvg+ and FedProx+: before the first round",
             {"cpu": {DENSE: 50, "fraction=0.01": 20, "fraction=0.05": 4, "fraction=1.00": 1, "": 2},
              "smoke": {"fraction=1.00": 1, "": 5},
              "gpu": {"fraction=0.01": 10, "fraction=0.05": 4, "fraction=1.00": 1, "": 2}}),
            ("adaptation_epochs", {"method=fedsa": 30, "": 70}, "code",
             "FedSA's; the other two (assumed) have as many epochs of the probe set in all as FedSA",
             {"cpu": {f"method=fedsa {DENSE}": 50, "method=fedsa fraction=0.01": 20, "method=fedsa fraction=0.05": 4,
                      "method=fedsa fraction=1.00": 1, "method=fedsa": 2,
                      DENSE: 150, "fraction=0.01": 100, "fraction=0.05": 20, "fraction=1.00": 3, "": 10},
              "smoke": {"method=fedsa fraction=1.00": 1, "method=fedsa": 4, "fraction=1.00": 2, "": 9},
              "gpu": {"method=fedsa fraction=0.01": 20, "method=fedsa fraction=0.05": 8, "method=fedsa fraction=1.00": 1,
                      "method=fedsa": 4, "fraction=0.01": 30, "fraction=0.05": 12, "fraction=1.00": 2, "": 6}}),
            ("adaptation", {"method=fedsa": "decoder", "": "fine-tune"}, "paper",
             "section 3.2, Task Adaptation; section 4.2 of the federated baselines", {"released": "all"}),
            ("adaptation_gap", 0, "paper",
             "Algorithm 1, line 10: at the end. At cpu also a copy one round earlier, to see whether the rounds had settled",
             {"released": 10, "cpu": {RELEASED: 2, DENSE: 5, CIFAR10: 4, "": 9}, "smoke": {RELEASED: 1, "": 0}, "gpu": {RELEASED: 2, "": 0}}),
        )
    ),
    Setting("fedsa.selection_gap", 10, "code", "E_g", cpu={f"{CIFAR10} fraction=1.00": 2, CIFAR10: 1, "fraction=1.00": 4, "": 2}, smoke=1, gpu=1),
    Setting("fedsa.selected", 3, "paper", "K, section 4.2", released=2),
    *as_class("fedsa", "local_batch_size selection weighting"),
    Setting("fedsa.saliency", "input-gradient", "paper", "Eq. 1; magnitudes (assumed)", released="grad-cam"),
    Setting("fedsa.transferability", "eq2", "paper", "Eq. 2 as printed, its M included", released="released"),
    Setting("fedsa.saliency_samples", 0, "paper", "M of Eq. 2: the whole probe set (0), or its first images", cpu=1000, gpu=1_000),
    Setting("fedsa.retrain", True, "paper", "Algorithm 1, line 4", released=False),
    *as_class("fedavg-plus", "local_batch_size participation"),
    *as_class("fedprox-plus", "local_batch_size mu participation"),
    Setting("fedmd-plus.rounds", 20, "code", "FedMD's code", cpu=6, smoke=2, gpu=2),
    Setting("fedmd-plus.public_samples", 5_000, "code", "FedMD's code", cpu=2_000, smoke=100, gpu=1_000),
    Setting("fedmd-plus.revisit_epochs", 4, "code", "FedMD's code",
            cpu={"fraction=0.01": 20, "fraction=0.05": 4, "fraction=1.00": 1, "": 2},
            smoke={"fraction=1.00": 1, "": 7}, gpu={"fraction=0.01": 20, "fraction=0.05": 8, "fraction=1.00": 1, "": 4}),
    *as_class("fedmd-plus", "digest_epochs digest_lr"),
    Setting("fedmd-plus.digest_batch_size", 256, "code", "FedMD's code", cpu=64, smoke=32),
    Setting("pseudo-label.steps", 10_000, "assumed",
            "no budget is given; at cpu and 10 % as many images, labelled or not, as Scratch",
            cpu={DENSE: 100, "": 300}, smoke=60, gpu=80),
    *as_class("pseudo-label", "unlabelled_weight"),
    Setting("pseudo-label.interval", 500, "assumed", "steps between two snapshots", cpu=100, smoke=60, gpu=80),
    Setting("pseudo-label.unlabelled_batch_size", 256, "code", "Lee 2013", cpu=128, smoke=32),
    Setting("pseudo-label.ramp_start", 1_000, "assumed", "T_1; T_2 is six times that", cpu={DENSE: 10, "": 30}, smoke=6, gpu=8),
    Setting("pseudo-label.ramp_end", 6_000, "assumed", "T_2", cpu={DENSE: 60, "": 180}, smoke=36, gpu=48),
    Setting("noisy-student.steps", 10_000, "assumed", "of each of four networks; no budget is given",
            cpu={DENSE: 50, "": 150}, smoke=25, gpu=40),
    Setting("noisy-student.ratio", 5, "code", "released script for SVHN", cpu=2, smoke=1, gpu=2),
    *as_class("noisy-student", "iterations soft threshold operations magnitude dropout per_class"),
    *as_class("fixmatch", "threshold unlabelled_weight lr momentum operations magnitude cutout"),
    *as_class("meta-pseudo-labels", "lr momentum weight_decay temperature threshold operations magnitude cutout"),
    Setting("fixmatch.steps", 2**20, "code", "FixMatch's own, with which it reaches more than FedSA's Table 1 prints",
            cpu=240, smoke=60, gpu=60),
    Setting("fixmatch.interval", 1_024, "code", "", cpu=120, smoke=60, gpu=60),
    Setting("fixmatch.weight_decay", {"dataset=cifar100": 1e-3, "": 5e-4}, "code", "FixMatch's"),
    Setting("fixmatch.batch_size", 64, "code", "", smoke=16),
    Setting("fixmatch.mu", 7, "code", "", cpu=3, smoke=2, gpu=3),
    Setting("fixmatch.ema_decay", 0.999, "code", "shorter where steps are few", cpu=0.98, smoke=0.8, gpu=0.9),
    Setting("meta-pseudo-labels.steps", 300_000, "code", "kekmodel's", cpu=300, smoke=30, gpu=60),
    Setting("meta-pseudo-labels.interval", 1_000, "assumed", "steps between two snapshots", cpu=100, smoke=30, gpu=60),
    Setting("meta-pseudo-labels.batch_size", 128, "code", "kekmodel's", cpu=64, smoke=16, gpu=64),
    Setting("meta-pseudo-labels.mu", 7, "code", "kekmodel's", cpu=2, smoke=2, gpu=2),
    Setting("meta-pseudo-labels.student_wait", 3_000, "code", "kekmodel's", cpu=30, smoke=2, gpu=6),
    Setting("meta-pseudo-labels.ramp", 5_000, "code", "kekmodel's", cpu=50, smoke=4, gpu=10),
    Setting("meta-pseudo-labels.ema_decay", 0.995, "code", "kekmodel's; shorter where steps are few", cpu=0.98, smoke=0.8, gpu=0.9),
    Setting("meta-pseudo-labels.unlabelled_weight", 8.0, "code", "kekmodel's; with few steps it leaves the teacher at chance",
            cpu=1.0, smoke=1.0),
    Setting("meta-pseudo-labels.finetune_epochs", 625, "code", "kekmodel's",
            cpu={"fraction=0.01": 30, "fraction=0.05": 6, "": 3}, smoke=1, gpu={"fraction=0.01": 20, "fraction=0.05": 8, "": 2}),
    Setting("meta-pseudo-labels.finetune_lr", 3e-5, "code", "kekmodel's; higher where epochs are few", cpu=1e-3, smoke=1e-3),
    Setting("meta-pseudo-labels.finetune_batch_size", 512, "code", "kekmodel's", cpu=64, smoke=16),
    *as_class("transfer", "teacher frozen"),
    Setting("evaluation.last_epochs", 1, "assumed", "accuracy at the end"),
    Setting("evaluation.looks", 20, "assumed", "of a training's epochs or a fit's rounds, evenly spread: whether they had settled",
            released=0),
    Setting("evaluation.statistic", "last", "assumed", "the paper does not say; the code keeps the best test accuracy",
            released="best"),
)  # fmt: skip
