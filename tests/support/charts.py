"""The charts of a page with all kinds of data, and a hostile name for a run and a group."""

from __future__ import annotations

import random
from functools import cache

import polars as pl

from karat import Evaluator
from karat.evaluation.loaded_run import LoadedRun
from karat.report.charts import charts
from karat.report.page.chart_data import load_chart_data
from karat.report.page.model import Page, Queries
from karat.report.sheet import Sheet

HOSTILE = '</script><img src=x onerror="alert(1)">'


@cache
def gold_and_runs():
    draw = random.Random(11)
    items = [f"d{number}" for number in range(30)]
    gold = [
        {
            "query_id": f"q{n}",
            "kind": draw.choice(["easy", HOSTILE]),
            "relevant": dict.fromkeys(draw.sample(items, 3), 1),
        }
        for n in range(25)
    ]
    runs = {
        name: [
            {
                "query_id": line["query_id"],
                "results": [{"id": item, "text": "x" * 9} for item in draw.sample(items, 20)],
                "latency_ms": {"total": draw.uniform(10, 90), "find": draw.uniform(1, 9)},
                "calls": [
                    {"stage": "generation", "model": "m", "prompt_tokens": 5, "price_per_1k": 1.0}
                ],
            }
            for line in gold
        ]
        for name in ("plain", HOSTILE)
    }
    return gold, runs


@cache
def scores_of_runs():
    gold, runs = gold_and_runs()
    measures = ["nDCG@10", "RR@10", "latency.p50", "latency.p90", "latency.p99"]
    return Evaluator(gold, measures).all(runs)


@cache
def charts_of_page():
    """Return the charts of a page with all kinds of data."""
    return charts_of(scores_of_runs())


def charts_of(scores):
    """Return the charts of a page of some scores."""
    empty = pl.Series([], dtype=pl.String)
    page = Page(
        title="",
        created="",
        command=None,
        sheets=[Sheet(score) for score in scores],
        groups=[],
        comparison=None,
        verdict=None,
        inputs=[],
        run_settings={},
        findings=[],
        chart_data=load_chart_data(scores, [LoadedRun.of(score) for score in scores]),
        queries=Queries(empty, None, pl.DataFrame(), empty, [], []),
    )
    return charts(page)
