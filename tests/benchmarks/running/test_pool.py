"""Workers over cells: what is run again, and after what."""

import os
from dataclasses import replace

import pytest

from fedtables.benchmarks.running.events import Context
from fedtables.benchmarks.running.execute import run_cell
from fedtables.benchmarks.running.pool import in_processes, run_pool
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.results.record import FAILED, OK

PLUGIN = '''
"""A method for which memory is short, or CUDA fails, a few times."""
from dataclasses import dataclass
from pathlib import Path
import torch
from fedtables.federation.method import Method

@dataclass(frozen=True)
class Large(Method):
    marks: str = ""
    """Folder in which it leaves a mark for each time."""
    times: int = 0
    """How often."""
    fault: bool = False
    """Whether CUDA fails; else it lacks memory."""

    def fit(self, federation):
        seen = len(list(Path(self.marks).iterdir())) if self.times else 0
        if seen < self.times:
            (Path(self.marks) / str(seen)).touch()
            if self.fault:
                raise torch.AcceleratorError("CUDA error: an illegal memory access")
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return federation.networks.checkpoint(federation.networks.initial())
'''


CARELESS = '''
"""A method that leaves behind what it can, and tells how often it was run."""
from dataclasses import dataclass
import os
import torch
from fedtables.federation.method import Method

fits = []

@dataclass(frozen=True)
class Careless(Method):
    sends = frozenset({"labels"})

    def fit(self, federation):
        fits.append(federation)
        entropy = torch.nn.functional.cross_entropy
        torch.nn.functional.cross_entropy = lambda *given, **named: -entropy(*given, **named)
        torch.set_default_dtype(torch.float64)
        os.environ["LEFT"] = "behind"
        federation.channel.up(0, "labels", {"x": torch.zeros(len(fits), dtype=torch.uint8)})
        return federation.local_models()[0]
'''


@pytest.mark.slow  # every worker imports all anew
def test_what_a_plug_in_leaves_behind_changes_no_other_cell(tmp_path):
    plugin = tmp_path / "careless.py"
    plugin.write_text(CARELESS)
    brief = {"partition.clients": 5, "partition.pool_limit": 100, "partition.public_limit": 50}
    brief |= {"local.epochs": 2, "server.epochs": 2, "evaluation.last_epochs": 1}
    selection = Selection(
        add=("careless",),
        only={"row": "careless,global-avg", "dataset": "cifar10", "distribution": "iid"},
        seeds=(0, 1),
        overrides=tuple(brief.items()),
    )
    with registry.used([plugin]):
        cells = expand(*registry.find_table("dlad/table2"), selection)
    cells.sort(key=lambda cell: cell.row)  # the plug-in's first, and the other needs the same stage
    del cells[3]
    done = {
        event.cell: event.record
        for event in run_pool(cells, Context(str(tmp_path / "stages")), jobs=1)
        if event.record is not None
    }
    assert [cell.row for cell in cells] == ["careless", "careless", "global-avg"]
    assert {record.reason for record in done.values()} == {""}
    assert done[0].bytes_up == done[1].bytes_up > 0
    alone, _ = run_cell(cells[2], Context(str(tmp_path / "others")))
    assert done[2].measurements == alone.measurements
    again, _ = run_cell(cells[0], Context(str(tmp_path / "stages")))
    assert again.stages["reused"] == 1  # its own fit


def cells_that_fail(folder, *counts, fault):
    """Cells that fail so many times each."""
    plugin = folder / "large.py"
    plugin.write_text(PLUGIN)
    only = {"row": "large", "dataset": "cifar10", "alpha": "1"}
    with registry.used([plugin]):
        selection = Selection(add=("large",), only=only)
        [cell] = expand(*registry.find_table("fediod/table1"), selection)
    cells = []
    for times in counts:
        marks = folder / f"marks{times}"
        marks.mkdir()
        changes = {"large.marks": str(marks), "large.times": times, "large.fault": fault}
        cells.append(replace(cell, config=tuple({**dict(cell.config), **changes}.items())))
    return cells


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "why"), [(False, "out of memory"), (True, "device fault")])
def test_cells_whose_device_fails_are_run_alone_after_the_others(tmp_path, fault, why):
    cells = cells_that_fail(tmp_path, 1, 2, fault=fault)
    events = [
        (e.kind, e.cell, e.record.status if e.record else e.text.partition(":")[0])
        for e in run_pool(cells, Context(str(tmp_path / "stages")), jobs=2)
        if e.kind in ("again", "done")
    ]
    assert sorted(events[:2]) == [("again", number, why) for number in (0, 1)]
    assert sorted(events[2:]) == [("done", 0, OK), ("done", 1, FAILED)]


def visible(item):
    return os.environ["CUDA_VISIBLE_DEVICES"], os.getpid(), item


def test_every_process_sees_one_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    seen = in_processes(visible, range(8), 2, lambda: None, "cuda")
    assert [item for _, _, item in seen] == list(range(8))
    gpus = {process: gpu for gpu, process, _ in seen}
    assert {gpu for gpu, _, _ in seen} <= {"3", "5"}
    assert len(set(gpus.values())) == len(gpus)  # no two processes have the same
