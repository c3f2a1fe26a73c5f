"""FedAD's Table 1: the AUC of every finding that a model and a test set share, and their means over
findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.tables.spec import Scalar
from federation.checkpoint import Checkpoint
from federation.data import LabelledSet
from federation.federation import Federation
from federation.tasks import MultiLabel
from federation.training import predict
from metrics.classification import UNKNOWN, auc_by_class
from results.record import Measurement

SITES = "findings."
"""What the settings begin with that list a site's findings; `findings.uncertain` lists none."""


def measure(
    federation: Federation,
    fitted: Sequence[Checkpoint],
    test: LabelledSet,
    findings: Sequence[str],
    overlap: Sequence[str],
    name: str,
    scale: float = 1.0,
) -> tuple[tuple[Measurement, ...], str]:
    """AUC by finding, their number, and their means over `overlap` and over all; mean over models.
    And how they came about.

    `test` has targets (n, findings) for its own `findings`; `name` is what the text calls its data
    set. A finding of which the AUC is not defined, or that no model knows, has no number. The mean
    over all is only of models that know all of them. AUCs are multiplied by `scale`. Raises
    ValueError for a task without findings, or if no finding has an AUC.
    """
    if not isinstance(federation.task, MultiLabel):
        raise ValueError(
            f"AUC by finding is of multi-label tasks, and the task is {federation.task}"
        )
    own = MultiLabel(tuple(findings))
    known, scores = set(findings), []
    for checkpoint in fitted:
        task = _task(federation, checkpoint)
        known &= set(task.findings)
        outputs = predict(
            federation.networks.module(checkpoint), test.images, normalise=federation.normalise
        )
        scores.append(auc_by_class(own.place(outputs, task.findings), test.targets))
    # Of one finding all models have an AUC, or none: the test films decide, and models of one table
    # have one label set.
    means = {
        f: float(np.mean(column))
        for f, column in zip(findings, np.transpose(scores), strict=True)
        if _whole(column)
    }
    if not means:
        raise ValueError(
            f"no finding has films of {name} both with and without it, so that no AUC is defined"
        )
    found = [
        Measurement("auc", scale * value, f"class={finding}") for finding, value in means.items()
    ]
    found.append(Measurement("num-classes", float(len(means)), "class=all"))
    shared = [means[finding] for finding in overlap if finding in means]
    if shared:
        found.append(Measurement("mauc", scale * float(np.mean(shared)), "class=overlap"))
    if known >= set(findings):
        found.append(
            Measurement("mauc", scale * float(np.mean(list(means.values()))), "class=total")
        )
    how = f"AUC on {len(test.images):,} test films of {name}, after training"
    text = [
        how + (", mean over models" if len(fitted) > 1 else ""),
        *told(test, [f for f in findings if f in known], findings),
    ]
    return tuple(found), "; ".join(text)


def told(test: LabelledSet, counted: Sequence[str], findings: Sequence[str]) -> list[str]:
    """What a reader of means over the findings `counted` must know: how few films some are of, and
    which have no AUC.

    `findings` are those of the columns of the test set's targets.
    """
    known = (test.targets != UNKNOWN).sum(dim=0).tolist()
    present = (test.targets == 1).sum(dim=0).tolist()
    having, without = [], []
    for finding in counted:
        total, own = (numbers[list(findings).index(finding)] for numbers in (known, present))
        if 0 < own < total:
            having.append(f"{finding} {own:,}")
        else:
            without.append(
                f"{finding} ({own:,} of {total:,} films)" if total else f"{finding} (not labelled)"
            )
    text = [f"films with each: {', '.join(having)}"] if having else []
    return text + ([f"no AUC, and no part in the means: {', '.join(without)}"] if without else [])


def overlapping(config: Mapping[str, Scalar]) -> list[str]:
    """The findings that all sites of a configuration label, in the order of the first."""
    first, *others = [
        str(value).split("+")
        for name, value in config.items()
        if name.startswith(SITES) and name != "findings.uncertain"
    ]
    return [finding for finding in first if all(finding in other for other in others)]


def _task(federation: Federation, checkpoint: Checkpoint) -> MultiLabel:
    """What a checkpoint has outputs for: its client's own label set, or the federation's."""
    own = {f"client-{client.index}": client.task for client in federation.clients}.get(
        checkpoint.owner
    ) or federation.task
    assert isinstance(own, MultiLabel)
    return own


def _whole(column: np.ndarray) -> bool:
    return not bool(np.isnan(column).any())
