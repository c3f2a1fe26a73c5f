"""Points of cells in TensorBoard's files, read again with TensorBoard's own reader."""

from __future__ import annotations

import sys

import pytest

from benchmarks.running.progress import TensorBoard
from benchmarks.tables.spec import SpecError


def test_every_cell_has_a_folder_and_every_series_its_steps(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with TensorBoard(tmp_path) as log:
        log("dlad/table2 a seed 0", "loss/client 1", 1, 2.5)
        log("dlad/table2 a seed 0", "loss/client 1", 2, 1.5)
        log("dlad/table2 b seed 0", "bytes/up", 1, 12.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "dlad-table2 a seed 0",
        "dlad-table2 b seed 0",
    ]
    written = EventAccumulator(str(tmp_path / "dlad-table2 a seed 0")).Reload()
    scalars = written.Scalars(*written.Tags()["scalars"])
    assert [(scalar.step, scalar.value) for scalar in scalars] == [(1, 2.5), (2, 1.5)]


def test_without_tensorboard_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(SpecError, match="python -m pip install 'tensorboard"):
        TensorBoard(tmp_path)
