"""Of how many values a mean is: of images, groups or classes some may be undefined, as a distance
between two empty masks. A mean of fewer than another row's is not compared with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from metrics.names import BY_GROUP
from results.record import OK
from results.store import Line

LEFT_OUT = (
    "(n of m): a mean over the n of m values that are defined; not bold, not ranked, and not"
    " compared with one of more"
)
"""What a reader is told of such numbers."""
UNCOUNTED = (
    "HD95: images with one empty mask were left out, and of how many images it is was not counted"
)
"""What a reader is told of results that are older than the counts."""


def share_of(line: Line) -> float:
    """The share of a line's values that are defined; 1 where they were not counted, as in older
    CSVs.
    """
    of = line.get("of", "")
    return float(line["defined"]) / float(of) if of else 1.0


def is_uncounted(line: Line) -> bool:
    """Whether a line is of HD95 as it was before means said of how many values they are."""
    distance = line["metric"].removesuffix(BY_GROUP) == "hd95"
    return distance and line["status"] == OK and not line.get("of", "")


def count_notes(lines: Iterable[Line]) -> list[str]:
    """What a reader must know of how many values the means of some lines are."""
    found = list(lines)
    notes = [LEFT_OUT] if any(map(left_out, found)) else []
    return [*notes, UNCOUNTED] if any(map(is_uncounted, found)) else notes


def left_out(line: Line) -> str:
    """`112 of 610` where a mean leaves out values; else empty."""
    short = line["status"] == OK and share_of(line) < 1
    return f"{line['defined']} of {line['of']}" if short else ""


def fullest(lines: Iterable[Line]) -> float:
    """The largest share of any of some lines: those that have it are compared."""
    return max((share_of(line) for line in lines), default=1.0)
