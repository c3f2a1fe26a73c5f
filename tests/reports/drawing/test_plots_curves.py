"""Plots of curves over epochs."""

from fedtables.reports.drawing import plots_curves
from tests.reports.drawn import layout, line, shown, visible


def test_curves_have_a_row_of_panels_per_metric(drawn, tmp_path):
    columns = ("distribution=iid", "distribution=niid1", "distribution=niid2")
    lines = [
        line(row, f"{c} epoch={epoch}", f"{value * epoch}", metric=metric)
        for metric, value in (("accuracy", 20.0), ("hd95", 7.0))
        for row in ("a", "b")
        for c in columns
        for epoch in (1, 2, 3)
    ]
    plots_curves.curve_plot(
        shown(layout(columns, unit="percent"), lines, clients=("a",)), tmp_path / "t.png"
    )
    axes = visible(drawn[0])
    assert [axis.get_title() for axis in axes] == ["iid", "niid1", "niid2"] * 2
    assert [axis.get_ylabel() for axis in axes] == ["Accuracy (%)", "", "", "HD95 (pixel)", "", ""]
    global_model = axes[0].get_lines()[1]
    assert list(global_model.get_xdata()) == [4, 5, 6]  # after the clients' three epochs
    assert list(global_model.get_ydata()) == [20.0, 40.0, 60.0]
