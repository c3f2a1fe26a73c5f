"""What the regression report judges by and what it says: the numbers of the rule, and the
difference of one cell.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.tables.resultset import Key

CELL, COST, SPEED = "cell", "cost", "speed"
"""Kinds of differences: a cell of a table, a table's time or memory, a speed benchmark."""
NOT_COMPARED, UNDECIDED, OTHER = "not compared", "undecided", "other"
MOVED = "moved within spread"
"""Not the same digits, and no more than the rule explains."""
ANOTHER_MACHINE = "another machine"
"""In the reason of a cell that was tested with what test set and rounding may move."""
REGRESSIONS = ("worse", "vanished", "failed", "changed", "slower", "larger")
"""Verdicts with which a comparison fails."""


@dataclass(frozen=True)
class Rule:
    """The numbers of the rule."""

    tolerance: float = 0.02
    """Loss that one seed may show, of a fraction; assumed."""
    effect: float = 0.005
    """Smallest significant loss that matters with more seeds, of a fraction; assumed."""
    alpha: float = 0.05
    """Chance that any cell at all is wrongly called worse, where nothing but the seeds differs; the
    customary one."""
    time_ratio: float = 2.0
    """Largest ratio of times; 0 leaves them out. Assumed: shared machines differ by less from run
    to run."""
    memory_ratio: float = 1.5
    """Largest ratio of peak memory; 0 leaves it out. Assumed."""
    exact: bool = False
    """Whether a value must be the same to the last digit where seeds, machine and packages are:
    this suite's promise."""


@dataclass(frozen=True)
class Difference:
    """What became of one cell, of a table's cost, or of a speed benchmark."""

    cell: Key
    verdict: str
    """`same` (to the last digit), `moved within spread`, `better`, `worse`, `vanished`, `failed`,
    `new`, `changed` (bytes, epsilon, a metric without direction; with `exact` any) or `undecided`
    (a loss above the tolerance that the seeds' spread leaves open); of costs and speed also
    `slower`, `larger` and `not compared`, of a table's settings `other`."""
    base: str = ""
    """The value as printed."""
    new: str = ""
    why: str = ""
    p: float | None = None
    """Of the test, if there was one, before the correction."""
    values: tuple[str, str] = ("", "")
    """Base and new with all digits."""
    kind: str = CELL
    accounts: str = ""
    """What beside the value is not the same: bytes, epsilon, delta."""

    @property
    def is_regression(self) -> bool:
        return self.verdict in REGRESSIONS

    @property
    def table(self) -> str:
        return self.cell[0]

    @property
    def place(self) -> str:
        """The cell within its table."""
        return " ".join(filter(None, self.cell[1:]))
