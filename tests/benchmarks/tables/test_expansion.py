"""Cells of tables with other public or private data, rows of another protocol and offered rows."""

import numpy as np
import pytest

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.federation.execution import Execution
from fedtables.results.files import DataError

pytestmark = pytest.mark.usefixtures("every_content_known")

# -- FedIOD's tables: other public data, rows of another protocol, offered rows --


def test_a_cell_knows_the_data_set_of_its_public_images(table1, table2):
    found = {cell.data.asked: cell for cell in expand(*table1, Selection(only={"row": "fedkd"}))}
    assert {asked: cell.public.asked for asked, cell in found.items()} == {
        "cifar10": "cifar100",
        "cifar100": "cifar10",
    }
    assert found["cifar10"].public.used == found["cifar100"].data.used
    assert {cell.public for cell in expand(*table2, Selection())} == {None}


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_only_methods_that_use_public_images_have_any(table1, protocol):
    added = (*(row.key for row in table1[1].offered), "dlad")
    found = expand(*table1, Selection(protocol=protocol, add=added))
    with_public, without = (
        {cell.row for cell in found if (cell.public is not None) is wanted}
        for wanted in (True, False)
    )
    assert with_public == {"feddf", "fedmd", "fedkd", "fedkd-online", "dlad"}
    assert not with_public & without
    assert {dict(cell.config)["public.name"] for cell in found if cell.row in without} == {""}


def test_an_offered_row_joins_by_its_key_with_its_own_configuration(table1):
    plain, more = expand(*table1, Selection()), expand(*table1, Selection(add=("fediod-own",)))
    assert (len(plain), len(more)) == (36, 40)
    assert [cell for cell in more if cell.row != "fediod-own"] == plain
    own, printed = (
        next(dict(c.config) for c in more if c.row == row) for row in ("fediod-own", "fediod")
    )
    assert {name for name in own if own[name] != printed[name]} == {"fediod.weights"}
    assert own["fediod.weights"] == "eq8-own"
    only = expand(
        *table1, Selection(add=("fediod-own",), only={"row": "fediod-own", "dataset": "cifar10"})
    )
    assert [cell.row for cell in only] == ["fediod-own"] * 2


def test_a_row_of_another_protocol_is_run_under_it_whatever_the_command_says(table1):
    rows = {
        "add": ("fediod-released",),
        "only": {"row": "fediod,fediod-released", "dataset": "cifar10", "alpha": "0.1"},
    }
    both = {cell.row: cell for cell in expand(*table1, Selection(profile="paper", **rows))}
    assert {row: cell.protocol for row, cell in both.items()} == {
        "fediod": "paper",
        "fediod-released": "released",
    }
    names = ("fediod.epochs", "fediod.weights", "evaluation.statistic")
    values = [[dict(cell.config)[name] for name in names] for cell in both.values()]
    assert values == [[300, "eq8", "last"], [500, "class-count", "best"]]
    released = {
        cell.row: cell
        for cell in expand(*table1, Selection(profile="paper", protocol="released", **rows))
    }
    assert {cell.protocol for cell in released.values()} == {"released"}
    assert released["fediod-released"].key == both["fediod-released"].key
    assert released["fediod"].config == released["fediod-released"].config


def test_a_method_that_reads_public_labels_has_no_cell_where_these_are_of_other_classes(
    table1, table2
):
    added = Selection(add=("public-only", "labeled-distillation", "centralized"))
    assert {cell.row for cell in expand(*table1, added)} - {row.key for row in table1[1].rows} == {
        "centralized"
    }
    assert {cell.row for cell in expand(*table2, Selection(add=("public-only",)))} >= {
        "public-only",
        "global-labeled",
    }


def test_when_nothing_is_left_of_a_selection_the_reason_is_told(table1):
    told = "nothing of table1 is left to run.*reads public labels has no cell.*another data set"
    with pytest.raises(SpecError, match=told):
        expand(*table1, Selection(add=("public-only",), only={"row": "public-only"}))


def test_another_public_set_that_is_not_there_is_told_like_the_clients(
    table1, tmp_path, monkeypatch
):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
    small = np.zeros((1, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "cifar10.npz", x_train=small, y_train=[0], x_test=small, y_test=[0])
    real = Selection(profile="cpu", require_real=True, only={"row": "fedkd", "dataset": "cifar10"})
    with pytest.raises(DataError, match="CIFAR-100 is needed"):
        expand(*table1, real)
    with pytest.raises(SpecError, match="nothing of table1 is left"):
        expand(*table1, real, skip_unusable=True)


# -- the released code --


@pytest.mark.parametrize("name", ["fediod/table6", "fediod/table7"])
def test_tables_of_variants_that_the_released_code_lacks_refuse_its_protocol(name):
    with pytest.raises(
        SpecError, match=rf"--protocol released: the rows of {name.split('/')[1]} are variants"
    ):
        expand(*registry.find_table(name), Selection(protocol="released"))
    assert expand(*registry.find_table(name), Selection())


# -- FedSA's tables: private data of another set --


@pytest.fixture
def teachers():
    return registry.find_table("fedsa/table1")


def test_a_cell_knows_the_data_set_of_its_clients(teachers, table1):
    found = expand(*teachers, Selection(only={"fraction": "0.10", "setting": "homogeneous"}))
    assert {(cell.data.asked, cell.private.asked, cell.private.used) for cell in found} == {
        ("cifar10", "imagenet32", "shapes-100-shifted"),
        ("cifar100", "imagenet32", "shapes-100-shifted"),
    }
    assert {cell.public for cell in found} == {None}
    assert {cell.private for cell in expand(*table1, Selection())} == {None}


def test_where_target_and_clients_share_a_set_it_is_resolved_once():
    cell, *_ = expand(*registry.find_table("fedsa/table4"), Selection(only={"row": "fedsa"}))
    assert cell.private is cell.data
    assert cell.data.used == "scenes"


def caltech(home, names):
    """A data home with these sets, by the names of their files."""
    home.mkdir(exist_ok=True)
    small = np.zeros((1, 32, 32, 3), np.uint8)
    for name in names:
        np.savez(home / f"{name}.npz", x_train=small, y_train=[0], x_test=small, y_test=[0])


def used(table, column):
    only = {"row": "fedsa", "dataset": column, "fraction": "0.10", "setting": "homogeneous"}
    (cell,) = expand(*table, Selection("cpu", only=only))
    return cell.data.used, cell.private.used


def test_what_stands_in_for_the_target_does_not_stand_in_for_the_private_data_too(
    teachers, tmp_path, monkeypatch
):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
    caltech(tmp_path, ["caltech100_32"])
    assert used(teachers, "cifar10") == ("shapes", "caltech100")
    assert used(teachers, "cifar100") == ("caltech100", "shapes-100-shifted")
    caltech(tmp_path, ["caltech100_32", "cifar10", "cifar100"])
    assert used(teachers, "cifar10") == ("cifar10", "cifar100")
    assert used(teachers, "cifar100") == ("cifar100", "caltech100")


def test_a_teacher_of_table_3_carries_the_settings_of_the_selection_and_of_no_other_method():
    found = expand(*registry.find_table("fedsa/table3"), Selection())
    assert len(found) == 20
    prefixes = {name.partition(".")[0] for cell in found for name, _ in cell.config} & set(
        registry.methods()
    )
    assert prefixes == {"transfer", "fedsa"}
    assert [dict(cell.config)["transfer.teacher"] for cell in found[:10]] == list(range(1, 11))
    assert {dict(cell.config)["transfer.frozen"] for cell in found} == {True}


def test_private_cells_have_the_plain_execution_and_others_the_one_that_is_asked_for():
    selection = Selection(only={"row": "fediod"}, execution=Execution(stacked=4))
    cells = expand(*registry.find_table("fediod/trial"), selection)
    stacked = {cell.column: cell.execution.stacked for cell in cells}
    assert set(stacked.values()) == {1, 4}
    assert all(
        (number == 4) == column.endswith("epsilon=inf") for column, number in stacked.items()
    )
