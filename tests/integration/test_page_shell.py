"""The shell of a page in a browser: it loads, leads to queries, draws, and fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from karat.report.page import html
from karat.report.page.model import Notice
from support.pages import FAIR, GOOD, POOR, compared


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    show = {"run": "good", "outcome": "all"}
    page = compared({"good": GOOD, "fair": FAIR, "poor": POOR})
    page = replace(page, notices=[Notice("nothing", "look here", show)])
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    with path.open("wb") as file:
        html.write(page, file)
    return path.as_uri()


def opened(browser, address: str, **options: object):
    page, said = browser.new_page(**options), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url))
    page.goto(address)
    return page, said


def test_it_loads_without_a_word_and_without_a_request(browser, address):
    page, said = opened(browser, address)
    page.wait_for_selector("figure svg")
    assert said == [address]
    page.close()


def test_charts_out_of_sight_are_drawn_too(browser, address):
    page, _ = opened(browser, address, viewport={"width": 1280, "height": 300})
    assert page.locator("figure").count() > 2
    for figure in page.locator("figure").all():
        figure.locator("svg").first.wait_for(state="attached")
    page.close()


def test_a_query_that_moved_opens(browser, address):
    page, _ = opened(browser, address)
    button = page.locator("#pairs button[data-query]").first
    button.click()
    page.wait_for_selector("dialog[open]")
    assert button.inner_text() in page.locator("dialog").inner_text()
    page.close()


def test_a_notice_leads_to_the_table(browser, address):
    page, _ = opened(browser, address, reduced_motion="reduce")
    page.locator("#first button").click()
    page.wait_for_function(
        "() => document.querySelector('#queries').getBoundingClientRect().top < 200"
    )
    assert page.locator("#queries").bounding_box()["y"] < 200
    page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_itself_never_scrolls_sideways(browser, address, width):
    page, _ = opened(browser, address, viewport={"width": width, "height": 800})
    page.wait_for_selector("figure svg")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


def test_on_paper_nothing_is_wider_than_it_and_an_open_query_stands_alone(browser, address):
    page, _ = opened(browser, address, viewport={"width": 718, "height": 1000})
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
    page.close()


def test_values_can_be_read_with_scripts_off(browser, address):
    page, said = opened(browser, address, java_script_enabled=False)
    assert page.locator("#headline td[data-value]").count() > 0
    assert page.locator("#first button").is_hidden()
    assert "scripts are off" in page.locator("#queries").inner_text()
    assert said == [address]
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(browser, address, scheme):
    page, _ = opened(browser, address, color_scheme=scheme)
    page.wait_for_selector("figure svg")
    faint = page.evaluate(FAINT)
    assert faint == []
    page.close()


# Contrast as WCAG 2.2 defines it, of each text with the nearest ground that is painted below it.
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
