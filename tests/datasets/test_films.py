"""Films: the reference's preprocessing by hand, files of every kind, another
site's acquisition.
"""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from fedtables.datasets.films import (
    SECOND_SITE,
    THIRD_SITE,
    Acquisition,
    acquire,
    any_finding,
    blur,
    equalise,
    fit,
    preprocess,
    read_film,
    read_films,
)
from fedtables.datasets.source import DataError

FILMS = arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9)))


def film(rows):
    return np.array(rows, np.uint8)


# -- equalisation --


def test_a_film_of_one_tone_keeps_it():
    assert equalise(film([[77, 77], [77, 77]])).tolist() == [[77, 77], [77, 77]]


def test_a_tone_becomes_the_share_of_pixels_up_to_it_without_the_darkest():
    # Of five pixels that are not the darkest, one is up to 20, three up to 30, all up to 200.
    assert equalise(film([[10, 20, 30], [30, 200, 200]])).tolist() == [
        [0, 51, 153],
        [153, 255, 255],
    ]


@given(FILMS)
def test_equalisation_keeps_the_order_of_tones_and_spans_all_of_them(values):
    out = equalise(values).ravel().astype(int)
    order = values.ravel().argsort(kind="stable")
    assert (np.diff(out[order]) >= 0).all()
    if values.min() < values.max():
        assert (out.min(), out.max()) == (0, 255)


# -- blur --


def test_a_bright_pixel_is_spread_with_weights_one_two_one():
    values = np.zeros((5, 5), np.uint8)
    values[2, 2] = 160
    assert blur(values)[1:4, 1:4].tolist() == [[10, 20, 10], [20, 40, 20], [10, 20, 10]]
    assert blur(values).sum() == 160


# -- size --


def test_a_wide_film_keeps_its_aspect_and_is_filled_up_below():
    out = fit(np.full((4, 8), 9, np.uint8), 4)
    assert out.tolist() == [[9] * 4] * 2 + [[128] * 4] * 2


def test_it_is_what_opencv_gave():
    """equalizeHist, GaussianBlur((3, 3), 0) and resize to 5 x 4 with INTER_LINEAR, of OpenCV
    5.0.0.
    """
    values = (np.arange(63) ** 2 % 97 + 80).astype(np.uint8).reshape(7, 9)
    assert preprocess(values, 5).tolist() == [
        [61, 56, 98, 93, 164],
        [106, 104, 166, 135, 177],
        [111, 154, 152, 115, 159],
        [130, 151, 175, 153, 169],
        [128] * 5,
    ]


# -- files --

TONES = np.arange(0, 240, 10, dtype=np.uint8).reshape(4, 6)


def test_grey_and_colour_pngs_are_read_as_grey(tmp_path):
    Image.fromarray(TONES).save(tmp_path / "a.png")
    Image.fromarray(np.stack([TONES] * 3 + [np.full_like(TONES, 255)], axis=-1)).save(
        tmp_path / "b.png"
    )  # as 519 of NIH's
    assert np.array_equal(read_film(tmp_path / "a.png"), TONES)
    assert np.array_equal(read_film(tmp_path / "b.png"), TONES)


def test_a_png_of_sixteen_bits_is_read_as_shares_of_its_range(tmp_path):
    Image.fromarray(TONES.astype(np.uint16) * 257).save(tmp_path / "a.png")
    assert np.array_equal(read_film(tmp_path / "a.png"), TONES)


def test_a_large_film_is_reduced_and_a_small_one_is_not(tmp_path):
    Image.fromarray(np.full((8, 16), 130, np.uint8)).save(tmp_path / "a.png")
    assert read_film(tmp_path / "a.png", most=4).tolist() == [[130] * 4] * 2
    assert read_film(tmp_path / "a.png", most=20).shape == (8, 16)


def write_dicom(path, pixels, interpretation="MONOCHROME2", bits=8, signed=0, **more):
    pydicom = pytest.importorskip("pydicom", reason="pydicom is not installed")
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = pydicom.uid.SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = "1.2.3"
    data = pydicom.Dataset()
    data.file_meta = meta
    data.Rows, data.Columns = pixels.shape[-2:]
    if pixels.ndim == 3:
        data.NumberOfFrames = len(pixels)
    data.SamplesPerPixel, data.PhotometricInterpretation, data.PixelRepresentation = (
        1,
        interpretation,
        signed,
    )
    data.BitsAllocated = 8 * pixels.dtype.itemsize
    data.BitsStored, data.HighBit = bits, bits - 1
    data.PixelData = pixels.tobytes()
    for name, value in more.items():
        setattr(data, name, value)
    data.save_as(path, enforce_file_format=True)


@pytest.mark.parametrize(
    ("interpretation", "shape", "slope", "inverted"),
    [
        ("MONOCHROME2", "IDENTITY", 1, False),
        ("MONOCHROME2", "IDENTITY", 2.5, False),
        ("MONOCHROME2", "IDENTITY", -1, True),
        ("MONOCHROME2", "INVERSE", 1, True),
        ("MONOCHROME1", "INVERSE", 1, True),  # as the standard has it: said twice, meant once
        ("MONOCHROME1", "INVERSE", -1, False),
    ],
)
def test_whatever_inverts_a_dicom_file_is_followed(
    tmp_path, interpretation, shape, slope, inverted
):
    told = {"PresentationLUTShape": shape, "RescaleSlope": slope, "RescaleIntercept": 0}
    write_dicom(tmp_path / "a.dcm", TONES, interpretation, **told)
    assert np.array_equal(read_film(tmp_path / "a.dcm"), 255 - TONES if inverted else TONES)


def test_a_dicom_file_of_colours_or_of_a_dose_is_refused(tmp_path):
    write_dicom(tmp_path / "a.dcm", TONES, "PALETTE COLOR")
    with pytest.raises(DataError, match="at most 16 bits, found PALETTE COLOR of 8 bits"):
        read_film(tmp_path / "a.dcm")
    write_dicom(tmp_path / "a.dcm", TONES.astype(np.uint32), bits=32)
    with pytest.raises(DataError, match="at most 16 bits, found MONOCHROME2 of 32 bits"):
        read_film(tmp_path / "a.dcm")


def test_a_dicom_file_whose_values_need_a_table_or_lose_their_meaning_is_refused(tmp_path):
    pydicom = pytest.importorskip("pydicom", reason="pydicom is not installed")
    table = pydicom.Sequence([pydicom.Dataset()])
    for told in ({"ModalityLUTSequence": table}, {"RescaleSlope": 0, "RescaleIntercept": 0}):
        write_dicom(tmp_path / "a.dcm", TONES, **told)
        with pytest.raises(DataError, match="rescaled by a table, or by 0"):
            read_film(tmp_path / "a.dcm")


def test_a_film_of_numbers_beyond_its_range_is_refused(tmp_path):
    Image.fromarray(TONES.astype(np.float32) / 255).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match=r"a\.tif is not .*more than 8 bits"):
        read_film(tmp_path / "a.tif")
    Image.fromarray(TONES.astype(np.int32) + 65_535).save(tmp_path / "b.tif")
    with pytest.raises(DataError, match=r"b\.tif is not .*beyond 0 to 65535"):
        read_film(tmp_path / "b.tif")


def test_a_dicom_file_of_twelve_bits_is_read_as_shares_of_them(tmp_path):
    write_dicom(
        tmp_path / "a.dcm",
        film([[0, 0]]).astype(np.uint16) + np.array([[0, 4095]], np.uint16),
        bits=12,
    )
    assert read_film(tmp_path / "a.dcm").tolist() == [[0, 255]]


@pytest.mark.parametrize(
    ("pixels", "signed"), [(TONES.astype(np.int16), 1), (np.stack([TONES, TONES]), 0)]
)
def test_a_dicom_file_of_signed_values_or_several_frames_is_refused(tmp_path, pixels, signed):
    write_dicom(tmp_path / "a.dcm", pixels, bits=8 * pixels.dtype.itemsize, signed=signed)
    with pytest.raises(
        DataError,
        match=r"a\.dcm is not a readable film .*expected one grey image of unsigned values",
    ):
        read_film(tmp_path / "a.dcm")


def test_without_pydicom_a_dicom_file_is_refused_saying_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydicom", None)
    (tmp_path / "a.dcm").write_bytes(b"")
    with pytest.raises(DataError, match=r"a\.dcm is a DICOM file; .* pip install 'pydicom>=3"):
        read_film(tmp_path / "a.dcm")


def test_a_packed_dicom_file_without_its_decoder_is_refused_saying_what_to_install(
    tmp_path, monkeypatch
):
    write_dicom(tmp_path / "a.dcm", TONES)
    monkeypatch.setattr("pydicom.uid.UID.is_compressed", True)
    monkeypatch.setattr("pydicom.pixels.get_decoder", lambda uid: SimpleNamespace(is_available=0))
    with pytest.raises(DataError, match=r"a\.dcm is packed as .* pip install 'pylibjpeg"):
        read_film(tmp_path / "a.dcm")


def test_a_damaged_film_is_refused_naming_it(tmp_path):
    Image.fromarray(TONES).save(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes()[:60])
    (tmp_path / "b.jpg").write_bytes(b"no film")
    for name in ("a.png", "b.jpg", "absent.png"):
        with pytest.raises(DataError, match=f"{name} is not a readable film .* Get it again"):
            read_film(tmp_path / name)


def test_films_are_read_in_the_order_asked_for_and_preprocessed(tmp_path):
    paths = []
    for index in range(5):
        pixels = np.zeros((4, 8), np.uint8)
        pixels[:, index:] = 50
        paths.append(tmp_path / f"{index}.png")
        Image.fromarray(pixels).save(paths[-1])
    found = read_films(paths, 4)
    assert found.shape == (5, 1, 4, 4)
    for image, path in zip(found, paths, strict=True):
        assert np.array_equal(image[0], preprocess(read_film(path), 4))


# -- labels --


def test_the_class_is_whether_a_finding_is_present_and_no_finding_is_none():
    findings = np.array([[1, 0, 0], [0, 1, 0], [0, 255, 255], [1, 0, 1]], np.uint8)
    assert any_finding(findings, ("no-finding", "mass", "nodule")).tolist() == [0, 1, 0, 1]


# -- another site --

NOTHING = Acquisition((1, 1), (1, 1), (0, 0), 0, (0, 0), 0, 0)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_curve_contrast_and_their_order_by_hand():
    # (51 / 255)^2 = 0.04; about the middle at half the contrast 0.27.
    found = acquire(
        np.full((1, 4, 4), 51, np.uint8), replace(NOTHING, gamma=(2, 2), contrast=(0.5, 0.5)), rng()
    )
    assert (found == round(0.27 * 255)).all()


def test_a_gradient_brightens_one_edge_as_it_darkens_the_other():
    found = acquire(
        np.full((1, 33, 33), 100, np.uint8), replace(NOTHING, gradient=(0.5, 0.5)), rng()
    )[0].astype(float)
    assert found[16, 16] == 100
    assert found + found[::-1, ::-1] == pytest.approx(200, abs=1)
    assert found.max() > 140


@pytest.mark.parametrize("how", [SECOND_SITE, THIRD_SITE])
def test_a_site_alters_every_film_in_its_own_way_and_repeats(how):
    films = np.tile(np.linspace(20, 230, 32).astype(np.uint8), (4, 32, 1))
    found = acquire(films, how, rng(1))
    assert np.array_equal(found, acquire(films, how, rng(1)))
    assert len({image.tobytes() for image in found}) == 4
    different = [abs(equalise(image).astype(int) - equalise(films[0])).mean() for image in found]
    assert min(different) > 1  # of 255: not undone by the equalisation
