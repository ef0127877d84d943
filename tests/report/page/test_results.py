"""The table of values: rank ranges against all pairs, scales of drawings, warnings and notes."""

from __future__ import annotations

import random

import pytest

import karat
from karat.report.comparison import ComparisonSheet
from karat.report.page.model import Page
from karat.report.page.sections.leaderboard import rank_ranges, results_view
from karat.report.sheet import Sheet
from support.pages import FAIR, GOLD, GOOD, POOR, compared, of_sheets


def noisy_page(n_runs: int, seed: int) -> Page:
    """Return runs that are better the higher their number, and differ by chance."""
    draw = random.Random(seed).random
    gold = {f"q{n}": {f"d{item}": int(draw() * 3) for item in range(6)} for n in range(25)}
    runs = {}
    for number in range(n_runs):
        ranked = {}
        for query, grades in gold.items():
            noisy = {item: 0.5 * number * grade + 3 * draw() for item, grade in grades.items()}
            ranked[query] = sorted(noisy, key=lambda item: -noisy[item])
        runs[f"run {number}"] = ranked
    comparison = karat.compare(gold, runs, ["nDCG@3", "RR"])
    sheets = [Sheet(scores) for scores in comparison.scores]
    return of_sheets(sheets, ComparisonSheet(comparison))


@pytest.mark.parametrize("seed", range(3))
def test_rank_range_counts_significantly_better_and_worse_runs(seed: int) -> None:
    page = noisy_page(6, seed)
    assert page.comparison is not None
    rows = page.comparison.pairs.filter(measure="nDCG@3").to_dicts()
    expected = []
    for sheet in page.sheets:
        better, worse = 0, 0
        for row in rows:
            if sheet.name in (row["a"], row["b"]) and row["p_corrected"] < 0.05:
                lead = row["difference"] if sheet.name == row["b"] else -row["difference"]
                better += lead < 0
                worse += lead > 0
        expected.append((1 + better, len(page.sheets) - worse))
    assert rank_ranges(page) == expected
    assert len(set(expected)) > 1
    view = results_view(page)
    shown = {run.head.name: run.rank_range for run in view.leaderboard}
    assert shown == dict(zip((sheet.name for sheet in page.sheets), expected, strict=True))


def test_rank_of_a_run_is_within_its_range() -> None:
    for run in results_view(noisy_page(8, 5)).leaderboard:
        assert run.rank is not None
        assert run.rank_range is not None
        assert run.rank_range[0] <= run.rank <= run.rank_range[1]


def test_ranges_need_a_comparison_of_all_pairs() -> None:
    runs = {"good": GOOD, "fair": FAIR, "poor": POOR, "same": GOOD}
    assert rank_ranges(compared(runs)) == [(1, 2), (3, 3), (4, 4), (1, 2)]
    assert rank_ranges(compared(runs, baseline="fair")) is None
    evaluate = karat.Evaluator(GOLD, ["RR"])
    sheets = [Sheet(evaluate(karat.Run.of(run, name=name))) for name, run in runs.items()]
    assert rank_ranges(of_sheets(sheets)) is None


def test_drawings_of_a_share_reach_from_0_to_1() -> None:
    view = results_view(compared({"good": GOOD, "poor": POOR}))
    for row in view.rows:
        for cell in row.cells:
            assert cell.spark is not None
            assert cell.value is not None
            assert cell.spark.x == pytest.approx(100 * cell.value, abs=0.01)


def test_drawings_of_an_amount_reach_from_0_to_the_largest_end() -> None:
    gold = {f"q{n}": {"a": 1} for n in range(6)}
    runs = {
        name: karat.Run.of(
            [
                {"query_id": q, "results": ["a"], "latency_ms": {"total": ms + at}}
                for at, q in enumerate(gold)
            ],
            name=name,
        )
        for name, ms in (("fast", 10.0), ("slow", 40.0))
    }
    evaluate = karat.Evaluator(gold, ["latency.mean"])
    view = results_view(of_sheets([Sheet(evaluate(run)) for run in runs.values()]))
    fast, slow = view.rows[0].cells
    largest = max(cell.high or cell.value or 0.0 for cell in (fast, slow))
    for cell in (fast, slow):
        assert cell.spark is not None
        assert cell.value is not None
        assert cell.spark.x == pytest.approx(100 * cell.value / largest, abs=0.01)
    assert (fast.is_best, slow.is_best) == (True, False)


def test_run_without_a_value_is_last_and_has_no_rank() -> None:
    gold = GOLD | {"without": {"a": 0}}
    evaluate = karat.Evaluator(gold, ["RR"], conventions={"missing": "skip", "no_gold": "skip"})
    runs = {"none": {"without": ["a"]}, "good": GOOD, "fair": FAIR, "poor": POOR}
    sheets = [Sheet(evaluate(karat.Run.of(run, name=name))) for name, run in runs.items()]
    last = results_view(of_sheets(sheets)).leaderboard[-1]
    assert (last.head.name, last.rank, last.cells[0].text) == ("none", None, "–")
    assert last.cells[0].spark is None


def test_warnings_are_visible_and_notes_are_folded() -> None:
    gold = {f"q{n}": {"a": 1} for n in range(4)}
    timed = [
        {"query_id": q, "results": ["a"], "latency_ms": {"total": 5.0 + at}}
        for at, q in enumerate(gold)
    ]
    scores = karat.evaluate(gold, timed, ["latency.p99"])
    view = results_view(of_sheets([Sheet(scores)]))
    (warning,) = view.warnings
    assert "is based on only 4 queries" in warning
    assert warning not in view.notes
