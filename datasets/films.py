"""Chest films: reading them, the reference's preprocessing, another site's acquisition, and
patients kept apart.

The preprocessing is that of the released code which FedAD names for its pipeline
(jfhealthcare/Chexpert, data/utils.py and config/example.json; OpenCV there): the histogram is
equalised, a Gaussian blur of 3 x 3 pixels applied, the long side brought to 512 pixels by bilinear
interpolation, the short side filled up with 128 at the bottom or at the right. Its normalisation,
(x - 128) / 64, is every film source's `MEAN` and `STD`.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedtables.datasets.folders import reading
from fedtables.datasets.pictures import converted, opened
from fedtables.datasets.source import DataError

FULL = 512
"""Pixels of the long side (config/example.json of the reference)."""
PIXEL_MEAN, PIXEL_STD = 128, 64
"""Of the reference's normalisation, of pixels in 0...255 (config/example.json)."""
MEAN, STD = (PIXEL_MEAN / 255,), (PIXEL_STD / 255,)
NO_FINDING = "no-finding"


def slug(finding: str) -> str:
    """`Pleural_Thickening`, `No Finding` -> `pleural-thickening`, `no-finding`."""
    return finding.strip().lower().replace("_", "-").replace(" ", "-")


# -- preprocessing --


def equalise(film: np.ndarray) -> np.ndarray:
    """A film uint8 (h, w) with its histogram equalised as OpenCV's equalizeHist does; a film of one
    tone stays as it is.

    The darkest tone becomes 0, the brightest 255, a tone between them the share of pixels that are
    as dark or darker, where those of the darkest tone do not count.
    """
    counts = np.bincount(film.ravel(), minlength=256)
    darkest = int(np.flatnonzero(counts)[0])
    others = film.size - counts[darkest]
    if not others:
        return film
    up_to = np.cumsum(counts) - counts[darkest]
    return np.rint(up_to.clip(0) * 255 / others).astype(np.uint8)[film]


def blur(film: np.ndarray) -> np.ndarray:
    """A film uint8 (h, w) under the 3 x 3 Gaussian with weights 1, 2, 1 along each side, mirrored
    at its edges.

    As OpenCV's GaussianBlur with a kernel of 3 and no stated deviation.
    """
    padded = np.pad(film, 1, mode="reflect").astype(np.uint16)
    rows = padded[:-2] + 2 * padded[1:-1] + padded[2:]
    return ((rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:] + 8) >> 4).astype(np.uint8)


def fit(film: np.ndarray, side: int) -> np.ndarray:
    """A film uint8 (h, w) as (side, side): its long side stretched or shrunk to that, the rest
    filled with 128.

    Bilinear between the four nearest pixels, without smoothing before it, as OpenCV's INTER_LINEAR;
    the filling is below a wide film and to the right of a high one.
    """
    from PIL import Image

    height, width = film.shape
    new = [max(1, round(length * side / max(film.shape))) for length in film.shape]
    if [height, width] != new:
        # Of floating numbers, for Pillow cuts off bytes where the reference rounds them.
        image = Image.fromarray(film.astype(np.float32))
        scale = (width / new[1], 0, 0, 0, height / new[0], 0)
        resized = image.transform(
            (new[1], new[0]), Image.Transform.AFFINE, scale, Image.Resampling.BILINEAR
        )
        film = (np.asarray(resized) + 0.5).astype(np.uint8)  # halves up, as there
    return np.pad(film, ((0, side - new[0]), (0, side - new[1])), constant_values=PIXEL_MEAN)


def preprocess(film: np.ndarray, side: int) -> np.ndarray:
    """The reference's preprocessing of a grey film uint8 (h, w) up to normalisation: uint8 (side,
    side).
    """
    return fit(blur(equalise(film)), side)


# -- reading --


def to_bytes(values: np.ndarray, most: int) -> np.ndarray:
    """Whole numbers in 0...most as uint8, `most` as 255. Raises ValueError for others."""
    if values.min() < 0 or values.max() > most:
        raise ValueError(f"it has values {values.min()} to {values.max()}, beyond 0 to {most}")
    return np.rint(values * (255 / most)).astype(np.uint8)


def _read_dicom(path: Path) -> np.ndarray:
    try:
        import pydicom  # which who reads no DICOM files need not have
        from pydicom.pixels import get_decoder
    except ImportError as error:
        raise DataError(
            f"{path} is a DICOM file; reading it needs pydicom: python -m pip install"
            " 'pydicom>=3.0'"
        ) from error
    data = pydicom.dcmread(path)
    packing = data.file_meta.TransferSyntaxUID
    if packing.is_compressed and not get_decoder(packing).is_available:
        raise DataError(
            f"{path} is packed as {packing.name}; reading it needs another package: python -m pip"
            " install 'pylibjpeg[all]'"
        )
    colours, bits = data.PhotometricInterpretation, data.BitsStored
    if colours not in ("MONOCHROME1", "MONOCHROME2") or bits > 16:
        raise ValueError(f"expected grey pixels of at most 16 bits, found {colours} of {bits} bits")
    pixels = data.pixel_array
    if pixels.ndim != 2 or data.PixelRepresentation:
        raise ValueError(
            f"expected one grey image of unsigned values, found {pixels.dtype} {pixels.shape}"
        )
    slope = 1 if data.get("RescaleSlope") is None else data.RescaleSlope
    if "ModalityLUTSequence" in data or not abs(slope) > 0:
        raise ValueError("its values are rescaled by a table, or by 0, which is not read")
    film = to_bytes(pixels, 2**bits - 1)
    # The standard states the inverse presentation beside MONOCHROME1: both say it once.
    white_first = colours == "MONOCHROME1" or data.get("PresentationLUTShape") == "INVERSE"
    return 255 - film if white_first != (slope < 0) else film


def read_film(path: Path, most: int = 0) -> np.ndarray:
    """The grey pixels uint8 (h, w) of a PNG, JPEG or DICOM file, dense tissue bright.

    Colours count by their luma, 16-bit and other depths as shares of their range. With `most`, a
    film whose long side has more pixels is first reduced to that (Lanczos). Raises DataError if the
    file cannot be read, and for a DICOM file without pydicom, or without what unpacks its pixels.
    """
    from PIL import Image

    with reading(path, "a readable film"):
        if path.suffix.lower() in (".dcm", ".dicom"):
            film = _read_dicom(path)
        else:
            with opened(path) as image:
                deep = image.mode.startswith("I")
                film = to_bytes(np.asarray(image), 65535) if deep else converted(image, "L")
    if most and max(film.shape) > most:
        reduced = Image.fromarray(film)
        reduced.thumbnail((most, most), Image.Resampling.LANCZOS)
        film = np.asarray(reduced)
    return film


def read_films(paths: Sequence[Path], side: int, most: int = 0) -> np.ndarray:
    """Films read and preprocessed, uint8 (n, 1, side, side)."""
    images = np.empty(
        (len(paths), 1, side, side), np.uint8
    )  # filled in place: full sets fill the memory of most machines

    def read(index: int) -> None:
        images[index, 0] = preprocess(read_film(paths[index], most), side)

    with ThreadPoolExecutor() as pool:
        list(pool.map(read, range(len(paths))))
    return images


# -- splits --


def any_finding(findings: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Class labels int64 (n,) from findings uint8 (n, size): 1 where one other than `no-finding` is
    present.
    """
    columns = [index for index, name in enumerate(names) if name != NO_FINDING]
    return (findings[:, columns] == 1).any(axis=1).astype(np.int64)


# -- another site --


@dataclass(frozen=True)
class Acquisition:
    """How a site's films differ from those of the site that they are made from; own choices, of no
    source.

    Pairs are the least and the most that is drawn for a film. Curve, contrast and veil alone would
    mostly be undone by the equalisation of the histogram; what is left after it comes from the
    gradient, the blur, the noise, which is the stronger the lower the contrast has become, the
    borders and the marker.
    """

    gamma: tuple[float, float] = (1.3, 1.9)
    """Exponent of the film's curve, on pixels in [0, 1]."""
    contrast: tuple[float, float] = (0.5, 0.7)
    """Share of the range of tones that is used."""
    gradient: tuple[float, float] = (0.15, 0.3)
    """How much brighter one edge is than the middle, in a direction drawn at random."""
    blur: float = 0.008
    """Deviation of a Gaussian, as a share of the film's long side."""
    noise: tuple[float, float] = (0.01, 0.03)
    """Deviation of normal noise, on pixels in [0, 1]."""
    border: float = 0.06
    """The most of each side that is left unexposed, as a share of it; black."""
    marker: float = 0.07
    """Height of the white L in the upper right corner, as a share of the film's; 0 for none."""


SECOND_SITE = Acquisition()
"""Of the stand-ins for CheXpert."""
THIRD_SITE = Acquisition(
    gamma=(0.6, 0.8),
    contrast=(0.7, 0.9),
    gradient=(0.0, 0.1),
    blur=0.012,
    noise=(0.01, 0.02),
    border=0.0,
    marker=0.0,
)
"""Of the generated public films: brighter, softer, less noisy."""


def acquire(films: np.ndarray, how: Acquisition, rng: np.random.Generator) -> np.ndarray:
    """Films uint8 (n, h, w) as a site with another acquisition would have taken them, uint8 (n, h,
    w).

    In this order: curve, contrast about the middle tone, gradient, blur, noise, unexposed borders,
    burnt-in marker. Processors round powers, cosines and sines differently, so these are taken in
    float64 and rounded to float32.
    """
    from scipy.ndimage import gaussian_filter  # takes long, and listing data sets needs none

    count, height, width = films.shape

    def drawn(low: float, high: float) -> np.ndarray:
        return rng.uniform(low, high, (count, 1, 1)).astype(np.float32)

    y = np.linspace(-1, 1, height, dtype=np.float32)[None, :, None]
    x = np.linspace(-1, 1, width, dtype=np.float32)[None, None, :]
    tones = ((films / 255) ** drawn(*how.gamma).astype(np.float64)).astype(np.float32)
    tones = 0.5 + (tones - 0.5) * drawn(*how.contrast)
    angle = drawn(0, 2 * np.pi).astype(np.float64)
    cosine, sine = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    tones = tones * (1 + drawn(*how.gradient) * (cosine * x + sine * y))
    tones = gaussian_filter(tones, (0, *[how.blur * max(height, width)] * 2), mode="nearest")
    tones = tones + drawn(*how.noise) * rng.standard_normal(tones.shape, np.float32)
    left, right, top, bottom = (drawn(0, how.border) for _ in range(4))
    across, down = (x + 1) / 2, (y + 1) / 2
    tones = np.where(
        (across < left) | (across > 1 - right) | (down < top) | (down > 1 - bottom), 0, tones
    )
    long = round(how.marker * height)
    if long:
        thick, away = max(1, long // 4), round(0.08 * height)
        column = width - away - max(2, long // 2)
        tones[:, away : away + long, column : column + thick] = 1
        tones[:, away + long - thick : away + long, column : width - away] = 1
    return np.rint(tones.clip(0, 1) * 255).astype(np.uint8)
