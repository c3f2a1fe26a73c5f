"""The league: every method that learns a global classifier, under the same conditions and with the same budget.

No paper prints these tables. What is the same for all rows of a column: the clients and their samples, the networks, the
samples that networks learn from (`budget.samples`, clients and server together), and the number of trials by which settings
were chosen. A row's length in rounds or epochs follows from the budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fedtables.benchmarks.papers.league_settings import (
    ALONE,
    ANSWERING,
    AVERAGED,
    AVERAGING,
    CLASSWISE,
    DATA_FREE,
    FEDDF,
    FEDIOD,
    FEDIOD_RATE,
    PUBLIC,
    ROWS,
    SERVER_RATE,
    SETTINGS,
    WITHOUT,
)
from fedtables.benchmarks.papers.shared import PRIVACY
from fedtables.benchmarks.tables.spec import Paper, Row, Setting, Table, grid

METRICS = (
    *("accuracy", "weakest-clients-accuracy", "corrupted-accuracy", "rounds-to-end"),
    *("megabytes-up", "megabytes-down", "client-teraflops", "server-teraflops", "peak-megabytes"),
)
TRIALS = ("1", "2", "3", "4")
TRIED = "four trials of every row"


def _of(dataset: str, columns: Sequence[Mapping[str, str]], **more: Any) -> Table:
    """A table of one data set. What its columns say is for settings to tell apart."""
    axes = {"dataset": "data.name", **dict.fromkeys(columns[0], "")}
    usual = {"axes": axes, "fixed": {"data.name": dataset}, "unit": "percent", "own": ""}
    return Table(columns=tuple(columns), **{**usual, **more})


_on_equal_terms = partial(_of, measure="scorecard", metrics=METRICS)


def _table(
    dataset: str, title: str, distributions: tuple[str, ...], public: tuple[str, ...] = PUBLIC
) -> Table:
    """All rows, with networks that are alike."""
    return _on_equal_terms(
        dataset,
        grid(distribution=distributions, public=public),
        key=dataset,
        title=title,
        caption=f"Methods on equal terms: {title}, the same clients, networks and budget",
        rows=ROWS,
    )


ANY_NETWORK = (ALONE, CLASSWISE, *DATA_FREE, FEDIOD, *ANSWERING)
"""Rows whose clients' networks may differ."""
MIXED_TABLE = _on_equal_terms(
    "mnist",
    grid(distribution=("dirichlet-1",), networks=("mixed",), public=PUBLIC),
    key="mnist-mixed",
    title="MNIST, networks of two widths",
    caption="Methods whose clients' networks may differ, on equal terms: MNIST",
    rows=ANY_NETWORK,
)
ON_VALIDATION = Setting("evaluation.on", "validation", "assumed", "the server's tenth of the pool")


def _numbered(rows: str, values: tuple[float, ...]) -> dict[str, float]:
    return {f"trial={number} {rows}".strip(): value for number, value in enumerate(values, 1)}


ONE_RATE = "method=centralized|standalone|fedavg|fedprox|fedavgm|fedgen|feddf|scaffold|fedftg|fedbe"
OF_OUTPUTS = {"trial=1": 1e-3, "trial=3": 1e-2, "": 3e-3}
WITH_COEFFICIENT = "method=fedntd|moon|feddyn"
TRIED_RATES = {
    "local.lr": {
        **_numbered(f"dataset=cifar10 {WITH_COEFFICIENT}", (0.1, 0.3, 0.1, 0.3)),
        **_numbered(WITH_COEFFICIENT, (0.03, 0.1, 0.03, 0.1)),
        **_numbered("method=fd|fedproto|dense|co-boosting", (0.01, 0.03, 0.01, 0.03)),
        **_numbered(f"dataset=cifar10 {AVERAGED}", (1.0, 0.03, 0.1, 0.3)),
        **_numbered(ONE_RATE, (0.01, 0.03, 0.1, 0.3)),
        "trial=4": 0.01,
        "": 0.03,
    },
    "server.lr": {**_numbered("method=public-only", (1e-3, 3e-3, 1e-2, 3e-2)), **OF_OUTPUTS},
    "fedmd.digest_lr": OF_OUTPUTS,
    "fediod.lr": OF_OUTPUTS,
    "fedntd.beta": _numbered("", (1.0, 1.0, 0.3, 0.3)),
    "moon.mu": _numbered("", (1.0, 1.0, 5.0, 5.0)),
    "feddyn.alpha": _numbered("", (0.01, 0.01, 0.1, 0.1)),
    "fd.gamma": _numbered("", (1.0, 1.0, 0.1, 0.1)),
    "fedproto.prototype_weight": _numbered("", (1.0, 1.0, 0.1, 0.1)),
    "ds-fl.distillation_lr": _numbered("", (0.03, 0.1, 0.3, 0.1)),
    "scarlet.distillation_lr": _numbered("", (0.03, 0.1, 0.03, 0.1)),
    "scarlet.beta": _numbered("", (2.0, 2.0, 1.5, 1.5)),
    "dense.boundary": _numbered("", (0.5, 0.5, 1.0, 1.0)),
    "co-boosting.mu": _numbered("", (0.1, 0.1, 0.01, 0.01)),
}
"""Four for every row: of local training; of the server where it learns from public labels alone; or, where something learns
from outputs, 0.03 for local training beside three rates of that, and 0.01 beside the middle one. On CIFAR-10 what
averages parameters has 1 in the place of 0.01, for FedAvg and FedAvgM were best at the end of the grid. A row whose paper
tunes a coefficient has two values of it beside two rates. A plug-in has those of the method
that it derives from, else those of what learns from outputs.
"""


def _trials(dataset: str, title: str) -> Table:
    rates = (Setting(name, tried, "assumed", TRIED) for name, tried in TRIED_RATES.items())
    return _of(
        dataset,
        grid(distribution=("dirichlet-1",), public=("none", "in"), trial=TRIALS),
        key=f"{dataset}-trials",
        title=f"{title}, trials",
        caption=f"Learning rates of the methods' four trials: {title}, on validation samples",
        rows=ROWS,
        preparatory=True,
        settings=(ON_VALIDATION, *rates),
    )


OWN_TRIALS = "cpu: the best of its trials (privacy-trials)"
PRIVATE = (
    Setting("budget.samples", 1_000_000, "assumed", "less than the other tables', since each step costs noise; cpu: near what whole epochs of every row come to, which with noise draw "
            "whole batches",
            cpu={"table=privacy-trials": 128_300, "private=yes": 128_650, "": 126_000}, smoke=6_500),
    Setting("local.epochs", {AVERAGED: 1, "": 5}, "assumed", "fewer steps, for the same reason"),
    Setting("server.epochs", 5, "assumed", "FedMD's global network, so that its budget has rounds", smoke=4),
    Setting("local.batch_size", 64, "assumed", "drawn anew for every step, each sample with the same probability", smoke=16),
    Setting("local.lr", {AVERAGED: 0.1, "": 0.05}, "assumed", OWN_TRIALS, cpu={
        "private=yes row=fedkd": 0.03, "private=yes method=fediod": 0.03, f"epsilon=1 {AVERAGED}": 0.3,
        "epsilon=1 method=standalone": 0.03, "epsilon=1 method=fedmd": 0.01, "epsilon=1": 0.1,
        f"private=yes {AVERAGED}": 1.0, "epsilon=4 method=standalone|fedmd": 0.1, "private=yes": 0.3,
        AVERAGED: 0.3, "method=fediod": 0.3, "": 0.1}),
    Setting("server.lr", 1e-3, "assumed", OWN_TRIALS, cpu={
        "private=yes row=fedkd": 3e-4, "epsilon=10 method=fediod": 1e-3, "private=yes method=fediod": 3e-4,
        "private=yes method=fedad": 3e-3, "private=yes row=fedkd-online": 3e-3, "": 1e-2}),
    Setting("fediod.steps", 0, "assumed", "as many in an epoch as the largest client has batches", cpu=2, smoke=1),
    Setting("privacy.queries", 300, "assumed", OWN_TRIALS,
            cpu={"epsilon=1|4 row=fedkd": 60, "epsilon=10 method=fediod": 60, "": 300}, smoke=20),
    Setting("privacy.votes_share", 0.7, "assumed", "as in FedIOD's trial"),
)  # fmt: skip

PRIVATE_ANSWERING = tuple(
    replace(row, config={**row.config, "privacy.mechanism": "dp-sgd"})
    if row.key == "fedkd-online"
    else row
    for row in ANSWERING
    if row.method not in ("dlad", "ds-fl", "scarlet")
)
"""PATE votes on an image once, so FedKD in rounds has teachers by DP-SGD. DLAD has no private form. DS-FL and SCARLET have
one, and no trials here."""

EPSILONS = ("1", "4", "10", "inf")
PRIVATE_ROWS = (ALONE, *AVERAGING[:3], FEDIOD, FEDDF, *PRIVATE_ANSWERING)
"""Those that have a private form, each by the mechanism that it declares."""

PRIVATE_TABLE = _of(
    "mnist",
    grid(distribution=("dirichlet-1",), public=("none", "in"), epsilon=EPSILONS),
    key="privacy",
    title="MNIST, private",
    caption="Methods under differential privacy: MNIST, delta = 1e-5",
    rows=PRIVATE_ROWS,
    axes={"dataset": "data.name", "distribution": "", "public": "", "epsilon": "privacy.epsilon"},
    x_axis="epsilon",
    settings=PRIVATE,
)
NOISY_TRIALS: dict[str, dict[str, float]] = {
    "local.lr": {
        "row=fedkd": 0.03,
        "method=fediod": 0.03,
        **_numbered(f"epsilon=1 {AVERAGED}", (0.03, 0.1, 0.3, 1.0)),
        **_numbered("epsilon=1", (0.01, 0.03, 0.1, 0.3)),
        **_numbered(AVERAGED, (0.3, 1.0, 3.0, 10.0)),
        **_numbered("", (0.03, 0.1, 0.3, 1.0)),
    },
    "server.lr": {
        **_numbered("row=fedkd", (3e-4, 1e-3, 3e-4, 1e-3)),
        **_numbered("method=fediod", (3e-4, 1e-3, 3e-4, 1e-3)),
        **SERVER_RATE,
    },
    "fedmd.digest_lr": {"": 1e-2},
    "fediod.lr": FEDIOD_RATE,
    "privacy.queries": {
        **_numbered("row=fedkd", (60, 60, 300, 300)),
        **_numbered("method=fediod", (60, 60, 300, 300)),
        "": 300,
    },
}
"""Four for every row, of what its mechanism disturbs: the rate of DP-SGD; where clients vote, the server's rate, by which a
network learns from the votes, and their number.
"""
OF_PRIVATE_OUTPUTS = {"trial=1": 3e-3, "": 1e-2}
NOISELESS_TRIALS: dict[str, dict[str, float]] = {
    "local.lr": {
        **_numbered(AVERAGED, (0.03, 0.1, 0.3, 1.0)),
        **_numbered("method=standalone", (0.01, 0.03, 0.1, 0.3)),
        **_numbered("", (0.03, 0.03, 0.1, 0.3)),
    },
    "server.lr": OF_PRIVATE_OUTPUTS,
    "fedmd.digest_lr": OF_PRIVATE_OUTPUTS,
    "fediod.lr": OF_PRIVATE_OUTPUTS,
    "privacy.queries": {"": 300},
}
"""With higher rates than in the other tables, since epochs and rounds are fewer."""


def _also_without(noisy: dict[str, float], noiseless: dict[str, float]) -> dict[str, float]:
    """What is tried with noise and without."""
    return {
        **{f"private=yes {where}".strip(): value for where, value in noisy.items()},
        **noiseless,
    }


PRIVATE_TRIALS = replace(
    PRIVATE_TABLE,
    key="privacy-trials",
    title="MNIST, private, trials",
    caption="Settings of the methods' four trials, with noise and without: MNIST, on validation samples",
    columns=grid(
        distribution=("dirichlet-1",), public=("none", "in"), epsilon=EPSILONS, trial=TRIALS
    ),
    axes={**PRIVATE_TABLE.axes, "trial": ""},
    x_axis="",
    preparatory=True,
    settings=(
        ON_VALIDATION,
        *(
            Setting(name, _also_without(tried, NOISELESS_TRIALS[name]), "assumed", TRIED)
            for name, tried in NOISY_TRIALS.items()
        ),
        *(s for s in PRIVATE if s.name not in NOISY_TRIALS),
    ),
)

INVERTED = {"attack.images_by": "inverting"}
LEAKING = (
    Row("gradient", "fedavg", "A gradient of one image: Inverting Gradients", config=INVERTED, absent=WITHOUT),
    Row("update", "fedavg", "Parameters after eight steps of eight images: Inverting Gradients", absent=WITHOUT,
        config={**INVERTED, "attack.shares": "update", "attack.local_steps": 8, "attack.batch_size": 8}),
    Row("fediod", "fediod", "FedIOD: the nearest generated image", config={"attack.images_by": "nearest-generated"}, absent=WITHOUT),
    Row("floor", "fedkd-gong", "No attack: the nearest public image", config={"attack.images_by": "nearest-public"},
        absent=("public=none",)),
)  # fmt: skip

LEAKAGE_TABLE = _of(
    "mnist",
    grid(distribution=("dirichlet-1",), public=PUBLIC),
    key="leakage",
    title="MNIST, leakage",
    caption="What the strongest attack at hand recovers of private images from what a client sends: MNIST",
    rows=LEAKING,
    measure="leakage",
    metrics=("fid", "psnr", "ssim"),
    unit="",
    settings=(
        Setting("partition.public_limit", 2_000, "assumed", "as many as FedIOD generates", smoke=64),
    ),
)  # fmt: skip


PAPER = Paper(
    key="league",
    title="The league",
    citation="this suite",
    settings=(*SETTINGS, *PRIVACY),
    tables=(
        _trials("mnist", "MNIST"),
        _table("mnist", "MNIST", ("iid", "dirichlet-1", "dirichlet-0.1", "niid1")),
        MIXED_TABLE,
        _trials("cifar10", "CIFAR-10"),
        _table("cifar10", "CIFAR-10", ("iid", "dirichlet-1", "dirichlet-0.1", "niid1")),
        _table("femnist", "Characters by writer", ("writers",), PUBLIC[:2]),
        _table("pneumoniamnist", "PneumoniaMNIST", ("dirichlet-1",), PUBLIC[:2]),
        PRIVATE_TRIALS,
        PRIVATE_TABLE,
        LEAKAGE_TABLE,
        _table("cifar100", "CIFAR-100", ("iid", "dirichlet-1", "dirichlet-0.1")),
    ),
    released_code=False,
    seed_axes=("partition", "weights", "sampling", "shuffling"),
)  # fmt: skip
