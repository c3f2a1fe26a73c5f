"""NIfTI-1 volumes, written by hand as the header's definition says."""

import gzip
import struct

import numpy as np
import pytest

from datasets.nifti import read_volume
from datasets.source import DataError

TYPES = {"u1": 2, "i2": 4, "i4": 8, "f4": 16, "f8": 64, "i1": 256, "u2": 512, "u4": 768}
VOLUME = np.arange(2 * 3 * 4).reshape(2, 3, 4)  # z, y, x


def nifti(volume, kind="i2", order="<", slope=1.0, intercept=0.0, sides=None):
    """The bytes of a file; x varies fastest in it."""
    sides = volume.shape[::-1] if sides is None else sides
    header = bytearray(352)
    struct.pack_into(f"{order}i", header, 0, 348)
    struct.pack_into(f"{order}8h", header, 40, len(sides), *sides, *[1] * (7 - len(sides)))
    struct.pack_into(f"{order}2h", header, 70, TYPES[kind], 8 * np.dtype(kind).itemsize)
    struct.pack_into(f"{order}3f", header, 108, 352.0, slope, intercept)
    header[344:348] = b"n+1\0"
    return bytes(header) + volume.astype(f"{order}{kind}").tobytes()


@pytest.fixture
def saved(tmp_path):
    def save(content, name="a.nii.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return save


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("order", "<>")
def test_a_volume_is_read_in_its_own_type(saved, kind, order):
    volume = read_volume(saved(nifti(VOLUME, kind, order)))
    assert volume.dtype == np.dtype(kind)
    assert np.array_equal(volume, VOLUME)


def test_a_file_may_be_compressed_or_not(saved):
    for name in ("a.nii", "a.nii.gz"):
        assert np.array_equal(read_volume(saved(nifti(VOLUME), name)), VOLUME)


def test_a_slope_and_an_intercept_are_applied(saved):
    volume = read_volume(saved(nifti(VOLUME, slope=0.5, intercept=-1.0)))
    assert np.array_equal(volume, 0.5 * VOLUME - 1)
    for slope in (0.0, float("nan")):  # says that there is none
        volume = read_volume(saved(nifti(VOLUME, slope=slope, intercept=-1.0)))
        assert np.array_equal(volume, VOLUME)


def test_sides_of_one_after_the_third_are_dropped(saved):
    assert read_volume(saved(nifti(VOLUME, sides=(4, 3, 2, 1)))).shape == (2, 3, 4)
    with pytest.raises(DataError, match="its sides are 4 x 3 x 1 x 2"):
        read_volume(saved(nifti(VOLUME, sides=(4, 3, 1, 2))))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ""),
        (nifti(VOLUME)[:-1], ""),
        (b"\0" * 400, ""),
        (nifti(VOLUME, sides=(4, 6)), "its sides are 4 x 6"),
        (nifti(VOLUME, sides=(4, -3, 2)), ""),
        (nifti(VOLUME)[:70] + b"\x20\0" + nifti(VOLUME)[72:], ""),
        (nifti(VOLUME)[:70] + b"\xff\x0f" + nifti(VOLUME)[72:], ""),
    ],
)
def test_what_is_no_whole_volume_is_refused(saved, content, message):
    with pytest.raises(DataError, match=rf"a\.nii\.gz is not a readable NIfTI .*{message}"):
        read_volume(saved(content))


def test_a_damaged_archive_is_refused(saved):
    path = saved(nifti(VOLUME))
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DataError, match="not a readable NIfTI volume"):
        read_volume(path)
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match="not a readable NIfTI volume"):
        read_volume(path)
    with pytest.raises(DataError, match="not a readable NIfTI volume"):
        read_volume(path.with_name("absent.nii"))


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
@pytest.mark.parametrize("kind", ["u1", "f8"])
def test_sides_that_the_file_cannot_hold_are_refused_before_memory_is_taken(saved, name, kind):
    path = saved(nifti(VOLUME, kind, sides=(32_000, 32_000, 32_000)), name)
    with pytest.raises(
        DataError, match=rf"{name} is not .*it says [\d,]+ bytes of voxels, and has"
    ):
        read_volume(path)


def test_a_volume_that_packs_well_is_read(saved):
    assert not read_volume(saved(nifti(np.zeros((99, 100, 100)), "f8"))).any()
