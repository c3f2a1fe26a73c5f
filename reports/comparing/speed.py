"""Compares two runs of the speed benchmarks: the JSON files that pytest-benchmark writes with
`--benchmark-json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reports.comparing.costs import by_ratio, not_compared
from reports.comparing.rule import SPEED, Difference
from results.files import ResultsError

TABLE, MEDIAN = "speed", "median"


@dataclass(frozen=True)
class Speed:
    """One run of the benchmarks."""

    machine: str
    """Processor and number of cores."""
    medians: Mapping[str, float]
    """Seconds per round by full name of the benchmark."""


def read_speed(path: Path) -> Speed:
    """Read such a file. Raises ResultsError if it is not one, or has no benchmark."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        info = value["machine_info"]
        cpu = info.get("cpu", {})
        machine = (
            f"{cpu.get('brand_raw') or info.get('processor') or info.get('machine')},"
            f" {cpu.get('count')} cores"
        )
        medians = {
            entry["fullname"]: float(entry["stats"]["median"]) for entry in value["benchmarks"]
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(
            f"{path} is no file of pytest-benchmark's --benchmark-json: {error}"
        ) from error
    if not medians:
        raise ResultsError(f"{path} has no benchmark")
    return Speed(machine, medians)


def compare_speed(base: Speed, new: Speed, allowed: float) -> list[Difference]:
    """The ratio of the medians of every benchmark, where both ran on the same processor; 0 leaves
    the ratios out.

    A benchmark that vanished is a regression on any machine.
    """
    why = "the ratio of times is turned off" if not allowed else ""
    if base.machine != new.machine:
        why = f"{base.machine} and {new.machine}"
    differences = [not_compared(TABLE, "", MEDIAN, why, SPEED)] if why else []
    for name, was in base.medians.items():
        key = (TABLE, name, "", MEDIAN)
        if name not in new.medians:
            differences.append(
                Difference(key, "vanished", "", "", "no such benchmark in the new file", kind=SPEED)
            )
        elif not why:
            differences.append(by_ratio(key, was, new.medians[name], allowed, "s", "slower", SPEED))
    added = [name for name in new.medians if name not in base.medians]
    return differences + [
        Difference((TABLE, name, "", MEDIAN), "new", "", "", kind=SPEED) for name in added
    ]
