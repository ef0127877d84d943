"""How a notebook shows gold, runs and every kind of result."""

from __future__ import annotations

import pytest

import karat
from karat import report
from karat.evaluation.estimate import Estimate, MeanUsage
from karat.evaluation.result import Result
from karat.evaluation.usage import usage
from karat.report.cells import format_with_interval
from support.markup import Reader

HARM = "<script>harm()</script>\u202e"
GOLD = karat.Gold.of(
    judgments={f"q{n}": {"a": 2, "b": 1} for n in range(8)},
    queries=[{"query_id": f"q{n}", "text": HARM, "kind": HARM} for n in range(8)],
    spans=[{"query_id": "q0", "doc_id": "d", "start": 3, "end": 9}],
    evidence={"q1": [HARM]},
    name=HARM,
)
GOOD = karat.Run.of({f"q{n}": {"a": 0.75, "b": 0.5} for n in range(8)}, name=HARM)
POOR = karat.Run.of({f"q{n}": {"c": 0.75, "b": 0.5} for n in range(7)}, name="poor")
MEASURES = ["nDCG@10", "RR"]


def shown(value: karat.Gold | karat.Run | Result) -> Reader:
    return Reader(value._repr_html_())


def test_gold_shows_counts_and_first_rows_of_each_table() -> None:
    text = shown(GOLD).text
    for words in (
        "8 queries",
        "queries: 8, the first 5",
        "judgments: 16",
        "spans: 1",
        "evidence: 1",
    ):
        assert words in text
    assert "q4" in text
    assert "q5" not in text


def test_gold_with_only_judgments_shows_nothing_else() -> None:
    text = shown(karat.Gold.of({"q": ["a"]})).text
    assert "judgments: 1" in text
    assert "spans" not in text
    assert "queries:" not in text


def test_run_shows_its_size_and_first_rows() -> None:
    reader = shown(GOOD)
    assert "8 queries, 16 results" in reader.text
    assert "0.75" in reader.text
    assert [name for name, _ in reader.elements].count("tr") == 6
    assert "failed" not in reader.text


def test_run_shows_failed_queries() -> None:
    failed = {"query_id": "q", "error": {"type": "Timeout", "message": "late"}, "results": []}
    assert "1 query failed" in shown(karat.Run.of([failed])).text


def test_scores_show_the_values_of_their_summary() -> None:
    scores = karat.evaluate(GOLD, GOOD, MEASURES)
    reader = shown(scores)
    for row in scores.summary().to_dicts():
        assert f"{row['measure']}{format_with_interval(row)}" in reader.text


def test_comparison_shows_values_and_differences() -> None:
    comparison = karat.compare(GOLD, {"good": GOOD, "poor": POOR}, MEASURES)
    text = shown(comparison).text
    assert text.startswith("good is significantly better than poor: ")
    assert "difference: poor − good" in text
    assert "over 8 queries" in text
    assert "poor: 1 query of gold not in the run: scored as if nothing was retrieved" in text
    assert "W/T/L" in text


def results() -> dict[str, Result]:
    """Return one result of each kind, with harmful texts wherever there can be any."""
    run = karat.Run.of(
        [
            {
                "query_id": HARM,
                "results": [{"id": HARM}],
                "latency_ms": {HARM: 3.0, "total": 5.0},
                "error": None,
            },
            {"query_id": "p", "results": [], "error": {"type": HARM, "message": HARM}},
        ],
        name=HARM,
    )
    gold = karat.Gold.of({HARM: {HARM: 1}, "p": {"a": 1}}, name=HARM)
    doubled = [{"query_id": HARM, "doc_id": HARM, "start": 3, "end": 900}]
    return {
        "scores": karat.evaluate(GOLD, GOOD, MEASURES),
        "comparison": karat.compare(GOLD, [GOOD, POOR], MEASURES),
        "verdict": karat.gate(GOLD, POOR, "RR >= 0.9", baseline=GOOD),
        "explanation": karat.explain("RR", gold=gold, run={HARM: [HARM], "p": ["a"]}, query=HARM),
        "validation": karat.validate(karat.Gold.of(spans=doubled), corpus={HARM: "short"}),
        "location": karat.locate(karat.Gold.of(evidence={HARM: [HARM]}), {"d": "nothing"}),
        "tuning": karat.tune_fusion(
            gold, {HARM: {HARM: [HARM], "p": ["a"]}, "b": {HARM: ["b"], "p": ["a"]}}, "RR", folds=2
        ),
        "usage": usage(run),
        "estimate": Estimate(10, 10, 2, 1, 1, None, 5.0, 0, MeanUsage(10.0, 3.0, 1.0, 0.001)),
    }


KINDS = [
    *("scores", "comparison", "verdict", "explanation"),
    *("validation", "location", "tuning", "usage", "estimate"),
]


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")  # about evidence not found
@pytest.mark.parametrize("kind", KINDS)
def test_every_result_is_shown_as_html(kind: str) -> None:
    result = results()[kind]
    reader = shown(result)
    names = {name for name, _ in reader.elements}
    assert names <= {
        *("div", "p", "table", "caption", "thead", "tbody", "tr", "th", "td"),
        *("sup", "span", "ul", "li", "pre"),
    }
    assert all(set(attributes) <= {"style"} for _, attributes in reader.elements)
    assert "\u202e" not in reader.text
    document = report.document(result)
    assert document.headline is None or reader.text.startswith(printed(document.headline.text))


def printed(text: str) -> str:
    return text.replace("\u202e", "⟨U+202E⟩")


@pytest.mark.parametrize(
    "value",
    [GOLD, GOOD, karat.evaluate(GOLD, GOOD, MEASURES), karat.compare(GOLD, [GOOD, POOR], MEASURES)],
    ids=["gold", "run", "scores", "comparison"],
)
def test_hostile_names_are_shown_as_text(value: karat.Gold) -> None:
    reader = shown(value)
    names = {name for name, _ in reader.elements}
    assert not names & {"script", "button", "a", "img", "iframe"}
    assert all(not key.startswith("on") for _, attributes in reader.elements for key in attributes)
    assert HARM.replace("\u202e", "⟨U+202E⟩") in reader.text
    assert "\u202e" not in reader.text
