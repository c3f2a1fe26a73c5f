"""Tables of other tasks on a CUDA device that is not there, with samples on the device and in host
memory: findings, regions of images and of volumes, nuclei, and images to reconstruct.
"""

import pytest

from fedtables.benchmarks.scenarios.assembly import build_federation, make_method
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.scenarios.small import shortened
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.federation import parts
from fedtables.federation.cache import StageCache
from fedtables.federation.fitting import fit
from fedtables.federation.inside.evaluation import Evaluation
from fedtables.federation.parts import Run
from fedtables.federation.seeds import Seeds
from fedtables.federation.training.loops import predictions
from tests.fakedevice import DEVICE, KIND, fake_device

BRIEF = {
    "partition.pool_limit": 40,
    "partition.public_limit": 16,
    "partition.test_limit": 16,
    "local.epochs": 1,
    "server.epochs": 1,
}
ROWS = {
    "fedad/table1": ("centralized", "fedad"),
    "fediod/table2": ("fedavg", "fediod"),
    "fediod/table3": ("fedavg", "asyndgan"),
    "fedad/table5": ("standalone", "fedad"),
    "fedad/table7": ("standalone", "fl-mrcm", "fedad"),
    "fediod/table9": ("fediod",),
}
LONG = {"fediod", "asyndgan", "fl-mrcm", "fedad/table5"}
CASES = [
    pytest.param(table, row, marks=[pytest.mark.slow] * bool({table, row} & LONG))
    for table, rows in ROWS.items()
    for row in rows
]


@pytest.mark.parametrize("most", [0, parts.MOST_ON_DEVICE])
@pytest.mark.parametrize(("table", "row"), CASES)
def test_a_row_keeps_to_its_device_wherever_its_samples_lie(table, row, most, monkeypatch):
    cells = expand(*registry.find_table(table), Selection(profile="smoke", only={"row": row}))
    cell = cells[0]
    config = dict(cell.config)
    config |= {name: value for name, value in BRIEF.items() if name in config}
    entry = registry.find_method(cell.method)
    quick = {f"{cell.method}.{n}": v for n, v in entry.load().quick.items() if "." not in n}
    method = shortened(make_method(entry, {**config, **quick}))
    data = DataSets(cell.data, cell.public, cell.private, cell.others)
    monkeypatch.setattr(parts, "MOST_ON_DEVICE", most)

    def measured(self, model, held, trained_for=None):  # metrics are of content
        for outputs in predictions(
            model, held.images, normalise=self._normalise, window=held.window
        ):
            assert outputs.device.type == KIND
        return {}

    monkeypatch.setattr(Evaluation, "measured", measured)
    with fake_device() as watch:
        watch.seeded = True  # for dropout, as a run does
        run = Run(Seeds(), StageCache(None, device=DEVICE), DEVICE)
        federation = build_federation(Configuration.parse(config), data, type(method), run)
        for checkpoint in fit(federation, method):
            assert {tensor.device.type for tensor in checkpoint.state.values()} == {KIND}
