"""Methods whose clients' answers are attacked, a file each, called as their row: what the server
observes of one.
"""

import importlib
import pkgutil
from typing import Any

SHARING = "fedavg"
"""The method whose clients share gradients or updates, attacked by `attacks.messages`."""


def names() -> tuple[str, ...]:
    """The rows that have a file here."""
    return tuple(sorted(info.name for info in pkgutil.iter_modules(__path__)))


def find(name: str) -> Any:
    """The file of the row `name`, one of `names()`: `observe(inquiry, federation, client)`, and the
    `TABLE` and `COLUMN` whose row sets what the inquiry leaves open.
    """
    return importlib.import_module(f"{__name__}.{name}")
