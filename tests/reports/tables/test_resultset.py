"""Reading result sets: which files belong, and every kind of damage."""

import pytest

from fedtables.reports.tables.resultset import read_pair, read_set
from fedtables.results.files import ResultsError
from fedtables.results.store import write_csv
from tests.reports.comparing.sets import line as one_seed


def line(**changes):
    return one_seed(**{"std": "0.01", "n": "2", "seeds": "0 1", **changes})


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "set" / "paper" / "t.csv"
    write_csv(path, [line(), line(row="b")])
    return path


def test_a_folder_holds_tables_and_other_things(table):
    root = table.parent.parent
    write_csv(table.with_suffix(".claims.csv"), [{"id": "x"}], ["id"])
    for name in ("attack", "partitions", "published"):
        write_csv(root / name / "x.csv", [{"image": "1"}], ["image"])
    (root / "pinned.csv").write_text("paper/u,since its data are no longer there\n")
    assert read_set(root).cells.keys() == {("paper/t", row, "n=1", "accuracy") for row in "ab"}
    assert {key[0] for key in read_set(table).cells} == {"t"}


def test_two_files_are_of_one_table_whatever_they_are_called(table, tmp_path):
    other = tmp_path / "now.csv"
    other.write_text(table.read_text())
    base, new = read_pair(table, other)
    assert base.cells.keys() == new.cells.keys()
    with pytest.raises(ResultsError, match="a folder and a file"):
        read_pair(table, tmp_path)
    with pytest.raises(ResultsError, match="nowhere does not exist"):
        read_pair(table, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ResultsError, match="holds no table"):
        read_pair(tmp_path / "empty", tmp_path / "empty")


def counted(text, counts):
    """The text of a CSV whose first line is a mean of so many values."""
    head, first, *others = text.splitlines(keepends=True)
    return "".join([head, first.rstrip("\n").removesuffix(",") + f"{counts}\n", *others])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: "", "not a table of this suite: no column row, column"),
        (lambda text: text.splitlines()[0] + "\n", "has no cells"),
        (lambda text: text.replace("bytes_up", "octets"), "no column bytes_up"),
        (lambda text: text[: text.index("\nb,") + 12], "line 3: 3 fields under 27 headings"),
        (lambda text: text.rstrip("\n"), "ends within its last line"),
        (lambda text: text.replace("0.9,", "0.9x,", 1), "line 2: value '0.9x' is not a number"),
        (lambda text: text.replace("0.01,", "?,", 1), "line 2: std '\\?' is not a number"),
        (
            lambda text: text.replace("0.01,2", "0.01,1", 1),
            "line 2: n '1' is not a whole number from 2",
        ),
        (
            lambda text: text.replace("ok,10", "ok,1e1", 1),
            "line 2: bytes_up '1e1' is not a whole number",
        ),
        (lambda text: text.replace("ok,10", "o,10", 1), "line 2: status 'o'"),
        (lambda text: text.replace("accuracy", "", 1), "line 2: no metric"),
        (lambda text: text.replace("\nb,", "\na,"), "line 3: the cell has a line already"),
        (lambda text: counted(text, "7,6"), "line 2: a mean of 7 of 6 values"),
        (lambda text: counted(text, ",6"), "line 2: defined '' is not a whole number from 0"),
        (lambda text: counted(text, "0,0"), "line 2: of '0' is not a whole number from 1"),
        (lambda text: text.replace("a,n=1", '"a,n=1', 1), "cannot read"),
        (lambda text: text + "\n", "line 4: 0 fields"),
    ],
)
def test_a_damaged_file_is_named(table, damage, message):
    table.write_text(damage(table.read_text()))
    with pytest.raises(ResultsError, match=message) as error:
        read_set(table.parent)
    assert "t.csv" in str(error.value)


def test_bytes_that_are_no_text_are_named(table):
    table.write_bytes(b"\xff\xfe" + table.read_bytes())
    with pytest.raises(ResultsError, match=r"cannot read .*t\.csv"):
        read_set(table)


@pytest.mark.parametrize("text", ['{"table": "p/t"', "[]\n", '{"table": "p/t"}\n', "\n"])
def test_damaged_records_are_named(table, text):
    table.with_suffix(".records.jsonl").write_text(text)
    with pytest.raises(ResultsError, match=r"t\.records\.jsonl line 1 is not a record"):
        read_set(table)


@pytest.mark.parametrize(("metric", "value"), [("classes", "0-4 | 5"), ("property", "yes")])
def test_texts_and_failed_cells_are_read(table, metric, value):
    failed = line(row="c", metric="", value="", std="", status="failed: DivergedError")
    write_csv(table, [line(metric=metric, value=value, std=""), failed])
    assert [cell["status"] for cell in read_set(table).cells.values()] == [
        "ok",
        "failed: DivergedError",
    ]
