"""Every declared rank measure is what the slow, obvious definition in `oracle` says it is."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.data import Gold, Run
from karat.errors import ConventionError, KaratWarning
from karat.measures import REGISTRY, Measure, Plan, parse, score
from oracles import rank as oracle
from support.effort import FULL

examples = settings(max_examples=1000 if FULL else 60, deadline=None)

RANKED = {name: declared for name, declared in REGISTRY.items() if declared.family == "rank"}

CUTOFFS = {
    "none": [None],
    "required": [1, 2, 3, 5, 200],
    "optional": [None, 1, 2, 3, 5, 200],
    "share": [0, 0.1, 0.25, 0.5, 0.75, 1],
}

# Gains of one's own: far apart, for what is irrelevant, the same for two grades, and less than 1
# apart while a higher grade is worth less.
GAINS = ["linear", "exp2", {1: 3, 2: 10}, {0: 0.5, 1: 0}, {1: 2}, {1: 0.7, 2: 0.6, 3: 0.25}]
PARAMETERS = {
    ("P", "denominator"): ["k", "retrieved"],
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
    ("RBPresid", "p"): [0.8, 0.95],
    ("SetF", "weight"): [1.0, 0.25, 3.0],
    # No bit is lost in products and sums of these, in whichever order.
    ("Utility", "a"): [1.0, 3.0],
    ("Utility", "b"): [-1.0, -0.25],
    ("Utility", "c"): [0.0, -0.5],
    ("Utility", "d"): [0.0, 0.125],
    ("Utility", "documents"): [0, 1, 10_000],
}
LEVELS = [1, 2]

# These are one division, or one sum in rank order: not a bit may differ. The others multiply in
# an order that is the kernel's own affair.
TO_THE_BIT = {"P", "R", "Success", "Hits", "R_cap", "Rprec", "RR", "FirstRelevant", "AP"}
TO_THE_BIT |= {"Bpref", "DCG", "nDCG", "Judged", "Unjudged"}
TO_THE_BIT |= {"GMAP", "GMBpref", "IDCG", "IPrec", "SetAP", "Utility"}
TO_THE_BIT |= {"NumQ", "NumRet", "NumRel", "NumRelRet", "NumNonrelRet"}


@dataclass(frozen=True)
class Spelled:
    """A measure with cutoff and parameters: as karat parses it, and as the oracle takes it."""

    name: str
    k: float | None
    params: dict

    @property
    def measure(self) -> Measure:
        given = ", ".join(f"{name}={value}" for name, value in self.params.items())
        cutoff = "" if self.k is None else f"@{self.k}"
        return parse(self.name + (f"({given})" if given else "") + cutoff)

    def expected(self, gold, run, largest_grade, conventions) -> dict[str, float | None]:
        return {
            query: oracle.value(
                self.name, run.get(query), grades, self.k, self.params, largest_grade, conventions
            )
            for query, grades in gold.items()
        }

    def agree(self, got: float | None, wanted: float | None) -> bool:
        if got is None or wanted is None:
            return got is wanted
        if self.name in TO_THE_BIT:
            return got == wanted
        return math.isclose(got, wanted, rel_tol=1e-12)

    def agree_over_queries(self, got: float | None, wanted: float | None) -> bool:
        """All ways over queries are exact but the geometric mean, which takes roots or logs."""
        if wanted is None or self.name not in oracle.GEOMETRIC_MEANS:
            return got == wanted
        return math.isclose(got, wanted, rel_tol=1e-12)


def spellings(name: str) -> list[Spelled]:
    """Every cutoff with every choice of parameters, written out even where it is the default."""
    declared = REGISTRY[name]
    choices = [
        LEVELS if param.name == "rel" else PARAMETERS[name, param.name] for param in declared.params
    ]
    return [
        Spelled(name, k, dict(zip([param.name for param in declared.params], values, strict=True)))
        for k in CUTOFFS[declared.cutoff]
        for values in product(*choices)
    ]


# Few ids and few scores, so that hits, repeats and ties are common. Among the ids are some that
# differ only in case, normal form or a NUL, and some whose order as UTF-16 is not that as bytes.
QUERIES = ["q1", "Q1", "ж", "😀", "10"]
ITEMS = ["a", "A", "a\0", "é", "e\u0301", "\uffee", "😀", "字", "10", "9", "filler 3"]
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
        "no_gold": st.sampled_from(["family", "zero", "one", "skip"]),
        "duplicates": st.sampled_from(["first", "count"]),
        "unjudged": st.sampled_from(["irrelevant", "skip"]),
    }
)


# Ways to hand the same gold over: what karat takes, and the dict that it means.


def gold_as_dict(gold):
    return Gold.of(gold), gold


def gold_as_records(gold):
    return Gold.of([{"query_id": q, "relevant": grades} for q, grades in gold.items()]), gold


def gold_as_frame(gold):
    rows = [(q, item, grade) for q, grades in gold.items() for item, grade in grades.items()]
    frame = pl.DataFrame(rows[::-1], schema=["query_id", "item_id", "grade"], orient="row")
    return Gold.of(frame), {q: grades for q, grades in gold.items() if grades}


# Ways to hand a run over: what karat takes, and the ranked lists that it means.


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
    """The rows of the queries stand mixed: all first places, then all second places, and so on."""
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
class Handed:
    """Gold or a run: the way it is handed over, what karat gets, and what that means."""

    way: str
    given: Gold | Run
    meant: dict


def has_rows(by_query) -> bool:
    """Whether there is a row for a table or a record to hold; none at all is an InputError."""
    return any(by_query.values())


@st.composite
def handed_over(draw, kind, forms, plain):
    """Draw data and a way to hand it over, named so that a failing case can be built again."""
    form = draw(st.sampled_from(forms))
    return Handed(form.__name__, *form(draw(kind if form in plain else kind.filter(has_rows))))


any_gold = handed_over(golds, GOLD_FORMS, [gold_as_dict])
any_run = handed_over(runs, RUN_FORMS, [run_as_dicts_of_scores, run_as_lists])


def largest_grade_of(gold) -> int:
    return max((grade for grades in gold.values() for grade in grades.values()), default=0)


def assert_as_the_oracle_says(spelled, gold, run, largest_grade, words) -> None:
    """Score the same data both ways and compare every query of every measure."""
    measures = [one.measure for one in spelled]
    plan = Plan.of(measures, conventions=words, largest_grade=largest_grade)
    table = score(gold.given, run.given, plan)
    queries = sorted(gold.meant, key=str.encode)
    assert table.frame["query_id"].to_list() == queries
    for one, measure in zip(spelled, measures, strict=True):
        wanted = one.expected(gold.meant, run.meant, largest_grade, words)
        got = dict(zip(queries, table.frame[measure.name].to_list(), strict=True))
        for query in queries:
            assert one.agree(got[query], wanted[query]), (
                f"{measure.name} of {query!r} is {got[query]}, the oracle says {wanted[query]}"
            )
        over_queries = oracle.over_queries(one.name, list(got.values()))
        assert one.agree_over_queries(table.value(measure), over_queries)


def test_every_declared_rank_measure_has_an_oracle():
    assert set(RANKED) == set(oracle.MEASURES)


@pytest.mark.parametrize("name", RANKED)
def test_the_declaration_names_the_way_over_queries_that_the_oracle_takes(name):
    ways = {"sum": oracle.SUMS, "median": oracle.MEDIANS, "geometric": oracle.GEOMETRIC_MEANS}
    assert REGISTRY[name].combine == next((way for way in ways if name in ways[way]), "mean")


@pytest.mark.parametrize("name", RANKED)
@given(
    gold=any_gold,
    run=any_run,
    words=conventions,
    grades_elsewhere=st.sampled_from([0, 0, 3, 41]),
)
@examples
def test_a_measure_is_what_the_oracle_says(name, gold, run, words, grades_elsewhere):
    largest = max(0, largest_grade_of(gold.meant), grades_elsewhere)
    assert_as_the_oracle_says(spellings(name), gold, run, largest, words)


@pytest.mark.parametrize("duplicates", ["first", "count"])
@pytest.mark.parametrize("gold_form", [gold_as_dict, gold_as_frame])
@pytest.mark.parametrize("run_form", RUN_FORMS)
def test_deep_lists_are_scored_as_shallow_ones_are(run_form, gold_form, duplicates):
    chance = random.Random(7)
    pool = [f"d{i}" for i in range(3000)]
    gold, run = {}, {}
    for query, depth in enumerate([0, 1, 40, 300, 1000, 2000]):
        judged = chance.sample(pool, chance.choice([1, 12, 150]))
        gold[f"q{query}"] = {item: chance.choice(GRADES) for item in judged}
        found = chance.choices([*pool, *judged * 5], k=depth)
        run[f"q{query}"] = [(item, chance.randrange(200) / 4) for item in found]
    spelled = [
        one
        for name, declared in RANKED.items()
        for one in spellings(name)
        if declared.cutoff == "share" or one.k in (None, 5, 200)
    ]
    words = {"duplicates": duplicates}
    handed_gold = Handed("gold", *gold_form(gold))
    handed_run = Handed("run", *run_form(run))
    assert_as_the_oracle_says(spelled, handed_gold, handed_run, largest_grade_of(gold), words)


def test_a_share_of_the_relevant_items_ends_where_the_oracle_says_whatever_their_number():
    """Each further item has a lower precision, so no other number of items gives the same value."""
    gold, run = {}, {}
    for n in range(46):
        query = f"{n} relevant"
        gold[query] = {"irrelevant": 0, **{f"d{i}": 1 for i in range(n)}}
        run[query] = [
            (item, 1.0) for i in range(n) for item in [f"d{i}", *[f"{i}/{j}" for j in range(i)]]
        ]
    spelled = [Spelled("IPrec", i / 20, {"rel": 1}) for i in range(21)]
    spelled += [Spelled("Rprec", None, {"rel": 1, "multiple": i / 20}) for i in range(1, 61)]
    spelled.append(Spelled("11pt", None, {"rel": 1}))
    handed_gold, handed_run = Handed("gold", *gold_as_dict(gold)), Handed("run", *run_as_lists(run))
    assert_as_the_oracle_says(spelled, handed_gold, handed_run, 1, {})


@pytest.mark.parametrize("n_judged", [0, 1, 30, 300])
@pytest.mark.parametrize("p", [0.5, 0.8, 0.99])
def test_what_unjudged_items_could_add_is_as_exact_below_many_judged_ones(n_judged, p):
    judged = [f"d{i}" for i in range(n_judged)]
    gold = Handed("gold", *gold_as_dict({"q": {"relevant": 1, **dict.fromkeys(judged, 0)}}))
    run = Handed("run", *run_as_lists({"q": [(i, 1.0) for i in [*judged, *judged, "unjudged"]]}))
    assert_as_the_oracle_says([Spelled("RBPresid", None, {"p": p})], gold, run, 1, {})


@pytest.mark.parametrize("name", ["GMAP", "GMBpref"])
def test_a_geometric_mean_takes_no_value_as_less_than_a_hundred_thousandth(name):
    def over_queries(gold, run) -> float | None:
        return score(gold, run, Plan.of(name)).value(parse(name))

    gold = {f"q{i}": {"a": 1, "b": 0} for i in range(1000)}
    assert over_queries(gold, {"q0": ["b"]}) == pytest.approx(1e-5, rel=1e-12)
    half = {f"q{i}": ["a"] for i in range(500)}
    assert over_queries(gold, half) == pytest.approx(1e-5**0.5, rel=1e-12)


def test_a_value_under_a_hundred_thousandth_is_raised_only_in_the_mean():
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
@examples
def test_what_a_convention_calls_an_error_is_refused_and_nothing_else(gold, run, words):
    plan = Plan.of(["P@5"], conventions=words)
    try:
        oracle.check(gold.meant, run.meant, words)
    except ConventionError:
        with pytest.raises(ConventionError):
            score(gold.given, run.given, plan)
    else:
        score(gold.given, run.given, plan)


@pytest.mark.parametrize("gold_form", GOLD_FORMS)
@pytest.mark.parametrize(
    "run_form", [run_as_lists, run_as_records, run_as_frame_of_scores, run_as_frame_of_ranks]
)
@pytest.mark.parametrize(
    ("question", "queries", "items"),
    [
        ("missing", ["q"], ["a"]),
        ("unknown", ["q", "r", "unknown"], ["a"]),
        ("duplicates", ["q", "r"], ["a", "b", "a"]),
        ("duplicates", ["q", "r"], ["unjudged", "a", "unjudged"]),
    ],
)
def test_each_question_answered_with_error_refuses_what_it_asks_about(
    question, queries, items, gold_form, run_form
):
    gold, _ = gold_form({"q": {"a": 1}, "r": {"a": 1}})
    run, _ = run_form({query: [(item, 1.0) for item in items] for query in queries})
    score(gold, run, Plan.of("P@5"))
    with pytest.raises(ConventionError) as refused:
        score(gold, run, Plan.of("P@5", conventions={question: "error"}))
    assert refused.value.field == question


@given(gold=any_gold, run=any_run)
@examples
def test_the_counts_tell_what_was_odd(gold, run):
    counts = score(gold.given, run.given, Plan.of(["P@5"])).counts
    gold, run = gold.meant, run.meant
    both = gold.keys() & run.keys()
    assert counts["queries"] == len(gold)
    assert counts["missing"] == len(gold.keys() - run.keys())
    assert counts["unknown"] == len(run.keys() - gold.keys())
    assert counts["no_relevant"] == sum(not any(g > 0 for g in gold[q].values()) for q in gold)
    assert counts["repeats"] == sum(len(run[q]) - len(set(run[q])) for q in both)


@given(ids=st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=12, unique=True))
@examples
def test_tied_items_stand_in_descending_order_of_their_bytes_whatever_the_script(ids):
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


def test_whether_gold_holds_anything_to_find_is_asked_of_the_level_and_the_gains_in_use():
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
def test_a_query_answered_with_nothing_is_asked_and_not_missing(gold_form, run_form):
    gold, _ = gold_form({"q": {"a": 1}, "nothing": {"a": 1}})
    run, _ = run_form({"q": [("a", 1.0)], "nothing": [], "unknown": []})
    table = score(gold, run, Plan.of("RR", conventions={"missing": "skip"}))
    assert dict(table.frame.rows()) == {"q": 1.0, "nothing": 0.0}
    assert (table.counts["missing"], table.counts["unknown"]) == (0, 1)


def test_an_item_judged_twice_has_its_highest_grade_and_that_is_said():
    rows = [("q", "a", 0), ("q", "b", 1), ("q", "a", 2), ("q", "a", -1)]
    frame = pl.DataFrame(rows, schema=["query_id", "item_id", "grade"], orient="row")
    plan = Plan.of(["DCG", "NumRel"])
    with pytest.warns(KaratWarning, match="repeat an item"):
        table = score(Gold.of(frame), Run.of({"q": ["a", "b"]}), plan)
    assert table.frame.rows() == [("q", 2 + 1 / math.log2(3), 2.0)]
