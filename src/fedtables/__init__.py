"""A benchmark and reproduction suite for federated distillation.

`fedtables.reproduce("dlad/table2")` regenerates a table, as the command `fedtables` does.
`fedtables.federation_of` makes a federation of one's own tensors.
"""

import importlib
from typing import Any

HOMES = {
    "reproduce": "fedtables.benchmarks.commands.regeneration",
    "OwnData": "fedtables.federation.own",
    "federation_of": "fedtables.federation.own",
    "partition": "fedtables.federation.own",
    "Plans": "fedtables.federation.parts",
    "Run": "fedtables.federation.parts",
    "Seeds": "fedtables.federation.seeds",
    "TrainingPlan": "fedtables.federation.training.plan",
    "PrivacyPlan": "fedtables.privacy.plan",
}
"""Where each name lives that is found here."""
__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    """One of these names, imported when it is asked for: commands that compute nothing start at
    once.

    By its name, so that what a cell was computed by is not all commands and pictures. Type checkers
    read `__init__.pyi`.
    """
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *HOMES]
