"""Tables of numbers: over epochs, bytes and sites, of exchanges, and of generated images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from reports.measures.kind import Kind
from reports.tables import bandwidth
from reports.tables.table import ShownTable, last_epochs
from results.record import OK, Record


class Bandwidth(Kind):
    """Lines over gigabytes; the table has their ends and the highest common performance."""

    def completed(self, records: Sequence[Record], metrics: Sequence[str]) -> list[Record]:
        return bandwidth.with_common(records, metrics[0])

    def judged(
        self, records: Sequence[Record], metrics: Sequence[str], unit: str
    ) -> tuple[list[Record], str]:
        common = bandwidth.only_common(self.completed(records, metrics))
        return common, bandwidth.at_which(common, metrics[0], unit)

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        return bandwidth.summary(lines)

    def remarks(self, table: ShownTable) -> list[str]:
        return [
            *bandwidth.sentences(table.layout, table.cells, table.metrics[0]),
            "the CSV has every round",
        ]

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing import plots_curves

        plots_curves.bandwidth_plot(table.layout, table.lines, path, table.metrics[0])


KEYS = ("train", "test")
"""Column keys of a matrix, down and across."""


class BySite(Kind):
    """A table that says on which test samples it is measured."""

    statistic = True

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing import plots_matrix

        if plots_matrix.is_matrix(table.lines, KEYS):
            plots_matrix.matrix_plot(table.layout, table.lines, path, KEYS)
        else:
            super().draw(table, path)


class Curve(Kind):
    """Lines over the column key `epoch`."""

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        return last_epochs(lines)

    def remarks(self, table: ShownTable) -> list[str]:
        return ["last epoch of each curve; the CSV has all"]

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing import plots_curves

        plots_curves.curve_plot(table.layout, table.lines, path, table.clients)


PROPERTIES: Mapping[str, str] = {
    "distillation": "the fit looks at the public images",
    "param-transfer": "parameters or gradients cross, in either direction",
    "privacy": (
        "nothing leaves a client but outputs, attention, votes and labels or their counts: no"
        " parameters, gradients, features or images; what these outputs tell of its samples is"
        " bounded by nothing, and labelled samples that a server holds for validation (FedDF) are"
        " counted as its own"
    ),
    "asynchronous": (
        "nothing comes down to a client, and none sends the same kind of thing in two rounds; so a"
        " one-shot method is, and one whose clients answer anew in every epoch is not"
    ),
}
"""What each property says of a run, as it is derived."""


class Exchange(Kind):
    """A table of numbers and properties, with what each property means."""

    def remarks(self, table: ShownTable) -> list[str]:
        return [
            *(f"{name}: {meaning}" for name, meaning in PROPERTIES.items()),
            *crossed(table.layout.rows, table.records),
        ]


def crossed(titles: Mapping[str, str], records: Sequence[Record]) -> list[str]:
    """Which kinds of payload crossed in each row (title by key), in one text; none of no record."""
    kinds: dict[str, set[str]] = {}
    for record in records:
        if record.status == OK:
            kinds.setdefault(record.row, set()).update(record.bytes_by_kind)
    rows = [
        f"{title}: {' and '.join(f'{_named(kinds[row], way)} {way}' for way in ('up', 'down'))}"
        for row, title in titles.items()
        if row in kinds
    ]
    return ["crossed: " + "; ".join(rows)] if rows else []


def _named(kinds: set[str], way: str) -> str:
    return (
        ", ".join(sorted(kind.partition("/")[2] for kind in kinds if kind.startswith(f"{way}/")))
        or "nothing"
    )


class Leakage(Kind):
    """Points of every metric; the labels say by which features the distance is."""

    statistic = True

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing import plots_clients

        plots_clients.leakage_plot(table.layout, table.lines, path, table.metrics)


class Samples(Kind):
    """A table that names the judges of its images."""

    statistic = True

    def unlike(self, records: Sequence[Record]) -> Mapping[str, str]:
        """The plain score, which only the TensorFlow Inception-v3 makes comparable and no network
        here is (`models/extractors.py`); the adapted one where the local networks that judge are
        replaced by smaller ones.
        """
        configs = [record.config for record in records if record.status == OK]
        judges = {str(config.get("evaluation.extractor", "another network")) for config in configs}
        local = {
            str(config.get(f"network.{name}", name))
            for config in configs
            for name in str(config.get("network.client", "")).split("+")
            if config.get(f"network.{name}", name) != name
        }
        reasons = {"inception-score": judges, "adapted-inception-score": local}
        return {
            metric: f"by {' or '.join(sorted(networks))}"
            for metric, networks in reasons.items()
            if networks
        }


KINDS = {
    "bandwidth": Bandwidth(),
    "by-site": BySite(),
    "curve": Curve(),
    "exchange": Exchange(),
    "leakage": Leakage(),
    "samples": Samples(),
}
