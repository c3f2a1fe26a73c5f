"""Things are found by their place, unknown names offer near ones, duplicates are errors."""

from __future__ import annotations

import pytest

from benchmarks.tables import registry
from benchmarks.tables.spec import SpecError


def test_all_published_tables_are_listed_with_or_without_a_spec():
    tables = registry.all_tables()
    assert sum(not name.split("/")[1].startswith("figure") for name in tables) == 25
    assert tables["dlad/table2"] is not None
    assert tables["fediod/table2"] is None


def test_an_unknown_table_offers_near_ones():
    with pytest.raises(SpecError, match=r"did you mean .*dlad/table2"):
        registry.find_table("dlad/tabel2")


def test_a_table_without_a_spec_says_what_there_is():
    with pytest.raises(SpecError, match=r"not yet reproducible.*show fediod/table2"):
        registry.find_table("fediod/table2")


def test_an_unknown_method_offers_near_ones():
    with pytest.raises(SpecError, match=r"did you mean .*standalone"):
        registry.find_method("standalon")


def test_a_plugin_may_not_take_a_known_name(tmp_path):
    path = tmp_path / "dlad.py"
    path.write_text("")
    with pytest.raises(SpecError, match="two methods are called 'dlad'"):
        registry.methods([str(path)])


def test_a_missing_plugin_is_named():
    with pytest.raises(SpecError, match=r"nowhere\.py: there is no such file"):
        registry.methods(["nowhere.py"])


def test_a_plugin_without_a_method_is_refused(tmp_path):
    path = tmp_path / "empty.py"
    path.write_text("x = 1\n")
    with pytest.raises(SpecError, match="exactly one subclass of Method, it defines 0"):
        registry.find_method("empty", [str(path)]).load()


def test_a_plugin_that_does_not_import_says_why(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("import nowhere_to_be_found\n")
    with pytest.raises(SpecError, match=r"cannot be imported.*nowhere_to_be_found"):
        registry.find_method("broken", [str(path)]).load()
