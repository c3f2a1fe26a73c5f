"""A table of what clients hold."""

from reports.measures.kind import Pictured


class Classes(Pictured):
    """Classes by client."""

    drawn_by = "reports.drawing.plots_clients.classes"
    made = "counts"


MEASURES = {"classes": Classes()}
