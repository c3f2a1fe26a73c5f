"""Figures that would be saved, for tests of what is drawn."""

import pytest


@pytest.fixture
def drawn(monkeypatch):
    """Every figure that is saved."""
    from fedtables.reports.drawing import figures

    saved = []
    monkeypatch.setattr(figures, "save", lambda figure, path: saved.append(figure))
    return saved
