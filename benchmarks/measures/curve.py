"""The table's metrics after every epoch, mean over a run's models."""

from __future__ import annotations

import numpy as np

from benchmarks.measures.final import in_words, metrics_of
from benchmarks.tables.measure import Fitted, Measure, Taken
from results.record import Measurement


class Curve(Measure):
    """A number per metric and epoch, under the column key `epoch`, counted from 1."""

    every_epoch = True

    def take(self, run: Fitted) -> Taken:
        models, measurements = run.models, list[Measurement]()
        for metric in metrics_of(run):
            histories = [checkpoint.history[metric] for checkpoint in models]
            means = np.mean(histories, axis=0) * run.scale(metric)
            measurements += [
                Measurement(metric, float(v), f"epoch={e}") for e, v in enumerate(means, 1)
            ]
        return Taken(tuple(measurements), in_words(run, "epochs"))


MEASURE = Curve()
