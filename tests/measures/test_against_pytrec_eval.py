"""karat gives the values of trec_eval, as pytrec_eval-terrier computes them, if definitions agree.

They agree on every measure below, at any level of relevance, with ties, negative grades, queries
without a relevant item and ids in any script. They do not agree on these, and why:

- Scores. pytrec_eval keeps them as 32-bit floats, so it ties scores that differ in 64 bits, which
  karat uses. The scores here are exact in 32 bits; one test shows the difference.
- Queries that are not in the run. pytrec_eval leaves them out, and its users average over the
  rest; karat scores them 0 (`missing="zero"`). Compared here with `missing="skip"`.
- Empty judgments (`{"q": {}}`). pytrec_eval leaves the query out; karat knows that it was judged
  and scores it 0. Not compared below.
- Empty lists, and judgments that are all negative. pytrec_eval-terrier reads past its arrays there
  and may end the process, so no list and no gold here is empty.
- nDCG has no level in either: trec_eval's -l changes nothing in ndcg and ndcg_cut, and karat's
  nDCG takes no rel=. So `AP(rel=2)` is compared with `map` at level 2, and nDCG with itself.
- Names. trec_eval's set_P, set_recall and set_F are karat's P, R and F1 without cutoff.
- The last bits. Both sum in rank order, but trec_eval computes logarithms differently, so the
  values agree to 12 digits and not always to the last bit.
"""

from __future__ import annotations

import math
import random

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from karat.data import Gold, Run
from karat.measures import Plan, parse, score
from support.effort import examples

CUTOFFS = [1, 2, 3, 5, 10, 100]
WITH_CUTOFF = {"map_cut": "AP", "P": "P", "recall": "R", "success": "Success", "ndcg_cut": "nDCG"}
WITHOUT_CUTOFF = {
    "map": "AP",
    "recip_rank": "RR",
    "ndcg": "nDCG",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "set_P": "P",
    "set_recall": "R",
    "set_F": "F1",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
}
WITHOUT_LEVEL = ("nDCG", "NumRet")

ASKED = set(WITHOUT_CUTOFF) | {f"{name}.{','.join(map(str, CUTOFFS))}" for name in WITH_CUTOFF}


def karat_names(level: int) -> dict[str, str]:
    """Return karat's name for each of trec_eval's names."""

    def at_level(name: str) -> str:
        return name if name in WITHOUT_LEVEL else f"{name}(rel={level})"

    names = {theirs: at_level(ours) for theirs, ours in WITHOUT_CUTOFF.items()}
    for theirs, ours in WITH_CUTOFF.items():
        names |= {f"{theirs}_{k}": f"{at_level(ours)}@{k}" for k in CUTOFFS}
    return names


def assert_same(gold, run, level) -> None:
    theirs = pytrec_eval.RelevanceEvaluator(gold, ASKED, relevance_level=level).evaluate(run)
    names = karat_names(level)
    plan = Plan.of(names.values(), conventions={"missing": "skip"})
    table = score(Gold.of(gold), Run.of(run), plan)
    ours = {row.pop("query_id"): row for row in table.frame.to_dicts()}
    for query in gold.keys() - theirs.keys():
        assert set(ours.pop(query).values()) == {None}
    assert ours.keys() == theirs.keys()
    for query, values in theirs.items():
        assert values.keys() == names.keys()
        for name, value in values.items():
            our_value = ours[query][parse(names[name]).name]
            assert math.isclose(our_value, value, rel_tol=1e-12), (
                f"{name} of {query!r} at level {level} is {value}, karat has {our_value}"
            )


QUERIES = ["q1", "q2", "q10", "ж"]
ITEMS = ["a", "A", "b", "d10", "d9", "é", "e\u0301", "\uffee", "😀", "字"]
EXACT_IN_32_BITS = [3.0, 2.5, 0.25, 0.0, -0.0, -1.0, 2.0**-20]

some_judgments = st.dictionaries(st.sampled_from(ITEMS), st.integers(-2, 4))
golds = st.dictionaries(
    st.sampled_from(QUERIES),
    some_judgments.filter(lambda grades: any(grade >= 0 for grade in grades.values())),
    min_size=1,
)
runs = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(st.sampled_from(ITEMS), st.sampled_from(EXACT_IN_32_BITS), min_size=1),
)


@given(gold=golds, run=runs, level=st.sampled_from([1, 2]))
@examples(100, 2000)
def test_small_runs_score_as_in_trec_eval(gold, run, level):
    assert_same(gold, run, level)


@pytest.mark.parametrize("level", [1, 2])
def test_a_large_run_scores_as_in_trec_eval(level):
    chance = random.Random(2019)
    gold, run = {}, {}
    for query in range(100):
        judged = chance.sample(range(3000), chance.randint(1, 200))
        found = chance.sample(range(3000), chance.randint(1, 500)) + judged[::2]
        gold[f"q{query}"] = {f"d{item}": chance.choice([-1, 0, 0, 1, 2, 3]) for item in judged}
        run[f"q{query}"] = {f"d{item}": chance.randrange(1000) / 8 for item in found}
    assert_same(gold, run, level)


def test_scores_that_differ_only_in_64_bits_are_a_tie_only_in_pytrec_eval():
    gold = {"q": {"b": 1}}
    run = {"q": {"a": math.nextafter(1.0, 2.0), "b": 1.0}}
    theirs = pytrec_eval.RelevanceEvaluator(gold, {"recip_rank"}).evaluate(run)
    ours = score(Gold.of(gold), Run.of(run), Plan.of("RR"))
    assert theirs["q"]["recip_rank"] == 1.0
    assert ours.frame["RR"].to_list() == [0.5]


def test_query_missing_in_the_run_is_absent_in_pytrec_eval_and_zero_in_karat():
    gold = {"q": {"a": 1}, "not run": {"a": 1}}
    run = {"q": {"a": 1.0}}
    theirs = pytrec_eval.RelevanceEvaluator(gold, {"recip_rank"}).evaluate(run)
    ours = score(Gold.of(gold), Run.of(run), Plan.of("RR"))
    assert theirs.keys() == {"q"}
    assert dict(ours.frame.rows()) == {"q": 1.0, "not run": 0.0}


def test_query_with_empty_judgments_is_absent_in_pytrec_eval_and_zero_in_karat():
    gold = {"q": {"a": 1}, "nothing": {}}
    run = {"q": {"a": 1.0}, "nothing": {"a": 1.0}}
    theirs = pytrec_eval.RelevanceEvaluator(gold, {"recip_rank"}).evaluate(run)
    ours = score(Gold.of(gold), Run.of(run), Plan.of("RR"))
    assert theirs.keys() == {"q"}
    assert dict(ours.frame.rows()) == {"q": 1.0, "nothing": 0.0}
