"""A table whose picture shows where networks look in films."""

from fedtables.reports.measures.kind import Pictured


class Attention(Pictured):
    """A line of images per film, beside the numbers."""

    drawn_by = "fedtables.reports.drawing.pictures.attention"
    made = "central"
    which = (
        "the picture shows at most 4 films, one per finding: those at which the most local models"
        " look"
    )


MEASURES = {"attention": Attention()}
