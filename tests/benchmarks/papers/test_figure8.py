"""FedIOD's Figure 8 from the command line: its claim, and the panel that is missing."""

import csv
import re
import shlex


def test_bytes_are_not_judged_at_chance_and_the_panel_that_is_missing_is_named(
    shared_command, tmp_path
):
    """At smoke what both rows reach is no more than a guess among ten classes."""
    words = "reproduce fediod/figure8 --methods +fedkd,+fedmd --results"
    done = shared_command(*shlex.split(words), str(tmp_path))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    finished = tmp_path / "smoke" / "fediod"
    with (finished / "figure8.csv").open(newline="") as stream:
        (common,) = {
            float(one["value"])
            for one in csv.DictReader(stream)
            if "at=" in one["column"] and one["metric"] == "accuracy"
        }
    assert common < 13
    with (finished / "figure8.claims.csv").open(newline="") as stream:
        (claim,) = csv.DictReader(stream)
    assert (claim["id"], claim["held"], claim["failed"]) == ("fediod-f8", "0", "0")
    assert "accuracy at chance" in claim["verdict"]
    assert re.search(
        r"1 of 2 not measured \(at accuracy \d+\.\d\d % in panel=cifar10\)", claim["verdict"]
    )
    for text in (done.stdout, (finished / "figure8.md").read_text()):
        shown = " ".join(text.split())
        assert (
            "panel=brats2018 is not measured: panel b has settings of its own: fediod/figure8b"
            in shown
        )
        assert (
            "is the highest Accuracy (%) that every row reaches; bandwidth until then: FedAvg"
            in shown
        )


def test_plan_has_the_runs_of_one_panel_and_the_time_on_a_link(command):
    done = command("plan", "fediod/figure8", "--profile", "smoke", "--link", "1")
    assert done.returncode == 0, done.stderr
    # 8 bits in a byte
    assert re.search(r"fedavg\W+1,917,600\W+1,917,600\W+15\.3 s\W+15\.3 s", done.stdout)
    assert "panel=brats2018 is not measured" in done.stdout
