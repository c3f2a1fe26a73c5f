"""What makes a table, from its run and what its folder holds: as a command, and as a file."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables import registry, sweep
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.readers import as_text
from fedtables.benchmarks.tables.runfile import plugins_of, run_text
from fedtables.benchmarks.tables.selection import listed
from fedtables.benchmarks.tables.spec import usual_device, usual_execution
from fedtables.federation.execution import DEFAULT
from fedtables.results.plugins import place, plugged_in
from fedtables.results.published import parse_column
from fedtables.results.record import Record


def command_of(run: TableRun, records: Sequence[Record]) -> str:
    """One command for all records of a table, though several may have filled it column by
    column. Plug-ins are named without their folders.
    """
    asked = asked_of(run, records)
    tables = asked.pop("tables")
    left = {name for names in _left(run, records).values() for name in names}
    given = [place(plugin).name for plugin in plugged_in()]
    if plugins := [*dict.fromkeys([*given, *sorted(left)])]:
        asked["plugin"] = plugins
    options = (word for key, value in asked.items() for word in _words(key, value))
    return shlex.join(["fedtables", _verb(run), *tables, *options])


def run_file_of(run: TableRun, records: Sequence[Record]) -> str:
    """The file of that command, to lie beside the table in place of the one that is there. Plug-ins
    start from its folder; those of rows that an earlier command left are as the one there has them.
    """
    asked, folder = asked_of(run, records), run.files.base.parent.resolve()
    given = [os.path.relpath(place(plugin), folder) for plugin in plugged_in()]
    left = _left(run, records)
    wanted = {name for names in left.values() for name in names}
    before = plugins_of(run.files.path("run.toml")) if left else ()
    found = [plugin for plugin in before if Path(plugin).name in wanted]
    if plugins := [*dict.fromkeys([*given, *found])]:
        asked["plugin"] = plugins
    known = {Path(plugin).name for plugin in found}
    remarks = [
        f"The plug-in of the row {row} is not known here: name it under plugin."
        for row, names in left.items()
        if not names or not names <= known
    ]
    if len(threads := _threads(run, records)) > 1:
        remarks.append(f"Its rows ran with different threads: {', '.join(map(str, threads))}.")
    return run_text(_verb(run), asked, remarks)


def _verb(run: TableRun) -> str:
    return "sweep" if run.table.key.endswith(sweep.SUFFIX) else "reproduce"


def _words(key: str, value: Any) -> list[str]:
    """An option of a command line: several times for names or texts, once for numbers."""
    if isinstance(value, Mapping):
        pairs = [(name, one if isinstance(one, list) else [one]) for name, one in value.items()]
        value = [f"{name}={as_text(one)}" for name, several in pairs for one in several]
    elif not isinstance(value, list):
        value = [as_text(value)]
    elif all(isinstance(one, int) for one in value):
        value = [",".join(map(str, value))]
    return [word for one in value for word in (f"--{key}", one)]


def asked_of(run: TableRun, records: Sequence[Record]) -> dict[str, Any]:
    """What a run asks for that makes all records of a table, by the keys of its file, plug-ins
    aside.
    """
    selection, execution = run.selection, run.selection.execution
    name = run.name.removesuffix(sweep.SUFFIX)
    rows = dict.fromkeys(record.row for record in records)
    kept = {name for row in run.table.rows if row.key in rows for name in (row.key, row.method)}
    dropped = tuple(name for name in selection.drop if name not in kept)
    printed = [row.key for row in registry.find_table(name)[1].rows]
    changed = [f"+{row}" for row in rows if row not in printed] + [f"-{name}" for name in dropped]
    usual = usual_execution(selection.profile, selection.device)
    other = (execution.precision, execution.compile) != (usual.precision, usual.compile)
    compared = DEFAULT if other else usual
    threads = _threads(run, records)
    options: tuple[tuple[str, Any, Any], ...] = (
        ("tables", [name], None),
        ("epsilon", _epsilon(run), ""),
        ("profile", selection.profile, None),
        ("protocol", selection.protocol, "paper"),
        ("only", _only(run, records, dropped), {}),
        ("methods", ",".join(changed), ""),
        ("seeds", sorted({record.seed for record in records}), [0]),
        ("device", selection.device, usual_device(selection.profile)),
        ("threads", threads[0] if len(threads) == 1 else 1, 1),
        ("precision", execution.precision if other else "", ""),
        ("compile", execution.compile, compared.compile),
        ("stacked", execution.stacked, compared.stacked),
        ("set", dict(selection.overrides), {}),
    )
    return {key: value for key, value, unsaid in options if value != unsaid}


def _epsilon(run: TableRun) -> str:
    """The budgets of a sweep, none for another command."""
    if not run.table.key.endswith(sweep.SUFFIX):
        return ""
    budgets = dict.fromkeys(column["epsilon"] for column in run.table.columns)
    return ",".join(budget for budget in budgets if budget != "inf")


def _threads(run: TableRun, records: Sequence[Record]) -> list[int]:
    """With how many threads the cells ran, each number once; one that has failed, as it was asked
    for.
    """
    return sorted({record.machine.get("threads", run.selection.threads) for record in records})


def _left(run: TableRun, records: Sequence[Record]) -> dict[str, set[str]]:
    """By row that an earlier command left, the names of its plug-ins; none in older records."""
    return {
        row.key: {name for record in records if record.row == row.key for name in record.plugins}
        for row in run.left
    }


def _only(
    run: TableRun, records: Sequence[Record], dropped: tuple[str, ...]
) -> dict[str, list[str]]:
    """The values of rows and of the columns' keys that there are records of, where that is not
    all but those that are dropped; in one text where that means them.
    """
    cells = [cell for cell in run.every_cell if not {cell.row, cell.method} & {*dropped}]
    rows = {row.key for row in run.left}
    left = [record for record in records if record.row in rows]
    every: Sequence[Record | Cell] = [*cells, *left]
    there, whole = (
        [{**parse_column(one.column), "row": one.row} for one in several]
        for several in (records, every)
    )
    only = {}
    for key in dict.fromkeys(key for pairs in whole for key in pairs):
        all_values, values = (
            list(dict.fromkeys(pairs[key] for pairs in places if key in pairs))
            for places in (whole, there)
        )
        if len(values) < len(all_values):
            kept = [value for value in all_values if value in values]
            together = ",".join(kept)
            only[key] = [together] if listed(together, all_values) == kept else kept
    return only
