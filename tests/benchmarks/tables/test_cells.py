"""Cells: what a selection gives, and what a cell's identity depends on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.running.execute import make_method
from benchmarks.tables import cells, registry
from benchmarks.tables.cells import expand
from benchmarks.tables.selection import Selection, parse_only, parse_overrides
from benchmarks.tables.spec import SpecError
from federation.training.execution import Execution
from models import weight_files
from results.files import DataError
from results.sourcecode import folder_modules, source_digest


@pytest.fixture
def table2():
    return registry.find_table("dlad/table2")


def test_a_table_has_a_cell_for_every_printed_number_and_seed(table2):
    assert len(expand(*table2, Selection())) == 48
    assert len(expand(*table2, Selection(seeds=(0, 1)))) == 96


def test_only_keeps_what_it_names_and_repeated_keys_are_united(table2):
    only = parse_only(["dataset=mnist", "dataset=cifar10", "row=global-dlad"])
    assert only == {"dataset": "mnist,cifar10", "row": "global-dlad"}
    found = expand(*table2, Selection(only=only))
    assert len(found) == 8
    assert {cell.row for cell in found} == {"global-dlad"}


def test_a_row_that_is_there_cannot_be_added_again(table2):
    added = Selection(add=("standalone",))
    assert len(expand(*table2, added)) == 60
    with pytest.raises(SpecError, match="has that row already"):
        expand(*table2, replace(added, add=("standalone", "standalone")))


def test_a_cell_is_known_by_all_that_determines_its_numbers(table2):
    first = expand(*table2, Selection())[0]
    others = [
        replace(first, seed=1),
        replace(first, config=(*first.config, ("x", 1))),
        replace(first, threads=2),
        replace(first, data=replace(first.data, digest="other")),
        replace(first, device="cuda"),
        replace(first, metrics=("accuracy", "loss")),
        replace(first, unit="percent"),
        replace(first, protocol="released"),
        replace(first, public=first.data),
        replace(first, public=replace(first.data, digest="other")),
        replace(first, private=replace(first.data, used="x")),
        replace(first, private=replace(first.data, digest="third")),
    ]
    assert len({first.key, *(cell.key for cell in others)}) == 13
    assert replace(first, device="cuda:0").key == replace(first, device="cuda:1").key


def test_the_code_of_a_cell_covers_networks_and_package_versions(table2, monkeypatch):
    first = expand(*table2, Selection())[0]
    assert {"models.networks.cnn", "models.networks.resnet"} <= set(
        folder_modules("models.networks")
    )
    code = first.code
    cells._code.cache_clear()
    monkeypatch.setattr(cells, "package_versions", lambda: {"torch": "0.0"})
    assert first.code != code
    cells._code.cache_clear()
    monkeypatch.undo()
    assert first.code == code
    assert source_digest("benchmarks.running.execute") != source_digest(
        "benchmarks.running.execute", "models.networks.cnn"
    )


def test_a_cell_has_no_fields_of_other_methods(table2):
    found = {cell.row: dict(cell.config) for cell in expand(*table2, Selection())}
    assert "dlad.temperature" in found["global-dlad"]
    assert not any(name.startswith("dlad.") for name in found["global-avg"])
    assert "local.epochs" in found["global-avg"]


def test_columns_whose_data_are_unusable_stop_a_run_but_not_the_merging_of_earlier_cells(
    table2, tmp_path, monkeypatch
):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
    small = np.zeros((1, 28, 28), np.uint8)
    np.savez(tmp_path / "mnist.npz", x_train=small, y_train=[0], x_test=small, y_test=[0])
    real = Selection(profile="cpu", require_real=True)
    with pytest.raises(DataError, match="CIFAR-10 is needed"):
        expand(*table2, real)
    found = expand(*table2, real, skip_unusable=True)
    assert {cell.data.asked for cell in found} == {"mnist"}
    (tmp_path / "cifar10.npz").write_bytes(b"PK\x03\x04 half a file")
    assert {
        cell.data.asked
        for cell in expand(*table2, replace(real, require_real=False), skip_unusable=True)
    } >= {"mnist"}


# -- FedIOD's tables: other public data, rows of another protocol, offered rows --


@pytest.fixture
def table1():
    return registry.find_table("fediod/table1")


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
    added = (
        "centralized",
        "fedkd-online",
        "fediod-own",
        "fediod-printed",
        "fediod-released",
        "dlad",
    )
    found = expand(*table1, Selection(protocol=protocol, add=added))
    with_public, without = (
        {cell.row for cell in found if (cell.public is not None) is wanted}
        for wanted in (True, False)
    )
    assert with_public == {"feddf", "fedmd", "fedkd", "fedkd-online", "dlad"}
    assert not with_public & without
    assert {dict(cell.config)["public.name"] for cell in found if cell.row in without} == {""}


@pytest.mark.parametrize("name", ["fediod/table6", "fediod/table7"])
def test_ablations_of_a_method_without_public_images_have_none(name):
    assert {cell.public for cell in expand(*registry.find_table(name), Selection())} == {None}


def test_metrics_and_unit_are_the_tables(table1, table2):
    def kinds(paper, table):
        return {
            (cell.metrics, cell.unit, cell.measure) for cell in expand(paper, table, Selection())
        }

    assert kinds(*table1) == {(("accuracy",), "percent", "final")}
    assert kinds(*table2) == {(("accuracy",), "fraction", "final")}
    scores = (("inception-score", "adapted-inception-score"), "", "samples")
    assert kinds(*registry.find_table("fediod/table7")) == {scores}


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


def test_an_offered_row_cannot_be_added_twice(table1):
    with pytest.raises(SpecError, match="has that row already"):
        expand(*table1, Selection(add=("fediod-own", "fediod-own")))


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
    values = [
        [
            dict(cell.config)[name]
            for name in ("fediod.epochs", "fediod.weights", "evaluation.statistic")
        ]
        for cell in both.values()
    ]
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
    with pytest.raises(
        SpecError,
        match=(
            r"nothing of table1 is left to run.*reads public labels has no cell.*another data set"
        ),
    ):
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


def test_a_method_without_public_images_needs_the_clients_data_alone(table1, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
    small = np.zeros((1, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "cifar10.npz", x_train=small, y_train=[0], x_test=small, y_test=[0])
    real = Selection(profile="cpu", require_real=True, only={"dataset": "cifar10"})
    found = expand(*table1, replace(real, only={"row": "fediod", "dataset": "cifar10"}))
    assert {(cell.data.used, cell.data.origin, cell.public) for cell in found} == {
        ("cifar10", "real", None)
    }
    rows = {cell.row for cell in expand(*table1, real, skip_unusable=True)}
    assert rows == {"standalone", "fedavg", "fedprox", "fedavgm", "fedgen", "fediod"}


# -- the released code --


@pytest.mark.parametrize("name", ["fediod/table6", "fediod/table7"])
def test_tables_of_variants_that_the_released_code_lacks_refuse_its_protocol(name):
    with pytest.raises(
        SpecError, match=rf"--protocol released: the rows of {name.split('/')[1]} are variants"
    ):
        expand(*registry.find_table(name), Selection(protocol="released"))
    assert expand(*registry.find_table(name), Selection())


def test_variants_of_the_papers_equations_keep_to_the_paper_in_a_table_of_the_released_code(table1):
    rows = ("fediod-own", "fediod-printed")
    only = {"row": "fediod,fediod-own,fediod-printed", "dataset": "cifar10", "alpha": "0.1"}
    found = {
        cell.row: cell
        for cell in expand(*table1, Selection("paper", "released", add=rows, only=only))
    }
    assert {row: cell.protocol for row, cell in found.items()} == {
        "fediod": "released",
        "fediod-own": "paper",
        "fediod-printed": "paper",
    }
    configs = {row: dict(cell.config) for row, cell in found.items()}
    assert {row: config["fediod.student_steps"] for row, config in configs.items()} == {
        "fediod": 5,
        "fediod-own": 1,
        "fediod-printed": 1,
    }
    for row in rows:  # no combination that the method refuses
        make_method(registry.find_method("fediod"), configs[row])
    beside = {cell.row: cell for cell in expand(*table1, Selection("paper", add=rows, only=only))}
    assert [found[row].key for row in rows] == [beside[row].key for row in rows]


# -- the network that measures generated images --


def test_a_cell_of_generated_images_is_known_by_the_network_that_measures_them(monkeypatch):
    table7 = registry.find_table("fediod/table7")
    table6 = registry.find_table("fediod/table6")
    before, others = expand(*table7, Selection()), expand(*table6, Selection())
    assert {dict(cell.config)["evaluation.extractor"] for cell in before} == {"efficientnet-lite0"}
    monkeypatch.setattr(weight_files, "default_extractor", lambda embedded: "inception-v3")
    after = expand(*table7, Selection())
    assert {dict(cell.config)["evaluation.extractor"] for cell in after} == {"inception-v3"}
    assert not {cell.key for cell in before} & {cell.key for cell in after}
    assert expand(*table6, Selection()) == others
    assert not any("evaluation.extractor" in dict(cell.config) for cell in others)


def test_the_smoke_profile_never_measures_with_a_file_of_the_users(monkeypatch):
    asked = []
    monkeypatch.setattr(
        weight_files, "default_extractor", lambda embedded: asked.append(embedded) or "x"
    )
    for profile in ("smoke", "cpu", "paper"):
        expand(*registry.find_table("fediod/table7"), Selection(profile, only={"row": "gan"}))
    assert asked == [True, False, False]


def test_a_field_that_is_set_reaches_the_cells_of_its_method_alone(table1):
    overrides = parse_overrides(["dlad.temperature=3"], table1[0])
    only = {"dataset": "cifar10", "alpha": "1"}
    plain, changed = (
        {
            cell.row: cell
            for cell in expand(*table1, Selection(add=("dlad",), only=only, overrides=own))
        }
        for own in ((), overrides)
    )
    assert dict(changed["dlad"].config)["dlad.temperature"] == 3
    assert make_method(registry.find_method("dlad"), dict(changed["dlad"].config)).temperature == 3
    assert {row for row in plain if plain[row].key != changed[row].key} == {"dlad"}


def test_overridden_cells_are_cells_of_their_own(table1):
    only = {"row": "fedavg", "dataset": "cifar10"}
    plain, other = Selection(only=only), Selection(only=only, overrides=(("local.epochs", 7),))
    changed = expand(*table1, other)
    assert {dict(cell.config)["local.epochs"] for cell in changed} == {7}
    assert not {cell.key for cell in changed} & {cell.key for cell in expand(*table1, plain)}


WAYS = [
    Execution("bf16"),
    Execution("tf32"),
    Execution(compile="default"),
    Execution(stacked=2),
    Execution(stacked=3),
]


def test_the_files_of_a_way_of_running_are_set_apart_too():
    assert [Selection(execution=way).variant for way in WAYS] == [
        "bf16",
        "tf32",
        "compiled",
        "stacked2",
        "stacked3",
    ]
    every = Selection(protocol="released", overrides=(("local.epochs", 1),), execution=WAYS[0])
    assert every.variant == f"{replace(every, execution=Execution()).variant}.bf16"


def test_cells_run_in_another_way_are_cells_of_their_own_with_the_same_settings(table2):
    first = expand(*table2, Selection())[0]
    others = [expand(*table2, Selection(execution=way))[0] for way in WAYS]
    assert [cell.execution for cell in others] == WAYS
    assert len({first.key, *(cell.key for cell in others)}) == 6
    assert {cell.config for cell in others} == {first.config}


def test_set_public_name_leaves_methods_without_public_images_alone(table1):
    own = parse_overrides(["public.name=cinic10"], table1[0])
    assert {
        c.public for c in expand(*table1, Selection(only={"row": "fediod"}, overrides=own))
    } == {None}


def test_a_setting_that_the_columns_set_is_not_set_by_hand():
    for table, name in (
        ("fediod/table5", "privacy.epsilon"),
        ("fediod/table1", "partition.alpha"),
        ("dlad/table2", "data.name"),
    ):
        with pytest.raises(SpecError, match=f"--set {name}: the columns of .* set it"):
            expand(*registry.find_table(table), Selection(overrides=((name, 1.0),)))


def test_a_run_is_private_only_where_a_budget_is_asked_for():
    paper, table = registry.find_table("fediod/table1")
    only = {"row": "fedavg,fedkd,fediod", "dataset": "cifar10", "alpha": "1"}
    plain, private = (
        {
            cell.row: dict(cell.config)
            for cell in expand(paper, table, Selection(only=only, overrides=overrides))
        }
        for overrides in ((), (("privacy.epsilon", 3.0),))
    )
    assert not any(name.startswith("privacy.") for config in plain.values() for name in config)
    mechanisms = {row: config["privacy.mechanism"] for row, config in private.items()}
    assert mechanisms == {"fedavg": "dp-sgd", "fedkd": "pate", "fediod": "gs-wgan"}
    assert plain["fedavg"]["network.resnet8"] == "resnet8-narrow"
    assert private["fedavg"]["network.resnet8"] == "resnet8-narrow-gn"
    assert private["fedkd"]["network.resnet8"] == "resnet8-narrow"


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


def test_a_cell_is_another_with_other_private_data(teachers):
    first = expand(*teachers, Selection())[0]
    assert (
        len(
            {
                first.key,
                replace(first, private=None).key,
                replace(first, private=replace(first.private, digest="x")).key,
            }
        )
        == 3
    )


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
    assert used(teachers, "cifar10") == ("cifar10", "caltech100")
    assert used(teachers, "cifar100") == ("cifar100", "caltech100")


def test_private_data_that_are_not_there_are_told_like_the_targets(teachers, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
    caltech(tmp_path, ["cifar10"])
    real = Selection(
        profile="cpu",
        require_real=True,
        only={"dataset": "cifar10", "row": "fedsa", "fraction": "0.10"},
    )
    with pytest.raises(DataError, match=r"ImageNet.* is needed"):
        expand(*teachers, real)


def test_a_teacher_of_table_3_carries_the_settings_of_the_selection_and_of_no_other_method():
    found = expand(*registry.find_table("fedsa/table3"), Selection())
    assert len(found) == 20
    prefixes = {name.partition(".")[0] for cell in found for name, _ in cell.config} & set(
        registry.methods()
    )
    assert prefixes == {"transfer", "fedsa"}
    assert [dict(cell.config)["transfer.teacher"] for cell in found[:10]] == list(range(1, 11))
    assert {dict(cell.config)["transfer.frozen"] for cell in found} == {True}
