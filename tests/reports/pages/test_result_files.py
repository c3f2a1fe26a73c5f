"""Which tables a folder holds, and which of them are a paper's own."""

import pytest

from fedtables.federation.execution import COMPILE, PRECISIONS, Execution
from fedtables.reports.pages.result_files import Result, find_results
from fedtables.results.files import ResultsError
from tests.reports.written_results import write_results


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("compiled", COMPILE)
def test_a_way_of_running_is_no_other_table(tmp_path, precision, compiled):
    label = Execution(precision=precision, compile=compiled).label
    name = f"table2.{label}" if label else "table2"
    assert Result("cpu", "dlad", name, tmp_path / name).as_published


@pytest.mark.parametrize("variant", ["released", "set-1a2b3c4d", "set-1a2b3c4d.bf16", "bf16.x"])
def test_another_protocol_or_a_users_setting_is(tmp_path, variant):
    name = f"table2.{variant}"
    assert not Result("cpu", "dlad", name, tmp_path / name).as_published
    assert Result("cpu", "dlad", "table2.stacked8", tmp_path / "x").as_published


def test_a_table_that_has_lost_its_layout_is_refused_and_not_left_out(tmp_path):
    write_results(tmp_path)
    lost = write_results(tmp_path, variant="released").path("layout.json")
    assert [result.name for result in find_results(tmp_path)] == ["table2", "table2.released"]
    lost.unlink()
    with pytest.raises(ResultsError, match=rf"{lost.name} is missing"):
        find_results(tmp_path)
