"""The list of queries in a browser: dot plots, first hits, keys, links and exports."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest
from playwright.sync_api import expect

from karat.report.page.html import write
from support.pages import IDS, TEXTS, a_page, some_queries

RUN_A, RUN_B = "<b>", "a"
"""The runs that the page compares at first: the second best, and the best."""


@pytest.fixture
def opened(opened):
    """Open a page and wait for its queries."""

    def ready(*where, **context):
        page = opened(*where, **context)
        page.wait_for_selector(".queries tbody tr")
        return page

    return ready


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return written(a_page(), tmp_path_factory.mktemp("list") / "page.html")


def written(page, path):
    with path.open("wb") as file:
        write(page, file)
    return path


def with_values(sheet, frame):
    """Return a sheet with other values of its queries."""
    scores = sheet.scores
    table = replace(scores.table, frame=frame, weights=pl.DataFrame(), holes=pl.DataFrame())
    return replace(sheet, scores=replace(scores, table=table))


def of_values(*runs: list[float]):
    """Return a page of runs with these values and nothing else; NumRet is eight times nDCG@10."""
    made = a_page(measures=("nDCG@10", "NumRet"))
    n = len(runs[0])
    ids = pl.Series("query_id", [f"p{number}" for number in range(n)])
    sheets = []
    for number, values in enumerate(runs):
        frame = pl.DataFrame({"query_id": ids, "nDCG@10": values})
        sheet = with_values(made.sheets[0], frame.with_columns(NumRet=8 * pl.col("nDCG@10")))
        sheets.append(replace(sheet, scores=replace(sheet.scores, name=f"run {number}")))
    queries = replace(
        made.queries,
        ids=ids,
        texts=None,
        fields=pl.DataFrame(),
        n_relevant=pl.Series([1] * n, dtype=pl.Int32),
        outcomes=[],
        lists=[],
        details={},
    )
    return replace(made, sheets=sheets, queries=queries)


def ids_shown(page):
    return page.locator(".queries button.open").all_text_contents()


def control(page, label):
    return page.locator("#queries").get_by_label(label, exact=True)


def row_of(page, query):
    return page.locator(".queries tbody tr", has=page.get_by_role("button", name=query, exact=True))


def copied(page, button):
    """Return what a button copies."""
    page.evaluate(
        "() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; }"
    )
    page.locator("#queries").get_by_role("button", name=button, exact=True).click()
    return page.evaluate("window.copied")


def test_link_restores_measure_filters_sort_and_pair(path, opened):
    page = opened(path)
    control(page, "measure").select_option(label="RR")
    control(page, "run B").select_option(label=RUN_A)
    control(page, "group").select_option(label="category")
    control(page, "value").select_option(label="billing (4)")
    control(page, "change").select_option(label="worse")
    page.locator("#queries").get_by_role("searchbox").fill("q")
    page.locator(".queries thead").get_by_role("button", name="query").click()
    page.locator(".queries thead").get_by_role("button", name="query").click()
    expect(page.locator(".queries tbody tr")).to_have_count(3)
    before = ids_shown(page)
    assert before == ["q6", "q5", "q1"]
    link = copied(page, "Copy link")
    expect(page.locator(".announcement")).to_have_text("Copied")
    page = opened(path, "#" + link.partition("#")[2])
    assert ids_shown(page) == before
    for label, value in {
        "measure": "RR",
        "run A": RUN_B,
        "run B": RUN_A,
        "change": "worse",
    }.items():
        expect(control(page, label).locator("option:checked")).to_have_text(value)
    expect(control(page, "value").locator("option:checked")).to_have_text("billing (4)")
    expect(control(page, "search")).to_have_value("q")
    expect(page.locator(".queries thead [aria-sort]")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name="clear filters").click()
    assert len(ids_shown(page)) == 10


def test_choosing_the_run_that_is_compared_already_swaps_both(path, opened):
    page = opened(path)
    control(page, "run A").select_option(label=RUN_B)
    expect(control(page, "run B").locator("option:checked")).to_have_text(RUN_A)
    heads = page.locator(".queries thead .value")
    assert heads.all_inner_texts() == [RUN_B, RUN_A]


def test_unknown_query_is_reported_and_removed_from_the_address(path, opened):
    page = opened(path, "#query=%3Cimg%20src%3Dx%3E&measure=RR")
    message = page.get_by_role("alert")
    expect(message).to_contain_text("The report has no query <img src=x>.")
    expect(message).to_be_in_viewport()
    assert page.evaluate("location.hash") == "#measure=RR"
    expect(page.locator("dialog[open]")).to_have_count(0)
    message.get_by_role("button", name="dismiss").click()
    expect(message).to_have_count(0)


def test_csv_has_all_digits_of_the_filtered_queries(path, opened):
    page = opened(path)
    control(page, "group").select_option(label="category")
    control(page, "value").select_option(label="billing (4)")
    with page.expect_download() as download:
        page.locator("#queries").get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "queries-nDCG@10.csv"
    with download.value.path().open(newline="", encoding="utf-8-sig") as file:
        lines = list(csv.DictReader(file))
    assert [line["query_id"] for line in lines] == ["q0", "q1", "q5", "q6"]
    scores = {sheet.name: sheet.scores.per_query["nDCG@10"] for sheet in a_page().sheets}
    for line in lines:
        row = IDS.index(line["query_id"])
        assert line["text"] == TEXTS[row][:200]
        assert (line["category"], line["<u>"]) == ("billing", f"v{row % 2}")
        values = {name: scores[name][row] for name in scores}
        assert {name: float(line[name]) for name in scores} == values
        assert float(line["change"]) == values[RUN_B] - values[RUN_A]


def test_markdown_has_the_first_rows_with_special_characters_escaped(path, opened):
    page = opened(path)
    page.locator("#queries").get_by_role("searchbox").fill("refund")
    expect(page.locator(".queries tbody tr")).to_have_count(1)
    assert copied(page, "Copy as Markdown").splitlines() == [
        "nDCG@10, 1 of 10 queries",
        "",
        "| query | \\<b> | a | change |",
        "| --- | ---: | ---: | ---: |",
        "| q7: How do I get a refund? | 0.380 | 0.950 | +0.570 |",
    ]


def dots_of(page, row):
    """Return run and place of the dots of a row."""
    return page.locator(f"tr[data-row='{row}'] circle").evaluate_all(
        """dots => dots.map((dot) => ({
          run: Number(dot.dataset.run), x: dot.cx.baseVal.value, y: dot.cy.baseVal.value,
        }))"""
    )


@pytest.mark.parametrize("measure", ["nDCG@10", "NumRet"])
def test_dots_of_equal_values_are_at_the_same_place_in_all_rows(tmp_path, opened, measure):
    values = [[0.0, 0.25, 0.5, 0.75], [0.25, 0.25, 0.75, 0.0], [0.5, 0.25, 0.5, 0.125]]
    page = opened(written(of_values(*values), tmp_path / "dots.html"), f"#measure={measure}")
    largest = {"nDCG@10": 1, "NumRet": 0.75}[measure]
    for row in range(4):
        dots = dots_of(page, row)
        for dot in dots:
            value = values[dot["run"]][row]
            assert dot["x"] == pytest.approx(8 + 144 * value / largest)
        assert len({(dot["x"], dot["y"]) for dot in dots}) == 3, "no dot covers another"
    widths = {plot.bounding_box()["width"] for plot in page.locator(".dot-plot").all()}
    assert widths == {160}
    expect(page.locator(".axis")).to_have_text({"nDCG@10": "01", "NumRet": "06"}[measure])
    expect(page.locator("tr[data-row='0'] title")).to_have_text(
        {
            "nDCG@10": "run 0 0.000\nrun 1 0.250\nrun 2 0.500",
            "NumRet": "run 0 0\nrun 1 2\nrun 2 4",
        }[measure]
    )


def test_of_many_runs_only_the_best_and_the_compared_ones_are_coloured(tmp_path, opened):
    runs = [[number / 12, 0.5] for number in range(12)]
    page = opened(written(of_values(*runs), tmp_path / "many.html"))
    control(page, "run A").select_option(label="run 3")
    control(page, "run B").select_option(label="run 4")
    dots = page.locator("tr[data-row='0'] circle")
    colours = dots.evaluate_all(
        "dots => dots.map(dot => [dot.dataset.run, dot.attributes.fill.value])"
    )
    assert [run for run, colour in colours if colour != "var(--run-other)"] == ["3", "4", "11"]
    assert len({colour for _, colour in colours}) == 4
    legend = page.locator(".run-legend li")
    assert legend.all_inner_texts() == ["run 3 (A)", "run 4 (B)", "run 11", "9 other runs"]


def test_first_hits_name_their_run(path, opened):
    page = opened(path)
    expected = {
        "q0": "a – <b> #3",
        "q1": "a #1 <b> #3",
        "q8": "a #1 <b> failed",
        IDS[-1]: "a #1 <b> not in run",
    }
    for query, text in expected.items():
        cell = row_of(page, query).locator(".first")
        assert cell.inner_text().split() == text.split(), query
    red = row_of(page, IDS[0]).locator(".worse").evaluate("cell => getComputedStyle(cell).color")
    failed = row_of(page, "q8").locator(".failed")
    assert failed.evaluate("text => getComputedStyle(text).color") == red


def test_rows_come_twenty_at_first_and_fifty_more(tmp_path, opened):
    values = [number / 200 for number in range(100)]
    page = opened(written(of_values(values), tmp_path / "rows.html"))
    ids = [f"p{number}" for number in range(100)]
    assert ids_shown(page) == ids[:20]
    page.get_by_role("button", name="show 50 more (80 remaining)").click()
    assert ids_shown(page) == ids[:70]
    expect(page.locator(".queries button.open").nth(20)).to_be_focused()
    page.get_by_role("button", name="show the remaining 30").click()
    assert ids_shown(page) == ids
    expect(page.locator("#queries .more")).to_be_hidden()
    page.locator("#queries").get_by_role("searchbox").fill("p1")
    expect(page.locator(".queries tbody tr")).to_have_count(11)
    expect(page.locator("#queries .count")).to_contain_text("11 of 100 queries")


def test_keys_move_between_rows_and_open_a_query(tmp_path, opened):
    values = [number / 200 for number in range(30)]
    page = opened(written(of_values(values), tmp_path / "keys.html"))
    expect(page.locator("#queries .hint")).to_have_text(
        "↑ ↓ or j k: move between rows · Enter: open"
    )
    buttons = page.locator(".queries button.open")
    buttons.first.focus()
    for key, row in [("j", 1), ("ArrowDown", 2), ("k", 1), ("ArrowUp", 0), ("k", 0), ("End", 19)]:
        page.keyboard.press(key)
        expect(buttons.nth(row)).to_be_focused()
    assert page.locator(".queries button.open[tabindex='0']").count() == 1
    page.keyboard.press("j")
    expect(buttons.nth(20)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("dialog[open]")).to_contain_text("p20")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(buttons.nth(20)).to_be_focused()


def test_closing_a_query_leads_to_its_row_even_if_another_was_opened(path, opened):
    page = opened(path)
    page.locator(".queries button.open").nth(2).click()
    page.locator("dialog[open]").get_by_role("button", name="next").click()
    expect(page.locator("dialog[open] .query-id")).to_contain_text("q3")
    page.keyboard.press("Escape")
    expect(page.locator(".queries button.open").nth(3)).to_be_focused()


def test_click_anywhere_in_a_row_opens_the_query(path, opened):
    page = opened(path)
    row_of(page, "q3").locator(".dot-plot").click()
    expect(page.locator("dialog[open]")).to_contain_text("q3")
    assert page.evaluate("location.hash") == "#query=q3"


def test_row_fits_on_a_phone_with_the_change_next_to_the_text(path, opened):
    page = opened(path, viewport={"width": 390, "height": 844})
    wide, room = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= room
    row = row_of(page, "q7")
    kinds = (".difference", ".dots", ".value")
    parts = [row.locator(kind).first.bounding_box() for kind in kinds]
    text = row.locator(".beginning").bounding_box()
    assert parts[0]["y"] >= text["y"] + text["height"] - 1
    for left, right in pairwise(parts):
        assert left["x"] + left["width"] <= right["x"] + 1
    for cell in row.locator("td:visible").all():
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert row.locator(".dot-plot").bounding_box()["width"] == 120


def test_groups_are_shown_only_on_wide_screens(path, opened):
    for width, shown in ((1280, 2), (1000, 0)):
        page = opened(path, viewport={"width": width, "height": 800})
        assert row_of(page, "q7").locator(".field:visible").count() == shown


def test_texts_have_at_most_two_lines(tmp_path, opened):
    queries = some_queries()
    long = pl.Series("text", ["word " * 40] * queries.ids.len())
    page = opened(written(a_page(replace(queries, texts=long)), tmp_path / "long.html"))
    text = row_of(page, "q7").locator(".beginning")
    line = text.evaluate("text => parseFloat(getComputedStyle(text).lineHeight)")
    assert text.bounding_box()["height"] <= 2 * line + 1


def test_link_with_a_filter_that_the_report_cannot_answer_shows_all_queries(tmp_path, opened):
    made = of_values([0.5, 0.25])
    page = opened(
        written(made, tmp_path / "plain.html"), "#outcome=failed&sort=gone&movement=better"
    )
    assert ids_shown(page) == ["p1", "p0"]
