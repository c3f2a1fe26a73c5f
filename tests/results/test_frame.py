"""Records as frames: tidy lines, their means over seeds, and what stands in print beside them."""

import math

import pytest

from fedtables.benchmarks.tables import registry
from fedtables.results.files import ResultsError
from fedtables.results.frame import COLUMNS, SUMMARY, load, over_seeds, tidy, with_keys
from fedtables.results.published import format_column
from fedtables.results.record import FAILED, Measurement
from fedtables.results.sourcecode import ROOT
from fedtables.results.store import TableFiles, read_csv
from tests.records import made_record

COLUMN = "dataset=mnist distribution=iid"


def record(row="global-avg", seed=0, *measurements, column=COLUMN, **changes):
    known = {"row": row, "column": column, "seed": seed, "measurements": measurements}
    data = {"used": "digits", "origin": "surrogate"}
    cell = f"{row}{column}{seed}"
    return made_record(**{"table": "dlad/table2", "cell": cell, "data": data, **known, **changes})


def accuracy(value, detail=""):
    return Measurement("accuracy", value, detail)


FOUR = [
    record("global-avg", 0, accuracy(0.5), bytes_up=10),
    record("global-avg", 1, accuracy(0.75), bytes_up=10),
    record("client-resnet", 0, accuracy(0.25), epsilon=2.0, delta=1e-5),
    record("client-resnet", 1, accuracy(0.75), epsilon=3.0, delta=1e-5),
]
"""Two cells, two seeds each."""


def test_a_frame_has_a_line_per_cell_metric_and_seed_with_the_published_value():
    lines = tidy(FOUR)
    assert list(lines.columns) == list(COLUMNS)
    assert lines[["row", "seed", "value"]].values.tolist() == [
        ["global-avg", 0, 0.5],
        ["global-avg", 1, 0.75],
        ["client-resnet", 0, 0.25],
        ["client-resnet", 1, 0.75],
    ]
    first = lines.iloc[0]
    assert (first["paper"], first["table"], first["unit"]) == ("dlad", "table2", "fraction")
    assert (first["published"], first["difference"]) == (0.9806, -0.4806)
    assert (first["bytes_up"], first["data"], first["origin"]) == (10, "digits", "surrogate")
    assert lines["published"].tolist() == [0.9806, 0.9806, 0.9523, 0.9523]
    assert lines["epsilon"].tolist()[2:] == [2.0, 3.0]
    assert lines["epsilon"].isna().tolist() == [True, True, False, False]


def test_means_over_seeds_are_those_by_hand():
    lines = over_seeds(tidy(FOUR))
    assert list(lines.columns) == list(SUMMARY)
    assert lines[["row", "seeds", "n", "value"]].values.tolist() == [
        ["global-avg", "0 1", 2, 0.625],
        ["client-resnet", "0 1", 2, 0.5],
    ]
    assert lines["std"].tolist() == pytest.approx([math.sqrt(0.03125), math.sqrt(0.125)])
    assert lines["difference"].tolist() == [-0.3556, -0.4523]
    assert lines["epsilon"].tolist()[1] == 3.0  # the largest
    assert tidy(FOUR).groupby("row", sort=False)["value"].mean().tolist() == [0.625, 0.5]


def test_one_seed_has_no_spread():
    [std] = over_seeds(tidy(FOUR[:1]))["std"]
    assert math.isnan(std)


def test_infinite_values_have_a_mean_and_no_spread():
    for values in ([math.inf, math.inf], [1.0, math.inf]):
        [line] = over_seeds(tidy(FOUR[:2]).assign(value=values)).to_dict("records")
        assert (line["value"], line["n"]) == (math.inf, 2)
        assert math.isnan(line["std"])
    [line] = over_seeds(tidy(FOUR[:2]).assign(value=[math.inf, -math.inf])).to_dict("records")
    assert math.isnan(line["value"])


def test_a_failed_cell_is_one_line_with_its_reason_and_no_value():
    lines = tidy([*FOUR[:2], record(seed=2, status=FAILED, reason="DivergedError: nan")])
    failed = lines.iloc[2]
    assert (failed["status"], failed["reason"], failed["metric"]) == (
        FAILED,
        "DivergedError: nan",
        "",
    )
    assert math.isnan(failed["value"])
    [line] = over_seeds(lines).to_dict("records")
    assert (line["status"], line["n"], line["seeds"]) == (FAILED, 0, "0 1 2")
    assert math.isnan(line["value"])


def test_what_only_some_seeds_measure_is_over_these():
    lines = tidy(
        [
            record("a", 0, accuracy(0.25, "epoch=1")),
            record("a", 1, accuracy(0.5, "epoch=1"), accuracy(1.0, "epoch=2")),
        ]
    )
    assert over_seeds(lines)[["detail", "n", "value"]].values.tolist() == [
        ["epoch=1", 2, 0.375],
        ["epoch=2", 1, 1.0],
    ]
    counts = over_seeds(lines)[["defined", "of"]].values.tolist()
    assert math.isnan(counts[0][0])  # nobody counted, and no seed lacks it
    assert counts[1] == [1, 2]


def test_counts_are_added_up_over_seeds_and_one_without_a_number_has_none_that_is_defined():
    def distance(value, defined, of):
        return Measurement("hd95", value, defined=defined, of=of)

    lines = tidy(
        [
            record("a", 0, distance(3.0, 112, 610)),
            record("a", 1, distance(5.0, 610, 610)),
            record("a", 2, distance(math.nan, 0, 610)),
            record("b", 0, distance(3.0, 610, 610)),
            record("b", 1),
        ]
    )
    assert lines[["defined", "of"]].iloc[0].tolist() == [112, 610]
    summary = over_seeds(lines)
    assert summary[["value", "n", "defined", "of"]].values.tolist() == [
        [4.0, 2, 722, 1830],
        [3.0, 1, 610, 1220],
    ]


def test_texts_stand_apart_from_numbers():
    classes = Measurement("classes", "0-9")
    fields = {"table": "dlad/table1", "column": "client=5n+1"}
    [line] = tidy([record("iid", 0, classes, **fields)]).to_dict("records")
    assert (line["text"], line["published_text"]) == ("0-9", "0-9")
    assert math.isnan(line["value"])
    both = tidy([record("iid", n, Measurement("classes", t), **fields) for n, t in enumerate("ab")])
    assert over_seeds(both)["text"].tolist() == ["a | b"]


def test_keys_of_columns_become_columns_and_none_is_overwritten():
    lines = tidy([record("a", 0, accuracy(0.5, "epoch=3"), column="dp=yes epsilon=3.5")])
    lines = with_keys(lines)
    assert lines[["dp", "epoch", "column.epsilon"]].values.tolist() == [["yes", "3", "3.5"]]
    assert lines["epsilon"].isna().all()


def test_a_folder_is_read_at_any_depth_with_the_variant_of_each_file(tmp_path):
    TableFiles(tmp_path / "deep", "smoke", "dlad/table2").write_records(FOUR)
    released = [record("global-avg", 0, accuracy(0.5), protocol="released")]
    TableFiles(tmp_path, "cpu", "dlad/table2", "released").write_records(released)
    lines = load(tmp_path)
    assert lines[["file", "variant"]].drop_duplicates().values.tolist() == [
        ["cpu/dlad/table2.released.records.jsonl", "released"],
        ["deep/smoke/dlad/table2.records.jsonl", ""],
    ]
    assert len(lines) == 5
    assert len(over_seeds(lines)) == 3  # the same cell of two files is two


def test_a_damaged_line_is_named(tmp_path):
    files = TableFiles(tmp_path, "smoke", "dlad/table2")
    files.write_records(FOUR)
    path = files.path("records.jsonl")
    path.write_text(path.read_text() + '{"table": "dlad/table2"\n')
    with pytest.raises(ResultsError, match=r"table2\.records\.jsonl line 5 is not a record"):
        load(tmp_path)


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(ResultsError, match="holds no records"):
        load(tmp_path)


@pytest.mark.parametrize("folder", ["cpu", "reference"])
def test_the_frame_has_the_numbers_of_every_committed_table(folder):
    """Means over seeds are the CSVs' values, to the last digit."""
    root = ROOT / "results" / folder
    lines = over_seeds(load(root))
    files = lines["file"].unique()
    assert len(files) > 5
    for file in files:
        table = read_csv(root / file.replace(".records.jsonl", ".csv"))
        # What a figure's CSV has beyond its records is of all rows together.
        table = table[~table["column"].str.endswith("at=highest-common")]
        # And what is computed of other columns.
        first = lines[lines["file"] == file].iloc[0]
        spec = registry.all_tables().get(f"{first['paper']}/{first['table']}")
        derived = [format_column(dict(rule.column)) for rule in spec.derived] if spec else []
        table = table[~table["column"].isin(derived)]
        ours = lines[lines["file"] == file]
        ours = ours.assign(column=(ours["column"] + " " + ours["detail"]).str.strip())
        assert ours[["row", "column", "metric"]].values.tolist() == (
            table[["row", "column", "metric"]].values.tolist()
        )
        for name, words in (("value", "text"), ("published", "published_text")):
            both = ours[words].where(ours[words].notna(), ours[name])
            assert both.dropna().tolist() == table[name].dropna().tolist()
        for name in ("std", "difference"):
            numbers = table[name].replace({"same": None, "differs": None})
            assert ours[name].dropna().tolist() == numbers.dropna().tolist()
        assert ours["n"].tolist() == table["n"].tolist()
