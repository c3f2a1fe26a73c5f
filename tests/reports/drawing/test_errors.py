"""Reconstructions beside maps of their errors."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from reports.drawing.errors import HIGH, draw_errors
from results.files import ResultsError
from tests.reports.drawn import layout

FIRST, SECOND = "train=b,i test=b modality=t1", "train=b,i test=i modality=t1"
ROWS = {"a": "Row A", "absent": "not there", "b": "The second of the rows"}


def grey(value):
    return np.full((4, 6), value, np.float32)


ARRAYS = {
    f"image/{FIRST}": grey(0.5),
    f"target/{FIRST}": grey(0.8),
    f"a/{FIRST}": grey(0.7),
    f"b/{FIRST}": grey(0.85),
    f"image/{SECOND}": grey(0.25),
    f"target/{SECOND}": grey(0.5),
    f"a/{SECOND}": grey(0.5),
    f"b/{SECOND}": grey(0.4),
}


@pytest.fixture
def draw(tmp_path, drawn):
    """Draws arrays from a file; returns the axes by line, and the figure."""

    def drawing(arrays, columns=(FIRST, SECOND)):
        save_file(arrays, tmp_path / "f.safetensors")
        draw_errors(tmp_path / "f.safetensors", tmp_path / "f.png", ROWS, columns, layout())
        figure = drawn[-1]
        return np.array(figure.axes[:-1]).reshape(-1, 7), figure  # the last is the colour bar

    return drawing


def test_a_line_per_column_has_the_truth_the_input_and_each_row_beside_its_error(draw):
    axes, _ = draw(ARRAYS)
    assert [axis.get_title() for axis in axes[0]] == [
        "truth",
        "input",
        "error",
        "Row A",
        "error",
        "The second\nof the rows",
        "error",
    ]
    assert [line[0].get_ylabel() for line in axes] == ["b", "i"]
    shown = [float(axis.images[0].get_array()[0, 0]) for axis in axes[1]]
    assert shown == pytest.approx([0.5, 0.25, 0.25, 0.5, 0.0, 0.4, 0.1])


def test_below_an_error_stands_its_mean(draw):
    axes, _ = draw(ARRAYS)
    assert [axis.get_xlabel() for axis in axes[0]] == ["", "", "0.3000", "", "0.1000", "", "0.0500"]


def test_errors_of_all_lines_are_on_one_scale_and_images_on_that_of_their_truth(draw):
    axes, _ = draw(ARRAYS)
    errors = [axis.images[0] for axis in axes[:, 2::2].flat]
    every = np.repeat([0.3, 0.1, 0.05, 0.25, 0.0, 0.1], 24)
    top = pytest.approx(np.percentile(every, HIGH))
    assert {error.cmap.name for error in errors} == {"inferno"}
    assert [error.get_clim() for error in errors] == [(0, top)] * 6
    limits = [[axis.images[0].get_clim() for axis in line[[0, 1, 3, 5]]] for line in axes]
    assert limits == [[(0, pytest.approx(0.8))] * 4, [(0, pytest.approx(0.5))] * 4]


def test_a_column_that_the_file_lacks_has_no_line_and_a_lone_one_its_whole_name(draw):
    axes, figure = draw({name: array for name, array in ARRAYS.items() if name.endswith(FIRST)})
    assert [line[0].get_ylabel() for line in axes] == [FIRST]
    assert len(figure.axes) == 7 + 1


def test_a_black_truth_is_drawn(draw):
    axes, _ = draw({name: grey(0) for name in ARRAYS})
    assert axes[0, 0].images[0].get_clim() == (0, 1)


@pytest.mark.parametrize(
    "arrays", [{"x": grey(1)}, {f"image/{FIRST}": grey(1)}, {f"target/{FIRST}": grey(1)}]
)
def test_a_file_of_something_else_is_refused(arrays, draw):
    with pytest.raises(ResultsError, match="no images with their true objects"):
        draw(arrays)


def test_it_is_written_as_png_svg_and_pdf(tmp_path):
    save_file(ARRAYS, tmp_path / "f.safetensors")
    draw_errors(tmp_path / "f.safetensors", tmp_path / "f.png", ROWS, [FIRST, SECOND], layout())
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
