"""What of print is measured, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from federation.training.execution import COMPILE, PRECISIONS, Execution
from reports.pages.covered import covered
from reports.pages.page import Result
from results import published
from results.published import claims


def result(name, lines, seeds=(0,), judged=(), paper="dlad"):
    frame = pd.DataFrame(lines, columns=["row", "column", "metric", "difference"])
    return SimpleNamespace(
        profile="cpu",
        paper=paper,
        name=name,
        anchor=name,
        as_published="released" not in name,
        claims=[
            {"id": claim, "verdict": verdict, "held": "1", "settled": "0"}
            for claim, verdict in judged
        ],
        records=[SimpleNamespace(seed=seed) for seed in seeds],
        lines=frame,
        sheet=SimpleNamespace(shown=lambda frame: frame),
    )


def test_a_number_counts_once_and_only_beside_a_printed_one():
    first = [("a", "x=1", "accuracy", "0.1"), ("b", "x=1", "accuracy", "")]
    second = [("a", "x=1", "accuracy", "0.2"), ("a", "x=2", "accuracy", "0.2")]
    page = covered([result("table3", first), result("table3.bf16", second, seeds=(0, 1, 2))])
    assert "| dlad/table3 | 26 | 2 | 1 or 3 |" in page
    assert "| dlad/table4 | 141 | 0 | none |" in page
    printed = sum(
        isinstance(cell.value, float)
        for name in published.tables("dlad")
        for cell in published.published_table(f"dlad/{name}")
    )
    assert page[-2] == f"| together | {printed} | 2 |  |"


def test_claims_are_counted_by_verdict_in_tables_of_the_papers_own():
    held, other = [claim.id for claim in claims("dlad") if claim.holds_in_print == "yes"][:2]
    judged = [(held, "holds"), (other, "does not hold")]
    page = covered(
        [result("table3", [], judged=judged[:1]), result("table3.released", [], judged=judged)]
    )
    known = claims("dlad")
    in_print = sum(claim.holds_in_print == "yes" for claim in known)
    assert f"| dlad | {len(known)} | {in_print} | 1 | 0 | 0 | 0 | 0 | {in_print - 1} |" in page


def test_results_of_no_paper_have_no_page():
    assert covered([result("mnist", [], paper="league")]) == []


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
