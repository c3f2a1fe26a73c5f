"""FedAD's tables: the paper's settings in their cells."""

from __future__ import annotations

import pytest

from benchmarks.tables import registry
from benchmarks.tables.expansion import expand
from benchmarks.tables.selection import Selection
from benchmarks.tables.spec import PROFILES
from results.published import parse_column, published_table


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


@pytest.mark.parametrize("profile", PROFILES)
def test_one_run_is_shared_between_the_tables(profile):
    """A fit is a stage of what a configuration says of the run, whatever measures it: only headings
    differ.
    """
    shown = {"data.train", "evaluation.test"}

    def own(**where):
        cell, *_ = cells(profile=profile, **where)
        return {name: value for name, value in cell.config if name not in shown}

    fedad = own(table="table1", only={"row": "fedad", "train": "chexpert"})
    assert own(table="table4", only={"row": "fedad"}) == fedad
    assert (
        own(
            table="table2",
            only={
                "row": "bound=yes dropout=0",
                "dataset": "chexpert",
                "clients": "3",
                "alpha": "1",
            },
        )
        == fedad
    )
    all_films = own(table="table3", only={"row": "fedad", "public-size": "26684"})
    if profile == "paper":  # all of RSNA's films, by their number or by no limit
        assert (all_films.pop("partition.public_limit"), fedad.pop("partition.public_limit")) == (
            26_684,
            0,
        )
    assert all_films == fedad
    centralized = own(table="table1", only={"row": "centralized", "train": "chexpert"})
    for table in ("table2", "table3", "table4"):
        assert own(table=table, only={"row": "centralized", "dataset": "chexpert"}) == centralized
    figure = own(table="figure3", only={"row": "fedad"})
    assert figure == own(table="table1", only={"row": "fedad", "train": "nih-cxr14"})


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
