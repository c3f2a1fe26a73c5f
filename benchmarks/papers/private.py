"""Settings of differential privacy, the same for the tables of every paper. Off unless a column or
`--set` turns it on.
"""

from __future__ import annotations

import math

from benchmarks.tables.spec import Setting

PRIVACY = (
    Setting(
        "privacy.dp",
        "yes",
        "assumed",
        "whether privacy.epsilon is kept; columns without differential privacy say no",
    ),
    Setting(
        "privacy.epsilon",
        math.inf,
        "assumed",
        "budget of every client for the whole run; inf: no differential privacy",
    ),
    Setting("privacy.delta", 1e-5, "paper", "FedIOD, Privacy Analysis; also elsewhere"),
    Setting(
        "privacy.mechanism",
        "",
        "paper",
        "empty: what the method declares; by FedIOD's Privacy Analysis PATE on outputs, noisy"
        " gradients for the generator, DP-SGD for other methods",
    ),
    Setting(
        "privacy.accountant", "rdp", "code", "the papers cite Renyi accountants; prv is tighter"
    ),
    Setting("privacy.clip_norm", 1.0, "assumed", "of a sample's gradient in DP-SGD"),
    Setting(
        "privacy.noise_multiplier",
        0.0,
        "assumed",
        "0: what the method declares, else of DP-SGD the smallest that keeps the budget",
    ),
    Setting(
        "privacy.counts_noise",
        10.0,
        "assumed",
        "standard deviation on a client's label counts, where a method sends them",
    ),
    Setting(
        "privacy.votes",
        "gaussian",
        "paper",
        "FedIOD cites Papernot et al. 2018, whose noise is Gaussian",
    ),
    Setting(
        "privacy.queries",
        1_000,
        "assumed",
        "images that clients vote on; the paper gives no number",
        cpu=300,
        smoke=20,
    ),
    Setting(
        "privacy.votes_share", 0.5, "assumed", "share of epsilon that FedIOD leaves to its votes"
    ),
    Setting(
        "privacy.gradient_clip",
        1.0,
        "code",
        "GS-WGAN's code; of the gradient for one image, before the mean over a batch",
    ),
    Setting(
        "privacy.sample_rate",
        0.0,
        "code",
        "a client judges a generated image with this probability; 0: 1/K, as GS-WGAN and the authors' code count",
    ),
)
