"""The numbers of `final`, and whether networks look at the findings that test films have, where it
is known at which pixels these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measures import final
from benchmarks.measures.attention import attention_maps
from benchmarks.measures.findings import task_of
from benchmarks.tables.measure import FittedCell, Measure, Taken
from results.record import Measurement

if TYPE_CHECKING:
    from federation.data import Checkpoint, LabelledSet
    from federation.federation import Federation

POINTING, EMPTY = "pointing-accuracy", "attention-empty"


class Pointing(Measure):
    """Pointing accuracy and the share of maps in which a network looks nowhere, beside the numbers
    of `final`.
    """

    def take(self, run: FittedCell) -> Taken:
        learnt = tuple(name for name in run.metrics if name not in (POINTING, EMPTY))
        numbers = final.MEASURE.take(replace(run, metrics=learnt))
        test = run.federation.evaluation.test_set
        found, how = measure(run.federation, run.models, test, run.percent)
        return Taken((*numbers.measurements, *found), f"{numbers.statistic}; {how}")


def measure(
    federation: Federation, fitted: Sequence[Checkpoint], test: LabelledSet, scale: float = 1.0
) -> tuple[tuple[Measurement, ...], str]:
    """Over all findings that films of `test` have and a network knows, the shares, times `scale`,
    of attention maps that point at the finding and of those that are 0 everywhere; means over
    networks. And how they came about.

    Raises ValueError for films of which it is not known where their findings are, and if they have
    none that a network knows.
    """
    from federation.shared.attention import aligned
    from metrics.pointing import pointing_hits

    if test.places is None:
        raise ValueError(
            "pointing is measured where it is known at which pixels a finding is; the test films"
            " have no such annotation"
        )
    present, hits, empty, pairs = test.targets == 1, list[float](), list[float](), 0
    for checkpoint in fitted:
        own = attention_maps(federation, checkpoint, test.images)
        task = task_of(federation, checkpoint)
        maps = aligned(own, (own.shape[-2], own.shape[-1]), task, federation.task)
        asked = present & ~maps.isnan().flatten(2).any(dim=2)
        if not asked.any():
            raise ValueError(f"no test film has a finding that {checkpoint.owner} knows")
        hits.append(float(pointing_hits(maps[asked], test.places[asked]).double().mean()))
        empty.append(float((maps[asked].flatten(1) == 0).all(dim=1).double().mean()))
        pairs = max(pairs, int(asked.sum()))
    measurements = tuple(
        Measurement(name, scale * float(np.mean(shares)))
        for name, shares in ((POINTING, hits), (EMPTY, empty))
    )
    return measurements, f"pointing of up to {pairs:,} findings of {len(present):,} test films"


MEASURE = Pointing()
