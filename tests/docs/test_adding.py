"""docs/howto/add-a-method.md shows the hooks of methods as the code has them."""

import ast
import inspect
import textwrap

import pytest

from fedtables.baselines.fedavg_plus import FedAvgPlus
from fedtables.methods.fedavg import FedAvg
from fedtables.results.sourcecode import ROOT
from tests.docs.adding import block_with

HOOKS = ("server_state", "penalty", "payload", "client_updates", "aggregate")


def shown(text: str) -> str:
    """A signature without line breaks and the commas before them."""
    return " ".join(text.split()).replace("( ", "(").replace(", )", ")")


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
