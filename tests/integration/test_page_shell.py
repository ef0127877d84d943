"""A report in a browser: it loads, draws its charts, leads to queries, and fits the screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from karat.evaluation.loaded_run import LoadedRun
from karat.report.page import html
from karat.report.page.chart_data import load_chart_data
from karat.report.page.model import KeyFinding
from support.pages import FAIR, GOOD, POOR, compared


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    show = {"run": "good", "outcome": "all"}
    page = compared({"good": GOOD, "fair": FAIR, "poor": POOR})
    scores = [sheet.scores for sheet in page.sheets]
    page = replace(
        page,
        findings=[KeyFinding("nothing", "look here", show)],
        chart_data=load_chart_data(scores, [LoadedRun.of(score) for score in scores]),
    )
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    with path.open("wb") as file:
        html.write(page, file)
    return path


@pytest.mark.parametrize("scripts", [True, False])
def test_page_loads_without_any_message_or_request(browser, report, scripts):
    page, events = browser.new_page(java_script_enabled=scripts), []
    page.on("console", lambda message: events.append(message.text))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("request", lambda request: events.append(request.url))
    page.goto(report.as_uri())
    if scripts:
        page.wait_for_selector("figure svg")
    assert events == [report.as_uri()]
    page.close()


def test_charts_below_the_screen_are_drawn_too(opened, report):
    page = opened(report, viewport={"width": 1280, "height": 300})
    figures = [figure for figure in page.locator("figure").all() if figure.is_visible()]
    assert figures
    for figure in figures:
        figure.locator("svg").first.wait_for(state="attached")


def test_query_that_changed_opens(opened, report):
    page = opened(report)
    button = page.locator("#comparison .open-query").first
    button.click()
    expect(page.locator("dialog[open]")).to_contain_text(button.inner_text())


def test_notice_leads_to_the_table(opened, report):
    page = opened(report, reduced_motion="reduce")
    page.locator("#findings button").click()
    page.wait_for_function(
        "() => document.querySelector('#queries').getBoundingClientRect().top < 200"
    )
    assert page.locator("#queries").bounding_box()["y"] < 200


def test_page_never_scrolls_sideways(opened, report):
    page = opened(report, viewport={"width": 390, "height": 800})
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.reload()
        page.wait_for_selector("figure svg")
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_print_fits_the_paper_and_shows_an_open_query_alone(opened, report):
    page = opened(report, viewport={"width": 718, "height": 1000})
    page.wait_for_selector("figure svg")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.scrollWidth") == 718
    page.emulate_media(media="screen")
    page.locator("button.open").first.click()
    page.locator("dialog[open] .runs").wait_for()
    page.emulate_media(media="print")
    assert page.locator("main").is_hidden()
    assert page.evaluate(
        "(d => d.scrollHeight <= d.clientHeight)(document.querySelector('dialog'))"
    )


def test_values_are_readable_without_scripts(opened, report):
    page = opened(report, java_script_enabled=False)
    assert page.locator("#results td[data-value]").count() > 0
    assert page.locator("#findings button").is_hidden()
    assert "JavaScript is disabled" in page.locator("#queries").inner_text()


def test_every_text_has_enough_contrast_in_both_colour_schemes(opened, report):
    page = opened(report, color_scheme="light")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.reload()
        page.wait_for_selector("figure svg")
        assert page.evaluate(FAINT) == [], scheme


# Contrast as WCAG 2.2 defines it, of each text with the nearest painted background.
FAINT = """() => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const [r, g, b] = channels(colour).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (channels(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const faint = [];
  for (const element of document.querySelectorAll("body > header *, nav *, main section *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element.closest("svg") || !element.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.push([element.outerHTML.slice(0, 80), contrast]);
  }
  return faint;
}"""
