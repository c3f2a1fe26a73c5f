"""Folders of many files: their tables; all of them or none; a test split by a hash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.folders import all_there, hashed, held_out, read_table, unrepeated
from datasets.source import DataError


def test_a_table_lacking_columns_or_rows_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")  # with the mark that some programs write
    assert read_table(path, ("a", "b"), "Get it.") == [{"a": "1", "b": "2"}]
    for text in ("a,c\n1,2\n", "a,b\n", "", "a,b,b\n1,2,3\n"):
        path.write_text(text)
        with pytest.raises(
            DataError, match=r"a\.csv is not a table with the columns a, b, each once\. Get it\."
        ):
            read_table(path, ("a", "b"), "Get it.")
    with pytest.raises(DataError, match="not a readable table"):
        read_table(tmp_path / "absent.csv", ("a",), "Get it.")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("film,12,AP\nfilm2,1", "line 3 has fewer fields than the header"),  # 13 cut to 1
        ("film,12,AP\nfilm2,1\nfilm3,7,PA\n", "line 3 has fewer fields"),
        ("film,12,AP\nfilm, 2,1,AP\n", "line 3 has more fields than the header"),
        ('film,12,AP\n"film2,13,AP\nfilm3,7,PA\n', "not a readable table"),  # swallows the rest
    ],
)
def test_a_table_whose_rows_have_other_fields_than_its_header_is_refused(tmp_path, rows, message):
    path = tmp_path / "a.csv"
    path.write_text(f"name,patient,view\n{rows}")
    with pytest.raises(DataError, match=rf"a\.csv.* {message}.* Get it\."):
        read_table(path, ("name", "patient"), "Get it.")


@pytest.mark.parametrize("text", ["a,b,\n1,2,\n", "a,b,\n1,2\n", "a,b\n1,2,\n"])
def test_commas_at_the_ends_of_lines_are_no_fields(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    (row,) = read_table(tmp_path / "a.csv", ("a", "b"), "Get it.")
    assert (row["a"], row["b"]) == ("1", "2")


def test_a_table_that_names_a_sample_twice_is_refused(tmp_path):
    unrepeated(tmp_path / "a.csv", ["1", "2"], "Get it.")
    with pytest.raises(DataError, match=r"a\.csv names 1 2 times\. Get it\."):
        unrepeated(tmp_path / "a.csv", ["1", "2", "1"], "Get it.")


def test_all_or_none_are_there_and_some_are_refused(tmp_path):
    paths = [tmp_path / name for name in "ab"]
    assert not all_there("A set", paths, "Get it.")
    assert not all_there("A set", [], "Get it.")
    paths[1].touch()
    with pytest.raises(
        DataError, match=r"A set: 1 of 2 files are missing, the first is .*a\. Complete .* Get it\."
    ):
        all_there("A set", paths, "Get it.")
    paths[0].touch()
    assert all_there("A set", paths, "Get it.")


def test_the_order_of_names_is_that_of_their_hashes():
    # SHA-256 of a begins with ca97, of b with 3e23, of c with 2e7d.
    assert hashed("abcab") == ["c", "b", "a"]
    assert held_out("abc", 1 / 3) == {"c"}
    assert held_out("abc", 0.1) == set()


@given(st.lists(st.text(), max_size=30), st.floats(0, 1))
def test_as_many_names_are_held_out_as_the_share_says_in_any_order(names, share):
    held = held_out(names, share)
    assert held <= set(names)
    assert len(held) == round(share * len(set(names)))
    assert held == held_out(names[::-1], share)
