"""The top of a page: the pill, the sentence, the plot and the card."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import karat
from karat.report.comparison import ComparisonSheet
from karat.report.document_model import Headline
from karat.report.page.model import Page
from karat.report.page.sections.card import write_card
from karat.report.page.sections.headline import as_sentence
from karat.report.page.sections.interval_plot import MOST_RUNS, axis_labels, axis_ticks, draw_plot
from karat.report.page.sections.text_width import fitted, text_width, wrapped
from karat.report.page.sections.verdict_summary import summary_view
from karat.report.sheet import Sheet
from support.errors import refused
from support.pages import FAIR, GOLD, GOOD, HOSTILE, MEASURES, POOR, compared, of_sheets, scored

SVG = "{http://www.w3.org/2000/svg}"


def pill(page: Page) -> tuple[str, str] | None:
    view = summary_view(page)
    return None if view.pill is None else (view.pill.text, view.pill.tone)


def slightly_worse() -> dict[str, list[str]]:
    """Return the good run with two queries that are worse: too few to tell."""
    return {q: ["c", "a", "b"] if q in ("q0", "q1") else items for q, items in GOOD.items()}


def untested(**runs: dict[str, list[str]]) -> Page:
    evaluate = karat.Evaluator(GOLD, MEASURES)
    return of_sheets([Sheet(evaluate(karat.Run.of(run, name=name))) for name, run in runs.items()])


def of_spans(size: int) -> Page:
    """Return two runs: the better one returns chunks that are `size` characters long."""
    gold = [
        {"query_id": f"q{n}", "spans": [{"doc_id": "d", "start": 100 * n, "end": 100 * n + 10}]}
        for n in range(12)
    ]
    runs = {}
    for name, length, shift in (("better", size, 0), ("worse", 20, 50)):
        runs[name] = [
            {
                "query_id": f"q{n}",
                "results": [
                    {
                        "id": "c",
                        "doc_id": "d",
                        "start": 100 * n + shift,
                        "end": 100 * n + shift + length,
                        "text": "x" * length,
                    }
                ],
            }
            for n in range(12)
        ]
    comparison = karat.compare(karat.Gold.of(gold), runs, ["span.recall@5"])
    sheets = [Sheet(scores) for scores in comparison.scores]
    return of_sheets(sheets, ComparisonSheet(comparison))


def test_significant_lead_is_green() -> None:
    assert pill(compared({"good": GOOD, "poor": POOR})) == ("significantly better", "good")
    runs = {"good": GOOD, "fair": FAIR, "poor": POOR}
    assert pill(compared(runs)) == ("significantly better", "good")


def test_lead_that_is_not_significant_is_too_close_to_call() -> None:
    runs = {"good": GOOD, "close": slightly_worse()}
    assert pill(compared(runs)) == ("too close to call", "caution")
    assert pill(compared(runs | {"poor": POOR})) == ("too close to call", "caution")


def test_equal_best_values_are_a_tie() -> None:
    assert pill(compared({"one": GOOD, "two": GOOD})) == ("tie", "caution")
    assert pill(untested(one=GOOD, two=GOOD)) == ("tie", "neutral")


def test_significant_lead_with_more_text_is_compared_with_care() -> None:
    assert pill(of_spans(20)) == ("significantly better", "good")
    assert pill(of_spans(90)) == ("compare with care", "caution")


def test_runs_without_a_test_are_not_tested() -> None:
    assert pill(untested(good=GOOD, poor=POOR)) == ("not tested", "neutral")


def test_no_values_is_red() -> None:
    gold = {"q": {"a": 0}}
    runs = {name: karat.Run.of({"q": ["a"]}, name=name) for name in ("one", "two")}
    evaluate = karat.Evaluator(gold, ["RR"], conventions={"no_gold": "skip"})
    sheets = [Sheet(evaluate(run)) for run in runs.values()]
    assert pill(of_sheets(sheets)) == ("no values", "bad")
    assert pill(of_sheets(sheets[:1])) == ("no values", "bad")


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [("RR >= 0.1", ("gate passed", "good")), ("RR >= 0.9", ("gate failed", "bad"))],
)
def test_gate_passes_or_fails(threshold: str, expected: tuple[str, str]) -> None:
    assert pill(replace(scored(), verdict=karat.gate(GOLD, FAIR, [threshold]))) == expected


def test_one_run_has_no_pill_but_a_large_value() -> None:
    page = scored()
    view = summary_view(page)
    row = page.sheets[0].summary.row(0, named=True)
    assert view.pill is None
    assert view.value is not None
    assert (view.value.label, view.value.text) == ("nDCG@10", f"{row['value']:.3f}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("good leads poor", "Run good leads poor."),
        ("poor, good and 2 more share it", "Runs poor, good and 2 more share it."),
        ("no query has a value", "No query has a value."),
        ("goodness is shown.", "Goodness is shown."),
    ],
)
def test_sentence_starts_with_a_capital_letter_and_keeps_names(text: str, sentence: str) -> None:
    page = untested(good=GOOD, poor=POOR)
    assert as_sentence(page, Headline(text, label="tie" if "share" in text else "")) == sentence


def test_default_name_of_a_run_is_not_repeated() -> None:
    assert as_sentence(scored(), Headline("run: RR 0.5")) == "Run: RR 0.5."


def test_plot_shows_the_best_runs_and_the_baseline() -> None:
    runs = {f"run {n}": GOOD if n else POOR for n in range(14)}
    plot = draw_plot(compared(runs, baseline="run 0"), width=640, size=14)
    names = [row.name for row in plot.rows]
    assert names == [*(f"run {n}" for n in range(1, MOST_RUNS)), "run 0"]
    assert [row.note for row in plot.rows] == [""] * (MOST_RUNS - 1) + ["baseline"]
    assert plot.more == "and 4 more runs"
    assert plot.description.endswith("; and 4 more runs")
    assert "run 0 (baseline)" in plot.description


def test_plot_places_values_and_intervals_on_its_axis() -> None:
    page = compared({"good": slightly_worse(), "fair": FAIR, "poor": POOR})
    plot = draw_plot(page, width=640, size=14)
    ticks = [(tick.x, float(tick.label)) for tick in plot.ticks]
    scale = (ticks[-1][0] - ticks[0][0]) / (ticks[-1][1] - ticks[0][1])
    for row, at in zip(plot.rows, page.ranking, strict=True):
        summary = page.sheets[at].summary.row(0, named=True)
        assert row.text == f"{summary['value']:.3f}"
        places = {"x": summary["value"], "low": summary["low"], "high": summary["high"]}
        for name, number in places.items():
            if name == "x" or summary["low"] != summary["high"]:
                expected = ticks[0][0] + scale * (number - ticks[0][1])
                assert getattr(row, name) == pytest.approx(expected, abs=0.02)


def test_value_without_spread_has_no_interval() -> None:
    page = of_sheets([Sheet(karat.evaluate({"q": {"a": 1}}, {"q": ["b", "a"]}, ["RR"]))])
    (row,) = draw_plot(page, width=640, size=14).rows
    assert (row.interval, row.low, row.high) == ("", None, None)
    view = summary_view(page)
    assert view.value is not None
    assert view.value.interval == ""


def test_more_than_eight_runs_are_grey_except_best_and_baseline() -> None:
    runs = {f"run {n}": GOOD if n == 4 else POOR for n in range(9)}
    colours = compared(runs, baseline="run 7").run_colours
    assert colours[4] == "var(--run-0)"
    assert colours[7] == "var(--run-1)"
    assert colours.count("var(--run-other)") == 7
    assert compared(dict(list(runs.items())[:8])).run_colours == [
        f"var(--run-{n})" for n in range(8)
    ]


NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 6))


@given(st.lists(NUMBERS, min_size=1, max_size=5))
@example([0.5])
@example([0.0])
@example([1.0, 1.0])
@example([0.0, 1.0])
@example([0.61, 0.79])
def test_axis_has_three_to_five_round_ticks_around_the_data(ends: list[float]) -> None:
    ticks = axis_ticks(ends)
    slack = 1e-6 * (ticks[-1] - ticks[0])
    assert 3 <= len(ticks) <= 5
    assert ticks[0] - slack <= min(ends)
    assert max(ends) <= ticks[-1] + slack
    labels = [float(label.replace(",", "").replace("−", "-")) for _, label in axis_labels(ticks)]
    assert labels == pytest.approx(ticks, abs=slack)
    assert len(set(labels)) == len(labels)


@given(st.text(max_size=200), st.integers(40, 400))
def test_fitted_text_is_narrow_enough(text: str, width: int) -> None:
    short = fitted(text, width, 10)
    assert text_width(short, 10) <= width or len(short) <= 30  # three code points in brackets


@given(st.text(st.characters(codec="ascii"), max_size=400), st.integers(1, 5))
def test_wrapped_text_has_no_more_lines_than_allowed(text: str, most: int) -> None:
    lines = wrapped(text, 300, 10, most)
    assert 1 <= len(lines) <= most
    if not any(len(word) > 20 for word in text.split()) and "…" not in "".join(lines):
        assert " ".join(lines).split() == karat.markup.shown(text).split()


@pytest.mark.parametrize("name", [*HOSTILE, "n" * 100_000], ids=[*HOSTILE.values(), "long"])
def test_card_is_one_picture_with_texts_as_texts(name: str, tmp_path: Path) -> None:
    page = replace(compared({name: GOOD, "other": POOR}), title=name)
    write_card(page, tmp_path / "card.svg")
    written = (tmp_path / "card.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(written)
    assert len(written) < 20_000
    assert root.tag == f"{SVG}svg"
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "g", "rect", "line", "circle", "text"}
    assert "var(" not in written
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "other" in texts
    assert any("significantly better" in (text or "") for text in texts)
    assert not set("\x00\u202e\u2066") & set(written)


def test_card_as_png_is_twice_as_large(tmp_path: Path) -> None:
    page = compared({f"run {n}": GOOD if n else POOR for n in range(12)})
    write_card(page, tmp_path / "card.svg")
    write_card(page, tmp_path / "card.PNG")
    root = ElementTree.fromstring((tmp_path / "card.svg").read_bytes())
    png = (tmp_path / "card.PNG").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert float(root.attrib["width"]) == 1200
    assert float(root.attrib["height"]) > 630
    assert (width, height) == (2400, 2 * float(root.attrib["height"]))


def test_card_of_two_runs_has_the_usual_size(tmp_path: Path) -> None:
    write_card(compared({"good": GOOD, "poor": POOR}), tmp_path / "card.svg")
    root = ElementTree.fromstring((tmp_path / "card.svg").read_bytes())
    assert float(root.attrib["height"]) == 630


def test_card_names_the_folder_that_does_not_exist(tmp_path: Path) -> None:
    with refused() as error:
        write_card(scored(), tmp_path / "none" / "card.svg")
    assert error.value.path == str(tmp_path / "none" / "card.svg")
