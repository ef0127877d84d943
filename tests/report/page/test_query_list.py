"""The queries of a page: outcomes, lists side by side, and which queries have details."""

import json
import random
from contextlib import ExitStack
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.evaluation.loaded_run import LoadedRun
from karat.measures.families import BY_GOLD
from karat.report.page.data import QueryDetail, QueryLists, RunDetail
from karat.report.page.queries import ranked_lists
from karat.report.page.queries.gold_kinds import GOLD_KINDS
from karat.report.page.queries.informative import informative_queries
from karat.report.page.queries.query_table import load_queries
from oracles import query_list as oracle
from support.effort import FULL, examples
from support.errors import refused

MEASURES = {"rank": "RR", "span": "span.recall", "evidence": "evidence.recall"}
KEYS = {"rank": "relevant", "span": "spans", "evidence": "evidence"}
EVIDENCE = ["alpha beta", "gamma", "delta epsilon"]


def known_of(gold, runs, measures, *, texts=500, **words):
    scores = karat.Evaluator(gold, measures, **words).all(runs)
    return load_queries(scores, [LoadedRun.of(score) for score in scores], texts=texts)


def place(document, start, length):
    return {"doc_id": document, "start": start, "end": start + length}


places = st.builds(
    place, st.sampled_from(["d1", "d2", "d3"]), st.integers(0, 9), st.sampled_from([0, 2, 5])
)
texts = st.lists(st.sampled_from([*EVIDENCE, "nothing of it"]), min_size=1, max_size=2).map(
    "\n ".join
)
golds = st.fixed_dictionaries(
    {},
    optional={
        "relevant": st.dictionaries(st.sampled_from(["a", "b", "d1", "d2"]), st.integers(-1, 2)),
        "spans": st.lists(places, max_size=3),
        "evidence": st.lists(st.sampled_from(EVIDENCE), max_size=3),
    },
)
items = st.builds(
    lambda item, placed, text: {"id": item} | placed | {"text": text},
    st.sampled_from(["a", "b", "c", "x"]),
    places,
    texts,
)
run_lists = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "q9"]), st.lists(items, max_size=7), min_size=1
)
EVERY = {
    "relevant": {"a": 1},
    "spans": [place("d1", 0, 4)],
    "evidence": ["gamma"],
}


def small_limits():
    """Show less than usual, so that short lists are cut as well."""
    stack = ExitStack()
    for module, name, size in (
        (ranked_lists, "TOP", 3),
        (ranked_lists, "MAX_HITS_BELOW", 2),
        (ranked_lists, "MAX_RELEVANT", 2),
    ):
        stack.enter_context(patch.object(module, name, size))
    return stack


def test_page_shows_every_kind_of_gold():
    assert set(GOLD_KINDS) == {family.name for family in BY_GOLD.values()}


CONVENTIONS = [{}, {"unjudged": "skip"}, {"duplicates": "count"}]


def check_against_oracle(gold, runs, families, conventions, level, random):
    """Compare the lists and outcomes of a page with those of the oracle, for all queries."""
    records = [{"query_id": query} | record for query, record in gold.items()]
    random.shuffle(records)
    given_runs = {}
    for number, run in enumerate(runs):
        given_runs[f"r{number}"] = [{"query_id": q, "results": run[q]} for q in run]
        random.shuffle(given_runs[f"r{number}"])
    with small_limits():
        known = known_of(
            records,
            given_runs,
            [MEASURES[family] for family in families],
            conventions=conventions,
            level=level,
            matching=karat.Matching(fuzzy_threshold=1.0),
        )
        lists = known.lists[:]
        assert [known.lists[at] for at in range(len(gold))] == lists
        assert known.lists[::-2] == lists[::-2]
    assert known.ids.to_list() == sorted(gold)
    for number, query in enumerate(sorted(gold)):
        lists_of_query = [run.get(query, []) for run in runs]
        expected = oracle.listed(
            gold[query], lists_of_query, families[0], set(families), conventions, level, 3, 2, 2
        )
        assert json.loads(msgspec.json.encode(lists[number])) == expected
        for run, outcomes in zip(runs, known.outcomes, strict=True):
            wanted, found, first = oracle.found_of(
                gold[query], run.get(query, []), families[0], conventions, level
            )
            assert outcomes.status[number] == (0 if query in run else 1)
            assert (known.n_relevant[number], outcomes.found[number], outcomes.first[number]) == (
                wanted,
                found,
                first,
            )


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")  # about ids not in the run
@examples(20, 400)
@given(
    st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), golds),
    st.lists(run_lists, min_size=1, max_size=3),
    st.permutations(["rank", "span", "evidence"]),
    st.integers(1, 3),
    st.sampled_from(CONVENTIONS),
    st.sampled_from(["item", "doc"]),
    st.randoms(),
)
def test_lists_and_outcomes_equal_those_of_the_oracle(
    golds, runs, order, n_families, conventions, level, random
):
    gold = {"q0": EVERY, **golds}
    runs = [run | {"q0": run.get("q9", [])} for run in runs]
    check_against_oracle(gold, runs, order[:n_families], conventions, level, random)


def dense_data(draw):
    """Return gold and two runs with long lists, in which much is relevant, repeated or overlaps."""
    items = ["a", "b", "c", "x", "y"]
    gold = {
        f"q{number}": {
            "relevant": {
                item: draw.randint(-1, 2) for item in draw.sample([*items, "d1", "d2"], 5)
            },
            "spans": [
                place(draw.choice(["d1", "d2"]), draw.randint(0, 9), draw.choice([0, 2, 5]))
                for _ in range(3)
            ],
            "evidence": draw.choices(EVIDENCE, k=3),
        }
        for number in range(10)
    }
    runs = [
        {
            query: [
                {"id": draw.choice(items)}
                | place(draw.choice(["d1", "d2", "d3"]), draw.randint(0, 9), draw.choice([0, 2, 5]))
                | {"text": "\n ".join(draw.sample([*EVIDENCE, "nothing of it"], 2))}
                for _ in range(draw.randint(5, 9))
            ]
            for query in gold
        }
        for _ in range(2)
    ]
    return gold, runs


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")  # about ids not in the run
@pytest.mark.parametrize("seed", range(20) if FULL else [0])
@pytest.mark.parametrize("level", ["item", "doc"])
@pytest.mark.parametrize("conventions", CONVENTIONS)
def test_lists_and_outcomes_of_dense_data_equal_those_of_the_oracle(conventions, level, seed):
    draw = random.Random(seed)
    for families in (["rank"], ["rank", "evidence", "span"], ["span", "rank"], ["evidence"]):
        check_against_oracle(*dense_data(draw), families, conventions, level, draw)


@examples(200, 2000)
@given(
    st.integers(1, 7).flatmap(
        lambda n: st.tuples(
            st.lists(
                st.lists(st.sampled_from([None, 0.0, 0.25, 0.5, 1.0]), min_size=n, max_size=n),
                min_size=1,
                max_size=3,
            ),
            st.lists(st.booleans(), min_size=n, max_size=n),
        )
    ),
    st.integers(0, 8),
    st.booleans(),
)
@pytest.mark.filterwarnings("error")
def test_most_informative_queries_equal_those_of_the_oracle(data, n, higher):
    values, failed = data
    table = np.array([[np.nan if value is None else value for value in run] for run in values])
    chosen = informative_queries(table, np.array(failed), n, higher_is_better=higher)
    assert chosen.tolist() == oracle.telling(values, failed, n, higher)


def test_failed_and_missing_queries_have_different_outcomes():
    gold = {"q1": ["a"], "q2": ["a"], "q3": ["a"]}
    failure = {"type": "Timeout", "message": "too slow", "attempts": 3}
    run = [{"query_id": "q1", "results": ["x", "a"]}, {"query_id": "q2", "error": failure}]
    known = known_of(gold, {"run": run}, "RR", fail_on_error=0.5)
    (outcomes,) = known.outcomes
    assert outcomes.status.to_list() == [0, 2, 1]
    assert (outcomes.found.to_list(), outcomes.first.to_list()) == ([1, 0, 0], [2, 0, 0])
    assert msgspec.to_builtins(known.details[1].runs[0].error) == failure
    assert known.lists[1].lists == [[]]


@pytest.mark.parametrize("level", ["item", "doc"])
@pytest.mark.parametrize("unjudged", ["irrelevant", "skip"])
def test_run_that_retrieved_nothing_has_empty_lists(level, unjudged):
    run = [{"query_id": "q", "results": []}]
    words = {"conventions": {"unjudged": unjudged}, "level": level}
    known = known_of({"q": ["a"]}, {"run": run}, "RR", **words)
    assert (known.lists[0].lists, known.lists[0].wanted) == ([[]], [("a", 1)])


def test_relevance_is_defined_by_the_first_measure_that_reads_gold():
    run = [{"query_id": "q", "results": ["a", "b"], "latency_ms": {"total": 2.0}}]
    known = known_of({"q": {"a": 1, "b": 2, "c": 2}}, {"run": run}, ["latency.mean", "AP(rel=2)"])
    assert (known.n_relevant.item(), known.outcomes[0].found.item()) == (2, 1)
    assert known.outcomes[0].first.item() == 2
    assert known.lists[0].wanted == [("b", 2), ("c", 2)]
    assert known.lists[0].hits == [[(1, 1, None, None), (2, 2, None, None)]]


def test_overlap_of_spans_is_defined_by_the_measure():
    gold = [{"query_id": "q", "spans": [place("d", 0, 10)]}]
    run = [{"query_id": "q", "results": [place("d", 0, 4), place("d", 0, 8)]}]
    for measure, first in {"span.RR": 1, "span.RR(min_overlap=0.5)": 2}.items():
        assert known_of(gold, {"run": run}, [measure]).outcomes[0].first.item() == first


def test_lists_have_no_hits_if_no_measure_reads_gold():
    run = [{"query_id": "q", "results": ["a"], "latency_ms": {"total": 2.0}}]
    known = known_of({"q": ["a"]}, {"run": run}, "latency.mean")
    assert known.n_relevant.to_list() == [0]
    assert known.lists[0] == QueryLists(
        items=["a"], lists=[[0]], below=[[]], n=[1], hits=[[]], wanted=[], n_wanted={}
    )


def test_items_without_ids_are_named_by_position_or_beginning_of_the_text():
    gold = [{"query_id": "q", "evidence": ["paid within 14 days"]}]
    long = "It is paid\n within 14 days. " * 9
    results = [{"text": long + "x"}, {"text": long + "y"}, {"text": long + "x"}]
    known = known_of(gold, {"run": [{"query_id": "q", "results": results}]}, "evidence.recall")
    beginning = "It is paid within 14 days. It is paid within 14 days. It is p"[:60]
    assert known.lists[0].items == [beginning, beginning]
    assert known.lists[0].lists == [[0, 1, 0]]
    spans = [{"query_id": "q", "spans": [place("d", 0, 9)]}]
    run = [{"query_id": "q", "results": [place("d", 3, 4)]}]
    assert known_of(spans, {"run": run}, "span.recall").lists[0].items == ["d[3:7]"]


def test_fields_are_texts_and_long_texts_are_cut():
    gold = [
        {
            "query_id": "q1",
            "query": "é" * 500,
            "n": 3,
            "hard": True,
            "tags": ["a", "b"],
            "relevant": ["a"],
        },
        {"query_id": "q2", "relevant": ["a"]},
    ]
    known = known_of(gold, {"run": {"q1": ["a"], "q2": ["a"]}}, "RR")
    assert known.texts.to_list() == ["é" * 201, None]
    assert known.fields.to_dicts() == [
        {"n": "3", "hard": "true", "tags": '["a","b"]'},
        {"n": None, "hard": None, "tags": None},
    ]
    assert known.details[0].text == "é" * 500
    assert known.details[0].fields == {"n": "3", "hard": "true", "tags": '["a","b"]'}
    assert known.details[1].fields == {}


def test_texts_are_kept_for_the_requested_number_of_queries():
    gold = {f"q{n}": ["a"] for n in range(6)}
    run = {f"q{n}": ["x"] * n + ["a"] for n in range(6)}
    assert list(known_of(gold, {"run": run}, "RR", texts=2).details) == [4, 5]
    assert list(known_of(gold, {"run": run}, "RR", texts=0).details) == []


def test_saved_scores_have_only_values(tmp_path):
    gold = [{"query_id": "q", "query": "why?", "kind": "k", "relevant": ["a"]}]
    scores = karat.evaluate(gold, {"q": ["x", "a"]}, "RR")
    scores.write(tmp_path / "saved.json")
    saved = karat.Scores.read(tmp_path / "saved.json")
    known = load_queries([saved], [None])
    assert (known.ids.to_list(), known.outcomes, len(known.lists), known.details) == (
        ["q"],
        [],
        0,
        {},
    )
    assert known.fields.to_dicts() == [{"kind": "k"}]
    both = load_queries([saved, scores], [None, LoadedRun.of(scores)])
    assert [outcomes.status.item() for outcomes in both.outcomes] == [3, 0]
    assert both.lists[0].lists == [[], [0, 1]]
    assert both.lists[0].n == [0, 2]
    empty, complete = both.details[0].runs
    assert empty == RunDetail()
    assert complete.calculations["RR"].value == 0.5


def test_scores_of_other_queries_are_refused():
    one, other = (
        karat.evaluate({query: ["a"]}, karat.Run.of({query: ["a"]}, name=query), "RR")
        for query in ("q1", "q2")
    )
    with refused(path=None, field="runs") as error:
        load_queries([one, other], [LoadedRun.of(one), LoadedRun.of(other)])
    assert "'q2'" in str(error.value)
    assert "'q1'" in str(error.value)


def test_everything_can_be_written_as_json():
    gold = [{"query_id": "q", "query": "\x00</script>\u202e", **EVERY}]
    run = [{"query_id": "q", "results": [{"id": "a", **place("d1", 0, 3), "text": "gamma 😀"}]}]
    known = known_of(gold, {"run": run}, list(MEASURES.values()))
    for kind, values in ((QueryDetail, known.details.values()), (QueryLists, known.lists)):
        for value in values:
            assert msgspec.json.decode(msgspec.json.encode(value), type=kind) == value
