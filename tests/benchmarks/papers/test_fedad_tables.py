"""FedAD's tables: the paper's settings in their cells."""

import pytest

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import PROFILES
from fedtables.results.published import parse_column, published_table


def cells(table, **changes):
    return expand(*registry.find_table(f"fedad/{table}"), Selection(**changes))


def config_of(table, row, profile="paper", add=(), **only):
    cell = cells(table, profile=profile, add=add, only={"row": row, **only})[0]
    return dict(cell.config)


def test_findings_are_those_of_table_1():
    config = config_of("table1", "fedad")
    for site, count in (("nih-cxr14", 12), ("chexpert", 8)):
        printed = {
            parse_column(cell.column)["class"]
            for cell in published_table("fedad/table1")
            if cell.metric == "auc" and cell.value is not None and f"test={site}" in cell.column
        }
        own = config[f"findings.{site}"].split("+")
        assert set(own) == printed
        assert len(own) == count


@pytest.mark.parametrize("profile", PROFILES[:-1])
def test_sizes_of_the_public_set_are_scaled_alike(profile):
    sizes = {
        int(parse_column(cell.column)["public-size"]): dict(cell.config)["partition.public_limit"]
        for cell in cells("table3", profile=profile, only={"row": "fedad"})
    }
    whole = sizes[26_684]
    assert sizes == {
        size: round(size * whole / 26_684)
        for size in (1_000, 5_000, 10_000, 15_000, 20_000, 26_684)
    }
