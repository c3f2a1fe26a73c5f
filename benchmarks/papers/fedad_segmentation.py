"""FedAD's Table 5: 3-D segmentation of brain tumours on BraTS 2018.

The authors released no code. Values marked `code` are those of NVFlare's BraTS18 job, which follows
Li et al. 2019, or of a comparator (FedMD, diogenes0319).
"""

from fedtables.benchmarks.papers import shared
from fedtables.benchmarks.tables.spec import Row, Setting, Table, as_class

PLAIN, NOISY, NOISIER = ("none", "none"), ("1", "1"), ("1", "0.01")
COLUMNS = tuple(
    {"dataset": "brats2018", "eps1": eps1, "eps3": eps3} for eps1, eps3 in (PLAIN, NOISY, NOISIER)
)
AVERAGED = "method=fedavg|li-2019"
INFINITE = float("inf")

SETTINGS = (
    Setting("data.task", "tumour", "paper", "section 4.2"),
    Setting("data.name", "brats2018", "paper", "section 4.2.1"),
    Setting("data.image_size", 224, "code", "crops of 224 x 224 x 144", cpu=64, smoke=24),
    Setting("data.depth", 144, "code", "the same", cpu=16, smoke=24),
    Setting("pixels.cut", True, "code", "trained on crops, tested on whole volumes through windows of a crop's size"),
    Setting("pixels.patches", 0, "code", "random crops there; here as few as cover a volume, of fixed places"),
    Setting("pixels.overlap", 0.5, "code", "sliding windows"),
    Setting("pixels.cross_entropy", 0.0, "paper", "section 4.2.2: trained as [63] (Myronenko 2018), by the Dice loss alone; at cpu "
            "cross-entropy too, without which a small tumour may never be found in so few steps", cpu=1.0, smoke=1.0),
    Setting("pixels.dice", 1.0, "paper", "the same; its squared denominator is not built"),
    Setting("pixels.reading", "paper", "assumed", "mean over test volumes; `released`, NVFlare's, leaves out a region that a volume lacks, whatever is found"),
    Setting("public.name", "brats2020", "paper", "section 4.2.1"),
    Setting("partition.kind", "by-class", "paper", "section 4.2.2: by the originating institution; four institutions dealt to three "
            "clients is ours"),
    Setting("partition.clients", 3, "paper", "section 4.2.2"),
    Setting("partition.validation_share", 0.0, "assumed", "none is named"),
    Setting("partition.public_share", 0.0, "paper", "the public data are another set"),
    Setting("partition.public_split", "test", "paper", "section 4.2.2: its unlabelled validation set", smoke="train"),
    Setting("partition.public_limit", 0, "paper", "all 125 (0 means no limit)", smoke=6),
    Setting("partition.pool_limit", 0, "paper", "all 242 (0 means no limit)", smoke=12),
    Setting("network.client", "segresnet", "paper", "section 4.2.2: that of [63], segmentation branch only"),
    Setting("network.server", "segresnet", "paper", "the same"),
    Setting("network.segresnet", {"method=li-2019": "segresnet-dropout-3d", "": "segresnet-half-dropout-3d"}, "paper",
            "section 4.2.2: half the channels; Li et al. in full (assumed); dropout of 0.2 by the code of [63]", cpu="segresnet-half-3d", smoke="segresnet-half-3d"),
    Setting("network.pretrained", "none", "paper", "none is named"),
    Setting("local.optimizer", "adam", "paper", "section 4.2.2: as [63]"),
    Setting("local.lr", 1e-4, "paper", "[63]", cpu=3e-3, smoke=5e-3),
    Setting("local.momentum", 0.0, "paper", "Adam"),
    Setting("local.weight_decay", 1e-5, "paper", "[63]"),
    Setting("local.schedule", {AVERAGED: "constant", "": "cosine"}, "assumed",
            "[63] has (1 - t/T)^0.9; a cosine is nearest of what there is, constant within a round"),
    Setting("local.final_lr", 0.0, "paper", "[63]"),
    Setting("local.batch_size", 1, "paper", "[63]", cpu=2, smoke=2),
    Setting("local.epochs", {AVERAGED: 1, "": 31}, "paper",
            "section 4.2.2: 20,000 iterations of a third of the volumes, each in eight crops; averaging methods: one in a round",
            cpu={AVERAGED: 1, "": 40}, smoke={AVERAGED: 1, "": 4}, gpu={AVERAGED: 1, "": 5}),
    Setting("server.optimizer", "adam", "assumed", "as local training"),
    Setting("server.lr", 1e-4, "assumed", "the same", cpu=3e-3, smoke=5e-3),
    Setting("server.momentum", 0.0, "assumed", "Adam"),
    Setting("server.weight_decay", 1e-5, "assumed", "the same"),
    Setting("server.schedule", "cosine", "assumed", "the same"),
    Setting("server.final_lr", 0.0, "assumed", "the same"),
    Setting("server.batch_size", 1, "assumed", "the same", cpu=2, smoke=2),
    Setting("server.epochs", 5, "paper", "section 4.2.2: 5,000 iterations of 125 volumes, each in eight crops", cpu=40, smoke=4, gpu=2),
    *shared.alike("augmentation", "rotation shift scale", 0.0, "paper", "[63] has none"),
    Setting("augmentation.horizontal_flip", False, "assumed", "[63] flips along each axis and shifts intensities; volumes are not augmented here"),
    Setting("fedad.one_shot", True, "paper", "section 4: one-shot for segmentation"),
    *as_class("fedad", "bounds"),
    Setting("li-2019.eps1", {"eps1=1": 1.0, "": INFINITE}, "paper", "Table 5"),
    Setting("li-2019.eps3", {"eps3=1": 1.0, "eps3=0.01": 0.01, "": INFINITE}, "paper", "Table 5"),
    *as_class("li-2019", "share tau generation"),
    Setting("li-2019.gamma", 1e-4, "code", "from 2.1 on; per local step, as large as its learning rate; so too at cpu", cpu=3e-3, smoke=5e-3),
    *shared.alike("li-2019 fedavg", "rounds", 600, "code", "an epoch each", cpu=40, smoke=4, gpu=10),
    *shared.alike("li-2019 fedavg", "participation", 1.0, "code", "all clients in every round"),
    Setting("fedmd.rounds", 20, "code", "FedMD's code; the paper is silent", cpu=5, smoke=2, gpu=3),
    *as_class("fedmd", "public_samples digest_epochs"),
    Setting("fedmd.digest_batch_size", 1, "assumed", "as local training", cpu=2, smoke=2),
    Setting("fedmd.digest_lr", 1e-4, "assumed", "as local training", cpu=1e-3, smoke=1e-3),
    Setting("fedmd.revisit_epochs", 4, "code", "FedMD's code", smoke=1, gpu=1),
    *shared.AT_THE_END,
)  # fmt: skip

PRIVATE = ("eps1=1",)
"""Columns of Li et al.'s private versions alone."""

TABLES = (
    Table(
        key="table5",
        caption="Segmentation of brain tumours in volumes of BraTS2018, what is exchanged, and its cost to privacy",
        rows=(
            Row("li-et-al", "li-2019", "Li et al. 2019"),
            *shared.without(PRIVATE, shared.FEDMD, shared.FEDAD, shared.STANDALONE),
        ),
        columns=COLUMNS,
        axes={"dataset": "", "eps1": "", "eps3": ""},
        measure="exchange",
        metrics=("dice", "bandwidth-gb", "privacy-cost", "privacy-eps1", "privacy-eps3"),
        unit="percent",
        own="fedad",
        settings=SETTINGS,
        offered=(
            *shared.without(PRIVATE, shared.CENTRALIZED, shared.FEDAVG),
            *shared.variants("fedad", {
                "fedad-no-bound": ("FedAD without the bound", {"fedad.bounds": False}),
                "fedad-quantised": ("FedAD in uint8", {"fedad.quantised": True}),
            }, absent=PRIVATE),
            *shared.variants("li-2019", {
                "li-et-al-revised": ("Li et al. 2019, as NVFlare has it since 2026", {"li-2019.generation": "revised"}),
            }, absent=("eps1=none",)),
        ),
    ),
)  # fmt: skip
"""By the paper's number."""
