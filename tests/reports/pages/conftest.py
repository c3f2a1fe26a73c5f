"""A real browser, where one is installed."""

import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_tab(browser):
    """Opens an address with what the browser complains about in a list, and everything that it
    tries to load.
    """
    opened = []

    def opening(address, **options):
        tab = browser.new_page(**options)
        tab.complaints, tab.asked = [], []
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.on(
            "console",
            lambda message: (
                tab.complaints.append(message.text) if message.type == "error" else None
            ),
        )
        tab.on("request", lambda request: tab.asked.append(request.url))
        tab.goto(address)
        opened.append(tab)
        return tab

    yield opening
    for tab in opened:
        tab.close()
