"""FedAD's Tables 5 and 7 from first principles: what their rows send.

Values marked `code` are those of a comparator: FedMD (diogenes0319), NVFlare's BraTS18 job for Li
et al. 2019, FL-MRCM (guopengf/FL-MRCM).
"""

from functools import partial

from benchmarks.papers.bytes.outlines import numbers
from benchmarks.tables.bandwidth import Account, Factor, Flow, Reading

FLOAT = Factor(
    "size of a number", 4, "bytes", "assumed", "float32; the paper names no type or compression"
)

# -- Table 5: BraTS2018 --

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
    Account(
        "li-et-al",
        "Li et al. 2019",
        COLUMN_5,
        (
            Reading("models of all clients, both ways", _models(*LI), free=LI_ROUNDS.name),
            Reading(
                "the same, 90 % of an update up",
                (
                    Flow("local updates", "up", (*LI, SHARE)),
                    Flow("global model", "down", LI),
                ),
                free=LI_ROUNDS.name,
            ),
            Reading("models of all clients, up only", _models(*LI)[:1]),
            Reading(
                "both ways, NVFlare's four clients", _models(LI_ROUNDS, LI_SITES, SEGRESNET, FLOAT)
            ),
            Reading("both ways, half the channels", _models(LI_ROUNDS, SITES, HALF, FLOAT)),
        ),
    ),
    Account(
        "fedmd",
        "FedMD",
        COLUMN_5,
        (
            Reading(
                "20 rounds over the public volumes, all clients, both ways",
                (
                    Flow("answers", "up", (MD_ROUNDS, SITES, PUBLIC, *ANSWERS)),
                    Flow("consensus", "down", (MD_ROUNDS, SITES, PUBLIC, *ANSWERS)),
                ),
                free=MD_ROUNDS.name,
            ),
            Reading(
                "a volume in every local iteration, one client's answers",
                (Flow("answers", "up", (ITERATIONS, ONE, *ANSWERS)),),
                free=ITERATIONS.name,
            ),
            Reading(
                "a crop in every local iteration, one client's answers",
                (Flow("answers", "up", (ITERATIONS, ONE, *CROP, MAPS, FLOAT)),),
            ),
            Reading(
                "a volume in every local iteration, all clients, both ways",
                (
                    Flow("answers", "up", (ITERATIONS, ONE, SITES, *ANSWERS)),
                    Flow("consensus", "down", (ITERATIONS, ONE, SITES, *ANSWERS)),
                ),
            ),
        ),
    ),
    Account(
        "fedad",
        "FedAD",
        COLUMN_5,
        (
            Reading(
                "one-shot answers of all clients",
                (Flow("answers", "up", (SITES, PUBLIC, *ANSWERS)),),
            ),
            Reading("one-shot answers of one client", (Flow("answers", "up", (PUBLIC, *ANSWERS)),)),
            Reading(
                "one-shot answers of one client, on crops",
                (Flow("answers", "up", (PUBLIC, *CROP, MAPS, FLOAT)),),
            ),
        ),
    ),
)
"""One-shot: each local model transfers its prediction over public data only once (section 4). The
public volumes are known to all and do not cross."""

# -- Table 7: MRI reconstruction --

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
KEPT = Factor(
    "share that trains", 0.9, "of them", "assumed", "a tenth of the subjects is for validation"
)
LATER_ROUNDS = Factor("rounds after the first", 49, "rounds", "code", "50 rounds but the first")
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
    "private slices",
    2_583 * 15 + 369 * 120 + 436 * 150 + 2_874 * 15 + 369 * 120 + 434 * 130,
    "slices",
    "paper",
    "4.3.1: training subjects times slices of each, T1 and T2 of F, B and I",
)
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
    Account(
        "fl-mrcm",
        "FL-MRCM",
        COLUMN_7,
        (
            Reading(
                "as this suite runs it: one training, models both ways, a round's features of every"
                " private slice up and, in the next round, down to another client",
                (
                    *_models(*MRCM),
                    Flow("features", "up", (MRCM_ROUNDS, SLICES, KEPT, FEATURES, FLOAT)),
                    Flow("features", "down", (LATER_ROUNDS, SLICES, KEPT, FEATURES, FLOAT)),
                ),
                free=MRCM_ROUNDS.name,
            ),
            Reading(
                "a training for every target: models both ways, the target's features for every"
                " source slice",
                (
                    *_models(*MRCM, TARGETS),
                    Flow(
                        "features",
                        "up",
                        (MRCM_ROUNDS, MRCM_EPOCHS, OTHERS, SLICES, FEATURES, FLOAT),
                    ),
                ),
                free=MRCM_ROUNDS.name,
            ),
            Reading(
                "one training: models both ways, features of every private slice",
                (
                    *_models(*MRCM),
                    Flow("features", "up", (MRCM_ROUNDS, MRCM_EPOCHS, SLICES, FEATURES, FLOAT)),
                ),
                free=MRCM_ROUNDS.name,
            ),
            Reading("one training: models both ways only", _models(*MRCM), free=MRCM_ROUNDS.name),
        ),
    ),
    Account(
        "fedad",
        "FedAD",
        COLUMN_7,
        (
            Reading(
                "one-shot outputs and attention of all clients, T1 and T2",
                (
                    Flow("outputs", "up", (NODES, SUBJECTS, DEPTH, *SLICE, FLOAT)),
                    Flow("attention", "up", (NODES, SUBJECTS, DEPTH, *ATTENTION, FLOAT)),
                ),
                free=DEPTH.name,
            ),
            Reading(
                "outputs alone of all clients, T1 and T2",
                (Flow("outputs", "up", (NODES, SUBJECTS, DEPTH, *SLICE, FLOAT)),),
                free=DEPTH.name,
            ),
            Reading(
                "outputs alone of all clients, with IXI's slices",
                (
                    Flow("outputs, T1", "up", (NODES, T1_SUBJECTS, DEPTH_T1, *SLICE, FLOAT)),
                    Flow("outputs, T2", "up", (NODES, T2_SUBJECTS, DEPTH_T2, *SLICE, FLOAT)),
                ),
            ),
            Reading(
                "outputs and attention of one client, T1 and T2",
                (
                    Flow("outputs", "up", (SUBJECTS, DEPTH, *SLICE, FLOAT)),
                    Flow("attention", "up", (SUBJECTS, DEPTH, *ATTENTION, FLOAT)),
                ),
                free=DEPTH.name,
            ),
            Reading(
                "outputs and attention of all clients, T1 alone",
                (
                    Flow("outputs", "up", (NODES, T1_SUBJECTS, DEPTH, *SLICE, FLOAT)),
                    Flow("attention", "up", (NODES, T1_SUBJECTS, DEPTH, *ATTENTION, FLOAT)),
                ),
                free=DEPTH.name,
            ),
        ),
    ),
)

ACCOUNTS = {"table5": TABLE_5, "table7": TABLE_7}
