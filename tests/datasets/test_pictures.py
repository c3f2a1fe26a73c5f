"""Pictures are read whole or not at all."""

import numpy as np
import pytest
from PIL import Image

from fedtables.datasets.pictures import opened, read_rgb
from fedtables.datasets.source import DataError

PIXELS = np.arange(48, dtype=np.uint8).reshape(6, 8)


def test_a_png_with_a_piece_cut_out_is_refused_though_it_would_decode(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(PIXELS).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"IDAT") + 16] + whole[whole.index(b"IEND") + 1 :])
    with Image.open(path) as image:
        assert np.asarray(image).shape == (6, 8)
    with pytest.raises((OSError, ValueError, SyntaxError)), opened(path):
        pass


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 6\n%%EndComments\nshowpage\n%%EOF\n"


def test_a_picture_of_another_format_is_refused_whatever_its_name(tmp_path):
    """As PostScript, for which Pillow starts Ghostscript."""
    (tmp_path / "a.png").write_bytes(POSTSCRIPT)
    with pytest.raises(DataError, match=r"a\.png is not .*none of PNG, TIFF, BMP, JPEG, or damag"):
        read_rgb(tmp_path / "a.png")
    Image.fromarray(PIXELS).save(tmp_path / "b.png", format="GIF")
    with pytest.raises(DataError, match=r"b\.png is not .*none of PNG, TIFF, BMP, JPEG, or damag"):
        read_rgb(tmp_path / "b.png")


@pytest.mark.parametrize("pixels", [PIXELS.astype(np.uint16), PIXELS.astype(np.float32) / 255])
def test_pixels_that_8_bits_would_cut_off_are_refused(tmp_path, pixels):
    Image.fromarray(pixels).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match=r"a\.tif is not .*its pixels have more than 8 bits"):
        read_rgb(tmp_path / "a.tif")
