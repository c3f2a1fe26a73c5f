"""docs/howto/add-a-method.md shows the hooks of methods as the code has them."""

import ast
import inspect
import textwrap
from types import SimpleNamespace

import pytest

from fedtables.baselines.fedavg_plus import FedAvgPlus
from fedtables.benchmarks.scenarios.configuration import read_section
from fedtables.methods.fedavg import FedAvg
from fedtables.results.sourcecode import ROOT
from tests.docs.adding import block_with

HOOKS = (
    *("network", "server_state", "client_state"),
    *("penalty", "payload", "client_updates", "aggregate"),
)


def shown(text: str) -> str:
    """A signature without line breaks and the commas before them."""
    return " ".join(text.split()).replace("( ", "(").replace(", )", ")").replace(" )", ")")


def signature(method, hook):
    """`penalty(self, ...) -> Penalty | None`, as it is written."""
    source = textwrap.dedent(inspect.getsource(getattr(method, hook)))
    [function] = ast.parse(source).body
    return f"{hook}({ast.unparse(function.args)}) -> {ast.unparse(function.returns)}"


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_shown_with_its_signature(hook):
    hooks = shown(block_with("def aggregate(self, this: Round"))
    assert f"def {signature(FedAvg, hook)}: ..." in hooks


def test_the_other_familys_hook_is_shown_with_its_signature():
    page = (ROOT / "docs" / "howto" / "add-a-method.md").read_text()
    assert f"`{signature(FedAvgPlus, 'penalty')}`" in page


def test_no_hook_is_left_out():
    """What methods that derive from FedAvg override beside their fields."""
    overridden = {
        name
        for derived in FedAvg.__subclasses__()
        for name in vars(derived)
        if callable(getattr(FedAvg, name, None)) and not name.startswith("__")
    }
    assert overridden <= set(HOOKS)


def run(words: str) -> dict:
    """What a block of the pages defines."""
    names: dict = {}
    exec(block_with(words), names)
    return names


def test_the_shown_measure_takes_its_number():
    fitted = [SimpleNamespace(history={"accuracy": [0.1, last]}) for last in (0.4, 0.6)]
    taken = run("class Spread")["MEASURES"]["spread"].take(
        SimpleNamespace(fitted=fitted, percent=100)
    )
    [measured] = taken.measurements
    assert (measured.metric, measured.value) == ("spread", pytest.approx(10))


def test_the_shown_settings_of_a_scenario_are_read():
    settings = run("class FindingsSettings")["FindingsSettings"]
    assert read_section({"findings.uncertain": "ones"}, "findings", settings).uncertain == "ones"
