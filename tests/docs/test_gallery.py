"""The gallery shows the pictures that are committed, and says of each what its table says."""

import re
import subprocess
from pathlib import Path

import pytest

from fedtables.reports.pages.build import gallery_page, shown_results
from fedtables.reports.tables.claims import FIGURE
from fedtables.reports.tables.predicates import parse
from fedtables.results import published
from fedtables.results.store import read_records

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


def other_tables() -> list[tuple[Path, Path]]:
    """The records of every committed table that has claims, and of each other table that these
    read.
    """
    pairs = []
    for path in sorted((ROOT / "results" / "cpu").glob("*/*.claims.csv")):
        key, _, variant = path.name.removesuffix(".claims.csv").partition(".")
        own = path.with_name(path.name.replace(".claims.csv", ".records.jsonl"))
        for claim in published.claims(path.parent.name):
            if claim.table == key:
                names = {
                    name
                    for part in parse(claim.predicate.removeprefix(FIGURE))
                    for name in part.tables(key)
                }
                others = (
                    ".".join(filter(None, (name, variant, "records.jsonl"))) for name in names
                )
                pairs += [(own, own.with_name(other)) for other in others if other != own.name]
    return sorted({(own, other) for own, other in pairs if other.exists()})


def test_claims_that_read_another_table_were_judged_on_its_present_records():
    pairs = other_tables()
    assert pairs
    for own, other in pairs:
        judged, computed = (max(r.finished for r in read_records(path)) for path in (own, other))
        assert computed <= judged, f"{other.name} was computed anew since: run {own.name}'s too"
