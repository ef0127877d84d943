"""Latency and cost: measures of what a run records about itself."""

import json
import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data import Gold, Run
from karat.data.formats.native_run import CALLS, TIMINGS
from karat.errors import ConventionError, MeasureError
from karat.measures import REGISTRY, Plan, ScoreTable, parse, score
from karat.report import score_files as scores_files
from karat.report.sheet import Sheet
from oracles import usage as usage_oracle
from support.effort import examples
from support.errors import refused

QUERIES = ["q1", "q2", "q3", "10", "ж"]
STAGES = ["total", "rerank"]
MODELS = ["m", "org/m:7b"]
LATENCY = {
    f"latency.{how}{params}": (how, stage)
    for how in ("mean", "p50", "p90", "p99", "max")
    for params, stage in (("", "total"), ("(stage=rerank)", "rerank"))
}
COST = {
    f"cost.{how}{params}": (how, stage, model)
    for how in ("mean", "sum")
    for params, stage, model in (
        ("", None, None),
        ("(stage=rerank)", "rerank", None),
        ("(model=m)", None, "m"),
        ("(stage=rerank, model=org/m:7b)", "rerank", "org/m:7b"),
    )
}
PLAN = Plan.of([*LATENCY, *COST])

# Numbers whose sum depends on the order in which they are added.
times = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1e-9, 3.7, 1234.5, 1e9])
tokens = st.sampled_from([None, 0, 1, 7, 812, 10**9])
prices = st.sampled_from([None, 0.0, 0.1, 0.0000003, 2.5])
timings = st.lists(st.tuples(st.sampled_from(STAGES), times), max_size=5)


@st.composite
def one_call(draw):
    call = {
        "stage": draw(st.sampled_from([None, *STAGES])),
        "model": draw(st.sampled_from([None, *MODELS])),
        "prompt_tokens": draw(tokens),
        "completion_tokens": draw(tokens),
        draw(st.sampled_from(["price_per_call", "price_per_1k_calls"])): draw(prices),
    }
    one = {"price_per_1k": draw(prices)}
    return call | draw(
        st.sampled_from([one, {"price_in": draw(prices), "price_out": draw(prices)}])
    )


golds = st.sets(st.sampled_from(QUERIES), min_size=1)
runs = st.dictionaries(
    st.sampled_from(QUERIES), st.tuples(timings, st.lists(one_call(), max_size=4)), min_size=1
)


def made(run, chance=None, failed=()):
    """Build a run from the timings and calls of each query, its rows in any order."""
    timed = [(query, *timing) for query, (spent, _) in run.items() for timing in spent]
    called = [{"query_id": query} | call for query, (_, calls) in run.items() for call in calls]
    if chance is not None:
        chance.shuffle(timed)
        chance.shuffle(called)
    return Run(
        karat.data.run.NO_RESULTS,
        empty=list(run),
        timings=pl.DataFrame(timed, schema=TIMINGS, orient="row"),
        calls=pl.DataFrame(called, schema=CALLS),
        errors=errors_of(failed),
    )


def errors_of(failed):
    rows = [{"query_id": query, "type": "Timeout"} for query in failed]
    return pl.DataFrame(rows) if rows else None


def gold_of(queries):
    return Gold(query_data=pl.DataFrame({"query_id": sorted(queries)}))


def expected(gold, run, name):
    spent = {query: run.get(query, ([], None)) for query in sorted(gold, key=str.encode)}
    if name in LATENCY:
        how, stage = LATENCY[name]
        return how, [usage_oracle.latency(timed, stage) for timed, _ in spent.values()]
    how, *words = COST[name]
    return how, [usage_oracle.cost(calls, *words) for _, calls in spent.values()]


def test_every_declared_latency_and_cost_measure_has_an_oracle():
    declared = {name: d for name, d in REGISTRY.items() if d.family in ("latency", "cost")}
    assert set(declared) == {name.partition("(")[0] for name in [*LATENCY, *COST]}
    assert all(declared[name].combine == name.partition(".")[2] for name in declared)
    assert not any(d.higher_is_better or d.no_gold for d in declared.values())


@given(
    gold=golds,
    run=runs,
    failed=st.sets(st.sampled_from(QUERIES), max_size=2),
    chance=st.randoms(use_true_random=False),
)
@examples(50, 600)
def test_latency_and_cost_match_the_oracle_to_the_bit(gold, run, failed, chance):
    failed &= run.keys()
    table = score(gold_of(gold), made(run, chance, sorted(failed)), PLAN)
    answered = {query: spent for query, spent in run.items() if query not in failed}
    for name in [*LATENCY, *COST]:
        how, values = expected(gold, answered, name)
        measure = parse(name)
        assert table.frame[measure.name].to_list() == values, name
        value, expected_value = table.value(measure), usage_oracle.over_queries(how, values)
        if expected_value is None or not how.startswith("p"):
            assert value == expected_value, name
        else:
            assert math.isclose(value, expected_value, rel_tol=1e-12), name


@given(gold=golds, run=runs)
@examples(30, 400)
def test_counts_report_missing_timings_and_prices(gold, run):
    timed = score(gold_of(gold), made(run), Plan.of("latency.max(stage=rerank)")).counts
    priced = score(
        gold_of(gold), made(run), Plan.of(["cost.sum(stage=rerank)", "cost.mean(model=m)"])
    )
    asked = gold & run.keys()
    assert timed["in_common"] == len(asked)
    assert timed["not_run"] == len(gold - run.keys())
    assert timed["missing"] == 0  # nothing is scored as if nothing was retrieved
    assert timed["unknown"] == len(run.keys() - gold)
    assert timed["no_timings"] == sum("rerank" not in dict(run[query][0]) for query in asked)
    calls = [call for query in asked for call in run[query][1]]
    counted = [call for call in calls if call["stage"] == "rerank" or call["model"] == "m"]
    assert priced.counts["unpriced"] == sum(usage_oracle.price(call) is None for call in counted)


@given(gold=golds, run=runs, cut=st.lists(st.integers(0, 2), min_size=5, max_size=5))
@examples(15, 250)
def test_parts_scored_separately_and_joined_are_the_whole_to_the_bit(gold, run, cut):
    part_of = dict(zip(QUERIES, cut, strict=True))
    whole = score(gold_of(gold), made(run), PLAN)
    parts = []
    for number in sorted({part_of[query] for query in gold}):
        own = {query for query in gold if part_of[query] == number}
        own_run = {query: usage for query, usage in run.items() if part_of[query] == number}
        parts.append(score(gold_of(own), made(own_run), PLAN))
    joined = ScoreTable.concat(parts)
    assert joined.frame.equals(whole.frame)
    assert [joined.value(m) for m in PLAN.measures] == [whole.value(m) for m in PLAN.measures]
    # Queries that gold lacks are counted in the part they belong to.
    assert {**joined.counts, "unknown": 0} == {**whole.counts, "unknown": 0}


def line(query, latency=None, calls=None, **more):
    record = {"query_id": query, "results": ["a"], **more}
    return record | {"latency_ms": latency or {}} | ({} if calls is None else {"calls": calls})


GOLD = [
    {"query_id": "q1", "relevant": ["a"], "kind": "x"},
    {"query_id": "q2", "evidence": ["text"], "kind": "y"},
    {"query_id": "q3", "kind": "y"},
]
RUN = [
    line("q1", {"total": 120.0, "rerank": 20.0}, [{"stage": "rerank", "price_per_call": 0.002}]),
    line("q2", {"total": 80.0}, [{"model": "m", "prompt_tokens": 500, "price_in": 0.0001}]),
]


@pytest.mark.parametrize(
    ("call", "usd"),
    [
        ({"prompt_tokens": 600, "completion_tokens": 400, "price_per_1k": 0.002}, 0.002),
        ({"prompt_tokens": 2000, "price_per_1k": 0.001}, 0.002),  # an embedder has no completion
        ({"completion_tokens": 2000, "price_per_1k": 0.001}, None),
        ({"price_per_1k": 0.001}, None),
        (
            {
                "prompt_tokens": 1000,
                "completion_tokens": 2000,
                "price_in": 0.001,
                "price_out": 0.002,
            },
            0.005,
        ),
        ({"prompt_tokens": 1000, "price_in": 0.001}, 0.001),
        ({"prompt_tokens": 1000, "completion_tokens": 1, "price_in": 0.001}, None),
        ({"prompt_tokens": 1000, "price_in": 0.001, "price_out": 0.002}, None),
        ({"price_per_call": 0.003}, 0.003),
        ({"prompt_tokens": 9, "price_per_call": 0.003}, 0.003),
        ({"prompt_tokens": 1000, "price_per_1k": 0.001, "price_per_call": 0.003}, 0.004),
        ({"price_in": 0.001, "price_per_call": 0.003}, None),
        ({"price_per_1k_calls": 2.0}, 0.002),
        ({"prompt_tokens": 1000, "price_in": 0.001, "price_per_1k_calls": 2.0}, 0.003),
        ({"price_in": 0.001, "price_per_1k_calls": 2.0}, None),
        ({"prompt_tokens": 9, "completion_tokens": 9}, None),
        ({"prompt_tokens": 9, "completion_tokens": 9, "price_per_1k": 0.0}, 0.0),
    ],
)
def test_cost_of_a_call_follows_from_its_prices_or_is_unknown(call, usd):
    scores = karat.evaluate({"q1": ["a"]}, [line("q1", calls=[call])], "cost.sum")
    assert scores["cost.sum"] == usd
    assert scores.table.counts["unpriced"] == (usd is None)


def test_cost_of_a_query_is_the_sum_of_its_calls():
    scores = karat.evaluate(GOLD, [*RUN, line("q3")], ["cost.mean", "cost.sum"])
    assert scores.per_query["cost.mean"].to_list() == [0.002, 0.00005, 0.0]
    assert scores["cost.mean"] == 0.00205 / 3
    assert scores["cost.sum"] == 0.00205


def test_total_latency_is_never_a_sum_of_stages():
    run = [line("q1", {"total": 5.0}), line("q2", {"retrieval": 3.0, "rerank": 1.0})]
    scores = karat.evaluate(GOLD, run, "latency.mean")
    assert scores.per_query["latency.mean"].to_list() == [5.0, None, None]
    assert scores.left_out == {"not_run": 1, "no_timings": 1}


@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_query_missing_in_the_run_has_no_latency_and_no_cost(missing):
    words = {"missing": missing}
    scores = karat.evaluate(GOLD, RUN, ["latency.max", "cost.sum"], conventions=words)
    assert scores.summary()["n"].to_list() == [2, 2]
    assert scores.left_out == {"not_run": 1}
    assert scores.noted == {}
    ranked = karat.evaluate({"q1": ["a"], "q3": ["a"]}, RUN, ["RR", "cost.sum"], conventions=words)
    assert ranked.summary()["n"].to_list() == [2 if missing == "zero" else 1, 1]
    assert ranked.table.counts["missing"] == ranked.table.counts["not_run"] == 1


def test_missing_query_is_refused_if_the_convention_is_error():
    with refused(ConventionError, field="missing") as error:
        karat.evaluate(GOLD, RUN, "latency.p50", conventions={"missing": "error"})
    assert "'q3'" in str(error.value)


def test_failed_query_has_no_latency_and_no_cost():
    failed = RUN[1] | {"error": {"type": "Timeout"}, "results": []}
    names = ["latency.max", "cost.sum"]
    scores = karat.evaluate(GOLD, [RUN[0], failed], names, fail_on_error=1)
    alone = karat.evaluate(GOLD, [RUN[0]], names)
    assert scores.per_query.rows() == alone.per_query.rows()
    assert dict(scores) == dict(alone)
    assert scores.table.counts["failed"] == 1
    assert scores.left_out == {"not_run": 1}


@pytest.mark.parametrize(
    ("measure", "run", "field", "names"),
    [
        ("latency.p50", [line("q1")], "latency_ms", []),
        ("latency.p50", {"q1": ["a"]}, "latency_ms", []),
        ("cost.sum", [line("q1", {"total": 1.0})], "calls", []),
        (
            "latency.p50(stage=reranking)",
            RUN,
            "latency.p50(stage=reranking)",
            ["'reranking'", "'rerank', 'total'", "latency.p50(stage=rerank)"],
        ),
        (
            "latency.p50",
            [line("q1", {"b": 1.0, "a": 2.0})],
            "latency.p50",
            ["'total'", "'a', 'b'", "latency.p50(stage=a)"],
        ),
        (
            "cost.sum(model=gpt)",
            RUN,
            "cost.sum(model=gpt)",
            ["'gpt'", "'m'", "cost.sum(model=m)"],
        ),
        ("cost.sum(stage=s)", [line("q1", calls=[{"price_per_call": 1}])], "cost.sum(stage=s)", []),
        (
            "latency.max(stage=z)",
            [line("q1", {f"s{n}": 1.0 for n in range(7)})],
            "latency.max(stage=z)",
            ["'z'", "'s0', 's1', 's2', 's3', 's4'", " 2 ", "latency.max(stage=s0)"],
        ),
    ],
)
def test_run_without_what_a_measure_needs_is_refused(measure, run, field, names):
    for use in (
        lambda: karat.evaluate(GOLD, run, measure),
        lambda: karat.explain(measure, gold=GOLD, run=run, query="q1"),
    ):
        with refused(path=None, line=None, field=field) as error:
            use()
        assert all(name in str(error.value) for name in names)
        assert error.value.hint


def test_run_without_any_query_of_gold_is_refused():
    with refused(field="query_id") as error:
        karat.evaluate(GOLD, [line("q9", {"total": 1.0})], "latency.p50")
    assert "'q1'" in str(error.value)
    assert "'q9'" in str(error.value)


@pytest.mark.parametrize(
    ("name", "field", "problem", "hint"),
    [
        ("latency.p90@5", None, "latency.p90", "latency.p90"),
        ("latency.p95", None, "'latency.p95'", "latency.p90"),
        ("latency.mean(stage=)", "latency.mean: stage", "", ""),
        ("cost.mean(rel=1)", None, "'rel'", "stage, model"),
    ],
)
def test_name_that_is_not_a_measure_is_refused(name, field, problem, hint):
    with refused(MeasureError, field=field) as error:
        parse(name)
    assert problem in error.value.problem
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("part", "field", "values"),
    [
        ({"latency_ms": {"total": -1}}, "latency_ms.total", ["-1.0"]),
        ({"latency_ms": {"total": 1e15}}, "latency_ms.total", ["1000000000000000.0"]),
        ({"calls": [{}, {"price_in": -0.1}]}, "calls[1].price_in", ["-0.1"]),
        ({"calls": [{"price_per_call": 1e9}]}, "calls[0].price_per_call", ["1,000,000,000"]),
        ({"calls": [{"prompt_tokens": -1}]}, "calls[0].prompt_tokens", ["-1"]),
        ({"calls": [{"price_per_1k": 1, "price_in": 1}]}, "calls[0]", ["price_in", "price_out"]),
        ({"calls": [{"price_per_1k": 1, "price_out": 0}]}, "calls[0]", ["price_in", "price_out"]),
        (
            {"calls": [{"price_per_call": 1, "price_per_1k_calls": 0}]},
            "calls[0]",
            ["price_per_call", "price_per_1k_calls"],
        ),
    ],
)
def test_impossible_latency_tokens_or_price_is_refused_by_line(tmp_path, part, field, values):
    path = tmp_path / "run.jsonl"
    lines = [{"query_id": "q1", "results": []}, {"query_id": "q2", "results": [], **part}]
    path.write_text("\n".join(map(json.dumps, lines)))
    with refused(path=path, line=2, field=field) as error:
        Run.read(path)
    assert all(value in error.value.problem for value in values)


def test_repeated_stage_is_written_with_its_total_time(tmp_path):
    run = made({"q1": ([("rerank", 2.0), ("total", 9.0), ("rerank", 3.0)], [])})
    run.write(tmp_path / "run.jsonl")
    read = Run.read(tmp_path / "run.jsonl")
    assert read.timings.rows() == [("q1", "rerank", 5.0), ("q1", "total", 9.0)]


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_written_scores_are_read_back(tmp_path, ending):
    names = ["latency.p99", "latency.mean(stage=rerank)", "cost.sum(model=m)", "cost.mean"]
    scores = karat.evaluate(GOLD, RUN, names)
    scores.write(tmp_path / f"scores.{ending}")
    read = karat.Scores.read(tmp_path / f"scores.{ending}")
    assert read.per_query.equals(scores.per_query)
    assert read.summary().equals(scores.summary())
    assert Sheet(read).remarks() == Sheet(scores).remarks()


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_latency_under_load_is_marked_wherever_it_is_shown(tmp_path, ending):
    run = Run.of(RUN, name="hybrid")
    run.settings.update(jobs=8)
    path = tmp_path / f"scores.{ending}"
    scores = karat.evaluate(GOLD, run, ["latency.mean", "cost.sum"])
    remark = "latency under load: 8 queries at a time"
    assert remark in Sheet(scores).remarks()
    scores.write(path)
    assert remark in Sheet(karat.Scores.read(path)).remarks()
    scores.write(tmp_path / "scores.md")
    assert f"hybrid: {remark}" in (tmp_path / "scores.md").read_text()
    assert remark not in Sheet(karat.evaluate(GOLD, run, "cost.sum")).remarks()
    run.settings.update(jobs=1)
    assert remark not in Sheet(karat.evaluate(GOLD, run, "latency.mean")).remarks()


def timed(n):
    gold = [{"query_id": f"q{at}", "relevant": ["a"], "kind": f"{at % 2}"} for at in range(n)]
    return gold, [line(f"q{at}", {"total": float(at)}) for at in range(n)]


@pytest.mark.parametrize(
    ("n", "by", "remarks", "notes"),
    [
        (
            99,
            (),
            ["latency.p99 is based on only 99 queries; 100 or more are needed"],
            ["p99 of 99 samples"],
        ),
        (100, (), [], [None]),
        (
            120,
            ("kind",),
            ["latency.p99 is based on fewer than 100 queries in 2 groups"],
            [None, "p99 of 60 samples", "p99 of 60 samples"],
        ),
    ],
)
def test_99th_percentile_of_few_samples_is_marked(tmp_path, n, by, remarks, notes):
    gold, run = timed(n)
    sheet = Sheet(karat.evaluate(gold, run, ["latency.p99", "latency.p90"]), by=by)
    assert sheet.remarks() == remarks
    scores_files.write([sheet], tmp_path / "scores.md")
    assert all(remark in (tmp_path / "scores.md").read_text() for remark in remarks)
    (document,) = scores_files.json_document([sheet])["runs"]
    shown = [document["measures"], *(group["measures"] for group in document.get("groups", ()))]
    assert [measures["latency.p99"].get("note") for measures in shown] == notes
    assert not any("note" in measures["latency.p90"] for measures in shown)


def test_quantiles_are_interpolated_linearly():
    scores = karat.evaluate(*timed(11), ["latency.p50", "latency.p90", "latency.p99"])
    assert [scores[name] for name in scores] == [5.0, 9.0, 9.9]


@pytest.fixture
def command(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("gold.jsonl").write_text("\n".join(map(json.dumps, GOLD)))
    Path("hybrid.jsonl").write_text("\n".join(map(json.dumps, RUN)))
    unpriced = line("q2", {"total": 0.0123}, [{"model": "m", "prompt_tokens": 5}])
    Path("other.jsonl").write_text("\n".join(map(json.dumps, [RUN[0], unpriced])))
    return command


def test_table_shows_units_and_unknown_values_within_80_columns(command):
    measures = "RR,latency.p99,latency.mean(stage=rerank),cost.mean,cost.sum(model=m)"
    code, out, err = command(
        *("eval", "gold.jsonl", "hybrid.jsonl", "other.jsonl", "-m", measures, "--by", "kind"),
        "--no-intervals",
    )
    assert code == 0
    assert "warning" not in err
    assert max(map(len, out.splitlines())) <= 80
    headline, table, *_, remarks = out.split("\n\n")
    assert headline == "hybrid and other share the best RR: 1.000"
    assert table.splitlines() == [
        "measure                             hybrid     other  queries",
        "RR                                   1.000     1.000        1",
        "latency.p99 [ms]                    119.60    118.80        2",
        "latency.mean(stage=rerank) [ms]      20.00     20.00        1",
        "cost.mean [USD per 1M queries]    1,025.00  2,000.00      1–2",
        "cost.sum(model=m) [USD]          0.0000500      0.00      1–2",
    ]
    assert [line for line in remarks.splitlines()[-6:] if "marked *" not in line] == [
        "every run: 2 queries of gold without judgments: left out",
        "every run: 1 query of gold not in the run: left out of latency, cost and context",
        "every run: 1 query without the requested timing: left out of latency",
        "every run: latency.p99 is based on only 2 queries; 100 or more are needed",
        "other: 1 call without a price or token count: cost of their queries unknown",
    ]


def test_json_contains_plain_numbers(command):
    code, out, _ = command(
        "eval", "gold.jsonl", "other.jsonl", "-m", "latency.max,cost.mean", "--json", "--per-query"
    )
    (run,) = json.loads(out)["runs"]
    assert code == 0
    assert run["measures"]["latency.max"] == {
        "value": 120.0,
        "low": None,  # nothing bounds a maximum
        "high": None,
        "method": None,
        "sd": pytest.approx((120.0 - 0.0123) / 2**0.5),
        "median": 60.00615,
        "n": 2,
        "left_out": 1,
    }
    assert run["noted"] == {"unpriced": 1}
    assert run["left_out"] == {"not_run": 1}
    assert [row["cost.mean"] for row in run["per_query"]] == [0.002, None, None]


def test_run_without_timings_is_named(command):
    Path("bare.run").write_text("q1 Q0 a 1 0.9 t\n")
    code, out, err = command("eval", "gold.jsonl", "hybrid.jsonl", "bare.run", "-m", "latency.p50")
    assert (code, out) == (2, "")
    assert err.startswith("error: bare.run: latency_ms: ")
    assert "\n  hint: " in err


def test_cost_is_explained_call_by_call(command):
    data = ("--gold", "gold.jsonl", "--run", "hybrid.jsonl", "--query", "q2")
    _, out, _ = command("explain", "cost.sum(model=m)", *data)
    assert out.splitlines()[-5:] == [
        "hybrid",
        "stage  model   in  out        USD",
        "–      m      500    –  0.0000500",
        "",
        "cost.sum(model=m) = 0.0000500",
    ]
    _, out, _ = command("explain", "cost.sum", *data, "--other", "other.jsonl")
    assert out.splitlines()[0] == "cost.sum of query q2: hybrid 0.0000500, other excluded"
    assert out.splitlines()[-12:] == [
        "hybrid",
        "stage  model   in  out        USD",
        "–      m      500    –  0.0000500",
        "",
        "other",
        "stage  model  in  out  USD",
        "–      m       5    –    –",
        "",
        "             hybrid     other",
        "cost.sum  0.0000500  excluded",
        "",
        "other: a call has no price or no token count, so the cost is unknown",
    ]


@pytest.mark.parametrize(
    ("measure", "query", "ending"),
    [
        (
            "latency.max",
            "q1",
            "stage       ms\ntotal   120.00\nrerank   20.00\n\nlatency.max = 120.0000",
        ),
        ("latency.max(stage=rerank)", "q2", "no such timing for this query, so it is left out"),
        ("latency.max", "q3", "nothing was timed\n\nthe run lacks this query, so it is left out"),
        ("cost.sum", "q3", "no calls were recorded\n\nthe run lacks this query, so it is left out"),
    ],
)
def test_explanation_shows_timings_or_why_the_query_is_left_out(measure, query, ending):
    text = str(karat.explain(measure, gold=GOLD, run=RUN, query=query))
    assert text.removesuffix(f"\n{parse(measure)} = excluded").endswith(ending)
