"""A measure as its author would write it: how many models a fit leaves, and the bytes until
then.
"""

import numpy as np

from fedtables.benchmarks.tables.measure import Config, FittedCell, Measure, Taken
from fedtables.results.arrays import pack
from fedtables.results.record import Measurement


class Toy(Measure):
    """A count; without a fit where the cell asks for none."""

    takes_no_method = "counts"

    def needs_fit(self, config: Config) -> bool:
        return not config.get("toy.unfitted")

    def methods(self, config: Config) -> tuple[str, ...]:
        return ("standalone",)

    def take(self, run: FittedCell) -> Taken:
        other = type(run.other_method("standalone")).__name__
        count = Measurement("models", float(len(run.fitted)))
        sent = Measurement("bytes", float(run.federation.channel.total("up")))
        return Taken((count, sent), f"beside {other}", pack({"one": np.ones(1, np.uint8)}))


MEASURES = {"toy": Toy()}
