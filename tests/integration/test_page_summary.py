"""The top of a report in a browser: sorting the leaderboard, copying the card, no JavaScript."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

import karat
from karat.report.page import html
from karat.report.page.model import Page
from support.pages import FAIR, GOLD, GOOD, HOSTILE, POOR, compared, scored

MIXED = {query: GOOD[query] if int(query[1:]) % 2 else POOR[query] for query in GOLD}


def written(page: Page, folder: Path) -> Path:
    path = folder / "report.html"
    with path.open("wb") as file:
        html.write(page, file)
    return path


@pytest.fixture(scope="module")
def leaderboard(tmp_path_factory) -> Path:
    runs = {"run 10": FAIR, "run 9": GOOD, "poor": POOR, "mixed": MIXED}
    return written(compared(runs), tmp_path_factory.mktemp("leaderboard"))


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Path:
    return written(compared({"good": GOOD, "poor": POOR}), tmp_path_factory.mktemp("pair"))


def names(page) -> list[str]:
    return page.locator("#results tbody tr > th bdi").all_inner_texts()


def values(page, column: int) -> list[float]:
    cells = page.locator(f"#results tbody tr > :nth-child({column})")
    return [float(cell.get_attribute("data-value")) for cell in cells.all()]


def column_of(page, label: str) -> int:
    heads = [
        head.inner_text().split("\n")[0] for head in page.locator("#results thead tr > *").all()
    ]
    return 1 + [head.strip() for head in heads].index(label)


@pytest.mark.parametrize("scripts", [True, False])
def test_leaderboard_is_sorted_by_the_main_measure_at_first(opened, leaderboard, scripts):
    page = opened(leaderboard, java_script_enabled=scripts)
    column = column_of(page, "nDCG@10")
    assert values(page, column) == sorted(values(page, column), reverse=True)
    assert page.locator("#results th[aria-sort]").count() == 1
    assert page.locator("#results th.main").get_attribute("aria-sort") == "descending"
    n_sortable = page.locator("#results th[data-sort]").count()
    assert page.locator("#results th button").count() == (n_sortable if scripts else 0)


def test_click_on_a_head_sorts_and_a_second_click_reverses(opened, leaderboard):
    page = opened(leaderboard)
    column, head = column_of(page, "RR"), page.locator("#results th", has_text="RR").first
    for direction in ("descending", "ascending"):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == direction
        assert values(page, column) == sorted(
            values(page, column), reverse=direction == "descending"
        )
    assert page.locator("#results th[aria-sort]").count() == 1


def test_names_are_sorted_with_their_numbers(opened, leaderboard):
    page = opened(leaderboard)
    head = page.locator("#results th").first
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert names(page) == ["mixed", "poor", "run 9", "run 10"]


def test_rank_ranges_are_sorted_from_the_best(opened, leaderboard):
    page = opened(leaderboard)
    page.locator("#results th", has_text="rank range").get_by_role("button").click()
    column = column_of(page, "rank range")
    assert values(page, column) == sorted(values(page, column))


@pytest.mark.parametrize("width", [390, 1280])
def test_first_column_stays_when_the_table_scrolls(opened, leaderboard, width):
    page = opened(leaderboard, viewport={"width": width, "height": 800})
    region = page.get_by_role("region", name="Values of each run")
    before = page.locator("#results tbody th").first.bounding_box()["x"]
    region.focus()
    region.evaluate("element => element.scrollBy(300, 0)")
    assert page.locator("#results tbody th").first.bounding_box()["x"] == pytest.approx(before)
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize(("width", "kind"), [(390, "narrow"), (1280, "wide")])
def test_one_plot_is_visible_and_described(opened, pair, width, kind):
    page = opened(pair, viewport={"width": width, "height": 800})
    plots = page.locator("#summary svg.plot:visible")
    assert plots.count() == 1
    assert kind in plots.get_attribute("class").split()
    label = plots.get_attribute("aria-label")
    assert label.index("good") < label.index("poor")
    box = plots.bounding_box()
    for text in plots.locator("text").all():
        inside = text.bounding_box()
        assert inside["x"] >= box["x"] - 1
        assert inside["x"] + inside["width"] <= box["x"] + box["width"] + 1


COPIED = """async () => {
  const [item] = await navigator.clipboard.read();
  const bytes = new Uint8Array(await (await item.getType("image/png")).arrayBuffer());
  return btoa(String.fromCharCode(...bytes.slice(0, 24)));
}"""


def test_button_copies_the_card(opened, pair):
    page = opened(pair, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy image").click()
    page.get_by_text("Image copied.").wait_for()
    head = base64.b64decode(page.evaluate(COPIED))
    assert head.startswith(b"\x89PNG")
    assert int.from_bytes(head[16:20]) == 2400


def test_card_is_downloaded_if_it_cannot_be_copied(opened, pair, tmp_path):
    page = opened(pair, accept_downloads=True)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    with page.expect_download() as download:
        page.get_by_role("button", name="Copy image").click()
    download.value.save_as(tmp_path / "card.png")
    assert (tmp_path / "card.png").read_bytes().startswith(b"\x89PNG")
    assert "downloaded" in page.locator("#summary [role=status]").inner_text()


def test_summary_without_scripts_shows_all_but_the_button(opened, pair):
    page = opened(pair, java_script_enabled=False)
    assert page.locator("#summary .pill").inner_text().endswith("significantly better")
    assert page.locator("#summary svg.plot:visible").count() == 1
    assert not page.locator("[data-copy-card]").is_visible()


def test_query_of_a_failed_threshold_opens(opened, tmp_path):
    verdict = karat.gate(GOLD, FAIR, ["RR >= 0.9"])
    page = opened(written(replace(scored(), verdict=verdict), tmp_path))
    assert "FAILED" in page.locator("#gate .gate-banner").inner_text()
    button = page.locator("#gate button[data-query]").first
    button.click()
    expect(page.locator("dialog[open]")).to_contain_text(button.inner_text())


@pytest.mark.parametrize("name", HOSTILE, ids=HOSTILE.values())
def test_hostile_names_run_nothing_and_can_be_copied(opened, tmp_path, name):
    report = replace(compared({name: GOOD, "b": FAIR, "c": POOR, "d": MIXED}), title=name)
    page = opened(written(report, tmp_path), permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy image").click()
    page.get_by_text("Image copied.").wait_for()
    assert page.evaluate("window.harm") is None
