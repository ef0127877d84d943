"""How tall a report may be, and how soon its table of queries is shown."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import karat
from karat.report.page.queries import query_sample
from support.chromium import WATCH_FIRST_ROW, draw_charts, page_height, wait_for_first_row

DESKTOP = {"width": 1280, "height": 900}
# Half of the 11,815 px of a report of five DL19 runs in an earlier design; this one had
# 10,206 px then.
TALLEST = 5_900

# A row in a box that scrolls is laid out, but not seen, if the box ends above it.
IS_CUT_OFF = """(row) => {
  const bottom = row.getBoundingClientRect().bottom;
  for (let box = row.parentElement; box !== document.body; box = box.parentElement) {
    const clips = getComputedStyle(box).overflowY !== "visible";
    if (clips && box.getBoundingClientRect().bottom < bottom - 1) return true;
  }
  return false;
}"""


def test_report_of_five_runs_is_short_and_shows_20_queries(report, opened):
    page = opened(report("dl19-5"), viewport=DESKTOP)
    twentieth = page.locator(".queries tbody tr").nth(19)
    expect(twentieth).to_be_visible()
    assert not twentieth.evaluate(IS_CUT_OFF)
    expect(page.locator("#results")).to_be_visible()
    expect(page.locator("#comparison")).to_be_visible()
    draw_charts(page)
    assert page_height(page) <= TALLEST


def test_table_of_5000_queries_is_shown_soon(browser, report):
    page = browser.new_page(viewport=DESKTOP)
    page.add_init_script(WATCH_FIRST_ROW)
    page.goto(report("many-queries").as_uri())
    milliseconds = wait_for_first_row(page)
    expect(page.locator(".queries tbody tr").first).to_be_visible()
    page.close()
    # About 0.5 s on a quiet machine; `make shots` prints it.
    assert milliseconds < 6_000


def test_page_states_that_it_lists_a_sample_of_many_queries(tmp_path, monkeypatch, opened):
    monkeypatch.setattr(query_sample, "MOST_LISTED", 40)
    monkeypatch.setattr(query_sample, "SAMPLE_SIZE", 20)
    gold = {f"q{at:03}": ["a"] for at in range(60)}
    runs = {
        "old": {query: ["x", "a"] if at % 3 else ["x"] for at, query in enumerate(gold)},
        "new": {query: ["x", "a"] if at % 2 else ["a"] for at, query in enumerate(gold)},
    }
    path = tmp_path / "sample.html"
    with pytest.warns(karat.KaratWarning, match="of 60 queries"):
        karat.compare(gold, runs, "RR").report(path)
    page = opened(path)
    statement = "of 60 queries: 10 chosen as most informative and 10 chosen at random"
    over_all = "Values, intervals and tests are over all queries"
    for section in ("#queries", "#comparison"):
        note = page.locator(f"{section} .sample")
        expect(note).to_be_visible()
        expect(note).to_contain_text(statement)
        expect(note).to_contain_text(over_all)
    expect(page.locator("#cutoffs .sample")).to_have_text(
        "The curves by cutoff are drawn from 10 of 60 queries, chosen at random."
    )
    first = page.locator(".queries tbody tr").first
    first.click()
    expect(page.locator(".query-content").first).to_be_visible()
