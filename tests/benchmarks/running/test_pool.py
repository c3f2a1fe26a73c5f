"""Workers over cells: what is run again, and after what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.running.events import Context
from benchmarks.running.pool import run_pool
from benchmarks.tables import registry
from benchmarks.tables.cells import expand
from benchmarks.tables.selection import Selection
from results.record import FAILED, OK

PLUGIN = '''
"""A method for which memory is short a few times."""
from dataclasses import dataclass
from pathlib import Path
import torch
from federation.method import Method

@dataclass(frozen=True)
class Large(Method):
    marks: str = ""
    """Folder in which it leaves a mark for each time."""
    times: int = 0
    """How often."""

    def fit(self, federation):
        seen = len(list(Path(self.marks).iterdir())) if self.times else 0
        if seen < self.times:
            (Path(self.marks) / str(seen)).touch()
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return federation.networks.checkpoint(federation.networks.initial())
'''


@pytest.mark.parametrize(("times", "status"), [(1, OK), (2, FAILED)])
def test_a_cell_without_memory_beside_others_is_run_alone_after_them(tmp_path, times, status):
    plugin, marks = tmp_path / "large.py", tmp_path / "marks"
    plugin.write_text(PLUGIN)
    marks.mkdir()
    only = {"row": "large", "dataset": "cifar10", "alpha": "1"}
    [cell] = expand(
        *registry.find_table("fediod/table1"),
        Selection(plugins=(str(plugin),), add=("large",), only=only),
    )
    changes = {"large.marks": str(marks), "large.times": times}
    cells = [replace(cell, config=tuple({**dict(cell.config), **changes}.items())), cell]
    events = [
        (event.kind, event.cell, event.record.status if event.record else "", event.text[:13])
        for event in run_pool(cells, Context(str(tmp_path / "stages")), jobs=2)
        if event.kind in ("again", "done")
    ]
    assert [event[:3] for event in sorted(events[:2])] == [("again", 0, ""), ("done", 1, OK)]
    assert ("again", 0, "", "out of memory") in events
    assert events[2][:3] == ("done", 0, status)
