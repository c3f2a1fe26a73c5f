"""Reads an array of numbers from a MATLAB file of version 5, which versions 6 and 7 write too.

In Python alone, since the readers in C trust what a damaged file says and end the process. The
format is that of MathWorks' "MAT-File Format", chapter 1: a header of 128 bytes and then elements,
each a kind, a length and so many bytes.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
"""NumPy's types by kind of element."""
MATRIX, COMPRESSED = 14, 15
CLASSES = range(6, 16)
"""Of arrays: those of numbers, which are not sparse."""
COMPLEX = 0x800
"""Of an array's flags."""
MOST = 2**28
"""Bytes that a compressed array is unpacked to."""


def read_array(path: Path, name: str) -> np.ndarray:
    """The array called `name`, in the type that its numbers are stored in.

    Raises OSError, or ValueError for a file that is damaged, of another version, or without such an
    array of real numbers.
    """
    raw = path.read_bytes()
    if raw[124:128] != b"\0\1IM":
        raise ValueError("it is not of version 5; save it with -v7")
    for kind, content in _elements(raw[128:]):
        if kind == COMPRESSED:
            kind, content = next(_elements(_unpacked(content)), (0, b""))
        if kind != MATRIX:
            continue
        flags, sides, label, *values = islice(_elements(content), 4)
        if label[1].decode("latin1") == name:
            return _numbers(flags, sides, values)
    raise ValueError(f"it has no array {name}")


def _elements(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The kind and the bytes of each element. Raises ValueError for one that is cut off."""
    at = 0
    while at < len(raw):
        if len(raw) - at < 8:
            raise ValueError("it is cut off")
        kind, length = struct.unpack_from("<2I", raw, at)
        start = at + 8
        if kind >> 16:  # a short one, whose bytes lie where others have their length
            kind, length, start = kind & 0xFFFF, kind >> 16, at + 4
        end = start + length
        if end > len(raw) or (start == at + 4 and length > 4):
            raise ValueError("it is cut off")
        yield kind, raw[start:end]
        at = end if kind == COMPRESSED else end + -end % 8


def _unpacked(packed: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(packed, MOST)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not stream.eof:
        raise ValueError(f"an array of it is cut off, or larger than {MOST:,} bytes")
    return raw


def _numbers(
    flags: tuple[int, bytes],
    sides: tuple[int, bytes],
    values: list[tuple[int, bytes]],
) -> np.ndarray:
    """The values, whose first side varies fastest. Raises ValueError unless they fit."""
    word = int.from_bytes(flags[1][:4], "little")
    if word & 0xFF not in CLASSES or word & COMPLEX:
        raise ValueError("its array is not one of real numbers")
    if not values or values[0][0] not in NUMBERS or sides[0] != 5 or len(sides[1]) % 4:
        raise ValueError("its array is damaged")
    kind, content = values[0]
    shape = np.frombuffer(sides[1], "<i4").tolist()
    dtype = np.dtype("<" + NUMBERS[kind])
    if min(shape, default=-1) < 0 or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"its array has {len(content):,} bytes for sides {shape}")
    return np.frombuffer(content, dtype).reshape(shape, order="F")
