"""CI's files agree with each other and with what docs/howto/regression.md shows. actionlint checks
them in CI.
"""

import configparser
import re
import shlex
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CALLED = ROOT / ".github" / "workflows" / "regression.yml"


def read(path: Path) -> dict:
    """A workflow; its key `on` is True to YAML."""
    return yaml.safe_load(path.read_text())


@pytest.fixture(scope="module")
def shown() -> dict:
    """The workflow that the page shows for other repositories."""
    page = (ROOT / "docs" / "howto" / "regression.md").read_text()
    block = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert block is not None
    return yaml.safe_load(block[1])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_workflow_says_its_rights_and_runs_no_code_of_a_fork_with_more(path):
    workflow = read(path)
    assert "permissions" in workflow
    triggers = workflow[True]
    assert "pull_request_target" not in triggers
    steps = [step for job in workflow["jobs"].values() for step in job.get("steps", ())]
    uses = [step["uses"] for step in steps if "uses" in step]
    assert all(re.search(r"@v\d|:\d", use) for use in uses)
    if "workflow_run" in triggers:
        assert not any("checkout" in use for use in uses)
    assert all("${{" not in step.get("run", "") for step in steps)


def test_the_page_and_ci_call_the_same_workflow_with_inputs_that_it_has(shown):
    inputs = read(CALLED)[True]["workflow_call"]["inputs"]
    here = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["regression"]
    there = shown["jobs"]["compare"]
    assert here["uses"] == f"./{CALLED.relative_to(ROOT)}"
    assert f"/{CALLED.relative_to(ROOT)}@" in there["uses"]
    for call in here, there:
        assert set(call["with"]) <= set(inputs)
    for key in "run", "reference":
        assert (ROOT / here["with"][key]).exists()


def test_the_comment_takes_the_report_of_ci_and_of_the_page(shown):
    comment = read(ROOT / ".github" / "workflows" / "regression-comment.yml")
    assert comment[True]["workflow_run"]["workflows"] == ["ci", shown["name"]]
    script = comment["jobs"]["comment"]["steps"][0]["run"]
    default = read(CALLED)[True]["workflow_call"]["inputs"]["artifact"]["default"]
    assert f"--name {default} " in script
    assert f"name: {default}\n" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "--output report/regression.md" in CALLED.read_text()
    assert "report/regression.md" in script


def test_pre_commit_runs_what_lint_runs():
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    lines = config["testenv:lint"]["commands"].strip().splitlines()
    lint = [shlex.split(line.partition(" -m ")[2]) for line in lines]
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = [shlex.split(hook["entry"].partition(" -m ")[2]) for hook in local["hooks"]]
    assert hooks == lint
