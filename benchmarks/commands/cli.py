"""The command line. Every command says what it did, what it did not, and what to do next.

Only what every command needs is imported when this starts: `--help` and `list` answer at once.
"""

from collections.abc import Callable
from typing import NoReturn

from fedtables.benchmarks.commands import (
    attack,
    cache,
    methods,
    overview,
    pack,
    partition,
    plan,
    reproduce,
    verify,
)
from fedtables.benchmarks.commands.app import app
from fedtables.reports.commands import app as reports
from fedtables.results.command_line import run

VERBS: dict[str, Callable[..., None]] = {
    "list": overview.list_everything,
    "show": overview.show_table,
    "plan": plan.plan_tables,
    "reproduce": reproduce.reproduce_tables,
    "pack": pack.pack_cache,
    "unpack": pack.unpack_cache,
    "cache": cache.show_cache,
    "sweep": reproduce.sweep_budgets,
    "verify": verify.verify_results,
    "check": methods.check_method,
    "data": overview.show_data,
    "partition": partition.describe_partition,
    "attack": attack.attack_clients,
    "cards": methods.write_cards,
}
"""In the order of `--help`."""

for verb, function in VERBS.items():
    app.command(verb)(function)
app.add_typer(
    reports, name="reports", help="Build pages, pictures and regression reports from results."
)


def main() -> NoReturn:
    """Run the command line and end the process (`fedtables.results.command_line.run`)."""
    run(
        app,
        "interrupted. Finished cells and stages are kept. The same command goes on from there.",
    )
