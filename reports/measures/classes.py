"""A table of what clients hold."""

from fedtables.reports.measures.kind import Pictured


class Classes(Pictured):
    """Classes by client."""

    drawn_by = "fedtables.reports.drawing.plots_clients.classes"
    made = "counts"


MEASURES = {"classes": Classes()}
