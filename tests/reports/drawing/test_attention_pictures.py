"""FedAD's Figure 3 as a picture: films, where local models look, and where the central one does."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from reports.drawing.figures import matplotlib
from reports.drawing.pictures import CENTRAL, coloured, draw_attention
from results.files import ResultsError
from tests.reports.drawn import layout

ROWS = {"fedad-no-bound": "FedAD without the bound", "absent": "Absent", "fedad": "FedAD"}
FINDINGS = ["cardiomegaly", "lung-opacity"]


def arrays(films=2, clients=3):
    """Client k looks at row k of 4 x 4 pixels, the central model at the last column."""
    local = np.zeros((films, clients, 4, 4), np.uint8)
    for k in range(clients):
        local[:, k, k % 4] = 255
    central = np.zeros((films, 4, 4), np.uint8)
    central[..., 3] = 200
    return {
        "images": np.full((films, 1, 4, 4), 100, np.uint8),
        "finding": np.arange(films, dtype=np.uint8) % 2,
        "local": local,
        "consensus": local.min(axis=1),
        "diversity": local.max(axis=1),
        "fedad": central,
        "fedad-no-bound": central,
    }


@pytest.fixture
def draw(tmp_path, drawn):
    """Draws arrays from a file; returns the figure."""

    def drawing(found):
        save_file(found, tmp_path / "a.safetensors")
        draw_attention(tmp_path / "a.safetensors", tmp_path / "a.png", ROWS, FINDINGS, layout())
        return drawn[-1]

    return drawing


def test_there_is_a_line_per_film_and_a_column_per_row_in_the_order_of_print(draw):
    figure = draw(arrays())
    axes = np.array(figure.axes).reshape(2, 4)
    assert [axis.get_title().replace("\n", " ") for axis in axes[0]] == [
        "film",
        "local models",
        "FedAD without the bound",
        "FedAD",
    ]
    assert [axis.get_ylabel().replace("\n", "-") for axis in axes[:, 0]] == FINDINGS
    np.testing.assert_array_equal(axes[0, 0].images[0].get_array(), np.full((4, 4), 100))


def test_clients_are_red_green_and_blue_where_they_look_and_nowhere_else(draw):
    shown = np.asarray(draw(arrays()).axes[1].images[0].get_array())
    assert [int(row[0].argmax()) for row in shown[:3]] == [0, 1, 2]
    np.testing.assert_allclose(shown[3], 100 / 255)


def test_only_what_is_above_one_half_is_coloured(draw):
    found = arrays()
    found["fedad"] = np.where(found["fedad"] > 0, 127, 0).astype(np.uint8)
    np.testing.assert_allclose(np.asarray(draw(found).axes[3].images[0].get_array()), 100 / 255)


def test_areas_that_meet_have_their_mean_colour():
    film = np.zeros((1, 2), np.uint8)
    active = np.array([[[True, True]], [[False, True]]])
    np.testing.assert_allclose(
        coloured(film, active, ("#ff0000", "#0000ff"))[0], [[0.45, 0, 0], [0.225, 0, 0.225]]
    )


def test_edges_of_consensus_and_diversity_are_drawn_where_there_are_any(draw):
    found = arrays()
    figure = draw(found)
    # Rows of different clients do not meet, so there is no consensus; the diversity is three of
    # four rows.
    assert [len(axis.collections) for axis in figure.axes[:4]] == [0, 1, 1, 1]
    found["consensus"][:, 1:3, 1:3] = 255
    assert [len(axis.collections) for axis in draw(found).axes[:4]] == [0, 2, 2, 2]


@pytest.mark.parametrize("clients", [1, 3, 5])
def test_the_legend_names_every_client(draw, clients):
    (legend,) = draw(arrays(clients=clients)).legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [
        *(f"client {k + 1}" for k in range(clients)),
        "central model",
        "consensus",
        "diversity",
    ]
    colours = [
        matplotlib.colors.to_hex(patch.get_facecolor())
        for patch in legend.get_patches()[: clients + 1]
    ]
    assert len(set(colours)) == clients + 1
    assert colours[-1] == CENTRAL


def test_it_is_written_as_png_svg_and_pdf(tmp_path):
    save_file(arrays(), tmp_path / "a.safetensors")
    draw_attention(tmp_path / "a.safetensors", tmp_path / "a.png", ROWS, FINDINGS, layout())
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"fedad": np.zeros((2, 4, 5), np.uint8)}, "fedad"),
        ({"fedad": np.zeros((2, 4, 4), np.float32)}, "fedad"),
        ({"consensus": np.zeros((1, 4, 4), np.uint8)}, "consensus"),
        ({"local": np.zeros((2, 4, 4), np.uint8)}, "local"),
        ({"finding": np.array([0, 2], np.uint8)}, "finding"),
        ({"finding": np.zeros(1, np.uint8)}, "finding"),
        ({"images": np.zeros((2, 3, 4, 4), np.uint8)}, "images"),
        ({"images": np.zeros((2, 4, 4), np.uint8)}, "images"),
    ],
)
def test_what_does_not_fit_is_named(draw, changed, named):
    with pytest.raises(ResultsError, match=rf"2 findings: .*{named}.* does not fit"):
        draw({**arrays(), **changed})


def test_a_file_that_is_damaged_or_lacks_the_consensus_is_named(draw, tmp_path):
    without = {name: array for name, array in arrays().items() if name != "consensus"}
    with pytest.raises(ResultsError, match=r"cannot read .*a\.safetensors: 'consensus'"):
        draw(without)
    (tmp_path / "cut.safetensors").write_bytes(b"cut")
    with pytest.raises(ResultsError, match=r"cannot read .*cut\.safetensors"):
        draw_attention(tmp_path / "cut.safetensors", tmp_path / "a.png", ROWS, FINDINGS, layout())
