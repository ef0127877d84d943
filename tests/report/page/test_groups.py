"""Groups of queries: every number of the tables, the dot plots, and what reverses the order."""

from __future__ import annotations

import re
from typing import Any

import pytest

import karat
from karat.report.page.model import Page
from karat.report.page.sections.group_tables import WIDTH, GroupsView, groups_view
from karat.report.page.templates import render
from karat.report.sheet import Sheet
from support.markup import Reader
from support.pages import FAIR, GOOD, MEASURES, POOR, compared, of_sheets

SIZES = {"billing": 6, "shipping": 8, "<b>few</b>": 3}


def page_of(runs: dict[str, dict[str, bool]], measures: Any = ("RR", "P@2")) -> Page:
    """Return a page of groups; a run finds the item of a group first, or second."""
    groups = [name for name, size in SIZES.items() for _ in range(size)]
    gold = [
        {"query_id": f"q{at:02}", "kind": kind, "relevant": ["a"]} for at, kind in enumerate(groups)
    ]
    lists = {
        name: {
            f"q{at:02}": ["a", "x"] if first[kind] else ["x", "a"] for at, kind in enumerate(groups)
        }
        for name, first in runs.items()
    }
    scores = karat.Evaluator(gold, list(measures)).all(lists)
    return of_sheets([Sheet(score, by=("kind",)) for score in scores])


def two_runs() -> Page:
    return page_of(
        {
            "one": {"billing": True, "shipping": False, "<b>few</b>": False},
            "two": {"billing": False, "shipping": True, "<b>few</b>": True},
        }
    )


def view_of(page: Page) -> GroupsView:
    view = groups_view(page)
    assert view is not None
    return view


def test_every_value_equals_that_of_the_scores() -> None:
    page = two_runs()
    (grouping,) = view_of(page).groupings
    assert grouping.title == "By kind"
    assert [table.measure for table in grouping.tables] == ["RR", "P@2"]
    for table in grouping.tables:
        for at, sheet in enumerate(page.sheets):
            by_kind = {
                row["kind"]: row
                for row in sheet.scores.by("kind").iter_rows(named=True)
                if row["measure"] == table.measure
            }
            shown = {row.label: row.cells[at] for row in table.rows[1:]}
            assert shown.keys() == by_kind.keys()
            for label, cell in shown.items():
                assert cell.row is not None
                for name in ("value", "low", "high", "n"):
                    assert cell.row[name] == by_kind[label][name]
                assert cell.text == f"{by_kind[label]['value']:.3f}"
            overall = table.rows[0].cells[at].row
            assert overall is not None
            assert overall["value"] == sheet.scores[table.measure]


def test_markup_has_all_digits() -> None:
    page = two_runs()
    cells = [
        attributes
        for name, attributes in Reader(render("groups.html", view=view_of(page))).elements
        if name == "td" and "data-value" in attributes
    ]
    expected = []
    for measure in ("RR", "P@2"):
        groups = [sheet.scores.by("kind") for sheet in page.sheets]
        rows = [group.filter(measure=measure).rows(named=True) for group in groups]
        expected += [repr(sheet.scores[measure]) for sheet in page.sheets]
        expected += [repr(row["value"]) for pair in zip(*rows, strict=True) for row in pair]
    assert [cell["data-value"] for cell in cells] == expected


def test_group_with_another_winner_reverses_the_order() -> None:
    (grouping,) = view_of(two_runs()).groupings
    rows = {row.label: row for row in grouping.tables[0].rows}
    assert rows["billing"].reversal == "reverses the overall order"
    assert [rows[name].reversal for name in ("all queries", "shipping", "<b>few</b>")] == [""] * 3
    assert [cell.is_best for cell in rows["billing"].cells] == [True, False]
    assert (
        grouping.tables[0].caption
        == "two is best overall; a different run is best in 1 of 3 groups (⇄)."
    )
    # P@2 is equal everywhere: there is no order that a group could reverse.
    assert all(not row.reversal for row in grouping.tables[1].rows)


def test_reversal_among_three_runs_is_another_winner() -> None:
    first = dict.fromkeys(SIZES, True)
    page = page_of(
        {
            "good": first | {"billing": False},
            "poor": dict.fromkeys(SIZES, False),
            "odd": dict.fromkeys(SIZES, False) | {"billing": True},
        }
    )
    rows = {row.label: row for row in view_of(page).groupings[0].tables[0].rows}
    assert rows["billing"].reversal == "a different run is best here"


def test_tie_with_the_winner_is_no_reversal() -> None:
    first = dict.fromkeys(SIZES, True)
    page = page_of({"good": first, "same here": first | {"billing": False}})
    assert all(not row.reversal for row in view_of(page).groupings[0].tables[0].rows)


def test_lower_is_better_for_costs_which_are_readable() -> None:
    gold = [{"query_id": f"q{n}", "kind": "ab"[n % 2], "relevant": ["a"]} for n in range(12)]
    call = {"stage": "embed", "model": "m", "prompt_tokens": 10}
    runs = {
        name: [
            {"query_id": q["query_id"], "results": ["a"], "calls": [call | {"price_per_1k": price}]}
            for q in gold
        ]
        for name, price in (("dear", 0.00004), ("cheap", 0.00002))
    }
    scores = karat.Evaluator(gold, ["RR", "cost.mean"]).all(runs)
    page = of_sheets([Sheet(score, by=("kind",)) for score in scores])
    table = view_of(page).groupings[0].tables[1]
    assert table.label == "cost.mean [USD per 1M queries]"
    assert table.direction == "lower is better"
    assert [cell.text for cell in table.rows[1].cells] == ["0.400", "0.200"]
    assert [cell.is_best for cell in table.rows[1].cells] == [False, True]
    assert table.rows[1].cells[0].row is not None
    assert table.rows[1].cells[0].row["value"] == scores[0].by("kind")["value"][1]


def test_small_groups_are_marked_by_a_word() -> None:
    (grouping,) = view_of(two_runs()).groupings
    assert {row.label: row.is_few for row in grouping.tables[0].rows} == {
        "all queries": False,
        "billing": False,
        "shipping": False,
        "<b>few</b>": True,
    }
    text = Reader(render("groups.html", view=view_of(two_runs()))).text
    assert "few: fewer than 5 queries" in text
    assert "<b>few</b>" in text


def test_dots_are_on_one_axis_and_inside_the_plot() -> None:
    (grouping,) = view_of(two_runs()).groupings
    table = grouping.tables[0]
    positions = {}
    for row in table.rows:
        for dot in row.dots:
            assert 0 < dot.x < WIDTH
            assert 0 < dot.y < table.height
            if dot.low is not None and dot.high is not None:
                assert 0 < dot.low <= dot.x <= dot.high < WIDTH
            assert positions.setdefault(dot.exact, dot.x) == dot.x
        assert [dot.colour for dot in row.dots] == ["var(--run-0)", "var(--run-1)"]
    ordered = sorted(positions.items())
    assert [x for _, x in ordered] == sorted(positions.values())


def test_more_than_three_runs_show_the_best_and_the_range() -> None:
    page = compared({"good": GOOD, "fair": FAIR, "poor": POOR, "same": FAIR})
    view = view_of(page)
    assert not view.has_columns
    for table in view.groupings[0].tables:
        for row in table.rows:
            values = [dot.exact for dot in row.dots]
            assert len(values) == 4
            (cell,) = row.cells
            assert cell.row is not None
            assert cell.row["value"] == max(values)
            assert row.spread == f"{min(values):.3f} – {max(values):.3f}"


def test_many_runs_are_grey_but_for_the_best() -> None:
    runs = {f"r{at}": FAIR for at in range(9)} | {"best": GOOD}
    view = view_of(compared(runs))
    assert [run.name for run in view.runs] == ["best"]
    assert view.has_other_runs
    row = view.groupings[0].tables[0].rows[0]
    assert [dot.run for dot in row.dots if dot.colour == "var(--run-0)"] == ["best"]
    assert sum(dot.colour == "var(--run-other)" for dot in row.dots) == 9
    assert "other runs" in Reader(render("groups.html", view=view)).text


def test_long_tables_scroll_in_boxes_with_labels_of_their_own() -> None:
    gold = [
        {"query_id": f"q{n}", "kind": f"k{n % 20:02}", "other": f"o{n % 18}", "relevant": ["a"]}
        for n in range(40)
    ]
    scores = karat.evaluate(gold, {f"q{n}": ["a"] for n in range(40)}, MEASURES)
    sheets = [Sheet(scores, by=("kind",)), Sheet(scores, by=("other",))]
    page = of_sheets(sheets)
    markup = Reader(render("groups.html", view=view_of(page)))
    regions = [given for name, given in markup.elements if given.get("role") == "region"]
    assert len({region["aria-label"] for region in regions}) == len(regions) == 6
    assert all(region["tabindex"] == "0" for region in regions)


def test_page_without_groups_has_no_section() -> None:
    assert groups_view(of_sheets([Sheet(karat.evaluate({"q": ["a"]}, {"q": ["a"]}, "RR"))])) is None


@pytest.mark.parametrize("word", [" style=", " onclick="])
def test_markup_has_no_inline_code(word: str) -> None:
    assert not re.search(word, render("groups.html", view=view_of(two_runs())))
