"""Tables of models by the site that tests them."""

from fedtables.reports.measures.kind import Kind, Pictured


class BySite(Kind):
    """A table that says on which test samples it is measured."""

    statistic = True
    drawn_by = "fedtables.reports.drawing.plots_matrix.site_plot"


class Contours(Pictured):
    """A line of images per site, and a table of numbers on all test samples."""

    statistic = True
    drawn_by = "fedtables.reports.drawing.pictures.contours"
    which = "the picture shows, for each site, the middle of the test image with the most labels"


class ErrorMaps(Pictured):
    """A line of images per column of the table, and a table of numbers on all subjects."""

    statistic = True
    drawn_by = "fedtables.reports.drawing.pictures.error_maps"
    which = (
        "the picture shows the middle slice of each site's first test subject. Below each"
        " reconstruction is its mean absolute error on that slice"
    )


MEASURES = {"by-site": BySite(), "contours": Contours(), "error-maps": ErrorMaps()}
