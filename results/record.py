"""The record of one cell of a table: what was measured, and everything a reader needs to trust
it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from types import NoneType
from typing import Any

OK, FAILED = "ok", "failed"
TEXTS = frozenset({"classes", "property"})
"""Metrics whose values are texts."""
BUDGET = "budget.samples"
"""The setting of a table whose rows all learn from as many samples, clients and server together,
each time counted (`federation.samples`)."""


@dataclass(frozen=True)
class Measurement:
    """One number (or, for a partition table, one text) of a cell."""

    metric: str
    value: float | str
    column: str = ""
    """Extra `key=value` pairs beyond the cell's column, for example `epoch=3` of a curve."""
    defined: int | None = None
    """How many values a mean is of: those of images, groups or classes, of all models together.
    None where they were not counted, as in older records."""
    of: int | None = None
    """How many there were, with those that are undefined."""


@dataclass(frozen=True)
class Record:
    """One row x column of one table for one seed."""

    table: str
    """`paper/table`, for example `dlad/table2`."""
    row: str
    column: str
    """`key=value` pairs in the order of the published table."""
    seed: int
    seeds: dict[str, int]
    """The value of every seed axis: partition, weights, sampling, shuffling, attack."""
    profile: str
    protocol: str
    cell: str
    """Digest of the cell: table, row, column, seed, resolved configuration, data."""
    code: str
    """Digest of the source that computed it (without comments and docstrings)."""
    status: str = OK
    reason: str = ""
    """Why the cell failed, when it did."""
    measurements: tuple[Measurement, ...] = ()
    data: dict[str, str] = field(default_factory=dict)
    """Data set asked for, the one used, its origin (real, surrogate, synthetic), digest, note."""
    public: dict[str, str] = field(default_factory=dict)
    """The same of the public set, where it is of another data set; else empty."""
    private: dict[str, str] = field(default_factory=dict)
    """The same of the clients' samples, where the target data are of another data set; else
    empty."""
    others: tuple[dict[str, str], ...] = ()
    """The same of further sites, and of a test set that is none of the clients'."""
    test_samples: int = 0
    """Samples of the target's test set; 0 for a cell that needs none, and in older records."""
    statistic: str = ""
    """How a run's history becomes the number, for example `median of the last 10 epochs`."""
    settled: dict[str, bool] = field(default_factory=dict)
    """By metric, whether it had settled when the run ended (`metrics.settling`), or was cut short;
    without metrics that the run has no history of, and empty in older records."""
    contract: tuple[str, ...] = ()
    """What promises of a method the row breaks, of a plug-in's; told when its table is written."""
    epsilon: float | None = None
    """Privacy budget spent; None means that no differential privacy was claimed (epsilon is
    infinite)."""
    delta: float | None = None
    privacy: dict[str, Any] = field(default_factory=dict)
    """Mechanism, accountant, adjacency, sampling, composition and what was released; empty for a
    run that is not private."""
    bytes_up: int = 0
    bytes_down: int = 0
    bytes_by_kind: dict[str, int] = field(default_factory=dict)
    """`up/parameters`, `down/logits`, ...: bytes as encoded on the wire."""
    local_samples: int | None = None
    """Samples that networks on clients saw in training, each time counted, those of reused stages
    included (`federation.samples`); None in older records."""
    server_samples: int | None = None
    """The same at the server."""
    lineage: tuple[str, ...] = ()
    """The method, and those that its class derives from, nearest first: the last is the root of its
    family. Empty for a cell that failed, and in older records."""
    config: dict[str, Any] = field(default_factory=dict)
    length: dict[str, int] = field(default_factory=dict)
    """The setting that a budget of the table's made, `fedavg.rounds`, in place of the
    configuration's; empty where it has none."""
    finished: str = ""
    """When the cell ended, UTC."""
    seconds: float = 0.0
    """Wall time of this cell, without the stages it found in the cache."""
    fit_seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of the fit, stages included whoever computed them, `local` on clients and at the
    `server`; empty in older records."""
    stages: dict[str, int] = field(default_factory=dict)
    """Stages computed and reused while the cell ran."""
    peak_memory_mb: float = 0.0
    """Most memory that the worker has filled so far, also in earlier cells, library files aside."""
    arrays: str = ""
    """What the table's picture is drawn from, where it shows more than numbers
    (`results.arrays.pack`)."""
    machine: dict[str, Any] = field(default_factory=dict)
    """Device, threads, processor, its kernels, package versions, commit, and whether tracked files
    differed from it (`dirty`)."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Record:
        """Raises TypeError, KeyError or ValueError if `value` was not written by `to_json`."""
        measurements = tuple(Measurement(**m) for m in value["measurements"])
        lists = {name: tuple(value.get(name, ())) for name in ("others", "lineage", "contract")}
        record = cls(**{**value, "measurements": measurements, **lists})
        for name, kinds in KINDS.items():
            of_lists = getattr(record, name)
            for entry in of_lists if name in lists else (of_lists,):
                if not isinstance(entry, kinds) or isinstance(entry, bool):
                    raise TypeError(f"{name} is {type(entry).__name__}")
        for measured in measurements:
            if not isinstance(measured.value, int | float | str) or isinstance(
                measured.value, bool
            ):
                raise TypeError(f"{measured.metric} is {type(measured.value).__name__}")
            if not isinstance(measured.metric, str) or not isinstance(measured.column, str):
                raise TypeError("a measurement has no name")
            counted = (measured.defined, measured.of)
            if counted != (None, None) and not all(type(count) is int for count in counted):
                raise TypeError(f"{measured.metric} is a mean of {counted[0]!r} of {counted[1]!r}")
        return record


KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("table", "row", "column", "profile", "protocol", "cell", "code"), (str,)),
    **dict.fromkeys(("status", "reason", "statistic", "finished", "arrays", "lineage"), (str,)),
    "contract": (str,),
    **dict.fromkeys(("seed", "test_samples", "bytes_up", "bytes_down"), (int,)),
    **dict.fromkeys(("local_samples", "server_samples"), (int, NoneType)),
    **dict.fromkeys(("epsilon", "delta"), (int, float, NoneType)),
    **dict.fromkeys(("seconds", "peak_memory_mb"), (int, float)),
    **dict.fromkeys(("seeds", "data", "public", "private", "others", "settled"), (dict,)),
    **dict.fromkeys(
        ("privacy", "bytes_by_kind", "config", "length", "fit_seconds", "stages", "machine"),
        (dict,),
    ),
}
"""What the fields of a record are, or the entries of those that are lists."""
