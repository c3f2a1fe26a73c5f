"""The gallery: pictures of tables by paper, with links to their numbers."""

from __future__ import annotations

from reports.pages.gallery import gallery_page, shown_results
from tests.reports.written_results import write_results


def test_no_claims_are_counted_of_a_table_with_settings_of_somebodys_own(tmp_path):
    own = write_results(tmp_path / "results", variant="set-1234")
    (tmp_path / "results" / "smoke").rename(tmp_path / "results" / "cpu")
    assert own.path("csv").name == "table2.set-1234.csv"
    page = gallery_page(shown_results([tmp_path / "results"]), [], tmp_path / "g.md")
    assert "| dlad/table2 | 48 |" in page
    assert "hold in print" not in page


def test_smoke_tables_and_tables_without_a_picture_are_left_out(tmp_path):
    files = write_results(tmp_path)
    assert shown_results([tmp_path]) == []
    (tmp_path / "smoke").rename(tmp_path / "cpu")
    assert len(shown_results([tmp_path])) == 1
    (tmp_path / "cpu" / "dlad" / files.path("png").name).unlink()
    assert shown_results([tmp_path]) == []
