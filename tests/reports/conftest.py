"""Figures that would be saved, for tests of what is drawn."""

from __future__ import annotations

import pytest


@pytest.fixture
def drawn(monkeypatch):
    """Every figure that is saved."""
    from reports.drawing import figures, pictures, plots_clients

    saved = []
    for module in (figures, pictures, plots_clients):
        monkeypatch.setattr(module, "save", lambda figure, path: saved.append(figure))
    yield saved
    for figure in saved:
        figures.plt.close(figure)
