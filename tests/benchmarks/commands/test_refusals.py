"""What a user does wrong, and what is wrong with a method of the user's own: one clear message."""

import re
import shlex

import pytest

from tests.benchmarks.commands.tables_of_cli import COLUMN, lines, run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("reproduce dlad/tabel2", "did you mean .*dlad/table2"),
        ("reproduce dlad/table2 --protocol released", "released no code"),
        ("reproduce dlad/table2 --only datset=mnist", "did you mean dataset"),
        ("reproduce dlad/table2 --log-to wandb", "--log-to wandb: no such value"),
        ("reproduce dlad/table2 --require-real", "--require-real: MNIST is needed"),
        (
            "reproduce dlad/table2 --profile cpu --require-real",
            "Run `fedtables data --download mnist`",
        ),
        (
            "reproduce dlad/table2 --precision bf61",
            "--precision bf61: no such value; did you mean bf16",
        ),
        (
            "reproduce dlad/table2 --precision tf32",
            "needs a CUDA device, and this run is on cpu; use fp32 or bf16",
        ),
        (
            "reproduce dlad/table2 --compile graphs",
            "--compile graphs needs a CUDA device, and this run is on cpu; use --compile default",
        ),
        (
            "reproduce dlad/table2 --stacked 4 --compile default",
            "--stacked 4: .*use one of stacked and compile",
        ),
        (
            "reproduce fediod/table1 --set privacy.epsilon=3",
            "fedgen has no private form under dp-sgd; it has none at all",
        ),
        (
            "reproduce dlad/table2 --only dataset=mnist --only row=global-avg"
            " --set privacy.epsilon=8",
            r"epsilon is of one sample, but clients hold one up to \d+ times here",
        ),
        ("sweep fediod/table7", "no number per row and column to sweep"),
        ("partition --clients 7 --dataset digits", "use 5 or 10"),
        ("plan --within 5", "--within needs a table, and a GPU or the profile smoke or cpu"),
        ("plan dlad/table2 --within 5 --profile gpu", "a GPU or the profile smoke or cpu"),
        ("partition --kind dirichlet", "--kind dirichlet: .*did you mean dirichlet-feddf"),
        ("partition --kind iid,by-site", "by-site is for samples without .*dirichlet-fedkd"),
        ("verify results/embedded --plugin missing.py", r"missing\.py: no such file"),
    ],
)
def test_what_a_user_does_wrong_gets_one_clear_message(tmp_path, arguments, message):
    done = run(tmp_path, *shlex.split(arguments), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 2
    assert re.search(message, " ".join(done.stderr.split())), done.stderr
    assert "Traceback" not in done.stderr


def test_compiling_without_a_compiler_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "empty").mkdir()
    compiled = ("reproduce", "dlad/table2", *COLUMN, "--compile", "default")
    done = run(tmp_path, *compiled, PATH=str(tmp_path / "empty"), CXX="")
    assert done.returncode == 2
    assert (
        "--compile default needs a C++ compiler; install g++ or clang++, or leave --compile off"
        in " ".join(done.stderr.split())
    )
    assert not (tmp_path / "cache" / "cells").exists()


def test_a_results_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "results").write_text("a file where the folder should be")
    done = run(tmp_path, "reproduce", "dlad/table2", *COLUMN)
    assert done.returncode == 2
    assert "cannot write" in done.stderr
    assert "--results FOLDER" in done.stderr
    assert not (tmp_path / "cache" / "cells").exists()


# -- methods of the user's own --


@pytest.fixture
def plugin(tmp_path):
    """Writes a method with this body, whose lines begin with the ninth, and gives its file."""

    def write(*fit, sends="frozenset()"):
        path = tmp_path / "own.py"
        head = (
            "from dataclasses import dataclass\nimport torch\n"
            "from fedtables.federation.method import Method\n\n@dataclass(frozen=True)\n"
            f"class Own(Method):\n    sends = {sends}\n"
            "    def fit(self, federation):\n"
        )
        path.write_text(head + "".join(f"        {line}\n" for line in fit))
        return str(path)

    return write


def test_check_names_the_broken_promise(tmp_path, plugin):
    path = plugin("return federation.local_models()", sends="frozenset({'logits'})")
    check = run(tmp_path, "check", "own", "--plugin", path)
    assert check.returncode == 1
    assert "broken" in check.stdout
    assert f"ledger shows [] going up ({path}:8)" in check.stdout


def test_check_tells_a_wrong_type_in_one_line_and_where(tmp_path, plugin):
    path = plugin("return [m.state for m in federation.local_models()]")
    check = run(tmp_path, "check", "own", "--plugin", path)
    assert check.returncode == 1
    found = check.stdout.splitlines()
    learns, repeats, *others = (line for line in found if line.endswith(f"({path}:8)"))
    for broken in (learns, repeats):
        assert broken.startswith("broken")
        assert "fit returned list of dict; it must return a module" in broken
    assert others
    assert all(line.startswith("not judged") for line in others)


def test_check_tells_where_a_method_that_does_not_run_ends(tmp_path, plugin):
    path = plugin("nothing = 0", "return 1 / nothing")
    check = run(tmp_path, "check", "own", "--plugin", path)
    assert check.returncode == 1
    text = " ".join(check.stderr.split())
    assert f"own does not run: ZeroDivisionError: division by zero ({path}:10)" in text


def test_a_diverged_run_is_shown_as_failed_and_the_others_are_kept(tmp_path, plugin):
    path = plugin("return federation.distill(torch.full((len(federation.public), 10), torch.inf))")
    added = ("reproduce", "dlad/table2", *COLUMN, "--plugin", path, "--methods", "+own")
    done = run(tmp_path, *added, "--only", "row=client-resnet,own")
    assert done.returncode == 1
    assert "DivergedError" in done.stdout
    found = {line["row"]: line for line in lines(tmp_path)}
    assert found["own"]["status"].startswith("failed: DivergedError")
    assert found["own"]["value"] == ""
    assert found["client-resnet"]["status"] == "ok"
    assert run(tmp_path, *added, "--only", "row=client-resnet").returncode == 0
    assert [line["status"].split(":")[0] for line in lines(tmp_path)] == ["ok", "failed"]
