"""The table of queries, in a browser."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from playwright.sync_api import expect

from karat.report.cells import format_difference, format_value
from karat.report.page import scripts
from karat.report.page.html import write
from karat.report.page.model import Outcomes
from support.pages import IDS, a_page, some_queries


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
    return written(a_page(), tmp_path_factory.mktemp("page") / "page.html")


def written(page, path):
    with path.open("wb") as file:
        write(page, file)
    return path


def ids_shown(page):
    return page.locator(".queries button.open").all_text_contents()


def choose(page, label, option):
    select = page.locator("#queries").get_by_label(label, exact=True)
    select.select_option(label=option, timeout=5000)


def test_queries_with_the_largest_loss_come_first(path, opened):
    page = opened(path)
    count = page.locator("#queries .count")
    expect(count).to_have_text("10 queries, sorted by largest loss in nDCG@10, <b> → a")
    assert ids_shown(page) == IDS
    choose(page, "run A", "a")
    expect(count).to_have_text("10 queries, failed first, then largest loss in nDCG@10, a → <b>")
    assert ids_shown(page) == ["q8", IDS[-1], *IDS[1:-2], IDS[0]]


def test_worst_queries_come_first_with_one_run(tmp_path, opened):
    page = a_page()
    queries = replace(page.queries, outcomes=page.queries.outcomes[:1])
    one = replace(page, sheets=page.sheets[:1], queries=queries)
    page = opened(written(one, tmp_path / "one.html"))
    assert ids_shown(page) == IDS
    expect(page.locator("#queries .count")).to_have_text("10 queries, sorted by a, worst first")
    expect(page.locator("#queries").get_by_label("run A")).to_have_count(0)
    expect(page.locator(".queries .difference")).to_have_count(0)
    expect(page.locator(".queries tbody .value")).to_have_count(10)


def test_values_are_those_of_the_scores(path, opened):
    page = opened(path)
    sheets = a_page().sheets
    measures = sheets[0].summary["measure"].to_list()
    for measure in measures:
        choose(page, "measure", measure)
        page.get_by_role("button", name="query", exact=False).first.click()
        for row, query in enumerate(IDS):
            line = page.locator(f".queries tr[data-row='{row}']")
            values = [sheet.scores.per_query[measure][row] for sheet in reversed(sheets)]
            cells = line.locator(".value").all()
            assert [float(cell.get_attribute("data-value")) for cell in cells] == values, query
            assert [cell.inner_text() for cell in cells] == [
                format_value(v, measure) for v in values
            ]
            expect(line.locator(".difference")).to_contain_text(
                format_difference(values[1] - values[0], measure)
            )


def test_columns_sort_in_both_directions_with_missing_values_last(path, opened):
    page = opened(path)
    head = page.locator(".queries thead")
    head.get_by_role("button", name="query").click()
    assert ids_shown(page) == IDS
    head.get_by_role("button", name="query").click()
    assert ids_shown(page) == IDS[::-1]
    expect(head.locator("[aria-sort]")).to_have_attribute("aria-sort", "descending")
    for ends in (["<b>", "<b>"], ["delivery", "delivery"]):
        head.get_by_role("button", name="category").click()
        cells = page.locator(".queries td.field:nth-child(7)").all_text_contents()
        assert cells[:2] == ends
        assert cells[-2:] == ["–", "–"]


FILTERS = [
    ({"run B": "<b>", "found by B": "failed (1)"}, ["q8"]),
    ({"run B": "<b>", "found by B": "not in the run (1)"}, [IDS[-1]]),
    ({"run B": "<b>", "found by B": "some found (8)"}, IDS[:8]),
    ({"run B": "<b>", "change": "better"}, ["q0"]),
    ({"run B": "<b>", "change": "worse"}, IDS[1:]),
    ({"group": "category", "value": "<b> (2)"}, ["q3", "q8"]),
    ({"group": "category", "value": "– (2)"}, ["q4", IDS[-1]]),
    ({"run B": "<b>", "group": "category", "value": "billing (4)", "change": "better"}, ["q0"]),
    ({"run B": "a", "found by B": "nothing found (1)"}, ["q0"]),
    ({"run B": "a", "found by B": "everything found (9)"}, IDS[1:]),
]


def test_filters_show_the_queries_they_select(path, opened):
    page = opened(path)
    for choices, shown in FILTERS:
        for label, option in choices.items():
            choose(page, label, option)
        assert sorted(ids_shown(page)) == shown, choices
        expect(page.locator("#queries .count")).to_contain_text(f"{len(shown)} of 10 queries")
        page.get_by_role("button", name="clear filters").click()
        assert len(ids_shown(page)) == 10, choices


def test_search_finds_ids_and_texts_in_any_case(path, opened):
    page = opened(path)
    box = page.get_by_role("searchbox")
    box.fill("REFUND")
    expect(page.locator(".queries tbody tr")).to_have_count(1)
    assert ids_shown(page) == ["q7"]
    box.fill("z</SCRIPT>")
    expect(page.locator("#queries").get_by_role("button", name=IDS[-1])).to_be_visible()
    assert ids_shown(page) == [IDS[-1]]
    box.fill("nothing is like this")
    expect(page.locator("#queries .count")).to_have_text("No queries match the filters.")


def test_notices_set_the_filters(path, opened):
    page = opened(path)
    choose(page, "change", "better")
    page.evaluate(
        """() => {
          const button = document.createElement("button");
          button.id = "asked";
          const show = { run: "<b>", outcome: "failed" };
          button.dataset.show = JSON.stringify(show);
          document.body.prepend(button);
          button.click();
        }"""
    )
    expect(page.locator(".queries tbody tr")).to_have_count(1)
    assert ids_shown(page) == ["q8"]
    page.evaluate(
        """() => {
          const button = document.getElementById("asked");
          button.dataset.show = JSON.stringify({ field: "category", value: null });
          button.click();
        }"""
    )
    expect(page.locator(".queries tbody tr")).to_have_count(2)


def with_values(sheet, frame):
    """Return a sheet with other values of its queries."""
    scores = sheet.scores
    table = replace(scores.table, frame=frame, weights=pl.DataFrame(), holes=pl.DataFrame())
    return replace(sheet, scores=replace(scores, table=table))


def test_difference_by_rounding_alone_counts_as_the_same(tmp_path, opened):
    made = a_page()
    first, second = made.sheets
    name = first.summary["measure"][0]
    nearly = first.scores.per_query.with_columns(pl.col(name) * (1 + 2.0**-52))
    sheets = [first, with_values(second, nearly)]
    page = opened(written(replace(made, sheets=sheets), tmp_path / "r.html"))
    choose(page, "change", "unchanged")
    assert len(ids_shown(page)) == 10


def test_filter_for_nothing_found_by_any_run_needs_all_lists(tmp_path, opened):
    known = some_queries()
    n = known.ids.len()
    nothing = pl.Series([0] * n, dtype=pl.Int32)

    def offered(status: int) -> bool:
        second = Outcomes(pl.Series([status] * n, dtype=pl.UInt8), nothing, nothing)
        queries = replace(known, outcomes=[known.outcomes[0], second])
        page = opened(written(a_page(queries), tmp_path / f"{status}.html"))
        return "nothing found by any run (1)" in page.get_by_label("found by B").inner_text()

    assert offered(2)
    assert not offered(3)


def test_numbers_are_formatted_as_in_the_terminal(path, opened):
    kinds = {
        "nDCG@10": {"unit": None, "whole": False},
        "NumRet": {"unit": None, "whole": True},
        "latency.p90": {"unit": "ms", "whole": False},
    }
    fractions = [numerator / 2**power for power in range(8) for numerator in range(-9, 300, 3)]
    thirds = [numerator / 30 * 10.0**power for power in range(-6, 9) for numerator in range(50)]
    values = [*fractions, *thirds, -0.0, 1234567.0, 1e15, 0.99995, 5e-05, 0.00015]
    page = opened(path)
    source = scripts.page_script()
    start = source.index("// Numbers in the same format as")
    code = source[start : source.index("// The data of the queries;")]
    for measure, kind in kinds.items():
        both = "values.map((value) => [number(value, measure), signed(value, measure)])"
        shown = page.evaluate(f"([values, measure]) => {{ {code} return {both}; }}", [values, kind])
        assert shown == [[format_value(v, measure), format_difference(v, measure)] for v in values]
