"""Figure 3's picture: test images, their true classes and what each method predicts, from a file
that a run wrote.
"""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from reports.drawing.figures import matplotlib
from reports.drawing.pictures import UNLABELLED, class_colours, draw_segmentations
from results.files import ResultsError
from tests.reports.drawn import layout

ROWS = {"scratch": "Scratch", "absent": "Absent", "fedsa": "FedSA"}
CLASSES = ["wall", "floor", "sphere"]


def arrays(images=2, height=4, width=6, channels=3):
    target = np.zeros((images, height, width), np.uint8)
    target[:, :2] = 1
    target[0, 0, 0] = UNLABELLED
    pixels = np.full((images, channels, height, width), 100, np.uint8)
    return {
        "images": pixels,
        "target": target,
        "fedsa": np.where(target == 1, 1, 0).astype(np.uint8),
        "scratch": target * 0,
    }


@pytest.fixture
def draw(tmp_path, drawn):
    """Draws arrays from a file; returns the figure."""

    def drawing(found, classes=CLASSES):
        save_file(found, tmp_path / "s.safetensors")
        draw_segmentations(tmp_path / "s.safetensors", tmp_path / "s.png", ROWS, classes, layout())
        return drawn[-1]

    return drawing


def test_there_is_a_line_per_image_and_a_column_per_row_in_the_order_of_print(draw):
    figure = draw(arrays())
    axes = np.array(figure.axes).reshape(2, 4)
    assert [axis.get_title() for axis in axes[0]] == ["input", "ground truth", "Scratch", "FedSA"]
    assert axes[0, 0].images[0].get_array().shape == (4, 6, 3)
    np.testing.assert_array_equal(axes[1, 3].images[0].get_array(), arrays()["fedsa"][1])
    assert {axis.images[0].get_interpolation() for axis in axes.flat} == {"none"}


def test_the_legend_names_the_classes_that_occur_in_their_colours(draw):
    figure = draw(arrays())
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["wall", "floor", "not labelled"]
    patches = [matplotlib.colors.to_hex(patch.get_facecolor()) for patch in legend.get_patches()]
    assert patches == [*class_colours(3)[:2], "#ffffff"]
    truth = figure.axes[1].images[0]
    # The first pixel has no label, the one beside it is floor, the last wall.
    shown = [
        matplotlib.colors.to_hex(truth.cmap(truth.norm(truth.get_array()[place])))
        for place in ((0, 0), (0, 1), (3, 5))
    ]
    assert shown == ["#ffffff", class_colours(3)[1], class_colours(3)[0]]


def test_grey_images_are_drawn_from_black_to_white(draw):
    image = draw(arrays(channels=1)).axes[0].images[0]
    assert (image.get_array().shape, image.get_clim(), image.cmap.name) == (
        (4, 6),
        (0, 255),
        "gray",
    )


@pytest.mark.parametrize("count", [1, 8, 9, 17, 64])
def test_every_class_has_a_colour_of_its_own_and_none_is_that_of_no_class(count):
    colours = class_colours(count)
    assert len(set(colours)) == count
    assert "#ffffff" not in colours


def test_it_is_written_as_png_svg_and_pdf(tmp_path):
    save_file(arrays(), tmp_path / "s.safetensors")
    draw_segmentations(tmp_path / "s.safetensors", tmp_path / "s.png", ROWS, CLASSES, layout())
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "s.svg").read_bytes()
    assert (tmp_path / "s.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"fedsa": np.zeros((2, 4, 5), np.uint8)}, "fedsa"),
        ({"fedsa": np.full((2, 4, 6), 3, np.uint8)}, "fedsa"),
        ({"fedsa": np.zeros((2, 4, 6), np.int64)}, "fedsa"),
        ({"images": np.zeros((2, 2, 4, 6), np.uint8)}, "images"),
        ({"images": np.zeros((2, 3, 4, 6), np.float32)}, "images"),
        ({"target": np.zeros((2, 4), np.uint8)}, "images"),
    ],
)
def test_what_does_not_fit_is_named(draw, changed, named):
    with pytest.raises(ResultsError, match=rf"3 classes: .*{named}.* does not fit"):
        draw({**arrays(), **changed})


def test_a_file_that_is_damaged_or_lacks_the_truth_is_named(draw, tmp_path):
    without = {name: array for name, array in arrays().items() if name != "target"}
    with pytest.raises(ResultsError, match=r"cannot read .*s\.safetensors: 'target'"):
        draw(without)
    (tmp_path / "cut.safetensors").write_bytes(b"cut")
    for name in ("cut", "missing"):
        with pytest.raises(ResultsError, match=rf"cannot read .*{name}\.safetensors"):
            draw_segmentations(
                tmp_path / f"{name}.safetensors", tmp_path / "s.png", ROWS, CLASSES, layout()
            )
