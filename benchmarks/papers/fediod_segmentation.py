"""FedIOD's segmentation tables: brain tumours (Table 2) and nuclei (Tables 3, 4 and 8).

Values marked `code` are those of its author's segmentation code (lsl001006/brats_nuclei_seg and
asyndgan), or of AsynDGAN's (tommy-qichang/AsynDGAN).
"""

from functools import partial

from fedtables.benchmarks.papers import shared
from fedtables.benchmarks.tables.spec import Row, Setting, Table, as_class, grid

TUMOUR = "table=table2|figure5|figure8b"
SEVERAL = "table=table4|table8|figure3"
FOUR = "table=table3|figure6"
ORGANS = ("breast", "liver", "kidney", "prostate")
SITES = ("cell17", "tcga", "tnbc")
TOGETHER = ",".join(SITES)
METRICS = ("dice", "obj-dice", "aji", "hd95")

ALONE = tuple(f"train={organ}" for organ in ORGANS)
ASYNDGAN = Row("asyndgan", "asyndgan", "AsynDGAN")
FEDIOD = Row("fediod", "fediod-segmentation", "FedIOD")
RELEASED = Row("fediod-released", "fediod-segmentation", "FedIOD", protocol="released")
OFFERED = shared.without(ALONE, shared.FEDPROX, RELEASED)
[BOUND] = shared.without(ALONE, shared.CENTRALIZED)

SEEDED = ("partition", "weights", "sampling", "shuffling")
"""What a seed moves: sites and sizes of tumours divide the samples, so the partition alone is no
spread."""

GAN = "asyndgan fediod-segmentation"
REDUCED = {"protocol=released": 0.0, "": 0.1}
NARROW = {"protocol=released": "resnet-generator-bn-narrow", "": "resnet-generator-narrow"}

PER_CLIENT = (
    "of each client; 8 of four clients as in the appendix; FedIOD on BraTS: the appendix's 2"
)
COLOURS = "nuclei: 0; reduced: colours come in some hundred steps by it alone"
DISTANCES = "distances by the features of reduced profiles are some hundred times as large"

SETTINGS = (
    Setting("data.name", "cell17+monuseg+tnbc", "paper", "Tables 4 and 8; at cpu all sites at about half resolution, as MoNuSeg is there",
            cpu="cell17+monuseg+tnbc-half"),
    Setting("pixels.called", {SEVERAL: "monuseg=tcga", "": ""}, "paper", "Tables 4 and 8 name TCGA",
            cpu={SEVERAL: "monuseg=tcga+tnbc-half=tnbc", "": ""}),
    Setting("data.task", {TUMOUR: "tumour", "": "nuclei"}, "paper", "the experiments on segmentation"),
    Setting("data.image_size", {TUMOUR: 224, "": 256}, "paper",
            "BraTS: crops of 224 (ours: slices resized); nuclei: patches of 256, at cpu of images at half resolution",
            cpu=64, smoke={TUMOUR: 32, "": 48}),
    Setting("pixels.cut", {TUMOUR: False, "": True}, "paper", "nuclei: cropped to patches, stitched for the metrics"),
    Setting("pixels.patches", {TUMOUR: 0, "": 4}, "code", "16 overlapping patches of an image", cpu={TUMOUR: 0, "": 8}, smoke={TUMOUR: 0, "": 2}),
    Setting("pixels.overlap", 80 / 256, "code", "windows of 256 with 80 pixels in common; here blended, there the middle is kept"),
    Setting("pixels.weights", "1+2+4", "assumed",
            "appendix: foreground and contour are given more weight than background; the code has a map per image"),
    Setting("pixels.cross_entropy", 1.0, "code", "BCE and soft Dice with equal weights"),
    Setting("pixels.dice", 1.0, "code", "the same; here of each slice, there of the whole batch"),
    Setting("pixels.distance", "mask", "assumed", "the text counts HD95 among the metrics of semantic segmentation"),
    Setting("pixels.reading", "paper", "paper", "Eq. 12: sorted and nonrepeated; of all rows alike"),
    Setting("pixels.smallest", 20, "code", "pixels of the smallest object that is kept", cpu=5, smoke=5),
    Setting("pixels.radius", 2, "code", "pixels by which recovered nuclei grow; the boundary has taken one of them, and at half "
            "resolution two make them larger than they are", cpu=1, smoke=1),
    Setting("pixels.least", {TUMOUR: 10, "": 0}, "code", "slices with at least ten pixels of tumour"),
    Setting("public.name", "", "paper", "no auxiliary data"),
    Setting("partition.kind", {TUMOUR: "by-size", "": "by-site"}, "paper", "BraTS: sorted by tumour size; nuclei: organs or sites"),
    Setting("partition.clients", {TUMOUR: 10, "train=all": 4, f"train={TOGETHER}": 3, "": 1}, "paper", "K"),
    Setting("partition.validation_share", 0.0, "paper", "the code validates on the test images; here on nothing"),
    Setting("partition.public_share", 0.0, "paper", "nothing is public"),
    Setting("partition.public_limit", 0, "paper", "nothing is public"),
    Setting("partition.pool_limit", 0, "paper", "all (0 means no limit)", smoke={TUMOUR: 0, "": 6}),
    Setting("partition.test_limit", 0, "paper", "all (0 means no limit); fewer are whole subjects", gpu={TUMOUR: 2_000, "": 0}),
    Setting("network.client", "unet", "paper", "AsynDGAN's U-Net"),
    Setting("network.server", "unet", "paper", "the same"),
    Setting("network.unet", "unet-64-bn", "code", "64 to 1,024 channels, activation before normalisation",
            cpu="unet-16-bn", smoke="unet-narrow"),
    Setting("network.pretrained", "none", "paper", "none is named"),
    Setting("local.optimizer", "adam", "paper", "appendix"),
    Setting("local.lr", {TUMOUR: 2e-3, "": 2.5e-4}, "paper", "appendix", released=1e-3,
            cpu={TUMOUR: 3e-3, FOUR: 2.5e-4, "": 1e-3}, smoke=5e-3),
    Setting("local.momentum", 0.0, "paper", "Adam"),
    Setting("local.weight_decay", 0.0, "paper", "appendix names none", released=1e-4),
    Setting("local.schedule", "constant", "paper", "appendix"),
    Setting("local.final_lr", 0.0, "paper", "constant"),
    Setting("local.batch_size", {TUMOUR: 16, "": 4}, "paper", "appendix", released=16, cpu={FOUR: 4, "": 16}, smoke=4),
    Setting("local.epochs", {"method=fedavg|fedprox": 1, TUMOUR: 50, "": 100}, "paper",
            "appendix; FedAvg: an epoch a round (assumed)", cpu={"method=fedavg|fedprox": 1, TUMOUR: 40, FOUR: 25, "": 12},
            smoke={"method=fedavg|fedprox": 1, "": 2}, gpu={"method=fedavg|fedprox": 1, "": 10}),
    *shared.alike("fedavg fedprox", "rounds", {TUMOUR: 50, "": 100}, "assumed", "as many epochs in all as Standalone has",
           cpu={TUMOUR: 40, FOUR: 25, "": 12}, smoke=2, gpu=10),
    *shared.alike("fedavg fedprox", "participation", 1.0, "assumed", "all clients in every round"),
    Setting("server.optimizer", "adam", "code", "AsynDGAN's downstream U-Net is trained as local ones are (assumed)"),
    Setting("server.lr", {TUMOUR: 2e-3, "": 2.5e-4}, "assumed", "the same", cpu={TUMOUR: 3e-3, "": 1e-3}, smoke=5e-3),
    Setting("server.batch_size", {TUMOUR: 16, "": 4}, "assumed", "the same", cpu=16, smoke=4),
    Setting("server.epochs", {TUMOUR: 50, "": 100}, "assumed", "the same", cpu={TUMOUR: 40, "": 12}, smoke=2, gpu=10),
    Setting("augmentation.rotation", {TUMOUR: 10.0, "": 0.0}, "code", "BraTS: up to 10 degrees", smoke=0.0),
    Setting("augmentation.crop", 0, "paper", "patches are cut before"),
    Setting("augmentation.cutout", 0, "paper", "none"),
    Setting("augmentation.horizontal_flip", True, "paper", "appendix"),
    Setting("augmentation.vertical_flip", {TUMOUR: False, "": True}, "paper", "appendix: nuclei both ways"),
    Setting("augmentation.quarter_turns", {TUMOUR: False, "": True}, "paper", "appendix: random rotation; by 90 degrees in the code"),
    *shared.alike(GAN, "generator", "resnet-generator", "paper", "9-block ResNet; released: with BatchNorm and dropout, N(0, 0.02)",
           released="resnet-generator-bn", cpu=NARROW, smoke=NARROW),
    *shared.alike(GAN, "discriminator_width", 64, "code", "pix2pix", cpu=32, smoke=8),
    *shared.alike(GAN, "discriminator_layers", 3, "code", "patches of 70 pixels", cpu=2, smoke=1),
    Setting("asyndgan.batch_size", {TUMOUR: 1, "": 2}, "code", PER_CLIENT),
    Setting("fediod-segmentation.batch_size", {TUMOUR: 2, "": 2}, "code", PER_CLIENT),
    *shared.alike(GAN, "steps", 0, "code", "as many as the largest client has batches",
           cpu={f"{TUMOUR} method=fediod-segmentation": 24, "": 48}, smoke=3),
    *shared.alike(GAN, "features", "vgg16", "code", "relu1_2, 2_2, 3_3 and 4_3", cpu="efficientnet-lite0", smoke="efficientnet-lite0"),
    Setting("asyndgan.l1", {TUMOUR: 100.0, "": 0.0}, "code", COLOURS, cpu=30.0, smoke=30.0),
    Setting("fediod-segmentation.l1", {TUMOUR: 0.0, "": 0.0}, "code", COLOURS, cpu=30.0, smoke=30.0),
    Setting("asyndgan.perceptual", {TUMOUR: 1.0, "": 10.0}, "code", DISTANCES, cpu=0.02, smoke=0.02),
    Setting("fediod-segmentation.perceptual", {TUMOUR: 10.0, "": 10.0}, "code", DISTANCES, cpu=0.02, smoke=0.02),
    *shared.alike(GAN, "samples", {"table=figure6": 1, "": 0}, "assumed", "an image of each client's first label map, for Figure 6"),
    *as_class("asyndgan", "generator_beta gan_weights generator_scale discriminator_scale"),
    *as_class("fediod-segmentation", "generator_beta"),
    Setting("fediod-segmentation.gan_weights", "size", "paper", "Eq. 2", released="one"),
    Setting("fediod-segmentation.generator_scale", 1.0, "paper", "Eq. 11 has no weights", released=0.1),
    Setting("fediod-segmentation.discriminator_scale", 1.0, "paper", "the same", released=0.05),
    Setting("fediod-segmentation.judges", "all", "paper", "Algorithm 1: every D_k judges every image", released="own"),
    Setting("fediod-segmentation.weights", "eq8", "paper", "Eq. 8", released="sum"),
    Setting("fediod-segmentation.temperature", 0.0, "paper", "Eq. 10; 0 stands for infinity", released=5.0),
    Setting("fediod-segmentation.printed_mimic", False, "paper", "Eq. 10 as the limit of Eq. 6; its printed sum, 2C times as much or more, "
            "at reduced scale, whose weight of L_mimic goes with it", cpu=True, smoke=True),
    Setting("fediod-segmentation.distillation", 1.0, "paper", "Eq. 10; released: of the label's weight map too, which the released row here lacks", released=0.04),
    Setting("fediod-segmentation.supervised", 0.0, "paper", "Algorithm 1: the student learns from the teachers alone", released=1.0),
    Setting("fediod-segmentation.mimic", 1.0, "paper", "Eq. 11; less in the few steps of reduced profiles, as in the classification "
            "tables", cpu={"protocol=released": 0.0, "": 1e-4}, smoke={"protocol=released": 0.0, "": 1e-4}, released=0.0),
    *shared.alike("fediod-segmentation", "confidence uniqueness", 1.0, "paper", "Eq. 11; the same", cpu=REDUCED, smoke=REDUCED, released=0.0),
    Setting("fediod-segmentation.student_beta", 0.9, "paper", "Adam", released=0.5),
    Setting("fediod-segmentation.weight_decay", 0.0, "paper", "none is named", released=1e-4),
    Setting("fediod-segmentation.amsgrad", False, "paper", "Adam", released=True),
    Setting("asyndgan.generator_lr", 2e-4, "code", "", cpu=2e-3, smoke=2e-3),
    Setting("asyndgan.constant_epochs", {TUMOUR: 100, "": 200}, "code", "", cpu=8, smoke=2, gpu=5),
    Setting("asyndgan.decay_epochs", {TUMOUR: 100, "": 200}, "code", "", cpu=4, smoke=1, gpu=5),
    Setting("fediod-segmentation.generator_lr", {TUMOUR: 2e-4, "": 1e-4}, "paper", "appendix", cpu=2e-3, smoke=2e-3),
    Setting("fediod-segmentation.warmup_epochs", {TUMOUR: 0, "": 100}, "paper", "appendix", cpu={TUMOUR: 0, "": 8}, smoke={TUMOUR: 0, "": 1}, gpu={TUMOUR: 0, "": 5}),
    Setting("fediod-segmentation.epochs", {TUMOUR: 400, "": 300}, "paper", "appendix", cpu=16, smoke=2, gpu=10),
    Setting("fediod-segmentation.decay_epochs", 0, "paper", "appendix names none", released=200,
            cpu={"protocol=released": 6, "": 0}, smoke={"protocol=released": 1, "": 0}, gpu={"protocol=released": 5, "": 0}),
    Setting("fediod-segmentation.lr", {TUMOUR: 2e-4, "": 1e-4}, "paper", "appendix", cpu=1e-3, smoke=5e-3),
    Setting("evaluation.looks", {TUMOUR: 20, "": 10}, "assumed",
            "of a training's epochs or a fit's rounds, evenly spread: whether they had settled; nuclei take ten seconds a look"),
    Setting("evaluation.statistic", "last", "assumed", "the code takes the best epoch by the test images"),
    Setting("evaluation.last_epochs", 1, "assumed", "the end"),
    Setting("evaluation.at", 1.0, "assumed", "the end"),
)  # fmt: skip

NUCLEI_ROWS = shared.without(ALONE, shared.FEDAVG, ASYNDGAN, FEDIOD)
DISTRIBUTED = (ASYNDGAN, shared.FEDAVG, FEDIOD)
TESTED = (*SITES, "average")

_table = partial(
    Table,
    measure="by-site",
    metrics=METRICS,
    unit="percent",
    seed_axes=SEEDED,
    settings=SETTINGS,
    offered=(*OFFERED, BOUND),
)
_of_tumours = partial(
    _table,
    columns=({"dataset": "brats2018"},),
    axes={"dataset": ""},
    fixed={"data.name": "brats2018-slices"},
    metrics=("dice", "sensitivity", "specificity", "hd95"),
)

_of_organs = partial(
    _table,
    axes={"dataset": "", "train": "data.train"},
    fixed={"data.name": "monuseg-kumar", "pixels.labels": "+".join(ORGANS)},
)

_TABLES = (
    _of_tumours(
        key="table2",
        caption="Segmentation of whole tumours in T2 slices of BraTS2018, ten clients by tumour size",
        rows=(shared.STANDALONE, BOUND, shared.FEDAVG, ASYNDGAN, FEDIOD),
        offered=OFFERED,
    ),
    _of_organs(
        key="table3",
        caption="Segmentation of nuclei, one organ on each client (TCGA)",
        rows=(*shared.without(("train=all",), shared.STANDALONE), *NUCLEI_ROWS),
        columns=grid(dataset=("tcga",), train=(*ORGANS, "all")),
    ),
    _table(
        key="table4",
        caption="Segmentation of nuclei, one site on each client",
        rows=NUCLEI_ROWS,
        columns=grid(train=(TOGETHER,), test=TESTED),
        axes={"train": "data.train", "test": "pixels.test"},
    ),
    _table(
        key="figure3",
        caption="Contours of nuclei that each method finds in a test image of each site",
        rows=DISTRIBUTED,
        columns=({"train": TOGETHER},),
        axes={"train": "data.train"},
        fixed={"pixels.test": "average"},
        measure="contours",
    ),
    _of_tumours(
        key="figure5",
        caption="Contours of tumours that each method finds in a test slice of BraTS2018",
        rows=DISTRIBUTED,
        measure="contours",
    ),
    _of_organs(
        key="figure6",
        caption="Images that are made of the same label maps, beside the real ones (TCGA, an organ on each client)",
        rows=(ASYNDGAN, FEDIOD),
        columns=({"dataset": "tcga", "train": "all"},),
        measure="synthesis",
        metrics=("mean-absolute-error",),
        unit="",
        offered=(RELEASED,),
    ),
    _table(
        key="figure8b",
        caption="Dice against bandwidth on BraTS2018",
        rows=(shared.FEDAVG, FEDIOD),
        columns=({"panel": "brats2018"},),
        axes={"panel": ""},
        fixed={"data.name": "brats2018-slices", "evaluation.looks": 0},
        measure="bandwidth",
        metrics=("dice",),
        offered=(*OFFERED, ASYNDGAN),
    ),
    _table(
        key="table8",
        offered=(),
        caption="Every site's own model on every site's test images",
        rows=(shared.STANDALONE,),
        columns=grid(train=SITES, test=TESTED),
        axes={"train": "data.train", "test": "pixels.test"},
        own="",
    ),
)

TABLES = {table.key: table for table in _TABLES}
"""By key."""
