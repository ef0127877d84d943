"""Charts show the numbers of the results, stay small, and show every name as text."""

from __future__ import annotations

import json
import random
import re
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from karat import Run, compare, evaluate
from karat.errors import MeasureError
from karat.evaluation.loaded_run import LoadedRun
from karat.measures import parse
from karat.report.charts import KINDS
from karat.report.charts.bins import bin_numbers, cumulative, edges, max_error
from karat.report.charts.distribution import histogram
from karat.report.charts.group_map import groups
from karat.report.charts.scatter import grouped_points, squares
from karat.report.charts.speed import latency, latency_histogram
from karat.report.charts.theme import COLOURS
from karat.report.charts.tradeoff import pareto_front, tradeoffs
from karat.report.page.chart_data import load_chart_data
from karat.report.sheet import Sheet
from support.charts import charts_of_page, gold_and_runs, scores_of_runs
from support.effort import examples
from support.errors import refused

pytest.importorskip("altair")
vl_convert = pytest.importorskip("vl_convert")

some = examples(60, 300)
numbers = st.floats(-1e6, 1e6, allow_nan=False)
values = st.lists(numbers, min_size=1, max_size=60).map(np.array)


def test_overlapping_runs_share_a_label_and_axes_show_their_values():
    took = {"latency_ms": 126.0, "context_tokens": None, "context_characters": None}
    frame = pl.DataFrame([{"run": run, **took} for run in "ab"])
    (drawing,) = tradeoffs(frame, parse("P@5"), {"a": 0.065, "b": 0.065}, ["a", "b"])
    svg = _svg(drawing.chart.to_dict())
    assert ">a, b</text>" in svg
    assert ">0.06</text>" in svg
    assert ">0</text>" not in svg


@some
@given(st.lists(st.sampled_from(range(40)) | numbers, min_size=1, max_size=200), st.integers(2, 12))
def test_thinned_shares_are_exact_at_their_points_and_too_low_by_at_most_the_slack(given, most):
    column = np.array(given, float)
    at, share = cumulative(column, most)
    assert len(at) <= most
    assert share[-1] == 1.0
    for x in {*given, *at}:
        true = sum(value <= x for value in given) / len(given)
        drawn = max((s for a, s in zip(at, share, strict=True) if a <= x), default=0.0)
        assert drawn <= true <= drawn + max_error(len(given), most) + 1e-12
        if x in at:
            assert drawn == pytest.approx(true, abs=1e-12)


@some
@given(values, st.booleans())
@example(np.array([0.0, 1.8000000000000003]), False)  # 1.8 would be the edge, and too low
def test_every_value_is_counted_in_its_bin(column, whole):
    column = np.round(column) if whole else column
    bounds = edges(float(column.min()), float(column.max()), whole=whole)
    assert (np.diff(bounds) > 0).all()
    assert len(bounds) <= 43
    at = bin_numbers(column, bounds)
    assert (bounds[at] <= column).all()
    assert (column <= bounds[at + 1]).all()
    inner = at + 1 < len(bounds) - 1
    assert (column[inner] < bounds[at[inner] + 1]).all()
    rows = histogram({"a": column, "b": column[:1]}, whole=whole)
    assert sum(row["queries"] for row in rows) == len(column) + 1


@some
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=50))
def test_squares_count_every_query_once(pairs):
    values = pl.DataFrame(pairs, ["value_a", "value_b"], orient="row")
    counts = squares(values, edges(0.0, 1.0))
    assert counts["n"].sum() == len(pairs)
    for row in counts.iter_rows(named=True):
        inside = sum(
            row["a_low"] <= a <= row["a_high"] and row["b_low"] <= b <= row["b_high"]
            for a, b in pairs
        )
        assert 1 <= row["n"] <= inside


def test_overlapping_queries_are_one_point_with_some_ids():
    values = pl.DataFrame(
        {
            "query_id": ["q4", "q2", "q3", "q1", "q5"],
            "value_a": [0.5, 0.5, 0.5, 0.5, 1.0],
            "value_b": [1.0, 1.0, 1.0, 1.0, 1.0],
            "difference": [0.5, 0.5, 0.5, 0.5, 0.0],
            "better": ["b"] * 4 + ["same"],
        }
    )
    first, second = grouped_points(values, "RR").to_dicts()
    assert (first["n"], first["query_id"]) == (4, "q1")
    assert first["queries"] == "q1, q2, q3 and 1 more"
    assert first["moved"] == "0.500 → 1.000 (+0.500)"
    assert second["moved"] == "1.000 → 1.000 (0.000)"


@some
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8),
    st.booleans(),
)
def test_front_has_the_runs_that_no_other_dominates(runs, higher):
    kept = pareto_front(runs, higher=higher)
    for (took, value), is_kept in zip(runs, kept, strict=True):
        better = [
            (t, v)
            for t, v in runs
            if t <= took and (v >= value if higher else v <= value) and (t, v) != (took, value)
        ]
        assert is_kept == (not better)


def test_every_colour_has_contrast_on_white_and_on_black():
    def light(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    for colour in COLOURS:
        assert 1.05 / (light(colour) + 0.05) >= 3
        assert (light(colour) + 0.05) / (light("#14171c") + 0.05) >= 3


def test_page_has_a_chart_for_all_its_data():
    drawn = {chart.id: chart for chart in charts_of_page()}
    assert {re.sub(r"-\d+$", "", name) for name in drawn} == {
        "values",
        "distribution",
        "curve",
        "precision-recall",
        "groups",
        "latency",
        "latency-histogram",
        "cost",
        "tradeoff-latency-ms",
        "tradeoff-context-tokens",
        "tradeoff-context-characters",
    }
    assert {chart.section for chart in drawn.values()} == {"curves", "groups", "speed"}


def test_specs_are_small_and_contain_no_expressions_links_or_styles():
    for chart in charts_of_page():
        text = json.dumps(chart.spec)
        assert len(text) < 60_000
        for word in ('"expr"', '"signal"', '"href"', '"url"', '"calculate"', "labelExpr", "config"):
            assert word not in text
        assert chart.spec["width"] == "container"
        assert chart.caption.endswith(".")


def test_hostile_names_of_runs_and_groups_are_text():
    for chart in charts_of_page():
        svg = _svg(chart.spec)
        assert "<img" not in svg
        assert "<script" not in svg
    (first, *_) = charts_of_page()
    assert "&lt;/script>&lt;img" in _svg(first.spec).replace("&gt;", ">")


def test_captions_and_marks_show_the_values_of_the_summary():
    scores = scores_of_runs()
    drawn = {chart.id: chart for chart in charts_of_page()}
    for score in scores:
        assert f"{score.name} {score['nDCG@10']:.3f}" in drawn["values-1"].caption
        assert f"P90 {score['latency.p90']:.2f}" in drawn["latency-1"].caption
    values = _data(drawn["values-1"].spec)
    assert {(row["run"], row["value"]) for row in values if row["measure"] == "nDCG@10"} == {
        (score.name, score["nDCG@10"]) for score in scores
    }
    curve = {(row["run"], row["k"]): row["value"] for row in _data(drawn["curve-3"].spec)}
    for score in scores:
        assert curve[score.name, 10] == score["nDCG@10"]


def test_latency_marks_are_at_the_measured_quantiles():
    scores = scores_of_runs()
    drawn = {chart.id: chart for chart in charts_of_page()}
    marks = {
        (row["run"], row["share"]): row["ms"]
        for row in _data(drawn["latency-1"].spec)
        if "shown" in row
    }
    for score in scores:
        for share, name in ((0.5, "p50"), (0.9, "p90"), (0.99, "p99")):
            assert marks[score.name, share] == score[f"latency.{name}"]


@examples(20, 250)
@given(
    st.lists(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), min_size=1, max_size=6),
    st.sampled_from([1.0, 1e-6, 1e6]),
)
def test_latency_histogram_counts_every_query_in_its_bin(times, scale):
    times = [[ms * scale for ms in one] for one in times]
    rows = [(f"r{at}", "total", ms) for at, one in enumerate(times) for ms in one]
    frame = pl.DataFrame(rows, ["run", "stage", "ms"], orient="row")
    (drawing,) = latency_histogram(frame, [f"r{at}" for at in range(len(times))])
    every = [ms for one in times for ms in one]
    far = min(every) > 0 and max(every) > 100 * min(every)
    spec = drawing.on_page().spec
    first = spec["layer"][0] if "layer" in spec else spec
    assert first["encoding"]["x"]["scale"]["type"] == ("log" if far else "linear")
    bins = {(row["run"], row["low"], row["high"]): row["queries"] for row in _data(spec)}
    last = max(high for _, _, high in bins)
    for at, one in enumerate(times):
        of_run = [key for key in bins if key[0] == f"r{at}" and key[1] < key[2]]
        assert sum(bins[key] for key in of_run) == len(one)
        for key in of_run:
            inside = [ms for ms in one if key[1] <= ms < key[2] or ms == key[2] == last]
            assert bins[key] == len(inside)


def test_captions_of_latency_describe_the_load():
    gold = {f"q{n}": ["a"] for n in range(3)}
    lines = [{"query_id": q, "results": ["a"], "latency_ms": {"total": 5.0}} for q in gold]
    runs = {name: Run.of(lines, name=name) for name in ("alone", "loaded", "silent")}
    runs["alone"].settings.update(jobs=1)
    runs["loaded"].settings.update(jobs=[8, 4], rate=2)
    both = compare(gold, runs, "RR")
    loads = {score.name: score.load for score in both.scores}
    frame = load_chart_data(both.scores, [LoadedRun.of(score) for score in both.scores]).latencies
    load = ", 8 queries at a time, then 4, at most 2 started per second."
    for draw in (latency, latency_histogram):
        (drawing,) = draw(frame, list(runs), loads)
        assert drawing.caption.count(" at a time") == 1
        assert load in drawing.caption


def test_groups_are_coloured_by_difference_and_small_groups_are_marked():
    gold = [
        {"query_id": f"q{n}", "kind": "easy" if n < 6 else "hard", "relevant": ["a"]}
        for n in range(9)
    ]
    run = {f"q{n}": ["a", "x"] if n < 6 else ["x", "a"] for n in range(9)}
    drawing = groups(Sheet(evaluate(gold, run, "RR"), by=("kind",)), ["RR"])
    cells = {row["names"]: row for row in _data(drawing.on_page().spec)}
    assert cells["easy"]["side"] == "better"
    assert cells["hard"]["side"] == "worse"
    assert (cells["easy"]["value"], cells["hard"]["value"]) == ("1.000", "0.500*")
    assert "Worst by RR: hard (3)" in drawing.caption
    assert "*: fewer than 5 queries" in drawing.caption


def test_line_separator_in_a_name_is_made_visible():
    gold = [{"query_id": "q1", "kind": "two\u2028lines", "relevant": ["a"]}]
    drawing = groups(Sheet(evaluate(gold, {"q1": ["a"]}, "RR"), by=("kind",)), ["RR"])
    assert "two⟨U+2028⟩lines" in _svg(drawing.on_page().spec)


def test_groups_with_similar_names_keep_separate_rows():
    fields = [("a", "b · c"), ("a · b", "c")]
    gold = [
        {"query_id": f"q{n}", "one": one, "two": two, "relevant": ["a"]}
        for n, (one, two) in enumerate(fields)
    ]
    run = {"q0": ["a"], "q1": ["x"]}
    scores = evaluate(gold, run, "RR")
    cells = _data(groups(Sheet(scores, by=("one", "two")), ["RR"]).on_page().spec)
    assert len({cell["group"] for cell in cells}) == 2


def test_scatter_respects_measures_where_lower_is_better():
    gold = {"q1": ["a"], "q2": ["a"]}
    lines = [
        [{"query_id": q, "results": [{"id": "a"}], "latency_ms": {"total": ms}} for q in gold]
        for ms in (20.0, 10.0)
    ]
    both = compare(gold, {"slow": lines[0], "fast": lines[1]}, "latency.mean")
    caption = both.plot("scatter", measure="latency.mean").to_dict()
    assert "fast better" in json.dumps(caption)
    assert "slow better" not in json.dumps(caption)


def test_scatter_of_many_queries_has_squares_and_the_points_that_moved_most():
    draw = random.Random(1)
    gold = {f"q{n}": ["a"] for n in range(2500)}
    lists = [["a", "b", "c"], ["b", "a", "c"], ["b", "c", "a"], ["b", "c"]]
    runs = {name: {q: draw.choice(lists) for q in gold} for name in ("one", "other")}
    spec = compare(gold, runs, "RR").plot("scatter").to_dict()
    rows = [row for data in spec["datasets"].values() for row in data]
    assert sum(row["n"] for row in rows if "a_low" in row) == 2500
    assert sum(row["n"] for row in rows if "moved" in row) == 200
    assert len(rows) < 100


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("scatter", "tradeoff")])
def test_scores_draw_every_kind_for_one_run(kind):
    by = "kind" if kind == "groups" else None
    spec = scores_of_runs()[0].plot(kind, by=by).to_dict()
    assert _svg(spec).startswith("<svg")


@cache
def comparison():
    gold, runs = gold_and_runs()
    return compare(gold, runs, ["nDCG@10", "latency.p90"])


@pytest.mark.parametrize("kind", KINDS)
def test_comparisons_draw_every_kind(kind):
    spec = comparison().plot(kind, by="kind" if kind == "groups" else None).to_dict()
    assert _svg(spec).startswith("<svg")


def test_plot_of_one_measure_shows_no_other():
    scores = scores_of_runs()[0]
    for kind in ("values", "distribution", "groups"):
        by = "kind" if kind == "groups" else None
        text = json.dumps(scores.plot(kind, measure="ndcg_cut_10", by=by).to_dict())
        assert "nDCG@10" in text
        assert "RR@10" not in text
    assert "R@k" not in json.dumps(scores.plot("curves", measure="nDCG@10").to_dict())


def test_scatter_shows_the_named_pairs():
    gold = {"q1": ["a"], "q2": ["a"]}
    runs = {"x": {"q1": ["a"]}, "y": {"q2": ["a"]}, "z": {"q1": ["b", "a"]}}
    three = compare(gold, runs, "RR")
    titles = [chart.title for chart in three.plot("scatter").vconcat]
    assert titles == ["RR: y against x", "RR: z against x", "RR: z against y"]
    assert three.plot("scatter", a="z", b="x").title == "RR: x against z"
    assert [c.title for c in three.plot("scatter", a="x").vconcat] == titles[:2]


def test_impossible_charts_are_refused_with_a_hint(tmp_path):
    one = evaluate({"q": ["a"]}, {"q": ["a", "b"]}, "RR")
    two = compare({"q": ["a"]}, {"x": {"q": ["a"]}, "y": {"q": ["b"]}}, "RR")
    path = tmp_path / "scores.json"
    one.write(path)
    saved = type(one).read(path)
    refusals = [
        (lambda: one.plot("value"), "kind of chart", "'value'", "'values'"),
        (lambda: one.plot("scatter"), "plot", "scatter", "karat.compare"),
        (lambda: one.plot("latency"), "plot", "latency", '"latency_ms"'),
        (lambda: one.plot("latency_histogram"), "plot", "latency_histogram", '"latency_ms"'),
        (lambda: one.plot("cost"), "plot", "cost", ""),
        (lambda: two.plot("tradeoff"), "plot", "tradeoff", "generation"),
        (lambda: one.plot("groups"), "plot", "groups", "by="),
        (lambda: one.plot(by="kind"), "by", "values", "plot('groups', by=…)"),
        (lambda: one.plot("latency", measure="RR"), "measure", "latency", ""),
        (lambda: one.plot("curves", measure="RR"), "plot", "curves", "R, P, nDCG"),
        (lambda: saved.plot("curves"), "plot", "", "curves"),
        (lambda: two.plot("scatter", a="z"), "run", "'z'", "'x', 'y'"),
        (lambda: two.plot(a="x"), "plot", "values", ""),
    ]
    for draw, field, value, hint in refusals:
        with refused(path=None, field=field) as error:
            draw()
        assert value in error.value.problem
        assert hint in error.value.hint
    with refused(MeasureError) as error:
        one.plot("values", measure="P@5")
    assert "P@5" in error.value.problem
    assert "RR" in error.value.hint


def test_missing_altair_is_reported_with_the_install_command(monkeypatch):
    scores = evaluate({"q": ["a"]}, {"q": ["a"]}, "RR")
    monkeypatch.setattr("karat.report.charts.plot.find_spec", lambda _: None)
    with refused(field="plot") as error:
        scores.plot()
    assert error.value.hint == "pip install 'karat[report]'"


def _svg(spec):
    return vl_convert.vegalite_to_svg(
        spec | {"width": 400} if "vconcat" not in spec else spec, vl_version="6.4"
    )


def _data(spec):
    return [row for data in spec["datasets"].values() for row in data]
