"""Readers of options take texts and values, and what they have made themselves."""

import numpy as np
import pytest

from fedtables.benchmarks.tables.readers import read_only, read_seeds, read_settings, several


def test_readers_take_what_they_have_made():
    assert read_seeds(read_seeds("1,2")) == (1, 2)
    assert read_only(read_only(["a=1", "a=2"])) == {"a": ("1", "2")}


def test_one_value_stands_for_a_list_of_it():
    assert several("a") == ["a"]
    assert several(None) == []
    assert read_seeds(3) == (3,)
    assert read_only({"alpha": np.int64(1), "row": ["a", "b,c"], "dp": True}) == {
        "alpha": ("1",),
        "row": ("a", "b,c"),
        "dp": ("true",),
    }


def test_settings_within_settings_have_names_with_dots():
    assert read_settings({"local": {"epochs": 2}, "fedsa.lr": 0.1}) == {
        "local.epochs": 2,
        "fedsa.lr": 0.1,
    }
    with pytest.raises(TypeError):
        read_settings({"local": {"epochs": [2]}})
