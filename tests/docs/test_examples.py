"""The examples in docs/examples run as they are, and show what the command makes."""

import os
import re
import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from fedtables.results.frame import load
from fedtables.results.sourcecode import ROOT
from tests.forking import run_forked


@pytest.fixture(scope="module")
def example(tmp_path_factory, shared_home):
    """What the notebook prints, its results folder, and the environment that it ran in."""
    folder = tmp_path_factory.mktemp("example")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        **shared_home,
    }
    script = "docs.examples.notebook"
    done = run_forked(script, str(folder / "results"), timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout, folder / "results", environment


def test_the_notebook_shows_measured_beside_published(example):
    printed, folder, _ = example
    cells = load(folder)
    means = cells.groupby("row")["value"].mean()
    assert len(cells) == 6  # three rows, two seeds
    assert "published" in printed
    for row in means.index:
        assert row in printed
        assert f"{means[row]:.6f}" in printed
    assert (folder / "notebook.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_takes_the_notebooks_cells_and_writes_the_same_files(
    example, command, tmp_path
):
    _, folder, environment = example
    where = ("dataset=cifar10", "alpha=1", "row=fedavg,fedmd,fedkd")
    only = [word for each in where for word in ("--only", each)]
    words = ("reproduce", "fediod/table1", *only, "--seeds", "0,1", "--results", str(tmp_path))
    done = command(*words, **environment)
    assert done.returncode == 0, done.stderr
    assert "6 finished before, 0 to run" in done.stdout
    for suffix in ("csv", "md", "records.jsonl", "claims.csv", "layout.json", "run.toml"):
        ours, commands = (home / f"smoke/fediod/table1.{suffix}" for home in (folder, tmp_path))
        assert ours.read_bytes() == commands.read_bytes()
    table = pd.read_csv(tmp_path / "smoke/fediod/table1.csv").set_index("row")["value"]
    means = load(folder).groupby("row")["value"].mean()
    assert means.to_dict() == pytest.approx(table.to_dict())


@pytest.mark.slow
def test_the_lines_for_weights_and_biases_give_it_every_point(tmp_path, monkeypatch):
    [code] = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "pictures.md").read_text(), re.DOTALL
    )
    logged = []
    run = SimpleNamespace(log=logged.append, finish=lambda: logged.append("finished"))
    wandb = SimpleNamespace(init=lambda project, name, reinit: run)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert logged[-1] == "finished"
    assert any(point.keys() == {"bytes/up", "step"} and point["step"] == 3 for point in logged[:-1])


@pytest.fixture
def ran(monkeypatch):
    """What names a page's lines about `about` leave, with words replaced."""

    def run(page, about, **replaced):
        texts = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
        [code] = (text for text in texts if about in text)
        for old, new in replaced.items():
            assert old in code
            code = code.replace(old, new)
        monkeypatch.chdir(ROOT)
        names = {}
        exec(code, names)
        return names

    return run


@pytest.fixture
def shown(ran, tmp_path):
    """What a page's lines print by round, by series, under smoke and with words replaced."""

    def run(page, **replaced):
        smoke = f'"smoke", results={str(tmp_path)!r}, quiet=True,'
        frame = ran(f"results/{page}", "-by-round", **{'"cpu",': smoke, **replaced})["frame"]
        table = frame.pivot_table(index="series", columns="round", values="value")
        return {series: values.dropna().tolist() for series, values in table.iterrows()}

    return run


@pytest.mark.slow
def test_fedmd_is_shown_by_round(shown):
    lines = shown("fedad-appendix.md", **{"[0, 1, 2]": "[0]", '"bf16"': '""'})
    assert len(lines["mauc of client 1"]) == 3  # two rounds, and the look at their end
    assert len({*lines["mauc of contrast alone"]}) == 1
    assert all(0 < share <= 100 for share in lines["of it in one direction (%)"])


@pytest.mark.slow
def test_fedavgm_without_momentum_is_fedavg_by_round(shown):
    rates = "((1, 0), (0.1, 0.9), (0.3, 0.9), (1, 0.9))"
    lines = shown("fediod-appendix.md", **{rates: "((1, 0),)"})
    assert len(lines["norm of the average's update"]) == 3
    assert lines["norm of the average's update"] == lines["norm of the server's step"]
    assert lines["cosine of step and update"] == pytest.approx([1, 1, 1], rel=1e-5)
    averaged = lines["accuracy of the clients' average"]
    assert averaged == lines["accuracy of the global model"]


@pytest.mark.slow
def test_seeds_are_moved_apart(ran, tmp_path, capsys):
    smoke = {'"cpu"': '"smoke"', '"runs"': repr(str(tmp_path)), 'Execution("bf16")': "Execution()"}
    one = {"fedavg,feddf": "fedavg", '"feddf.rounds=5"': ""}
    ran("results/fedad-appendix.md", "seed_axes", **smoke, **one)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rest = "weights+sampling+shuffling"
    assert [line[:3] for line in lines] == [
        [seed, axes, "fedavg"]
        for seed, axes in (
            *(("0", "partition"), ("1", "partition")),
            *(("1", rest), ("1", f"partition+{rest}")),
        )
    ]
    assert len({line[-2] for line in lines}) == 4
