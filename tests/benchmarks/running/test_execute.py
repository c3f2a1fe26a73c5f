"""One cell: from a run's history to its number, in the table's unit, with where the data came
from.
"""

import os
import random
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from torch.nn import Module

from fedtables.benchmarks.running import machine
from fedtables.benchmarks.running.events import Context
from fedtables.benchmarks.running.execute import RESTRICTING, kernels, prepare_device, run_cell
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.federation import fitting
from fedtables.federation.execution import DEFAULT
from fedtables.federation.fitting import listed
from fedtables.federation.surroundings import flags
from fedtables.results.arrays import unpack
from fedtables.results.record import FAILED, OK, Measurement
from fedtables.results.sourcecode import ROOT

# -- cells --

PLUGIN = '''
"""Methods of known histories."""
from dataclasses import dataclass, replace
from typing import ClassVar
import torch
from fedtables.federation.method import Method

@dataclass(frozen=True)
class Scripted(Method):
    sends = frozenset({"labels"})
    protected: ClassVar = {"pate": sends}
    what: str = "server"
    """What it returns."""

    def fit(self, federation):
        model = federation.networks.initial()
        checkpoint = federation.networks.checkpoint(model)
        if self.what == "module":
            return model
        client = federation.clients[0]
        if self.what == "large":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        if self.what == "library":
            try:
                raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED in cublasCreate")
            finally:
                raise RuntimeError("the recording did not end")
        if self.what == "fault":
            raise torch.AcceleratorError("an illegal memory access was encountered")
        if self.what == "fault of a library":
            raise RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")
        if self.what == "undeclared":
            federation.channel.up(0, "features", {"x": torch.zeros(1)})
        federation.channel.up(0, "labels", {"x": torch.zeros(1)})
        federation.channel.down(1, "labels", {"x": torch.zeros(2)})
        histories = {
            "server": [("server", [0.125, 0.5, 0.25])],
            "clients": [("client-0", [0.125, 0.5]), ("client-1", [0.5, 0.75])],
            "two metrics": [("server", [0.5])],
            "undeclared": [("server", [0.5])],
            "sites": [("server", [])],
            "fails": [],
        }[self.what]
        more = {
            "two metrics": {"hd95": [7.0]},
            "sites": {"ssim": [0.5, 0.5], "ssim@f": [0.25, 0.5], "ssim@i": [0.75, 0.75]},
        }.get(self.what, {})
        return [replace(checkpoint, owner=o, history={"accuracy": h, **more}) for o, h in histories]
'''


@pytest.fixture(scope="module")
def scripted(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "scripted.py"
    path.write_text(PLUGIN)
    with registry.used([path]):
        yield


@pytest.fixture
def cell(scripted):
    """The plug-in's cell of FedIOD's Table 1, in percent, under the smoke profile."""
    only = {"row": "scripted", "dataset": "cifar10", "alpha": "1"}
    [found] = expand(
        *registry.find_table("fediod/table1"),
        Selection(add=("scripted",), only=only),
    )
    return found


@pytest.fixture(autouse=True)
def _scripted(monkeypatch):
    """Scripted histories stand for those that the suite has measured."""

    def found(federation, fitted):
        return measured(federation, fitted) if isinstance(fitted, Module) else listed(fitted)

    measured = fitting.as_checkpoints
    monkeypatch.setattr(fitting, "as_checkpoints", found)


@pytest.fixture
def run(tmp_path):
    """The record of a cell with some changes of its configuration; `what` is the plug-in's."""

    def running(cell, what=None, **changes):
        config = {**dict(cell.config), **changes}
        if what is not None:
            config["scripted.what"] = what
        changed = replace(cell, config=tuple(config.items()))
        return run_cell(changed, Context(str(tmp_path / "stages")))[0]

    return running


def test_a_table_in_percent_takes_shares_a_hundredfold_and_one_of_fractions_does_not(cell, run):
    assert cell.unit == "percent"
    record = run(cell)
    assert (record.status, record.measurements) == (OK, (Measurement("accuracy", 25.0, "", 1, 1),))
    assert record.statistic == "after the last of 3 epochs or rounds"
    fraction = run(replace(cell, unit="fraction"))
    assert fraction.measurements == (Measurement("accuracy", 0.25, "", 1, 1),)


def test_several_models_are_averaged_and_a_role_keeps_only_its_own(cell, run):
    record = run(cell, "clients")
    assert record.measurements == (Measurement("accuracy", 62.5, "", 2, 2),)  # (50 + 75) / 2
    assert record.statistic == "after the last of 2 epochs or rounds, mean over models"
    assert run(replace(cell, role="resnet8"), "clients").measurements == record.measurements
    mixed = {"network.client": "resnet8+cnn", "network.cnn": "cnn-small", "network.server": "cnn"}
    mixed["partition.clients"] = 2
    own = run(replace(cell, role="cnn"), "clients", **mixed)  # client 1 of two
    assert own.measurements == (Measurement("accuracy", 75.0, "", 1, 1),)
    assert own.statistic == "after the last of 2 epochs or rounds"


def test_a_record_says_whether_every_model_had_settled(cell, run):
    assert run(cell).settled == {"accuracy": False}  # 50, then 25 %
    # 12.5, then 50 %, and 50, then 75 %: within 40 points, but better by more than two.
    assert run(cell, "clients", **{"evaluation.settled": 40.0}).settled == {"accuracy": False}
    assert run(cell, **{"evaluation.settled": 25.0}).settled == {"accuracy": True}
    one_epoch = {"evaluation.settled": 25.0, "evaluation.at": 0.3}
    assert run(cell, **one_epoch).settled == {}


@pytest.fixture
def by_site(scripted):
    """The plug-in's first cell of a table by site, of models of three sites, with a history on
    each.
    """
    selection = Selection(add=("scripted",), only={"row": "scripted"})
    cells = expand(*registry.find_table("fedad/table7"), selection)
    return next(cell for cell in cells if cell.column.startswith("train=b,f,i"))


@pytest.mark.parametrize(("test", "settled"), [("f", False), ("b,f,i", False), ("b,i", True)])
def test_whether_a_run_had_settled_is_looked_up_where_a_cell_is_tested(by_site, run, test, settled):
    assert run(by_site, "sites", **{"slices.test": test}).settled == {"ssim": settled}


def test_a_table_by_site_is_measured_on_validation_samples_where_that_is_asked(by_site, run):
    changes = {"evaluation.on": "validation", "partition.validation_share": 0.25}
    record = run(by_site, "sites", **changes, **{"slices.test": "f"})
    # Two of the eight subjects of each of three sites, of six slices each.
    assert record.statistic == "on 36 samples of validation, after training"
    assert record.settled == {"ssim": True}


@pytest.mark.parametrize(("measure", "sites"), [("by-site", set()), ("error-maps", {"f,i"})])
def test_a_method_may_return_a_module_where_its_network_is_asked_for(by_site, run, measure, sites):
    record = run(replace(by_site, measure=measure), "module", **{"slices.test": "f,i"})
    assert (record.status, record.reason) == (OK, "")
    assert {m.metric for m in record.measurements} == {"psnr", "ssim"}  # nothing crossed
    assert record.settled == {}  # of one look
    pictured = unpack(record.arrays) if record.arrays else {}
    assert {name.partition("/")[2] for name in pictured} == sites


def test_a_curve_has_a_value_for_every_epoch(cell, run):
    curve = replace(cell, measure="curve")
    record = run(curve, "clients")
    assert record.measurements == (
        Measurement("accuracy", 31.25, "epoch=1", 2, 2),
        Measurement("accuracy", 62.5, "epoch=2", 2, 2),
    )
    assert record.statistic == "epochs, mean over models"
    some = run(curve, "clients", **{"evaluation.looks": 2})
    assert "of every epoch and round: set evaluation.looks to 0" in some.reason


def test_every_metric_of_a_table_is_measured_and_only_shares_are_in_percent(cell, run):
    assert run(replace(cell, metrics=("accuracy", "hd95")), "two metrics").measurements == (
        Measurement("accuracy", 50.0, "", 1, 1),
        Measurement("hd95", 7.0, "", 1, 1),
    )


def test_cells_that_differ_in_what_they_measure_share_the_fit(cell, run):
    first = run(cell)
    second = run(replace(cell, unit="fraction", measure="curve"))
    assert first.stages == {"computed": 1, "reused": 0}
    assert second.stages == {"computed": 0, "reused": 1}
    assert first.bytes_by_kind == second.bytes_by_kind
    assert set(first.bytes_by_kind) == {"up/labels", "down/labels"}
    assert (first.bytes_up, first.bytes_down) == (second.bytes_up, second.bytes_down)


def test_a_record_names_the_data_of_the_clients_and_of_the_public_set(cell, run):
    record = run(cell)
    assert (record.data, record.public) == (asdict(cell.data), asdict(cell.public))
    used = [record.public[name] for name in ("asked", "used", "origin")]
    assert used == ["cifar100", "shapes-100", "synthetic"]
    assert run(replace(cell, public=None)).public == {}


def test_what_a_method_sends_without_saying_so_fails_its_cell(cell, run):
    for _ in range(2):  # also when the fit is taken from the cache
        record = run(cell, "undeclared")
        assert (record.status, record.measurements) == (FAILED, ())
        assert "scripted sends features without declaring it in `sends`" in record.reason


def test_a_private_run_of_which_the_accountant_hears_nothing_has_no_epsilon(cell, run):
    private = {"privacy.dp": "yes", "privacy.epsilon": 8.0, "privacy.mechanism": "pate"}
    record = run(cell, **private)
    assert (record.status, record.epsilon) == (FAILED, None)
    assert "told the accountant nothing of what clients [0] send" in record.reason


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("large", "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
        ("library", "RuntimeError: the recording did not end"),
    ],
)
def test_a_cell_for_which_a_devices_memory_is_too_small_says_what_to_do(cell, run, what, said):
    record = run(cell, what)
    assert record.status == FAILED
    assert record.reason.startswith("out of memory: try fewer --jobs or --stacked")
    assert said in record.reason


@pytest.mark.parametrize("what", ["fault", "fault of a library"])
def test_a_fault_of_cuda_is_told_from_a_methods_own(cell, run, what):
    record = run(cell, what)
    assert record.status == FAILED
    assert record.reason.startswith("device fault: ")


def test_a_method_that_returns_nothing_fails_its_cell(cell, run):
    record = run(cell, "fails")
    assert record.status == FAILED
    assert record.reason.startswith("TypeError: fit returned list; it must return a module")


ONE_STEP = {"fediod.epochs": 1, "fediod.steps": 1, "local.epochs": 1}


def test_generated_images_are_scored_with_their_extractor_named(run):
    [found] = expand(*registry.find_table("fediod/table7"), Selection(only={"row": "gan"}))
    record = run(found, **ONE_STEP)
    assert record.status == OK, record.reason
    assert [m.metric for m in record.measurements] == ["inception-score", "adapted-inception-score"]
    plain, adapted = (m.value for m in record.measurements)
    assert 1 <= plain <= 64
    assert 1 <= adapted <= 10
    assert (
        record.statistic
        == "64 images in one split; plain score by EfficientNet-Lite0 (ImageNet-1k), not"
        " Inception-v3, adapted by 4 local models (resnet8-narrow)"
    )
    assert record.config["evaluation.extractor"] == "efficientnet-lite0"
    none = run(found, **ONE_STEP, **{"fediod.samples": 0})
    assert none.status == FAILED
    assert "no images to measure; set fediod.samples above 0" in none.reason


# -- what it leaves behind --

BRIEF = {
    "partition.clients": 5,
    "partition.pool_limit": 100,
    "partition.public_limit": 50,
    "local.epochs": 1,
    "server.epochs": 1,
    "evaluation.last_epochs": 1,
}


def test_a_cell_leaves_its_process_as_it_found_it(tmp_path):
    def state():
        files = {name: str(getattr(module, "__file__", "")) for name, module in sys.modules.items()}
        modules = {
            name: {**vars(sys.modules[name])}
            for name, file in files.items()
            if file.startswith(str(ROOT)) and "site-packages" not in file  # of .tox
        }
        modules |= {"torch.nn.functional": {**vars(torch.nn.functional)}}
        generators = (random.getstate(), np.random.get_state()[1].tolist())
        return flags(), {**os.environ}, generators, torch.get_rng_state().tolist(), modules

    selection = Selection(
        only={"row": "global-dlad", "dataset": "cifar10", "distribution": "iid"},
        overrides=tuple(BRIEF.items()),
    )
    [found] = expand(*registry.find_table("dlad/table2"), selection)
    *before, bound = state()
    record, trace = run_cell(found, Context(str(tmp_path / "stages")))
    assert record.status == OK, trace
    *after, now = state()
    assert after == before
    assert not [
        f"{module}.{name}"
        for module, names in bound.items()
        for name, value in names.items()
        if now[module].get(name) is not value
    ]


# -- where and with what --


def test_a_record_names_the_commit_whether_files_were_changed_and_the_packages(cell, tmp_path):
    record, _ = run_cell(cell, Context(str(tmp_path / "stages"), commit="abc", dirty=True))
    assert (record.machine["commit"], record.machine["dirty"]) == ("abc", True)
    assert {"torch", "numpy", "scikit-learn", "opacus"} <= set(record.machine["packages"])


def test_the_commit_is_plain_and_changes_are_told_apart(tmp_path, monkeypatch):
    def git(*words):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        return subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert machine.git_commit() == ("", False)
    git("init", "-q")
    (tmp_path / "code.py").write_text("a")
    git("add", "code.py")
    git("commit", "-qm", "one")
    (tmp_path / "notes").write_text("no code")
    assert machine.git_commit() == (git("rev-parse", "HEAD"), False)
    (tmp_path / "method.py").write_text("a new file is a new method")
    assert machine.git_commit() == (git("rev-parse", "HEAD"), True)
    (tmp_path / "method.py").unlink()
    (tmp_path / "code.py").write_text("b")
    assert machine.git_commit() == (git("rev-parse", "HEAD"), True)
    monkeypatch.setattr(machine, "ROOT", tmp_path / "env" / "fedtables")  # installed in a project
    assert machine.git_commit() == ("", False)


# -- devices --


def test_on_cuda_products_of_matrices_are_asked_to_repeat_themselves(monkeypatch):
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda mode, warn_only: None)
    monkeypatch.setattr(os, "environ", environment := {})
    prepare_device("cpu", 1, DEFAULT)
    assert not environment
    prepare_device("cuda", 1, DEFAULT)
    assert environment == {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    environment["CUBLAS_WORKSPACE_CONFIG"] = ":16:8"  # the user's own
    prepare_device("cuda", 1, DEFAULT)
    assert environment == {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}


def test_a_record_names_what_decides_rounding_and_how_large_the_test_set_is(cell, run, monkeypatch):
    for name in RESTRICTING:
        monkeypatch.delenv(name, raising=False)
    chosen = kernels()
    assert chosen.startswith(torch.backends.cpu.get_cpu_capability())
    record = run(cell)
    assert record.machine["kernels"] == chosen
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert kernels() == f"{chosen}, ONEDNN_MAX_CPU_ISA=AVX2"
    assert record.test_samples == dict(cell.config)["partition.test_limit"] > 0
