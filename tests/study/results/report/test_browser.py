"""The page in a real browser, at the widths of a desktop and of a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testing_reports import SCRIPT

pytestmark = pytest.mark.browser

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser, without network."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    if BROWSER is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, hostile_page: str) -> Path:
    """The report of a study of hostile names."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(hostile_page, encoding="utf-8")
    return path


@pytest.fixture
def opened(chromium, file):
    """Open the page; whatever it writes to the console or asks of a network fails the test."""
    problems: list[str] = []
    contexts = []

    def open_page(width: int = 1280, theme: str = "light") -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("request", lambda request: problems.append(request.url) if not _is_local(request.url) else None)
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def _is_local(url: str) -> bool:
    return url.startswith(("file:", "data:"))


def column(page: Any, number: int, table: str = "trials-table") -> list[str]:
    rows = page.locator(f"#{table} tbody tr:not([hidden])")
    return [row.locator("td").nth(number).inner_text() for row in rows.all()]


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1280, "light")])
def test_layout(opened, width, theme):
    page = opened(width, theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    figures = page.locator("figure svg").all()
    assert len(figures) > 12
    for figure in figures:
        box = figure.bounding_box()
        assert box is not None and box["width"] > 250 and box["height"] > 80
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        ends = figure.evaluate(
            "(svg) => Array.from(svg.querySelectorAll('text'), (text) => text.getBoundingClientRect().right)"
        )
        assert max(ends) <= box["x"] + box["width"] + 1, "a text is cut"
    table = page.locator("#configurations-table").bounding_box()
    assert table is not None and table["x"] + table["width"] <= width
    assert page.evaluate("new Set(Array.from(document.querySelectorAll('[id]'), (e) => e.id)).size") == page.evaluate(
        "document.querySelectorAll('[id]').length"
    )


def test_names_of_strangers_are_text(opened):
    page = opened()
    assert page.locator("h1").inner_text() == f"{SCRIPT} $net$"
    assert page.title() == f"{SCRIPT} $net$: report of a study"
    assert page.locator("script").count() == 1 and page.locator("main img").count() == 0
    assert "$depth$" in page.locator("figure svg text").all_inner_texts() or page.get_by_text("$depth$").count()


def test_tables_are_sorted_and_filtered(opened):
    page = opened()
    button = page.get_by_role("button", name="value", exact=True)
    header = page.locator("#trials-table th").nth(1)
    assert header.get_attribute("aria-sort") is None
    button.click()
    values = column(page, 1)
    known = [float(value) for value in values if value != "–"]
    assert known == sorted(known) and values[-3:] == ["–"] * 3 and header.get_attribute("aria-sort") == "ascending"
    page.locator("#trials-table-search").fill("FAIL valueerror")
    assert column(page, 0) == ["6", "13", "20"]
    page.locator("#theme").click()
    assert page.locator("#theme").inner_text() == "Theme: light"
