"""What a stage cache reports; apart, so that who only passes it on need not import torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StageEvent:
    """A line of the log."""

    kind: str
    label: str
    key: str
    computed: bool
    seconds: float
    note: str = ""
