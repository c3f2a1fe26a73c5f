"""Things are found by their place, unknown names offer near ones, duplicates are errors."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.federation.surroundings import flags
from fedtables.results import published
from fedtables.results.sourcecode import code_digest, imported_modules, module_file


def test_all_published_tables_are_listed_and_have_a_spec():
    tables = registry.all_tables().keys()
    assert sum(name.split("/")[1].startswith("table") for name in tables) == 25
    assert {
        f"{key}/{name}" for key in published.papers() for name in published.tables(key)
    } <= tables


def test_every_claim_is_about_one_of_the_tables():
    about = {f"{key}/{c.table}" for key in published.papers() for c in published.claims(key)}
    assert about <= registry.all_tables().keys()


def test_an_unknown_table_offers_near_ones():
    with pytest.raises(SpecError, match=r"did you mean .*dlad/table2"):
        registry.find_table("dlad/tabel2")


def test_an_unknown_method_offers_near_ones():
    with pytest.raises(SpecError, match=r"did you mean .*standalone"):
        registry.find_method("standalon")


FORMER, NOW = "fedkd", "fedkd-gong"


def test_a_former_name_finds_the_method_and_one_line_says_how_it_is_called_now(capsys):
    registry._told.cache_clear()
    entries = [registry.find_method(FORMER) for _ in range(2)]
    assert [entry.name for entry in entries] == [NOW, NOW]
    line = f"{FORMER} is now called {NOW}: FedKD is also the name of Wu et al. 2022, another method"
    assert capsys.readouterr().err == f"{line}.\n"
    assert registry.current(NOW) == NOW
    assert capsys.readouterr().err == ""


def test_a_former_name_is_no_methods_of_its_own(tmp_path):
    assert not registry.aliases().keys() & registry.own_methods().keys()
    path = tmp_path / f"{FORMER}.py"
    path.write_text(PART.format(name="Own", number=0))
    with pytest.raises(SpecError, match=f"cannot be called '{FORMER}', {NOW} was; rename .*{path}"):
        loaded(path)


def loaded(path):
    """The method of a plug-in."""
    with registry.used([path]):
        return registry.find_method(path.stem.replace("_", "-")).load()


def test_a_plugin_may_not_take_a_known_name(tmp_path):
    path = tmp_path / "dlad.py"
    path.write_text(PART.format(name="Own", number=0))
    with pytest.raises(SpecError, match="two methods are called 'dlad'"):
        loaded(path)


def test_a_missing_plugin_is_named():
    with pytest.raises(SpecError, match=r"nowhere\.py: no such file or package"):
        loaded(Path("nowhere.py"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("title = 5", "title of Own is a text, not 5"),
        ("sends = 'parameters'", "sends of Own is a set of payload kinds, not 'parameters'"),
        ("steps: int", "Own has no default for its field steps"),
        ("quick = 5", "quick of Own is a mapping from fields to values, not 5"),
        ("quick = {'step': 1}\n    steps: int = 3", "names 'step', .*did you mean steps"),
        (
            "quick = {'rounds': 0}\n    rounds: Count = 3",
            "its `quick`: .* is a number from 1",
        ),
        ("rounds: Count = 0", "its defaults: .*rounds is a number from 1"),
        ("fit = Method.fit", "has no fit"),
    ],
)
def test_a_plugin_that_no_table_can_show_is_refused_in_one_line(tmp_path, body, message):
    path = tmp_path / "own.py"
    path.write_text(
        "from dataclasses import dataclass\n"
        "from fedtables.federation.method import Method\n"
        "from fedtables.results.numbers import Count\n"
        "@dataclass(frozen=True)\n"
        "class Own(Method):\n"
        "    def fit(self, federation): ...\n"
        f"    {body}\n"
    )
    with pytest.raises(SpecError, match=message) as told:
        loaded(path)
    assert "\n" not in str(told.value)


def test_two_plugins_of_one_name_in_two_folders_are_two(tmp_path):
    paths = [tmp_path / name / "mine.py" for name in ("one", "other")]
    for number, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(PART.format(name=f"Mine{number}", number=number))
    assert [loaded(path).__name__ for path in paths] == ["Mine0", "Mine1"]
    with pytest.raises(SpecError, match="two plug-ins are called 'mine'"):
        with registry.used(paths):
            pass


PART = """
from dataclasses import dataclass

from fedtables.federation.method import Method


@dataclass(frozen=True)
class {name}(Method):
    def fit(self, federation):
        return federation.local_models()[{number}]
"""


def package(folder, init="from .algorithm import First\n", number=0):
    """A method that is a package of three modules; `init` says which of two it exports."""
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(init)
    (folder / "algorithm.py").write_text(PART.format(name="First", number=0))
    (folder / "other.py").write_text(PART.format(name="Second", number=number))
    return folder


def test_a_package_is_a_method_of_its_folders_name(tmp_path):
    with registry.used([package(tmp_path / "in_parts")]):
        entry = registry.find_method("in-parts")
        method = entry.load()
    assert (method.__name__, entry.name, entry.folder) == ("First", "in-parts", "plugin")
    assert code_digest(method.__module__) == entry.code


def test_a_package_exports_one_method(tmp_path):
    both = "from .algorithm import First\nfrom .other import Second\n"
    for name, init, told in (("none", "", "defines no Method"), ("both", both, "it defines 2")):
        with pytest.raises(SpecError, match=told):
            loaded(package(tmp_path / name, init))


def test_a_change_in_any_module_of_a_package_is_a_change_of_the_method(tmp_path):
    def code(name, number):
        with registry.used([package(tmp_path / name / "pack", number=number)]):
            return registry.find_method("pack").code

    assert code("first", 0) == code("again", 0) != code("other", 1)


BESIDE = """
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from beside import NUMBER
from dataclasses import dataclass
from fedtables.federation.method import Method

@dataclass(frozen=True)
class Own(Method):
    number: int = NUMBER

    def fit(self, federation):
        return federation.networks.initial()
"""


@pytest.mark.usefixtures("import_path")
def test_a_plug_in_is_imported_with_what_lies_beside_it_now(tmp_path):
    def number(name, beside):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(BESIDE)
        (folder / "beside.py").write_text(f"NUMBER = {beside}\n")
        return loaded(folder / f"{name}.py")().number

    assert [number("one", 1), number("two", 20), number("one", 300)] == [1, 20, 300]


@pytest.fixture
def import_path(monkeypatch):
    """Plug-ins may add to it, and what they bring goes with them."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("beside", None)


def test_a_folder_that_is_no_package_is_no_method(tmp_path):
    with pytest.raises(SpecError, match="no such file or package"):
        loaded(tmp_path)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1\n", "defines no Method, no NETWORKS and no SOURCES"),
        ("import nowhere_to_be_found\n", "cannot be imported.*nowhere_to_be_found"),
        ("def f(:\n", r"own\.py cannot be imported: SyntaxError"),
        (
            "import torch\ntorch.set_default_dtype(torch.float64)\n",
            "when it is imported: default dtype; do that inside `fit`",
        ),
        (
            "import torch\ntorch.use_deterministic_algorithms(True)\n",
            "when it is imported: deterministic algorithms; do that inside `fit`",
        ),
    ],
)
def test_a_plug_in_that_cannot_be_a_method_is_refused_and_leaves_no_flag(tmp_path, source, told):
    path = tmp_path / "own.py"
    path.write_text(source)
    before = flags()
    with pytest.raises(SpecError, match=told):
        loaded(path)
    assert flags() == before


# -- scenarios --


@pytest.mark.parametrize(
    ("task", "name"),
    [(registry.TASK, "images"), ("segmentation", "images"), ("findings", "films")],
)
def test_the_task_decides_on_the_scenario(task, name):
    assert registry.scenario_module(task) == f"fedtables.benchmarks.scenarios.{name}"
    assert task in registry.find_scenario(task).TASKS


def test_two_measures_of_one_name_are_refused(monkeypatch):
    from fedtables.benchmarks.measures import final, sites

    monkeypatch.setitem(sites.MEASURES, "final", final.MEASURES["final"])
    with pytest.raises(SpecError, match="two measures are called 'final': final and sites"):
        registry.measures.__wrapped__()


def test_two_tables_of_one_name_are_refused(monkeypatch):
    from fedtables.benchmarks.papers import dlad

    twice = replace(dlad.PAPER, tables=(*dlad.PAPER.tables, dlad.PAPER.tables[0]))
    monkeypatch.setattr(dlad, "PAPER", twice)
    with pytest.raises(SpecError, match="two tables are called 'dlad/table1'"):
        registry.papers.__wrapped__()


def test_a_task_that_no_scenario_claims_is_refused_with_near_names():
    with pytest.raises(SpecError, match="has the task 'finding'; did you mean findings"):
        registry.find_scenario("finding")


def test_a_file_with_tasks_is_a_scenario_and_no_task_has_two(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "ROOT", tmp_path)
    monkeypatch.setattr(registry, "scenarios", registry.scenarios.__wrapped__)
    folder = tmp_path / "benchmarks" / "scenarios"
    folder.mkdir(parents=True)
    (folder / "volumes.py").write_text('TASKS = ("organs",)\nimport not_there\n')
    (folder / "helpers.py").write_text("SIZE = 3\n")
    assert registry.scenarios() == {"organs": "fedtables.benchmarks.scenarios.volumes"}
    (folder / "slices.py").write_text('TASKS = ("lesions", "organs")\n')
    with pytest.raises(SpecError, match="two scenarios claim the task 'organs': slices and vol"):
        registry.scenarios()


def test_what_runs_a_cell_imports_no_scenario_by_name():
    """Else the code of every scenario were part of every cell's."""
    waiting, reached = (
        ["fedtables.benchmarks.running.execute", "fedtables.benchmarks.running.plan"],
        set(),
    )
    while waiting:
        module = waiting.pop()
        if module not in reached and module_file(module):
            reached.add(module)
            waiting += imported_modules(module)
    assert "fedtables.benchmarks.scenarios.assembly" in reached
    assert not reached & {*registry.scenarios().values()}
