"""FedIOD's Table 9 and Figure 7: reconstruction of undersampled brain MRI at the sites of FedAD's
Table 7, with its settings but for FedIOD's own.
"""

from dataclasses import replace
from functools import partial

from fedtables.benchmarks.papers import shared
from fedtables.benchmarks.papers.fedad_reconstruction import (
    ALL,
    AXES,
    BOUND,
    DATA,
    MODALITIES,
    MRCM,
    QUALITY,
    SITES,
    ZERO_FILLED,
)
from fedtables.benchmarks.papers.fedad_reconstruction import SETTINGS as FEDAD_SETTINGS
from fedtables.benchmarks.papers.fediod_segmentation import SEEDED
from fedtables.benchmarks.tables.spec import Row, Setting, Table, as_class, grid

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
    *(
        replace(setting, source="assumed", where="FedAD's row: its own paper, section 4.3.2" if "optimizer" in setting.name else "the same")
        for setting in FEDAD_SETTINGS
        if setting.name.startswith("server.") or setting.name == "fedad.one_shot"
    ),
    *as_class("fedad", "bounds upper ensemble dropped rho threshold bound_scale second_order quantised"),
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
    *as_class(
        "fediod-reconstruction",
        "generator_beta gan_weights generator_scale discriminator_scale judges samples "
        "decay_epochs student_beta weight_decay amsgrad warmup_epochs weights temperature "
        "printed_mimic distillation supervised confidence uniqueness",
    ),
    Setting("fediod-reconstruction.lr", 1e-4, "paper", "appendix", cpu=2e-3, smoke=5e-3),
    Setting("fediod-reconstruction.epochs", 100, "paper", "appendix", cpu=16, smoke=3, gpu=5),
    Setting("fediod-reconstruction.mimic", 1.0, "paper", "Eq. 11; less in the few steps of reduced profiles", cpu=1e-3, smoke=1e-3),
)  # fmt: skip

_FEDIOD = Row("fediod", "fediod-reconstruction", "FedIOD")
_FEDAD = shared.variants(
    "fedad", {"fedad": ("FedAD", {"network.client": "unet", "network.server": "unet"})}
)

_table = partial(
    Table,
    columns=grid(train=(ALL,), test=SITES, modality=MODALITIES),
    axes=AXES,
    metrics=QUALITY,
    unit="fraction",
    seed_axes=SEEDED,
    settings=SETTINGS,
)

TABLES = (
    _table(
        key="table9",
        caption="Reconstruction of brain MRI with fastMRI, BraTS2020 and IXI on a client each",
        rows=(shared.FEDAVG, MRCM, *_FEDAD, _FEDIOD),
        measure="by-site",
        offered=(ZERO_FILLED, BOUND),
    ),
    _table(
        key="figure7",
        caption="Reconstructions of a test slice of each site, and their errors",
        rows=(shared.FEDAVG, MRCM, _FEDIOD),
        measure="error-maps",
        offered=(ZERO_FILLED, BOUND, *_FEDAD),
    ),
)
