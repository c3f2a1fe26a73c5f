"""Outlines of objects on their image."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from reports.drawing.outlines import FOUND, TRUE, draw_made, draw_outlines, outline
from results.files import ResultsError
from tests.reports.drawn import layout

TWO = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [0, 1, 1, 1, 2, 2],
        [0, 1, 1, 1, 2, 2],
        [0, 1, 1, 1, 2, 2],
        [0, 0, 0, 0, 0, 0],
    ],
    np.uint16,
)


def test_an_outline_is_the_objects_own_border_between_objects_too_and_not_that_of_the_image():
    assert outline(TWO).astype(int).tolist() == [
        [0, 0, 0, 0, 0, 0],
        [0, 1, 1, 1, 1, 1],
        [0, 1, 0, 1, 1, 0],
        [0, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 0],
    ]


def colours(axis):
    pixels = axis.images[0].get_array()
    return {"#" + "".join(f"{value:02x}" for value in pixel) for pixel in pixels.reshape(-1, 3)}


def test_a_line_per_site_has_the_image_each_row_and_the_truth(drawn, tmp_path):
    arrays = {"image/here": np.full((3, 5, 6), 9, np.uint8), "target/here": TWO, "a/here": TWO}
    arrays |= {name.replace("here", "there"): array for name, array in arrays.items()}
    save_file(arrays, tmp_path / "f.safetensors")
    rows = {"a": "Row A", "b": "not there"}
    draw_outlines(tmp_path / "f.safetensors", tmp_path / "f.png", rows, layout())
    axes = drawn[0].axes
    assert [axis.get_title() for axis in axes[:3]] == ["input", "Row A", "ground truth"]
    assert [axis.get_ylabel() for axis in axes[::3]] == ["here", "there"]
    assert [colours(axis) for axis in axes[:3]] == [
        {"#090909"},
        {"#090909", FOUND},
        {"#090909", TRUE},
    ]


def test_a_line_per_client_has_its_label_map_what_each_row_makes_and_the_real_image(
    drawn, tmp_path
):
    made, real = (np.full((3, 5, 6), value, np.uint8) for value in (7, 9))
    arrays = {"image/client 1": real, "target/client 1": TWO, "a/client 1": made}
    save_file(arrays, tmp_path / "f.safetensors")
    draw_made(tmp_path / "f.safetensors", tmp_path / "f.png", {"a": "Row A"}, layout())
    axes = drawn[0].axes
    assert [axis.get_title() for axis in axes] == ["label map", "Row A", "real"]
    assert [colours(axis) for axis in axes] == [{"#000000", "#ffffff"}, {"#070707"}, {"#090909"}]


@pytest.mark.parametrize("arrays", [{"x": TWO}, {"image/here": TWO[None].astype(np.uint8)}])
def test_a_file_of_something_else_is_refused(arrays, tmp_path):
    save_file(arrays, tmp_path / "f.safetensors")
    with pytest.raises(ResultsError, match="no images with their true objects"):
        draw_outlines(tmp_path / "f.safetensors", tmp_path / "f.png", {}, layout())
