"""The page in a real browser, at the widths of a desktop and of a phone.

Screenshots are kept in the folder that the environment variable SLAYR_SCREENSHOTS names, by default in pytest's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testing_reports import SCRIPT

pytestmark = pytest.mark.browser

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

CONTRAST = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return Array.from(canvas.getImageData(0, 0, 1, 1).data);
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const names = "p, a, h1, h2, h3, dt, dd, td, th, button, figcaption, summary, text, output, code, strong, label";
  const worst = [];
  for (const e of document.querySelectorAll(names)) {
    if (!e.textContent.trim() || !e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(rgb(e.tagName === "text" ? style.fill : style.color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) worst.push(`${e.tagName} ${ratio.toFixed(2)} ${e.textContent.slice(0, 30)}`);
  }
  return worst;
}
"""


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


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_layout(opened, file, width, theme):
    page = opened(width, theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    figures = page.locator("figure svg").all()
    assert len(figures) > 12
    for figure in figures:
        box = figure.bounding_box()
        assert box is not None and box["width"] > 250 and box["height"] > 80
    assert page.evaluate("new Set(Array.from(document.querySelectorAll('[id]'), (e) => e.id)).size") == page.evaluate(
        "document.querySelectorAll('[id]').length"
    )
    assert page.evaluate(CONTRAST) == []
    folder = Path(os.environ.get("SLAYR_SCREENSHOTS") or file.parent)
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / f"report-{width}-{theme}.png"
    page.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 50_000


def test_names_of_strangers_are_text(opened):
    page = opened()
    assert page.locator("h1").inner_text() == f"{SCRIPT} $net$"
    assert page.title() == f"{SCRIPT} $net$: report of a study"
    assert page.locator("script").count() == 1 and page.locator("main img").count() == 0
    assert "$depth$" in page.locator("figure svg text").all_inner_texts() or page.get_by_text("$depth$").count()


def test_tables_sort_by_click(opened):
    page = opened()
    button = page.get_by_role("button", name="value", exact=True)
    header = page.locator("#trials-table th").nth(1)
    assert header.get_attribute("aria-sort") is None
    button.click()
    values = column(page, 1)
    known = [float(value) for value in values if value != "–"]
    assert known == sorted(known) and values[-3:] == ["–"] * 3 and header.get_attribute("aria-sort") == "ascending"
    button.click()
    values = column(page, 1)
    known = [float(value) for value in values if value != "–"]
    assert known == sorted(known, reverse=True) and values[-3:] == ["–"] * 3
    assert header.get_attribute("aria-sort") == "descending"
    page.locator("#trials-table th button").nth(3).click()
    assert header.get_attribute("aria-sort") is None
    assert column(page, 3) == ["complete"] * 23 + ["fail"] * 3


def test_tables_sort_and_scroll_by_keyboard(opened):
    page = opened(390)
    page.locator("#trials-table th button").first.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    assert [int(number) for number in column(page, 0)] == list(range(25, -1, -1))
    region = page.locator(".scroll", has=page.locator("#trials-table"))
    region.focus()
    before = region.evaluate("(e) => e.scrollLeft")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(200)
    assert region.evaluate("(e) => e.scrollLeft") > before


def test_search_filters(opened):
    page = opened()
    page.locator("#trials-table-search").fill("FAIL valueerror")
    assert column(page, 0) == ["6", "13", "20"]
    assert page.locator("output").first.inner_text() == "3 of 26 rows"
    page.locator("#trials-table-search").fill("")
    assert len(column(page, 0)) == 26 and page.locator("output").first.inner_text() == "26 rows"


def test_the_skip_link_is_first_and_focus_is_visible(opened):
    page = opened()
    page.keyboard.press("Tab")
    link = page.locator(".skip")
    assert link.evaluate("(e) => e === document.activeElement") and link.bounding_box()["x"] >= 0
    assert link.evaluate("(e) => getComputedStyle(e).outlineStyle") != "none"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_theme_can_be_chosen(opened):
    page = opened(theme="dark")
    button = page.locator("#theme")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    button.click()
    assert button.inner_text() == "Theme: light" and page.evaluate(ground) == "rgb(255, 255, 255)"
    button.click()
    assert button.inner_text() == "Theme: dark" and page.evaluate(ground) == dark
    button.click()
    assert button.inner_text() == "Theme: system" and page.evaluate(ground) == dark


def test_numbers_of_figures_are_tables(opened):
    page = opened()
    details = page.locator("#slice-0 details")
    details.locator("summary").press("Enter")
    assert details.locator("table").is_visible() and details.locator("tbody tr").count() == 3
