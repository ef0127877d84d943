"""The file of a report: its content, its escaping, and that only its own scripts run."""

from __future__ import annotations

import gzip
import io
import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

import karat
from karat.report.comparison import ComparisonSheet
from karat.report.page import html, scripts
from karat.report.page.model import Input, KeyFinding, Page
from karat.report.sheet import Sheet
from support.errors import refused
from support.pages import (
    FAIR,
    GOLD,
    GOOD,
    HOSTILE,
    MEASURES,
    POOR,
    compared,
    of_sheets,
    scored,
)

STATIC = Path(scripts.__file__).parent / "static"


class Element:
    """An element of a document, with its children and its text."""

    def __init__(self, name: str, attributes: dict[str, str | None]) -> None:
        self.name, self.attributes = name, attributes
        self.children: list[Element] = []
        self.text = ""

    def all(self, name: str, **attributes: str) -> list[Element]:
        """Return the descendants with a name, whose attributes are or contain these words."""
        matching = []
        for child in self.children:
            words = {key: (child.attributes.get(key) or "").split() for key in attributes}
            if child.name == name and all(attributes[key] in words[key] for key in words):
                matching.append(child)
            matching += child.all(name, **attributes)
        return matching

    def one(self, name: str, **attributes: str) -> Element:
        (element,) = self.all(name, **attributes)
        return element


class Document(HTMLParser):
    """The tree of elements of a page, as a browser reads the file."""

    def __init__(self, page: Page) -> None:
        super().__init__(convert_charrefs=True)
        file = io.BytesIO()
        html.write(page, file)
        self.written = file.getvalue()
        self.root = Element("", {})
        self.open = [self.root]
        self.feed(self.written.decode())
        self.close()
        assert self.open == [self.root], "every element is closed"

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        element = Element(name, dict(attributes))
        self.open[-1].children.append(element)
        if name not in ("meta", "link"):
            self.open.append(element)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop().name == name

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def section(self, name: str) -> Element:
        (section,) = (each for each in self.root.all("section") if each.attributes["id"] == name)
        return section

    @property
    def markup(self) -> str:
        """The file without its scripts."""
        return re.sub(r"<script.*?</script>", "", self.written.decode(), flags=re.DOTALL)

    @property
    def sections(self) -> list[str | None]:
        return [each.attributes["id"] for each in self.root.all("section")]

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """The names of all elements and of their attributes.

        The card is left out, since long texts have more lines in it; test_summary.py checks it.
        """
        card = [e for template in self.root.all("template") for e in _below(template)]
        return [
            (e.name, tuple(e.attributes))
            for e in _below(self.root)
            if e.name != "script" and e not in card
        ]


def _below(element: Element) -> list[Element]:
    return [each for child in element.children for each in (child, *_below(child))]


RUNS = {"good": GOOD, "fair": FAIR, "poor": POOR}


@cache
def page_of(*names: str) -> Page:
    """Return the page that compares these runs; tests only read it."""
    return compared({name: RUNS[name] for name in names})


@cache
def document_of(*names: str) -> Document:
    """Return the document that compares these runs; tests only read it."""
    return Document(page_of(*names))


def test_results_show_the_values_of_the_summary() -> None:
    page = page_of("good", "fair", "poor")
    table = document_of("good", "fair", "poor").section("results").one("table")
    rows = table.one("tbody").all("tr")
    for number, measure in enumerate(MEASURES):
        cells = [cell for cell in rows[number].all("td") if "data-value" in cell.attributes]
        assert len(cells) == len(page.sheets)
        for sheet, cell in zip(page.sheets, cells, strict=True):
            row = sheet.summary.row(number, named=True)
            assert row["measure"] == measure
            for end in ("value", "low", "high"):
                assert float(cell.attributes[f"data-{end}"] or "") == row[end]
            assert cell.one("span", **{"class": "number"}).text == f"{row['value']:.3f}"
            intervals = [span.text for span in cell.all("span", **{"class": "interval"})]
            has_width = row["low"] != row["high"]
            assert intervals == ([f"[{row['low']:.3f}, {row['high']:.3f}]"] if has_width else [])


def test_judged_shares_and_bounds_are_shown_below_the_values() -> None:
    page = page_of("good", "poor")
    rows = document_of("good", "poor").section("results").all("tr", **{"class": "unjudged-row"})
    shown = {
        row.one("th").text: [cell.attributes.get("data-value") for cell in row.all("td")]
        for row in rows
    }
    summaries = [{row["measure"]: row for row in sheet.summary.to_dicts()} for sheet in page.sheets]
    assert shown["Judged@10"] == [*(repr(each["nDCG@10"]["judged"]) for each in summaries), None]
    assert shown["RR upper bound"] == [
        *(repr(each["RR"]["bound_high"]) for each in summaries),
        None,
    ]


@pytest.mark.usefixtures("without_charts")
def test_best_value_is_marked() -> None:
    section = Document(page_of("poor", "good")).section("results")
    first = section.one("tbody").all("tr")[0].all("td", **{"class": "value"})
    assert ["best" in (cell.attributes["class"] or "").split() for cell in first] == [False, True]
    assert "Bold: best value" in section.text


@pytest.mark.usefixtures("without_charts")
def test_equal_runs_have_no_best_value() -> None:
    section = Document(compared({"one": GOOD, "two": GOOD})).section("results")
    assert section.all("td", **{"class": "best"}) == []
    assert "No difference is statistically significant" in section.text


def test_runs_are_marked_with_the_runs_they_are_significantly_better_than() -> None:
    table = document_of("good", "fair", "poor").section("results").one("table")
    marks = [
        [sign.text.replace("\xa0", " ") for sign in cell.all("span", **{"class": "rose"})]
        for cell in table.one("tbody").all("tr")[0].all("td")
    ]
    assert marks == [["▲ both others"], ["▲ poor"], [], []]


@pytest.mark.usefixtures("without_charts")
def test_marks_are_better_or_worse_than_the_baseline() -> None:
    page = compared({"fair": FAIR, "good": GOOD, "poor": POOR}, baseline="fair")
    table = Document(page).section("results").one("table")
    cells = table.one("tbody").all("tr")[0].all("td")
    marks = [
        [sign.text.replace("\xa0", " ") for sign in cell.all("span", **{"class": "sign"})]
        for cell in cells
    ]
    assert marks == [[], ["▲ better"], ["▼ worse"], []]
    assert table.one("span", **{"class": "role"}).text == "baseline"


@pytest.mark.usefixtures("without_charts")
def test_leaderboard_marks_differences_from_the_baseline() -> None:
    runs = {"fair": FAIR, "good": GOOD, "poor": POOR, "same": FAIR}
    table = Document(compared(runs, baseline="fair")).section("results").one("table")
    signs = {
        row.one("bdi").text: [
            (sign.text, sign.attributes.get("aria-label"))
            for sign in row.all("td", **{"class": "main"})[0].all("span", **{"class": "sign"})
        ]
        for row in table.one("tbody").all("tr")
    }
    assert signs == {
        "good": [("▲", "significantly better than the baseline")],
        "fair": [("", None)],
        "same": [("", None)],
        "poor": [("▼", "significantly worse than the baseline")],
    }


@pytest.mark.usefixtures("without_charts")
def test_every_run_has_a_row_sorted_by_the_main_measure() -> None:
    evaluate = karat.Evaluator(GOLD, ["RR"])
    lists = {f"run {n}": [POOR, GOOD, FAIR][n % 3] for n in range(37)}
    page = of_sheets([Sheet(evaluate(karat.Run.of(run, name=name))) for name, run in lists.items()])
    table = Document(page).section("results").one("table")
    rows = table.one("tbody").all("tr")
    names = [row.one("bdi").text for row in rows]
    assert names == [f"run {n}" for k in (1, 2, 0) for n in range(k, 37, 3)]
    ranks = [row.one("span", **{"class": "place"}).text for row in rows]
    assert ranks == ["1"] * 12 + ["13"] * 12 + ["25"] * 13
    assert [head.text for head in table.one("thead").all("th")] == [
        "run",
        "RR",
        "RR upper bound",
        "queries",
    ]


@pytest.mark.usefixtures("without_charts")
def test_leaderboard_shows_the_values_of_the_summary() -> None:
    page = compared({"poor": POOR, "good": GOOD, "fair": FAIR, "also good": GOOD})
    table = Document(page).section("results").one("table")
    by_name = {sheet.name: sheet for sheet in page.sheets}
    for row in table.one("tbody").all("tr"):
        summary = by_name[row.one("bdi").text].summary
        cells = row.all("td", **{"class": "value"})
        for end in ("value", "low", "high"):
            shown = [cell.attributes.get(f"data-{end}") for cell in cells]
            assert shown == [repr(number) for number in summary[end]]
    heads = [head.text for head in table.one("thead").all("th")]
    assert heads[: 2 + len(MEASURES)] == ["run", "rank range", *MEASURES]
    assert "Judged@10" in heads
    (region,) = Document(page).section("results").all("div", role="region")
    assert region.attributes["tabindex"] == "0"


def test_runs_are_compared_by_scripts() -> None:
    section = document_of("good", "poor").section("comparison")
    assert "JavaScript" in section.one("noscript").text


def test_one_run_without_intervals_has_no_marks() -> None:
    scores = karat.evaluate(GOLD, FAIR, MEASURES)
    document = Document(of_sheets([Sheet(scores, intervals=False)]))
    section = document.section("results")
    assert section.all("span", **{"class": "interval"}) == []
    assert section.all("span", **{"class": "sign"}) == []
    assert section.all("p", **{"class": "key"}) == []
    assert "comparison" not in document.sections


def test_saved_scores_can_be_shown(tmp_path: Path) -> None:
    karat.evaluate(GOLD, FAIR, MEASURES).write(tmp_path / "scores.parquet")
    sheet = Sheet(karat.Scores.read(tmp_path / "scores.parquet"))
    cell = Document(of_sheets([sheet])).section("results").one("tbody").all("td")[0]
    assert float(cell.attributes["data-value"] or "") == sheet.summary["value"][0]


def test_measure_without_a_value_is_a_dash() -> None:
    gold = karat.Gold.of(judgments={"q": {"a": 0}})
    scores = karat.evaluate(gold, {"q": ["a"]}, ["RR"], conventions={"no_gold": "skip"})
    cell = Document(of_sheets([Sheet(scores)])).section("results").one("tbody").all("td")[0]
    assert cell.one("span", **{"class": "number"}).text == "–"
    assert "data-value" not in cell.attributes


def test_verdict_shows_what_failed_and_why() -> None:
    verdict = karat.gate(GOLD, FAIR, ["P@2 >= 0.1", "RR >= 0.9"])
    document = Document(replace(scored(), verdict=verdict))
    section = document.section("gate")
    assert section.one("strong").text == "✗ FAILED"
    signs = [sign.text for sign in section.all("span", **{"class": "check-sign"})]
    assert signs == ["✗ failed", "✓ passed"]
    assert "RR must be at least 0.9" in section.all("h3")[0].text
    assert verdict.failures[0].reason in section.text
    linked = [json.loads(b.attributes["data-query"] or "") for b in section.all("button")]
    assert linked == [each.query_id for each in verdict.failures[0].blamed]
    assert f"Run {verdict.run}".replace("Run run", "Run") in document.section("summary").text


def test_title_and_verdict_are_above_all_sections() -> None:
    document = document_of("good", "poor")
    summary = document.section("summary")
    assert document.sections[0] == "summary"
    assert summary.one("h1").text == "a report"
    assert "significantly better" in summary.one("p", **{"class": "pill"}).text
    sentence = summary.one("p", **{"class": "verdict-sentence"}).text
    assert sentence.startswith("Run good is significantly better than poor")
    assert sentence.endswith(".")


def test_findings_link_to_their_queries() -> None:
    show = {"field": "kind", "value": '"<k>\x00'}
    notices = [KeyFinding("group", "far under", show), KeyFinding("unjudged", "unsafe")]
    section = Document(replace(scored(), findings=notices)).section("findings")
    first, second = section.all("li")
    assert json.loads(first.one("button").attributes["data-show"] or "") == show
    assert second.text.strip().endswith("unsafe")
    assert second.all("button") == []


def test_page_shows_how_to_reproduce_it() -> None:
    page = replace(
        scored(),
        command="karat eval 'my gold' run",
        inputs=[Input("gold", "my gold", 1234, "ab" * 32), Input("run", "in memory")],
        run_settings={"a": {"top_k": 20, "model": "<m>"}, "b": {}},
    )
    section = Document(page).section("method")
    for word in ("karat eval 'my gold' run", "ab" * 6, "1,234", karat.__version__, "20261115"):
        assert word in section.text
    for name, word in page.sheets[0].scores.conventions.as_dict().items():
        assert f"{name}={word}" in section.text
    settings = section.all("details")[-1]
    assert json.loads(settings.one("pre").text) == {"top_k": 20, "model": "<m>"}


def test_changed_conventions_are_marked() -> None:
    scores = karat.evaluate(GOLD, FAIR, ["RR"], conventions={"missing": "skip"})
    section = Document(of_sheets([Sheet(scores)])).section("method")
    assert [strong.text for strong in section.all("strong")] == ["no"]


@cache
def document_with(name: str) -> Document:
    """Return a document that shows a name in every place where names are shown."""
    gold = karat.Gold.of(
        judgments=GOLD, queries=[{"query_id": q, "kind": name, "text": name} for q in GOLD]
    )
    comparison = karat.compare(gold, {name: GOOD, "other": FAIR}, ["RR"], by=["kind"])
    sheets = [Sheet(scores, by=("kind",)) for scores in comparison.scores]
    page = replace(
        of_sheets(sheets, ComparisonSheet(comparison)),
        title=name,
        command=name,
        inputs=[Input("run", name)],
        run_settings={name: {name: name}},
        findings=[KeyFinding("nothing", name, {"run": name})],
        verdict=karat.gate(gold, karat.Run.of(FAIR, name=name), ["RR >= 0.9"]),
    )
    return Document(page)


@pytest.mark.parametrize("harm", HOSTILE, ids=HOSTILE.values())
def test_hostile_name_is_text_and_changes_nothing_else(harm: str) -> None:
    assert document_with(harm).shape == document_with("plain").shape
    assert not set("\x00\u202e\u2066") & set(document_with(harm).markup)


def test_very_long_names_are_cut() -> None:
    name = "n" * 100_000
    page = compared({name: GOOD, "other": POOR})
    page = replace(page, title=name, findings=[KeyFinding("nothing", name)], command=name)
    plain = document_of("good", "poor")
    assert len(Document(page).markup) < len(plain.markup) + 50_000


def test_only_scripts_in_the_content_security_policy_can_run() -> None:
    written = document_of("good", "poor").written
    policy = re.search(rb'Content-Security-Policy" content="([^"]*)"', written)
    assert policy is not None
    directives = dict(
        part.strip().split(" ", 1) for part in policy[1].decode().replace("&#39;", "'").split(";")
    )
    assert directives["default-src"] == "'none'"
    elements = re.findall(rb"<script([^>]*)>(.*?)</script>", written, re.DOTALL)
    runnable = [
        code for kind, code in elements if b"json" not in kind and b"text/plain" not in kind
    ]
    (packed,) = (code for kind, code in elements if b'id="vega"' in kind)
    allowed = [gzip.decompress(b64decode(packed)), *runnable]
    named = [f"'sha256-{b64encode(sha256(code).digest()).decode()}'" for code in allowed]
    assert len(runnable) == 1
    assert directives["script-src"].split() == named


def test_no_element_has_an_event_handler_or_inline_style() -> None:
    for element in _below(document_of("good", "poor").root):
        names = [name for name in element.attributes if name.startswith("on") or name == "style"]
        assert names == []


def test_data_of_a_page_cannot_end_its_script() -> None:
    page = compared({"</script><script>harm()</script>": GOOD, "other": POOR})
    scripts_found = Document(page).root.all("script")
    assert json.loads(scripts_found[0].text)["runs"][0] == "</script><script>harm()</script>"


def test_same_page_is_written_as_the_same_bytes() -> None:
    assert Document(page_of("good", "poor")).written == document_of("good", "poor").written


def test_every_module_comes_after_the_modules_it_imports() -> None:
    listed = list(scripts._MODULES)
    assert sorted(listed) == sorted(path.name for path in STATIC.glob("*.js"))
    for at, name in enumerate(listed):
        imported = re.findall(r'from "\./([\w.]+)"', (STATIC / name).read_text())
        assert set(imported) <= set(listed[:at]), name
    assert not re.search(r"^(import|export) ", scripts.page_script(), re.MULTILINE)


def test_no_name_is_declared_twice_in_the_scripts() -> None:
    names = re.findall(
        r"^(?:async )?(?:function|const|let|class) (\w+)", scripts.page_script(), re.MULTILINE
    )
    assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)


@pytest.mark.parametrize(
    "word",
    ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("],
)
def test_scripts_never_interpret_text_as_markup_or_code(word: str) -> None:
    assert word not in scripts.page_script()


def test_missing_altair_is_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scripts, "find_spec", lambda name: None)
    with refused() as error:
        html.check_installed()
    assert "altair" in str(error.value)
    assert error.value.hint == "pip install 'karat[report]'"
