"""The section that compares two runs: differences, scatter plot, changed queries, matrix."""

from __future__ import annotations

import csv
import io
import random
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

import karat
from karat.report.comparison import ComparisonSheet
from karat.report.page import build

NAMES = ("bm25", "dense", "hybrid")
MEASURES = ["nDCG@10", "RR", "P@2", "latency.mean"]
HOSTILE = "<img src=x onerror='window.harm = 1'>, \"quoted\" = 'text'"
N = 40


def runs(names: tuple[str, ...] = NAMES) -> dict[str, list[dict[str, object]]]:
    """Each run finds more than the one before, and takes longer; the last lacks a query."""
    made = {}
    for at, name in enumerate(names):
        draw = random.Random(name)
        lines = []
        for number in range(N - (at == len(names) - 1)):
            items = ["x", "y", "z", "w"]
            for item in ("a", "b"):
                if draw.random() < 0.25 + 0.25 * at:
                    items.insert(draw.randrange(3), item)
            times = {"total": 10.0 + 20 * at + draw.random()}
            lines.append({"query_id": f"q{number}", "results": items, "latency_ms": times})
        made[name] = lines
    return made


def gold() -> karat.Gold:
    return karat.Gold.of(
        [
            {
                "query_id": f"q{number}",
                "query": HOSTILE if number == 3 else f"question {number}?",
                "relevant": {"a": 2, "b": 1},
            }
            for number in range(N)
        ]
    )


def compared(names: tuple[str, ...] = NAMES, **choices: object) -> karat.Comparison:
    return karat.compare(gold(), runs(names), MEASURES, **choices)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("comparison")


@pytest.fixture(scope="module")
def comparison() -> karat.Comparison:
    return compared()


@pytest.fixture(scope="module")
def report(folder, comparison) -> Path:
    path = folder / "three.html"
    comparison.report(path)
    return path


@pytest.fixture
def section(opened, report):
    """The section of the report of three runs; the shared tab is as it was opened."""
    page = opened(report)
    page.locator("#comparison .moved").first.wait_for()
    return page.locator("#comparison")


def pairs_of(comparison, a, b) -> dict[str, dict[str, object]]:
    """Return the rows of the JSON of a pair by measure, as they are stored."""
    rows = ComparisonSheet(comparison).as_dict()["pairs"]
    return {row["measure"]: row for row in rows if (row["a"], row["b"]) == (a, b)}


def chosen(section) -> tuple[str, str]:
    names = [
        select.evaluate("select => select.selectedOptions[0].text")
        for select in section.locator(".pair-picker select").all()
    ]
    return names[0], names[1]


def choose(section, a: str | None = None, b: str | None = None) -> None:
    for at, name in enumerate((a, b)):
        if name is not None:
            section.locator(".pair-picker select").nth(at).select_option(label=name)


def numbers(section) -> dict[str, tuple[float | None, ...]]:
    """Return difference, low, high and p of each measure, with all digits."""
    found = {}
    for row in section.locator(".forest tbody tr").all():
        cell = row.locator("td.numeric")
        texts = [cell.get_attribute(f"data-{name}") for name in ("value", "low", "high", "p")]
        label = row.locator("button").inner_text().split(" [")[0]
        found[label] = tuple(None if text is None else float(text) for text in texts)
    return found


def counts(section) -> dict[str, list[int]]:
    return {
        row.locator("button").inner_text().split(" [")[0]: [
            int(part) for part in row.locator(".counts").inner_text().split(" / ")
        ]
        for row in section.locator(".forest tbody tr").all()
    }


def test_best_run_is_compared_with_the_second(section):
    assert chosen(section) == ("dense", "hybrid")


def test_numbers_are_those_of_the_json(section, comparison):
    for a, b in (("bm25", "dense"), ("bm25", "hybrid"), ("dense", "hybrid")):
        choose(section, a="bm25", b="dense")
        choose(section, b=b)
        choose(section, a=a)
        rows = pairs_of(comparison, a, b)
        assert numbers(section) == {
            name: (row["difference"], row["low"], row["high"], row["p_corrected"])
            for name, row in rows.items()
        }
        assert counts(section) == {
            name: [row["wins"], row["ties"], row["losses"]] for name, row in rows.items()
        }


def test_swap_negates_every_number(section, comparison):
    choose(section, a="bm25")
    section.get_by_role("button", name="swap").click()
    assert chosen(section) == ("hybrid", "bm25")
    rows = pairs_of(comparison, "bm25", "hybrid")
    assert numbers(section) == {
        name: (-row["difference"], -row["high"], -row["low"], row["p_corrected"])
        for name, row in rows.items()
    }
    assert counts(section) == {
        name: [row["losses"], row["ties"], row["wins"]] for name, row in rows.items()
    }
    row = section.locator(".forest tbody tr", has_text="nDCG@10")
    assert "▼" in row.inner_text()
    assert "significant" in row.inner_text()


def test_choosing_the_run_of_the_other_side_exchanges_both(section):
    choose(section, a="hybrid")
    assert chosen(section) == ("hybrid", "dense")
    choose(section, b="hybrid")
    assert chosen(section) == ("dense", "hybrid")


def test_better_points_to_the_same_side_for_every_measure(section):
    choose(section, a="bm25")
    side = {
        row.locator("button").inner_text().split(" [")[0]: float(
            row.locator("circle").get_attribute("cx").removesuffix("%")
        )
        for row in section.locator(".forest tbody tr").all()
    }
    assert side["nDCG@10"] > 50
    assert side["latency.mean"] < 50
    latency = section.locator(".forest tbody tr", has_text="latency.mean")
    assert latency.locator(".difference").inner_text().startswith("▼ +")
    assert "Drawn on separate axes: latency.mean" in section.inner_text()


def test_queries_left_out_are_reported(section):
    assert "1 query left out of latency.mean: value in only one" in section.inner_text()
    choose(section, a="bm25", b="dense")
    assert section.locator(".left-out").count() == 0


def test_measure_is_chosen_in_the_forest(section):
    button = section.locator(".forest").get_by_role("button", name="RR")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert section.locator(".forest [aria-pressed=true]").count() == 1
    section.locator(".scatter-box .takeaway", has_text="by RR").wait_for()
    assert section.page.evaluate("document.activeElement.textContent") == "RR"


def test_address_holds_pair_and_measure(opened, section, report):
    choose(section, a="bm25", b="dense")
    section.locator(".forest").get_by_role("button", name="P@2").click()
    fragment = section.page.evaluate("location.hash")
    assert fragment == "#a=bm25&b=dense&measure=P%402"
    reloaded = opened(report, fragment).locator("#comparison")
    assert chosen(reloaded) == ("bm25", "dense")
    pressed = reloaded.locator(".forest [aria-pressed=true]")
    assert pressed.inner_text() == "P@2"


def test_points_are_the_queries(section, comparison):
    row = pairs_of(comparison, "dense", "hybrid")["nDCG@10"]
    first, second = (score.per_query["nDCG@10"] for score in comparison.scores[1:])
    values = {
        (float(point.get_attribute("data-a")), float(point.get_attribute("data-b")))
        for point in section.locator(".point").all()
    }
    assert values == set(zip(first, second, strict=True))
    caption = section.locator(".scatter-box .takeaway").inner_text()
    assert caption == (
        f"hybrid is better on {row['wins']} of {N} queries, worse on {row['losses']}, by nDCG@10"
    )
    assert section.locator("svg.scatter").get_attribute("aria-description")


def test_keyboard_moves_between_points_and_opens_a_query(section):
    page = section.page
    section.locator(".scatter-box .toolbar button").last.focus()
    page.keyboard.press("Tab")
    position = "(({ a, b }) => [Number(a), Number(b)])(document.activeElement.dataset)"
    start = page.evaluate(position)
    assert section.locator(".point[tabindex='0']").count() == 1
    tooltip = section.locator(".tooltip")
    assert tooltip.is_visible()
    moved = 0
    for key, axis, sign in (("Right", 0, 1), ("Left", 0, -1), ("Up", 1, 1), ("Down", 1, -1)):
        before = page.evaluate(position)
        page.keyboard.press(f"Arrow{key}")
        after = page.evaluate(position)
        if after != before:
            moved += 1
            assert (after[axis] - before[axis]) * sign > 0
    assert moved >= 2, start
    assert section.locator(".point[tabindex='0']").count() == 1
    query = tooltip.locator("code").first.inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("dialog[open]")).to_contain_text(query)
    assert f"query={query}" in page.evaluate("location.hash")


def test_tooltip_shows_text_and_both_values(section):
    section.locator(".point").last.hover()
    tooltip = section.locator(".tooltip")
    text = tooltip.inner_text()
    assert "?" in text
    assert "dense 0." in text or "dense 1." in text
    assert "hybrid 0." in text or "hybrid 1." in text
    section.locator("h2").hover()
    assert tooltip.is_hidden()


def test_text_of_a_query_is_never_markup(section):
    page = section.page
    for point in section.locator(".point").all():
        point.dispatch_event("focusin")
    assert page.locator("#comparison img").count() == 0
    assert page.evaluate("window.harm") is None


def test_largest_changes_are_listed(section, comparison):
    changes = comparison.scores[2].per_query["nDCG@10"] - comparison.scores[1].per_query["nDCG@10"]
    expected = sorted((value for value in changes if value > 0), reverse=True)[:5]
    better, worse = section.locator(".moved").all()
    shown = [float(cell.get_attribute("data-value")) for cell in better.locator(".change").all()]
    assert shown == expected
    expected = sorted(value for value in changes if value < 0)[:5]
    shown = [float(cell.get_attribute("data-value")) for cell in worse.locator(".change").all()]
    assert shown == expected
    assert better.locator(".change").first.inner_text().count("▲") == 1
    button = better.locator("button.open-query").first
    button.click()
    expect(section.page.locator("dialog[open]")).to_contain_text(button.inner_text())


def test_all_changed_queries_are_one_click_away(section, comparison):
    row = pairs_of(comparison, "dense", "hybrid")["nDCG@10"]
    button = section.locator(".moved").first.locator("button.all")
    assert button.inner_text() == f"show all {row['wins']} improved queries"
    button.click()
    assert section.page.evaluate("location.hash") == "#movement=better"
    section.page.locator("#queries .count", has_text=str(row["wins"])).wait_for()


def test_matrix_has_all_pairs_and_chooses_one(section, comparison):
    matrix = section.locator(".matrix")
    assert [cell.inner_text() for cell in matrix.locator("tbody th").all()] == [
        "hybrid",
        "dense",
        "bm25",
    ]
    assert matrix.locator("td button").count() == 6
    for a, b in (("bm25", "dense"), ("bm25", "hybrid"), ("dense", "hybrid")):
        difference = pairs_of(comparison, a, b)["nDCG@10"]["difference"]
        for row, column, value in ((b, a, difference), (a, b, -difference)):
            cell = matrix.get_by_role("button", name=f"{row} − {column}:")
            assert float(cell.get_attribute("data-value")) == value
    cell = matrix.get_by_role("button", name="bm25 − hybrid:")
    assert cell.inner_text().startswith("▼ -")
    cell.click()
    assert chosen(section) == ("hybrid", "bm25")
    assert matrix.locator("[aria-pressed=true]").get_attribute("title").startswith("bm25 − hybrid")
    assert "hybrid is significantly better than" in section.inner_text()


def test_matrix_is_one_stop_of_the_tab_key(section):
    matrix, page = section.locator(".matrix"), section.page
    assert matrix.locator("button[tabindex='0']").count() == 1
    matrix.locator("button[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    focused = page.evaluate("document.activeElement.title")
    assert focused.startswith("dense − bm25")
    assert matrix.locator("button[tabindex='0']").count() == 1
    page.keyboard.press("ArrowLeft")  # over the diagonal
    assert page.evaluate("document.activeElement.title").startswith("dense − hybrid")
    page.keyboard.press("Enter")
    assert chosen(section) == ("hybrid", "dense")


def test_table_is_copied_as_markdown(opened, report, comparison):
    page = opened(report, permissions=["clipboard-read", "clipboard-write"])
    page.locator("#comparison").get_by_role("button", name="Copy as Markdown").click()
    page.get_by_role("status").filter(has_text="Copied").wait_for()
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[0].startswith("| measure | dense | hybrid | difference | 95% interval | p |")
    row = pairs_of(comparison, "dense", "hybrid")["nDCG@10"]
    assert lines[2].startswith(
        f"| nDCG@10 | {row['value_a']:.3f} | {row['value_b']:.3f} | {row['difference']:+.3f} | "
        f"[{row['low']:.3f}, {row['high']:.3f}] |"
    )


def test_table_is_copied_without_the_clipboard_interface(opened, report):
    page = opened(report, permissions=["clipboard-read"])
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.locator("#comparison").get_by_role("button", name="Copy as Markdown").click()
    page.get_by_role("status").filter(has_text="Copied").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Copy as Markdown"


def saved(page, button) -> bytes:
    with page.expect_download() as download:
        button.click()
    return Path(download.value.path()).read_bytes()


def test_csv_holds_all_digits(section, comparison):
    content = saved(section.page, section.get_by_role("button", name="CSV")).decode("utf-8-sig")
    rows = {row["measure"]: row for row in csv.DictReader(io.StringIO(content))}
    stored = pairs_of(comparison, "dense", "hybrid")
    assert list(rows) == MEASURES
    for name, row in rows.items():
        for column in ("difference", "low", "high", "wins", "ties", "losses"):
            assert float(row[column]) == stored[name][column]
        assert float(row["hybrid"]) == stored[name]["value_b"]


def test_drawing_is_saved_as_svg_with_plain_colours(section):
    svg = saved(section.page, section.get_by_role("button", name="SVG")).decode()
    assert svg.startswith("<svg")
    assert 'xmlns="http://www.w3.org/2000/svg"' in svg
    assert "var(" not in svg
    assert "currentColor" not in svg.replace("currentcolor", "currentColor")
    assert "font-family" in svg
    assert "bm25" not in svg
    assert "hybrid better" in svg


def test_drawing_is_saved_as_png_of_twice_its_size(section):
    png = saved(section.page, section.get_by_role("button", name="PNG"))
    assert png.startswith(b"\x89PNG")
    assert [int.from_bytes(png[at : at + 4], "big") for at in (16, 20)] == [760, 760]


def test_names_that_look_like_formulas_are_text_in_csv(opened, folder):
    path = folder / "names.html"
    compared(("=1+1", '@a,"b|<i>')).report(path)
    page = opened(path)
    section = page.locator("#comparison")
    section.locator(".moved").first.wait_for()
    content = saved(page, section.get_by_role("button", name="CSV")).decode("utf-8-sig")
    head = next(csv.reader(io.StringIO(content)))
    assert head[1:3] == ["'=1+1", "'@a,\"b|<i>"]
    assert page.locator("#comparison i").count() == 0
    assert section.locator(".matrix").count() == 0


def test_notes_on_the_tests_are_folded(section):
    notes = section.locator("details.tests")
    assert notes.get_attribute("open") is None
    assert notes.locator("li").first.is_hidden()
    notes.locator("summary").click()
    assert "sign-flip randomization test" in notes.inner_text()


def test_runs_that_were_not_compared_with_each_other(opened, folder):
    path = folder / "baseline.html"
    compared(baseline="dense").report(path)
    page = opened(path)
    section = page.locator("#comparison")
    section.locator(".moved").first.wait_for()
    assert chosen(section) == ("dense", "hybrid")
    assert section.locator(".matrix td button").count() == 2
    assert "significantly better than dense" in section.locator(".matrix-box").inner_text()
    choose(section, a="bm25")
    assert "hybrid and bm25 were not tested against each other" in section.inner_text()
    assert section.locator(".forest").count() == 0
    section.locator(".scatter-box .takeaway").wait_for()
    assert section.locator(".point").count() > 1


def test_runs_that_were_only_scored(opened, folder):
    names = tuple(f"run{number}" for number in range(7))
    evaluate = karat.Evaluator(gold(), MEASURES)
    path = folder / "scored.html"
    scores = [evaluate(karat.Run.of(lines, name=name)) for name, lines in runs(names).items()]
    build.write(replace(build.build_page(scores), comparison=None), path)
    section = opened(path).locator("#comparison")
    section.locator(".moved").first.wait_for()
    assert "Differences were not tested: run karat compare" in section.inner_text()
    assert section.locator(".point").count() > 1
    assert section.locator(".forest, .matrix").count() == 0


def test_many_runs_have_a_matrix_of_symbols(opened, folder):
    path = folder / "many.html"
    names = tuple(f"run{number:02}" for number in range(14))
    karat.compare(gold(), runs(names), ["nDCG@10"]).report(path)
    page = opened(path, viewport={"width": 390, "height": 800})
    matrix = page.locator("#comparison .matrix")
    matrix.wait_for()
    assert matrix.locator("td button").count() == 14 * 13
    assert set(matrix.locator("td button").all_inner_texts()) <= {"▲", "▼", "·"}
    assert ", p " in matrix.locator("td button").first.get_attribute("title")
    region = page.get_by_role("region", name="Differences of all pairs")
    assert region.get_attribute("tabindex") == "0"
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_many_queries_are_counted_in_squares(opened, folder):
    draw = random.Random(1)
    ids = [f"q{number}" for number in range(2_500)]
    items = ["a", "b", "c", "d", "e"]
    gold = {query: {draw.choice(items): 1} for query in ids}
    both = {name: {query: draw.sample(items, 5) for query in ids} for name in ("x", "y")}
    path = folder / "queries.html"
    karat.compare(gold, both, ["RR"]).report(path)
    page = opened(path)
    page.locator("rect.square").first.wait_for()
    squares = [int(s.get_attribute("data-count")) for s in page.locator("rect.square").all()]
    assert sum(squares) == 2_500
    assert 0 < page.locator(".point").count() <= 200
    page.locator("rect.square").nth(3).hover()
    assert "queries" in page.locator(".tooltip").inner_text()
