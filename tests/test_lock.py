"""`pylock.toml` has a version of everything, and those of `constraints.txt`, and fits
`pyproject.toml`.
"""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fedtables.results.sourcecode import ROOT


@pytest.fixture(scope="module")
def locked():
    """The versions of each package: several where they hang on the version of Python."""
    versions = {}
    for package in tomllib.loads((ROOT / "pylock.toml").read_text())["packages"]:
        versions.setdefault(package["name"], set()).add(package["version"])
    return versions


def test_the_lock_has_the_constraints_versions(locked):
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: locked.get(name) for name in pins} == {name: {pins[name]} for name in pins}


def test_all_that_the_project_asks_for_is_locked_within_its_bounds(locked):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    asked = map(Requirement, [*project["dependencies"], *(one for e in extras for one in e)])
    for one in asked:
        if one.name != project["name"]:
            versions = locked[canonicalize_name(one.name)]
            assert all(one.specifier.contains(version) for version in versions), one


def test_files_come_from_the_public_index_alone_and_each_has_a_digest():
    text = (ROOT / "pylock.toml").read_text()
    assert {*re.findall(r'url = "(\w+://[^/"]+)', text)} == {"https://files.pythonhosted.org"}
    assert text.count("url = ") == text.count("sha256 = ")
    assert "path = " not in text
