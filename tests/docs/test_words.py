"""README, pages and changelog keep their limits."""

import pytest

from tests.docs.words import CHANGELOG, GENERATED, README, ROOT, pages, read

PAGES = {path.relative_to(ROOT).as_posix(): read(path) for path in pages()}


def test_the_readme_is_read_in_two_minutes():
    assert read(README).words <= 700


def test_all_pages_by_hand_have_at_most_30_000_words():
    by_hand = [page for page in PAGES.values() if page.path.name not in GENERATED]
    assert sum(page.words for page in by_hand) <= 30_000


@pytest.mark.parametrize("name", PAGES)
def test_sentences_are_short(name):
    page = PAGES[name]
    assert page.mean <= 16
    assert page.long == ()


def test_the_changelog_is_short():
    assert len(CHANGELOG.read_text().splitlines()) <= 120
