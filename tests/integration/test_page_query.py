"""The view of one query, in a browser."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import polars as pl
import pytest
from msgspec.structs import replace as with_fields
from playwright.sync_api import expect

import karat
from karat.report.page.html import write
from karat.report.page.model import Outcomes
from support.pages import DOCUMENT, HOSTILE, IDS, LONG, TEXTS, a_page, some_queries


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


def dialog_of(page):
    return page.locator("dialog[open]")


def title_of(page):
    return dialog_of(page).locator("#query-title")


def open_query(page, query):
    page.locator("#queries").get_by_role("button", name=query, exact=True).click()
    expect(dialog_of(page).locator(".query-id code")).to_have_text(query)


def list_of(page, run):
    return dialog_of(page).locator(".lists .run").nth(run)


def chosen_measure(page):
    return dialog_of(page).get_by_label("measure", exact=True)


def test_title_is_the_text_and_id_and_fields_are_small(path, opened):
    page = opened(path)
    open_query(page, "q7")
    expect(title_of(page)).to_have_text("How do I get a refund?")
    facts = dialog_of(page).locator(".fields div").all_inner_texts()
    assert [" ".join(fact.split()) for fact in facts] == [
        "category billing",
        "<u> v0",
        "gold 2 relevant items, 1 span, 1 evidence text",
    ]


def test_hostile_text_is_shown_and_not_run(path, opened):
    page = opened(path)
    for row, text in enumerate(HOSTILE):
        open_query(page, IDS[row])
        visible = re.sub("[\x00\u2028\u202e\u2066]", lambda m: f"⟨U+{ord(m[0]):04X}⟩", text)
        expect(title_of(page)).to_have_text(visible)
        assert dialog_of(page).inner_text().count(visible[:40]) > 4
        page.keyboard.press("Escape")
    assert page.evaluate("window.harm") is None
    assert page.locator("#queries img, #queries script, dialog img, dialog script").count() == 0


def test_line_of_a_million_characters_is_wrapped(path, opened):
    page = opened(path)
    open_query(page, "q6")
    assert len(title_of(page).text_content()) == 301
    whole = dialog_of(page).locator(".whole-text")
    whole.locator("summary").click()
    assert len(whole.locator(".full").text_content()) == len(LONG)
    assert page.evaluate("(d => d.scrollWidth <= d.clientWidth)(document.querySelector('dialog'))")


def test_query_opens_by_keyboard_and_escape_returns_to_its_row(path, opened):
    page = opened(path)
    page.locator(".queries button.open").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    order = ids_shown(page)
    page.keyboard.press("Enter")
    expect(dialog_of(page).locator(".query-id code")).to_have_text(order[2])
    expect(title_of(page)).to_be_focused()
    page.wait_for_function("hash => location.hash === hash", arg=f"#query={order[2]}")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).not_to_be_visible()
    # The page cleans its address in the dialog's close event, which follows the hiding.
    page.wait_for_function("() => location.hash === ''")
    expect(page.locator(".queries button.open").nth(2)).to_be_focused()


def test_focus_returns_to_the_row_of_the_last_query(path, opened):
    page = opened(path)
    order = ids_shown(page)
    open_query(page, order[3])
    page.keyboard.press("ArrowRight")
    expect(dialog_of(page).locator(".query-id code")).to_have_text(order[4])
    expect(title_of(page)).to_be_focused()
    dialog_of(page).get_by_role("button", name="close").click()
    expect(page.locator(".queries button.open").nth(4)).to_be_focused()


def test_focus_returns_to_a_button_elsewhere(path, opened):
    page = opened(path)
    page.evaluate(
        """() => {
          const button = document.createElement("button");
          button.id = "asked";
          button.dataset.query = JSON.stringify("q7");
          document.body.prepend(button);
        }"""
    )
    page.locator("#asked").click()
    expect(title_of(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#asked")).to_be_focused()


def test_next_follows_the_order_of_the_table(path, opened):
    page = opened(path)
    order = ids_shown(page)
    open_query(page, order[3])
    following = dialog_of(page).get_by_role("button", name="next")
    following.click()
    expect(dialog_of(page).locator(".query-id code")).to_have_text(order[4])
    expect(dialog_of(page).locator(".position")).to_have_text("5 of 10")
    expect(following).to_be_focused()
    page.go_back()
    expect(page.locator("dialog")).not_to_be_visible()


def test_arrows_and_letters_lead_to_other_queries(path, opened):
    page = opened(path)
    order = ids_shown(page)
    open_query(page, order[4])
    at = 4
    for key, step in (("ArrowRight", 1), ("j", 1), ("k", -1), ("ArrowLeft", -1), ("k", -1)):
        page.keyboard.press(key)
        at += step
        expect(dialog_of(page).locator(".query-id code")).to_have_text(order[at])
    expect(dialog_of(page).locator(".keys")).to_contain_text("← → or j k")
    for key in ("Control+j", "Alt+j"):
        page.keyboard.press(key)
    expect(dialog_of(page).locator(".query-id code")).to_have_text(order[at])


def test_keys_do_nothing_while_a_measure_is_chosen(path, opened):
    page = opened(path)
    open_query(page, "q7")
    chosen_measure(page).focus()
    for key in ("j", "k", "ArrowLeft"):
        page.keyboard.press(key)
    expect(dialog_of(page).locator(".query-id code")).to_have_text("q7")


def test_keys_do_nothing_at_the_ends_of_the_list(path, opened):
    page = opened(path)
    order = ids_shown(page)
    for at, key in ((0, "k"), (-1, "j")):
        open_query(page, order[at])
        page.keyboard.press(key)
        expect(dialog_of(page).locator(".query-id code")).to_have_text(order[at])
        page.keyboard.press("Escape")


def test_link_leads_to_a_query_with_any_id(path, opened):
    page = opened(path, "#query=z%3C%2Fscript%3E%26amp%3B")
    expect(dialog_of(page).locator(".query-id code")).to_have_text(IDS[-1])
    expect(title_of(page)).to_have_text(TEXTS[-1])
    expect(dialog_of(page).locator(".note").first).to_contain_text(
        "This report contains texts and calculations for 9 queries. To include them for all 10, "
        "write it with --report-texts 10"
    )


def test_link_and_command_are_copied(path, opened):
    page = opened(path, permissions=["clipboard-read", "clipboard-write"])
    open_query(page, IDS[-1])
    dialog_of(page).get_by_role("button", name="Copy link").click()
    expect(dialog_of(page).locator(".announcement")).to_have_text("Copied")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    assert link.endswith("#query=z%3C%2Fscript%3E%26amp%3B")
    dialog_of(page).get_by_role("button", name="Copy command that explains the value").click()
    page.wait_for_function("async () => (await navigator.clipboard.readText()).startsWith('karat')")
    assert page.evaluate("navigator.clipboard.readText()") == (
        f"karat explain nDCG@10 --gold GOLD --run RUN_B --other RUN_A --query '{IDS[-1]}'"
    )


def test_answers_are_texts_and_not_fields(path, opened):
    page = opened(path)
    open_query(page, "q7")
    answers = dialog_of(page).locator(".answer")
    assert [answer.inner_text().split("\n\n") for answer in answers.all()] == [
        ["Reference", f"<b>14 days</b> {TEXTS[7]}"],
        ["Response (Answer)", "two weeks"],
        ["Response of <b>", f"An answer: {TEXTS[7]}"],
        ["Response of a", f"An answer: {TEXTS[7]}"],
    ]
    expect(dialog_of(page).locator(".fields")).not_to_contain_text("14 days")


def test_values_have_changes_and_the_chosen_measure_is_marked(path, opened):
    page = opened(path)
    open_query(page, "q7")
    sheets = a_page().sheets
    for line, measure in zip(
        dialog_of(page).locator(".measured tbody tr").all(), ("nDCG@10", "RR"), strict=True
    ):
        values = [sheet.scores.per_query[measure][7] for sheet in sheets]
        cells = line.locator("td").all()
        assert [float(cell.get_attribute("data-value")) for cell in cells] == values[::-1]
        expect(cells[1].locator(".change")).to_have_text(f"▲ +{values[0] - values[1]:.3f}")
        expect(cells[1].locator(".change")).to_have_class("change better")
    expect(dialog_of(page).locator(".measured .chosen th")).to_have_text("nDCG@10")
    chosen_measure(page).select_option(label="RR")
    expect(dialog_of(page).locator(".measured .chosen th")).to_have_text("RR")
    expect(chosen_measure(page)).to_be_focused()


def test_many_measures_are_folded_except_the_chosen_one(tmp_path, opened):
    names = tuple(f"P@{k}" for k in range(1, 9))
    bare = replace(some_queries(), details={}, chunks=[])
    page = opened(written(a_page(bare, measures=names), tmp_path / "many.html"))
    open_query(page, "q7")
    lines = dialog_of(page).locator(".measured tbody tr:visible")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text("P@1")
    dialog_of(page).get_by_role("button", name="show all 8 measures").click()
    expect(lines).to_have_count(8)


def test_failed_query_is_red_and_not_faster(tmp_path, opened):
    gold = {f"q{n}": ["a"] for n in range(30)}
    slow = [{"query_id": query, "results": ["a"], "latency_ms": {"total": 50.0}} for query in gold]
    quick = [line | {"latency_ms": {"total": 10.0}} for line in slow]
    quick[3] = {
        "query_id": "q3",
        "results": [],
        "latency_ms": {"total": 0.1},
        "error": {"type": "Timeout", "message": "no answer within 2 s", "attempts": 3},
    }
    quick.pop()
    comparison = karat.compare(gold, {"slow": slow, "quick": quick}, ["RR", "latency.p50"])
    comparison.report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html", "#query=q3")
    box = dialog_of(page).locator(".failure")
    expect(box).to_have_text("✗ Failed: Timeout: no answer within 2 s (3 attempts)")
    red, soft = page.evaluate(
        """() => {
          const probe = document.createElement("p");
          probe.style.color = "var(--worse)";
          probe.style.backgroundColor = "var(--worse-soft)";
          document.body.append(probe);
          const { color, backgroundColor } = getComputedStyle(probe);
          return [color, backgroundColor];
        }"""
    )
    expect(box).to_have_css("color", red)
    expect(box).to_have_css("background-color", soft)
    latency = dialog_of(page).locator(".measured tr", has_text="latency")
    expect(latency.locator(".change")).to_have_count(0)
    page.goto(page.url.split("#")[0] + "#query=q29")
    expect(dialog_of(page).locator(".absent")).to_have_text("⚠ This query is not in the run.")


def test_error_of_a_query_is_shown_as_text(path, opened):
    page = opened(path)
    open_query(page, "q8")
    expect(dialog_of(page).locator(".failure")).to_have_text(
        f"✗ Failed: Timeout: {TEXTS[8]} (3 attempts)"
    )


def test_sections_are_in_the_order_of_their_use(path, opened):
    page = opened(path)
    open_query(page, "q7")
    headings = dialog_of(page).locator("section > h3").all_inner_texts()
    assert headings == ["Ranked lists", "Document", "Evidence", "Calculation"]
    tops = [
        dialog_of(page).locator(part).first.bounding_box()["y"]
        for part in (
            "#query-title",
            ".answers",
            ".measured",
            ".lists",
            ".legend",
            ".document-box",
            ".evidence",
            ".calculation",
        )
    ]
    assert tops == sorted(tops)


def test_lists_are_side_by_side_with_hits_and_missing_items(path, opened):
    page = opened(path)
    open_query(page, "q7")
    one, other = list_of(page, 1), list_of(page, 0)
    assert one.bounding_box()["y"] == other.bounding_box()["y"]
    heads = one.locator(".result.hit .item-head code").all_inner_texts()
    assert heads == ["d1", "d2"]
    expect(one.locator(".result.hit .hit-badge").first).to_have_text("✓ grade 2")
    expect(one.locator(".result").last).to_have_class("result beyond")
    expect(one.locator(".result").last.locator(".rank")).to_have_text("37")
    expect(one.locator(".result").first.locator(".score")).to_have_text("1.000")
    expect(other.locator(".result.hit .rank")).to_have_text("3")
    assert other.locator(".missing").inner_text().split("\n") == [
        "Not found",
        "d2 grade 1",
        "evidence text 1",
    ]
    expect(one.locator(".cutoff")).to_have_text("cutoff 10")
    cut = one.locator(".cutoff").bounding_box()["y"]
    tops = [item.bounding_box()["y"] for item in one.locator(".result").all()]
    assert [top < cut for top in tops] == [True] * 4 + [False]


def test_snippet_is_the_beginning_and_unfolds_to_the_text_with_gold_marked(tmp_path, opened):
    text = "".join(f"Fact {n} is this. " for n in range(60))
    start = text.index("Fact 30")
    gold = [{"query_id": "q", "spans": [{"doc_id": "d", "start": 5, "end": 12}]}]
    gold[0]["spans"].append({"doc_id": "d", "start": start, "end": start + 7})
    chunks = [
        {"id": "first", "doc_id": "d", "start": 0, "end": 400, "text": text[:400]},
        {"id": "later", "doc_id": "d", "start": 400, "end": 900, "text": text[400:900]},
    ]
    run = [{"query_id": "q", "results": chunks}]
    karat.evaluate(gold, run, "span.recall@5").report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html", "#query=q")
    first, later = dialog_of(page).locator(".result").all()
    expect(first.locator(".snippet")).to_have_text(text[:120] + "…")
    expect(first.locator(".snippet mark")).to_have_text(text[5:12])
    expect(later.locator(".snippet")).to_have_text(f"… {text[start - 30 : start + 90]}…")
    expect(later.locator(".snippet mark")).to_have_text("Fact 30")
    assert first.locator(".snippet").bounding_box()["height"] < 45  # two lines
    later.locator("summary").click()
    expect(later.locator(".chunk")).to_have_text(text[400:900])
    expect(later.locator(".chunk mark")).to_have_text("Fact 30")
    expect(later.locator(".snippet")).to_be_hidden()


def expected_badges(before, after):
    """Compare two lists of items in the plainest way."""
    badges = []
    for rank, item in enumerate(after):
        if item not in before:
            badges.append("new")
        else:
            moved = before.index(item) - rank
            badges.append("=" if moved == 0 else f"{'▲' if moved > 0 else '▼'}{abs(moved)}")
    return badges


def test_movements_equal_those_of_a_plain_comparison(tmp_path, opened):
    draw = random.Random(5)
    items = [f"d{n}" for n in range(14)]
    gold = {f"q{n}": {item: draw.randint(0, 2) for item in items[:8]} for n in range(6)}
    runs = {
        name: {query: draw.sample(items, draw.randint(4, 12)) for query in gold}
        for name in ("one", "two", "three")
    }
    comparison = karat.compare(gold, runs, ["P@5"], baseline="one")
    comparison.report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    for query, grades in gold.items():
        page.goto(f"{page.url.split('#')[0]}#query={query}")
        expect(title_of(page)).to_have_text(query)
        before = runs["one"][query]
        for at, name in enumerate(runs):
            column, after = list_of(page, at), runs[name][query]
            expect(column.locator(".run-name")).to_have_text(name)
            heads = column.locator(".result .item-head code").all_inner_texts()
            assert heads == after
            if name == "one":
                expect(column.locator(".moved")).to_have_count(0)
                expect(column.locator(".lost")).to_have_count(0)
                continue
            badges = column.locator(".result .moved").evaluate_all(
                "all => all.map((badge) => [badge.firstChild.data, badge.className])"
            )
            assert [text for text, _ in badges] == expected_badges(before, after)
            # Green and red only for relevant items: other movements are neither good nor bad.
            for item, (text, kind) in zip(after, badges, strict=True):
                coloured = grades.get(item, 0) > 0 and text != "="
                assert ("better" in kind or "worse" in kind) == coloured
            lost = [item for item in before[:5] if item not in after[:5]]
            assert column.locator(".lost li code").all_inner_texts() == lost


def test_lists_without_a_common_item_have_no_badges(tmp_path, opened):
    gold = {"q": ["a", "x"]}
    runs = {"one": {"q": ["a", "b"]}, "two": {"q": ["x", "y"]}}
    karat.compare(gold, runs, ["RR"]).report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html", "#query=q")
    expect(dialog_of(page).locator(".run .note")).to_have_text(
        re.compile("No item is also in the list of (one|two).")
    )
    expect(dialog_of(page).locator(".moved, .lost")).to_have_count(0)


def test_same_item_is_highlighted_in_all_lists(path, opened):
    page = opened(path)
    open_query(page, "q7")
    list_of(page, 1).locator(".result").first.hover()
    same = dialog_of(page).locator(".result.same code")
    assert same.all_inner_texts() == ["d1", "d1"]
    assert dialog_of(page).locator(".rail.same").count() > 0
    dialog_of(page).locator("#query-title").hover()
    expect(same).to_have_count(0)
    list_of(page, 0).locator(".result summary").first.focus()
    assert same.all_inner_texts() == ["d9", "d9"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert same.all_inner_texts() == ["d1", "d1"]


def test_list_is_one_stop_of_the_tab_key(tmp_path, opened):
    karat.compare(
        {"q": ["a"]}, {"one": {"q": list("abc")}, "two": {"q": list("cab")}}, ["RR"]
    ).report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html", "#query=q")
    first, second = list_of(page, 0), list_of(page, 1)
    first.locator(".result").first.focus()
    page.keyboard.press("End")
    expect(first.locator(".result").last).to_be_focused()
    page.keyboard.press("Tab")
    expect(second.locator(".result").first).to_be_focused()


def test_chosen_measure_decides_what_counts_as_a_hit(tmp_path, opened):
    gold, run = {"q1": {"a": 1, "b": 2}}, {"q1": ["a", "b", "x"]}
    karat.evaluate(gold, run, ["RR(rel=2)", "P@2"]).report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html", "#query=q1")
    hits = dialog_of(page).locator(".result.hit code")
    expect(hits).to_have_text(["b"])
    chosen_measure(page).select_option(label="P@2")
    expect(hits).to_have_text(["a", "b"])


def test_calculation_is_folded_and_that_of_the_chosen_measure(path, opened):
    page = opened(path)
    open_query(page, "q7")
    folded = dialog_of(page).locator(".calculation").last
    assert folded.get_attribute("open") is None
    expect(folded.locator("summary")).to_have_text("nDCG@10 of a = 0.8772153153380493")
    folded.locator("summary").click()
    expect(folded.locator(".facts")).to_contain_text("nDCG@10 = 0.8772153153380493")
    assert folded.locator(".calculated").first.locator("tr").nth(3).inner_text().split() == [
        "3",
        "d2",
        "1",
        "1",
        "0.5000",
    ]
    expect(folded.locator(".missing li").last).to_have_text("1,233 more")
    chosen_measure(page).select_option(label="RR")
    expect(folded.locator(".facts")).to_contain_text("RR = 1")
    expect(page.locator("#queries").get_by_label("measure", exact=True)).to_have_value("1")


def test_gold_is_found_or_missed_and_rails_mark_what_was_retrieved(path, opened):
    page = opened(path)
    open_query(page, "q7")
    box = dialog_of(page).locator(".document-box")

    def marked(kind):
        texts = box.locator(f"mark.{kind}").evaluate_all(
            "marks => marks.map(mark => mark.childNodes[1].textContent)"
        )
        return "|".join(texts)

    # <b> has gold at rank 12 only, too far down for nDCG@10, and at rank 2 without a text.
    assert marked("found") == f"{DOCUMENT[4:17]}|⋯ 100 characters ⋯"
    assert marked("missed") == DOCUMENT[17:33]
    expect(box).to_contain_text("⟨U+202E⟩now!")
    expect(box).to_contain_text("⋯ 1,900 characters ⋯")
    rails = box.locator(".rail")
    titles = rails.evaluate_all("rails => rails.map((rail) => rail.title)")
    assert sorted(titles) == ["<b>, rank 1", "<b>, rank 2", "a, rank 1", "a, rank 2", "a, rank 3"]
    chosen_measure(page).select_option(label="RR")  # without a cutoff
    expect(box.locator(".rail[title='<b>, rank 12']")).to_have_count(1)
    assert marked("missed") == ""
    legend = dialog_of(page).locator(".legend")
    assert legend.locator("li").all_inner_texts() == ["gold, found", "gold, missed", "<b>", "a"]
    # Text kinds are also there for screen readers.
    expect(box.locator("mark.found").first).to_contain_text("[gold, found: ")
    expect(box).to_contain_text("[retrieved from here: a, rank 1; a, rank 2]")


def test_rail_is_beside_its_lines_and_runs_have_their_own(tmp_path, opened):
    text = "".join(f"Sentence {n} of the document is about this. " for n in range(100))
    gold = [{"query_id": "q", "spans": [{"doc_id": "d", "start": 2000, "end": 2100}]}]
    runs = {
        name: [{"query_id": "q", "results": [{"doc_id": "d", "start": start, "end": start + 800}]}]
        for name, start in (("one", 1500), ("two", 2050))
    }
    comparison = karat.compare(gold, runs, ["span.recall@5"], corpus={"d": text})
    comparison.report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html", "#query=q", viewport={"width": 900, "height": 800})
    box = dialog_of(page).locator(".document-box")
    colours = []
    for name, start in (("one", 1500), ("two", 2050)):
        rail = box.locator(f".rail[title='{name}, rank 1']")
        expect(rail).to_have_css("width", "4px")
        colours.append(rail.evaluate("rail => getComputedStyle(rail).backgroundColor"))
        top, bottom = page.evaluate(
            """([start, end]) => {
              const text = document.querySelector(".document-text");
              const walk = document.createTreeWalker(text, NodeFilter.SHOW_TEXT, (node) =>
                node.parentElement.closest(".visually-hidden, .skipped")
                  ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
              let at = 1500, range = document.createRange(), node;  // where the shown text starts
              while ((node = walk.nextNode())) {
                const stop = at + node.length;
                if (at <= start && start < stop) range.setStart(node, start - at);
                if (at < end && end <= stop) range.setEnd(node, end - at);
                at = stop;
              }
              const { top, bottom } = range.getBoundingClientRect();
              return [top, bottom];
            }""",
            [start, start + 800],
        )
        place = rail.bounding_box()
        assert abs(place["y"] - top) < 12
        assert abs(place["y"] + place["height"] - bottom) < 12
    assert len(set(colours)) == 2
    lefts = [rail.bounding_box()["x"] for rail in box.locator(".rail").all()]
    assert abs(lefts[0] - lefts[1]) == 7


def test_documents_are_scrolled_to_gold_and_only_those_with_gold_are_shown(tmp_path, opened):
    text = "".join(f"Sentence {n} of the document is about this. " for n in range(400))
    corpus = {"d1": text, "d2": text, "d3": text}
    gold = [{"query_id": "q", "spans": [{"doc_id": "d2", "start": 9000, "end": 9100}]}]
    results = [{"doc_id": name, "start": 0, "end": 8000} for name in ("d1", "d2", "d3")]
    run = [{"query_id": "q", "results": results}]
    scores = karat.evaluate(gold, run, "span.recall@5", corpus=corpus)
    scores.report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html", "#query=q")
    box = dialog_of(page).locator(".document-box")
    expect(box).to_have_count(1)
    expect(box).to_have_attribute("aria-label", "Text of d2")
    page.wait_for_function("() => document.querySelector('.document-box').scrollTop > 100")
    area, mark = box.bounding_box(), box.locator("mark").bounding_box()
    assert area["y"] < mark["y"] < area["y"] + area["height"]


def test_regions_that_scroll_can_be_focused_and_have_names_of_their_own(tmp_path, opened):
    long = "A sentence that is part of a long text. " * 60
    gold = [
        {
            "query_id": "q",
            "query": long,
            "reference": long,
            "spans": [{"doc_id": name, "start": 0, "end": 2000} for name in ("d1", "d2")],
            "evidence": [long[:1500], "never found " + long[:1500]],
        }
    ]
    results = [
        {"id": name, "doc_id": name, "start": 0, "end": 1800, "text": long[:1800]}
        for name in ("d1", "d2")
    ]
    run = [{"query_id": "q", "results": results}]
    measures = ["span.recall@5", "evidence.recall@5"]
    comparison = karat.compare(
        gold, {"one": run, "two": run}, measures, corpus={"d1": long, "d2": long}
    )
    comparison.report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html", "#query=q", viewport={"width": 390, "height": 800})
    page.evaluate("document.querySelectorAll('dialog details').forEach((d) => (d.open = true))")
    found = page.evaluate(
        """() => [...document.querySelectorAll("dialog *")]
          .filter((e) => /auto|scroll/.test(getComputedStyle(e).overflow))
          .filter((e) => e.scrollHeight > e.clientHeight || e.scrollWidth > e.clientWidth)
          .map((e) => [e.className, e.tabIndex, e.role, e.ariaLabel])"""
    )
    assert found
    for name, tab_index, role, label in found:
        assert (tab_index, role) == (0, "region"), name
        assert label, name
    labels = page.locator("dialog [role=region]").evaluate_all(
        "all => all.map((region) => region.getAttribute('aria-label'))"
    )
    assert len(labels) == len(set(labels))


def test_evidence_shows_the_match_or_the_nearest_text(path, opened):
    page = opened(path)
    open_query(page, "q7")
    missed, found = dialog_of(page).locator(".evidence .matches > li").all()
    expect(found).to_contain_text("a ✓ covered at rank 1 (substring) d1")
    found.locator("summary").click()
    expect(found.locator("mark")).to_have_text("refund is paid" + TEXTS[7])
    expect(missed).to_contain_text("<b> ✗ missed, nearest at rank 2, similarity 0.410 d9")
    missed.locator("summary").click()
    expect(missed.locator(".chunk")).to_have_text(TEXTS[7])
    expect(missed.locator("mark")).to_have_count(0)


def test_evidence_that_no_run_covers_comes_first(tmp_path, opened):
    evidence = ["Alpha is the first.", "Never to be found here.", "Omega is the last."]
    gold = [{"query_id": "q", "evidence": evidence}]
    run = [{"query_id": "q", "results": [{"id": "x", "text": f"{evidence[0]} {evidence[2]}"}]}]
    karat.evaluate(gold, run, "evidence.recall@5").report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html", "#query=q")
    quotes = dialog_of(page).locator(".evidence blockquote").all_inner_texts()
    assert quotes[0] == "Never to be found here."
    assert sorted(quotes) == sorted(evidence)
    expect(dialog_of(page).locator(".evidence > .missed")).to_have_count(1)
    expect(dialog_of(page).locator(".highlights .note")).to_have_text(
        "1 of 3 evidence texts not covered by the run"
    )
    marks = dialog_of(page).locator(".result mark")
    expect(marks.first).to_have_text("Alpha is the first.")


def test_scores_from_a_file_show_values_without_lists(tmp_path, opened):
    queries = replace(some_queries(), texts=None, outcomes=[], lists=[], details={}, chunks=[])
    page = opened(written(a_page(queries), tmp_path / "saved.html"))
    page.locator("#queries").get_by_role("button", name="q1", exact=True).click()
    expect(title_of(page)).to_have_text("q1")
    expect(dialog_of(page)).to_contain_text("The ranked lists are not available")
    expect(dialog_of(page).locator(".measured [data-value]").first).to_be_visible()


def many_runs(path):
    page, queries = a_page(), some_queries()
    sheets = [
        replace(sheet, scores=replace(sheet.scores, name=f"run {at}"))
        for at, sheet in enumerate([*page.sheets] * 4)
    ]
    bare = replace(queries, outcomes=[], lists=[], details={}, chunks=[])
    return written(replace(page, sheets=sheets, queries=bare), path)


def test_only_the_two_compared_runs_of_many_are_shown(tmp_path, opened):
    page = opened(many_runs(tmp_path / "many.html"), "#a=run+2&b=run+5&query=q1")
    runs = dialog_of(page).locator(".lists .run-name")
    expect(runs).to_have_text(["run 2", "run 5"])
    dialog_of(page).get_by_role("button", name="show all 8 runs").click()
    expect(runs).to_have_count(8)
    assert runs.first.inner_text() == "run 2"


def test_run_without_a_list_says_so(tmp_path, opened):
    queries = some_queries()
    n = len(IDS)
    nothing = pl.Series([0] * n, dtype=pl.Int32)
    only_scores = Outcomes(pl.Series([3] * n, dtype=pl.UInt8), nothing, nothing)
    queries = replace(queries, outcomes=[queries.outcomes[0], only_scores])
    page = opened(written(a_page(queries), tmp_path / "saved.html"))
    open_query(page, "q7")
    expect(list_of(page, 0)).to_contain_text("Only the scores of this run are available.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_at_the_width_of_a_phone(path, opened, scheme):
    page = opened(path, viewport={"width": 390, "height": 800}, color_scheme=scheme)
    open_query(page, "q7")
    page.evaluate("document.querySelectorAll('dialog details').forEach((d) => (d.open = true))")
    fits = "(e => e.scrollWidth <= e.clientWidth)(document.querySelector('%s'))"
    assert page.evaluate(fits % "dialog")
    assert page.evaluate(fits % "dialog .measures .scroll")
    first, second = list_of(page, 0).bounding_box(), list_of(page, 1).bounding_box()
    assert first["y"] + first["height"] <= second["y"]
    # Labels break between words only.
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.fields dt')).overflowWrap")
        == "break-word"
    )


def test_query_that_only_the_address_changes_is_shown(path, opened):
    page = opened(path, "#query=q1")
    expect(dialog_of(page).locator(".query-id code")).to_have_text("q1")
    page.evaluate("location.hash = '#query=q2'")
    expect(dialog_of(page).locator(".query-id code")).to_have_text("q2")
    page.evaluate("location.hash = '#query=q2&measure=RR'")
    expect(chosen_measure(page)).to_have_value("1")


def test_text_cut_in_the_report_says_how_much_is_missing(tmp_path, opened):
    queries = some_queries()
    known = queries.details[7]
    runs = [
        with_fields(run, results=[with_fields(result, length=9000) for result in run.results])
        for run in known.runs
    ]
    queries.details[7] = with_fields(known, runs=runs)
    page = opened(written(a_page(queries), tmp_path / "cut.html"))
    open_query(page, "q7")
    first = list_of(page, 1).locator(".result").first
    first.locator("summary").click()
    missing = 9000 - len(TEXTS[7])
    expect(first.locator(".chunk")).to_have_text(f"{TEXTS[7]} … {missing:,} further characters")
