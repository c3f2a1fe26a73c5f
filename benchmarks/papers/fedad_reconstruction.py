"""FedAD's Tables 6 to 8 and Figure 4: reconstruction of undersampled brain MRI at three sites.

The authors released no code. Values marked `code` are those of FL-MRCM (guopengf/FL-MRCM), whose protocol the paper
follows, or of FedDF (epfml).
"""

from functools import partial

from fedtables.benchmarks.papers import shared
from fedtables.benchmarks.tables.spec import Derived, Row, Setting, Table, as_class, grid

SITES = ("b", "f", "i")
ALL = ",".join(SITES)
ALONE = tuple(f"train={site}" for site in SITES)
MODALITIES = ("t1", "t2")
AVERAGING = "fedavg feddf fl-mrcm"
AVERAGED = "method=fedavg|feddf|fl-mrcm"
QUALITY = ("ssim", "psnr")
SMALL = {"cpu": "unet-8-in-nonlocal", "smoke": "unet-8-in-nonlocal"}
PLAIN = {"network.client": "plain", "network.server": "plain"}
"""A U-Net without the non-local block."""

DATA = (
    Setting("data.task", "reconstruction", "paper", "section 4.3"),
    Setting("data.name", {f"modality={m}": f"brats2020-{m}+fastmri-{m}+ixi-{m}" for m in MODALITIES}, "paper", "section 4.3.1"),
    Setting("slices.called", {f"modality={m}": f"brats2020-{m}=b+fastmri-{m}=f+ixi-{m}=i" for m in MODALITIES}, "paper",
            "the tables' letters"),
    Setting("slices.acceleration", 4.0, "paper", "section 4.3.2"),
    Setting("slices.centre", 0.08, "code", "centre fraction; three columns of 32 at smoke", smoke=0.1),
    Setting("slices.clamp", 0.0, "paper", "none is named; FL-MRCM's code clamps slices and their truth at 6 deviations", released=6.0),
    Setting("data.image_size", 256, "paper", "section 4.3.2: padded, and cropped to 256 x 256", cpu=64, smoke=32),
    Setting("partition.kind", "by-site", "paper", "section 4.3.1: a data set on each client"),
    Setting("partition.clients", {f"train={ALL}": 3, **dict.fromkeys(ALONE, 1), "": 2}, "paper", "the sites that train"),
    Setting("partition.pool_limit", 0, "paper", "all (0 means no limit)", gpu=10_000),
    Setting("partition.test_limit", 0, "paper", "all (0 means no limit); fewer are whole subjects", gpu=2_000),
    Setting("partition.public_limit", 0, "paper", "all of OASIS-3 (0 means no limit)", gpu=10_000),
    Setting("partition.public_share", 0.0, "paper", "the public data are another set"),
    Setting("network.pretrained", "none", "assumed", "none is named"),
    Setting("network.plain", "unet-32-in", "code", "FL-MRCM's: fastMRI's U-Net", cpu="unet-8-in", smoke="unet-8-in"),
    Setting("network.unchanged", "unchanged", "assumed", "the zero-filled image itself, for the floor"),
    *shared.alike("augmentation", "rotation shift scale", 0.0, "code", "none"),
    *shared.alike("augmentation", "crop cutout", 0, "code", "none"),
    Setting("augmentation.horizontal_flip", False, "code", "none"),
    Setting("local.optimizer", "adam", "paper", "section 4.3.2; FL-MRCM itself has RMSprop"),
    Setting("local.lr", {"row=zero-filled": 1e-12, "": 1e-4}, "paper", "section 4.3.2; of the floor so small that its one factor stays 1",
            cpu={"row=zero-filled": 1e-12, "": 2e-3}, smoke={"row=zero-filled": 1e-12, "": 5e-3}),
    Setting("local.momentum", 0.0, "paper", "Adam"),
    Setting("local.weight_decay", 0.0, "assumed", "none is named"),
    Setting("local.schedule", "constant", "paper", "section 4.3.2"),
    Setting("local.final_lr", 0.0, "paper", "constant"),
    Setting("local.batch_size", 16, "code", "FL-MRCM's; the paper names none", smoke=8),
    *shared.alike(AVERAGING, "rounds", 50, "code", "FL-MRCM's, of two local epochs", cpu=10, smoke=3, gpu=5),
    *shared.alike(AVERAGING, "participation", 1.0, "code", "all clients in every round"),
    *as_class("fl-mrcm", "adversarial hidden discriminator_lr"),
    *shared.AT_THE_END,
)  # fmt: skip
"""What FedIOD's Table 9 has too, which has the same sites and preprocessing."""

SETTINGS = (
    *DATA,
    Setting("public.name", {f"modality={m}": f"oasis3-{m}" for m in MODALITIES}, "paper", "section 4.3.1: of the clients' modality"),
    Setting("partition.validation_share", 0.1, "assumed",
            "of each site's subjects, at the server, and only FedDF looks at them; IXI alone has a validation set in the paper"),
    Setting("network.client", "unet", "paper", "section 4.3.2: FL-MRCM's U-Net with a residual non-local block"),
    Setting("network.server", "unet", "paper", "the same"),
    Setting("network.unet", "unet-32-in-nonlocal", "paper", "the block at 512 x 16 x 16, without weights as printed", **SMALL),
    Setting("local.epochs", {AVERAGED: 2, "": 20}, "paper", "section 4.3.2; averaging methods: two in a round, as FL-MRCM's code",
            cpu={AVERAGED: 2, "": 20}, smoke={AVERAGED: 2, "row=zero-filled": 1, "": 6}, gpu={AVERAGED: 2, "": 5}),
    Setting("server.optimizer", "rmsprop", "paper", "section 4.3.2"),
    Setting("server.lr", 1e-4, "paper", "section 4.3.2", cpu=1e-3, smoke=2e-3),
    *shared.alike("server", "momentum weight_decay", 0.0, "assumed", "none is named"),
    Setting("server.schedule", "constant", "paper", "section 4.3.2"),
    Setting("server.final_lr", 0.0, "paper", "constant"),
    Setting("server.batch_size", 16, "assumed", "as local training", smoke=8),
    Setting("server.epochs", 5, "paper", "section 4.3.2", cpu=60, smoke=10, gpu=2),
    Setting("fedad.one_shot", True, "paper", "section 4: one-shot for reconstruction"),
    *as_class("fedad", "bounds rho threshold bound_scale upper ensemble"),
    *as_class("feddf", "distillation_lr may_keep_average augmented clip_norm"),
    Setting("feddf.distillation_batch_size", 64, "code", "FedDF's code", cpu=16, smoke=8),
    Setting("feddf.distillation_steps", 10_000, "code", "FedDF's code", cpu=50, smoke=10, gpu=100),
    Setting("feddf.evaluation_interval", 100, "code", "FedDF's code", cpu=10, smoke=5, gpu=50),
    Setting("feddf.patience", 1_000, "code", "FedDF's code", cpu=50, smoke=10, gpu=100),
)  # fmt: skip

[ZERO_FILLED] = shared.variants("standalone", {
    "zero-filled": ("Zero-filled input", {"network.client": "unchanged", "network.server": "unchanged"})
})  # fmt: skip
AVERAGE, FEDAD, BOUND = shared.without(ALONE, shared.FEDAVG, shared.FEDAD, shared.CENTRALIZED)
MRCM = Row("fl-mrcm", "fl-mrcm", "FL-MRCM", absent=ALONE, config=PLAIN)
FEDDF = Row("feddf", "feddf", "FedDF++", absent=ALONE)
AXES = {"train": "data.train", "test": "slices.test", "modality": ""}

ABLATION = shared.variants("fedad", {
    "ensemble=average variant=1 public=t1w": ("Average ensemble", {**PLAIN, "fedad.ensemble": "average", "fedad.bounds": False}),
    "ensemble=eq13 variant=2 public=t1w": ("Eq. 13", {**PLAIN, "fedad.bounds": False}),
    "ensemble=eq13 variant=3 public=t1w": ("Eq. 13, non-local block", {"fedad.bounds": False}),
    "ensemble=eq13 variant=4 public=t1w": ("Eq. 13, non-local block, lower bound", {"fedad.upper": False}),
    "ensemble=eq13 variant=5 public=t1w": ("FedAD", {}),
    "ensemble=eq13 variant=6 public=t2w": ("FedAD, T2w public images", {"public.name": "oasis3-t2"}),
})  # fmt: skip
"""Table 6's six printed columns, here its rows; which ticks they have is inferred."""

IN_DOMAIN = grid(train=(*SITES, ALL), test=SITES, modality=MODALITIES)
UNSEEN = tuple(
    {"train": train, "test": test, "modality": modality}
    for train, test in (("b,f", "i"), ("f,i", "b"), ("b,i", "f"))
    for modality in MODALITIES
)

_table = partial(Table, axes=AXES, measure="by-site", unit="fraction", settings=SETTINGS)

TABLES = (
    _table(
        key="table6",
        caption="Reconstruction of T1-weighted brain MRI: the ensemble, the non-local block, the bounds and the public images",
        rows=ABLATION,
        columns=({"train": ALL, "test": ALL, "modality": "t1"},),
        metrics=QUALITY,
        own="ensemble=eq13 variant=5 public=t1w",
        offered=(ZERO_FILLED, BOUND, shared.SCALED),
    ),
    _table(
        key="table7",
        caption="Reconstruction of brain MRI on the test subjects of the sites that train",
        rows=(*shared.without((f"train={ALL}",), shared.STANDALONE), BOUND, MRCM, FEDAD),
        columns=IN_DOMAIN,
        metrics=(*QUALITY, "bandwidth-gb"),
        derived=(
            Derived(
                {"train": ALL, "test": "all", "modality": "all"},
                tuple({"train": ALL, "test": "b", "modality": m} for m in MODALITIES),
                ("bandwidth-gb",),
                alone=True,
            ),
        ),
        offered=(ZERO_FILLED, AVERAGE, FEDDF),
    ),
    _table(
        key="table8",
        caption="Reconstruction of brain MRI on the test subjects of a site that does not train",
        rows=(AVERAGE, MRCM, FEDDF, FEDAD, BOUND),
        columns=UNSEEN,
        metrics=(*QUALITY, "num-test-subjects"),
        own="fedad",
        derived=tuple(
            Derived(
                {"train": "leave-one-out", "test": "waverage", "modality": modality},
                tuple(column for column in UNSEEN if column["modality"] == modality),
                QUALITY,
                weights="num-test-subjects",
            )
            for modality in MODALITIES
        ),
        offered=(ZERO_FILLED,),
    ),
    _table(
        key="figure4",
        caption="Reconstructions of a test slice of each site, and their errors",
        rows=(BOUND, MRCM, FEDAD),
        columns=grid(train=(ALL,), test=SITES, modality=MODALITIES),
        measure="error-maps",
        metrics=QUALITY,
        offered=(ZERO_FILLED, AVERAGE, FEDDF),
    ),
)  # fmt: skip
