"""Pictures are read whole or not at all."""

import numpy as np
import pytest
from PIL import Image

from datasets.pictures import opened, read_rgb

PIXELS = np.arange(48, dtype=np.uint8).reshape(6, 8)


@pytest.mark.parametrize("suffix", ["png", "bmp"])
def test_a_picture_is_as_it_was_saved(tmp_path, suffix):
    Image.fromarray(PIXELS).save(tmp_path / f"a.{suffix}")
    with opened(tmp_path / f"a.{suffix}") as image:
        assert np.asarray(image).tolist() == PIXELS.tolist()


def test_a_png_with_a_piece_cut_out_is_refused_though_it_would_decode(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(PIXELS).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"IDAT") + 16] + whole[whole.index(b"IEND") + 1 :])
    with Image.open(path) as image:
        assert np.asarray(image).shape == (6, 8)
    with pytest.raises((OSError, ValueError, SyntaxError)), opened(path):
        pass


def test_opacity_is_dropped(tmp_path):
    Image.fromarray(np.full((2, 2, 4), 7, np.uint8)).save(tmp_path / "a.png")
    assert read_rgb(tmp_path / "a.png").tolist() == [[[7, 7, 7]] * 2] * 2
