"""The table's metrics after every epoch, mean over a run's models."""

from __future__ import annotations

from benchmarks.measures.final import in_words, metrics_of
from benchmarks.tables.measure import FittedCell, Measure, Taken, count_in, counted, mean_of_numbers
from results.record import Measurement


class Curve(Measure):
    """A number per metric and epoch, under the column key `epoch`, counted from 1."""

    every_epoch = True

    def take(self, run: FittedCell) -> Taken:
        models, measurements = run.models, list[Measurement]()
        for metric in metrics_of(run):
            histories = [checkpoint.history for checkpoint in models]
            means = mean_of_numbers([h[metric] for h in histories]) * run.scale(metric)
            for place, mean in enumerate(means):
                counts = [count_in(history, metric, [place]) for history in histories]
                measurements.append(counted(metric, mean, counts, f"epoch={place + 1}"))
        return Taken(tuple(measurements), in_words(run, "epochs"))


MEASURE = Curve()
