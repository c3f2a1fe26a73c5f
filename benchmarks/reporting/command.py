"""The command that makes a table, from its run and what its folder holds."""

import shlex
from collections.abc import Sequence

from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables import registry, sweep
from fedtables.benchmarks.tables.selection import listed
from fedtables.benchmarks.tables.spec import usual_device, usual_execution
from fedtables.federation.execution import DEFAULT
from fedtables.results.plugins import place, plugged_in
from fedtables.results.published import parse_column
from fedtables.results.record import Record


def command_of(run: TableRun, records: Sequence[Record]) -> str:
    """One command for all records of a table, though several may have filled it column by
    column.
    """
    selection, execution = run.selection, run.selection.execution
    swept = run.table.key.endswith(sweep.SUFFIX)
    name = run.name.removesuffix(sweep.SUFFIX)
    words = ["fedtables", "sweep" if swept else "reproduce", name]
    if swept:
        budgets = dict.fromkeys(column["epsilon"] for column in run.table.columns)
        words += ["--epsilon", ",".join(epsilon for epsilon in budgets if epsilon != "inf")]
    rows = dict.fromkeys(record.row for record in records)
    kept = {name for row in run.table.rows if row.key in rows for name in (row.key, row.method)}
    dropped = tuple(name for name in selection.drop if name not in kept)
    printed = [row.key for row in registry.find_table(name)[1].rows]
    changed = [f"+{row}" for row in rows if row not in printed] + [f"-{name}" for name in dropped]
    seeds = sorted({record.seed for record in records})
    usual = usual_execution(selection.profile, selection.device)
    other = (execution.precision, execution.compile) != (usual.precision, usual.compile)
    compared = DEFAULT if other else usual
    chosen = (
        ("--profile", selection.profile, ""),
        ("--protocol", selection.protocol, "paper"),
        *(
            ("--only", f"{key}={text}", "")
            for key, texts in _only(run, records, dropped).items()
            for text in texts
        ),
        ("--methods", ",".join(changed), ""),
        ("--seeds", ",".join(map(str, seeds)), "0"),
        ("--device", selection.device, usual_device(selection.profile)),
        ("--precision", execution.precision if other else "", ""),
        ("--compile", execution.compile, compared.compile),
        ("--stacked", str(execution.stacked), str(compared.stacked)),
        *(("--set", f"{setting}={_text(value)}", "") for setting, value in selection.overrides),
        *(("--plugin", place(plugin).name, "") for plugin in plugged_in()),
        *(("--plugin", f"{row.key.replace('-', '_')}.py", "") for row in run.left),
    )
    for option, value, unsaid in chosen:
        words += [option, value] if value != unsaid else []
    return shlex.join(words)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _only(
    run: TableRun, records: Sequence[Record], dropped: tuple[str, ...]
) -> dict[str, list[str]]:
    """The values of rows and of the columns' keys that there are records of, where that is not
    all but those that are dropped; in one text where that means them.
    """
    cells = [cell for cell in run.every_cell if not {cell.row, cell.method} & {*dropped}]
    there, whole = (
        [{**parse_column(one.column), "row": one.row} for one in several]
        for several in (records, cells)
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
