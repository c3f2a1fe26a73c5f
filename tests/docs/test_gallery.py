"""The gallery shows the pictures that are committed, and says of each what its table says."""

import re
import subprocess
from pathlib import Path

import pytest

from fedtables.reports.pages.build import gallery_page, shown_results

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "results" / "gallery.md"


@pytest.fixture(scope="module")
def tracked() -> set[Path]:
    """PNGs that git knows."""
    done = subprocess.run(
        ["git", "ls-files", "*.png"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("not a git repository, so which pictures are committed is not known")
    return {ROOT / name for name in done.stdout.splitlines()}


def test_the_page_is_what_the_command_would_write_now(tracked):
    results = [
        result
        for result in shown_results([ROOT / "results", ROOT / "results" / "three-seeds"])
        if result.file("png") in tracked
    ]
    others = sorted(path for path in tracked if path.parent == PAGE.parent / "images")
    assert PAGE.read_text() == gallery_page(results, others, PAGE), (
        "write it again: fedtables reports gallery"
    )


def test_every_committed_picture_is_in_it_and_has_its_svg(tracked):
    shown = {
        (PAGE.parent / link).resolve()
        for link in re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text())
    }
    assert shown == tracked
    of_tables = [path for path in tracked if ROOT / "results" in path.parents]
    assert all(path.with_suffix(".svg").exists() for path in of_tables)


def test_committed_pictures_stay_small(tracked):
    sizes = [
        path.stat().st_size
        for png in tracked
        for path in (png, png.with_suffix(".svg"))
        if path.exists()
    ]
    assert sum(sizes) < 16e6
