"""The data of charts agrees with the measures, per query and over all queries."""

from __future__ import annotations

import random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat import Evaluator, Gold, Run, compare, evaluate
from karat.evaluation.loaded_run import LoadedRun
from karat.report.page.chart_data import depths, load_chart_data
from oracles import evidence as evidence_oracle
from oracles import rank as oracle
from oracles import spans as span_oracle
from oracles import usage as usage_oracle
from support.effort import examples

ITEMS = [f"d{number}" for number in range(14)]
QUERIES = ["q1", "q2", "q3"]
some = examples(30, 400)

grades = st.dictionaries(st.sampled_from(ITEMS), st.integers(0, 3), min_size=1, max_size=5)
lists = st.lists(st.sampled_from(ITEMS), unique=True, max_size=14)


def pictured(scores):
    return load_chart_data(scores, [LoadedRun.of(score) for score in scores])


def timed_run(n):
    """Return gold with n queries, and a run with timings and calls for three more."""
    draw = random.Random(n)
    gold = Gold.of(
        {f"q{number:02}": dict.fromkeys(draw.sample(ITEMS, 2), 1) for number in range(n)}
    )
    run = []
    for number in range(n + 3):
        items = draw.sample(ITEMS, 4)
        calls = [{"stage": "embed", "model": "e", "prompt_tokens": 9, "price_per_1k": 0.1}]
        if number % 3:
            calls.append(
                {
                    "stage": "generation",
                    "model": "g",
                    "prompt_tokens": draw.randrange(100, 900),
                    "completion_tokens": 5,
                    "price_in": 0.25,
                    "price_out": 1.0,
                }
            )
        if number % 4 == 0:
            calls.append({"stage": "embed", "model": "e"})
        times = {"total": draw.uniform(5, 90), "find": draw.uniform(1, 9)}
        if number % 5:
            times["rank"] = draw.uniform(1, 2)
        run.append(
            {
                "query_id": f"q{number:02}",
                "results": [{"id": item, "text": "x" * draw.randrange(9)} for item in items],
                "latency_ms": times,
                "calls": calls,
            }
        )
    return gold, run


@some
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")  # about ids not in the run
@given(
    st.fixed_dictionaries(dict.fromkeys(QUERIES, grades)),
    st.dictionaries(st.sampled_from(QUERIES), lists, min_size=1),
    st.sampled_from([{}, {"missing": "skip"}, {"no_gold": "skip"}, {"unjudged": "skip"}]),
    st.sampled_from([1, 2]),
)
def test_curves_of_judgments_equal_those_of_the_oracle(gold, run, conventions, rel):
    asked = [f"R(rel={rel})@7", "nDCG(gain=exp2)@10", f"IPrec(rel={rel})@0.5"]
    scores = Evaluator(gold, asked, conventions=conventions).all({"a": run})
    data = pictured(scores)

    def over(measure, k, **params):
        values = [
            oracle.value(measure, run.get(q), gold[q], k, params, 3, conventions) for q in QUERIES
        ]
        return oracle.over_queries(measure, values)

    named = {f"R(rel={rel})" if rel > 1 else "R": ("R", {"rel": rel}), "P": ("P", {})}
    named["nDCG(gain=exp2)"] = ("nDCG", {"gain": "exp2"})
    expected = {
        (shown, k): value
        for shown, (name, params) in named.items()
        for k in ([1, 2, 3, 5, 7, 10] if name == "R" else [1, 2, 3, 5, 10])
        if (value := over(name, k, **params)) is not None
    }
    drawn = (
        {}
        if data.curves is None
        else dict(
            zip(data.curves.select("measure", "k").iter_rows(), data.curves["value"], strict=True)
        )
    )
    assert drawn.keys() == expected.keys()
    assert drawn == pytest.approx(expected, abs=1e-12)
    points = [over("IPrec", number / 10, rel=rel) for number in range(11)]
    if points[0] is not None:
        assert data.precision_recall["precision"].to_list() == pytest.approx(points, abs=1e-12)
        assert data.precision_recall["recall"].to_list() == [n / 10 for n in range(11)]


places = st.tuples(st.sampled_from(["x", "y"]), st.integers(0, 30), st.integers(1, 9)).map(
    lambda place: (place[0], place[1], place[1] + place[2])
)


@pytest.mark.filterwarnings("ignore:.* document ids?")
@some
@given(
    st.lists(st.lists(places, min_size=1, max_size=3), min_size=2, max_size=2),
    st.lists(st.lists(places, max_size=12), min_size=2, max_size=2),
)
def test_curves_of_spans_equal_those_of_the_oracle(wanted, listed):
    columns = ["doc_id", "start", "end"]
    gold = [
        {"query_id": f"q{n}", "spans": [dict(zip(columns, s, strict=True)) for s in spans]}
        for n, spans in enumerate(wanted)
    ]
    run = [
        {"query_id": f"q{n}", "results": [dict(zip(columns, s, strict=True)) for s in spans]}
        for n, spans in enumerate(listed)
    ]
    data = pictured([evaluate(gold, run, "span.recall@5")])
    assert set(data.curves["measure"]) == {"span.recall", "span.precision", "span.iou"}
    assert data.precision_recall is None
    for _, measure, k, value in data.curves.iter_rows():
        values = [
            span_oracle.value(measure, spans, gold_spans, k)
            for spans, gold_spans in zip(listed, wanted, strict=True)
        ]
        assert value == pytest.approx(span_oracle.over_queries(values), abs=1e-12)


def test_curves_of_evidence_equal_those_of_the_oracle_and_texts_are_matched_once(monkeypatch):
    words = ["refunds take ten days", "ships on monday", "call the desk", "no fee applies"]
    draw = random.Random(7)
    wanted = {f"q{n}": draw.sample(words, 2) for n in range(6)}
    listed = {q: [" and ".join(draw.sample(words, 2)) for _ in range(4)] for q in wanted}
    scores = evaluate(
        [{"query_id": q, "evidence": texts} for q, texts in wanted.items()],
        [{"query_id": q, "results": [{"text": t} for t in texts]} for q, texts in listed.items()],
        "evidence.P@5",
    )
    opened = LoadedRun.of(scores)

    def refuse(*_):
        raise AssertionError("texts were matched a second time")

    monkeypatch.setattr("karat.measures.families.match_evidence", refuse)
    curves = load_chart_data([scores], [opened]).curves
    assert set(curves["measure"]) == {"evidence.recall", "evidence.P", "evidence.nDCG"}
    for _, measure, k, value in curves.iter_rows():
        if measure == "evidence.recall":
            expected = evidence_oracle.micro_recall([(listed[q], wanted[q]) for q in wanted], k)
        else:
            values = [evidence_oracle.value(measure, listed[q], wanted[q], k) for q in wanted]
            expected = sum(values) / len(values)
        assert value == pytest.approx(expected, abs=1e-12)


def test_every_curve_passes_through_the_requested_value():
    draw = random.Random(2)
    gold = {f"q{n}": dict.fromkeys(draw.sample(ITEMS, 3), 1) for n in range(20)}
    run = {q: draw.sample(ITEMS, 14) for q in gold}
    scores = evaluate(gold, run, ["nDCG@7", "R@4", "P(denominator=retrieved)@6"])
    drawn = dict(
        zip(
            (
                f"{name}@{k}"
                for name, k in pictured([scores]).curves.select("measure", "k").iter_rows()
            ),
            pictured([scores]).curves["value"],
            strict=True,
        )
    )
    assert {name: scores[name] for name in scores} == {name: drawn[name] for name in scores}


def test_depths_reach_the_longest_list_but_at_most_1000():
    assert depths(0) == [1, 2, 3, 5, 10]
    assert depths(100, [30, 200]) == [1, 2, 3, 5, 10, 20, 30, 50, 100]
    assert depths(10**6)[-1] == 1000


def test_order_of_lines_changes_nothing():
    gold, run = timed_run(30)
    straight, mixed = (
        pictured([evaluate(gold, Run.of(lines, name="a"), ["nDCG@10", "latency.p50(stage=find)"])])
        for lines in (run, random.Random(1).sample(run, len(run)))
    )
    for name in ("curves", "precision_recall", "latencies", "costs", "tradeoffs"):
        assert getattr(straight, name).equals(getattr(mixed, name)), name


def test_latencies_are_the_values_that_latency_measures_average():
    gold, run = timed_run(30)
    named = {"total": "latency.mean"}
    named |= {stage: f"latency.mean(stage={stage})" for stage in ("find", "rank")}
    scores = evaluate(gold, run, list(named.values()))
    frame = pictured([scores]).latencies
    assert frame["stage"].unique(maintain_order=True).to_list() == ["total", "find", "rank"]
    for stage, measure in named.items():
        times = frame.filter(pl.col("stage") == stage)["ms"].to_list()
        assert times == scores.per_query[measure].drop_nulls().to_list()
        assert times == [
            value
            for line in run[:30]
            if (value := usage_oracle.latency(list(line["latency_ms"].items()), stage)) is not None
        ]


def test_stages_are_in_the_order_of_the_queries():
    stages = {"total": 9.0, "search": 1.0, "fetch": 2.0, "answer": 6.0}
    run = [{"query_id": f"q{n}", "results": ["a"], "latency_ms": stages} for n in range(3)]
    run[1] = run[1] | {"latency_ms": {"total": 7.0, "search": 1.0, "answer": 6.0}}
    frame = pictured([evaluate({f"q{n}": ["a"] for n in range(3)}, run, "RR")]).latencies
    assert frame["stage"].unique(maintain_order=True).to_list() == list(stages)


def test_contexts_are_recall_with_the_characters_of_the_first_results():
    gold = [{"query_id": f"q{n}", "evidence": ["four words of text"]} for n in range(2)]
    run = [
        {"query_id": "q0", "results": [{"text": "x" * 30}, {"text": "the four words of text"}]},
        {"query_id": "q1", "results": [{"text": "four words of text"}]},
    ]
    scores = evaluate(gold, run, "evidence.recall@5")
    frame = pictured([scores]).contexts
    rows = {row["k"]: row for row in frame.iter_rows(named=True)}
    assert set(frame["measure"]) == {"evidence.recall"}
    assert (rows[1]["value"], rows[1]["characters"]) == (0.5, (30 + 18) / 2)
    assert (rows[5]["value"], rows[5]["characters"]) == (1.0, (30 + 22 + 18) / 2)
    assert rows[5]["value"] == scores["evidence.recall@5"]


def test_judgments_have_no_contexts():
    gold, run = timed_run(5)
    assert pictured([evaluate(gold, run, "nDCG@10")]).contexts is None


def test_costs_are_summed_by_stage_and_model_apart_from_calls_without_a_price():
    gold, run = timed_run(30)
    frame = pictured([evaluate(gold, run, "cost.sum")]).costs
    calls = [call for line in run[:30] for call in line["calls"]]
    expected = {}
    for call in calls:
        price = usage_oracle.price(call)
        key = call.get("stage"), call.get("model"), price is None
        prices, tokens = expected.setdefault(key, ([], []))
        prices.append(price)
        tokens.append(call.get("prompt_tokens"))
    rows = {
        (row["stage"], row["model"], row["usd"] is None): row for row in frame.iter_rows(named=True)
    }
    assert rows.keys() == expected.keys()
    assert {key[2] for key in rows} == {True, False}
    assert set(frame["queries"]) == {30}
    for key, (prices, tokens) in expected.items():
        assert rows[key]["calls"] == len(prices)
        known = [count for count in tokens if count is not None]
        assert rows[key]["prompt_tokens"] == (sum(known) if known else None)
        if not key[2]:
            assert rows[key]["usd"] == pytest.approx(sum(prices), abs=1e-15)


def test_tradeoffs_are_medians_and_means_of_known_values():
    gold, run = timed_run(30)
    scores = evaluate(gold, run, ["latency.p50", "P@2"])
    (row,) = pictured([scores]).tradeoffs.to_dicts()
    assert row["latency_ms"] == scores["latency.p50"]
    prompts = [
        sum(tokens)
        for line in run[:30]
        if (tokens := [c["prompt_tokens"] for c in line["calls"] if c.get("stage") == "generation"])
    ]
    assert row["context_tokens"] == pytest.approx(sum(prompts) / len(prompts))
    lengths = [sum(len(r["text"]) for r in line["results"][:2]) for line in run[:30]]
    assert row["context_characters"] == pytest.approx(sum(lengths) / len(lengths))


def test_only_stage_counts_as_the_total():
    run = [{"query_id": "q", "results": ["a"], "latency_ms": {"search": 7.0}}]
    scores = evaluate({"q": ["a"]}, run, ["P@1"])
    assert pictured([scores]).tradeoffs["latency_ms"].to_list() == [7.0]


def test_context_with_an_item_of_unknown_length_has_no_length():
    results = [{"id": "a", "text": "four"}, {"id": "b"}]
    scores = evaluate({"q": ["a"]}, [{"query_id": "q", "results": results}], ["P@1", "P@2"])
    assert pictured([scores]).tradeoffs["context_characters"].to_list() == [4.0]
    scores = evaluate({"q": ["a"]}, [{"query_id": "q", "results": results}], ["P@2"])
    assert pictured([scores]).tradeoffs is None


def test_lengths_of_items_come_from_positions_and_the_table_of_chunks():
    gold = {"q": ["c3"]}
    chunks = [
        {"item_id": f"c{n}", "doc_id": "d", "start": 10 * n, "end": 10 * n + n} for n in (1, 2, 3)
    ]
    by_id = evaluate(gold, {"q": ["c3", "c2"]}, "P@1", chunks=pl.DataFrame(chunks))
    results = [{"id": "c3", "doc_id": "d", "start": 30, "end": 33}]
    by_place = evaluate(gold, [{"query_id": "q", "results": results}], "P@1")
    for scores in (by_id, by_place):
        assert pictured([scores]).tradeoffs["context_characters"].to_list() == [3.0]


def test_missing_data_of_a_run_is_not_drawn():
    data = pictured([evaluate({"q": ["a"]}, {"q": ["a", "b"]}, "RR")])
    assert (data.latencies, data.costs, data.tradeoffs) == (None, None, None)
    assert data.curves is not None


def test_saved_scores_have_no_chart_data(tmp_path):
    path = tmp_path / "scores.json"
    evaluate({"q": ["a"]}, {"q": ["a", "b"]}, "RR").write(path)
    both = compare({"q": ["a"]}, {"new": {"q": ["b", "a"]}, "old": path}, "RR")
    data = pictured(both.scores)
    assert data.curves["run"].unique().to_list() == ["new"]
