"""Kinds whose picture is drawn from the arrays that cells leave."""

from dataclasses import replace

import numpy as np
import pytest

from fedtables.reports.measures.kind import arrays_of, find_kind, with_arrays
from fedtables.reports.tables.table import ShownTable
from fedtables.results.arrays import pack
from fedtables.results.record import FAILED
from tests.reports.drawn import layout, table_of, visible
from tests.reports.written_results import COLUMNS, record

SMALL = np.zeros((1, 2, 2))
LEFT = {
    "contours": {"image/x": np.zeros((3, 2, 2)), "target/x": SMALL[0], "predicted/x": SMALL[0]},
    "synthesis": {"image/x": SMALL, "target/x": SMALL[0], "made/x": SMALL},
    "segmentations": {"images": SMALL[None], "target": SMALL + 255, "predicted": SMALL},
    "attention": {
        "images": SMALL[None],
        "finding": np.array([1]),
        "local": np.full((1, 3, 2, 2), [[0, 255], [0, 0]]),
        **dict.fromkeys(("consensus", "diversity", "central"), SMALL),
    },
}
"""What a cell leaves, by its measure."""
CONFIG = {"data.name": "nih", "findings.nih": "edema+mass"}


def left(measure, row="a", seed=0, bright=0, column=COLUMNS[0]):
    arrays = {
        name: (array + bright * (name.partition("/")[0] in ("image", "images"))).astype(np.uint8)
        for name, array in LEFT[measure].items()
    }
    data = {"used": "scenes"}
    return record(row, column, 0.5, seed, arrays=pack(arrays), config=CONFIG, data=data)


def shown(*records, columns=COLUMNS):
    return ShownTable(layout(columns), table_of([]), records)


def drawing(drawn, measure, table, path):
    find_kind(measure).draw(table, path / "p.png")
    return visible(drawn[-1])


def test_arrays_are_those_of_the_lowest_seed_and_what_a_row_makes_is_under_its_key():
    records = [left("contours", "a", 2, 9), left("contours", "a", 1), left("contours", "b", 1)]
    failed = replace(left("contours", "a"), status=FAILED, arrays="")
    of = with_arrays([failed, *records])
    assert [(record.row, record.seed) for record in of] == [("a", 1), ("b", 1)]
    found = arrays_of(of, "predicted")
    assert found.keys() == {"image", "target", "a", "b"}
    assert all(list(places) == ["x"] for places in found.values())


@pytest.mark.parametrize("measure", [*LEFT, "error-maps", "classes"])
def test_without_arrays_nothing_is_said_or_drawn(measure, drawn, tmp_path):
    table, kind = shown(record("a", COLUMNS[0], 0.5)), find_kind(measure)
    kind.draw(table, tmp_path / "p.png")
    assert (kind.remarks(table), drawn) == ([], [])


def test_the_seed_of_the_picture_is_told_where_there_are_several():
    measure, end = "segmentations", ". The picture is of seed 1."
    kind = find_kind(measure)
    (one,) = kind.remarks(shown(left(measure, seed=2)))
    assert kind.remarks(shown(left(measure, seed=2), left(measure, seed=1))) == [one + end]


@pytest.mark.parametrize(
    ("measure", "titles"),
    [
        ("contours", ["input", "Row A", "Bound †", "ground truth"]),
        ("synthesis", ["label map", "Row A", "Bound †", "real"]),
        ("segmentations", ["input", "ground truth", "Row A", "Bound †"]),
        ("attention", ["film", "local models", "Row A", "Bound †"]),
    ],
)
def test_a_line_has_an_image_for_each_row_that_made_one(measure, titles, drawn, tmp_path):
    axes = drawing(drawn, measure, shown(left(measure, "top"), left(measure)), tmp_path)
    assert [axis.get_title() for axis in axes] == titles


def test_the_legend_of_segmentations_names_the_classes_that_occur(drawn, tmp_path):
    drawing(drawn, "segmentations", shown(left("segmentations")), tmp_path)
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["wall", "not labelled"]


def test_clients_have_their_colours_above_one_half_of_their_attention(drawn, tmp_path):
    film, local, _ = drawing(drawn, "attention", shown(left("attention")), tmp_path)
    assert film.get_ylabel() == "mass"
    tints = local.images[0].get_array()[0].tolist()
    assert tints[0] == pytest.approx([0, 0, 0])
    assert tints[1] == pytest.approx([0.15] * 3)  # red, green and blue together


def test_errors_are_beside_what_was_made_on_one_scale_with_their_mean_below(drawn, tmp_path):
    columns = ("test=b modality=t1", "test=i modality=t1")

    def made(row, column, value):
        kinds = {"image": 0.5, "target": 1.0, "predicted": value}
        arrays = {f"{k}/b": np.full((2, 2), v, np.float32) for k, v in kinds.items()}
        return record(row, column, 0.5, arrays=pack(arrays))

    records = [made("a", columns[0], 0.75), made("a", columns[1], 1.0)]
    *axes, bar = drawing(drawn, "error-maps", shown(*records, columns=columns), tmp_path)
    assert [axis.get_title() for axis in axes[:5]] == ["truth", "input", "error", "Row A", "error"]
    assert [axes[0].get_ylabel(), axes[5].get_ylabel()] == ["b", "i"]
    notes = [axis.get_xlabel() for axis in axes]
    assert [notes[2], notes[4], notes[9]] == ["0.5000", "0.2500", "0.0000"]
    assert bar.get_ylim() == (0, 0.5)


def test_clients_hold_bubbles_of_their_samples(drawn, tmp_path):
    counts = pack({"counts": np.array([[4, 0], [1, 3]])})
    table = shown(record("a", COLUMNS[0], 1.0, arrays=counts), record("b", COLUMNS[0], 1.0))
    (axis,) = drawing(drawn, "classes", table, tmp_path)
    assert axis.get_title() == "Row A"
    (bubbles,) = axis.collections
    assert bubbles.get_offsets().tolist() == [[0, 0], [1, 0], [1, 1]]
    assert bubbles.get_sizes().tolist() == [40, 10, 30]  # 40 for the largest
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["4 samples"]


JUDGED = {
    "evaluation.extractor": "judge",
    "network.client": "resnet+densenet",
    "network.resnet": "small",
}
SCORED = record("a", COLUMNS[0], 1.0, config=JUDGED)


def test_the_plain_score_is_by_another_network_and_the_adapted_one_by_smaller_ones():
    assert find_kind("samples").unlike([SCORED]) == {
        "inception-score": "by judge",
        "adapted-inception-score": "by small",
    }


def test_an_adapted_score_by_the_papers_networks_is_compared():
    whole = replace(SCORED, config={**JUDGED, "network.resnet": "resnet"})
    assert find_kind("samples").unlike([whole]) == {"inception-score": "by judge"}


def test_cells_that_failed_say_nothing():
    assert find_kind("samples").unlike([replace(SCORED, status=FAILED)]) == {}
