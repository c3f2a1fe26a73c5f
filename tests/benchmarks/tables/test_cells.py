"""Cells: what a selection gives, and what a cell's identity depends on."""

from dataclasses import replace
from importlib import metadata

import numpy as np
import pytest

from fedtables.benchmarks.scenarios.assembly import make_method
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.readers import read_only, read_settings
from fedtables.benchmarks.tables.selection import Selection, typed_settings
from fedtables.benchmarks.tables.spec import PROFILES, SpecError
from fedtables.federation.execution import Execution
from fedtables.models import weight_files
from fedtables.results.files import DataError
from fedtables.results.sourcecode import source_digest, source_libraries

pytestmark = pytest.mark.usefixtures("every_content_known")


def test_a_table_has_a_cell_for_every_printed_number_and_seed(table2):
    assert len(expand(*table2, Selection())) == 48
    assert len(expand(*table2, Selection(seeds=(0, 1)))) == 96


def test_only_keeps_what_it_names_and_repeated_keys_are_united(table2):
    only = read_only(["dataset=mnist", "dataset=cifar10", "row=global-dlad"])
    assert only == {"dataset": ("mnist", "cifar10"), "row": ("global-dlad",)}
    found = expand(*table2, Selection(only=only))
    assert len(found) == 8
    assert {cell.row for cell in found} == {"global-dlad"}


def test_a_value_with_commas_is_itself_and_not_a_list():
    table = registry.find_table("fedad/table7")

    def trains(*pairs):
        found = expand(*table, Selection(only=read_only([*pairs, "test=b", "modality=t1"])))
        return {cell.column.split()[0] for cell in found}

    assert trains("train=b,f,i") == {"train=b,f,i"}
    assert trains("train=b,f") == {"train=b", "train=f"}
    assert trains("train=b", "train=f", "train=i") == {"train=b", "train=f", "train=i"}
    assert trains("train=b,f,i", "train=i") == {"train=b,f,i", "train=i"}


def test_a_row_that_is_there_cannot_be_added_again(table2):
    added = Selection(add=("standalone",))
    assert len(expand(*table2, added)) == 60
    with pytest.raises(SpecError, match="has that row already"):
        expand(*table2, replace(added, add=("standalone", "standalone")))


def test_a_seed_moves_training_where_the_division_of_samples_is_no_draw():
    given = [
        cell
        for name in registry.all_tables()
        for cell in expand(*registry.find_table(name), Selection(), skip_unusable=True)
        if dict(cell.config)["partition.kind"] in ("by-site", "by-size")
    ]
    assert given
    fixed = {cell.table for cell in given if not {"weights", "shuffling"} <= {*cell.seed_axes}}
    assert not fixed


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


@pytest.mark.parametrize("name", ["dlad/table2", "fedad/table5", "fediod/table2", "fedad/table8"])
def test_the_code_of_a_cell_covers_the_version_of_every_library_that_it_imports(name, monkeypatch):
    first = expand(*registry.find_table(name), Selection())[0]
    libraries = first.libraries
    assert {"torch", "timm", "numpy", "opacus"} <= libraries.keys()
    assert {"monai", "scipy", "scikit-learn"} <= libraries.keys()
    read = {"pillow", "scikit-image"}
    assert read <= libraries.keys() or name == "dlad/table2"
    codes = {first.code}
    real = metadata.version
    for library in libraries:
        other = {library: "0.0"}
        monkeypatch.setattr(metadata, "version", lambda n, other=other: other.get(n) or real(n))
        _forget_libraries()
        assert first.libraries == {**libraries, **other}
        codes.add(first.code)
    monkeypatch.undo()
    _forget_libraries()
    assert len(codes) == 1 + len(libraries)


def _forget_libraries():
    source_digest.cache_clear()
    source_libraries.cache_clear()


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
    for profile in PROFILES:
        expand(*registry.find_table("fediod/table7"), Selection(profile, only={"row": "gan"}))
    assert asked == [True, False, False, False]


def test_a_field_that_is_set_reaches_the_cells_of_its_method_alone(table1):
    overrides = typed_settings(read_settings(["dlad.temperature=3"]), table1[0])
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


WAYS = [
    Execution("bf16"),
    Execution("tf32"),
    Execution(compile="default"),
    Execution(stacked=2),
    Execution(stacked=3),
]


def test_cells_run_in_another_way_are_cells_of_their_own_with_the_same_settings(table2):
    first = expand(*table2, Selection())[0]
    others = [expand(*table2, Selection(execution=way))[0] for way in WAYS]
    assert [cell.execution for cell in others] == WAYS
    assert len({first.key, *(cell.key for cell in others)}) == 6
    assert {cell.config for cell in others} == {first.config}


def test_a_setting_that_the_columns_set_is_not_set_by_hand():
    for table, name in (
        ("fediod/table5", "privacy.epsilon"),
        ("fediod/table1", "partition.alpha"),
        ("dlad/table2", "data.name"),
    ):
        with pytest.raises(SpecError, match=f"--set {name}: the columns of .* set it"):
            expand(*registry.find_table(table), Selection(overrides=((name, 1.0),)))


def test_whether_a_run_is_private_is_said_by_yes_or_no_alone(table1):
    overrides = (("privacy.dp", "on"), ("privacy.epsilon", 3.0))
    with pytest.raises(SpecError, match=r"privacy\.dp cannot be 'on'; known: no, yes"):
        expand(*table1, Selection(only={"row": "fedavg"}, overrides=overrides))


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
