"""FedAD: "Federated Learning with Privacy-Preserving Ensemble Attention Distillation" (Gong et al., IEEE TMI).

The tables of chest films, 1 to 4, and Figure 3; of Tables 5 and 7, which have no runner, the bytes. The authors released
no code. Values marked `code` are those of the code that the paper names (jfhealthcare/Chexpert, its reference 59) or of a
comparator: FedDF (epfml), FedMD (diogenes0319), NVFlare's BraTS18 job for Li et al. 2019, FL-MRCM (guopengf/FL-MRCM).
"""

from dataclasses import replace
from functools import partial

from benchmarks.papers.outlines import numbers
from benchmarks.tables.bandwidth import Account, Factor, Flow, Reading
from benchmarks.tables.spec import Paper, Row, Setting, Table, grid

FLOAT = Factor(
    "size of a number", 4, "bytes", "assumed", "float32; the paper names no type or compression"
)

# -- Table 5: BraTS2018 -----------------------------------------------------------------------------------------------

SITES = Factor("clients, Table 5", 3, "clients", "paper", "4.2.2: three federated local clients")
PUBLIC = Factor(
    "public volumes", 125, "volumes", "paper", "4.2.2: the unlabelled validation set of BraTS 2020"
)
VOLUME = (
    Factor("height", 240, "rows", "data", "BraTS: a volume has 240 x 240 x 155 voxels"),
    Factor("width", 240, "columns", "data", "the same"),
    Factor("depth", 155, "slices", "data", "the same"),
)
CROP = (
    Factor(
        "height of a crop",
        224,
        "rows",
        "code",
        "NVFlare's BraTS18 job trains on crops of 224 x 224 x 144 voxels",
    ),
    Factor("width of a crop", 224, "columns", "code", "the same"),
    Factor("depth of a crop", 144, "slices", "code", "the same"),
)
MAPS = Factor(
    "output maps", 3, "maps", "paper", "Table 5: whole tumour, tumour core and enhancing tumour"
)
ITERATIONS = Factor(
    "local iterations",
    20_000,
    "iterations",
    "paper",
    "4.2.2: the local training takes 20,000 iterations",
)
ONE = Factor(
    "volumes in an iteration",
    1,
    "volume",
    "assumed",
    "a batch of one volume; the paper names no batch size",
)

MD_ROUNDS = Factor(
    "rounds of FedMD", 20, "rounds", "code", "FedMD's code, balanced setting; the paper is silent"
)

LI_ROUNDS = Factor(
    "rounds of Li et al.",
    600,
    "rounds",
    "code",
    "NVFlare's BraTS18 job, an epoch each; the paper is silent",
)
LI_SITES = Factor("clients in NVFlare", 4, "clients", "code", "NVFlare's BraTS18 job")
SEGRESNET = Factor(
    "SegResNet",
    partial(numbers, "segresnet-3d", 4, 3, 224, 224, 144),
    "numbers",
    "network",
    "NVFlare's BraTS18 job, 16 channels first; MONAI's",
)
HALF = Factor(
    "SegResNet, halved",
    partial(numbers, "segresnet-half-3d", 4, 3, 224, 224, 144),
    "numbers",
    "network",
    "the same with half its channels, as FedAD's (4.2.2)",
)
SHARE = Factor(
    "share uploaded",
    0.9,
    "of them",
    "code",
    "NVFlare 2.1 to 2.6 with sparse vectors: 90 % of the update; indices not counted",
)

ANSWERS = (*VOLUME, MAPS, FLOAT)
COLUMN_5 = "dataset=brats2018 eps1=none eps3=none"


def _models(*factors: Factor) -> tuple[Flow, Flow]:
    """A network down to every client and back up in every round."""
    return Flow("local models", "up", factors), Flow("global model", "down", factors)


LI = (LI_ROUNDS, SITES, SEGRESNET, FLOAT)

TABLE_5 = (
    Account("li-et-al", "Li et al. 2019", COLUMN_5, (
        Reading("models of all clients, both ways", _models(*LI), free=LI_ROUNDS.name),
        Reading("the same, 90 % of an update up", (
            Flow("local updates", "up", (*LI, SHARE)),
            Flow("global model", "down", LI),
        ), free=LI_ROUNDS.name),
        Reading("models of all clients, up only", _models(*LI)[:1]),
        Reading("both ways, NVFlare's four clients", _models(LI_ROUNDS, LI_SITES, SEGRESNET, FLOAT)),
        Reading("both ways, half the channels", _models(LI_ROUNDS, SITES, HALF, FLOAT)),
    )),
    Account("fedmd", "FedMD", COLUMN_5, (
        Reading("20 rounds over the public volumes, all clients, both ways", (
            Flow("answers", "up", (MD_ROUNDS, SITES, PUBLIC, *ANSWERS)),
            Flow("consensus", "down", (MD_ROUNDS, SITES, PUBLIC, *ANSWERS)),
        ), free=MD_ROUNDS.name),
        Reading("a volume in every local iteration, one client's answers", (
            Flow("answers", "up", (ITERATIONS, ONE, *ANSWERS)),
        ), free=ITERATIONS.name),
        Reading("a crop in every local iteration, one client's answers", (
            Flow("answers", "up", (ITERATIONS, ONE, *CROP, MAPS, FLOAT)),
        )),
        Reading("a volume in every local iteration, all clients, both ways", (
            Flow("answers", "up", (ITERATIONS, ONE, SITES, *ANSWERS)),
            Flow("consensus", "down", (ITERATIONS, ONE, SITES, *ANSWERS)),
        )),
    )),
    Account("fedad", "FedAD", COLUMN_5, (
        Reading("one-shot answers of all clients", (Flow("answers", "up", (SITES, PUBLIC, *ANSWERS)),)),
        Reading("one-shot answers of one client", (Flow("answers", "up", (PUBLIC, *ANSWERS)),)),
        Reading("one-shot answers of one client, on crops", (Flow("answers", "up", (PUBLIC, *CROP, MAPS, FLOAT)),)),
    )),
)  # fmt: skip
"""One-shot: each local model transfers its prediction over public data only once (section 4). The public volumes are
known to all and do not cross."""

# -- Table 7: MRI reconstruction --------------------------------------------------------------------------------------

NODES = Factor(
    "clients, Table 7", 3, "clients", "paper", "4.3.1: fastMRI, BraTS2020 and IXI, one client each"
)
NETWORKS = Factor("modalities", 2, "modalities", "paper", "Table 7: T1 and T2; a network each")
TARGETS = Factor(
    "target clients",
    3,
    "targets",
    "code",
    "FL-MRCM trains for the test set of one client at a time",
)
MRCM_ROUNDS = Factor("rounds of FL-MRCM", 50, "rounds", "code", "FL-MRCM's code")
MRCM_EPOCHS = Factor("local epochs of FL-MRCM", 2, "epochs", "code", "FL-MRCM's code")
UNET = Factor(
    "U-Net",
    partial(numbers, "unet-32-in", 1, 1, 256, 256),
    "numbers",
    "network",
    "FL-MRCM's code: 32 channels first, four poolings",
)
FEATURES = Factor(
    "pooled features",
    512 * 2 * 2,
    "numbers",
    "code",
    "FL-MRCM's code: 512 channels pooled to 2 x 2",
)
SLICES = Factor(
    "private slices", 2_583 * 15 + 369 * 120 + 436 * 150 + 2_874 * 15 + 369 * 120 + 434 * 130, "slices", "paper",
    "4.3.1: training subjects times slices of each, T1 and T2 of F, B and I",
)  # fmt: skip
OTHERS = Factor(
    "sources of a target",
    2,
    "sources",
    "paper",
    "every client but the target; so each slice twice over all targets",
)

T1_SUBJECTS = Factor("public subjects, T1", 3_388, "subjects", "paper", "4.3.1: OASIS-3, T1w")
T2_SUBJECTS = Factor("public subjects, T2", 3_598, "subjects", "paper", "4.3.1: OASIS-3, T2w")
SUBJECTS = Factor(
    "public subjects", 3_388 + 3_598, "subjects", "paper", "4.3.1: OASIS-3, T1w and T2w"
)
DEPTH = Factor(
    "slices of a public subject",
    120,
    "slices",
    "assumed",
    "as many as FL-MRCM keeps of BraTS; the paper has no number",
)
DEPTH_T1 = Factor(
    "slices as IXI's, T1", 150, "slices", "assumed", "4.3.1 gives IXI's; OASIS-3's are not given"
)
DEPTH_T2 = Factor(
    "slices as IXI's, T2", 130, "slices", "assumed", "4.3.1 gives IXI's; OASIS-3's are not given"
)
SLICE = (
    Factor("height of a slice", 256, "rows", "paper", "4.3.2: cropped to 256 x 256"),
    Factor("width of a slice", 256, "columns", "paper", "the same"),
)
POSITIONS = Factor(
    "positions of features",
    16 * 16,
    "positions",
    "paper",
    "4.3.2: 512 x 16 x 16; attention is between any two",
)
ATTENTION = (POSITIONS, POSITIONS)

MRCM = (MRCM_ROUNDS, NODES, NETWORKS, UNET, FLOAT)

COLUMN_7 = "train=b,f,i test=all modality=all"

TABLE_7 = (
    Account("fl-mrcm", "FL-MRCM", COLUMN_7, (
        Reading("a training for every target: models both ways, the target's features for every source slice", (
            *_models(*MRCM, TARGETS),
            Flow("features", "up", (MRCM_ROUNDS, MRCM_EPOCHS, OTHERS, SLICES, FEATURES, FLOAT)),
        ), free=MRCM_ROUNDS.name),
        Reading("one training: models both ways, features of every private slice", (
            *_models(*MRCM),
            Flow("features", "up", (MRCM_ROUNDS, MRCM_EPOCHS, SLICES, FEATURES, FLOAT)),
        ), free=MRCM_ROUNDS.name),
        Reading("one training: models both ways only", _models(*MRCM), free=MRCM_ROUNDS.name),
    )),
    Account("fedad", "FedAD", COLUMN_7, (
        Reading("one-shot outputs and attention of all clients, T1 and T2", (
            Flow("outputs", "up", (NODES, SUBJECTS, DEPTH, *SLICE, FLOAT)),
            Flow("attention", "up", (NODES, SUBJECTS, DEPTH, *ATTENTION, FLOAT)),
        ), free=DEPTH.name),
        Reading("outputs alone of all clients, T1 and T2", (
            Flow("outputs", "up", (NODES, SUBJECTS, DEPTH, *SLICE, FLOAT)),
        ), free=DEPTH.name),
        Reading("outputs alone of all clients, with IXI's slices", (
            Flow("outputs, T1", "up", (NODES, T1_SUBJECTS, DEPTH_T1, *SLICE, FLOAT)),
            Flow("outputs, T2", "up", (NODES, T2_SUBJECTS, DEPTH_T2, *SLICE, FLOAT)),
        )),
        Reading("outputs and attention of one client, T1 and T2", (
            Flow("outputs", "up", (SUBJECTS, DEPTH, *SLICE, FLOAT)),
            Flow("attention", "up", (SUBJECTS, DEPTH, *ATTENTION, FLOAT)),
        ), free=DEPTH.name),
        Reading("outputs and attention of all clients, T1 alone", (
            Flow("outputs", "up", (NODES, T1_SUBJECTS, DEPTH, *SLICE, FLOAT)),
            Flow("attention", "up", (NODES, T1_SUBJECTS, DEPTH, *ATTENTION, FLOAT)),
        ), free=DEPTH.name),
    )),
)  # fmt: skip

ACCOUNTS = {"table5": TABLE_5, "table7": TABLE_7}

# -- Tables 1 to 4, Figure 3: chest films -----------------------------------------------------------------------------

NIH, CHEXPERT, BOTH = "nih-cxr14", "chexpert", "cross-domain"
FINDINGS = {
    NIH: "cardiomegaly+emphysema+hernia+infiltration+mass+nodule+atelectasis+pneumothorax+pneumonia+fibrosis+edema+consolidation",
    CHEXPERT: "cardiomegaly+atelectasis+pneumothorax+pneumonia+edema+consolidation+enlarged-cardiomediastinum+lung-opacity",
}
"""By site, in the order of Table 1."""
SIZES = (1_000, 5_000, 10_000, 15_000, 20_000, 26_684)
"""Public films in the columns of Table 3."""
CPU_FILMS, SMOKE_FILMS = 2_000, 300
CPU_EPOCHS = dict(zip(SIZES, (168, 42, 21, 14, 11, 8), strict=True))
"""Under cpu, by size of the public set in Table 3: about 504 steps each (517 of 20,000), with batches of 32."""
NO_PUBLIC = ("public-size=none",)
AVERAGED = "method=fedavg|feddf"
AXES = {"dataset": "data.name", "clients": "partition.clients", "alpha": "partition.alpha"}


def _sizes(films: int) -> dict[str, int]:
    """Public films by column, `films` for all of them."""
    return {**{f"public-size={size}": round(size * films / SIZES[-1]) for size in SIZES}, "": films}


def _ablation(key: str, title: str, bounds: bool, dropped: int) -> Row:
    return Row(
        key,
        "fedad",
        title,
        absent=("clients=None",),
        config={"fedad.bounds": bounds, "fedad.dropped": dropped},
    )


CENTRALIZED = Row("centralized", "centralized", "Centralized", upper_bound=True)
FEDAD = Row("fedad", "fedad", "FedAD")
OFFERED = (
    Row("fedad-one-shot", "fedad", "FedAD, one-shot", config={"fedad.one_shot": True}),
    Row("fedad-online", "fedad", "FedAD, online", config={"fedad.one_shot": False}),
    Row(
        "fedad-scaled", "fedad", "FedAD, bounds without 1/HW", config={"fedad.bound_scale": "mean"}
    ),
    Row(
        "fedad-quantised",
        "fedad",
        "FedAD, one-shot in uint8",
        config={"fedad.one_shot": True, "fedad.quantised": True},
    ),
)

SETTINGS = (
    Setting("data.name", {"train=nih-cxr14": NIH, "train=cross-domain": f"{NIH}+{CHEXPERT}", "": CHEXPERT}, "paper",
            "section 4.1.1; Table 1's column, elsewhere dataset"),
    Setting("data.task", "findings", "paper", "section 4.1.1: multi-label classification"),
    Setting("data.image_size", 512, "code", "jfhealthcare: long side 512, padded to a square", cpu=32, smoke=16),
    Setting("findings.nih-cxr14", FINDINGS[NIH], "paper", "Table 1: 12 of its 14 labels"),
    Setting("findings.chexpert", FINDINGS[CHEXPERT], "paper", "Table 1: 8 of its 14 labels"),
    Setting("findings.uncertain", "reference", "assumed",
            "jfhealthcare's code has uncertain as present for edema and atelectasis, absent for its three other findings; so here "
            "for all others"),
    Setting("public.name", "rsna-pneumonia", "paper", "section 4.1.1, without its labels"),
    Setting("partition.kind", "dirichlet-fedkd", "assumed",
            "section 4.1.2: Dirichlet, by one of a film's findings at random; which rule is not said, this is the first author's "
            "(FedKD's code)"),
    Setting("partition.clients", {"train=cross-domain": 6, "": 3}, "paper", "Tables 1, 3 and 4; across domains K_d = 3 of each"),
    Setting("partition.alpha", 1.0, "paper", "Tables 1, 3 and 4"),
    Setting("partition.validation_share", 0.1, "paper",
            "section 4.1.2: 10 % of the training data; here of the patients, at the server, and only FedDF looks at them"),
    Setting("partition.public_limit", {**{f"public-size={size}": size for size in SIZES}, "": 0}, "paper",
            "section 4.1.1 and Table 3; all 26,684 elsewhere (0 means no limit)", cpu=_sizes(CPU_FILMS), smoke=_sizes(SMOKE_FILMS)),
    Setting("partition.pool_limit", 0, "paper", "all training films of a site (0 means no limit)", smoke=600),
    Setting("partition.test_limit", 0, "assumed",
            "all test films: NIH's official list, CheXpert's official valid set (0 means no limit)", smoke=300),
    Setting("network.client", "resnet-34", "paper", "section 4.1.2"),
    Setting("network.server", "resnet-34", "paper", "section 4.1.2"),
    Setting("network.resnet-34", "resnet34", "paper", "section 4.1.2", cpu="resnet8-narrow", smoke="resnet8-narrow"),
    Setting("network.pretrained", "imagenet", "assumed", "usual for such films; the paper is silent", cpu="none", smoke="none"),
    Setting("local.optimizer", "sgd", "paper", "section 4.1.2; Centralized (assumed) and the other rows train so too"),
    Setting("local.lr", 1e-3, "paper", "section 4.1.2; higher where steps are few", cpu=0.03, smoke=0.08),
    Setting("local.momentum", 0.9, "assumed", "the paper is silent"),
    Setting("local.weight_decay", 0.0, "assumed", "the paper is silent"),
    Setting("local.schedule", {AVERAGED: "constant", "": "cosine"}, "paper",
            "section 4.1.2; constant (assumed) within a round of what averages parameters"),
    Setting("local.final_lr", 1e-6, "paper", "section 4.1.2"),
    Setting("local.batch_size", 32, "paper", "section 4.1.2", smoke=16),
    Setting("local.epochs", {AVERAGED: 1, "": 15}, "paper",
            "section 4.1.2; averaging methods (assumed): one in a round. More where films are few",
            cpu={AVERAGED: 2, "": 40}, smoke={AVERAGED: 3, "": 20}),
    Setting("server.optimizer", "sgd", "paper", "section 4.1.2; FedMD's central model (assumed) learns so too"),
    Setting("server.lr", 1e-2, "paper", "section 4.1.2; higher where steps are few", cpu=0.03, smoke=0.06),
    Setting("server.momentum", 0.9, "assumed", "the paper is silent"),
    Setting("server.weight_decay", 0.0, "assumed", "the paper is silent"),
    Setting("server.schedule", "cosine", "paper", "section 4.1.2"),
    Setting("server.final_lr", 1e-3, "paper", "section 4.1.2"),
    Setting("server.batch_size", 32, "assumed", "as local training; the paper names one batch size", smoke=16),
    Setting("server.epochs", 20, "paper",
            "section 4.1.2, for every size of the public set. Under cpu as many steps for each: in 8 epochs the smallest had 24",
            cpu={**{f"public-size={size}": epochs for size, epochs in CPU_EPOCHS.items()}, "": CPU_EPOCHS[SIZES[-1]]}, smoke=10),
    Setting("augmentation.rotation", 15.0, "code",
            "jfhealthcare, degrees; the paper takes its methods from there. Here after a film is prepared, bilinear, repeating the "
            "edge; there before, filled with grey"),
    Setting("augmentation.shift", 0.05, "code", "jfhealthcare"),
    Setting("augmentation.scale", 0.05, "code", "jfhealthcare: 0.95 to 1.05"),
    Setting("fedad.bounds", True, "paper", "Eq. 12; off in a row of Table 2"),
    Setting("fedad.dropped", 0, "paper",
            "Table 2's dropout rate times K: local models left out of each step's ensemble, drawn anew (assumed: not defined)"),
    Setting("fedad.one_shot", False, "assumed",
            "section 4 has one-shot for segmentation and reconstruction, so for films clients answer anew in every epoch, whose "
            "films are augmented anew", cpu=True, smoke=True),
    Setting("fedad.rho", 10.0, "assumed", "Eq. 8; of the form of GAIN (Li et al. 2018), whose value the paper does not repeat"),
    Setting("fedad.threshold", 0.5, "assumed", "b of Eq. 8; the level of Figure 3"),
    Setting("fedad.bound_scale", "printed", "paper", "Eq. 7 and 9 as printed, with 1/HW"),
    Setting("fedad.second_order", True, "assumed", "gradients go through the channel weights of the student's map too"),
    Setting("fedad.quantised", False, "assumed", "float32; the paper names no type. uint8 is a row of its own"),
    *(Setting(f"{name}.rounds", 100, "code", "FedDF's released commands; the paper is silent", cpu=20, smoke=6)
      for name in ("fedavg", "feddf")),
    *(Setting(f"{name}.participation", 1.0, "assumed", "three sites, all in every round; the paper is silent")
      for name in ("fedavg", "feddf")),
    Setting("feddf.distillation_steps", 10_000, "code", "FedDF's code", cpu=150, smoke=20),
    Setting("feddf.distillation_batch_size", 64, "code", "FedDF's code", smoke=32),
    Setting("feddf.distillation_lr", 1e-3, "code", "FedDF's code"),
    Setting("feddf.clip_norm", 5.0, "code", "FedDF's code"),
    Setting("feddf.evaluation_interval", 100, "code", "FedDF's code", cpu=50, smoke=10),
    Setting("feddf.patience", 1_000, "code", "FedDF's code", cpu=100, smoke=20),
    Setting("fedmd.rounds", 20, "code", "FedMD's code; the paper is silent", cpu=6, smoke=2),
    Setting("fedmd.public_samples", 5_000, "code", "FedMD's code", cpu=1_000, smoke=100),
    Setting("fedmd.digest_epochs", 1, "code", "FedMD's code"),
    Setting("fedmd.digest_batch_size", 256, "code", "FedMD's code", cpu=64, smoke=32),
    Setting("fedmd.digest_lr", 1e-3, "code", "FedMD's code"),
    Setting("fedmd.revisit_epochs", 4, "code", "FedMD's code", cpu=2, smoke=2),
    Setting("evaluation.last_epochs", 1, "assumed", "AUC at the end"),
    Setting("evaluation.statistic", "last", "assumed", "the paper does not say"),
)  # fmt: skip

DOMAINS = (NIH, CHEXPERT)
K_COLUMNS = tuple(
    {"dataset": site, "clients": k, "alpha": a}
    for site in DOMAINS
    for a in ("1", "0.1")
    for k in ("3", "5")
)

PAPER = Paper(
    key="fedad",
    title="Federated Learning with Privacy-Preserving Ensemble Attention Distillation",
    citation="X. Gong, L. Song, R. Vedula, et al. IEEE Transactions on Medical Imaging",
    settings=SETTINGS,
    released_code=False,
    seed_axes=("partition", "weights", "sampling", "shuffling"),
    notes=(
        "AUC and mean AUC are in percent, on the test films of the site in the column. A finding that no test film has, or all "
        "have, or that the set has no labels of, has no AUC; it is left out of the means and named with its counts below Table 1.",
        "Six findings overlap; the total is over all of the test set's findings, 12 or 8, and stands only where the model knows "
        "them all. Table 1's `num-classes` counts the AUCs that there are.",
        "Standalone is the mean over local models, finding by finding.",
        "Across domains three clients hold NIH's films and three CheXpert's, each with a head for its site's findings; the central "
        "model has one for all 14. The text swaps 12 and 8.",
        "RSNA's films were taken from NIH's set: with NIH's clients some public films are theirs, and some are NIH's test films, "
        "so that the central model is distilled on them, without labels. The paper does not say so.",
        "Eq. 12 is typeset so that the mean over findings may be of the logit loss alone; here it is of all three terms. With 1/HW "
        "the bounds weigh little beside the logit loss; fedad-scaled (--methods +fedad-scaled) leaves it out.",
        "The attention bounds of a finding are over the clients that hold a film with it (assumed), as its weights of Eq. 4 are. "
        "Attention is taken at the encoder's last map (assumed); maps of unlike networks are resized bilinearly (ours). The norm "
        "of Eq. 5 is not named; of one finding's logit all are the same.",
        "Table 2's dropout rate is not defined; here 1/K is one local model that each step's ensemble leaves out, drawn anew. A "
        "finding that only those left out hold does not count in that step. "
        "Ticks of its bound column are lost in the text that was at hand; its notes say which are inferred.",
        "CheXpert's lateral films count as any others, and a blank label is an absent finding, under every policy for uncertain "
        "ones (assumed, as the reference code).",
        "Table 2, NIH, K = 3, alpha = 1: FedAD without the bound (73.94) is printed below Table 1's mean local model (75.08).",
        "Table 4's properties are read off each run, not off the paper: the sentences below the table define them. The paper says "
        "that FedAD outperforms its counterparts there, while FedDF is printed above it.",
        "The paper gives no budget of FedAvg, FedDF and FedMD: rounds are those of their own code. Averaging methods have an epoch "
        "of a client's films in a round, and FedDF alone uses the validation films.",
        "FedMD has no central model; ours learns the clients' last consensus on the public films. FedDF's softmax is, for "
        "findings, a sigmoid of each (assumed).",
        "Films are dealt to clients, as in the paper, not patients: a patient's films may be at several clients of a site.",
        "At cpu and smoke FedAD is one-shot (fedad-online answers in every epoch), sizes of the public set in Table 3 are scaled, "
        "and the sentence below the table says to what; at cpu every size has as many steps, where the paper has as many epochs.",
    ),
    tables=(
        Table(
            key="table1",
            title="Table 1",
            caption="AUC of findings on chest films of NIH ChestX-ray14 and CheXpert, by where the clients' films come from",
            rows=(
                replace(CENTRALIZED, absent=(f"train={BOTH}",)),
                Row("standalone", "standalone", "Standalone", absent=(f"train={BOTH}",)),
                FEDAD,
            ),
            columns=grid(train=(*DOMAINS, BOTH), test=DOMAINS),
            axes={"train": "data.train", "test": "evaluation.test"},
            measure="findings",
            metrics=("auc", "mauc", "num-classes"),
            unit="percent",
            offered=OFFERED,
        ),
        Table(
            key="table2",
            title="Table 2",
            caption="Mean AUC with and without the attention bound, and by share of local models dropped, over K and alpha",
            rows=(
                replace(CENTRALIZED, absent=("clients=3|5",)),
                _ablation("bound=no dropout=0", "No bound", False, 0),
                _ablation("bound=yes dropout=0", "Bound (FedAD)", True, 0),
                _ablation("bound=yes dropout=1/k", "Bound, 1/K dropped", True, 1),
                _ablation("bound=yes dropout=2/k", "Bound, 2/K dropped", True, 2),
            ),
            columns=(*K_COLUMNS, *grid(dataset=DOMAINS)),
            axes=AXES,
            metrics=("mauc",),
            unit="percent",
            own="bound=yes dropout=0",
            offered=tuple(replace(row, absent=("clients=None",)) for row in OFFERED),
        ),
        Table(
            key="table3",
            title="Table 3",
            caption="Mean AUC against the number of public films (CheXpert, K = 3, alpha = 1)",
            rows=(
                replace(CENTRALIZED, absent=("public-size=" + "|".join(map(str, SIZES)),)),
                replace(FEDAD, absent=NO_PUBLIC),
            ),
            columns=grid(dataset=(CHEXPERT,), **{"public-size": ("none", *map(str, SIZES))}),
            axes={"dataset": "data.name", "public-size": "data.public_size"},
            metrics=("mauc",),
            unit="percent",
            x_axis="public-size",
            scaled={"public-size": "partition.public_limit"},
            offered=tuple(replace(row, absent=NO_PUBLIC) for row in OFFERED),
        ),
        Table(
            key="table4",
            title="Table 4",
            caption="Federated methods on chest films (CheXpert, K = 3, alpha = 1), and what each exchanges",
            rows=(
                CENTRALIZED,
                Row("fedavg", "fedavg", "FedAvg"),
                Row("feddf", "feddf", "FedDF"),
                Row("fedmd", "fedmd", "FedMD"),
                FEDAD,
            ),
            columns=grid(dataset=(CHEXPERT,)),
            axes={"dataset": "data.name"},
            measure="exchange",
            metrics=("mauc",),
            unit="percent",
            offered=OFFERED,
        ),
        Table(
            key="figure3",
            title="Figure 3",
            caption="Attention of local models in test films, its consensus (yellow), diversity (black), and the central model's",
            rows=(
                Row(
                    "fedad-no-bound",
                    "fedad",
                    "FedAD without the bound",
                    config={"fedad.bounds": False},
                ),
                FEDAD,
            ),
            columns=grid(dataset=(NIH,)),
            axes={"dataset": "data.name"},
            measure="attention",
            metrics=("attention-in-diversity", "consensus-covered", "attention-empty"),
            unit="percent",
            offered=OFFERED,
        ),
    ),
)
