"""How many tokens a run returns in the top k, compared with plain loops."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data import Gold, Run
from karat.data.formats.native_run import ResultRow
from karat.errors import KaratWarning
from karat.live.tokens import with_token_counts
from karat.measures import Plan, ScoreTable, score
from karat.report.sheet import Sheet
from support.effort import examples
from support.errors import refused

QUERIES = ["q1", "q2", "q3", "10", "ж"]
NAMES = {"context.tokens": None, "context.tokens@1": 1, "context.tokens@3": 3}
PLAN = Plan.of(list(NAMES))
item = st.fixed_dictionaries(
    {"id": st.sampled_from("abcd")}, optional={"tokens": st.sampled_from([0, 1, 7, 2**52])}
)
runs = st.dictionaries(st.sampled_from(QUERIES), st.lists(item, max_size=5)).map(
    # A run without any tokens cannot be measured at all.
    lambda run: run | {"with tokens": [{"id": "a", "tokens": 5}]}
)
golds = st.sets(st.sampled_from(QUERIES), min_size=1)


def made(run):
    return Run.of([{"query_id": query, "results": results} for query, results in run.items()])


def gold_of(queries):
    return Gold(query_data=pl.DataFrame({"query_id": sorted(queries)}))


def delivered(results, k):
    """Return the tokens of the first k, None if those of one item are unknown."""
    total = 0
    for at, result in enumerate(results, 1):
        if k is not None and at > k:
            break
        if "tokens" not in result:
            return None
        total += result["tokens"]
    return float(total)


@given(gold=golds, run=runs)
@examples(60, 600)
def test_tokens_at_k_match_plain_loops_to_the_bit(gold, run):
    table = score(gold_of(gold), made(run), PLAN)
    order = sorted(gold, key=str.encode)
    for name, k in NAMES.items():
        values = [delivered(run[query], k) if query in run else None for query in order]
        assert table.frame[name].to_list() == values
        known = [value for value in values if value is not None]
        measure = karat.measures.parse(name)
        assert table.value(measure) == (math.fsum(known) / len(known) if known else None)
    in_both = [query for query in gold if query in run]
    unknown = [query for query in in_both if delivered(run[query], None) is None]
    assert table.counts["no_tokens"] == len(unknown)
    assert table.counts["not_run"] == len(gold) - len(in_both)
    assert table.counts["missing"] == 0


@given(gold=golds, run=runs, cut=st.lists(st.integers(0, 2), min_size=5, max_size=5))
@examples(30, 300)
def test_parts_scored_separately_and_joined_are_the_whole(gold, run, cut):
    part_of = dict(zip(QUERIES, cut, strict=True))
    whole = made(run)
    parts = [
        score(gold_of(own), whole.only([*own, "with tokens"]), PLAN)
        for number in sorted({part_of[query] for query in gold})
        if (own := {query for query in gold if part_of[query] == number})
    ]
    joined, at_once = ScoreTable.concat(parts), score(gold_of(gold), whole, PLAN)
    assert joined.frame.equals(at_once.frame)
    assert {**joined.counts, "unknown": 0} == {**at_once.counts, "unknown": 0}


def test_query_with_unknown_tokens_in_the_top_k_is_left_out():
    gold = {"q1": ["a"], "q2": ["a"]}
    first, second = [{"id": "a", "tokens": 5}, {"id": "b"}], [{"id": "a", "tokens": 3}]
    run = [{"query_id": "q1", "results": first}, {"query_id": "q2", "results": second}]
    scores = karat.evaluate(gold, run, ["context.tokens@2", "context.tokens@1"])
    assert (scores["context.tokens@2"], scores["context.tokens@1"]) == (3.0, 4.0)
    assert (
        "1 query with items without a token count: left out of context" in Sheet(scores).remarks()
    )
    assert karat.evaluate(gold, run, "context.tokens@1").left_out == {}


def test_lower_is_better_and_documents_are_not_collapsed():
    results = [{"id": str(n), "doc_id": "d", "tokens": 4} for n in range(3)]
    run = [{"query_id": "q1", "results": results}]
    scores = karat.evaluate({"q1": ["d"]}, run, ["RR", "context.tokens@2"], level="doc")
    assert scores["context.tokens@2"] == 8.0
    assert not karat.measures.parse("context.tokens").declaration.higher_is_better


@pytest.mark.parametrize("run", [{"q1": ["a"]}, [{"query_id": "q1", "results": ["a"]}]])
def test_run_without_tokens_is_refused(run):
    with refused(field="tokens") as error:
        karat.evaluate({"q1": ["a"]}, run, "context.tokens@5")
    assert error.value.hint


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "jsonl"])
def test_written_tokens_are_read_back(tmp_path, ending):
    run = made({"q1": [{"id": "a", "tokens": 5}, {"id": "b", "tokens": 0}]})
    run.write(tmp_path / f"run.{ending}")
    assert Run.read(tmp_path / f"run.{ending}").results["tokens"].to_list() == [5, 0]


@pytest.mark.parametrize("ending", ["csv", "trec"])
def test_file_that_cannot_hold_the_tokens_is_written_with_a_warning(tmp_path, ending):
    run = made({"q1": [{"id": "a", "tokens": 5}, {"id": "b"}]})
    with pytest.warns(KaratWarning) as warnings:
        run.write(tmp_path / f"run.{ending}")
    (warning,) = warnings
    assert "tokens" in str(warning.message)
    assert "tokens" not in Run.read(tmp_path / f"run.{ending}").results.columns


@pytest.mark.parametrize("value", ["-1", "many"])
def test_table_with_invalid_tokens_is_refused_by_line(tmp_path, value):
    path = tmp_path / "run.csv"
    path.write_text(f"query_id,item_id,tokens\nq1,a,5\nq1,b,{value}\n")
    with refused(path=path, line=3, field="tokens") as error:
        Run.read(path)
    assert value in error.value.problem


@pytest.mark.parametrize("tokenizer", [lambda text: len(text.split()), str.split])
def test_tokenizer_counts_texts_without_tokens(tokenizer):
    results = [
        ResultRow(id="a", text="two words"),
        ResultRow(id="b"),
        ResultRow(text="x", tokens=9),
    ]
    assert [result.tokens for result in with_token_counts(results, tokenizer)] == [2, None, 9]
    assert results[0].tokens is None


@pytest.mark.parametrize(
    ("returned", "shown"),
    [(-1, "-1"), (1.5, "float"), (True, "True"), ("two", "str"), (None, "NoneType")],
)
def test_tokenizer_that_does_not_return_a_count_is_refused(returned, shown):
    with refused(field="tokenizer") as error:
        with_token_counts([ResultRow(id="a", text="x")], lambda _: returned)
    assert shown in error.value.problem
