"""FedIOD's tables from the command line: shared teachers and fits, released rows, networks that
differ.
"""

import csv
import re
import shlex

import pytest


@pytest.fixture(scope="module")
def tables(tmp_path_factory, module_command):
    """Tables 6 and 7, then Table 1's FedIOD cell of the same setting, into one cache."""
    results = tmp_path_factory.mktemp("fediod")
    outcomes = [
        module_command("reproduce", "fediod/table6", "fediod/table7", "--results", str(results)),
        module_command(
            *shlex.split("reproduce fediod/table1 --methods +fediod-released"),
            *shlex.split("--only method=fediod,fedkd-gong --only dataset=cifar10 --only alpha=0.1"),
            *("--results", str(results)),
        ),
    ]
    for outcome in outcomes:
        assert outcome.returncode == 0, outcome.stdout[-2000:] + outcome.stderr
    return results / "smoke" / "fediod"


def lines(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def events(folder, kind):
    """How often stages of a kind were computed and reused, by the logs."""
    text = "".join(
        (folder / f"{table}.log").read_text() for table in ("table1", "table6", "table7")
    )
    found = re.findall(rf": {kind} .* (computed|reused)", text)
    return found.count("computed"), found.count("reused")


def test_teachers_are_trained_once_for_all_three_tables(tables):
    assert events(tables, "local-model")[0] == 4


def test_cells_that_differ_only_in_what_they_measure_share_a_fit(tables):
    # Table 6 has eight fits; Table 7 shares four of its five with them, Table 1 its FedIOD; FedKD
    # and the released row are new.
    computed, reused = events(tables, "fit")
    assert computed == 8 + 1 + 2
    assert reused == 4 + 1


def test_the_released_code_stands_beside_the_paper_in_one_table(tables):
    protocols = {line["row"]: line["protocol"] for line in lines(tables / "table1.csv")}
    assert protocols == {"fedkd": "paper", "fediod": "paper", "fediod-released": "released"}
    assert "FedIOD [released]" in (tables / "table1.md").read_text()


def test_a_table_says_which_rows_report_their_best_epoch_and_does_not_rank_them_beside_the_others(
    tables,
):
    page = (tables / "table1.md").read_text().split("## Protocol")[0]
    notes = [text for text in page.splitlines() if text.startswith("- ")]
    assert any(
        text.startswith("- FedIOD [released]: best of 2 epochs or rounds by test accuracy")
        for text in notes
    )
    assert any(": after the last of" in text and "FedIOD [released]" not in text for text in notes)
    bold = {
        text.split(" | ")[0].strip("| ")
        for text in page.splitlines()
        if text.startswith("|") and "**" in text
    }
    assert "FedIOD [released]" not in bold


def test_networks_that_differ_suit_distillation_and_are_refused_by_averaging(command, tmp_path):
    done = command(
        *shlex.split("reproduce fediod/table1 --set network.client=resnet8+cnn-small"),
        *shlex.split("--only row=fedavg,fedmd,fediod --only dataset=cifar10 --only alpha=1"),
        *("--results", str(tmp_path)),
    )
    assert done.returncode == 1
    (path,) = (tmp_path / "smoke" / "fediod").glob("table1.set-*.claims.csv")
    status = {
        line["row"]: line["status"]
        for line in lines(path.with_name(path.name.replace(".claims", "")))
    }
    assert (status["fedmd"], status["fediod"]) == ("ok", "ok")
    assert re.search(
        "averages parameters.*cnn-small, resnet8-narrow.*model-agnostic", status["fedavg"]
    )
    assert not (tmp_path / "smoke" / "fediod" / "table1.csv").exists()
