"""Scores of generated images: plain numbers, whose labels say by which networks they are."""

from __future__ import annotations

from reports.kinds.kind import Kind


class Samples(Kind):
    """A table that names the judges of its images."""

    statistic = True


KIND = Samples()
