"""FedIOD's Table 9 and Figure 7: reconstruction of undersampled brain MRI at the sites of FedAD's
Table 7, with its settings but for FedIOD's own.
"""

from benchmarks.papers.fedad_reconstruction import (
    ALL,
    AXES,
    CENTRALIZED,
    DATA,
    MODALITIES,
    MRCM,
    QUALITY,
    SITES,
    ZERO_FILLED,
)
from benchmarks.papers.fediod_segmentation import SEEDED
from benchmarks.tables.spec import Row, Setting, Table

ROUNDS = "method=fedavg|fl-mrcm"

SETTINGS = (
    *DATA,
    Setting("public.name", {f"method=fedad modality={m}": f"oasis3-{m}" for m in MODALITIES} | {"": ""}, "paper",
            "no public images but FedAD's, which are those of its own paper"),
    Setting("partition.validation_share", 0.1, "assumed", "as in FedAD's tables, whose rows these are"),
    Setting("network.client", "plain", "paper", "appendix: FL-MRCM's U-Net"),
    Setting("network.server", "plain", "paper", "the same"),
    Setting("network.unet", "unet-32-in-nonlocal", "paper", "FedAD's row", cpu="unet-8-in-nonlocal", smoke="unet-8-in-nonlocal"),
    Setting("local.epochs", {ROUNDS: 2, "": 20}, "paper", "appendix; averaging methods: two in a round, as FL-MRCM's code",
            cpu={ROUNDS: 2, "": 20}, smoke={ROUNDS: 2, "row=zero-filled": 1, "": 6}, gpu={ROUNDS: 2, "": 5}),
    Setting("server.optimizer", "rmsprop", "assumed", "FedAD's row: its own paper, section 4.3.2"),
    Setting("server.lr", 1e-4, "assumed", "the same", cpu=1e-3, smoke=2e-3),
    Setting("server.momentum", 0.0, "assumed", "the same"),
    Setting("server.weight_decay", 0.0, "assumed", "the same"),
    Setting("server.schedule", "constant", "assumed", "the same"),
    Setting("server.final_lr", 0.0, "assumed", "the same"),
    Setting("server.batch_size", 16, "assumed", "the same", smoke=8),
    Setting("server.epochs", 5, "assumed", "the same", cpu=60, smoke=10, gpu=2),
    Setting("fedad.one_shot", True, "assumed", "the same"),
    Setting("fedad.bounds", True, "assumed", "the same"),
    Setting("fedad.upper", True, "assumed", "the same"),
    Setting("fedad.ensemble", "weighted", "assumed", "the same: Eq. 13"),
    Setting("fedad.dropped", 0, "assumed", "the same"),
    Setting("fedad.rho", 10.0, "assumed", "the same: Eq. 8"),
    Setting("fedad.threshold", 0.5, "assumed", "the same: b of Eq. 8"),
    Setting("fedad.bound_scale", "printed", "assumed", "the same: Eq. 7 and 9 with 1/HW"),
    Setting("fedad.second_order", True, "assumed", "the same; of no effect on a non-local block's attention"),
    Setting("fedad.quantised", False, "assumed", "the same: float32"),
    Setting("fediod-reconstruction.generator", "resnet-generator", "paper", "appendix: as for brain tumours",
            cpu="resnet-generator-narrow", smoke="resnet-generator-narrow"),
    Setting("fediod-reconstruction.discriminator_width", 64, "code", "the same", cpu=32, smoke=8),
    Setting("fediod-reconstruction.discriminator_layers", 3, "code", "the same", cpu=2, smoke=1),
    Setting("fediod-reconstruction.features", "vgg16", "code", "the same", cpu="efficientnet-lite0", smoke="efficientnet-lite0"),
    Setting("fediod-reconstruction.l1", 0.0, "assumed", "as for brain tumours; reduced: contrast comes in some hundred steps by it alone",
            cpu=30.0, smoke=30.0),
    Setting("fediod-reconstruction.perceptual", 10.0, "assumed", "as for brain tumours", cpu=0.02, smoke=0.02),
    Setting("fediod-reconstruction.batch_size", 2, "assumed", "as for brain tumours", cpu=4, smoke=4),
    Setting("fediod-reconstruction.steps", 0, "assumed", "as many as the largest client has batches", cpu=48, smoke=3),
    Setting("fediod-reconstruction.generator_lr", 1e-4, "paper", "appendix: Adam, constant", cpu=2e-3, smoke=2e-3),
    Setting("fediod-reconstruction.generator_beta", 0.5, "assumed", "as for brain tumours: pix2pix"),
    Setting("fediod-reconstruction.gan_weights", "size", "paper", "Eq. 2"),
    Setting("fediod-reconstruction.generator_scale", 1.0, "paper", "Eq. 11 has no weights"),
    Setting("fediod-reconstruction.discriminator_scale", 1.0, "paper", "the same"),
    Setting("fediod-reconstruction.judges", "all", "paper", "Algorithm 1: every D_k judges every image"),
    Setting("fediod-reconstruction.samples", 0, "assumed", "generated images to keep; none are looked at"),
    Setting("fediod-reconstruction.decay_epochs", 0, "paper", "constant"),
    Setting("fediod-reconstruction.lr", 1e-4, "paper", "appendix", cpu=2e-3, smoke=5e-3),
    Setting("fediod-reconstruction.student_beta", 0.9, "paper", "Adam"),
    Setting("fediod-reconstruction.weight_decay", 0.0, "paper", "none is named"),
    Setting("fediod-reconstruction.amsgrad", False, "paper", "Adam"),
    Setting("fediod-reconstruction.warmup_epochs", 0, "assumed", "none is named; nuclei have 100 epochs"),
    Setting("fediod-reconstruction.epochs", 100, "paper", "appendix", cpu=16, smoke=3, gpu=5),
    Setting("fediod-reconstruction.mimic", 1.0, "paper", "Eq. 11; less in the few steps of reduced profiles", cpu=1e-3, smoke=1e-3),
    Setting("fediod-reconstruction.weights", "eq8", "paper", "Eq. 8"),
    Setting("fediod-reconstruction.temperature", 0.0, "paper", "Eq. 10; 0 stands for infinity"),
    Setting("fediod-reconstruction.printed_mimic", True, "paper", "Eq. 10 as printed: pixels are no classes, of which Eq. 6 is"),
    Setting("fediod-reconstruction.distillation", 1.0, "paper", "Eq. 10"),
    Setting("fediod-reconstruction.supervised", 0.0, "paper", "a foreground is no target"),
    Setting("fediod-reconstruction.confidence", 0.0, "assumed", "L_conf is of classes"),
    Setting("fediod-reconstruction.uniqueness", 0.0, "assumed", "L_unique is of classes"),
)  # fmt: skip

NOTES = (
    "Table 9: its rows FL-MRCM and FedAD are those of FedAD's Table 7 in print, and have that paper's settings here; FedAD's alone has "
    "public images and the non-local block. FedIOD's outputs are images: L_mimic is Eq. 10 of their pixels, a teacher's weight D_k's "
    "factor of Eq. 8, and L_conf and L_unique, which are of classes, are left out.",
    "Table 9: FedIOD's conditions are contours of the foreground of every client's training slices, which clients send once as filled "
    "masks. The step weights between the losses and the number of conditions are not stated.",
)  # fmt: skip

_FEDIOD = Row("fediod", "fediod-reconstruction", "FedIOD")
_FEDAVG = Row("fedavg", "fedavg", "FedAvg")
_UNET = {"network.client": "unet", "network.server": "unet"}
_FEDAD = Row("fedad", "fedad", "FedAD", config=_UNET)

TABLES = (
    Table(
        key="table9",
        title="Table 9",
        caption="Reconstruction of brain MRI with fastMRI, BraTS2020 and IXI on a client each",
        rows=(_FEDAVG, MRCM, _FEDAD, _FEDIOD),
        columns=tuple({"train": ALL, "test": t, "modality": m} for t in SITES for m in MODALITIES),
        axes=AXES,
        measure="by-site",
        metrics=QUALITY,
        unit="fraction",
        seed_axes=SEEDED,
        settings=SETTINGS,
        offered=(ZERO_FILLED, CENTRALIZED),
    ),
    Table(
        key="figure7",
        title="Figure 7",
        caption="Reconstructions of a test slice of each site, and their errors",
        rows=(_FEDAVG, MRCM, _FEDIOD),
        columns=tuple({"train": ALL, "test": t, "modality": m} for t in SITES for m in MODALITIES),
        axes=AXES,
        measure="error-maps",
        metrics=QUALITY,
        unit="fraction",
        seed_axes=SEEDED,
        settings=SETTINGS,
        offered=(ZERO_FILLED, CENTRALIZED, _FEDAD),
    ),
)  # fmt: skip
