"""Libraries of networks that take seconds to import: only what builds their networks pays."""

from __future__ import annotations

import functools
import warnings
from types import ModuleType


@functools.cache
def monai_networks() -> ModuleType:
    """`monai.networks.nets`."""
    with warnings.catch_warnings():  # importing it calls what torch has deprecated
        warnings.simplefilter("ignore", FutureWarning)
        import monai.networks.nets
    return monai.networks.nets
