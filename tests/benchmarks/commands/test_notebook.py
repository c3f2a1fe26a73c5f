"""`fedtables.reproduce`: what a notebook gets, and how it is told what is wrong."""

import multiprocessing

import pytest

import fedtables
from fedtables.results.files import DataError, ResultsError


def test_a_table_comes_back_as_a_frame_and_its_files_lie_in_the_folder(tmp_path, capsys):
    cells = fedtables.reproduce(
        "dlad/table1", only={"row": ["iid", "niid1"]}, jobs=1, results=tmp_path, quiet=True
    )
    assert set(cells["row"]) == {"iid", "niid1"}
    assert set(cells["status"]) == {"ok"}
    assert cells["text"].map(bool).all()
    assert cells.loc[cells["row"] == "iid", "text"].unique().tolist() == ["0-9"]
    assert cells["client"].str.startswith("5n+").all()  # a key of the columns
    assert (tmp_path / "smoke" / "dlad" / "table1.csv").exists()
    assert capsys.readouterr().out == ""
    again = fedtables.reproduce("dlad/table1", only={"row": "niid1"}, results=tmp_path)
    assert set(again["row"]) == {"niid1"}
    assert "0 to run" in capsys.readouterr().out


@pytest.mark.slow
def test_what_a_worker_shows_reaches_the_notebook(tmp_path):
    points = []

    def log(*point):
        points.append(point)

    where = {"dataset": "cifar10", "alpha": 1, "row": "fedavg"}
    cells = fedtables.reproduce("fediod/table1", only=where, log=log, results=tmp_path, quiet=True)
    [line] = cells.to_dict("records")
    shown = {series: value for _, series, _, value in points}
    assert {cell for cell, *_ in points} == {"fediod/table1 fedavg dataset=cifar10 alpha=1 seed 0"}
    assert shown["bytes/up"] == line["bytes_up"]
    assert 100 * shown["accuracy/global model"] == pytest.approx(line["value"])
    assert any(series.startswith("loss/client ") for series in shown)


@pytest.mark.slow
def test_what_raises_at_a_point_ends_the_run_and_its_workers(tmp_path):
    def log(*point):
        raise ArithmeticError

    where = {"dataset": "cifar10", "alpha": 1, "row": "fedavg"}
    with pytest.raises(ArithmeticError):
        fedtables.reproduce("fediod/table1", only=where, log=log, results=tmp_path, quiet=True)
    assert multiprocessing.active_children() == []


def test_absent_data_and_an_unwritable_folder_are_exceptions(tmp_path):
    with pytest.raises(DataError, match=r"cinic|cifar|mnist|CINIC|CIFAR|MNIST"):
        fedtables.reproduce("dlad/table2", require_real=True, results=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="another folder"):
        fedtables.reproduce("dlad/table2", results=tmp_path / "file")
