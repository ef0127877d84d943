"""karat.compat.pytrec_eval returns what pytrec_eval-terrier does: keys, their order, values.

Values are the same to the last bit; only means over queries are compared to 12 digits, since numpy
uses pairwise summation. There are differences, each with a test of its own:

- Text: runid and relstring are text, for which pytrec_eval returns uninitialized memory, most often
  0; here it is always 0.
- Names that pytrec_eval reads in part (`P_5x` as `P_5`), or that end its process: errors here.

pytrec_eval reads past its arrays for empty lists and for judgments that are all negative, so it
gets neither here; nor, where only judged items count, a list of which nothing would be left.
"""

from __future__ import annotations

import gzip
import io
import math
import random
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest
import pytrec_eval as original
from hypothesis import given
from hypothesis import strategies as st

from karat.compat import pytrec_eval as ours
from karat.compat.trec_eval import trec_eval
from karat.errors import MeasureError
from support.effort import FULL, examples
from support.errors import refused
from support.paths import SHARED_DATA

DATA = SHARED_DATA / "trec-dl19-passage"

GOLD = {"q": {"a": 1, "b": 2, "c": 0, "d": -1}, "r": {"a": 1}}
RUN = {"r": {"b": 2.0, "a": 1.0}, "q": {"a": 1.0, "x": 0.5, "b": 0.25, "d": 3.0}}

TEXT = ("runid", "relstring")
SPELLINGS = [
    "P_5",
    "P.2",
    "P_6.5",
    "ndcg_cut.23.4",
    "P_00003",
    "ndcg_cut.5,10",
    "ndcg_cut_1",
    "recall_7,3",
    "recall.10,9",
    "success_2",
    "Rprec_mult_0.25",
    "Rprec_mult.0.5,1.75",
    "set_F_0.5",
    "iprec_at_recall_0.5",
    "iprec_at_recall.0.25,0.75",
    "map_cut_3",
    "relative_P_4",
    "map_5",
    "official",
    "set",
    "all_trec",
    *sorted(original.supported_measures),
]


def both(gold, run, measures, level=1, judged_only=False):
    return [
        package.RelevanceEvaluator(gold, measures, level, judged_only).evaluate(run)
        for package in (original, ours)
    ]


def assert_same(gold, run, measures, level=1, judged_only=False) -> None:
    """Compare keys, order, types and values."""
    theirs, mine = both(gold, run, measures, level, judged_only)
    assert list(mine) == list(theirs)
    for query, values in theirs.items():
        assert list(mine[query]) == list(values)
        for key, value in values.items():
            assert type(mine[query][key]) is type(value) is float
            if key in TEXT:
                assert mine[query][key] == 0.0
            else:
                assert mine[query][key] == value, f"{key} of {query!r}"


QUERIES = ["q1", "q2", "q10", "ж"]
ITEMS = ["a", "A", "b", "d10", "d9", "é", "e\u0301", "\uffee", "😀", "字", "x y"]
SCORES = [3.0, 2.5, 0.25, 0.0, -0.0, -1.0, 2.0**-20, math.inf, -math.inf]
SAME_IN_32_BITS = [0.1, math.nextafter(0.1, 1), 0.1 + 1e-9, 1e39, 1e300, 1e-46, -1e-300]

golds = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(st.sampled_from(ITEMS), st.integers(-1, 3)).filter(
        lambda grades: not grades or max(grades.values()) >= 0
    ),
    min_size=1,
)
runs = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(
        st.sampled_from(ITEMS),
        st.sampled_from(SCORES + SAME_IN_32_BITS) | st.floats(allow_nan=False),
        min_size=1,
    ),
)
requested_measures = st.just(sorted(original.supported_measures)) | st.lists(
    st.sampled_from(SPELLINGS), min_size=1, max_size=6, unique=True
)


def with_something_judged(gold, run):
    """Leave out the queries for which nothing judged was retrieved."""
    return {
        query: items
        for query, items in run.items()
        if not gold.get(query) or any(gold[query].get(item, -1) >= 0 for item in items)
    }


@given(
    gold=golds,
    run=runs,
    measures=requested_measures,
    level=st.sampled_from([1, 2]),
    judged_only=st.booleans(),
)
@examples(100, 2000)
def test_measures_of_small_runs_agree_with_pytrec_eval(gold, run, measures, level, judged_only):
    if judged_only:
        run = with_something_judged(gold, run)
    assert_same(gold, run, measures, level, judged_only)


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("level", [1, 2])
def test_large_run_agrees_with_pytrec_eval(level, judged_only):
    chance = random.Random(2019)
    gold, run = {}, {}
    for query in range(60):
        judged = [f"d{number}" for number in chance.sample(range(3000), 150)]
        grades = [level, 3] * chance.choice([5, 10, 15, 37]) + [-1, 0] * 20
        gold[f"q{query}"] = dict(zip(judged, grades, strict=False))
        found = [f"d{number}" for number in chance.sample(range(3000), chance.randint(1, 1500))]
        run[f"q{query}"] = {item: chance.randrange(1000) / 7 for item in found + judged[::3]}
    assert_same(gold, run, original.supported_measures, level, judged_only)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spelling_gives_the_keys_and_values_of_pytrec_eval(spelling):
    assert_same(GOLD, RUN, {spelling})


@pytest.mark.parametrize(
    "spelling", ["set_F_0.5", "utility_1,2,3,4", "relstring_3", "11pt_avg_0.25,0.5"]
)
def test_key_of_a_measure_with_one_value_has_no_parameter(spelling):
    assert_same({"q": {"a": 1, "b": 1, "c": 1, "d": 1}}, {"q": {"a": 1.0, "b": 0.5}}, {spelling})


@pytest.mark.parametrize(
    "measures",
    [
        ["P_7", "P"],
        ["P", "P_7"],
        ["official", "P_7"],
        ["P_7", "P.3,7", "P_1"],
        ("map", "P_5"),
        frozenset({"map"}),
    ],
    ids=str,
)
def test_cutoffs_of_one_measure_are_kept_together(measures):
    assert_same(GOLD, RUN, measures)


def test_measures_may_be_a_generator():
    evaluator = ours.RelevanceEvaluator(GOLD, (name for name in ("map", "bpref")))
    assert list(evaluator.evaluate(RUN)["q"]) == ["map", "bpref"]


def test_no_measures_give_empty_results():
    theirs, mine = both(GOLD, RUN, set())
    assert mine == theirs == {"r": {}, "q": {}}


def test_supported_names_are_those_of_pytrec_eval():
    assert ours.supported_measures == original.supported_measures
    assert ours.supported_nicknames == original.supported_nicknames
    assert set(original.__all__) | {"compute_aggregated_measure"} == set(ours.__all__)


def version(number, gold, run, measures):
    return ours.RelevanceEvaluator(gold, measures, trec_eval_version=number).evaluate(run)


def test_points_of_recall_are_those_of_the_version_asked_for():
    gold = {"q": {"a": 1, "b": 1, "c": 1}}
    run = {"q": {"a": 3.0, "x": 2.0, "b": 1.0}}
    measures = {"iprec_at_recall_0.4", "11pt_avg"}
    assert_same(gold, run, measures)
    old, new = (version(number, gold, run, measures)["q"] for number in (9, 10))
    # 1.2 + 0.9 truncated: from two relevant items on. 1.2 rounded: from one on.
    assert (old["iprec_at_recall_0.40"], new["iprec_at_recall_0.40"]) == (2 / 3, 1.0)
    assert new["11pt_avg"] > old["11pt_avg"]


def test_scores_tie_with_as_many_bits_as_in_the_version_asked_for():
    run = {"q": {"a": math.nextafter(1.0, 2.0), "b": 1.0}}
    assert_same({"q": {"b": 1}}, run, {"recip_rank"})
    old, new = (version(number, {"q": {"b": 1}}, run, {"recip_rank"}) for number in (9, 10))
    assert (old, new) == ({"q": {"recip_rank": 1.0}}, {"q": {"recip_rank": 0.5}})


def test_version_10_gives_the_values_of_trec_eval_10(tmp_path):
    chance = random.Random(7)
    gold = {f"q{n}": {f"d{m}": m % 3 for m in range(chance.randint(1, 12))} for n in range(20)}
    run = {q: {f"d{m}": chance.random() for m in chance.sample(range(15), 9)} for q in gold}
    judgments = [f"{q} 0 {d} {grade}" for q, items in gold.items() for d, grade in items.items()]
    listed = [f"{q} Q0 {d} 1 {score!r} t" for q, items in run.items() for d, score in items.items()]
    (tmp_path / "qrels").write_text("\n".join(judgments))
    (tmp_path / "run").write_text("\n".join(listed))
    out = io.StringIO()
    measures = ["iprec_at_recall", "11pt_avg", "map", "ndcg"]
    flags = [part for name in measures for part in ("-m", name)]
    trec_eval(["-q", "-n", *flags, str(tmp_path / "qrels"), str(tmp_path / "run")], out)
    printed = {
        (topic, name.strip()): value
        for name, topic, value in (line.split("\t") for line in out.getvalue().splitlines())
    }
    values = version(10, gold, run, measures)
    assert printed == {
        (query, key): f"{value:.4f}"
        for query, of_query in values.items()
        for key, value in of_query.items()
    }


def test_other_versions_of_trec_eval_are_refused():
    with refused(field="trec_eval_version"):
        ours.RelevanceEvaluator(GOLD, {"map"}, trec_eval_version=8)


def test_queries_are_in_the_order_of_the_run():
    gold = {query: {"a": 1} for query in ("b", "a", "c", "not run")}
    run = {query: {"a": 1.0} for query in ("c", "not judged", "a", "b")}
    theirs, mine = both(gold, run, {"map"})
    assert list(mine) == list(theirs) == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("gold", "run"),
    [
        (GOLD, {}),
        (GOLD, None),
        (GOLD, {"another": {"a": 1.0}}),
        ({}, RUN),
        ({"q": {}, "r": {}}, RUN),
    ],
)
def test_nothing_to_compare_gives_an_empty_dict(gold, run):
    assert both(gold, run, {"map", "P"}) == [{}, {}]


def test_query_with_empty_judgments_is_left_out():
    theirs, mine = both({**GOLD, "q": {}}, RUN, {"map"})
    assert mine == theirs == {"r": {"map": 0.5}}


def test_one_evaluator_evaluates_many_runs():
    evaluators = [p.RelevanceEvaluator(GOLD, {"all_trec"}) for p in (original, ours)]
    kept = {"q", "r"}
    for run in (RUN, {"q": RUN["q"]}, {"r": {"a": 1.0, "b": 1.0}, "z": {"a": 1.0}}, {}, RUN):
        theirs, mine = (evaluator.evaluate(run) for evaluator in evaluators)
        assert list(mine) == list(theirs) == [query for query in run if query in kept]
        for query in mine:
            for key in ("map", "ndcg", "num_ret", "recip_rank", "set_F", "bpref"):
                assert mine[query][key] == theirs[query][key]


def test_evaluator_keeps_a_copy_of_its_judgments():
    results = []
    for package in (original, ours):
        gold = {"q": {"a": 1}}
        evaluator = package.RelevanceEvaluator(gold, {"map"})
        gold["q"]["a"] = 0
        results.append(evaluator.evaluate({"q": {"a": 1.0}}))
    assert results == [{"q": {"map": 1.0}}] * 2


def test_defaultdicts_are_accepted_and_not_changed():
    gold, run = (defaultdict(dict, {q: dict(i) for q, i in given.items()}) for given in (GOLD, RUN))
    assert_same(gold, run, {"all_trec"})
    assert set(gold) == set(GOLD)  # looking up a query would have added it
    assert set(run) == set(RUN)


@pytest.mark.parametrize("kind", [float, int, bool, np.float64])
def test_types_of_scores_that_pytrec_eval_accepts_are_accepted(kind):
    run = {"q": {"a": kind(0), "b": kind(1), "x": kind(1)}}
    assert_same(GOLD, run, {"map", "recip_rank", "ndcg"})


@pytest.mark.parametrize("kind", [int, bool])
def test_types_of_grades_that_pytrec_eval_accepts_are_accepted(kind):
    assert_same({"q": {"a": kind(1), "b": kind(0)}}, RUN, {"map", "num_rel", "ndcg"})


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_numpy_grades_that_pytrec_eval_refuses_are_accepted(kind):
    gold = {"q": {"a": kind(1), "b": kind(2)}}
    with pytest.raises(TypeError):
        original.RelevanceEvaluator(gold, {"map"})
    plain = {"q": {"a": 1, "b": 2}}
    results = [ours.RelevanceEvaluator(g, {"map", "ndcg"}).evaluate(RUN) for g in (gold, plain)]
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_numpy_scores_that_pytrec_eval_refuses_are_accepted(kind):
    run = {"q": {"a": kind(1), "b": kind(2)}}
    with pytest.raises(TypeError):
        original.RelevanceEvaluator(GOLD, {"map"}).evaluate(run)
    mine = [
        ours.RelevanceEvaluator(GOLD, {"map", "ndcg"}).evaluate(r)
        for r in (run, {"q": {"a": 1.0, "b": 2.0}})
    ]
    assert mine[0] == mine[1]


def test_arguments_have_the_names_and_positions_of_pytrec_eval():
    for package in (original, ours):
        placed = package.RelevanceEvaluator(GOLD, {"num_ret", "num_rel"}, 2, True).evaluate(RUN)
        named = package.RelevanceEvaluator(
            query_relevance=GOLD,
            measures={"num_ret", "num_rel"},
            relevance_level=2,
            judged_docs_only_flag=True,
        ).evaluate(scores=RUN)
        assert placed == named
        assert placed["q"] == {"num_ret": 2.0, "num_rel": 1.0}


def test_empty_list_and_negative_judgments_give_0():
    gold = {"listed nothing": {"a": 1}, "all negative": {"a": -1}}
    run = {"listed nothing": {}, "all negative": {"a": 1.0}}
    mine = ours.RelevanceEvaluator(gold, {"map", "num_ret", "ndcg", "set_F"}).evaluate(run)
    nothing = {"map": 0.0, "ndcg": 0.0, "set_F": 0.0}
    assert mine == {
        "listed nothing": {"num_ret": 0.0, **nothing},
        "all negative": {"num_ret": 1.0, **nothing},
    }


# Aggregation


@given(values=st.lists(st.floats(-12, 0) | st.floats(0, 1), min_size=1, max_size=50))
@examples(50, 1000)
def test_means_over_queries_agree(values):
    for measure in ("map", "P_10", "gm_map", "gm_bpref", "recip_rank", "runid"):
        theirs = original.compute_aggregated_measure(measure, values)
        mine = ours.compute_aggregated_measure(measure, values)
        assert type(mine) is type(theirs) is float
        assert math.isclose(mine, theirs, rel_tol=1e-12, abs_tol=1e-12), measure


@given(values=st.lists(st.integers(0, 10**6).map(float)))
@examples(20, 400)
def test_counts_over_queries_agree(values):
    for measure in ("num_ret", "num_q", "num_rel_ret", "num_nonrel_judged_ret"):
        theirs = original.compute_aggregated_measure(measure, values)
        mine = ours.compute_aggregated_measure(measure, values)
        assert mine == theirs, measure
        assert type(mine) is type(theirs) is float


def test_arrays_are_aggregated():
    for measure in ("map", "num_ret", "gm_map"):
        mine, theirs = (
            p.compute_aggregated_measure(measure, np.array([0.5, 1.0])) for p in (ours, original)
        )
        assert mine == pytest.approx(theirs, rel=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("measure", ["map", "gm_map"])
def test_the_mean_over_no_queries_is_not_a_number(measure):
    assert math.isnan(original.compute_aggregated_measure(measure, []))
    assert math.isnan(ours.compute_aggregated_measure(measure, []))


# Files

words = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=4)
gaps = st.sampled_from([" ", "\t", "  ", " \t "])
ends = st.sampled_from(["\n", "", "\r\n", " \n"])


@st.composite
def lines(draw, numbers, before, after):
    """Draw lines with any white space between fields: query, filler, item, number, filler."""
    pairs = draw(st.lists(st.tuples(words, words), unique=True, max_size=8))
    drawn = []
    for query, item in pairs:
        fields = [query, "0", item, *before, str(draw(numbers)), *after]
        drawn.append(draw(gaps).join(fields) + draw(ends))
    return drawn


@given(lines(st.floats(allow_nan=False) | st.integers(), ["1"], ["tag"]))
@examples(100, 2000)
def test_lines_of_runs_are_read_as_by_pytrec_eval(given_lines):
    theirs, mine = original.parse_run(given_lines), ours.parse_run(given_lines)
    assert mine == theirs
    assert [list(items) for items in mine.values()] == [list(items) for items in theirs.values()]
    assert all(type(score) is float for items in mine.values() for score in items.values())


@given(lines(st.integers(-2, 9), [], []))
@examples(100, 2000)
def test_lines_of_qrels_are_read_as_by_pytrec_eval(given_lines):
    theirs, mine = original.parse_qrel(given_lines), ours.parse_qrel(given_lines)
    assert mine == theirs
    assert [list(items) for items in mine.values()] == [list(items) for items in theirs.values()]
    assert all(type(grade) is int for items in mine.values() for grade in items.values())


@pytest.mark.parametrize(
    ("bad", "value"),
    [
        ("q Q0 b 2 0.5", "5"),
        ("q Q0 b 2 0.5 tag more", "7"),
        ("", "0"),
        ("\n", "0"),
        ("q Q0 b 2 high tag", "'high'"),
    ],
)
def test_bad_line_of_a_run_is_reported_by_its_number(bad, value):
    given_lines = ["q Q0 a 1 1.5 tag\n", bad]
    with pytest.raises(ValueError):
        original.parse_run(given_lines)
    with refused(path=None, line=2) as error:
        ours.parse_run(given_lines)
    assert value in error.value.problem


@pytest.mark.parametrize(
    ("bad", "value"),
    [
        ("q 0 b", "3"),
        ("q 0 b 1 more", "5"),
        ("", "0"),
        ("\n", "0"),
        ("q 0 b high", "'high'"),
        ("q 0 b 1.0", "'1.0'"),
    ],
)
def test_bad_line_of_qrels_is_reported_by_its_number(bad, value):
    given_lines = ["q 0 a 1\n", "q 0 c 1\n", bad]
    with pytest.raises(ValueError):
        original.parse_qrel(given_lines)
    with refused(path=None, line=3) as error:
        ours.parse_qrel(given_lines)
    assert value in error.value.problem


@pytest.mark.parametrize(
    ("parse", "line"), [("parse_run", "q Q0 a 1 1.5 tag"), ("parse_qrel", "q 0 a 1")]
)
def test_repeated_item_is_reported_by_its_line(parse, line):
    with pytest.raises(AssertionError):
        getattr(original, parse)([line, line])
    with refused(path=None, line=2, field="item") as error:
        getattr(ours, parse)([line, line])
    assert "'a'" in error.value.problem


# Errors


@pytest.mark.parametrize(
    "name", ["nope", "MAP", "", "P_", "P.", "P-5", "P_,5", "map.x", "prefs_simp", "P_avgjg_5", "5"]
)
def test_unsupported_measure_raises_the_value_error_of_pytrec_eval(name):
    with pytest.raises(ValueError) as theirs:
        original.RelevanceEvaluator(GOLD, {"map", name})
    with pytest.raises(ValueError) as mine:
        ours.RelevanceEvaluator(GOLD, {"map", name})
    assert str(mine.value).splitlines()[0] == str(theirs.value)


@pytest.mark.parametrize("nickname", ["all_prefs", "prefs", "qrels_jg"])
def test_nickname_of_unsupported_measures_is_a_value_error(nickname):
    with pytest.raises(ValueError):
        original.RelevanceEvaluator(GOLD, {nickname})
    with refused(MeasureError):
        ours.RelevanceEvaluator(GOLD, {nickname})


@pytest.mark.parametrize("name", ["P_5x", "P_5_6", "P_5,"])
def test_name_that_pytrec_eval_reads_in_part_is_an_error(name):
    assert list(original.RelevanceEvaluator(GOLD, {name}).evaluate(RUN)["q"]) == ["P_5"]
    with pytest.raises(ValueError):
        ours.RelevanceEvaluator(GOLD, {name})


@pytest.mark.parametrize("name", ["P_0", "ndcg_5", "P_5,05"])
def test_parameter_that_ends_the_process_of_pytrec_eval_is_an_error(name):
    program = (
        "import pytrec_eval\n"
        f"pytrec_eval.RelevanceEvaluator({GOLD!r}, {{{name!r}}}).evaluate({RUN!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode < 0
    assert "Assertion" in done.stderr
    with pytest.raises(ValueError):
        ours.RelevanceEvaluator(GOLD, {name})


@pytest.mark.parametrize("grade", [1.5, "1", None, math.nan, 2**70])
def test_wrong_grade_is_reported_with_query_and_item(grade):
    with pytest.raises((TypeError, SystemError)):
        original.RelevanceEvaluator({"q": {"a": grade}}, {"map"})
    with refused(field="grade") as error:
        ours.RelevanceEvaluator({"q": {"a": grade}}, {"map"})
    assert all(value in error.value.problem for value in ("'q'", "'a'", repr(grade)))


@pytest.mark.parametrize("score", ["high", None])
def test_wrong_score_is_reported_with_query_and_item(score):
    with pytest.raises(TypeError):
        original.RelevanceEvaluator(GOLD, {"map"}).evaluate({"q": {"a": score}})
    with refused(field="score") as error:
        ours.RelevanceEvaluator(GOLD, {"map"}).evaluate({"q": {"a": score}})
    assert all(value in error.value.problem for value in ("'q'", "'a'", repr(score)))


def test_score_that_is_not_a_number_is_reported_with_query_and_item():
    with refused(field="score") as error:
        ours.RelevanceEvaluator(GOLD, {"map"}).evaluate({"q": {"a": math.nan, "b": 1.0}})
    assert all(value in error.value.problem for value in ("'q'", "'a'", "nan"))


def test_infinite_scores_order_a_list_as_in_pytrec_eval():
    run = {"q": {"a": -math.inf, "b": 1.0, "c": math.inf, "d": -math.inf, "x": math.inf}}
    assert_same(GOLD, run, original.supported_measures)


def test_ids_that_are_numbers_are_refused():
    gold, run = {1: {"a": 1}}, {1: {"a": 1.0}}
    with pytest.raises(TypeError):
        original.RelevanceEvaluator(gold, {"map"}).evaluate(run)
    with refused(field="query") as error:
        ours.RelevanceEvaluator(gold, {"map"}).evaluate(run)
    assert "1" in error.value.problem


@pytest.mark.parametrize("level", [0, "1", 1.5])
def test_wrong_level_of_relevance_is_refused(level):
    with pytest.raises(TypeError):
        original.RelevanceEvaluator(GOLD, {"map"}, relevance_level=level)
    with refused(field="relevance_level") as error:
        ours.RelevanceEvaluator(GOLD, {"map"}, relevance_level=level)
    assert repr(level) in error.value.problem


# Real runs

NOT_COMPARED = ("iprec_at_recall", "11pt_avg", *TEXT)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the runs of TREC DL 2019 are not in {DATA}")
def test_runs_of_trec_dl_2019_agree_with_pytrec_eval():
    gold = ours.parse_qrel((DATA / "qrels.txt").read_text().splitlines())
    paths = sorted((DATA / "runs").glob("*.gz"))
    assert len(paths) == 37
    evaluators = [p.RelevanceEvaluator(gold, {"all_trec"}, 2) for p in (original, ours)]
    for path in paths if FULL else paths[::6]:
        with gzip.open(path, "rt") as file:
            run = ours.parse_run(file)
        exact = {  # in 32 bits, so that both see the same ties
            query: dict(
                zip(items, np.float32(list(items.values())).astype(float).tolist(), strict=True)
            )
            for query, items in run.items()
        }
        theirs, mine = (evaluator.evaluate(exact) for evaluator in evaluators)
        assert list(mine) == list(theirs)
        for query, values in theirs.items():
            assert list(mine[query]) == list(values)
            different = {
                key
                for key, value in values.items()
                if mine[query][key] != value and not key.startswith(NOT_COMPARED)
            }
            assert not different, f"{path.name}, {query}"
