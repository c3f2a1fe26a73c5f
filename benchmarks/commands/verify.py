"""`verify`: recorded cells, recomputed."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table as RichTable

from fedtables.benchmarks.commands.app import console
from fedtables.benchmarks.commands.asked import check_device
from fedtables.benchmarks.tables.request import Request, quantity, switch, takes
from fedtables.results.command_line import number, path, whole
from fedtables.results.files import EMBEDDED

if TYPE_CHECKING:
    from fedtables.results.record import Record


@dataclass(frozen=True)
class Drawn:
    """Options of `verify`; the help texts say what each one means."""

    cells: int = quantity(3, whole(1), "how many finished cells to draw")
    seed: int = quantity(0, whole(), "seed of the draw")
    within: float = quantity(
        math.inf,
        number(infinite=True),
        "draw only cells that took at most this long",
        metavar="SECONDS",
    )
    present: bool = switch("draw only cells whose data are present", "--present")


@takes("jobs", "plugins")
@takes(of=Drawn)
def verify_results(
    asked: Drawn,
    request: Request,
    results: Annotated[
        Path,
        typer.Argument(
            parser=path,
            metavar="RESULTS",
            help="a .records.jsonl, a table's CSV, or a folder of results; default: the cells that"
            " come with the package",
            show_default=False,
        ),
    ] = EMBEDDED,
) -> None:
    """Recompute recorded cells, drawn at random, and compare them.

    Exit code 0: they match. 1: at least one does not. 2: none could be recomputed.
    """
    from fedtables.benchmarks.running import machine
    from fedtables.benchmarks.running import verify as verifying
    from fedtables.benchmarks.running.events import Context
    from fedtables.benchmarks.running.progress import Live

    records = verifying.finished_records(results, asked.within, asked.present)
    pinned = verifying.pinned_tables(results)
    if pinned:
        console.print(
            f"not drawn, because they belong to older code: {escape(', '.join(pinned))}",
            soft_wrap=True,
        )
    chosen = verifying.draw(records, asked.cells, asked.seed)
    workers = request.jobs or min(
        machine.default_jobs(record.machine.get("device", "cpu")) for record in chosen
    )
    console.print(
        f"{len(chosen)} of {len(records)} finished cells drawn with seed {asked.seed}; workers:"
        f" {min(workers, len(chosen))}"
    )
    with (
        tempfile.TemporaryDirectory(prefix="fedtables-verify-") as folder,
        Live(console, len(chosen)) as live,
    ):
        context = Context(folder, 0.0, *machine.git_commit())
        verdicts = verifying.verify_records(chosen, workers, context, live.show, check_device)
    table = RichTable(
        "cell",
        "recorded",
        "recomputed",
        "verdict",
        "at commit",
        "code",
        title="Verification",
        title_justify="left",
    )
    colours = {
        verifying.MATCH: "green",
        verifying.MISMATCH: "red",
        verifying.NOT_VERIFIABLE: "yellow",
    }
    for verdict in verdicts:
        old, new = verdict.record, verdict.again
        table.add_row(
            escape(f"{old.table} {old.row} {old.column} seed {old.seed} ({old.profile})"),
            *map(_values, (old, new)),
            f"[{colours[verdict.word]}]{verdict.word}[/]: {escape(verdict.why)}",
            str(old.machine.get("commit", ""))[:10]
            + (" with changes" if old.machine.get("dirty") else ""),
            "" if new is None else "the same" if new.code == old.code else "other",
        )
    console.print(table)
    counts = {word: sum(verdict.word == word for verdict in verdicts) for word in colours}
    console.print(", ".join(f"{count} {word}" for word, count in counts.items() if count))
    if code := verifying.exit_code(verdicts):
        raise typer.Exit(code)


def _values(record: Record | None) -> str:
    """The last value of each metric."""
    last = {m.metric: m.value for m in record.measurements} if record is not None else {}
    return escape(
        ", ".join(
            f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in last.items()
        )
    )
