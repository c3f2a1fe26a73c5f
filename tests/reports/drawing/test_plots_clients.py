"""How much of each client leaks."""

from fedtables.reports.drawing import plots_clients
from tests.reports.drawn import layout, line, shown

COLUMN = "dataset=x"


def lines(values, metric="fid"):
    return [
        line(row, f"{COLUMN} client={client}", value, metric=metric)
        for row, clients in values.items()
        for client, value in clients.items()
    ]


def heights(axis):
    return [
        float(container[0].get_ydata()[n])
        for container in axis.containers
        for n in range(len(container[0].get_ydata()))
    ]


def test_clients_are_on_the_left_and_their_mean_with_its_range_on_the_right(drawn, tmp_path):
    values = {
        "a": {"1": "2.0", "2": "4.0", "average": "3.0"},
        "b": {"1": "300.0", "2": "500.0", "average": "400.0"},
    }
    plots_clients.leakage_plot(shown(layout((COLUMN,)), lines(values), "fid"), tmp_path / "f.png")
    left, right = drawn[0].axes
    assert heights(left) == [2, 4, 300, 500]
    assert heights(right) == [3, 400]
    assert left.get_yscale() == "log"
    assert [label.get_text() for label in left.get_xticklabels()] == ["1", "2"]
    assert left.get_ylabel() == "Fréchet distance"
    spans = [container[2][0].get_segments()[0][:, 1].tolist() for container in right.containers]
    assert spans == [[2, 4], [300, 500]]


def test_values_of_one_size_are_on_a_linear_axis_from_zero(drawn, tmp_path):
    values = {"a": {"1": "200.0", "average": "200.0"}, "b": {"1": "300.0", "average": "300.0"}}
    both = lines(values) + lines({"a": {"1": "80.0"}}, "psnr")
    plots_clients.leakage_plot(shown(layout((COLUMN,)), both, "fid"), tmp_path / "f.png")
    left = drawn[0].axes[0]
    assert (left.get_yscale(), left.get_ylim()[0]) == ("linear", 0)
    assert heights(left) == [200, 300]


def test_each_metric_has_its_panels_and_a_row_in_two_columns_two_series(drawn, tmp_path):
    columns = (f"{COLUMN} public=in", f"{COLUMN} public=out")
    values = [
        line(row, f"{column} client=1", value, metric=metric)
        for metric, factor in (("fid", 1), ("psnr", 2))
        for row, column, value in (
            ("a", columns[0], str(10 * factor)),
            ("b", columns[0], str(20 * factor)),
            ("b", columns[1], str(30 * factor)),
        )
    ]
    plots_clients.leakage_plot(shown(layout(columns), values, "fid", "psnr"), tmp_path / "f.png")
    above, _, below, _ = drawn[0].axes
    assert (heights(above), heights(below)) == ([10, 20, 30], [20, 40, 60])
    assert [axis.get_ylabel() for axis in (above, below)] == ["Fréchet distance", "PSNR (dB)"]
    _, names = above.get_legend_handles_labels()
    assert [name.partition(", ")[2] for name in names] == ["", "public in", "public out"]
    faces = [container[0].get_markerfacecolor() for container in above.containers]
    assert faces[2] == "white" != faces[1]
