"""A run that goes on on another machine."""

from dataclasses import replace

from fedtables.results.frame import read_records
from fedtables.results.sourcecode import ROOT
from fedtables.results.store import records_text
from tests.benchmarks.commands.tables_of_cli import COLUMN, lines, run

CLIENT = ("--only", "row=client-resnet")
AVERAGE = ("--only", "row=client-resnet,global-avg")


def test_another_machine_goes_on_where_this_one_stopped(tmp_path):
    here, there, pack = tmp_path / "here", tmp_path / "there", str(tmp_path / "pack.zip")
    here.mkdir()
    there.mkdir()
    begun = run(here, "reproduce", "dlad/table2", *COLUMN, *CLIENT)
    assert begun.returncode == 0
    assert "wrote" in run(here, "pack", pack).stdout
    unpacked = run(there, "unpack", pack).stdout
    assert "1 finished cells" in unpacked
    assert "not in use" not in unpacked
    whole = run(there, "reproduce", "dlad/table2", *COLUMN, *AVERAGE)
    assert "2 cells, 1 finished before, 1 to run" in whole.stdout
    assert lines(there)[0] == lines(here)[0]
    log = next((there / "results").rglob("table2*.log")).read_text()
    assert "reused" in log  # the clients' networks
    assert "local-model" not in "".join(line for line in log.splitlines() if "computed" in line)

    third = tmp_path / "third"  # which gets the table's records alone
    third.mkdir()
    [records] = (here / "results").rglob("*.records.jsonl")
    assert "1 finished cells and 0 stages" in run(third, "unpack", str(records)).stdout
    whole = run(third, "reproduce", "dlad/table2", *COLUMN, *CLIENT)
    assert "1 cells, 1 finished before, 0 to run" in whole.stdout
    assert lines(third) == lines(here)


def test_unpacked_cells_that_the_present_code_or_data_do_not_accept_are_counted(tmp_path):
    """The committed ones: the embedded data of some are here, the real data of others are not."""
    committed = ROOT / "results" / "cpu" / "dlad" / "table2.records.jsonl"
    by_set = run(tmp_path, "unpack", str(committed)).stdout
    assert "48 finished cells" in by_set
    for name in ("MNIST", "CIFAR-10", "CIFAR-10 halves"):
        assert f"not usable here: 16 cells: {name} is not under " in by_set
    begun = run(tmp_path, "reproduce", "dlad/table2", *COLUMN, *CLIENT)
    assert begun.returncode == 0
    [records] = (tmp_path / "results").rglob("*.records.jsonl")
    [own] = read_records(records)
    older = tmp_path / "older.records.jsonl"
    older.write_text(records_text([replace(own, code="of another commit")]))
    for already in ("1 finished cells", "1 were already there"):
        told = run(tmp_path / "there", "unpack", str(older)).stdout
        assert already in told
        assert "not usable here: 1 cells: computed by other code or packages" in told


def test_what_cannot_be_unpacked_is_refused_in_one_line(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n")
    found = run(tmp_path, "unpack", str(tmp_path / "table.csv"))
    assert found.returncode == 2
    assert "cannot be read as a pack" in found.stderr
    absent = run(tmp_path, "unpack", "absent.records.jsonl")
    assert (absent.returncode, "there is no absent.records.jsonl" in absent.stderr) == (2, True)
    assert "nothing to pack" in run(tmp_path, "pack", str(tmp_path / "pack.zip")).stderr
