"""A method that a paper does not name is given what the paper says of the one that it derives
from.
"""

import contextlib
import itertools
from dataclasses import fields, replace

import pytest

from fedtables.benchmarks.running.events import Context
from fedtables.benchmarks.running.execute import run_cell
from fedtables.benchmarks.scenarios.assembly import make_method
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.defaults import filled
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.readers import read_settings
from fedtables.benchmarks.tables.selection import Selection, typed_settings
from fedtables.benchmarks.tables.spec import PROFILES, PROTOCOLS, Paper, Row, Setting, Table
from fedtables.results.record import OK
from tests.docs.adding import DERIVED

WITH_FEDAVG = [
    f"{paper.key}/{table.key}"
    for paper in registry.papers().values()
    for table in paper.tables
    if any(row.method == "fedavg" and not row.config for row in (*table.rows, *table.offered))
    and not registry.find_measure(table.measure).takes_no_method
]


@pytest.fixture(scope="module")
def damped_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "damped.py"
    path.write_text(DERIVED)
    return path


@pytest.fixture
def _damped(damped_file):
    with registry.used([damped_file]):
        yield


@pytest.fixture
def written(tmp_path):
    """Writes a plug-in `plug` of the class `Plug`, which is in use until the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *what: stack.enter_context(registry.used([plug(tmp_path, *what)]))


def plug(folder, base, module, body=""):
    path = folder / "plug.py"
    path.write_text(
        "from dataclasses import dataclass, field\n"
        f"from {module} import {base}\n\n\n"
        f"@dataclass(frozen=True)\nclass Plug({base}):\n    title = 'Plug'\n{body}\n"
    )
    return path


def configs(name, selection):
    """Configurations by row and column."""
    cells = expand(*registry.find_table(name), selection, skip_unusable=True)
    return {(cell.row, cell.column): dict(cell.config) for cell in cells}


# -- who belongs to whom --


@pytest.mark.usefixtures("_damped")
def test_a_lineage_ends_with_the_root_of_the_family():
    assert registry.lineage("damped") == ("damped", "fedavg")
    assert registry.lineage("feddf") == ("feddf", "fedavg")
    assert registry.lineage("fedprox-plus") == ("fedprox-plus", "fedavg-plus")
    assert registry.lineage("dlad") == ("dlad",)


def test_a_class_between_two_methods_that_is_none_itself_is_passed_over(written):
    """FedIOD's fields are in a class of their own, which is no method."""
    written("FedIOD", "fedtables.methods.fediod")
    assert registry.lineage("plug") == ("plug", "fediod")


def test_a_paper_names_the_methods_of_its_rows_of_its_settings_and_of_their_conditions():
    row, offered = Row("a", "fedavg", ""), Row("k", "fedkd-gong", "")
    paper = Paper(
        key="p",
        title="",
        citation="",
        settings=(
            Setting("feddf.rounds", 3, "paper", ""),
            Setting("local.epochs", {"method=fedgen|fedmd x=1": 1, "": 2}, "paper", ""),
        ),
        tables=(Table("t", "", rows=(row,), columns=(), axes={}, offered=(offered,)),),
        released_code=False,
        seed_axes=(),
    )
    assert {"fedavg", "fedkd-gong", "feddf", "fedgen", "fedmd"} == paper.methods - {"local"}


# -- what it is given --


@pytest.mark.parametrize("name", WITH_FEDAVG)
@pytest.mark.usefixtures("_damped")
def test_the_documented_derived_method_trains_as_fedavg_in_every_table_that_has_it(name):
    paper, table = registry.find_table(name)
    offered = tuple(row.key for row in table.offered if row.method == "fedavg")
    [fedavg] = [
        row for row in (*table.rows, *table.offered) if row.method == "fedavg" and not row.config
    ]
    protocols = PROTOCOLS if paper.released_code and table.released else PROTOCOLS[:1]
    for profile, protocol in itertools.product(PROFILES, protocols):
        both = {"row": [fedavg.key, "damped"]}
        selection = Selection(profile, protocol, only=both, add=(*offered, "damped"))
        found = configs(name, selection)
        places = [place for place in found if place[0] == fedavg.key]
        assert places
        for row, column in places:
            own = found["damped", column]
            assert own.pop("damped.step") == 0.5
            of_fedavg = found[row, column]
            assert own == {n.replace("fedavg.", "damped."): v for n, v in of_fedavg.items()}


def test_the_nearest_method_that_the_paper_names_decides(written):
    written("FedDF", "fedtables.methods.feddf")
    found = configs("fediod/table1", Selection(add=("plug",)))
    column = "dataset=cifar10 alpha=1"
    own, feddf = found["plug", column], found["feddf", column]
    assert own == {n.replace("feddf.", "plug."): v for n, v in feddf.items()}
    assert own["partition.validation_share"] == 0.1
    assert found["fedavg", column]["partition.validation_share"] == 0.0


@pytest.mark.usefixtures("_damped")
def test_a_setting_of_its_own_goes_before_that_of_the_family():
    paper, _ = registry.find_table("fediod/table1")
    column = "dataset=cifar10 alpha=1"
    for pairs, rounds in (
        (["fedavg.rounds=7"], (7, 7)),
        (["damped.rounds=5"], (5, 3)),
        (["fedavg.rounds=7", "damped.rounds=5"], (5, 7)),
    ):
        found = configs(
            "fediod/table1",
            Selection(
                add=("damped",),
                overrides=typed_settings(read_settings(pairs), paper),
            ),
        )
        own, fedavg = found["damped", column], found["fedavg", column]
        assert (own["damped.rounds"], fedavg["fedavg.rounds"]) == rounds


def test_a_default_of_the_derived_class_does_not_go_before_the_tables_setting(written):
    written("FedAvg", "fedtables.methods.fedavg", "    rounds: int = 90\n    extra: int = 4")
    found = configs("fediod/table1", Selection(add=("plug",)))
    own = found["plug", "dataset=cifar10 alpha=1"]
    assert (own["plug.rounds"], own["plug.extra"]) == (3, 4)


def test_what_a_derived_class_has_no_field_for_is_not_passed(written):
    written("FedAvg", "fedtables.methods.fedavg", "    rounds: int = field(default=9, init=False)")
    selection = Selection(add=("plug",))
    own = configs("fediod/table1", selection)["plug", "dataset=cifar10 alpha=1"]
    assert not [name for name in own if name.startswith("fedavg.")]
    method = make_method(registry.find_method("plug"), own)
    assert (method.rounds, method.participation) == (9, 0.5)


def test_a_method_of_its_own_has_the_tables_plans_and_its_own_defaults(written):
    body = "    rounds: int = 11\n\n    def fit(self, federation):\n        return None"
    written("Method", "fedtables.federation.method", body)
    found = configs("fediod/table1", Selection("paper", add=("plug",)))
    own = found["plug", "dataset=cifar10 alpha=1"]
    plain = found["fedkd", "dataset=cifar10 alpha=1"]
    assert own["plug.rounds"] == 11
    assert {n: v for n, v in own.items() if "plug." not in n} == {
        n: v for n, v in plain.items() if "fedkd-gong." not in n
    }


@pytest.mark.usefixtures("_damped")
def test_a_public_set_can_be_given_to_a_method_whose_family_has_none():
    paper, _ = registry.find_table("fediod/table1")
    selection = Selection(add=("damped",))
    given = replace(selection, overrides=typed_settings({"public.name": "cifar100"}, paper))
    column = "dataset=cifar10 alpha=1"
    assert configs("fediod/table1", selection)["damped", column]["public.name"] == ""
    found = configs("fediod/table1", given)
    assert found["damped", column]["public.name"] == "cifar100"
    assert found["fedavg", column]["public.name"] == ""


def test_papers_set_by_name_what_they_set_for_the_family_of_a_method_they_name():
    """A finished table is shown without importing methods, so what a method that a paper names
    takes from its family must be in the spec.
    """
    for paper in registry.papers().values():
        names = {setting.name for setting in paper.every_setting}
        for method in paper.methods & registry.methods().keys():
            has = {
                field.name for field in fields(registry.find_method(method).load()) if field.init
            }
            for base in registry.lineage(method)[1:]:
                of_base = {n.partition(".")[2] for n in names if n.startswith(f"{base}.")}
                of_it = {n.partition(".")[2] for n in names if n.startswith(f"{method}.")}
                assert of_base & has <= of_it, (paper.key, method)


@pytest.mark.parametrize("profile", PROFILES)
def test_rows_of_a_family_train_alike_in_every_table(profile):
    """Plans of local training and what the root has fields for: rounds, participation, epochs.
    Where rows share a budget instead, each has the learning rates of its own trials.
    """
    compared = set()
    for paper in registry.papers().values():
        names_of_paper = {setting.name for setting in paper.every_setting}
        in_a_league = "budget.samples" in names_of_paper
        for table in paper.tables:
            tried = in_a_league and (profile == "cpu" or table.preparatory)
            tuned = {"local.lr", "method.distillation_lr"} if tried else set()
            rows = {row.method: row for row in (*table.rows, *table.offered) if not row.config}
            for column in table.columns:
                for method in rows:
                    root = registry.lineage(method)[-1]
                    if root == method or root not in rows:
                        continue
                    own, of_root = (
                        {
                            name.replace(f"{which}.", "method."): value
                            for name, value in filled(
                                paper.config(table, rows[which], column, profile, "paper")
                            ).items()
                        }
                        for which in (method, root)
                    )
                    fields_of_root = fields(registry.find_method(root).load())
                    names = {f"method.{about.name}" for about in fields_of_root}
                    names |= {name for name in of_root if name.startswith("local.")}
                    for name in (names & of_root.keys() & own.keys()) - tuned:
                        assert own[name] == of_root[name], (paper.key, table.key, method, name)
                    compared.add(method)
    assert compared == {
        *("fedprox", "fedavgm", "fedgen", "feddf", "fedprox-plus", "li-2019", "scarlet"),
        *("fedntd", "moon", "scaffold", "feddyn", "fedftg", "fedbe"),
    }


@pytest.mark.usefixtures("_damped")
def test_the_documented_derived_method_has_fedavgs_budget(tmp_path):
    """Two of four clients in each of three rounds, at smoke."""
    only = {"row": "fedavg,damped", "dataset": "cifar10", "alpha": "1"}
    selection = Selection(only=only, add=("damped",))
    cells = expand(*registry.find_table("fediod/table1"), selection)
    fedavg, own = (run_cell(cell, Context(str(tmp_path)))[0] for cell in cells)
    assert (fedavg.row, own.row, fedavg.status, own.status) == ("fedavg", "damped", OK, OK)
    assert (fedavg.lineage, own.lineage) == (("fedavg",), ("damped", "fedavg"))
    for name in ("local_samples", "server_samples", "bytes_up", "bytes_down"):
        assert getattr(own, name) == getattr(fedavg, name), name
    assert 0 < own.local_samples < 3 * 600
    assert own.server_samples == 0
    assert own.measurements != fedavg.measurements
