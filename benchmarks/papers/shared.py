"""What the specs of several papers share: rows of comparators, and settings of differential
privacy, which are off unless a column or `--set` turns them on.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fedtables.benchmarks.tables.spec import Row, Scalar, Setting

CENTRALIZED = Row("centralized", "centralized", "Centralized", upper_bound=True)
STANDALONE = Row("standalone", "standalone", "Standalone")
FEDAVG = Row("fedavg", "fedavg", "FedAvg")
FEDPROX = Row("fedprox", "fedprox", "FedProx")
FEDAVGM = Row("fedavgm", "fedavgm", "FedAvgM")
FEDGEN = Row("fedgen", "fedgen", "FedGEN")
FEDDF = Row("feddf", "feddf", "FedDF")
FEDMD = Row("fedmd", "fedmd", "FedMD")
FEDKD = Row("fedkd", "fedkd-gong", "FedKD")
FEDAD = Row("fedad", "fedad", "FedAD")
FEDIOD = Row("fediod", "fediod", "FedIOD")


def without(columns: tuple[str, ...], *rows: Row) -> tuple[Row, ...]:
    """The rows, which do not exist in these columns."""
    return tuple(replace(row, absent=columns) for row in rows)


def variants(
    method: str, rows: Mapping[str, tuple[str, Mapping[str, Scalar]]], **more: Any
) -> tuple[Row, ...]:
    """Rows of one method by their keys, each with its title and what it sets."""
    return tuple(
        Row(key, method, title, config=config, **more) for key, (title, config) in rows.items()
    )


[SCALED] = variants(
    "fedad", {"fedad-scaled": ("FedAD, bounds without 1/HW", {"fedad.bound_scale": "mean"})}
)


def alike(words: str, names: str, *value_and_source: Any, **reduced: Any) -> tuple[Setting, ...]:
    """Settings that have all the same: of each of the first words every name."""
    return tuple(
        Setting(f"{word}.{name}", *value_and_source, **reduced)
        for word in words.split()
        for name in names.split()
    )


AT_THE_END = (
    Setting("evaluation.looks", 20, "assumed", "of a training's epochs or a fit's rounds, evenly spread: whether they had settled"),
    Setting("evaluation.statistic", "last", "assumed", "the paper does not say"),
    Setting("evaluation.last_epochs", 1, "assumed", "the end"),
)  # fmt: skip
"""What of a run is read where a paper does not say."""
PRIVACY = (
    Setting("privacy.dp", "yes", "assumed", "whether privacy.epsilon is kept; columns without differential privacy say no"),
    Setting("privacy.epsilon", math.inf, "assumed", "budget of every client for the whole run; inf: no differential privacy"),
    Setting("privacy.delta", 1e-5, "paper", "FedIOD, Privacy Analysis; also elsewhere"),
    Setting("privacy.mechanism", "", "paper",
            "empty: what the method declares. By FedIOD's Privacy Analysis PATE on outputs, noisy gradients for the generator, "
            "DP-SGD for other methods"),
    Setting("privacy.accountant", "rdp", "code", "the papers cite Renyi accountants; prv is tighter"),
    Setting("privacy.clip_norm", 1.0, "assumed", "of a sample's gradient in DP-SGD"),
    Setting("privacy.noise_multiplier", 0.0, "assumed",
            "0: what the method declares, else of DP-SGD the smallest that keeps the budget"),
    Setting("privacy.counts_noise", 10.0, "assumed", "standard deviation on a client's label counts, where a method sends them"),
    Setting("privacy.votes", "gaussian", "paper", "FedIOD cites Papernot et al. 2018, whose noise is Gaussian"),
    Setting("privacy.queries", 1_000, "assumed", "images that clients vote on; the paper gives no number", cpu=300, smoke=20),
    Setting("privacy.votes_share", 0.5, "assumed", "share of epsilon that FedIOD leaves to its votes"),
    Setting("privacy.gradient_clip", 1.0, "code", "GS-WGAN's code; of the gradient for one image, before the mean over a batch"),
    Setting("privacy.sample_rate", 0.0, "code",
            "a client judges a generated image with this probability; 0: 1/K, as GS-WGAN and the authors' code count"),
)  # fmt: skip
