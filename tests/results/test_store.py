"""The store: tables summed up over seeds, and a cell cache that trusts only itself."""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedtables.reports.comparing.rule import Difference
from fedtables.reports.comparing.summaries import write_differences
from fedtables.results.files import ResultsError
from fedtables.results.frame import read_records
from fedtables.results.published import PUBLISHED
from fedtables.results.record import FAILED, Measurement
from fedtables.results.store import (
    CSV_COLUMNS,
    CellCache,
    TableFiles,
    format_value,
    quoted,
    read_csv,
    records_of,
    summarise,
    unquoted,
    write_csv,
)
from tests.records import made_record


def record(seed=0, value=0.5, row="global-dlad", metric="accuracy", **changes):
    words = {"table": "dlad/table2", "column": "dataset=mnist distribution=iid", "profile": "cpu"}
    measured = {"seeds": {"partition": seed}, "measurements": (Measurement(metric, value),)}
    keys = {"row": row, "seed": seed, "cell": f"ce11{seed}", "code": "c0de"}
    return made_record(**{**words, **measured, **keys, **changes})


def summary(records):
    """The lines of the records' CSV, one by one."""
    return records_of(summarise(records))


def test_a_summary_holds_mean_sample_deviation_and_count_over_seeds():
    [line] = summary([record(0, 0.2), record(1, 0.4), record(2, 0.9)])
    assert float(line["value"]) == pytest.approx(0.5)
    assert float(line["std"]) == pytest.approx(0.13**0.5)  # (0.09 + 0.01 + 0.16) / 2
    assert (line["n"], line["seeds"], line["status"]) == (3, "0 1 2", "ok")


def test_the_printed_number_stands_beside_the_measured_one():
    [line] = summary([record(value=0.95, row="client-resnet")])
    assert (line["published"], line["difference"]) == (0.9523, -0.0023)


def test_a_printed_dash_gives_no_difference():
    [line] = summary([record(row="client-densenet")])
    assert (line["value"], line["published"], line["difference"]) == (0.5, None, None)


def test_a_cell_that_failed_for_one_seed_is_listed_with_its_reason_and_no_value():
    lines = summary(
        [record(0), record(1, status=FAILED, reason="DivergedError: nan", measurements=())]
    )
    assert [(line["status"], line["value"], line["n"], line["seeds"]) for line in lines] == [
        ("failed: DivergedError: nan", None, 0, "0 1")
    ]


def classes(value, seed=0):
    return record(
        seed, value, row="niid1", column="client=5n+2", metric="classes", table="dlad/table1"
    )


def test_a_text_that_equals_the_printed_one_is_the_same():
    [line] = summary([classes("2,3", 0), classes("2,3", 1)])
    assert (line["value"], line["std"], line["n"], line["published"], line["difference"]) == (
        "2,3",
        None,
        2,
        "2,3",
        "same",
    )


def test_a_mean_says_of_how_many_values_it_is_and_nothing_where_nobody_counted():
    counted = Measurement("accuracy", 0.5, defined=112, of=610)
    lines = summary([record(measurements=(counted,))])
    assert [(line["defined"], line["of"]) for line in lines] == [(112, 610)]
    assert [(line["defined"], line["of"]) for line in summary([record()])] == [(None, None)]


def test_texts_that_differ_between_seeds_are_all_shown():
    [line] = summary([classes("2,3", 0), classes("2,4", 1)])
    assert (line["value"], line["difference"]) == ("2,3 | 2,4", "differs")


def test_a_summary_states_privacy_bytes_and_data():
    [line] = summary(
        [
            record(
                epsilon=3.1,
                delta=1e-5,
                bytes_up=12,
                bytes_down=7,
                data={"used": "digits", "origin": "surrogate"},
            )
        ]
    )
    assert [
        line[name] for name in ("epsilon", "delta", "bytes_up", "bytes_down", "data", "origin")
    ] == [3.1, 1e-05, 12, 7, "digits", "surrogate"]


def test_the_first_columns_are_those_of_the_published_tables():
    for path in PUBLISHED.glob("*/table*.csv"):
        with path.open(newline="") as stream:
            header = next(csv.reader(stream))
        assert header[:6] == list(CSV_COLUMNS[:6]), path


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.1, "0.1"), (3.0, "3.0"), ("2,3", "2,3"), (1 / 3, "0.3333333333333333")],
)
def test_values_are_written_shortest_and_exact(value, text):
    assert format_value(value) == text


def test_a_csv_reads_back_as_it_was_written(tmp_path):
    lines = summary(
        [record(), record(row='odd, "row"', status=FAILED, reason="line\nbreak", measurements=())]
    )
    write_csv(tmp_path / "t.csv", lines)
    assert records_of(read_csv(tmp_path / "t.csv")) == lines


def test_a_missing_csv_is_refused_with_advice(tmp_path):
    with pytest.raises(ResultsError, match="Regenerate it"):
        read_csv(tmp_path / "t.csv")


def test_the_cache_returns_a_finished_record(tmp_path):
    finished = record(
        measurements=(Measurement("accuracy", 0.5, "epoch=1"),),
        epsilon=1.5,
        bytes_by_kind={"up/logits": 3},
    )
    CellCache(tmp_path).put(finished)
    assert CellCache(tmp_path).get(finished.cell, "c0de") == (finished, "")


def test_the_cache_refuses_what_other_code_computed(tmp_path):
    CellCache(tmp_path).put(record())
    assert CellCache(tmp_path).get("ce110", "0ther") == (None, "computed by other code or packages")


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-10], lambda raw: raw.replace(b"0.5", b"0.9"), lambda raw: b""]
)
def test_the_cache_reports_a_damaged_entry(tmp_path, damage):
    CellCache(tmp_path).put(record())
    [path] = tmp_path.rglob("*.json")
    path.write_bytes(damage(path.read_bytes()))
    assert CellCache(tmp_path).get("ce110", "c0de") == (None, f"damaged cache entry {path}")


def test_the_cache_lives_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDTABLES_CACHE", str(tmp_path / "here"))
    CellCache().put(record())
    assert len(list((tmp_path / "here").rglob("*.json"))) == 1


def test_the_files_of_a_table_are_named_by_profile_paper_and_table(tmp_path):
    assert (
        TableFiles(tmp_path, "cpu", "dlad/table2").path("csv")
        == tmp_path / "cpu" / "dlad" / "table2.csv"
    )


def test_records_beside_a_table_are_a_line_each(tmp_path):
    files = TableFiles(tmp_path, "cpu", "dlad/table2")
    files.write_records([record(0), record(1)])
    lines = files.path("records.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1]
    assert read_records(files.path("records.jsonl")) == [record(0), record(1)]


def test_a_writable_folder_passes_the_check_and_keeps_no_trace(tmp_path):
    TableFiles(tmp_path, "cpu", "dlad/table2").check_writable()
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_an_unwritable_folder_is_refused_before_any_work(tmp_path):
    (tmp_path / "cpu").write_text("a file, not a folder")
    with pytest.raises(ResultsError, match=r"[Cc]hoose another folder"):
        TableFiles(tmp_path, "cpu", "dlad/table2").check_writable()


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+mimic", "'+mimic"),
        ("-row", "'-row"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("'=1", "''=1"),
        ("'plain", "'plain"),
        ("-1.5", "-1.5"),
        ("+5", "+5"),
        ("-inf", "-inf"),
        ("-1_0", "'-1_0"),
        ("", ""),
        ("row", "row"),
    ],
)
def test_only_what_would_be_run_gets_a_quote(cell, written):
    assert quoted(cell) == written
    assert unquoted(written) == cell


@given(st.text(alphabet="=+-@\t\r'a1. \n"))
def test_every_cell_comes_back(cell):
    assert unquoted(quoted(cell)) == cell
    assert not quoted(cell).startswith(("=", "@", "\t", "\r"))


def test_a_table_with_titles_that_would_be_run_is_read_back(tmp_path):
    columns = CSV_COLUMNS[:6]
    line = dict(zip(columns, ("=cmd|x", "@key=-1", "accuracy", "-1.5", "", "1"), strict=True))
    write_csv(tmp_path / "t.csv", [line], columns)
    with (tmp_path / "t.csv").open(newline="") as stream:
        [raw] = csv.DictReader(stream)
    assert (raw["row"], raw["column"], raw["value"]) == ("'=cmd|x", "'@key=-1", "-1.5")
    assert read_csv(tmp_path / "t.csv").to_dict("records") == [
        line | {"value": -1.5, "std": None, "n": 1}
    ]


def test_a_comparison_runs_nothing_either(tmp_path):
    cell = Difference(("=t", "+r", "", "m"), "new", "", "", "-why")
    write_differences(tmp_path / "t.csv", [cell])
    line = (tmp_path / "t.csv").read_text().splitlines()[1]
    assert line == "'=t,'+r,,m,new,,,,'-why"
