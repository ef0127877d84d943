"""Charts and tables of groups in a browser: drawn without eval, picked, saved, and fitting."""

from __future__ import annotations

import base64
import hashlib
import json
import random

import pytest
from playwright.sync_api import expect

import karat
from karat.report.page import scripts
from support.charts import HOSTILE, charts_of_page

DRAW = """
window.drawn = Promise.all(JSON.parse(document.getElementById("charts").textContent).map(
  async (chart) => {
    const place = document.createElement("div");
    document.body.append(place);
    await vegaEmbed(place, chart.spec, {ast: true, actions: false, renderer: "svg"});
    return [chart.id, place.querySelectorAll("svg path, svg text").length, place.textContent];
  }));
"""


def test_charts_are_drawn_without_eval_and_without_running_names_from_data(tmp_path, opened):
    script = scripts.vega_script() + DRAW
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    drawn = [{"id": chart.id, "spec": chart.spec} for chart in charts_of_page()]
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'"
    data = json.dumps(drawn).replace("<", "\\u003c")
    page = tmp_path / "page.html"
    page.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"></head><body>'
        f'<script type="application/json" id="charts">{data}</script>'
        f'<script type="module">{script}</script></body></html>',
        "utf-8",
    )
    tab = opened(page, viewport={"width": 900, "height": 700})
    results = tab.evaluate("window.drawn")
    assert tab.locator("img").count() == 0
    assert [name for name, _, _ in results] == [chart["id"] for chart in drawn]
    assert all(marks > 5 for _, marks, _ in results)
    texts = {name: text for name, _, text in results}
    assert HOSTILE in texts["curve-1"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of two runs with groups, stages, costs and failures."""
    draw = random.Random(5)
    gold = [
        {
            "query_id": f"q{n}",
            "topic": "billing" if n % 3 else "a topic with a name of many words, which must wrap",
            "relevant": {f"{n}-{item}": 1 for item in range(3)},
        }
        for n in range(40)
    ]
    runs = {
        name: [
            {
                "query_id": line["query_id"],
                "results": [item for item in line["relevant"] if draw.random() < chance] + ["x"],
                "latency_ms": {"total": 90.0 * scale, "embed": 9.0, "rerank": 80.0 * scale},
                "calls": [
                    {"stage": "embed", "model": "m", "prompt_tokens": 9, "price_per_1k": 0.00002}
                ],
            }
            for line in gold
        ]
        for name, chance, scale in (("plain", 0.5, 0.4), ("with reranking", 0.7, 1.0))
    }
    measures = ["nDCG@10", "R@10", "latency.p50", "cost.mean"]
    path = tmp_path_factory.mktemp("report") / "report.html"
    karat.compare(karat.Gold.of(gold, name="g"), runs, measures, by="topic").report(path)
    return path


def test_one_chart_of_a_group_is_shown_and_drawn_when_it_is_picked(opened, report):
    page = opened(report, viewport={"width": 1280, "height": 900})
    group = page.locator("#cutoffs > .figures > .chart-group")
    group.scroll_into_view_if_needed()
    expect(group.locator("figure:visible svg")).to_have_count(1)
    expect(group.locator("figure:visible h3")).to_contain_text("nDCG@k")
    assert group.locator("svg").count() == 1
    group.get_by_label("Measure").select_option("R@k")
    expect(group.locator("figure:visible h3")).to_contain_text("R@k")
    expect(group.locator("figure:visible svg")).to_be_visible()
    assert group.locator("figure:visible svg").bounding_box()["width"] > 400
    options = group.locator("option").all_text_contents()
    assert options == ["nDCG@k", "R@k", "P@k", "precision by recall"]


def test_folded_charts_are_drawn_when_they_are_opened(opened, report):
    page = opened(report, viewport={"width": 1280, "height": 900})
    fold = page.locator("#speed details.fold")
    fold.scroll_into_view_if_needed()
    page.wait_for_selector("#chart-stages svg")
    assert fold.locator("svg").count() == 0
    fold.locator("> summary").click()
    expect(fold.locator("figure:visible svg")).to_be_visible()
    assert fold.locator("figure:visible svg").bounding_box()["width"] > 400


def test_folded_charts_are_drawn_for_print_and_fit_the_paper(opened, report):
    page = opened(report, viewport={"width": 718, "height": 1000})
    page.locator("#speed").scroll_into_view_if_needed()
    page.wait_for_selector("#chart-stages svg")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("#speed details.fold figure:visible svg")).to_be_visible()
    assert page.locator("#speed .readout").first.is_hidden()
    assert page.locator(".figure-tools").first.is_hidden()
    assert page.locator(".picker").first.is_hidden()
    for svg in page.locator("figure svg:visible").all():
        box = svg.bounding_box()
        assert box["x"] + box["width"] <= 718
    # Tables of all measures are printed, since nobody can pick one.
    assert page.locator(".group-table:visible").count() == 4
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#speed details.fold").get_attribute("open") is None


def test_every_drawing_can_be_saved_as_an_image(opened, report, tmp_path):
    page = opened(report, viewport={"width": 1280, "height": 900}, accept_downloads=True)
    figure = page.locator("#chart-latency-1")
    figure.scroll_into_view_if_needed()
    for kind, start in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        with page.expect_download() as saved:
            figure.get_by_role("button", name=kind).click()
        path = tmp_path / f"chart.{kind}"
        saved.value.save_as(path)
        assert saved.value.suggested_filename == (
            f"Share of queries answered within t ms.{kind.lower()}"
        )
        content = path.read_bytes()
        assert content.startswith(start)
    assert b"var(--" not in content
    assert b"with reranking" in content


def test_runs_have_other_colours_in_the_dark(opened, report):
    colours = {}
    for scheme in ("light", "dark"):
        page = opened(report, color_scheme=scheme, viewport={"width": 1280, "height": 900})
        page.locator("#chart-latency-1").scroll_into_view_if_needed()
        line = page.locator("#chart-latency-1 .mark-line path").first
        line.wait_for(state="attached")
        dot = page.locator("#groups .dots circle").first
        colours[scheme] = (
            line.evaluate("path => getComputedStyle(path).stroke"),
            dot.evaluate("circle => getComputedStyle(circle).fill"),
        )
        assert colours[scheme][0] == colours[scheme][1]
    assert colours["light"][0] == "rgb(26, 111, 196)"
    assert colours["dark"][0] != colours["light"][0]


@pytest.mark.parametrize("width", [390, 1280])
def test_no_text_of_the_groups_overflows(opened, report, width):
    page = opened(report, viewport={"width": width, "height": 800})
    picker = page.locator("#groups").get_by_label("Measure")
    assert page.locator(".group-table:visible").count() == 1
    for option in picker.locator("option").all_text_contents():
        picker.select_option(option)
        assert page.locator(".group-table:visible").get_attribute("data-option") == option
        overflowing = page.locator(".group-table:visible :is(td, th, p)").evaluate_all(
            """cells => cells
              .filter((cell) => cell.checkVisibility() && !cell.closest("thead"))
              .filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
              .map((cell) => cell.textContent)"""
        )
        assert overflowing == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator(".group-table:visible .dots").first.bounding_box()["width"] == 180


def test_groups_are_readable_without_scripts(opened, report):
    page = opened(report, java_script_enabled=False)
    assert page.locator(".group-table:visible").count() == 4
    assert page.locator("figure:visible").count() > 5


def test_boxes_that_scroll_can_be_reached_by_keyboard(opened, report):
    page = opened(report, viewport={"width": 390, "height": 800})
    for section in ("cutoffs", "speed"):
        page.locator(f"#{section}").scroll_into_view_if_needed()
        page.locator(f"#{section} figure:visible svg").first.wait_for()
    unreachable = page.locator("#groups *, figure *").evaluate_all(
        """parts => parts
          .filter((part) => ["auto", "scroll"].includes(getComputedStyle(part).overflowX))
          .filter((part) => part.scrollWidth > part.clientWidth && part.tabIndex < 0).length"""
    )
    assert unreachable == 0
