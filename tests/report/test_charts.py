"""Charts show the numbers of the results, stay small, and show every name as text."""

from __future__ import annotations

import json
import random
import re
from functools import cache
from importlib.resources import files

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
from karat.report.charts.speed import dollars, latency, latency_histogram, stage_bars
from karat.report.charts.theme import LIGHT, Palette
from karat.report.charts.tradeoff import pareto_front, tradeoffs
from karat.report.page.chart_data import load_chart_data
from karat.report.sheet import Sheet
from support.charts import charts_of, charts_of_page, gold_and_runs, scores_of_runs
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
    (drawing,) = tradeoffs(frame, parse("P@5"), {"a": 0.065, "b": 0.065}, Palette(("a", "b")))
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


THEME = re.sub(r"\s+", " ", files("karat.report.page").joinpath("static/theme.css").read_text())


def colours_of(scheme):
    """Return the variables of the style sheet, in light or dark."""
    light, dark = THEME.split("@media (prefers-color-scheme: dark)")
    text = light if scheme == "light" else dark.split("@media print")[0]
    return dict(re.findall(r"--([\w-]+): (#\w+);", text))


def test_colours_of_notebooks_are_the_light_ones_of_the_page():
    theme = colours_of("light")
    assert {name: theme[name] for name in LIGHT} == LIGHT


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_of_a_run_has_contrast_to_the_background(scheme):
    def light(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    theme = colours_of(scheme)
    ground = light(theme["surface"])
    runs = {name: colour for name, colour in theme.items() if name.startswith("run-")}
    assert len(runs) == 9
    for name, colour in runs.items():
        lighter, darker = sorted([light(colour), ground], reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 3, name


def test_run_keeps_its_colour_and_of_many_only_the_best_and_the_baseline_have_one():
    few = Palette(("a", "b", "c"), ("c",), on_page=True)
    assert [few.run_colour(run) for run in few.runs] == [f"var(--run-{at})" for at in range(3)]
    names = tuple(f"r{at}" for at in range(9))
    many = Palette(names, ("r5", "r2"), on_page=True)
    expected = dict.fromkeys(names, "var(--run-other)")
    expected |= {"r5": "var(--run-0)", "r2": "var(--run-1)"}
    assert {run: many.run_colour(run) for run in names} == expected
    assert Palette(names).run_colour("r8") == LIGHT["run-0"]


def test_charts_of_a_page_have_the_colours_of_the_style_sheet():
    for chart in charts_of_page():
        text = json.dumps(chart.spec)
        assert not re.search(r"#[0-9a-f]{6}", text)
    texts = [json.dumps(chart.spec) for chart in charts_of_page()]
    assert all("var(--run-1)" in text for text in texts)
    assert "var(" not in json.dumps(comparison().plot("curves").to_dict())


def test_page_has_a_chart_for_all_its_data():
    drawn = {chart.id: chart for chart in charts_of_page()}
    assert {re.sub(r"-\d+$", "", name) for name in drawn} == {
        "distribution",
        "curve",
        "precision-recall",
        "stages",
        "latency",
        "latency-histogram",
        "cost",
        "tradeoff-latency-ms",
        "tradeoff-context-tokens",
        "tradeoff-context-characters",
    }
    assert {chart.section for chart in drawn.values()} == {"cutoffs", "speed"}
    places = {(chart.group, chart.folded) for chart in drawn.values()}
    assert places == {
        ("cutoffs", None),
        ("distribution", "Distribution over queries"),
        (None, None),
        ("latency", "Stages and histograms"),
    }
    options = [(chart.group, chart.option) for chart in drawn.values() if chart.group]
    assert len(set(options)) == len(options)
    assert all(option for _, option in options)


def test_curve_of_the_main_measure_comes_first():
    options = [chart.option for chart in charts_of_page() if chart.group == "cutoffs"]
    assert options == ["nDCG@k", "R@k", "P@k", "precision by recall"]


def test_specs_are_small_and_contain_no_expressions_links_or_styles():
    for chart in charts_of_page():
        text = json.dumps(chart.spec)
        assert len(text) < 60_000
        for word in ('"expr"', '"signal"', '"href"', '"url"', '"calculate"', "labelExpr", "config"):
            assert word not in text
        assert chart.spec["width"] == "container"
        assert chart.readout.endswith(".")
        assert chart.caption.endswith(".")
        assert chart.caption.count(". ") == 0


def test_hostile_names_of_runs_and_groups_are_text():
    for chart in charts_of_page():
        svg = _svg(chart.spec)
        assert "<img" not in svg
        assert "<script" not in svg
    (first, *_) = charts_of_page()
    assert "&lt;/script>&lt;img" in _svg(first.spec).replace("&gt;", ">")


def test_readouts_and_marks_show_the_values_of_the_summary():
    scores = scores_of_runs()
    (values,) = [chart for chart in _notebook_values(scores) if "nDCG@10" in chart["description"]]
    drawn = {chart.id: chart for chart in charts_of_page()}
    for score in scores:
        assert f"{score.name} {score['nDCG@10']:.3f}" in values["description"]
        assert f"P90 {score['latency.p90']:.2f}" in drawn["latency-1"].readout
        assert f"{score['nDCG@10']:.3f} at k = 10" in drawn["curve-1"].readout
    curve = {(row["run"], row["k"]): row["value"] for row in _data(drawn["curve-1"].spec)}
    for score in scores:
        assert curve[score.name, 10] == score["nDCG@10"]


def _notebook_values(scores):
    spec = comparison().plot("values").to_dict()
    for score in scores:
        rows = [row for row in _data(spec) if row["run"] == score.name]
        assert score["nDCG@10"] in [row["value"] for row in rows if row["measure"] == "nDCG@10"]
    return spec["vconcat"]


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
    st.dictionaries(
        st.sampled_from(["a", "b"]),
        st.dictionaries(
            st.sampled_from(["total", "find", "rank"]),
            st.lists(st.floats(0, 1e6), min_size=1, max_size=30),
            min_size=1,
        ),
        min_size=1,
    )
)
def test_stacked_stages_are_at_the_quantiles_one_after_the_other(times):
    rows = [
        (run, stage, ms)
        for run, stages in times.items()
        for stage, every in sorted(stages.items(), key=lambda pair: pair[0] != "total")
        for ms in every
    ]
    bars, totals = stage_bars(pl.DataFrame(rows, ["run", "stage", "ms"], orient="row"))
    for run, stages in times.items():
        for name, share in (("p50", 0.5), ("p95", 0.95)):
            of_bar = [bar for bar in bars if (bar["run"], bar["quantile"]) == (run, name)]
            drawn = [bar["stage"] for bar in of_bar]
            assert drawn == (
                [stage for stage in dict(rows_of(stages)) if stage != "total"] or ["total"]
            )
            assert [bar["start"] for bar in of_bar] == [0.0, *(bar["end"] for bar in of_bar[:-1])]
            for bar in of_bar:
                assert bar["ms"] == pytest.approx(np.quantile(stages[bar["stage"]], share))
                assert bar["end"] - bar["start"] == pytest.approx(bar["ms"], abs=1e-6)
            marks = [t["ms"] for t in totals if (t["run"], t["quantile"]) == (run, name)]
            expected = [np.quantile(stages["total"], share)] if "total" in stages else []
            assert marks == pytest.approx(expected)


def rows_of(stages):
    return sorted(stages.items(), key=lambda pair: pair[0] != "total")


def test_failed_queries_are_in_no_chart_of_latency():
    gold = {f"q{n}": ["a"] for n in range(4)}
    lines = [
        {"query_id": q, "results": ["a"], "latency_ms": {"total": 50.0, "find": 20.0}} for q in gold
    ]
    error = {"type": "Timeout", "message": "slow"}
    lines[2] = {"query_id": "q2", "results": [], "error": error, "latency_ms": {"total": 0.003}}
    scores = evaluate(gold, lines, "RR", fail_on_error=1.0)
    frame = load_chart_data([scores], [LoadedRun.of(scores)]).latencies
    assert frame.filter(pl.col("stage") == "total")["ms"].to_list() == [50.0] * 3


def test_captions_are_takeaways():
    gold = {f"q{n}": ["a"] for n in range(6)}
    call = {"stage": "embed", "model": "m", "prompt_tokens": 10}
    runs = {
        name: [
            {
                "query_id": query,
                "results": ["a", "x"] if number >= misses else ["x"],
                "latency_ms": {"total": 30.0 * scale, "embed": 10.0 * scale, "find": 20.0 * scale},
                "calls": [call | {"price_per_1k": 0.0002 * scale}],
            }
            for number, query in enumerate(gold)
        ]
        for name, misses, scale in (("bm25", 2, 1.0), ("idst", 0, 4.0))
    }
    both = compare(gold, runs, "nDCG@10")
    captions = {chart.id: chart.caption for chart in charts_of(both.scores)}
    assert captions == {
        "curve-1": "idst is highest at every k; 1.000 against 0.667 at k = 10.",
        "curve-2": "idst is highest at every k; 1.000 against 0.667 at k = 10.",
        "curve-3": "idst is highest at every k; 0.100 against 0.067 at k = 10.",
        "precision-recall": "idst has the highest precision at 11 of 11 recall levels.",
        "distribution-1": "bm25 scores 0 on 2 of 6 queries, idst on none.",
        "stages": "idst takes 120 ms at p50, bm25 30.0 ms; the slowest stage of idst is find.",
        "cost": "bm25 costs $2.00 per 1M queries, idst $8.00.",
        "latency-1": "bm25 answers 95% of queries within 30.0 ms, idst within 120 ms.",
        "tradeoff-latency-ms": "A trade-off: no run is both better and faster than another.",
        "latency-2": "bm25 finishes embed for 95% of queries within 10.0 ms, idst within 40.0 ms.",
        "latency-3": "bm25 finishes find for 95% of queries within 20.0 ms, idst within 80.0 ms.",
        "latency-histogram-1": "The slowest query took 120 ms, in idst.",
        "latency-histogram-2": "The slowest query took 40.0 ms, in idst.",
        "latency-histogram-3": "The slowest query took 80.0 ms, in idst.",
    }


def test_recall_of_spans_is_drawn_against_the_characters_delivered():
    gold = [{"query_id": "q", "spans": [{"doc_id": "d", "start": 0, "end": 100}]}]
    runs = {
        name: [
            {
                "query_id": "q",
                "results": [
                    {"id": f"c{at}", "doc_id": "d", "start": at, "end": at + size}
                    for at in range(0, 100, size)
                ],
            }
        ]
        for name, size in (("small", 10), ("large", 50))
    }
    charts = {chart.id: chart for chart in charts_of(compare(gold, runs, "span.recall@5").scores)}
    chart = charts["characters-1"]
    assert chart.section == "results"
    points = {
        (row["run"], row["k"]): (row["characters"], row["value"]) for row in _data(chart.spec)
    }
    assert points["small", 5] == (50.0, 0.5)
    assert points["large", 2] == (100.0, 1.0)
    assert chart.caption == (
        "To reach span.recall 1.000, large delivers 100 characters per query, small 100."
    )
    assert "tradeoff-context-characters" not in charts


@pytest.mark.parametrize(
    ("usd", "text"),
    [(0, "$0.00"), (0.264, "$0.26"), (1.67, "$1.67"), (0.00123, "$0.0012"), (2001.4, "$2,001")],
)
def test_amounts_of_money_are_readable(usd, text):
    assert dollars(usd) == text


@examples(20, 250)
@given(
    st.lists(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), min_size=1, max_size=6),
    st.sampled_from([1.0, 1e-6, 1e6]),
)
def test_latency_histogram_counts_every_query_in_its_bin(times, scale):
    times = [[ms * scale for ms in one] for one in times]
    rows = [(f"r{at}", "total", ms) for at, one in enumerate(times) for ms in one]
    frame = pl.DataFrame(rows, ["run", "stage", "ms"], orient="row")
    (drawing,) = latency_histogram(frame, Palette(tuple(f"r{at}" for at in range(len(times)))))
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
        (drawing,) = draw(frame, Palette(tuple(runs)), loads)
        assert drawing.readout.count(" at a time") == 1
        assert load in drawing.readout


def test_groups_are_coloured_by_difference_and_small_groups_are_marked():
    gold = [
        {"query_id": f"q{n}", "kind": "easy" if n < 6 else "hard", "relevant": ["a"]}
        for n in range(9)
    ]
    run = {f"q{n}": ["a", "x"] if n < 6 else ["x", "a"] for n in range(9)}
    drawing = groups(Sheet(evaluate(gold, run, "RR"), by=("kind",)), ["RR"], Palette(("run",)))
    cells = {row["names"]: row for row in _data(drawing.chart.to_dict())}
    assert cells["easy"]["side"] == "better"
    assert cells["hard"]["side"] == "worse"
    assert (cells["easy"]["value"], cells["hard"]["value"]) == ("1.000", "0.500*")
    assert "Worst by RR: hard (3)" in drawing.readout
    assert "*: fewer than 5 queries" in drawing.readout


def test_line_separator_in_a_name_is_made_visible():
    gold = [{"query_id": "q1", "kind": "two\u2028lines", "relevant": ["a"]}]
    drawing = groups(
        Sheet(evaluate(gold, {"q1": ["a"]}, "RR"), by=("kind",)), ["RR"], Palette(("run",))
    )
    assert "two⟨U+2028⟩lines" in _svg(drawing.chart.to_dict())


def test_groups_with_similar_names_keep_separate_rows():
    fields = [("a", "b · c"), ("a · b", "c")]
    gold = [
        {"query_id": f"q{n}", "one": one, "two": two, "relevant": ["a"]}
        for n, (one, two) in enumerate(fields)
    ]
    run = {"q0": ["a"], "q1": ["x"]}
    scores = evaluate(gold, run, "RR")
    cells = _data(
        groups(Sheet(scores, by=("one", "two")), ["RR"], Palette(("run",))).chart.to_dict()
    )
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
