"""README, pages and changelog keep their limits. `python -m tests.docs.words` prints all counts."""

import pytest

from tests.docs.words import CHANGELOG, GENERATED, LONG, README, ROOT, pages, read

PAGES = {path.relative_to(ROOT).as_posix(): read(path) for path in pages()}


def test_words_and_sentences_are_counted_outside_of_code_tables_and_links(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(
        "# Two words\n\nRun `a --b c` first. It takes 0.5 s, e.g. here.\n\n"
        "```bash\nnot counted\n```\n"
        "\n- [One two](three.md) four\n1. By Fig. 3 of Xu et al. 2020.\n\n| six | 7 |\n|---|---|\n"
    )
    page = read(path)
    assert page.sentences == (
        "Run Code first.",
        "It takes 0.5 s, e.g. here.",
        "One two four",
        "By Fig. 3 of Xu et al. 2020.",
    )
    assert page.words == 2 + 3 + 6 + 3 + 9 + 2  # the number of the item is a word
    assert page.mean == pytest.approx((3 + 6 + 3 + 8) / 4)


def test_the_readme_is_read_in_two_minutes():
    assert read(README).words <= 700


def test_all_pages_by_hand_have_at_most_30_000_words():
    by_hand = [page for page in PAGES.values() if page.path.name not in GENERATED]
    assert sum(page.words for page in by_hand) <= 30_000


@pytest.mark.parametrize("name", PAGES)
def test_sentences_are_short(name):
    page = PAGES[name]
    assert page.mean <= 16
    assert not page.long, f"more than {LONG} words"


def test_the_changelog_is_short():
    assert len(CHANGELOG.read_text().splitlines()) <= 120
