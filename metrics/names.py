"""What is known of each metric by its name: its title, which way is better, its range and unit.
Data only.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

HIGHER, LOWER, NEITHER = "higher", "lower", ""
BY_GROUP = "-by-group"
"""Ends the name of a metric that is the mean over groups (patients, volumes, slides)."""
BANDWIDTH = "bandwidth-gb"
"""Bytes between clients and server, in GB of 10^9 bytes."""
SUBJECTS = "num-test-subjects"
"""How many subjects a mean is of."""
PROPERTY = "property"
"""What a run is said to have or not, `yes` or `no`; which one is in the column."""
WEAKEST = "weakest-clients-accuracy"
"""On the clients' own label distributions, that of the client at the tenth percentile."""
CORRUPTED = "corrupted-accuracy"
"""On corrupted test images, mean over the corruptions."""
ROUNDS = "rounds-to-end"
"""Epochs or rounds from which accuracy stays within a point of the last."""
MEGABYTES_UP, MEGABYTES_DOWN = "megabytes-up", "megabytes-down"
"""Of all clients together, in MB of 10^6 bytes."""
CLIENT_FLOPS, SERVER_FLOPS = "client-teraflops", "server-teraflops"
"""Products and convolutions of a fit, in 10^12 operations, of all clients and of the server."""
MEMORY = "peak-megabytes"
"""Weights, gradients, optimiser's moments and activations of the largest training step, by plan."""
CLIENT_SECONDS, SERVER_SECONDS = "client-seconds", "server-seconds"
"""Wall time of a fit, of all clients one after another and of the server."""
LEAKED = {"psnr": "leaked-psnr", "ssim": "leaked-ssim", "fid": "leaked-distance"}
"""By metric, how near an attack comes to private images by what a method sends."""
FLOOR = {"psnr": "floor-psnr", "ssim": "floor-ssim", "fid": "floor-distance"}
"""By metric, how near the nearest public image is to a private one, without any attack."""
AT_COST = re.compile(
    r"(?P<of>.+)-at-(epsilon-(?P<epsilon>[\d.]+)|(?P<limit>[\d.]+)-(?P<unit>mb|s))"
)
"""A metric where a run has cost no more than that: `accuracy-at-10-mb`."""
UNITS: Mapping[str, str] = {"mb": "MB", "s": "s"}
"""Of what it cost, as printed."""
COSTS = frozenset(
    {BANDWIDTH, MEGABYTES_UP, MEGABYTES_DOWN, CLIENT_FLOPS, SERVER_FLOPS, MEMORY}
    | {CLIENT_SECONDS, SERVER_SECONDS}
)
"""What a run costs, whatever it has learnt."""
DEFINED, OF = "#defined", "#of"
"""Mark beside a mean of how many values it is, and of how many, undefined ones too."""


def is_count(name: str) -> bool:
    """Whether a name in a history is that of a count, not of a metric."""
    return DEFINED in name or OF in name


def at_site(metric: str, site: str) -> str:
    """The name of a metric on the test samples of one site of several, in histories."""
    return f"{metric}@{site}"


@dataclass(frozen=True)
class Metric:
    """Facts about one metric."""

    title: str
    """For axes and headings."""
    better: str = NEITHER
    """`higher`, `lower`, or empty where neither is."""
    bounds: tuple[float, float] | None = None
    """Natural range, of a share as a fraction; None if it has none worth an axis."""
    share: bool = False
    """Whether it is a share of something, which a table prints as a fraction or in percent."""
    unit: str = ""
    """Unit of what is no share: `pixel`, `dB`."""
    digits: int = 4
    """Decimals when printed; a share in percent has two."""
    scale: float | None = None
    """The difference that counts as 1 when a tolerance such as 0.02 is applied; 0 for what is
    counted and must be equal, None if nothing is known."""
    rounding: float = 0.02
    """Standard deviation of one run's value over roundings of the same arithmetic, in `scale`s,
    without one as a share of the value. Given for a metric that was measured
    (docs/howto/regression.md), else assumed: twice that of an accuracy."""
    of_samples: bool = False
    """Whether it is the share of test samples that a network is right about."""
    chance: float | None = None
    """What guessing gives of any data, as a fraction: an axis begins there."""


def _share(title: str) -> Metric:
    return Metric(title, HIGHER, (0, 1), share=True, scale=1)


def _accuracy(title: str) -> Metric:
    return replace(_share(title), rounding=0.01, of_samples=True)


def _auc(title: str) -> Metric:
    return replace(_share(title), rounding=0.005, chance=0.5)


METRICS: Mapping[str, Metric] = {
    "accuracy": _accuracy("Accuracy"),
    "transfer-accuracy": _accuracy("Transfer accuracy"),
    "teacher-accuracy": _accuracy("Teachers' accuracy"),
    "auc": _auc("AUC"),
    "mauc": _auc("Mean AUC"),
    "dice": _share("Dice"),
    "dice-whole-tumour": _share("Dice of the whole tumour"),
    "dice-tumour-core": _share("Dice of the tumour core"),
    "dice-enhancing": _share("Dice of the enhancing tumour"),
    "obj-dice": _share("Object Dice"),
    "aji": _share("AJI"),
    "sensitivity": _share("Sensitivity"),
    "specificity": _share("Specificity"),
    # No share, for FedSA prints it as a fraction beside an accuracy in percent; so are the next two
    # everywhere.
    "miou": Metric("Mean IoU", HIGHER, (0, 1), scale=1),
    "ssim": Metric("SSIM", HIGHER, (0, 1), scale=1),
    "saliency-similarity": Metric("Saliency similarity", HIGHER, (0, 1), scale=1),
    # Neither: a score that is normalised over the teachers of one selection, and how often a
    # teacher was drawn.
    "transferability": Metric("Transferability", digits=2, scale=1),
    "selected": Metric("Times drawn", digits=1, scale=1),
    # Of pixels where attention maps, which end at 1, are above 0.5: neither is better by itself,
    # since a map that is high everywhere covers all, and one that is high nowhere strays nowhere.
    "attention-in-diversity": Metric(
        "Central attention inside the diversity", bounds=(0, 1), share=True, scale=1
    ),
    "consensus-covered": Metric(
        "Consensus covered by central attention", bounds=(0, 1), share=True, scale=1
    ),
    "attention-empty": Metric("Maps without attention", bounds=(0, 1), share=True, scale=1),
    "pointing-accuracy": _share("Pointing accuracy"),
    "psnr": Metric("PSNR", HIGHER, unit="dB", digits=2, scale=50, rounding=0.025),
    # Of maps that are scaled to [0, 1].
    "mean-absolute-error": Metric("Mean absolute error", LOWER, scale=1),
    "hd95": Metric("HD95", LOWER, unit="pixel", digits=2, scale=100),
    # A classifier of ten classes gives at most 10.
    "inception-score": Metric("Inception score", HIGHER, digits=2, scale=10),
    "adapted-inception-score": Metric("Adapted inception score", HIGHER, digits=2, scale=10),
    # Neither: of recovered images the paper (Fig. 4) reads a larger one as stronger privacy, of
    # generated images a smaller one is a better likeness. No FID by title, for that is only under
    # Inception-v3: `fedtables.metrics.generated.title`.
    "fid": Metric("Fréchet distance", digits=2, rounding=0.35),
    WEAKEST: _accuracy("Weakest clients' accuracy"),
    CORRUPTED: _accuracy("Accuracy on corrupted images"),
    ROUNDS: Metric("Epochs or rounds to the end", LOWER, digits=0, scale=10),
    MEGABYTES_UP: Metric("Sent up", LOWER, unit="MB", digits=2, scale=0),
    MEGABYTES_DOWN: Metric("Sent down", LOWER, unit="MB", digits=2, scale=0),
    CLIENT_FLOPS: Metric("Work of clients", LOWER, unit="TFLOP", digits=3, scale=0),
    SERVER_FLOPS: Metric("Work of the server", LOWER, unit="TFLOP", digits=3, scale=0),
    MEMORY: Metric("Memory of a step", LOWER, unit="MB", digits=1, scale=0),
    CLIENT_SECONDS: Metric("Time of clients", LOWER, unit="s", digits=1),
    SERVER_SECONDS: Metric("Time of the server", LOWER, unit="s", digits=1),
    # Neither: what looks more like a private image than the nearest public one is recovered, what
    # looks less like it need not be.
    LEAKED["psnr"]: Metric("PSNR of what leaks", unit="dB", digits=2, scale=50),
    LEAKED["ssim"]: Metric("SSIM of what leaks", bounds=(0, 1), scale=1),
    LEAKED["fid"]: Metric("Fréchet distance of what leaks", digits=2),
    FLOOR["psnr"]: Metric("PSNR of the nearest public image", unit="dB", digits=2, scale=50),
    FLOOR["ssim"]: Metric("SSIM of the nearest public image", bounds=(0, 1), scale=1),
    FLOOR["fid"]: Metric("Fréchet distance of the nearest public images", digits=2),
    BANDWIDTH: Metric("Bandwidth", LOWER, unit="GB", digits=4, scale=0),
    "privacy-cost": Metric("Privacy cost", LOWER, unit="ε", digits=2, scale=0),
    "privacy-eps1": Metric("Privacy parameter ε1", digits=2, scale=0),
    "privacy-eps3": Metric("Privacy parameter ε3", digits=2, scale=0),
    "classes": Metric("Classes", digits=0, scale=0),
    PROPERTY: Metric("Property", digits=0, scale=0),
    "num-classes": Metric("Number of classes", digits=0, scale=0),
    SUBJECTS: Metric("Test subjects", digits=0, scale=0),
}


def facts(name: str) -> Metric:
    """What is known of a metric; of one that a plug-in brings, its name alone."""
    if name.endswith(BY_GROUP):
        of_samples = facts(name.removesuffix(BY_GROUP))
        return replace(of_samples, title=f"{of_samples.title} by group")
    if at := AT_COST.fullmatch(name):
        cost = f"epsilon {at['epsilon']}" if at["epsilon"] else f"{at['limit']} {UNITS[at['unit']]}"
        return replace(facts(at["of"]), title=f"{facts(at['of']).title} at {cost}")
    return METRICS.get(name, Metric(name))
