"""The size of a picture, its title and footnote, the axes of metrics."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from PIL import Image

from reports.drawing.figures import (
    ONE_COLUMN,
    TITLE,
    TWO_COLUMNS,
    UNSEEN,
    Texts,
    chance_of,
    inches_of,
    limits,
    page,
    save,
    shortened,
    styled,
    texts_of,
    with_palette,
    wrapped,
)
from reports.tables.units import scale_of
from tests.reports.drawn import layout

CAPTION = "Accuracy of all (ours, theirs) on MNIST, and what each sends"


@pytest.mark.parametrize(
    ("values", "bounds", "ends"),
    [
        ([0.2, 0.9], (0, 1), (0, 1.02)),
        ([20.0, 90.0], (0, 100), (0, 102)),
        ([math.nan, 5.0, 40.0], (0, 100), (0, 43.2)),  # 40 * 1.06, and 2 % of that
        ([99.0, 99.8], (0, 100), (98.8, 100)),  # a quarter of 0.8 on either side
        ([1.0, 4.0], (0, 100), (0, 4.3)),  # close together, but not far from zero
        ([60.0, 90.0], (50, 100), (50, 101)),  # from chance
        ([40.0, 90.0], (50, 100), (38.2, 101.2)),  # below it, with 3 % of 60 under the least
        ([10.0, 25.0], None, (0, 26.5)),
        ([33.0, 33.4], None, (32.9, 33.5)),
        ([math.nan], (0, 100), (0, 100)),
        ([], None, (0, 1)),
        ([0.0], None, (0, 1)),
    ],
)
def test_an_axis_ends_with_the_metric_or_with_the_values_that_do_not_reach_it(values, bounds, ends):
    assert limits(values, bounds) == pytest.approx(ends, abs=0.05)


@pytest.mark.parametrize(
    ("needs", "width", "lines"),
    [
        ([[2.0]], ONE_COLUMN, [1]),
        ([[1.4, 1.4]], ONE_COLUMN, [2]),
        ([[1.4], [1.4]], ONE_COLUMN, [2]),  # metrics of one panel each stand beside each other
        ([[2.0, 2.0]], TWO_COLUMNS, [2]),
        ([[1.2] * 8], TWO_COLUMNS, [4, 4]),
        ([[1.2] * 6], TWO_COLUMNS, [3, 3]),  # rather than five and one
        ([[1.0, 1.0], [1.0]], TWO_COLUMNS, [2, 1]),
    ],
)
def test_a_picture_is_one_column_or_two_wide_and_its_lines_are_of_one_length(needs, width, lines):
    figure, axes = page(needs, 1.5)
    assert tuple(figure.get_size_inches()) == (width, 1.5 * len(lines))
    assert list(map(len, axes)) == list(map(len, needs))
    tops = [round(axis.get_position().y1, 3) for block in axes for axis in block]
    assert [tops.count(top) for top in dict.fromkeys(tops)] == lines


@pytest.mark.parametrize(
    ("width", "title"),
    [
        (7.0, f"Table II. {CAPTION}"),
        (3.5, "Table II. Accuracy of all on MNIST, and what each sends"),
        (2.5, "Table II. Accuracy of all on MNIST"),
        (1.7, "Table II. Accuracy of all"),
        (1.2, "Table II. Accuracy"),
        (0.8, "Table II"),
    ],
)
def test_a_title_has_as_much_of_the_caption_as_fits_on_one_line(width, title):
    texts = texts_of(replace(layout(), caption=CAPTION), width)
    assert texts.title == title
    assert inches_of(texts.title, TITLE) < width
    whole = "" if title.endswith(CAPTION) else f"{CAPTION}; "
    assert texts.note == f"dlad/table2: {whole}profile smoke (reduced); 1 seed."


def test_the_footnote_says_which_metrics_are_not_compared_with_print():
    one = replace(layout(), unlike={"inception-score": "by another network"})
    note = texts_of(one, 7.0).note
    assert note.endswith("; Inception score not compared with print: by another network.")


def test_a_plain_picture_has_neither_title_nor_footnote():
    assert texts_of(layout().plain(), 7.0) == Texts()


def test_lines_of_a_text_are_no_wider_than_they_may_be():
    text = "one two three four five six seven"
    lines = wrapped(text, 0.8, 7).splitlines()
    assert " ".join(lines) == text
    assert len(lines) > 2
    assert all(inches_of(line, 7) <= 0.8 for line in lines)


def test_the_style_of_pictures_ends_with_them():
    before = matplotlib.rcParams["axes.spines.top"]

    @styled
    def spines():
        return matplotlib.rcParams["axes.spines.top"]

    assert (spines(), spines()) == (False, False)
    assert matplotlib.rcParams["axes.spines.top"] is before is True


def test_chance_is_that_of_the_metric_or_of_the_columns_classes():
    one = replace(layout(), chance={"test=x": 0.1})
    assert chance_of(one, scale_of("auc", "percent"), "test=y") == 50
    assert chance_of(one, scale_of("accuracy", "percent"), "test=x epoch=3") == 10
    assert chance_of(one, scale_of("accuracy", "fraction"), "test=x") == 0.1
    assert math.isnan(chance_of(one, scale_of("accuracy", "percent"), "test=xy"))
    assert math.isnan(chance_of(one, scale_of("dice", "percent"), "test=x"))


def test_places_in_an_svg_have_two_digits_and_nothing_else_is_changed():
    drawn = '<path d="M 32.56344 -127.418005 L 0 7.5 z"/> <use x="1.2345" id="a 1.23456"/>'
    assert (
        shortened(drawn) == '<path d="M 32.56 -127.42 L 0 7.5 z"/> <use x="1.23" id="a 1.23456"/>'
    )
    moved = '<g transform="translate(49.867542 135.85799) scale(0.065 -0.065)">'
    assert shortened(moved) == '<g transform="translate(49.87 135.86) scale(0.065 -0.065)">'


def test_a_saved_svg_has_such_places(tmp_path):
    figure, [[axis]] = page([[1.0]], 1.0)
    axis.plot([0, 1 / 3], [0, 1 / 7])
    save(figure, tmp_path / "line.png")
    drawn = (tmp_path / "line.svg").read_text()
    assert drawn.count(' d="') > 3
    assert shortened(drawn) == drawn


@pytest.mark.parametrize(("opacity", "mode"), [(255, "RGB"), (128, "RGBA")])
def test_an_image_in_an_svg_is_packed_anew_and_shows_the_same(opacity, mode):
    pixels = np.full((9, 9, 4), opacity, np.uint8)
    pixels[..., :3] = np.arange(243).reshape(9, 9, 3)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=0)
    whole = base64.b64encode(buffer.getvalue()).decode()
    svg = shortened(f'<image xlink:href="data:image/png;base64,{whole}" x="0"/>')
    packed = svg.removesuffix('" x="0"/>').partition("base64,")[2]
    assert len(packed) < len(whole)
    image = Image.open(io.BytesIO(base64.b64decode(packed)))
    assert image.mode == mode
    np.testing.assert_array_equal(np.asarray(image.convert("RGBA")), pixels)


def png_of(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_chart_has_a_palette_in_which_no_colour_moves_much():
    """A ramp of 512 greens on white, as smoothed edges are."""
    ramp = np.full((512, 64, 3), 255, np.uint8)
    ramp[:, :32, 0] = (np.arange(512) // 2)[:, None]
    ramp[:, :16, 1] = (np.arange(512) % 256)[:, None]
    packed = Image.open(io.BytesIO(with_palette(png_of(ramp))))
    assert packed.mode == "P"
    assert np.abs(np.asarray(packed.convert("RGB")).astype(int) - ramp).max() <= UNSEEN


def test_a_photograph_keeps_its_colours():
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    packed = Image.open(io.BytesIO(with_palette(png_of(pixels))))
    assert packed.mode == "RGB"
    assert (np.asarray(packed) == pixels).all()


def test_a_picture_that_is_packed_stays_as_large_on_paper_and_as_transparent():
    pixels = np.full((8, 8, 4), 255, np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", dpi=(200, 200))
    packed = Image.open(io.BytesIO(with_palette(buffer.getvalue())))
    assert (packed.mode, round(packed.info["dpi"][0])) == ("P", 200)
    pixels[:4, :, 3] = 0
    clear = Image.open(io.BytesIO(with_palette(png_of(pixels))))
    assert (np.asarray(clear.convert("RGBA")) == pixels).all()
