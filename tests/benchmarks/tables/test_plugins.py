"""Plug-ins give methods, networks and data sets; a cell that uses one has its code, no other."""

import pytest

from fedtables.benchmarks.running.events import Context
from fedtables.benchmarks.running.follow import Follower
from fedtables.benchmarks.running.pool import run_pool
from fedtables.benchmarks.running.ray_executor import refusal
from fedtables.benchmarks.running.trial import try_settings
from fedtables.benchmarks.running.verify import rebuild
from fedtables.benchmarks.scenarios.configuration import NetworkSettings
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.request import takes
from fedtables.benchmarks.tables.selection import Selection, typed_settings
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.datasets import catalogue as data
from fedtables.datasets.source import DataError
from fedtables.models import catalogue as models
from fedtables.models.entry import ModelError
from fedtables.results.files import RefusedError
from fedtables.results.plugins import plugged_in
from fedtables.results.record import OK
from tests.docs.adding import DATA, DERIVED, NETWORK

PAPER, TABLE = registry.find_table("dlad/trial")
BRIEF = {"partition.clients": 5, "partition.pool_limit": 100, "local.epochs": 1}
BRIEF |= {"evaluation.last_epochs": 1}
OWN = {"network.resnet": "my-net", "data.name": "squares"}
NETWORKS = "from fedtables.models.entry import NetworkEntry\nNETWORKS = "
SOURCES = "from fedtables.datasets.source import DataSource\nSOURCES = "


@pytest.fixture
def files(tmp_path):
    """The network and the data set of docs/howto/add-data.md as files."""
    paths = [tmp_path / "my_net.py", tmp_path / "my_data.py"]
    for path, text in zip(paths, (NETWORK, DATA), strict=True):
        path.write_text(text)
    return paths


def cells(plugins, settings=OWN, row="client-resnet", **selection):
    """The cells of a row of the trial, in the plug-ins' use."""
    with registry.used(plugins):
        chosen = Selection(
            only={"row": row, "distribution": "iid"},
            overrides=typed_settings(BRIEF | settings, PAPER),
            **selection,
        )
        return expand(PAPER, TABLE, chosen)


# -- what a file may define --


def test_a_file_may_define_all_three_and_be_a_package(tmp_path):
    folder = tmp_path / "damped"
    folder.mkdir()
    for name, text in (("net", NETWORK), ("data", DATA), ("damped", DERIVED)):
        (folder / f"{name}.py").write_text(text)
    shown = "from .damped import Damped\nfrom .data import SOURCES\nfrom .net import NETWORKS\n"
    (folder / "__init__.py").write_text(shown)
    with registry.used([folder]):
        assert registry.find_method("damped").folder == "plugin"
        assert models.build("my-net", 1, 10, 16).built_as[0] == "my-net"
        assert len(data.load("squares")["test"]) == 500
    [cell] = cells([folder], row="damped", add=("damped",))
    assert cell.plugins == (str(folder),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{NETWORKS}[1]", "NETWORKS of .*own.py cannot be read: AttributeError"),
        (f"{NETWORKS}{{'mine': 1}}", "NETWORKS of .*own.py: 1 is not a NetworkEntry"),
        (f"{NETWORKS}{{'a+b': NetworkEntry(print)}}", "nothing can be called 'a\\+b'"),
        (f"{NETWORKS}{{1: NetworkEntry(print)}}", "nothing can be called 1"),
        (f"{NETWORKS}{{'cnn': NetworkEntry(print)}}", "'cnn': in .*small.py and in .*own.py"),
        (f"{SOURCES}['digits']", "SOURCES of .*own.py cannot be read: AttributeError"),
        (f"{SOURCES}[DataSource('mine')]", "cannot be imported: TypeError"),
        (DATA.replace('"squares"', '"digits"'), "'digits': in .*digits.py and in .*own.py"),
    ],
)
def test_a_file_that_defines_nothing_of_use_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "own.py"
    path.write_text(text)
    with pytest.raises(RefusedError, match=message) as told, registry.used([path]):
        pass
    assert "\n" not in str(told.value)


def test_a_network_that_makes_something_else_than_it_declares_is_refused(files):
    files[0].write_text(NETWORK.replace("16, outputs", "16, outputs + 1"))
    cell, *_ = cells(files)
    with registry.used(files), pytest.raises(SpecError, match=r"makes \(2, 11\) .* are \(2, 10\)"):
        try_settings([cell], Selection(overrides=tuple(OWN.items())))


def test_a_setting_that_names_no_network_is_told_near_ones(files):
    with registry.used(files), pytest.raises(SpecError, match="'my-nett'; did you mean my-net"):
        NetworkSettings.names("resnet", "my-nett")


# -- when it is in use --


def test_a_plug_in_is_in_use_while_a_command_runs_and_no_longer(files):
    @takes("plugins", typed=True)
    def command(request):
        return sorted(plugged_in(), key=str)

    @takes("plugins", typed=True)
    @takes("jobs", typed=True)
    def with_more(request, other):
        return sorted(plugged_in(), key=str)

    assert len(command(plugins=files)) == len(with_more(plugins=files)) == 2
    assert command() == [] == list(plugged_in())
    with pytest.raises(ModelError, match="unknown network 'my-net'"):
        models.entry("my-net")
    with pytest.raises(DataError, match="unknown data set 'squares'"):
        data.source("squares")


def test_one_name_in_two_commands_is_two_networks_and_two_data_sets(files, tmp_path):
    others = [tmp_path / "other" / path.name for path in files]
    others[0].parent.mkdir()
    others[0].write_text(NETWORK.replace("16", "24"))
    others[1].write_text(DATA.replace("100, (", "90, ("))

    def seen(paths):
        with registry.used(paths):
            shape = models.feature_shape("my-net", 1, 16)
            return shape, models.network_digest("my-net"), data.resolve("squares").digest

    first, other = seen(files), seen(others)
    assert (first[0], other[0]) == ((16, 8, 8), (24, 8, 8))
    assert not {*first} & {*other}
    assert seen(files) == first


# -- keys and code --


def test_a_cell_has_the_code_of_the_plug_ins_that_it_uses_and_of_no_others(files):
    network, data_set = map(str, files)
    alone = {"data.name": "digits", "network.resnet": "cnn-small"}
    [plain] = cells([], alone)
    [beside] = cells(files, alone)
    assert (beside.key, beside.code, beside.plugins) == (plain.key, plain.code, ())
    [both], [of_network] = cells(files), cells(files, alone | {"network.resnet": "my-net"})
    assert (both.plugins, of_network.plugins) == ((network, data_set), (network,))
    before = both.code, of_network.code
    files[1].write_text(f"{DATA}\n# a comment\n")
    assert (both.code, of_network.code) == before
    files[1].write_text(f"{DATA}\nMORE = 1\n")
    assert both.code != before[0]
    assert (both.key, of_network.code) == (cells(files)[0].key, before[1])
    assert {"numpy", "torch"} <= both.libraries.keys()


def test_a_network_with_group_normalisation_takes_the_place_of_its_own_in_private_runs(tmp_path):
    path = tmp_path / "my_net.py"
    path.write_text(f"{NETWORK}\nNETWORKS['my-net-gn'] = NetworkEntry(Small)\n")
    private = {"data.name": "digits", "network.resnet": "my-net", "privacy.dp": "yes"}
    [cell] = cells([path], {**private, "privacy.epsilon": 10.0})
    assert dict(cell.config)["network.resnet"] == "my-net-gn"
    assert cell.plugins == (str(path),)


# -- where cells run --


def test_a_cell_runs_in_a_worker_is_planned_and_verified(files, tmp_path):
    [cell] = cells(files)
    [record] = [
        event.record
        for event in run_pool([cell], Context(str(tmp_path / "stages")), jobs=1)
        if event.record is not None
    ]
    assert (record.status, record.reason) == (OK, "")
    assert (record.data["used"], record.data["origin"]) == ("squares", "synthetic")
    assert refusal(cell, cell.code, cell.libraries) == ""
    with registry.used(files):
        assert rebuild(record) == cell
        assert Follower().follow(cell).asks
    assert record.plugins == ("my_net.py", "my_data.py")
    with pytest.raises(SpecError, match=r"plug-in my_data\.py is not given"):
        rebuild(record)
