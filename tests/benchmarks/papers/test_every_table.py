"""What holds of the tables of every paper: a method and a configuration can be made of each of
their cells, no two of them are one, and the card has every field of their methods.
"""

import dataclasses
import re

import pytest

from fedtables.benchmarks.reporting.verdicts import judge_claims
from fedtables.benchmarks.scenarios.assembly import make_method
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.derived import as_printed
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.readers import read_only
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import PROFILES, PROTOCOLS
from fedtables.results import published
from tests.benchmarks.papers.printed_cells import printed_records, run_of

TABLES = [(paper, table) for paper in registry.papers().values() for table in paper.tables]
RUNS = [
    (paper, table, protocol)
    for paper, table in TABLES
    for protocol in PROTOCOLS
    if protocol == "paper" or (paper.released_code and table.released)
]
PRINTED = [(paper, table) for paper, table in TABLES if paper.key in published.papers()]
BY_DEFAULT = {"labeled-distillation.temperature", "fedad.ensemble", "fedad.upper"}
"""Fields that no row of the tables whose card lacks them sets: they are as the papers print them,
T of DLAD's Eq. 4 and Eq. 13 and 16 of FedAD, whose reconstructions alone vary both."""


@pytest.fixture(autouse=True)
def embedded_once(monkeypatch, shared_home):
    """Digests of embedded data are those of all tests: of some they take seconds."""
    for name, folder in shared_home.items():
        monkeypatch.setenv(name, folder)


@pytest.mark.parametrize(
    ("paper", "table", "protocol"), RUNS, ids=lambda value: getattr(value, "key", value)
)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_cell_can_be_made_and_no_two_are_the_same(paper, table, protocol, profile):
    offered = tuple(row.key for row in table.offered)
    found = expand(paper, table, Selection(profile=profile, protocol=protocol, add=offered))
    known = registry.RESERVED | registry.measure_settings() | registry.methods().keys()
    for cell in found:
        config = dict(cell.config)
        assert make_method(registry.find_method(cell.method), config)
        parsed = Configuration.parse(config)
        assert {name.partition(".")[0] for name in parsed.others} <= known
    assert len({cell.key for cell in found}) == len(found)


@pytest.mark.parametrize(("paper", "table"), PRINTED, ids=lambda value: value.key)
def test_every_field_of_every_rows_method_is_on_the_card_or_in_its_row(paper, table):
    stated = BY_DEFAULT | {setting.name for setting in paper.settings_of(table)}
    for row in (*table.rows, *table.offered):
        fields = dataclasses.fields(registry.find_method(row.method).load())
        names = {f"{row.method}.{field.name}" for field in fields}
        assert names - stated - row.config.keys() == set(), row.key


# -- printed numbers --


@pytest.mark.parametrize(("paper", "table"), PRINTED, ids=lambda value: value.key)
def test_every_printed_number_is_of_one_cell_or_derived_column(paper, table):
    known = published.published_table(f"{paper.key}/{table.key}")
    numbers = {(p.row, p.column, p.metric): p.value for p in known if p.value is not None}
    records = as_printed(printed_records(paper, table), table.derived)
    found = [
        (record.row, f"{record.column} {m.column}".strip(), m.metric)
        for record in records
        for m in record.measurements
    ]
    assert sorted(found) == sorted(numbers)
    assert {metric for *_, metric in numbers} <= set(table.metrics)


@pytest.mark.parametrize(("paper", "table"), PRINTED, ids=lambda value: value.key)
def test_every_claim_is_decided_as_in_print_by_the_printed_numbers(paper, table, tmp_path):
    """But for claims that read other tables, whatever one needs is in the cells of its own."""
    run = run_of(paper, table, tmp_path)
    judged = {line["id"]: line for line in judge_claims(run, printed_records(paper, table))}
    about = [claim for claim in published.claims(paper.key) if claim.table == table.key]
    assert judged.keys() == {e.id for e in (*about, *paper.expectations(table))}
    for claim in about:
        if claim.cells and not re.search(r"(table|figure)\w+:", claim.predicate):
            held, _, whole = claim.cells.partition("/")
            line = judged[claim.id]
            decided = (line["held"], line["failed"], line["undecided"])
            assert decided == (held, str(int(whole) - int(held)), "0"), claim.id


# -- runs that tables share --

TENTH = ("dataset=cifar10", "fraction=0.10", "setting=homogeneous", "row=fedsa")
SHARED = (
    (
        ("fedad/table1", "row=fedad", "train=chexpert"),
        ("fedad/table2", "row=bound=yes dropout=0", "dataset=chexpert", "clients=3", "alpha=1"),
        ("fedad/table4", "row=fedad"),
    ),
    (
        ("fedad/table1", "row=centralized", "train=chexpert"),
        *((f"fedad/table{n}", "row=centralized", "dataset=chexpert") for n in (2, 3, 4)),
    ),
    (("fedad/table1", "row=fedad", "train=nih-cxr14"), ("fedad/figure3", "row=fedad")),
    (
        ("fedad/table6", "row=ensemble=eq13 variant=5 public=t1w"),
        ("fedad/table7", "row=fedad", "train=b,f,i", "modality=t1"),
        ("fedad/figure4", "row=fedad", "modality=t1"),
    ),
    (
        ("fedsa/table1", *TENTH),
        ("fedsa/table2", *TENTH),
        ("fedsa/figure4a", "dataset=cifar10"),
        ("fedsa/figure4b", "dataset=cifar10", "k=3"),
    ),
    *(
        (("fediod/table1", "dataset=cifar10", "alpha=0.1", row), ("fediod/figure8", row))
        for row in ("row=fedavg", "row=fediod")
    ),
)
HEADINGS = {"data.train", "evaluation.test", "slices.test", "network.setting"}
"""What columns call their cells: no fit knows it, but for the sites that train."""


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("shared", SHARED)
def test_tables_share_their_runs(shared, profile):
    """A fit is a stage of what a configuration says of the run, whatever measures it."""
    cells = [
        cell
        for name, *only in shared
        for cell in expand(*registry.find_table(name), Selection(profile, only=read_only(only)))
    ]
    assert len(cells) >= len(shared)
    plain = [[pair for pair in cell.config if pair[0] not in HEADINGS] for cell in cells]
    assert plain == [plain[0]] * len(cells)
