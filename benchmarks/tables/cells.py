"""From a table's spec to its cells: pure data, hashable, printable; a worker process gets a cell
and nothing else.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.spec import Scalar
from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import ResolvedData
from fedtables.federation.execution import DEFAULT, Execution
from fedtables.results.files import digest
from fedtables.results.plugins import using
from fedtables.results.sourcecode import (
    file_libraries,
    file_source_digest,
    folder_modules,
    source_digest,
    source_libraries,
)

IDENTITY = (
    *("table", "row", "column", "method", "role", "measure", "metrics", "unit", "seed", "profile"),
    *("protocol", "config", "threads"),
)
"""What of a cell is in its key as it stands."""


@dataclass(frozen=True)
class Cell:
    """One row x column of one table for one seed."""

    table: str
    row: str
    column: str
    method: str
    role: str
    measure: str
    metrics: tuple[str, ...]
    unit: str
    seed: int
    seed_axes: tuple[str, ...]
    profile: str
    protocol: str
    config: tuple[tuple[str, Scalar], ...]
    """Resolved configuration, without the fields of other methods."""
    data: ResolvedData
    public: ResolvedData | None = None
    """The data set of the public images, where it is another."""
    private: ResolvedData | None = None
    """The data set of the clients' samples, where the target data are of another."""
    others: tuple[ResolvedData, ...] = ()
    """The data sets of further sites, and of a test set that is none of the clients'."""
    plugins: tuple[str, ...] = ()
    """Where the plug-ins lie of which it uses a method, a network or a data set."""
    device: str = "cpu"
    threads: int = 1
    execution: Execution = DEFAULT

    @property
    def sources(self) -> tuple[ResolvedData, ...]:
        """Every data set that it reads."""
        sources = (self.data, self.public, self.private, *self.others)
        return tuple(source for source in sources if source is not None)

    @property
    def is_private(self) -> bool:
        """Whether it asks for differential privacy."""
        return asks_for_privacy(dict(self.config))

    @property
    def key(self) -> str:
        """Digest of everything that determines the cell's numbers, except the code."""
        identity = {
            **{name: getattr(self, name) for name in IDENTITY},
            "axes": self.seed_axes,
            "data": [
                {"asked": source.asked, "used": source.used, "digest": source.digest}
                for source in self.sources
            ],
            "device": self.device.split(":")[0],
            "execution": asdict(self.execution),
        }
        return digest(identity)

    @property
    def code(self) -> str:
        """Digest of the source that computes it and reads its data, of the versions of the
        libraries that this source imports, and of what is known of the data's origin.
        """
        origins = [source.origin for source in self.sources]
        methods = [entry.code for entry in self._entries]
        plugins = [file_source_digest(Path(path)) for path in self.plugins]
        return digest([source_digest(*self._modules), [*methods, *plugins], origins])

    @property
    def libraries(self) -> dict[str, str]:
        """Versions of the libraries that this source imports."""
        versions = source_libraries(*self._modules)
        for entry in self._entries:
            versions = versions | entry.libraries
        for path in self.plugins:
            versions = versions | file_libraries(Path(path))
        return dict(sorted(versions.items()))

    @property
    def _modules(self) -> tuple[str, ...]:
        task = str(dict(self.config).get("data.task", registry.TASK))
        return _modules(self.measure, task, tuple(source.used for source in self.sources))

    @property
    def _entries(self) -> tuple[registry.MethodEntry, ...]:
        """Its method, and those that its measure looks at too, but for plug-ins'."""
        others = registry.find_measure(self.measure).methods(dict(self.config))
        known = registry.own_methods()
        return tuple(known[name] for name in (self.method, *others) if name in known)

    def __str__(self) -> str:
        return f"{self.table} {self.row} {self.column} seed {self.seed}"


@functools.cache
def _modules(measure: str, task: str, data: tuple[str, ...]) -> tuple[str, ...]:
    """The code that runs any cell, all networks, and what is a cell's own beside its methods:
    measure, scenario, readers of data, but for plug-ins'.
    """
    with using():
        own = [catalogue.reader_module(name) for name in data if name in catalogue.sources()]
    return (
        "fedtables.benchmarks.running.execute",
        registry.measure_module(measure),
        registry.scenario_module(task),
        *folder_modules("fedtables.models.networks"),
        *own,
    )


def with_plugins(cell: Cell) -> Cell:
    """The cell with the plug-ins in use that its method, its settings or its data name."""
    config = dict(cell.config)
    texts = [part for value in config.values() for part in str(value).split("+")]
    data = [name for source in cell.sources for name in (source.asked, source.used)]
    others = registry.find_measure(cell.measure).methods(config)
    return replace(cell, plugins=registry.plugins_with([cell.method, *others, *texts, *data]))


def asks_for_privacy(config: Mapping[str, Scalar]) -> bool:
    """Whether a configuration asks for differential privacy."""
    return config.get("privacy.dp") == "yes" and config.get("privacy.epsilon", math.inf) != math.inf
