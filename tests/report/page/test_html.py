"""The file of a report: its content, its escaping, and that only its own scripts run."""

from __future__ import annotations

import io
import json
import re
from base64 import b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

import karat
from karat.report.cells import format_with_interval
from karat.report.comparison import ComparisonSheet
from karat.report.page import html, scripts
from karat.report.page.model import Input, Notice, Page
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
        if name != "meta":
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
        """The names of all elements and of their attributes."""
        return [
            (e.name, tuple(e.attributes)) for e in _below(self.root) if e.name not in ("script",)
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


def test_headline_shows_the_values_of_the_summary() -> None:
    page = page_of("good", "fair", "poor")
    table = document_of("good", "fair", "poor").section("headline").one("table")
    rows = table.one("tbody").all("tr")
    for number, measure in enumerate(MEASURES):
        cells = [cell for cell in rows[number].all("td") if "data-value" in cell.attributes]
        assert len(cells) == len(page.sheets)
        for sheet, cell in zip(page.sheets, cells, strict=True):
            row = sheet.summary.row(number, named=True)
            assert row["measure"] == measure
            for end in ("value", "low", "high"):
                assert float(cell.attributes[f"data-{end}"] or "") == row[end]
            parts = [cell.one("span", **{"class": name}) for name in ("number", "interval")]
            assert " ".join(part.text for part in parts) == format_with_interval(row)


def test_judged_shares_and_bounds_are_shown_below_the_values() -> None:
    page = page_of("good", "poor")
    rows = document_of("good", "poor").section("headline").all("tr", **{"class": "unjudged-row"})
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
def test_best_value_is_marked_by_a_word() -> None:
    table = Document(page_of("poor", "good")).section("headline").one("table")
    first = table.one("tbody").all("tr")[0].all("td")
    assert ["best" in cell.text for cell in first[:2]] == [False, True]


@pytest.mark.usefixtures("without_charts")
def test_equal_runs_have_no_best_value() -> None:
    section = Document(compared({"one": GOOD, "two": GOOD})).section("headline")
    assert all("best" not in cell.text for cell in section.all("td"))
    assert "no statistically significant difference" in section.text


def test_runs_are_marked_with_the_runs_they_are_significantly_better_than() -> None:
    table = document_of("good", "fair", "poor").section("headline").one("table")
    marks = [
        [sign.text for sign in cell.all("span", **{"class": "rose"})]
        for cell in table.one("tbody").all("tr")[0].all("td")
    ]
    assert marks == [["▲ b, c"], ["▲ c"], [], []]
    assert [head.text for head in table.all("span", **{"class": "letter"})] == ["a", "b", "c"]


@pytest.mark.usefixtures("without_charts")
def test_marks_are_better_or_worse_than_the_baseline() -> None:
    page = compared({"fair": FAIR, "good": GOOD, "poor": POOR}, baseline="fair")
    table = Document(page).section("headline").one("table")
    cells = table.one("tbody").all("tr")[0].all("td")
    marks = [[sign.text for sign in cell.all("span", **{"class": "sign"})] for cell in cells]
    assert marks == [[], [" best", "▲ better"], ["▼ worse"], []]
    assert table.one("span", **{"class": "letter"}).text == "baseline"


@pytest.mark.usefixtures("without_charts")
def test_marks_of_many_runs_are_counts() -> None:
    runs = {f"run {n}": GOOD if n < 5 else POOR for n in range(9)}
    first = Document(compared(runs)).section("headline").one("tbody").all("tr")[0].all("td")
    assert [sign.text for sign in first[0].all("span", **{"class": "rose"})] == ["▲ 4"]


@pytest.mark.usefixtures("without_charts")
def test_every_run_has_a_column() -> None:
    evaluate = karat.Evaluator(GOLD, ["RR"])
    names = [f"run {n}" for n in range(37)]
    page = of_sheets([Sheet(evaluate(karat.Run.of(FAIR, name=name))) for name in names])
    heads = Document(page).section("headline").one("thead").all("th")
    assert [head.text.strip() for head in heads] == ["measure", *names, "n"]


def test_groups_are_shaded_by_value() -> None:
    page = page_of("good", "poor")
    section = document_of("good", "poor").section("groups")
    for sheet, table in zip(page.sheets, section.all("table"), strict=True):
        assert sheet.groups is not None
        cells = [cell for cell in table.all("td") if "data-value" in cell.attributes]
        assert [float(cell.attributes["data-value"] or "") for cell in cells] == sheet.groups[
            "value"
        ].to_list()
        shades = [cell.attributes["class"] for cell in cells]
        assert shades == [f"heat-{min(int(10 * v), 9)}" for v in sheet.groups["value"]]
        sizes = [cell.text for cell in table.all("td", **{"class": "size"})]
        assert sizes == ["4*", "4*", "4*"]


def test_runs_are_compared_by_scripts() -> None:
    section = document_of("good", "poor").section("comparison")
    assert "JavaScript" in section.one("noscript").text


def test_one_run_without_intervals_has_no_marks() -> None:
    scores = karat.evaluate(GOLD, FAIR, MEASURES)
    document = Document(of_sheets([Sheet(scores, intervals=False)]))
    section = document.section("headline")
    assert section.all("span", **{"class": "interval"}) == []
    assert section.all("span", **{"class": "sign"}) == []
    assert section.all("p", **{"class": "key"}) == []
    assert "comparison" not in document.sections


def test_saved_scores_can_be_shown(tmp_path: Path) -> None:
    karat.evaluate(GOLD, FAIR, MEASURES).write(tmp_path / "scores.parquet")
    sheet = Sheet(karat.Scores.read(tmp_path / "scores.parquet"))
    cell = Document(of_sheets([sheet])).section("headline").one("tbody").all("td")[0]
    assert float(cell.attributes["data-value"] or "") == sheet.summary["value"][0]


def test_measure_without_a_value_is_a_dash() -> None:
    gold = karat.Gold.of(judgments={"q": {"a": 0}})
    scores = karat.evaluate(gold, {"q": ["a"]}, ["RR"], conventions={"no_gold": "skip"})
    cell = Document(of_sheets([Sheet(scores)])).section("headline").one("tbody").all("td")[0]
    assert cell.one("span", **{"class": "number"}).text == "–"
    assert "data-value" not in cell.attributes


def test_verdict_shows_what_failed_and_why() -> None:
    verdict = karat.gate(GOLD, FAIR, ["RR >= 0.9", "P@2 >= 0.1"])
    page = replace(scored(), verdict=verdict)
    document = Document(page)
    section = document.section("verdict")
    assert [strong.text for strong in section.all("strong")] == ["✗ failed", "✓ passed"]
    assert verdict.failures[0].reason in section.text
    linked = [json.loads(b.attributes["data-query"] or "") for b in section.all("button")]
    assert linked == [each.query_id for each in verdict.failures[0].blamed]
    assert verdict.summary in document.root.one("header").text


def test_findings_link_to_their_queries() -> None:
    show = {"field": "kind", "value": '"<k>\x00'}
    notices = [Notice("group", "far under", show), Notice("unjudged", "unsafe")]
    section = Document(replace(scored(), notices=notices)).section("first")
    first, second = section.all("li")
    assert json.loads(first.one("button").attributes["data-show"] or "") == show
    assert second.text == "unsafe"
    assert second.all("button") == []


def test_page_shows_how_to_reproduce_it() -> None:
    page = replace(
        scored(),
        command="karat eval 'my gold' run",
        inputs=[Input("gold", "my gold", 1234, "ab" * 32), Input("run", "in memory")],
        run_settings={"a": {"top_k": 20, "model": "<m>"}, "b": {}},
    )
    section = Document(page).section("made")
    for word in ("karat eval 'my gold' run", "ab" * 32, "1,234", karat.__version__, "20261115"):
        assert word in section.text
    for name, word in page.sheets[0].scores.conventions.as_dict().items():
        assert f"{name}={word}" in section.text
    (settings,) = section.all("details")
    assert json.loads(settings.one("pre").text) == {"top_k": 20, "model": "<m>"}


def test_changed_conventions_are_marked() -> None:
    scores = karat.evaluate(GOLD, FAIR, ["RR"], conventions={"missing": "skip"})
    section = Document(of_sheets([Sheet(scores)])).section("made")
    assert [strong.text for strong in section.all("strong")] == ["changed"]


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
        notices=[Notice("nothing", name, {"run": name})],
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
    page = replace(page, title=name, notices=[Notice("nothing", name)], command=name)
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
    named = [f"'sha256-{b64encode(sha256(code).digest()).decode()}'" for code in runnable]
    assert len(runnable) == 2
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
