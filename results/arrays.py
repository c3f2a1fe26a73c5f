"""Arrays in a record: what a picture is drawn from goes where the cell's numbers go, and is sealed
with them.
"""

import base64
import zlib
from collections.abc import Mapping

import numpy as np
from safetensors.numpy import load, save


def pack(arrays: Mapping[str, np.ndarray]) -> str:
    """Arrays by name as text: safetensors, compressed by zlib, in base64."""
    raw = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    return base64.b64encode(zlib.compress(raw, 9)).decode()


def unpack(text: str) -> dict[str, np.ndarray]:
    """What `pack` has packed."""
    return load(zlib.decompress(base64.b64decode(text)))
