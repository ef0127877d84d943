"""Reports with hostile text and reports with very many queries, in a browser."""

from __future__ import annotations

import random

import pytest
from playwright.sync_api import expect

import karat
from support.effort import FULL

QUERIES = 100_000 if FULL else 1_000
TEXTS = 500 if FULL else 100
LARGEST = 60_000_000 if FULL else 2_000_000
HOSTILE = [
    "<script>window.hurt = 1; alert(1)</script>",
    "</script><script>window.hurt = 1</script>",
    '" onmouseover="window.hurt = 1" x="',
    "<img src=x onerror='window.hurt = 1'>",
    "javascript:window.hurt=1",
    "a \u202e reversed \u2066 text",
    "nothing \x00 here",
    "emoji 🦜 and 👩‍👩‍👧",
    "{{window.hurt}} ${window.hurt} datum.hurt",
]


def as_id(text):
    """Return a text without NUL characters, which ids cannot have."""
    return text.replace("\x00", "\x01")


def hostile_report(folder):
    """Write a report with hostile text in every place where data has text."""
    words = [*HOSTILE, "x" * 1_000_000]
    text = " and ".join(HOSTILE)
    gold = [
        {
            "query_id": as_id(f"{word[:99]} {at}"),
            "query": word,
            f"field {HOSTILE[0]}": HOSTILE[at % 3],
            "relevant": {as_id(f"item {word[:99]}"): 1},
            "spans": [{"doc_id": HOSTILE[1], "start": 5, "end": 60}],
            "evidence": [text[10:70], f"never found {word[:99]}"],
        }
        for at, word in enumerate(words)
    ]
    runs = {
        f"{name} {HOSTILE[0]}": [
            {
                "query_id": query["query_id"],
                "results": [
                    {
                        "id": as_id(f"item {word[:99]}"),
                        "doc_id": HOSTILE[1],
                        "start": start,
                        "end": start + 40,
                        "text": text[start : start + 40],
                    }
                ],
                "latency_ms": {"total": 10.0 + at, HOSTILE[2]: 1.0},
                "calls": [
                    {"stage": HOSTILE[0], "model": HOSTILE[3], "prompt_tokens": 9, "price_in": 1}
                ],
            }
            for at, (query, word) in enumerate(zip(gold, words, strict=True))
        ]
        for name, start in (("one", 0), ("two", 30))
    }
    measures = "RR,span.recall@5,evidence.recall@5,latency.p50,cost.mean"
    comparison = karat.compare(
        gold, runs, measures, by=f"field {HOSTILE[0]}", corpus={HOSTILE[1]: text}
    )
    comparison.report(folder / "report.html")
    return folder / "report.html", [query["query_id"] for query in gold]


def test_data_is_shown_as_text_and_never_run(tmp_path, opened):
    path, ids = hostile_report(tmp_path)
    page = opened(path, color_scheme="light")
    page.wait_for_selector(".queries tbody tr")
    opens = page.locator(".queries button.open")
    assert opens.count() == len(ids)
    for at in range(len(ids)):
        opens.nth(at).click()
        dialog = page.locator("dialog[open]")
        expect(dialog.locator("mark, .missed").first).to_be_visible()
        for label in ("span.recall@5", "evidence.recall@5", "RR"):
            dialog.get_by_label("measure").first.select_option(label=label)
        page.keyboard.press("Escape")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.locator("details.fold").evaluate_all("folds => folds.forEach((f) => (f.open = true))")
        for place in page.locator(".figures > *").all():
            place.scroll_into_view_if_needed()
            expect(place.locator(".plot:visible svg")).to_be_visible()
            for option in place.locator("option").all_text_contents():
                place.locator("select").select_option(label=option)
                expect(place.locator(".plot:visible svg")).to_be_visible()
        page.mouse.move(300, 300)
    assert page.evaluate("window.hurt") is None
    shown = page.locator("body").inner_text()
    assert "<script>window.hurt = 1; alert(1)</script>" in shown
    assert "\u202e" not in shown
    assert "⟨U+202E⟩" in shown


def test_report_of_very_many_queries_is_small_and_searchable(tmp_path, opened):
    chance = random.Random(1)
    words = ["billing", "shipping", "returns", "account"]
    gold = [
        {
            "query_id": f"q{at}",
            "query": f"how do I do the thing number {at}",
            "category": words[at % 4],
            "relevant": {f"d{chance.randrange(1_000_000)}": 1 for _ in range(3)},
        }
        for at in range(QUERIES)
    ]
    runs = {}
    for name, share in (("bm25", 0.3), ("dense", 0.4), ("hybrid", 0.5)):
        runs[name] = {}
        for query in gold:
            listed = [f"d{chance.randrange(1_000_000)}" for _ in range(20)]
            for item in query["relevant"]:
                if chance.random() < share:
                    listed[chance.randrange(20)] = item
            runs[name][query["query_id"]] = list(dict.fromkeys(listed))
    comparison = karat.compare(karat.Gold.of(gold), runs, ["nDCG@10", "R@10"])
    path = tmp_path / "report.html"
    comparison.report(path, texts=TEXTS)
    assert path.stat().st_size < LARGEST
    page = opened(path)
    page.wait_for_selector(".queries tbody tr")
    expect(page.locator("#queries")).to_contain_text(f"{QUERIES:,} queries")
    page.get_by_label("search").fill(f"number {QUERIES - 1}")
    expect(page.locator(".queries button.open")).to_have_text([f"q{QUERIES - 1}"])
    page.locator(".queries button.open").click()
    dialog = page.locator("dialog[open]")
    for item in runs["hybrid"][f"q{QUERIES - 1}"]:
        expect(dialog).to_contain_text(item)


@pytest.mark.filterwarnings("ignore::karat.KaratWarning")
def test_notice_leads_to_its_queries(tmp_path, opened):
    gold = {f"q{at}": ["a"] for at in range(6)}
    run = {query: ["a"] if at % 2 else ["x"] for at, query in enumerate(gold)}
    karat.evaluate(gold, run, "RR").report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    page.wait_for_selector(".queries tbody tr")
    page.locator("#findings li", has_text="retrieved nothing relevant for 3 of 6").locator(
        "button"
    ).click()
    expect(page.locator(".queries button.open")).to_have_text(["q0", "q2", "q4"])
