"""FedIOD's Figure 8, panel b: bytes of BraTS2018, from first principles.

Values marked `code` are those of the authors' release (lsl001006/FedIOD).
"""

from functools import partial

from benchmarks.papers.bytes.outlines import numbers, patches
from benchmarks.tables.bandwidth import Account, Factor, Flow, Reading

FLOAT = Factor(
    "size of a number", 4, "bytes", "assumed", "float32; the paper names no type or compression"
)
HOSPITALS = Factor(
    "clients", 10, "clients", "paper", "MRI segmentation: ten subsets, one for each local node"
)
SEGMENTER = Factor(
    "U-Net",
    partial(numbers, "unet-64-bn", 3, 1, 224, 224),
    "numbers",
    "network",
    "authors' segmentation code, BatchNorm's statistics included",
)
AVG_ROUNDS = Factor(
    "rounds of FedAvg",
    100,
    "rounds",
    "assumed",
    "as in Table 1; neither paper nor code names FedAvg's set-up here",
)
FEW_ROUNDS = Factor(
    "rounds as epochs",
    50,
    "rounds",
    "assumed",
    "as many rounds as a local model has epochs, one epoch each",
)
DISTILLATION = Factor("epochs", 400, "epochs", "paper", "MRI segmentation: second stage")
CONDITIONS = Factor(
    "generated images",
    11_057,
    "images",
    "assumed",
    "an epoch has one for each of the paper's 11,057 training slices",
)
SIDES = (
    Factor(
        "height",
        224,
        "rows",
        "paper",
        "MRI segmentation: the generated image is cropped to 224 x 224",
    ),
    Factor("width", 224, "columns", "paper", "the same"),
)
CHANNELS = Factor(
    "image channels",
    3,
    "channels",
    "code",
    "authors' segmentation code; a T2 slice is replicated to three",
)
MAPS = Factor(
    "logit maps", 1, "map", "code", "authors' segmentation code: whole tumour against the rest"
)
SCORES = Factor(
    "discriminator's scores",
    partial(patches, 224),
    "scores",
    "network",
    "patch discriminator of Isola et al. 2017",
)


def _distilled(*factors: Factor) -> tuple[Flow, ...]:
    """What FedIOD's steps send, as Table 1's ledger has it: images and answers, then gradients the
    other way.
    """
    return (
        Flow("images", "down", (*factors, CHANNELS, *SIDES, FLOAT)),
        Flow("logits", "up", (*factors, MAPS, *SIDES, FLOAT)),
        Flow("discriminator outputs", "up", (*factors, SCORES, FLOAT)),
        Flow("gradients of logits", "down", (*factors, MAPS, *SIDES, FLOAT)),
        Flow("gradients of discriminator outputs", "down", (*factors, SCORES, FLOAT)),
        Flow("gradients of images", "up", (*factors, CHANNELS, *SIDES, FLOAT)),
    )


def _averaged(rounds: Factor) -> tuple[Flow, ...]:
    factors = (rounds, HOSPITALS, SEGMENTER, FLOAT)
    return Flow("local models", "up", factors), Flow("global model", "down", factors)


ACCOUNTS = {
    "figure8": (
        Account(
            "fedavg",
            "FedAvg",
            "panel=brats2018",
            (
                Reading("all clients in 100 rounds", _averaged(AVG_ROUNDS)),
                Reading("all clients in 50 rounds", _averaged(FEW_ROUNDS)),
            ),
        ),
        Account(
            "fediod",
            "FedIOD",
            "panel=brats2018",
            (
                Reading(
                    "every generated image to every client, 400 epochs",
                    _distilled(DISTILLATION, CONDITIONS, HOSPITALS),
                ),
                Reading(
                    "every image to the client of its condition, 400 epochs",
                    _distilled(DISTILLATION, CONDITIONS),
                ),
                Reading(
                    "every generated image to every client, one epoch",
                    _distilled(CONDITIONS, HOSPITALS),
                ),
            ),
        ),
    ),
}
"""Of FedIOD the sums E[D_k(x')] and the label counts are left out: a number or two in a step. The
number of steps is unknown where each client has conditions of its own; a batch's size makes no
difference to the bytes."""
