"""The file of a report: what it says, that it is escaped, and that nothing but its own runs."""

from __future__ import annotations

import io
import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

import karat
from karat.errors import InputError
from karat.report.page import html, scripts
from karat.report.page.model import Input, Notice, Page
from karat.report.tables import with_interval
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
    """An element of a document, with what stands in it."""

    def __init__(self, name: str, attributes: dict[str, str | None]) -> None:
        self.name, self.attributes = name, attributes
        self.children: list[Element] = []
        self.text = ""

    def all(self, name: str, **attributes: str) -> list[Element]:
        """Return the elements below of a name, whose attributes are or hold these words."""
        found = []
        for child in self.children:
            held = {key: (child.attributes.get(key) or "").split() for key in attributes}
            if child.name == name and all(attributes[key] in held[key] for key in held):
                found.append(child)
            found += child.all(name, **attributes)
        return found

    def one(self, name: str, **attributes: str) -> Element:
        (found,) = self.all(name, **attributes)
        return found


class Document(HTMLParser):
    """Reads what was written as a tree, as a browser would."""

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
        (found,) = (each for each in self.root.all("section") if each.attributes["id"] == name)
        return found

    @property
    def markup(self) -> str:
        """All but what stands in scripts, which nobody sees as it is."""
        return re.sub(r"<script.*?</script>", "", self.written.decode(), flags=re.DOTALL)

    @property
    def sections(self) -> list[str | None]:
        return [each.attributes["id"] for each in self.root.all("section")]

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """What elements there are, and the names of their attributes."""
        return [
            (e.name, tuple(e.attributes)) for e in _below(self.root) if e.name not in ("script",)
        ]


def _below(element: Element) -> list[Element]:
    return [each for child in element.children for each in (child, *_below(child))]


def test_every_value_of_the_headline_is_that_of_the_summary() -> None:
    page = compared({"good": GOOD, "fair": FAIR, "poor": POOR})
    table = Document(page).section("headline").one("table")
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
            assert " ".join(part.text for part in parts) == with_interval(row)


def test_judged_shares_and_bounds_stand_below_the_values() -> None:
    page = compared({"good": GOOD, "poor": POOR})
    rows = Document(page).section("headline").all("tr", **{"class": "hole"})
    told = {
        row.one("th").text: [cell.attributes.get("data-value") for cell in row.all("td")]
        for row in rows
    }
    summaries = [{row["measure"]: row for row in sheet.summary.to_dicts()} for sheet in page.sheets]
    assert told["Judged@10"] == [*(repr(each["nDCG@10"]["judged"]) for each in summaries), None]
    assert told["RR at most"] == [*(repr(each["RR"]["bound_high"]) for each in summaries), None]


def test_the_best_value_is_marked_by_a_word() -> None:
    table = Document(compared({"poor": POOR, "good": GOOD})).section("headline").one("table")
    first = table.one("tbody").all("tr")[0].all("td")
    assert ["best" in cell.text for cell in first[:2]] == [False, True]


def test_where_all_are_the_same_none_is_best() -> None:
    section = Document(compared({"one": GOOD, "two": GOOD})).section("headline")
    assert all("best" not in cell.text for cell in section.all("td"))
    assert "no difference is real" in section.text


def test_runs_are_marked_by_those_they_are_really_better_than() -> None:
    page = compared({"good": GOOD, "fair": FAIR, "poor": POOR})
    table = Document(page).section("headline").one("table")
    marks = [
        [sign.text for sign in cell.all("span", **{"class": "rose"})]
        for cell in table.one("tbody").all("tr")[0].all("td")
    ]
    assert marks == [["▲ b, c"], ["▲ c"], [], []]
    assert [head.text for head in table.all("span", **{"class": "letter"})] == ["a", "b", "c"]


def test_with_a_baseline_marks_say_better_or_worse() -> None:
    page = compared({"fair": FAIR, "good": GOOD, "poor": POOR}, baseline="fair")
    table = Document(page).section("headline").one("table")
    cells = table.one("tbody").all("tr")[0].all("td")
    marks = [[sign.text for sign in cell.all("span", **{"class": "sign"})] for cell in cells]
    assert marks == [[], [" best", "▲ better"], ["▼ worse"], []]
    assert table.one("span", **{"class": "letter"}).text == "baseline"


def test_of_many_runs_those_that_one_is_better_than_are_counted() -> None:
    runs = {f"run {n}": GOOD if n < 5 else POOR for n in range(9)}
    first = Document(compared(runs)).section("headline").one("tbody").all("tr")[0].all("td")
    assert [sign.text for sign in first[0].all("span", **{"class": "rose"})] == ["▲ 4"]


def test_as_many_runs_as_there_are_have_a_column() -> None:
    evaluate = karat.Evaluator(GOLD, ["RR"])
    names = [f"run {n}" for n in range(37)]
    page = of_sheets([evaluate(karat.Run.of(FAIR, name=name)).sheet() for name in names])
    heads = Document(page).section("headline").one("thead").all("th")
    assert [head.text.strip() for head in heads] == ["measure", *names, "n"]


def test_groups_are_shaded_by_value() -> None:
    page = compared({"good": GOOD, "poor": POOR})
    section = Document(page).section("groups")
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


def test_a_query_that_moved_opens_by_a_button() -> None:
    page = compared({"good": GOOD, "poor": POOR})
    assert page.comparison is not None
    buttons = Document(page).section("pairs").all("button")
    moved = [json.loads(button.attributes["data-query"] or "") for button in buttons]
    assert moved == [each.query_id for each in page.comparison.moved]


def test_one_run_without_intervals_has_no_marks() -> None:
    scores = karat.evaluate(GOLD, FAIR, MEASURES)
    document = Document(of_sheets([scores.sheet(intervals=False)]))
    section = document.section("headline")
    assert section.all("span", **{"class": "interval"}) == []
    assert section.all("span", **{"class": "sign"}) == []
    assert section.all("p", **{"class": "key"}) == []
    assert "pairs" not in document.sections


def test_saved_scores_can_be_shown(tmp_path: Path) -> None:
    karat.evaluate(GOLD, FAIR, MEASURES).write(tmp_path / "scores.parquet")
    sheet = karat.Scores.read(tmp_path / "scores.parquet").sheet()
    cell = Document(of_sheets([sheet])).section("headline").one("tbody").all("td")[0]
    assert float(cell.attributes["data-value"] or "") == sheet.summary["value"][0]


def test_a_measure_without_a_value_is_a_dash() -> None:
    gold = karat.Gold.of(judgments={"q": {"a": 0}})
    scores = karat.evaluate(gold, {"q": ["a"]}, ["RR"], conventions={"no_gold": "skip"})
    cell = Document(of_sheets([scores.sheet()])).section("headline").one("tbody").all("td")[0]
    assert cell.one("span", **{"class": "number"}).text == "–"
    assert "data-value" not in cell.attributes


def test_a_verdict_says_in_words_what_failed_and_why() -> None:
    verdict = karat.gate(GOLD, FAIR, ["RR >= 0.9", "P@2 >= 0.1"])
    page = replace(scored(), verdict=verdict)
    document = Document(page)
    section = document.section("verdict")
    assert [strong.text for strong in section.all("strong")] == ["✗ failed", "✓ passed"]
    assert verdict.failures[0].reason in section.text
    blamed = [json.loads(b.attributes["data-query"] or "") for b in section.all("button")]
    assert blamed == [each.query_id for each in verdict.failures[0].blamed]
    assert verdict.summary in document.root.one("header").text


def test_findings_lead_to_their_queries() -> None:
    show = {"field": "kind", "value": '"<k>\x00'}
    found = [Notice("group", "far under", show), Notice("unjudged", "unsafe")]
    section = Document(replace(scored(), notices=found)).section("first")
    first, second = section.all("li")
    assert json.loads(first.one("button").attributes["data-show"] or "") == show
    assert second.text == "unsafe"
    assert second.all("button") == []


def test_how_it_was_made_holds_what_it_takes_to_do_it_again() -> None:
    page = replace(
        scored(),
        command="karat eval 'my gold' run",
        inputs=[Input("gold", "my gold", 1234, "ab" * 32), Input("run", "in memory")],
        run_settings={"a": {"top_k": 20, "model": "<m>"}, "b": {}},
    )
    section = Document(page).section("made")
    for word in ("karat eval 'my gold' run", "ab" * 32, "1,234", karat.__version__, "20261115"):
        assert word in section.text
    for name, word in page.sheets[0].conventions.as_dict().items():
        assert f"{name}={word}" in section.text
    (settings,) = section.all("details")
    assert json.loads(settings.one("pre").text) == {"top_k": 20, "model": "<m>"}


def test_conventions_that_were_changed_are_marked() -> None:
    scores = karat.evaluate(GOLD, FAIR, ["RR"], conventions={"missing": "skip"})
    section = Document(of_sheets([scores.sheet()])).section("made")
    assert [strong.text for strong in section.all("strong")] == ["changed"]


@pytest.mark.parametrize("harm", HOSTILE, ids=HOSTILE.values())
def test_a_hostile_name_is_a_text_and_changes_nothing_else(harm: str) -> None:
    def page(name: str) -> Page:
        gold = karat.Gold.of(
            judgments=GOLD, queries=[{"query_id": q, "kind": name, "text": name} for q in GOLD]
        )
        runs = {name: GOOD, "other": FAIR}
        comparison = karat.compare(gold, runs, ["RR"], by=["kind"])
        sheets = [scores.sheet(by=("kind",)) for scores in comparison.scores]
        return replace(
            of_sheets(sheets, comparison.sheet()),
            title=name,
            command=name,
            inputs=[Input("run", name)],
            run_settings={name: {name: name}},
            notices=[Notice("nothing", name, {"run": name})],
            verdict=karat.gate(gold, karat.Run.of(FAIR, name=name), ["RR >= 0.9"]),
        )

    harmed, plain = Document(page(harm)), Document(page("plain"))
    assert harmed.shape == plain.shape
    assert not set("\x00\u202e\u2066") & set(harmed.markup)


def test_names_without_end_are_cut() -> None:
    name = "n" * 100_000
    page = compared({name: GOOD, "other": POOR})
    page = replace(page, title=name, notices=[Notice("nothing", name)], command=name)
    plain = Document(compared({"name": GOOD, "other": POOR}))
    assert len(Document(page).markup) < len(plain.markup) + 50_000


def test_only_scripts_that_the_policy_names_can_run() -> None:
    written = Document(compared({"good": GOOD, "poor": POOR})).written
    policy = re.search(rb'Content-Security-Policy" content="([^"]*)"', written)
    assert policy is not None
    directives = dict(
        part.strip().split(" ", 1) for part in policy[1].decode().replace("&#x27;", "'").split(";")
    )
    assert directives["default-src"] == "'none'"
    found = re.findall(rb"<script([^>]*)>(.*?)</script>", written, re.DOTALL)
    runnable = [code for kind, code in found if b"json" not in kind and b"text/plain" not in kind]
    named = [f"'sha256-{b64encode(sha256(code).digest()).decode()}'" for code in runnable]
    assert len(runnable) == 2
    assert directives["script-src"].split() == named


def test_no_element_has_a_handler_or_a_style_of_its_own() -> None:
    for element in _below(Document(compared({"good": GOOD, "poor": POOR})).root):
        names = [name for name in element.attributes if name.startswith("on") or name == "style"]
        assert names == []


def test_the_data_of_a_page_cannot_end_its_script() -> None:
    page = compared({"</script><script>harm()</script>": GOOD, "other": POOR})
    scripts_found = Document(page).root.all("script")
    assert json.loads(scripts_found[0].text)["runs"][0] == "</script><script>harm()</script>"


def test_the_same_page_is_the_same_bytes() -> None:
    page = compared({"good": GOOD, "poor": POOR})
    assert Document(page).written == Document(page).written


def test_every_module_is_joined_behind_those_it_imports() -> None:
    listed = list(scripts._MODULES)
    assert sorted(listed) == sorted(path.name for path in STATIC.glob("*.js"))
    for at, name in enumerate(listed):
        imported = re.findall(r'from "\./([\w.]+)"', (STATIC / name).read_text())
        assert set(imported) <= set(listed[:at]), name
    assert not re.search(r"^(import|export) ", scripts.own(), re.MULTILINE)


def test_no_name_is_declared_twice_over_all_modules() -> None:
    names = re.findall(
        r"^(?:async )?(?:function|const|let|class) (\w+)", scripts.own(), re.MULTILINE
    )
    assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)


@pytest.mark.parametrize(
    "word",
    ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("],
)
def test_scripts_never_read_a_text_as_markup_or_code(word: str) -> None:
    assert word not in scripts.own()


def test_without_what_draws_charts_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="altair") as caught:
        html.check_installed()
    assert caught.value.hint == "pip install 'karat[report]'"
