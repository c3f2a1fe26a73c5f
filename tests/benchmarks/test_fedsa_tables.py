"""FedSA's tables: a cell for every printed number, the paper's settings in it, and Table 3 from the command line."""

from __future__ import annotations

import csv
import dataclasses
import json
import re

import pytest

from benchmarks import registry
from benchmarks.cells import Selection, expand
from benchmarks.execute import make_method
from results.published import published_table

PAPER = registry.papers()["fedsa"]
PRINTED = ("table1", "table2", "table3", "table4")


def cells(table, **changes):
    return expand(PAPER, next(t for t in PAPER.tables if t.key == table), Selection(**changes))


@pytest.mark.parametrize("protocol", ["paper", "released"])
@pytest.mark.parametrize("profile", ["smoke", "cpu", "paper"])
@pytest.mark.parametrize("table", PRINTED)
def test_every_printed_number_has_a_cell_and_every_dash_has_none(table, profile, protocol):
    published = published_table(f"fedsa/{table}")
    printed = {(cell.row, cell.column, cell.metric) for cell in published if cell.value is not None}
    of_column: dict[str, set[str]] = {}
    for cell in published:
        of_column.setdefault(cell.column, set()).add(cell.metric)
    found = cells(table, profile=profile, protocol=protocol)
    ours = [(cell.row, cell.column, metric) for cell in found for metric in of_column[cell.column]]
    assert set(ours) == printed
    assert len(ours) == len(printed)
    assert all(of_column[cell.column] <= set(cell.metrics) for cell in found)


@pytest.mark.parametrize(("table", "count"), [("table1", 144 - 8), ("table2", 112), ("table3", 40), ("table4", 12)])
def test_as_many_numbers_as_are_counted_in_print(table, count):
    assert sum(cell.value is not None for cell in published_table(f"fedsa/{table}")) == count


@pytest.mark.parametrize("profile", ["smoke", "cpu", "paper"])
@pytest.mark.parametrize("protocol", ["paper", "released"])
@pytest.mark.parametrize("table", [table.key for table in PAPER.tables])
def test_every_cells_method_can_be_made_and_no_two_are_the_same_run(table, protocol, profile):
    offered = tuple(row.key for row in next(t for t in PAPER.tables if t.key == table).offered if row.protocol != "released")
    found = cells(table, profile=profile, protocol=protocol, add=offered)
    for cell in found:
        method = make_method(registry.find_method(cell.method), dict(cell.config))
        own = {name.partition(".")[2] for name, _ in cell.config if name.startswith(f"{cell.method}.")}
        assert own <= {field.name for field in dataclasses.fields(method)}
    assert len({cell.key for cell in found}) == len(found)


def method_of(table, row, protocol="paper", **only):
    only = {"row": row, **only}
    cell = cells(table, profile="paper", protocol=protocol, only=only)[0]
    return make_method(registry.find_method(cell.method), dict(cell.config)), dict(cell.config)


def test_fedsa_is_as_the_paper_says():
    method, config = method_of("table1", "fedsa")
    assert (method.selected, method.selection, method.weighting) == (3, "sampled", "equal")
    assert (method.transferability, method.saliency, method.retrain, method.adaptation) == ("eq2", "input-gradient", True, "decoder")
    assert (config["partition.clients"], config["private.name"], config["partition.kind"]) == (10, "imagenet32", "class-groups")
    assert (config["network.resnet-34"], config["network.server"], config["network.client"]) == ("resnet34", "resnet-34", "resnet-34")


def test_the_released_code_looks_with_grad_cam_and_adapts_everything():
    method, config = method_of("table1", "fedsa", "released")
    assert (method.transferability, method.saliency, method.retrain, method.adaptation) == ("released", "grad-cam", False, "all")
    assert (method.local_lr, method.rounds, method.selection_gap, method.adaptation_gap) == (0.1, 50, 10, 10)
    assert (config["server.lr"], config["local.batch_size"], config["evaluation.statistic"]) == (0.1, 20, "best")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("fixed+unweighted", ("fixed", "equal")),
        ("top-k+unweighted", ("top-k", "equal")),
        ("top-k+positive-weighted", ("top-k", "positive")),
        ("top-k+negative-weighted", ("top-k", "negative")),
        ("least-k+positive-weighted", ("least-k", "positive")),
        ("random+positive-weighted", ("random", "positive")),
        ("fedsa", ("sampled", "equal")),
    ],
)
def test_a_row_of_table_2_is_its_strategy(row, expected):
    method, _ = method_of("table2", row)
    assert (method.selection, method.weighting) == expected


def test_tables_1_and_2_share_fedsas_runs_and_the_figures_share_its_tenth():
    """A fit is a stage of what a configuration says of the run, whatever measures it."""
    first, second = ({cell.column: cell.config for cell in cells(table, only={"row": "fedsa"})} for table in ("table1", "table2"))
    assert first == second
    tenth = next(c for c in cells("table1", only={"row": "fedsa"}) if "resnet-34 fraction=0.10 dataset=cifar10" in c.column)
    (figure,) = cells("figure4a", only={"dataset": "cifar10"})
    (three,) = cells("figure4b", only={"dataset": "cifar10", "k": "3"})
    for name in ("fedsa.weak_epochs", "fedsa.adaptation_epochs", "fedsa.rounds", "server.epochs", "partition.probe_share"):
        for profile in ("smoke", "cpu", "paper"):
            values = {
                dict(next(c for c in cells(t, profile=profile, only={"row": "fedsa", "dataset": "cifar10", **only})).config)[name]
                for t, only in (
                    ("table1", {"fraction": "0.10", "setting": "homogeneous"}), ("figure4a", {}), ("figure4b", {"k": "3"}),
                )
            }  # fmt: skip
            assert len(values) == 1, (name, profile)
    assert dict(three.config) == dict(figure.config) | {"fedsa.selected": 3}
    assert dict(figure.config) == dict(tenth.config)


# -- from the command line --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory, module_command):
    """Three teachers of Table 3 and the selections of Figure 4a, into one cache."""
    results = tmp_path_factory.mktemp("fedsa")
    done = module_command(
        "benchmarks", "reproduce", "fedsa/table3", "fedsa/figure4a", "--results", str(results), "--only", "dataset=cifar10",
        "--set", "partition.clients=3", "--set", "fedsa.selected=2", "--set", "partition.pool_limit=300",
        "--set", "server.epochs=2", "--drop-nothing"[:0] or "--set", "fedsa.adaptation_epochs=2",
    )  # fmt: skip
    return results / "smoke" / "fedsa", done
