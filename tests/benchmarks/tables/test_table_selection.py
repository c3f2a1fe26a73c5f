"""Selections: what the options that choose rows and settings mean, and what they refuse."""

import dataclasses
from dataclasses import replace

import pytest

from fedtables.benchmarks.commands.asked import selected
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.readers import read_settings
from fedtables.benchmarks.tables.request import requested
from fedtables.benchmarks.tables.selection import (
    Selection,
    parse_methods,
    table_rows,
    typed_settings,
    wanted_values,
)
from fedtables.benchmarks.tables.spec import AS_CLASS, SpecError


def test_methods_are_added_and_dropped_by_sign():
    assert parse_methods("+mine, -global-avg") == (("mine",), ("global-avg",))
    with pytest.raises(SpecError, match=r"\+mine or -mine"):
        parse_methods("mine")
    assert parse_methods("") == ((), ())


@pytest.mark.parametrize("text", [",", " ", "+mine,", "+mine,,-other", "+", "-", "+mine,+"])
def test_a_name_that_is_not_there_is_no_method(text):
    with pytest.raises(SpecError, match=r"\+name to add and -name to drop, separated by commas"):
        parse_methods(text)


# -- settings of the user's own --


def test_overrides_take_the_kind_of_the_papers_value(table1):
    pairs = [
        "local.epochs=2",
        "local.lr=1",
        "network.resnet8=cnn-small",
        "augmentation.horizontal_flip=false",
        "local.epochs=3",
    ]
    found = dict(typed_settings(read_settings(pairs), table1[0]))
    assert found == {
        "local.epochs": 3,
        "local.lr": 1.0,
        "network.resnet8": "cnn-small",
        "augmentation.horizontal_flip": False,
    }
    assert [type(found[name]) for name in ("local.epochs", "local.lr")] == [int, float]


@pytest.mark.parametrize("paper", registry.papers().values(), ids=lambda paper: paper.key)
def test_every_paper_can_be_tuned_on_samples_that_are_held_out(paper):
    pairs = ["evaluation.on=validation", "partition.validation_share=0.1"]
    assert dict(typed_settings(read_settings(pairs), paper)) == {
        "evaluation.on": "validation",
        "partition.validation_share": 0.1,
    }


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("local.epochs", "setting=value"),
        ("local.epochs=", "setting=value"),
        ("local.epohcs=2", "has no such setting; did you mean local.epochs"),
        ("local.epochs=2.5", "it must be a whole number"),
        ("local.lr=fast", "it must be a number"),
        ("augmentation.horizontal_flip=yes", "it must be true or false"),
        ("dlad.temprature=1", "fediod has no such setting; did you mean dlad.temperature"),
        ("fediod.temprature=1", "did you mean fediod.temperature"),
        *((f"{name}=1", "has no such setting") for name in ("dlad.fit", "dlad", "x.y")),
    ],
)
def test_an_override_that_cannot_be_meant_is_refused(table1, pair, message):
    with pytest.raises(SpecError, match=message):
        typed_settings(read_settings([pair]), table1[0])


def test_a_method_may_be_named_as_it_was_wherever_a_user_names_one(table1):
    paper, table = registry.find_table("league/mnist")
    assert typed_settings({"fedkd.multi_round": "true"}, paper) == (
        ("fedkd-gong.multi_round", True),
    )
    rows = table_rows(table1[1], Selection(drop=("fedkd",), add=("fedkd",)))
    assert (rows[-1].key, rows[-1].method, rows[-1].title) == ("fedkd", "fedkd-gong", "FedKD")
    assert wanted_values(table, table.rows, {"method": "fedkd,fedad"}) == {
        "method": ["fedkd-gong", "fedad"]
    }
    kept = table_rows(table, selected(requested(methods="-fedkd"), ["league/mnist"]))
    assert {row.key for row in table.rows} - {row.key for row in kept} == {"fedkd", "fedkd-online"}


PLUGIN = '''
from dataclasses import dataclass
from fedtables.federation.method import Method

@dataclass(frozen=True)
class Mine(Method):
    depth: int = 2
    """An integer."""
    rate: float = 1.0
    """A number."""
    careful: bool = True
    """A switch."""
    how: str = "gently"
    """A word."""

    def fit(self, federation):
        return federation.networks.initial()
'''


def test_fields_of_methods_that_are_not_on_the_card_may_be_set_too(table1, tmp_path):
    assert "dlad.temperature" not in {setting.name for setting in table1[0].settings}
    given = {"dlad.temperature": "1", "fedkd-gong.multi_round": True}
    assert typed_settings(given, table1[0]) == (
        ("dlad.temperature", 1.0),
        ("fedkd-gong.multi_round", True),
    )
    path = tmp_path / "my_own.py"
    path.write_text(PLUGIN)
    pairs = ["my-own.depth=5", "my-own.rate=2", "my-own.careful=false", "my-own.how=7"]
    with registry.used([path]):
        found = dict(typed_settings(read_settings(pairs), table1[0]))
    assert found == {
        "my-own.depth": 5,
        "my-own.rate": 2.0,
        "my-own.careful": False,
        "my-own.how": "7",
    }
    assert [type(value) for _, value in sorted(found.items())] == [bool, int, str, float]
    with pytest.raises(SpecError, match="has no such setting"):
        typed_settings(read_settings(["my-own.depth=5"]), table1[0])  # without the plug-in


@pytest.mark.parametrize("paper", registry.papers().values(), ids=lambda paper: paper.key)
def test_a_setting_of_a_method_has_the_kind_of_its_field(paper):
    """So that a value of --set is of one kind, whether the card or the method says which."""
    for setting in paper.every_setting:
        method, _, name = setting.name.partition(".")
        if method in registry.methods() and setting.paper != AS_CLASS:
            several = setting.paper.values() if isinstance(setting.paper, dict) else [setting.paper]
            kinds = {type(value) for value in several}
            of_method = dataclasses.fields(registry.find_method(method).load())
            fields = {field.name: field.default for field in of_method}
            assert kinds == {type(fields[name])}, setting.name


def test_the_files_of_a_selection_are_set_apart_by_protocol_and_overrides():
    changed = [Selection(overrides=(("local.epochs", epochs),)) for epochs in (1, 2)]
    assert Selection().variant == ""
    assert Selection(protocol="released").variant == "released"
    assert len({"", *(selection.variant for selection in changed)}) == 3
    assert replace(changed[0], protocol="released").variant == f"released.{changed[0].variant}"


def test_a_number_may_be_spelled_otherwise_than_in_the_table():
    table = registry.find_table("fediod/trial")[1]
    rows = [*table.rows, *table.offered]
    assert wanted_values(table, rows, {"epsilon": "10,inf"}) == {"epsilon": ["10.0", "inf"]}
    with pytest.raises(SpecError, match="no such value"):
        wanted_values(table, rows, {"epsilon": "11"})
