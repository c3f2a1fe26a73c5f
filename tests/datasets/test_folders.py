"""Folders of many files: their tables; all of them or none; a test split by a hash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedtables.datasets.folders import (
    all_of,
    beside,
    hashed,
    held_out,
    listed,
    places,
    read_table,
    unrepeated,
    whole,
)
from fedtables.datasets.source import DataError


def test_a_table_lacking_columns_or_rows_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")  # with the mark that some programs write
    assert read_table(path, ("a", "b")) == [{"a": "1", "b": "2"}]
    for text in ("a,c\n1,2\n", "a,b\n", "", "a,b,b\n1,2,3\n"):
        path.write_text(text)
        with pytest.raises(
            DataError, match=r"a\.csv is not a table with the columns a, b, each once\."
        ):
            read_table(path, ("a", "b"))
    with pytest.raises(DataError, match="not a readable table"):
        read_table(tmp_path / "absent.csv", ("a",))


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
    with pytest.raises(DataError, match=rf"a\.csv.* {message}"):
        read_table(path, ("name", "patient"))


@pytest.mark.parametrize("text", ["a,b,\n1,2,\n", "a,b,\n1,2\n", "a,b\n1,2,\n"])
def test_commas_at_the_ends_of_lines_are_no_fields(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    (row,) = read_table(tmp_path / "a.csv", ("a", "b"))
    assert (row["a"], row["b"]) == ("1", "2")


def test_a_table_that_names_a_sample_twice_is_refused(tmp_path):
    unrepeated(tmp_path / "a.csv", ["1", "2"])
    with pytest.raises(DataError, match=r"a\.csv names 1 2 times\."):
        unrepeated(tmp_path / "a.csv", ["1", "2", "1"])


def write(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_what_systems_leave_in_folders_is_passed_over(tmp_path):
    write(
        tmp_path, "b.png", "A.PNG", "._b.png", ".DS_Store", "Thumbs.db", "__MACOSX/b.png", "c.txt"
    )
    assert [path.name for path in listed(tmp_path)] == ["A.PNG", "b.png", "c.txt"]
    assert [path.name for path in listed(tmp_path, ".png")] == ["A.PNG", "b.png"]
    assert listed(tmp_path / "nowhere") == []


def test_a_set_lies_in_the_home_or_one_folder_deeper_in_any_spelling(tmp_path):
    write(tmp_path, "Set/a", "other/set/a", "other/deep/set/a", ".hidden/set/a", "__MACOSX/set/a")
    assert places(tmp_path, "set") == [tmp_path / "Set", tmp_path / "other" / "set"]
    assert places(tmp_path / "nowhere", "set") == []


def test_folders_of_one_set_lie_beside_each_other_or_elsewhere(tmp_path):
    write(tmp_path, "one/Train/a", "one/val/a", "two/train/a", "three/test/a")
    train = tmp_path / "one" / "Train"
    assert beside(tmp_path, train, "train") == train
    assert beside(tmp_path, train, "Val") == tmp_path / "one" / "val"
    assert beside(tmp_path, train, "test") == tmp_path / "three" / "test"
    assert beside(tmp_path, train, "other") == tmp_path / "one" / "other"


def test_all_or_none_are_there_and_some_are_refused(tmp_path):
    wanted = [[tmp_path / "a"], [tmp_path / "b.txt", tmp_path / "b.text"]]
    assert all_of(wanted) == []
    assert all_of([]) == []
    write(tmp_path, "B.TEXT")
    with pytest.raises(DataError, match=r"1 of 2 files are missing, the first is .*a\. Complete "):
        all_of(wanted)
    write(tmp_path, "a")
    assert all_of(wanted) == [tmp_path / "a", tmp_path / "B.TEXT"]


def test_a_link_to_nothing_is_a_missing_file_and_no_absent_set(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "gone")
    with pytest.raises(DataError, match=r"1 of 1 files are missing, .*a \(a link to nothing\)"):
        all_of([[tmp_path / "a"]])


def test_a_folder_that_is_a_link_to_nothing_is_no_absent_set(tmp_path):
    (tmp_path / "one").symlink_to(tmp_path / "gone")
    with pytest.raises(DataError, match=r"one is a link to nothing\. Complete it"):
        whole(tmp_path, ["one"], both)


def both(folder):
    return all_of([[folder / name] for name in "ab"])


def test_the_first_folder_with_all_of_a_set_is_taken_and_a_part_refused(tmp_path):
    def found():
        return whole(tmp_path, ("one", "two"), both)

    (tmp_path / "one").mkdir()
    write(tmp_path, "one/.DS_Store")
    assert found() is None
    write(tmp_path, "one/a")
    with pytest.raises(DataError, match=r"1 of 2 files are missing, .*one/b"):
        found()
    write(tmp_path, "copy/two/a", "copy/two/b")
    assert found() == [tmp_path / "copy" / "two" / name for name in "ab"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("one/readme", "one has none of the files of the set where they should be"),
        ("two.tar.gz", r"two\.tar\.gz is not unpacked"),
        ("deeper/One.ZIP", r"One\.ZIP is not unpacked"),
    ],
)
def test_a_set_of_unknown_names_or_that_is_packed_is_refused(tmp_path, name, message):
    write(tmp_path, name)
    with pytest.raises(DataError, match=rf"{message}"):
        whole(tmp_path, ("one", "two"), both)


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
