"""What there is and what it costs: `list`, `show`, `data` and `plan`."""

import re
import shlex

import pytest

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.defaults import settled
from fedtables.results.published import published_table
from tests.benchmarks.commands.tables_of_cli import BRIEF, run, table_csv


def test_list_show_and_data_say_what_there_is(tmp_path):
    listed = run(tmp_path, "list").stdout
    assert "scikit-learn digits" in listed
    shown = run(tmp_path, "show", "dlad/table3", "--profile", "cpu").stdout
    assert "0.5845" in shown
    assert re.search(r"local\.epochs\s*│ 50", shown)
    assert "2.30 " in run(tmp_path, "show", "fediod/table7").stdout.replace("2.3 ", "2.30 ")
    assert "--download mnist" in run(tmp_path, "data").stdout


@pytest.mark.parametrize(
    ("table", "claims"), [("fediod/figure8", ["fediod-f8"]), ("fediod/figure8b", [])]
)
def test_show_has_the_claims_about_a_table_and_about_no_other(tmp_path, table, claims):
    assert re.findall(r"claim (\S+):", run(tmp_path, "show", table).stdout) == claims


def test_a_link_to_nothing_spoils_no_other_line_of_what_there_is(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mnist.npz").symlink_to(tmp_path / "gone.npz")
    told = run(tmp_path, "data")
    assert (told.returncode, told.stderr) == (1, "")
    assert re.search(r"unusable mnist: .*mnist\.npz is no file, or a link to nothing", told.stdout)
    assert "absent cifar10" in told.stdout


def test_no_download_begins_before_all_names_are_known(tmp_path):
    for name, message in (("nonsense", "unknown data set 'nonsense'"), ("tnbc", "TNBC has no")):
        told = run(tmp_path, "data", "--download", "mnist", "--download", name)
        assert told.returncode == 2
        assert message in told.stderr
        assert "downloading" not in told.stdout


def test_a_damaged_table_of_labels_spoils_no_other_line_of_what_there_is(tmp_path):
    folder = tmp_path / "data" / "CheXpert-v1.0"
    folder.mkdir(parents=True)
    for name in ("train.csv", "valid.csv"):
        (folder / name).write_text("Path\n")
    assert re.search(r"CheXpert\s*│ unusable", run(tmp_path, "list").stdout)
    told = run(tmp_path, "data")
    assert told.returncode == 1
    assert re.search(r"unusable chexpert: .*train\.csv", told.stdout)
    assert "absent rsna-pneumonia" in told.stdout


def test_plan_counts_bytes_at_the_papers_scale_without_data(tmp_path):
    plan = run(
        tmp_path,
        *shlex.split("plan dlad/table2 --profile paper --only dataset=cinic10 --only"),
        *shlex.split("row=global-avg"),
    )
    assert plan.returncode == 0, plan.stderr
    sent = re.search(r"average-distillation\s*│\s*([\d,]+)", plan.stdout)
    assert sent is not None
    # Ten ResNet-18 for ten classes: 11,181,642 parameters and 9,600 running statistics in four
    # bytes, 20 step counters in eight.
    body = 4 * (11_181_642 + 9_600) + 8 * 20
    assert body * 10 < int(sent[1].replace(",", "")) < body * 10 * 1.001
    assert "CINIC-10 is not present" in plan.stdout
    assert "GPU-hours" in plan.stdout
    assert "weights: resnet18-f37072fd.pth: absent" in plan.stdout
    assert "resnet34" not in plan.stdout  # a network of other papers


def test_plan_sums_tables_and_counts_once_what_they_share(tmp_path):
    file = tmp_path / "hours.md"
    plan = run(
        tmp_path,
        *("plan", "dlad/table2", "dlad/figure2", "--gpu", "h100", "--markdown", str(file)),
        *("--only", "distribution=niid1"),
    )
    assert plan.returncode == 0, plan.stderr
    # The clients of Figure 2 are those of Table II's columns of MNIST.
    rows = {
        line.split("|")[1].strip(" *"): [cell.strip(" *") for cell in line.split("|")[2:-1]]
        for line in file.read_text().splitlines()
        if line.startswith("|")
    }
    cells, stages = ({name: row[i] for name, row in rows.items()} for i in (0, 1))
    assert int(cells["all"]) == int(cells["dlad/table2"]) + int(cells["dlad/figure2"])
    assert int(stages["all"]) < int(stages["dlad/table2"]) + int(stages["dlad/figure2"])
    assert rows["dlad"] == rows["all"]
    assert "NVIDIA H100" in plan.stdout
    assert "A100" not in plan.stdout + file.read_text()


def test_plan_names_known_gpus(tmp_path):
    plan = run(tmp_path, "plan", "dlad/table2", "--gpu", "h10")
    assert plan.returncode == 2
    assert re.search("--gpu h10: .*did you mean h100", plan.stderr)


@pytest.mark.slow
def test_clients_are_trained_once_for_all_rows_and_client_counts(tmp_path):
    columns = ("distribution=niid1", "clients=5,10", "client-model=resnet,resnet+densenet")
    only = (*BRIEF, *(word for column in columns for word in ("--only", column)))
    plan = run(tmp_path, "plan", "dlad/table4", "--profile", "smoke", *only)
    assert plan.returncode == 0, plan.stderr
    trainings = re.search(r"local-model\s*│\s*(\d+)\s*│\s*(\d+)", plan.stdout)
    assert trainings is not None
    # ResNet clients 1-10 serve N = 5 and N = 10; the mixed case takes the first five of them and
    # DenseNet clients 6-10.
    assert int(trainings[2]) == 15
    done = run(tmp_path, "reproduce", "dlad/table4", *only, "--only", "row=global-dlad")
    assert done.returncode == 0, done.stderr
    log = table_csv(tmp_path, "dlad/table4").with_suffix(".log").read_text()
    assert len(re.findall(r"local-model .* computed", log)) == 15
    assert len(re.findall(r"client-classifier .* computed", log)) == 15


@pytest.mark.parametrize("columns", ["80", "60"])
@pytest.mark.parametrize("table", ["dlad/table2", "fedad/table5"])
def test_show_breaks_no_word_on_a_narrow_terminal(command, table, columns):
    shown = command("show", table, COLUMNS=columns).stdout
    assert max(map(len, shown.splitlines())) <= int(columns)
    for cell in published_table(table):
        for word in [cell.row, *cell.column.split()] + [str(cell.value)] * (cell.value is not None):
            assert word in shown
    for setting in registry.find_table(table)[0].settings_of(registry.find_table(table)[1]):
        assert setting.name in shown
        paper = settled(setting).paper
        values = paper.values() if isinstance(paper, dict) else [paper]
        assert all(
            word in shown for value in values for word in str(value).split() if len(word) < 50
        )
