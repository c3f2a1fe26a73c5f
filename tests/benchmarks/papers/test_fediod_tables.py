"""FedIOD's tables from the command line share teachers and fits."""

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
