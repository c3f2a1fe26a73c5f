"""How many test films have each finding: what a reader of a mean over findings must know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from federation.data import LabelledSet


def scarce_findings(
    test: LabelledSet, counted: Sequence[str], findings: Sequence[str]
) -> list[str]:
    """What a reader of means over the findings `counted` must know: how few films some are of, and
    which have no AUC.

    `findings` are those of the columns of the test set's targets.
    """
    from metrics.classification import UNKNOWN

    known = (test.targets != UNKNOWN).sum(dim=0).tolist()
    present = (test.targets == 1).sum(dim=0).tolist()
    having, without = [], []
    for finding in counted:
        total, positive = (numbers[list(findings).index(finding)] for numbers in (known, present))
        if 0 < positive < total:
            having.append(f"{finding} {positive:,}")
        else:
            without.append(
                f"{finding} ({positive:,} of {total:,} films)"
                if total
                else f"{finding} (not labelled)"
            )
    text = [f"films with each: {', '.join(having)}"] if having else []
    return text + ([f"no AUC, and no part in the means: {', '.join(without)}"] if without else [])
