"""The page in a real browser, where one is installed: it sorts, filters, enlarges, and fits a
phone.
"""

from functools import partial

import pytest

from fedtables.reports.pages.build import build_pages
from tests.reports.written_results import write_results


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_results(folder / "results")
    return build_pages(folder / "results", folder / "out")[0].as_uri()


@pytest.fixture
def open_page(open_tab, address):
    return partial(open_tab, address)


def first_column(tab):
    return tab.locator("table.numbers tbody th").all_inner_texts()


def test_it_loads_without_a_word_and_without_the_network(open_page, address):
    tab = open_page()
    assert tab.title() == "fedtables: measured beside published"
    assert tab.complaints == []
    assert all(url == address or url.startswith("data:") for url in tab.asked)


def test_a_heading_sorts_down_up_and_back_to_the_papers_order(open_page):
    tab = open_page()
    printed = ["Client <b>", "Global (avg.)", "Global (DLAD)"]
    assert first_column(tab) == printed
    head = tab.locator("table.numbers thead th").nth(2)  # 0.30, 0.45, 0.90
    head.get_by_role("button").click()
    assert first_column(tab) == printed[::-1]
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").focus()
    tab.keyboard.press("Enter")  # the keyboard does what the mouse does
    assert first_column(tab) == printed
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") is None


def test_search_and_filters_hide_tables_and_their_lines_in_the_index(open_page):
    tab = open_page()
    section, entry = tab.locator("section.table"), tab.locator("tr[data-section]")
    tab.fill("#search", "averaging mnist")
    assert section.is_visible()
    assert tab.inner_text("#count") == "1 of 1 tables"
    tab.fill("#search", "segmentation")
    assert not section.is_visible()
    assert not entry.is_visible()
    assert tab.inner_text("#count") == "0 of 1 tables"
    tab.fill("#search", "")
    tab.select_option("[data-filter=claims]", "no")
    assert not section.is_visible()
    tab.select_option("[data-filter=claims]", "yes")
    assert section.is_visible()


def test_a_plot_is_enlarged_and_closed_by_the_keyboard(open_page):
    tab = open_page()
    tab.locator("button.zoom").click()
    assert tab.locator("dialog").is_visible()
    before = tab.locator("dialog img").evaluate("image => image.getBoundingClientRect().width")
    tab.click("#larger")
    after = tab.locator("dialog img").evaluate("image => image.getBoundingClientRect().width")
    assert after == pytest.approx(1.5 * before, rel=0.01)
    tab.keyboard.press("Escape")
    assert not tab.locator("dialog").is_visible()


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_itself_never_scrolls_sideways(open_page, width):
    tab = open_page(viewport={"width": width, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const colour = (over, under) => {
    canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = over; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => rgb.map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = getComputedStyle(document.body).backgroundColor;
  const texts = document.querySelectorAll(
    "td, th, p, a, label, dt, dd, figcaption, summary, .badge, .printed, .verdict");
  return [...texts].map((element) => {
    const style = getComputedStyle(element);
    const own = getComputedStyle(element.closest("td, .badge") ?? element).backgroundColor;
    const back = colour(own, ground), front = colour(style.color, `rgb(${back})`);
    const [a, b] = [light(front), light(back)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
}"""
"""Contrast of every text with what is behind it, by the WCAG's formula."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(open_page, scheme):
    tab = open_page(color_scheme=scheme)
    contrasts = tab.evaluate(CONTRASTS)
    assert len(contrasts) > 20
    assert min(contrasts) >= 4.5
