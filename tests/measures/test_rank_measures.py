"""Every declared rank measure has the value of its slow definition in `oracles/rank.py`."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.data import Gold, Run
from karat.errors import ConventionError, KaratWarning
from karat.measures import REGISTRY, Measure, Plan, parse, score
from oracles import rank as oracle
from support.effort import FULL, examples
from support.errors import refused

RANKED = {name: declared for name, declared in REGISTRY.items() if declared.family == "rank"}

CUTOFFS = {
    "none": [None],
    "required": [1, 2, 3, 5, 200],
    "optional": [None, 1, 2, 3, 5, 200],
    "share": [0, 0.1, 0.25, 0.5, 0.75, 1],
}

# Custom gains: far apart, a gain for irrelevant items, the same for two grades, and less than 1
# apart while a higher grade has a smaller gain.
GAINS = ["linear", "exp2", {1: 3, 2: 10}, {0: 0.5, 1: 0}, {1: 2}, {1: 0.7, 2: 0.6, 3: 0.25}]
PARAMETERS = {
    ("P", "denominator"): ["k", "retrieved"],
    ("F1", "denominator"): ["k", "retrieved"],
    ("AP", "denominator"): ["relevant", "hits", "min"],
    ("DCG", "gain"): GAINS,
    ("IDCG", "gain"): GAINS,
    ("nDCG", "gain"): GAINS,
    ("nDCGrel", "gain"): GAINS,
    ("RnDCG", "gain"): GAINS,
    ("G", "gain"): GAINS,
    ("Rprec", "multiple"): [1.0, 0.05, 0.2, 0.7, 1.5, 5.0],
    ("RBP", "gain"): ["binary", "linear", "query"],
    ("RBP", "p"): [0.8, 0.95],
    ("RBP", "max_grade"): [None, 41],
    ("ERR", "max_grade"): [None, 40, 41],
    ("nERR", "max_grade"): [None, 40, 41],
    ("RBPresid", "p"): [0.8, 0.95],
    ("SetF", "weight"): [1.0, 0.25, 3.0],
    # Products and sums of these are exact in any order.
    ("Utility", "a"): [1.0, 3.0],
    ("Utility", "b"): [-1.0, -0.25],
    ("Utility", "c"): [0.0, -0.5],
    ("Utility", "d"): [0.0, 0.125],
    ("Utility", "documents"): [0, 1, 10_000],
}
LEVELS = [1, 2]

# One division, or one sum in rank order: every bit must agree. The other measures multiply in an
# order that the kernel chooses.
EXACT = {"P", "R", "Success", "Full", "Hits", "R_cap", "Rprec", "RR", "FirstRelevant", "AP"}
EXACT |= {"Bpref", "DCG", "nDCG", "Judged", "Unjudged"}
EXACT |= {"GMAP", "GMBpref", "IDCG", "IPrec", "SetAP", "Utility"}
EXACT |= {"NumQ", "NumRet", "NumRel", "NumRelRet", "NumNonrelRet"}


@dataclass(frozen=True)
class Variant:
    """A measure with cutoff and parameters, as karat parses it and as the oracle takes it."""

    name: str
    k: float | None
    params: dict

    @cached_property
    def measure(self) -> Measure:
        given = {name: value for name, value in self.params.items() if value is not None}
        params = ", ".join(f"{name}={value}" for name, value in given.items())
        cutoff = "" if self.k is None else f"@{self.k}"
        return parse(self.name + (f"({params})" if params else "") + cutoff)

    def expected(self, gold, run, largest_grade, conventions) -> dict[str, float | None]:
        return {
            query: oracle.value(
                self.name, run.get(query), grades, self.k, self.params, largest_grade, conventions
            )
            for query, grades in gold.items()
        }

    def agrees(self, value: float | None, expected: float | None) -> bool:
        if value is None or expected is None:
            return value is expected
        if self.name in EXACT:
            return value == expected
        return math.isclose(value, expected, rel_tol=1e-12)

    def agrees_over_queries(self, value: float | None, expected: float | None) -> bool:
        """Every combination is exact except the geometric mean, which takes roots or logs."""
        if expected is None or self.name not in oracle.GEOMETRIC_MEANS:
            return value == expected
        return math.isclose(value, expected, rel_tol=1e-12)


@cache
def variants(name: str) -> tuple[Variant, ...]:
    """Every cutoff with every choice of parameters, written out even where it is the default.

    None is a parameter that is left out.
    """
    declared = REGISTRY[name]
    choices = [
        LEVELS if param.name == "rel" else PARAMETERS[name, param.name] for param in declared.params
    ]
    return tuple(
        Variant(name, k, dict(zip([param.name for param in declared.params], values, strict=True)))
        for k in CUTOFFS[declared.cutoff]
        for values in product(*choices)
    )


N_PARTS = 6


def part_of_variants(part: int) -> list[Variant]:
    """Every measure, in a sixth of its variants; together the parts have all of them."""
    return [
        variant
        for name in RANKED
        for variant in variants(name)[part % min(N_PARTS, len(variants(name))) :: N_PARTS]
    ]


# Few ids and few scores, so that hits, repeats and ties are common. Some ids differ only in case,
# normal form or a NUL, and some sort differently as UTF-16 and as bytes.
QUERIES = ["q1", "Q1", "ж", "😀", "10"]
ITEMS = ["a", "A", "a\x01", "é", "e\u0301", "\uffee", "😀", "字", "10", "9", "filler 3"]
GRADES = [-100, -1, 0, 0, 1, 1, 2, 3, 40]
SCORES = [1.0, math.nextafter(1.0, 2.0), 0.0, -0.0, -1.5]
GAPS = [0] * 10 + [1, 2, 7, 120]


def with_gaps(rows: list[tuple[int, str, float]]) -> list[tuple[str, float]]:
    """Put as many unjudged items above each item as its gap says, at the same score."""
    filled: list[tuple[str, float]] = []
    for gap, item, points in rows:
        filled += [(f"filler {len(filled) + i}", points) for i in range(gap)]
        filled.append((item, points))
    return filled


def short_or_full(collection, *elements):
    """Collections of any size up to 9, and as often ones that are long enough to be cut."""
    return collection(*elements, max_size=9) | collection(*elements, min_size=5, max_size=9)


golds = st.dictionaries(
    st.sampled_from(QUERIES),
    short_or_full(st.dictionaries, st.sampled_from(ITEMS), st.sampled_from(GRADES)),
    min_size=1,
)
runs = st.dictionaries(
    st.sampled_from(QUERIES),
    short_or_full(
        st.lists,
        st.tuples(st.sampled_from(GAPS), st.sampled_from(ITEMS), st.sampled_from(SCORES)),
    ).map(with_gaps),
)
conventions = st.fixed_dictionaries(
    {
        "missing": st.sampled_from(["zero", "skip"]),
        "no_gold": st.sampled_from(["family", "zero", "one", "recall", "skip"]),
        "duplicates": st.sampled_from(["first", "count", "set"]),
        "unjudged": st.sampled_from(["irrelevant", "skip"]),
    }
)


# Forms of the same gold: what karat takes, and the dict that it means.


def gold_as_dict(gold):
    return Gold.of(gold), gold


def gold_as_records(gold):
    return Gold.of([{"query_id": q, "relevant": grades} for q, grades in gold.items()]), gold


def gold_as_frame(gold):
    rows = [(q, item, grade) for q, grades in gold.items() for item, grade in grades.items()]
    frame = pl.DataFrame(rows[::-1], schema=["query_id", "item_id", "grade"], orient="row")
    return Gold.of(frame), {q: grades for q, grades in gold.items() if grades}


# Forms of a run: what karat takes, and the ranked lists that it means.


def run_as_dicts_of_scores(run):
    once = {q: dict(rows) for q, rows in run.items()}
    return Run.of(once), {q: oracle.ranked(list(scores.items())) for q, scores in once.items()}


def run_as_lists(run):
    lists = {q: [item for item, _ in rows] for q, rows in run.items()}
    return Run.of(lists), lists


def run_as_records(run):
    lists = {q: [item for item, _ in rows] for q, rows in run.items()}
    records = [
        {"query_id": q, "results": [{"id": item} for item in items]} for q, items in lists.items()
    ]
    return Run.of(records), lists


def run_as_frame_of_scores(run):
    rows = [(q, item, points) for q, scored in run.items() for item, points in scored]
    frame = pl.DataFrame(rows[::-1], schema=["query_id", "item_id", "score"], orient="row")
    return Run.of(frame), {q: oracle.ranked(scored) for q, scored in run.items() if scored}


def run_as_frame_of_ranks(run):
    rows = [
        (q, item, 10 * place) for q, scored in run.items() for place, (item, _) in enumerate(scored)
    ]
    frame = pl.DataFrame(rows[::-1], schema=["query_id", "item_id", "rank"], orient="row")
    return Run.of(frame), {q: [item for item, _ in scored] for q, scored in run.items() if scored}


def run_as_frame_in_row_order(run):
    """Rows of different queries alternate: all first places, then all second places, and so on."""
    rows = [(place, q, item) for q, scored in run.items() for place, (item, _) in enumerate(scored)]
    frame = pl.DataFrame(sorted(rows), schema=["place", "query_id", "item_id"], orient="row")
    lists = {q: [item for item, _ in scored] for q, scored in run.items() if scored}
    return Run.of(frame.drop("place")), lists


GOLD_FORMS = [gold_as_dict, gold_as_frame, gold_as_records]
RUN_FORMS = [
    run_as_dicts_of_scores,
    run_as_lists,
    run_as_records,
    run_as_frame_of_scores,
    run_as_frame_of_ranks,
    run_as_frame_in_row_order,
]


@dataclass(frozen=True)
class Data:
    """Gold or a run: the form it has, what karat gets, and what that means."""

    form: str
    given: Gold | Run
    meant: dict


def has_rows(by_query) -> bool:
    """Whether a table or a record would have a row; one without any is an InputError."""
    return any(by_query.values())


@st.composite
def in_any_form(draw, data, forms, forms_without_rows):
    """Draw data in a form that is named, so that a failing case can be built again."""
    form = draw(st.sampled_from(forms))
    source = data if form in forms_without_rows else data.filter(has_rows)
    return Data(form.__name__, *form(draw(source)))


any_gold = in_any_form(golds, GOLD_FORMS, [gold_as_dict])
any_run = in_any_form(runs, RUN_FORMS, [run_as_dicts_of_scores, run_as_lists])


def largest_grade_of(gold) -> int:
    return max((grade for grades in gold.values() for grade in grades.values()), default=0)


def assert_equal_to_oracle(chosen, gold, run, largest_grade, words) -> None:
    """Score the same data both ways and compare every query of every measure."""
    measures = [variant.measure for variant in chosen]
    plan = Plan.of(measures, conventions=words, largest_grade=largest_grade)
    table = score(gold.given, run.given, plan)
    queries = sorted(gold.meant, key=str.encode)
    assert table.frame["query_id"].to_list() == queries
    for variant, measure in zip(chosen, measures, strict=True):
        expected = variant.expected(gold.meant, run.meant, largest_grade, words)
        values = dict(zip(queries, table.frame[measure.name].to_list(), strict=True))
        for query in queries:
            assert variant.agrees(values[query], expected[query]), (
                f"{measure.name} of {query!r} is {values[query]}, the oracle has {expected[query]}"
            )
        over_queries = oracle.over_queries(variant.name, list(values.values()))
        assert variant.agrees_over_queries(table.value(measure), over_queries)


def test_every_declared_rank_measure_has_an_oracle():
    assert set(RANKED) == set(oracle.MEASURES)


def test_every_variant_is_in_a_part():
    every = {variant.measure for name in RANKED for variant in variants(name)}
    in_parts = {variant.measure for part in range(N_PARTS) for variant in part_of_variants(part)}
    assert in_parts == every


@pytest.mark.parametrize("name", RANKED)
def test_declared_combination_over_queries_matches_the_oracle(name):
    combinations = {
        "sum": oracle.SUMS,
        "median": oracle.MEDIANS,
        "geometric": oracle.GEOMETRIC_MEANS,
    }
    expected = next((word for word, names in combinations.items() if name in names), "mean")
    assert REGISTRY[name].combine == expected


@given(
    gold=any_gold,
    run=any_run,
    words=conventions,
    grades_elsewhere=st.sampled_from([0, 0, 3, 41]),
    part=st.sampled_from(range(N_PARTS)),
)
@examples(100, 1200)
def test_rank_measures_match_the_oracle(gold, run, words, grades_elsewhere, part):
    largest = max(0, largest_grade_of(gold.meant), grades_elsewhere)
    assert_equal_to_oracle(part_of_variants(part), gold, run, largest, words)


def nearly_sorted(chance) -> list[tuple[str, float]]:
    """Items with falling scores, some tied, except that one pair of neighbours may be swapped."""
    items = chance.sample(ITEMS, chance.randrange(5))
    scores = sorted((chance.choice(SCORES) for _ in items), reverse=True)
    if len(scores) > 1 and chance.random() < 0.7:
        at = chance.randrange(1, len(scores))
        scores[at - 1 : at + 1] = scores[at], scores[at - 1]
    return list(zip(items, scores, strict=True))


@pytest.mark.parametrize("run_form", RUN_FORMS)
def test_many_short_nearly_sorted_lists_match_the_oracle(run_form):
    """Sorting has a shortcut for sorted lists, which a single exception must not take."""
    chance = random.Random(run_form.__name__)
    chosen = [Variant("DCG", None, {"gain": "linear"}), Variant("AP", 2, {"rel": 1})]
    for _ in range(1000 if FULL else 60):
        queries = chance.sample(QUERIES, chance.choice([1, 2, 2, 3]))
        run = {query: nearly_sorted(chance) for query in queries}
        gold = {query: {item: chance.choice(GRADES) for item in ITEMS} for query in queries}
        if has_rows(run):
            gold_form = chance.choice(GOLD_FORMS)
            data = Data(gold_form.__name__, *gold_form(gold)), Data("run", *run_form(run))
            assert_equal_to_oracle(chosen, *data, largest_grade_of(gold), {})


# Every form of a run, with both forms of gold and both conventions on duplicates in turn.
DEEP = [
    (run_form, gold_form, duplicates)
    for at, run_form in enumerate(RUN_FORMS)
    for combined, (gold_form, duplicates) in enumerate(
        product([gold_as_dict, gold_as_frame], ["first", "count"])
    )
    if FULL or combined == at % 4
]


@pytest.mark.parametrize(("run_form", "gold_form", "duplicates"), DEEP)
def test_deep_lists_match_the_oracle(run_form, gold_form, duplicates):
    chance = random.Random(7)
    pool = [f"d{i}" for i in range(3000)]
    gold, run = {}, {}
    for query, depth in enumerate([0, 1, 40, 300, 2000]):
        judged = chance.sample(pool, chance.choice([1, 12, 150]))
        gold[f"q{query}"] = {item: chance.choice(GRADES) for item in judged}
        items = chance.choices([*pool, *judged * 5], k=depth)
        run[f"q{query}"] = [(item, chance.randrange(200) / 4) for item in items]
    chosen = [
        variant
        for name, declared in RANKED.items()
        for variant in variants(name)
        if declared.cutoff == "share" or variant.k in (None, 5, 200)
    ]
    deep_gold, deep_run = Data("gold", *gold_form(gold)), Data("run", *run_form(run))
    words = {"duplicates": duplicates}
    assert_equal_to_oracle(chosen, deep_gold, deep_run, largest_grade_of(gold), words)


def test_recall_points_match_the_oracle_for_any_number_of_relevant_items():
    """Each further item has a lower precision, so no other number of items gives the same value."""
    gold, run = {}, {}
    for n in range(46):
        query = f"{n} relevant"
        gold[query] = {"irrelevant": 0, **{f"d{i}": 1 for i in range(n)}}
        run[query] = [
            (item, 1.0) for i in range(n) for item in [f"d{i}", *[f"{i}/{j}" for j in range(i)]]
        ]
    chosen = [Variant("IPrec", i / 20, {"rel": 1}) for i in range(21)]
    chosen += [Variant("Rprec", None, {"rel": 1, "multiple": i / 20}) for i in range(1, 61)]
    chosen.append(Variant("11pt", None, {"rel": 1}))
    gold, run = Data("gold", *gold_as_dict(gold)), Data("run", *run_as_lists(run))
    assert_equal_to_oracle(chosen, gold, run, 1, {})


@pytest.mark.parametrize("n_judged", [0, 1, 30, 300])
@pytest.mark.parametrize("p", [0.5, 0.8, 0.99])
def test_rbp_residual_is_exact_below_many_judged_items(n_judged, p):
    judged = [f"d{i}" for i in range(n_judged)]
    gold = Data("gold", *gold_as_dict({"q": {"relevant": 1, **dict.fromkeys(judged, 0)}}))
    run = Data("run", *run_as_lists({"q": [(i, 1.0) for i in [*judged, *judged, "unjudged"]]}))
    assert_equal_to_oracle([Variant("RBPresid", None, {"p": p})], gold, run, 1, {})


@pytest.mark.parametrize("name", ["GMAP", "GMBpref"])
def test_geometric_mean_counts_small_values_as_a_hundred_thousandth(name):
    def over_queries(gold, run) -> float | None:
        return score(gold, run, Plan.of(name)).value(parse(name))

    gold = {f"q{i}": {"a": 1, "b": 0} for i in range(1000)}
    assert over_queries(gold, {"q0": ["b"]}) == pytest.approx(1e-5, rel=1e-12)
    half = {f"q{i}": ["a"] for i in range(500)}
    assert over_queries(gold, half) == pytest.approx(1e-5**0.5, rel=1e-12)


def test_small_values_are_raised_only_in_the_geometric_mean():
    gold = {"q": {f"r{i}": 1 for i in range(1000)}}
    run = {"q": [*[f"x{i}" for i in range(999)], "r0"]}
    table = score(gold, run, Plan.of("GMAP"))
    assert table.frame.rows() == [("q", 1e-6)]
    assert table.value(parse("GMAP")) == pytest.approx(1e-5, rel=1e-12)


@given(
    gold=any_gold,
    run=any_run,
    words=st.fixed_dictionaries(
        {
            "missing": st.sampled_from(["zero", "error"]),
            "unknown": st.sampled_from(["ignore", "error"]),
            "duplicates": st.sampled_from(["first", "error"]),
            "unjudged": st.sampled_from(["irrelevant", "skip"]),
        }
    ),
)
@examples(50, 600)
def test_only_what_a_convention_declares_an_error_is_refused(gold, run, words):
    plan = Plan.of(["P@5"], conventions=words)
    violated = oracle.violated_conventions(gold.meant, run.meant, words)
    if not violated:
        score(gold.given, run.given, plan)
        return
    with refused(ConventionError) as error:
        score(gold.given, run.given, plan)
    assert error.value.field in violated


@pytest.mark.parametrize("gold_form", GOLD_FORMS)
@pytest.mark.parametrize(
    "run_form", [run_as_lists, run_as_records, run_as_frame_of_scores, run_as_frame_of_ranks]
)
@pytest.mark.parametrize(
    ("convention", "queries", "items"),
    [
        ("missing", ["q"], ["a"]),
        ("unknown", ["q", "r", "unknown"], ["a"]),
        ("duplicates", ["q", "r"], ["a", "b", "a"]),
        ("duplicates", ["q", "r"], ["unjudged", "a", "unjudged"]),
    ],
)
def test_every_convention_that_can_be_an_error_refuses_its_case(
    convention, queries, items, gold_form, run_form
):
    gold, _ = gold_form({"q": {"a": 1}, "r": {"a": 1}})
    run, _ = run_form({query: [(item, 1.0) for item in items] for query in queries})
    score(gold, run, Plan.of("P@5"))
    with refused(ConventionError, field=convention):
        score(gold, run, Plan.of("P@5", conventions={convention: "error"}))


@given(gold=any_gold, run=any_run)
@examples(40, 600)
def test_counts_report_missing_unknown_and_repeated(gold, run):
    counts = score(gold.given, run.given, Plan.of(["P@5"])).counts
    gold, run = gold.meant, run.meant
    both = gold.keys() & run.keys()
    assert counts["queries"] == len(gold)
    assert counts["missing"] == len(gold.keys() - run.keys())
    assert counts["unknown"] == len(run.keys() - gold.keys())
    assert counts["no_relevant"] == sum(not any(g > 0 for g in gold[q].values()) for q in gold)
    assert counts["repeats"] == sum(len(run[q]) - len(set(run[q])) for q in both)


@given(
    ids=st.lists(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=4),
        min_size=1,
        max_size=12,
        unique=True,
    )
)
@examples(40, 600)
def test_tied_items_are_in_descending_order_of_their_utf8_bytes(ids):
    gold = {item: {item: 1} for item in ids}
    run = {query: dict.fromkeys(ids, 0.5) for query in ids}
    frame = pl.DataFrame(
        [(q, item, 0.5) for q in ids for item in ids],
        schema=["query_id", "item_id", "score"],
        orient="row",
    )
    order = sorted(ids, key=str.encode, reverse=True)
    for given_run in (run, frame):
        table = score(Gold.of(gold), Run.of(given_run), Plan.of(["FirstRelevant"]))
        ranks = dict(table.frame.rows())
        assert ranks == {item: rank for rank, item in enumerate(order, 1)}


def test_no_gold_depends_on_the_relevance_level_and_the_gains():
    gold = Gold.of({"only grade 0": {"a": 0}, "only grade 1": {"a": 1}})
    measures = ["P", "P(rel=2)", "nDCG", "nDCG(gain={0: 1, 1: 0})", "RBP(rel=2, gain=linear)"]
    plan = Plan.of(measures, conventions={"no_gold": "skip"}, largest_grade=1)
    table = score(gold, Run.of({"only grade 0": ["b"], "only grade 1": ["b"]}), plan)
    assert table.frame.rows() == [
        ("only grade 0", None, None, None, 0.0, None),
        ("only grade 1", 0.0, None, 0.0, None, None),
    ]


@pytest.mark.parametrize("gold_form", GOLD_FORMS)
@pytest.mark.parametrize("run_form", [run_as_dicts_of_scores, run_as_lists, run_as_records])
def test_query_with_empty_results_is_not_missing(gold_form, run_form):
    gold, _ = gold_form({"q": {"a": 1}, "nothing": {"a": 1}})
    run, _ = run_form({"q": [("a", 1.0)], "nothing": [], "unknown": []})
    table = score(gold, run, Plan.of("RR", conventions={"missing": "skip"}))
    assert dict(table.frame.rows()) == {"q": 1.0, "nothing": 0.0}
    assert (table.counts["missing"], table.counts["unknown"]) == (0, 1)


def test_item_judged_twice_has_its_highest_grade_and_a_warning():
    rows = [("q", "a", 0), ("q", "b", 1), ("q", "a", 2), ("q", "a", -1)]
    frame = pl.DataFrame(rows, schema=["query_id", "item_id", "grade"], orient="row")
    plan = Plan.of(["DCG", "NumRel"])
    with pytest.warns(KaratWarning) as warnings:
        table = score(Gold.of(frame), Run.of({"q": ["a", "b"]}), plan)
    assert table.frame.rows() == [("q", 2 + 1 / math.log2(3), 2.0)]
    (warning,) = warnings
    assert "2" in str(warning.message)
