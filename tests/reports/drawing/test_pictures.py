"""Images beside each other, and what is painted into them."""

import matplotlib
import numpy as np
import pytest

from fedtables.reports.drawing.pictures import (
    class_colours,
    image_grid,
    image_rows,
    outlined,
    tinted,
)
from tests.reports.drawn import layout, visible

RED, GREEN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def test_an_outline_is_the_objects_own_border_between_objects_too_and_not_that_of_the_image():
    objects = np.array([[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 2, 2], [1, 1, 2, 2]])
    painted = outlined(np.zeros((4, 4, 3)), objects, "#ff0000")
    assert painted[..., 0].astype(int).tolist() == [
        [0, 0, 1, 0],
        [0, 0, 1, 0],
        [0, 1, 1, 1],
        [0, 1, 1, 0],
    ]
    assert not painted[..., 1:].any()


def test_areas_are_tinted_where_they_are_and_those_that_meet_in_their_mean_colour():
    active = np.array([[[True, True, False]], [[False, True, False]]])
    shown = tinted(np.full((1, 3, 3), 0.5), active, ("#ff0000", "#00ff00"))
    assert shown[0, 0] == pytest.approx(0.55 * 0.5 + 0.45 * np.array(RED))
    assert shown[0, 1] == pytest.approx(0.55 * 0.5 + 0.45 * (np.array(RED) + GREEN) / 2)
    assert shown[0, 2] == pytest.approx((0.5, 0.5, 0.5))


@pytest.mark.parametrize("count", [2, 8, 9, 17, 40])
def test_every_class_has_a_colour_of_its_own_and_none_is_that_of_no_class(count):
    colours = class_colours(count)
    assert len({*colours, "#ffffff"}) == count + 1
    assert all(matplotlib.colors.is_color_like(colour) for colour in colours)


def test_a_grid_names_its_lines_its_columns_and_its_images_and_has_the_scale_of_errors(
    drawn, tmp_path
):
    image = np.zeros((2, 3, 3))
    lines = [("first", [image, image], ("", "0.5")), ("second", [image], ())]
    image_grid(lines, ("truth", "error"), tmp_path / "p.png", layout(), errors=0.25)
    *axes, bar = visible(drawn[0])
    assert [axis.get_title() for axis in axes] == ["truth", "error", ""]
    assert [axis.get_ylabel() for axis in axes] == ["first", "", "second"]
    assert [axis.get_xlabel() for axis in axes] == ["", "0.5", ""]
    assert bar.get_ylim()[1] == pytest.approx(0.25)


def test_images_are_drawn_in_lines_of_ten_with_a_note_under_each(drawn, tmp_path):
    grey, colour = np.linspace(0, 1, 12).reshape(12, 1, 1, 1), np.zeros((12, 3, 1, 1))
    notes = {"recovered": [f"{n} dB" for n in range(12)]}
    image_rows({"private": grey, "recovered": colour}, notes, tmp_path / "p.png", "title")
    axes = visible(drawn[0])
    assert len(axes) == 24
    assert [axis.get_xlabel() for axis in axes[10:20]] == notes["recovered"][:10]
    assert [axis.get_xlabel() for axis in axes[-2:]] == notes["recovered"][10:]
    # Grey levels are those of the unit range in every picture, not stretched to its own.
    assert axes[1].images[0].get_array().ravel().tolist() == pytest.approx([1 / 11] * 3)
