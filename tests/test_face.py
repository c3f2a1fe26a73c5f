"""What a method's author sees of a federation is small, and planning is no concern of a method."""

import ast
import re
from pathlib import Path

import pytest

from fedtables.results.sourcecode import ROOT
from tests.federation.tiny import make_federation

METHODS = sorted(
    path for folder in ("methods", "baselines") for path in (ROOT / folder).rglob("*.py")
)


def test_the_face_of_a_federation_has_at_most_25_names_and_each_is_in_the_docs():
    federation = make_federation()
    names = [name for name in dir(federation) if not name.startswith("_")]
    assert len(names) <= 25, names
    page = (ROOT / "docs" / "howto" / "add-a-method.md").read_text()
    assert [name for name in names if f"`{name}`" not in page and f"`{name}(" not in page] == []


@pytest.mark.parametrize("path", METHODS, ids=lambda p: str(Path(p).relative_to(ROOT)))
def test_no_method_asks_whether_it_is_planned_or_reaches_for_what_measures_are_given(path):
    """The test set, the stage cache and the accountant are for whoever runs a method."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {
        getattr(node, "attr", getattr(node, "id", getattr(node, "value", None)))
        for node in nodes
        if isinstance(node, ast.Attribute | ast.Name | ast.Constant)
    }
    assert not {"is_meta", "meta", "active_meter", "planned"} & {
        n for n in names if isinstance(n, str)
    }
    assert not re.search(r"generator is (not )?None", path.read_text())
    attributes = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    assert not {"test_set", "cache", "snapshots", "protection", "labels_of_public"} & attributes
