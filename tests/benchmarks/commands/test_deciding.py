"""Seeds that go where a comparison is open, on a table whose margins are known."""

import contextlib
import io
from dataclasses import replace

import pytest
from rich.console import Console

from fedtables.benchmarks.commands.deciding import decide
from fedtables.benchmarks.running.events import record_of
from fedtables.benchmarks.running.machine import OutOfTimeError
from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.results.record import Measurement
from fedtables.results.store import TableFiles

SPREAD = (0.02, -0.02, 0.0)


@pytest.fixture
def decided(tmp_path):
    """Decides on DLAD's claim that it is above averaging, by invented margins of three columns,
    with records of seeds `before` in its files. Gives how many seeds each column has in the end,
    what was printed, and how often it computed.
    """

    def run(margins, most=12, rounds=99, before=(), slow=""):
        paper, table = registry.find_table("dlad/table2")
        only = {"row": ("global-dlad", "global-avg"), "dataset": ("mnist",)}
        only["distribution"] = tuple(margins)
        selection = Selection(only=only, seeds=(0, 1, 2))
        cells = expand(paper, table, selection)
        files = TableFiles(tmp_path, selection.profile, "dlad/table2")
        of_table = TableRun(paper, table, selection, cells, files)
        computed = []

        def measured(cell):
            distribution = cell.column.split("distribution=")[1].split()[0]
            margin = margins[distribution] + SPREAD[cell.seed % 3]
            found = (Measurement("accuracy", 0.5 + margin * (cell.row == "global-dlad")),)
            seconds = 72.0 if distribution == slow else 36.0
            return record_of(cell, measurements=found, seconds=seconds)

        earlier = expand(paper, table, replace(selection, seeds=before)) if before else []
        of_table.finished = lambda: [measured(cell) for cell in earlier]

        def compute():
            if len(computed) == rounds:
                raise OutOfTimeError
            computed.append(len(of_table.cells) - len(of_table.records))
            of_table.records.update((cell.key, measured(cell)) for cell in of_table.cells)

        console = Console(record=True, width=200, file=io.StringIO())
        compute()
        with contextlib.suppress(OutOfTimeError):
            decide(console, [of_table], most, compute)
        seeds = {name: set() for name in margins}
        for cell in (cell for cell in of_table.cells if cell.key in of_table.records):
            seeds[cell.column.split("distribution=")[1].split()[0]].add(cell.seed)
        return {n: len(s) for n, s in seeds.items()}, console.export_text(), computed

    return run


def test_only_what_is_open_gets_seeds_until_it_is_closed(decided):
    """Of 0.03 the interval is 7.35 x 0.02 / sqrt 3 = 0.085 either way, with six seeds 0.025."""
    seeds, said, computed = decided({"niid1": 0.3, "niid2": 0.03})
    assert (seeds["niid1"], seeds["niid2"]) == (3, 6)
    assert computed == [12, 6]  # two rows, three seeds more
    assert "1 comparison is open; 1 may close in up to 0.0" in said
    assert said.rstrip().endswith("every comparison is closed")


def test_the_cheapest_comparison_to_close_comes_first(decided):
    """Six seeds would close both; there is time for one, and a cell of the first takes longer."""
    seeds, said, computed = decided({"niid1": 0.03, "niid2": 0.03}, rounds=2, slow="niid1")
    assert (seeds, computed) == ({"niid1": 3, "niid2": 6}, [12, 6])
    assert "2 comparisons are open; 2 may close" in said


def test_what_no_number_of_seeds_would_close_gets_the_most_and_comes_last(decided):
    seeds, said, computed = decided({"niid1": 0.0001, "niid2": 0.03}, most=11)
    assert seeds == {"niid1": 6, "niid2": 6}
    assert computed == [12, 6, 6]
    assert "1 would take more than 11 seeds" in said


def test_a_claim_on_a_table_that_does_not_run_here_is_said_to_be_one(tmp_path):
    """FedSA's Figure 3 is judged by Table 4, whose margins of 0.1, 0.1 and 0.2 six seeds would
    close, and which is not asked for.
    """
    paper, figure = registry.find_table("fedsa/figure3")
    selection = Selection(seeds=(0, 1, 2))
    runs = {}
    for table in (figure, registry.find_table("fedsa/table4")[1]):
        cells = [c for c in expand(paper, table, selection) if "segmentation" in c.column]
        files = TableFiles(tmp_path, selection.profile, f"fedsa/{table.key}")
        run = TableRun(paper, table, selection, cells, files)
        for cell in cells:
            lead = {"transfer": 0.1, "fedsa": 0.3}.get(cell.row, 0.0)
            value = 0.3 + lead + (0.1 if cell.seed == 2 and cell.row == "transfer" else 0.0)
            found = (Measurement("miou", value),)
            run.records[cell.key] = record_of(cell, measurements=found, seconds=36.0)
        runs[table.key] = run
    runs["figure3"].others["table4"] = [*runs["table4"].records.values()]
    console = Console(record=True, width=200, file=io.StringIO())
    decide(console, [runs["figure3"]], 12, lambda: None)
    said = "2 comparisons are open; 2 would take seeds of tables that do not run here"
    assert console.export_text().strip() == said


def test_seeds_of_an_earlier_command_are_taken_over_and_judged(decided):
    """Three seeds would leave a margin of 0.03 open; the files have six, and it is closed."""
    seeds, said, computed = decided({"niid1": 0.03}, before=(3, 4, 5))
    assert (seeds["niid1"], computed) == (6, [6])
    assert said.strip() == "every comparison is closed"


def test_it_ends_with_the_time(decided):
    seeds, _, computed = decided({"niid1": 0.0001}, rounds=2)
    assert (seeds["niid1"], len(computed)) == (6, 2)
