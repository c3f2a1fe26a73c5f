"""What cells show while they run, in files that TensorBoard reads: a folder per cell."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.tables.spec import SpecError

OPEN = 32
"""Most files that are written at a time; more are closed, and gone on with in another."""


class TensorBoard:
    """Takes points, as `benchmarks.reproduce(log=...)` gives them, into folders below `home`.

    Raises SpecError if TensorBoard is not installed.
    """

    def __init__(self, home: Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise SpecError(
                "--log-to tensorboard needs TensorBoard, which is not installed: python -m pip"
                " install 'tensorboard>=2.21'"
            ) from None
        self.home = home
        self._make_writer = SummaryWriter
        self._writers: dict[str, Any] = {}

    def __call__(self, cell: str, series: str, step: int, value: float) -> None:
        if cell not in self._writers:
            if len(self._writers) == OPEN:
                self._writers.pop(next(iter(self._writers))).close()
            self._writers[cell] = self._make_writer(str(self.home / cell.replace("/", "-")))
        self._writers[cell].add_scalar(series, value, step)

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer in self._writers.values():
            writer.close()
