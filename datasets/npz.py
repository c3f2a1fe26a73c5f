"""Archives of NumPy arrays, in which nothing is believed before it is checked: not that a member
can be unpacked, nor that it is as large as it says.
"""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from fedtables.results.files import DataError
from fedtables.results.zips import check_member


def check_npz(path: Path, wanted: Mapping[str, str]) -> None:
    """Raise DataError unless `path` is an archive whose directory is whole, with arrays of the
    names in `wanted`, which says of each what it is.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            there = [name.removesuffix(".npy") for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DataError(
            f"{path} is damaged or truncated ({error}). Delete it and get it again."
        ) from error
    missing = [name for name in wanted if name not in there]
    if missing:
        raise DataError(
            f"{path} has the arrays {', '.join(there) or 'of no name'}. {described(wanted)}."
            f" It lacks the arrays {', '.join(missing)}."
        )


def described(wanted: Mapping[str, str]) -> str:
    """A sentence on which arrays are wanted, and what they are, without its full stop."""
    return f"Wanted are {'; '.join(f'{name}, {what}' for name, what in wanted.items())}"


def read_arrays(path: Path, wanted: Mapping[str, str]) -> dict[str, np.ndarray]:
    """The arrays of these names. Raises DataError if the file is not whole, or is none of NumPy's:
    packed otherwise, of objects, or with a header that promises more or less than there is.
    """
    check_npz(path, wanted)
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in wanted:
                check_member(archive.getinfo(f"{name}.npy"))
                content = io.BytesIO(archive.read(f"{name}.npy"))
                arrays[name] = npy.read_array(content, allow_pickle=False)
                if content.read(1):
                    raise ValueError(f"{name} has more bytes than its header says")
    except Exception as error:  # zipfile and NumPy raise a dozen kinds for damaged files
        what = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path} is damaged ({what}). Delete it and get it again.") from error
    return arrays
