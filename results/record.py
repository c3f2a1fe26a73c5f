"""The record of one cell of a table: what was measured, and everything a reader needs to trust
it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

OK, FAILED = "ok", "failed"
TEXTS = frozenset({"classes", "property"})
"""Metrics whose values are texts."""
BUDGET = "budget.samples"
"""The setting of a table whose rows all learn from as many samples, clients and server together,
each time counted (`fedtables.federation.samples`)."""


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
    """By metric, whether it had settled when the run ended (`fedtables.metrics.settling`), or was
    cut short; without metrics that the run has no history of, and empty in older records."""
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
    included (`fedtables.federation.samples`); None in older records."""
    server_samples: int | None = None
    """The same at the server."""
    lineage: tuple[str, ...] = ()
    """The method, and those that its class derives from, nearest first: the last is the root of its
    family. Empty for a cell that failed, and in older records."""
    plugins: tuple[str, ...] = ()
    """Names of the plug-ins' files of which the cell used something; empty in older records."""
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
    (`fedtables.results.arrays.pack`)."""
    machine: dict[str, Any] = field(default_factory=dict)
    """Device, threads, processor, its kernels, package versions, commit, and whether tracked files
    differed from it (`dirty`)."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Record:
        """Raises TypeError, KeyError or ValueError if `value` was not written by `to_json`."""
        measurements = tuple(Measurement(**m) for m in value["measurements"])
        lists = {name: tuple(value.get(name, ())) for name in LISTS}
        record = cls(**{**value, "measurements": measurements, **lists})
        for part in (record, *measurements):
            for name, hint in HINTS[type(part)].items():
                if not _is_of(getattr(part, name), hint):
                    raise TypeError(f"{name} is {type(getattr(part, name)).__name__}")
        if any((measured.defined is None) != (measured.of is None) for measured in measurements):
            raise TypeError("a mean is of how many values, and of how many of them, or of neither")
        return record


LISTS = ("others", "lineage", "contract", "plugins")
"""Entries of a record that are tuples, which JSON does not have."""
HINTS: dict[type, dict[str, Any]] = {kind: get_type_hints(kind) for kind in (Record, Measurement)}
"""The annotations of what is read."""


def _is_of(value: object, hint: Any) -> bool:
    """Whether a value is what an annotation says, and so the entries of a tuple."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if get_origin(hint) is tuple:
        entry, *_ = get_args(hint)
        return isinstance(value, tuple) and all(_is_of(each, entry) for each in value)
    types = tuple(get_origin(kind) or kind for kind in kinds)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return (is_whole and float in types) or type(value) in types
