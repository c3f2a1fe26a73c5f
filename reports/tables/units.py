"""How a metric is written, drawn and judged in a table: its unit, digits and range there."""

from collections.abc import Iterable
from dataclasses import dataclass

from fedtables.metrics.names import HIGHER, LOWER, facts
from fedtables.results import published

FRACTION, PERCENT = "fraction", "percent"


@dataclass(frozen=True)
class Scale:
    """A metric in the unit of one table."""

    title: str
    """With its unit: `Accuracy (%)`."""
    digits: int
    bounds: tuple[float, float] | None
    sign: int
    """1 if higher is better, -1 if lower is, 0 if neither."""
    whole: float | None
    """What a tolerance is a share of; None for a metric of which nothing is known."""
    chance: float | None = None
    """What guessing gives of any data; None where that is zero or hangs on the data."""
    of_classes: bool = False
    """Whether guessing among n classes gives 1/n of its range."""
    counted: bool = False
    """Whether it counts something."""

    def text(self, value: float | str | None) -> str:
        """A number with the metric's digits; a text as it is, and empty for None."""
        if value is None or isinstance(value, str):
            return value or ""
        return f"{value:.{self.digits}f}"

    def allowance(self, tolerance: float, value: float) -> float:
        """The tolerance in the table's unit; of a metric without a known scale, as a share of the
        value.
        """
        return tolerance * (abs(value) if self.whole is None else self.whole)


def scale_of(metric: str, unit: str) -> Scale:
    """The scale of a metric in a table whose shares are in `unit`: `fraction` or `percent`."""
    known = facts(metric)
    factor = 100 if known.share and unit == PERCENT else 1
    printed = "%" if factor == 100 else known.unit
    return Scale(
        title=known.title + (f" ({printed})" if printed else ""),
        digits=2 if factor == 100 else known.digits,
        bounds=known.bounds and (known.bounds[0] * factor, known.bounds[1] * factor),
        sign={HIGHER: 1, LOWER: -1}.get(known.better, 0),
        whole=None if known.scale is None else known.scale * factor,
        chance=None if known.chance is None else known.chance * factor,
        of_classes=known.of_samples,
        counted=known.scale == 0 and known.digits == 0,
    )


def unit_of(paper: str, table: str, metric: str, values: Iterable[float]) -> str:
    """The unit of a table's shares for a reader who has only its numbers: that of print; without
    print, from their size.
    """
    if not facts(metric).share:
        return ""
    cells = published.published_table(f"{paper}/{table}") if paper in published.papers() else ()
    for cell in cells:
        if cell.metric == metric:
            return PERCENT if cell.unit == PERCENT else FRACTION
    return PERCENT if max(values, default=0) > 1 else FRACTION
