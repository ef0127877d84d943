"""Failed queries: neither fast nor cheap, and too many of them stop every command."""

import pytest

import karat
from karat.errors import InputError, RetrieverError

N = 40
GOLD = [{"query_id": f"q{n:02}", "query": "?", "relevant": ["a"]} for n in range(N)]


def run(failed):
    failure = {"error": {"type": "Timeout", "message": "slow"}, "latency_ms": {"total": 0.003}}
    calls = [{"stage": "s", "model": "m", "price_per_call": 1.0}]
    answer = {"results": ["a"], "latency_ms": {"total": 100.0}, "calls": calls}
    return [
        {"query_id": line["query_id"], "results": [], **failure}
        if n < failed
        else {"query_id": line["query_id"], **answer}
        for n, line in enumerate(GOLD)
    ]


MEASURES = ["RR", "latency.mean", "latency.p50", "cost.mean", "cost.sum"]


def test_failed_queries_are_excluded_from_latency_and_cost_and_scored_as_nothing_retrieved():
    scores = karat.evaluate(GOLD, run(10), MEASURES, fail_on_error=1)
    assert dict(scores) == {
        "RR": 0.75,
        "latency.mean": 100.0,
        "latency.p50": 100.0,
        "cost.mean": 1.0,
        "cost.sum": 30.0,
    }
    summary = {row["measure"]: row["n"] for row in scores.summary().iter_rows(named=True)}
    assert (summary["RR"], summary["latency.p50"]) == (40, 30)


def test_a_failed_query_does_not_improve_latency():
    comparison = karat.compare(
        GOLD, {"good": run(0), "bad": run(10)}, ["latency.mean"], fail_on_error=0.5
    )
    row = comparison.pairs.row(0, named=True)
    assert (row["n"], row["wins"], row["ties"], row["losses"]) == (30, 0, 30, 0)


VERBS = {
    "evaluate": lambda **o: karat.evaluate(GOLD, run(3), "RR", **o),
    "compare": lambda **o: karat.compare(GOLD, {"a": run(0), "b": run(3)}, "RR", **o),
    "gate": lambda **o: karat.gate(GOLD, run(3), "latency.p90 <= 500 ms", **o),
    "explain": lambda **o: karat.explain("RR", gold=GOLD, run=run(3), query="q00", **o),
}


@pytest.mark.parametrize("verb", VERBS)
def test_more_than_5_percent_failures_stop_every_verb(verb):
    with pytest.raises(RetrieverError) as error:
        VERBS[verb]()
    assert "3 of 40" in str(error.value)
    with pytest.raises(RetrieverError):
        VERBS[verb](fail_on_error=0.07)
    VERBS[verb](fail_on_error=0.075)
    with pytest.raises(InputError) as refused:
        VERBS[verb](fail_on_error=1.5)
    assert refused.value.field == "fail_on_error"


def test_exactly_5_percent_may_fail():
    assert karat.evaluate(GOLD, run(2), "RR")["RR"] == 0.95


def test_a_retriever_that_always_fails_passes_no_gate():
    def broken(query, top_k):
        raise RuntimeError("down")

    with pytest.raises(RetrieverError):
        karat.gate(GOLD, broken, ["latency.p90 <= 50 ms"])


@pytest.mark.parametrize("verb", ["eval", "gate", "compare", "explain"])
def test_commands_print_no_result_and_exit_with_2(command, tmp_path, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    karat.Run.of(run(40), name="down").write("down.jsonl")
    karat.Run.of(run(0), name="up").write("up.jsonl")
    words = {
        "eval": ["gold.jsonl", "down.jsonl"],
        "gate": ["gold.jsonl", "down.jsonl", "--require", "latency.p90 <= 500 ms"],
        "compare": ["gold.jsonl", "up.jsonl", "down.jsonl", "-m", "RR"],
        "explain": ["RR", "--gold", "gold.jsonl", "--run", "down.jsonl", "--query", "q00"],
    }[verb]
    code, out, err = command(verb, *words)
    assert (code, out) == (2, "")
    assert "40 of 40" in err
    code, out, _ = command(verb, *words, "--fail-on-error", "1")
    assert code in (0, 1, 2)
    if verb != "gate":  # no query is left that a latency could be measured on
        assert out
