"""FedSA's Table 3 and Figure 4a: correlations over teachers, totals of selections, and their
plots.
"""

import math

import numpy as np
import pandas as pd
import pytest

from fedtables.reports.drawing import plots_matrix, plots_teachers
from fedtables.reports.tables.table import ShownTable
from fedtables.reports.tables.teachers import correlations, printed_correlations, sentences, totals
from fedtables.results.record import FAILED
from fedtables.results.store import records_of, summarise
from tests.reports.drawn import layout, line, shown, visible
from tests.reports.teacher_records import (
    COLUMNS,
    METRICS,
    column_of,
    printed_records,
    selections,
    teacher,
)


def test_the_printed_correlations_are_those_of_the_readme():
    found = printed_correlations("fedsa/table3", METRICS)
    assert list(found) == list(COLUMNS)
    assert [round(c.pearson, 3) for c in found.values()] == [0.615, 0.712]
    assert [round(c.spearman, 3) for c in found.values()] == [0.492, 0.699]
    assert {(c.teachers, c.seeds) for c in found.values()} == {(10, 1)}


def test_coefficients_are_of_each_seed_and_their_mean_is_told():
    # Seed 0 ranks as the similarity does, seed 1 has its first two the other way round: rho 1 and
    # 1/2.
    records = column_of([10.0, 20.0, 30.0]) + column_of([20.0, 10.0, 30.0], seed=1)
    (found,) = correlations(records, METRICS).values()
    assert (found.spearman, found.pearson) == (pytest.approx(0.75), pytest.approx(0.75))
    assert (found.teachers, found.seeds) == (3, 2)
    # Over the means of the seeds it would be another number.
    means = correlations(column_of([15.0, 15.0, 30.0]), METRICS)[COLUMNS[0]]
    assert means.spearman == pytest.approx(math.sqrt(3) / 2)
    own = layout(COLUMNS, key="none/such")
    (text,) = sentences(own, {COLUMNS[0]: found}, METRICS)
    assert (
        text
        == "cifar10: transfer accuracy and saliency similarity: Spearman rho = 0.75, Pearson r ="
        " 0.75 "
        "(n = 3 teachers; mean over 2 seeds of each seed's own)"
    )


def test_print_stands_beside_what_was_measured():
    found = correlations(printed_records(columns=COLUMNS[1:]), METRICS)
    (text,) = sentences(layout(COLUMNS, key="fedsa/table3"), found, METRICS)
    assert text.startswith("cifar100: ")
    assert (
        "rho = 0.70, Pearson r = 0.71 (n = 10 teachers). In print: rho = 0.70, r = 0.71 (n = 10)"
        in text
    )


def test_teachers_that_a_seed_lacks_do_not_count_and_two_have_no_correlation():
    records = column_of([1.0, 2.0, 3.0, 9.0], (0.0, 0.5, 1.0, 0.2))
    records += [
        *column_of([1.0, 2.0, 3.0], seed=1),
        teacher(4, COLUMNS[0], 9.0, 0.2, seed=1, status=FAILED),
    ]
    (found,) = correlations(records, METRICS).values()
    assert (found.teachers, found.spearman) == (3, pytest.approx(1))
    assert correlations(column_of([1.0, 2.0], (0.0, 1.0)), METRICS) == {}


def test_equal_values_have_no_coefficient_and_that_is_said():
    (found,) = correlations(column_of([5.0, 5.0, 5.0]), METRICS).values()
    assert found.coefficients == ("undefined", "undefined")


def test_a_table_of_selections_shows_means_of_scores_and_sums_of_draws():
    failed = line("fedsa", "dataset=cifar100", "", status="failed: no memory")
    lines = summarise([selections(), selections(seed=1)])
    shown = records_of(totals(pd.concat([lines, pd.DataFrame([failed])])))
    found = {(s["column"], s["metric"]): (s["value"], s["std"]) for s in shown[:-1]}
    teachers = [f"dataset=cifar10 teacher={n}" for n in (1, 2, 3)]
    assert [found[t, "transferability"] for t in teachers] == [(0.5, None)] * 3
    assert [found[t, "selected"] for t in teachers] == [(2.0, None), (1.0, None), (3.0, None)]
    assert len(found) == 6
    assert shown[-1] == failed


def names(axis):
    return sorted((text.get_text() for text in axis.texts), key=int)


def scattered(records, drawn, tmp_path, columns=COLUMNS):
    own = layout(columns, unit="percent", key="fedsa/table3")
    table = ShownTable(own, summarise(records), records, METRICS)
    plots_teachers.transferability_plot(table, tmp_path / "t.png")
    return visible(drawn[-1])


def test_published_marks_have_panels_of_their_own(drawn, tmp_path):
    axes = scattered(printed_records(shift=2.0), drawn, tmp_path)
    correlation = "Spearman ρ = 0.49, Pearson r = 0.61 (n = 10)"
    assert [axes[n].get_title().splitlines() for n in (0, 2)] == [
        ["cifar10", correlation],
        ["cifar10", f"published: {correlation}"],
    ]
    assert [axis.get_title().splitlines()[0] for axis in axes] == ["cifar10", "cifar100"] * 2
    for axis in axes:
        assert axis.get_xlabel() == "Saliency similarity"
        assert axis.get_ylabel() == "Transfer accuracy (%)"
        assert names(axis) == [str(n) for n in range(1, 11)]
    measured, printed = (axes[n].containers[0][0] for n in (0, 2))
    assert printed.get_markerfacecolor() == "white"
    assert list(measured.get_ydata() - printed.get_ydata()) == pytest.approx([2.0] * 10)
    labels = [axes[n].get_legend_handles_labels()[1] for n in (0, 2)]
    assert labels == [["measured"], ["published"]]


def test_selections_are_a_heat_map_with_the_draws_in_its_cells(drawn, tmp_path):
    lines = summarise([selections(), selections("dataset=cifar100")])
    table = ShownTable(layout(COLUMNS, key="fedsa/figure4a"), lines, ())
    plots_matrix.selection_plot(table, tmp_path / "f.png")
    left, right = drawn[0].axes[:2]
    assert (left.get_title(), right.get_title()) == ("cifar10", "cifar100")
    (image,) = left.images
    np.testing.assert_array_equal(image.get_array(), [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    assert image.get_clim() == (0, 1)
    levels = [sum(image.cmap(v)[:3]) for v in np.linspace(0, 1, 20)]
    assert levels == sorted(levels, reverse=True)  # darker is higher
    assert {t.get_text(): t.get_position() for t in left.texts} == {
        "2": (0, 0),
        "1": (0, 1),
        "3": (1, 2),
    }
    assert [label.get_text() for label in left.get_yticklabels()] == ["1", "2", "3"]
    assert left.get_ylim() == (2.5, -0.5)  # the first teacher is at the top


def test_tables_without_these_metrics_have_no_picture(drawn, tmp_path):
    table = shown(layout(COLUMNS), [line("a", COLUMNS[0], "0.5")], *METRICS)
    plots_matrix.selection_plot(table, tmp_path / "f.png")
    plots_teachers.transferability_plot(table, tmp_path / "f.png")
    assert not drawn
