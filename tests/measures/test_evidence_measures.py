"""Measures of evidence: every value follows from comparing each chunk with each evidence text."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import karat
from karat.data import Gold, Run
from karat.evaluation.scores import Scores
from karat.match.text import Matching
from karat.measures import REGISTRY, Plan, ScoreTable, parse, score
from oracles import evidence as evidence_oracle
from oracles import texts as text_oracle
from support.effort import examples
from support.errors import refused

# Some evidence has no text, and karat warns about it.
pytestmark = pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")

NAMES = [*evidence_oracle.MEASURES, "evidence.union(least=3)"]
CUTOFFS = [None, 1, 2, 3, 5, 100]
ASKED = [(name, cutoff) for name in NAMES for cutoff in CUTOFFS]


def spelled(name, cutoff):
    return name if cutoff is None else f"{name}@{cutoff}"


ALL = [spelled(name, cutoff) for name, cutoff in ASKED]
PLAN = Plan.of(ALL)

# Parts of one sentence and of few letters, so that texts are often equal, substrings of each other
# or similar; and characters that normalising changes or removes.
SENTENCE = "Refunds are paid within 14 days, to the CARD you paid with."
ODD = ["a", "b", "A", " ", "\n", "\u00a0", "\u200b", "İ", "i\u0307", "ß", "ss", "😀", "ﬁ", "fi"]
WORDS = ["apple", "brine", "crumb", "dough", "elbow"]  # no two are alike
QUERIES = ["q1", "Q1", "ж", "😀", "10"]

stretches = st.builds(
    lambda start, length: SENTENCE[start : start + length],
    st.sampled_from([0, 0, 1, 8, 20, 32]),
    st.sampled_from([4, 9, 24, 25, 40, 60]),
)
odd = st.lists(st.sampled_from(ODD), max_size=5).map("".join)
words = st.sampled_from(WORDS)
several = st.lists(words, min_size=1, max_size=4).map(" ".join)
texts = stretches | odd | st.builds(str.__add__, stretches, odd)
evidence_lists = st.lists(texts, max_size=5) | st.lists(words, max_size=6)
lists = st.lists(texts, max_size=7) | st.lists(several, max_size=7)
golds = st.dictionaries(st.sampled_from(QUERIES), st.none() | evidence_lists, min_size=1)
runs = st.dictionaries(st.sampled_from(QUERIES), lists)
conventions = st.fixed_dictionaries(
    {
        "missing": st.sampled_from(["zero", "skip"]),
        "no_gold": st.sampled_from(["family", "zero", "one", "recall", "skip"]),
    }
)
NUMBERS = {"partial": text_oracle.window_ratio, "tokens": text_oracle.token_share}
normalising = dict.fromkeys(evidence_oracle.NORMALISING, st.booleans())
thresholds = st.sampled_from([0.3, 0.5, 2 / 3, 0.7, 0.9, 1.0])
rules = st.just({}) | st.fixed_dictionaries(
    {"fuzzy_threshold": thresholds, **normalising},
    optional={"direction": st.just("either"), "matcher": st.sampled_from([*NUMBERS])},
)
chances = st.randoms(use_true_random=False)


def meant_by(rule):
    """Translate a rule for the oracle."""
    words = {name: word for name, word in rule.items() if name in normalising}
    if "fuzzy_threshold" in rule:
        words["threshold"] = rule["fuzzy_threshold"]
    if "direction" in rule:
        words["either"] = True
    if "matcher" in rule:
        both_ways = rule["matcher"] == "partial" and "direction" in rule
        numbers = NUMBERS | ({"partial": text_oracle.either_window_ratio} if both_ways else {})
        words["number"] = numbers[rule["matcher"]]
    return words


def gold_records(gold):
    """Native records; a query without evidence has judgments, which evidence measures ignore."""
    return [
        {"query_id": query, "relevant": ["x"]}
        if evidence is None
        else {"query_id": query, "evidence": evidence}
        for query, evidence in gold.items()
    ]


def run_records(run):
    return [
        {"query_id": query, "results": [{"text": text} for text in listed]}
        for query, listed in run.items()
    ]


def value_of(name, listed, evidence, cutoff, **options):
    name, _, least = name.removesuffix(")").partition("(least=")
    parameters = {"least": int(least)} if least else {}
    return evidence_oracle.value(name, listed, evidence, cutoff, **options, **parameters)


def micro(gold, run, cutoff, rule, words):
    asked = gold if words.get("missing", "zero") == "zero" else gold.keys() & run.keys()
    pairs = [(run.get(query), gold[query]) for query in asked]
    return evidence_oracle.micro_recall(pairs, cutoff, rule)


def test_every_declared_evidence_measure_has_an_oracle():
    declared = {name: d for name, d in REGISTRY.items() if d.family == "evidence"}
    assert declared.keys() == evidence_oracle.MEASURES.keys()
    combined = {name: d.combine for name, d in declared.items() if d.combine != "mean"}
    assert combined == {"evidence.recall": "micro", "evidence.RankOfFullCoverage": "median"}
    unmoved = {name for name, d in declared.items() if not d.no_gold}
    assert unmoved == evidence_oracle.NO_GOLD_DOES_NOT_APPLY
    lower = {name for name, d in declared.items() if not d.higher_is_better}
    assert lower == {"evidence.RankOfFullCoverage"}


@examples(60, 600)
@given(golds, runs, rules, conventions)
@example({"q1": ["İ", "\u200b"]}, {"q1": ["i\u0307"]}, {"zero_width": True}, {"no_gold": "zero"})
@example({"q1": ["", "\x1c"]}, {"q1": ["a"]}, {}, {"no_gold": "one"})
@example({"q1": ["a😀", "a"]}, {"q1": ["a\u200b", "a!"]}, {"matcher": "tokens"}, {})
def test_evidence_measures_match_the_oracle_to_the_bit(gold, run, rule, words):
    plan = Plan.of(ALL, conventions=words, matching=Matching(**rule))
    table = score(gold_records(gold), run_records(run), plan)
    queries = sorted(gold, key=str.encode)
    assert table.frame["query_id"].to_list() == queries
    options = {"rule": meant_by(rule), "conventions": words}
    for name, cutoff in ASKED:
        expected = [value_of(name, run.get(q), gold[q], cutoff, **options) for q in queries]
        measure = parse(spelled(name, cutoff))
        assert table.frame[measure.name].to_list() == expected, measure
        over_all = (
            micro(gold, run, cutoff, options["rule"], words)
            if name == "evidence.recall"
            else evidence_oracle.over_queries(name, expected)
        )
        assert table.value(measure) == over_all, measure


@examples(40, 400)
@given(golds, runs)
def test_counts_report_missing_unknown_and_empty(gold, run):
    counts = score(gold_records(gold), run_records(run), Plan.of("evidence.recall@3")).counts
    asked = {query for query, evidence in gold.items() if evidence is not None}
    assert counts["queries"] == len(gold)
    assert counts["no_evidence"] == len(gold.keys() - asked)
    assert counts["no_texts"] == sum(not evidence_oracle.distinct(gold[q], {}) for q in asked)
    assert counts["in_common"] == len(asked & run.keys())
    assert counts["missing"] == len(asked - run.keys())
    assert counts["unknown"] == len(run.keys() - gold.keys())


# Properties that hold for any texts.


def by_query(gold, run, names):
    """Yield the values of each query that has evidence, in the order of the names."""
    table = score(gold_records(gold), run_records(run), Plan.of(names))
    for _, *values in table.frame.rows():
        if None not in values:
            yield values


@examples(40, 400)
@given(golds, runs, st.sampled_from(CUTOFFS), st.sampled_from([1, 3, 20]))
def test_full_coverage_and_union_are_in_ascending_order_and_at_most_1(gold, run, k, least):
    names = ["evidence.full", "evidence.coverage", f"evidence.union(least={least})"]
    for values in by_query(gold, run, [spelled(name, k) for name in names]):
        assert [0.0, *values, 1.0] == sorted([0.0, *values, 1.0])


GROWING = [
    [spelled(f"evidence.{name}", cutoff) for cutoff in (*range(1, 9), None)]
    for name in ("recall", "coverage", "full", "Success", "RR", "AP", "union")
]
PLAN_OF_GROWING = Plan.of([name for names in GROWING for name in names])


@examples(40, 400)
@given(golds, runs)
def test_values_never_fall_with_a_larger_cutoff(gold, run):
    table = score(gold_records(gold), run_records(run), PLAN_OF_GROWING)
    for names in GROWING:
        for values in table.frame.select(names).rows():
            assert None in values or list(values) == sorted(values)
    over_all = [table.value(parse(name)) or 0.0 for name in GROWING[0]]
    assert over_all == sorted(over_all)


@examples(40, 400)
@given(golds, runs)
def test_average_precision_and_ndcg_are_at_most_1(gold, run):
    names = [spelled(f"evidence.{name}", k) for name in ("AP", "nDCG") for k in CUTOFFS]
    for values in by_query(gold, run, names):
        assert max(values) <= 1.0


@examples(40, 400)
@given(st.permutations([*WORDS, *"wxyz"]), st.integers(1, 5), st.integers(0, 9))
def test_average_precision_is_the_textbook_one_if_each_chunk_covers_one_text(order, n, cut):
    evidence, listed = WORDS[:n], order[:cut]
    [(value,)] = by_query({"q": evidence}, {"q": listed}, ["evidence.AP"])
    hits, total = 0, 0.0
    for rank, item in enumerate(listed, 1):
        if item in evidence:
            hits += 1
            total += hits / rank
    assert value == total / n
    query = evidence_oracle.Query(listed, evidence, {}, None)
    assert value == evidence_oracle.usual_average_precision(query)
    judged = score({"q": evidence}, {"q": listed}, Plan.of("AP"))
    assert judged.frame["AP"].to_list() == [value]


# Values do not depend, to the bit, on how the data is split or ordered.


def bits(table):
    rows = [
        [v if v is None or isinstance(v, str) else v.hex() for v in row]
        for row in table.frame.rows()
    ]
    return [table.frame.columns, rows, [table.value(measure) for measure in table.measures]]


@examples(25, 300)
@given(golds, runs, rules, chances)
def test_order_of_evidence_and_queries_does_not_matter(gold, run, rule, chance):
    plan = Plan.of(ALL, matching=Matching(**rule))
    whole = score(gold_records(gold), run_records(run), plan)
    for evidence in gold.values():
        chance.shuffle(evidence or [])
    shuffled_gold, shuffled_run = gold_records(gold), run_records(run)
    chance.shuffle(shuffled_gold)
    chance.shuffle(shuffled_run)
    shuffled = score(shuffled_gold, shuffled_run, plan)
    assert bits(shuffled) == bits(whole)
    assert shuffled.counts == whole.counts


@examples(25, 300)
@given(golds, runs)
def test_repeated_evidence_changes_nothing(gold, run):
    """Nor does repeating it with other white space or in another case."""
    twice = {
        query: evidence and [*evidence, *(f"\n{text.lower()} " for text in evidence)]
        for query, evidence in gold.items()
    }
    whole = score(gold_records(gold), run_records(run), PLAN)
    assert bits(score(gold_records(twice), run_records(run), PLAN)) == bits(whole)


@st.composite
def partitions(draw):
    """Every query belongs to one of up to four parts; a part may have gold, results or neither."""
    parts = draw(st.integers(1, 4))
    part_of = {query: draw(st.integers(0, parts - 1)) for query in QUERIES}
    return [{q for q in QUERIES if part_of[q] == part} for part in range(parts)]


def only(by_query, queries):
    return {query: rows for query, rows in by_query.items() if query in queries}


@examples(25, 300)
@given(golds, runs, partitions(), conventions, chances)
def test_parts_scored_separately_and_joined_are_the_same_table(gold, run, parts, words, chance):
    plan = Plan.of(ALL, conventions=words)
    whole = score(gold_records(gold), run_records(run), plan)
    apart = [score(gold_records(only(gold, p)), run_records(only(run, p)), plan) for p in parts]
    chance.shuffle(apart)
    together = ScoreTable.concat(apart)
    assert bits(together) == bits(whole)
    assert together.weights.equals(whole.weights)
    assert together.counts == whole.counts


@examples(30, 300)
@given(golds, runs, st.dictionaries(st.sampled_from(QUERIES), st.sampled_from("xy")))
def test_recall_of_a_group_counts_the_evidence_of_the_group(gold, run, kinds):
    records = [r | {"kind": kinds.get(r["query_id"], "z")} for r in gold_records(gold)]
    table = score(records, run_records(run), Plan.of("evidence.recall@2"))
    scores = Scores(
        table,
        name="run",
        conventions=karat.Conventions(),
        queries=Gold.of(records).queries,
    )
    for kind, value in scores.by("kind").select("kind", "value").iter_rows():
        group = {q: evidence for q, evidence in gold.items() if kinds.get(q, "z") == kind}
        assert value == micro(group, run, 2, {}, {})


def test_recall_adds_up_counts_and_not_shares():
    """1 / 49 * 49 is not 1 in floating point."""
    evidence = [f"{number:03}" for number in range(49)]
    plan = Plan.of("evidence.recall", matching=Matching(fuzzy_threshold=1))
    gold = gold_records({"p": evidence, "q": ["none of it"]})
    table = score(gold, run_records({"p": ["007"], "q": ["007"]}), plan)
    assert table.value(plan.measures[0]) == 1 / 50


# Forms of the same data.


def frame_of(run):
    rows = [(q, rank, text) for q, listed in run.items() for rank, text in enumerate(listed, 3)]
    return pl.DataFrame(rows, schema=["query_id", "rank", "text"], orient="row")


def test_gold_and_run_may_have_many_forms():
    gold = {"q1": ["paid within 14 days", "by post"], "q2": ["by card"], "q3": []}
    run = {"q1": ["no", "PAID within\n14 days."], "q2": ["by card or by post"]}
    rows = [(query, text) for query, evidence in gold.items() for text in evidence]
    table = pl.DataFrame(rows[::-1], schema=["query_id", "text"], orient="row")
    by_ids = {query: [f"{query}-{at}" for at in range(len(run[query]))] for query in run}
    chunks = pl.DataFrame(
        {
            "item_id": [item for items in by_ids.values() for item in items],
            "doc_id": "d",
            "start": [0, 2, 22],
            "end": [2, 22, 40],
            "text": [text for listed in run.values() for text in listed],
        }
    )
    forms = [
        (gold_records(gold), run_records(run), None),
        (Gold.of(evidence=gold), frame_of(run), None),
        (Gold.of(evidence=table, queries=[{"query_id": "q3"}]), frame_of(run)[::-1], None),
        (Gold.of({"q1": ["x"]}, evidence=gold), Run.of(by_ids), chunks),
        (Gold.of(evidence=table.rename({"text": "evidence"})), by_ids, chunks),
    ]
    for given_gold, given_run, given_chunks in forms:
        scores = karat.evaluate(
            given_gold, given_run, ["evidence.recall", "evidence.RR"], chunks=given_chunks
        )
        values = {query: row for query, *row in scores.per_query.rows()}
        assert values.pop("q3", [None, None]) == [None, None]
        assert values == {"q1": [0.5, 0.5], "q2": [1.0, 1.0]}
        assert scores["EvidenceRecall"] == 2 / 3


# Cases by hand.


def values(evidence, listed, *names, **rule):
    [row] = by_query_with(evidence, listed, names, rule)
    return list(row)


def by_query_with(evidence, listed, names, rule):
    plan = Plan.of(names, matching=Matching(**rule))
    table = score(gold_records({"q": evidence}), run_records({"q": listed}), plan)
    return [row[1:] for row in table.frame.rows()]


def test_evidence_split_over_two_chunks_is_covered_only_by_their_union():
    evidence = "the refund is paid within 14 days, whoever is charged a fee for asking so at"
    half = len(evidence) // 2
    halves = [evidence[:half], evidence[half:]]
    for part in halves:
        assert text_oracle.ratio(evidence, part) == 2 / 3
    coverage, full, union, first = values(
        [evidence],
        halves,
        *("evidence.coverage", "evidence.full", "evidence.union", "evidence.union@1"),
    )
    assert (coverage, full) == (0.0, 0.0)
    assert union == 1.0
    assert first == len(halves[0].replace(" ", "")) / len(evidence.replace(" ", ""))


def test_space_lost_between_two_chunks_does_not_lower_the_union():
    evidence = "refunds are paid within 14 days to the card you paid with"
    halves = [evidence[:31], evidence[32:]]
    assert evidence[31] == " "
    assert values([evidence], halves, "evidence.union@2") == [1.0]


def test_union_counts_a_character_once_and_only_in_long_enough_stretches():
    evidence = "abcdefghij"
    assert values([evidence], ["xabcdx", "cdefx"], "evidence.union(least=4)") == [0.6]
    assert values([evidence], ["xabcx", "abcd"], "evidence.union(least=4)") == [0.4]
    assert values([evidence], ["abcd", "abcd"], "evidence.union(least=4)@1") == [0.4]
    assert values(["abc"], ["xab", "bcx"], "evidence.union(least=4)", fuzzy_threshold=1) == [0.0]
    assert values([evidence], ["zabcdefghijz"], "evidence.union(least=40)") == [1.0]


def test_one_chunk_may_cover_many_texts_and_many_chunks_one_text():
    evidence, both = ["paid within 14 days", "to the card"], "Paid within 14 days to the card."
    names = ["evidence.P@3", "evidence.recall@3", "evidence.AP", "evidence.RankOfFullCoverage"]
    assert values(evidence, [both, both, "no"], *names) == [2 / 3, 1.0, 1.0, 1.0]
    assert values(evidence, ["no", both, both], *names) == [2 / 3, 1.0, 0.5, 2.0]
    assert values(evidence, ["to the card", "to the card", both], *names) == [
        1.0,
        1.0,
        (1 + 2 / 3) / 2,
        3.0,
    ]
    assert by_query_with(evidence, ["no", "to the card"], names, {}) == [(1 / 3, 0.5, 0.25, None)]


def test_matcher_function_does_not_affect_the_union():
    def never(evidence, chunk):
        return False

    names = ["evidence.coverage", "evidence.union"]
    assert values(["by post", "by card"], ["sent by post."], *names, matcher=never) == [0.0, 0.5]


def test_union_does_not_depend_on_which_text_has_which_share():
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are not the same number."""
    evidence = ["abcdefgh01", "klmnopqr23", "uvwxyz4567"]
    unions = [
        values(evidence, chunks, "evidence.union(least=1)")
        for chunks in (["a", "kl", "uvw"], ["abc", "kl", "u"])
    ]
    assert unions == [[(0.1 + 0.2 + 0.3) / 3]] * 2


# Each letter is an evidence text; a chunk contains those that its letters name.
def lettered(letters):
    return " ".join(f"{letter * 4}." for letter in letters)


@pytest.mark.parametrize(
    ("listed", "best"),
    [
        (["bc", "ab", "cd"], [2, 1, 1]),  # the first of three equal chunks; then no chunk adds two
        (["ab", "bc", "cd"], [2, 2]),
        (["ab", "abcd", "x"], [4]),
        (["cd", "x", "abc"], [3, 1]),
        (["x", "a", "a"], [1, 1, 1, 1]),
    ],
)
def test_best_order_is_greedy_and_takes_the_first_of_equal_chunks(listed, best):
    evidence, chunks = [lettered(letter) for letter in "abcd"], list(map(lettered, listed))
    query = evidence_oracle.Query(chunks, evidence, {"threshold": 1.0}, None)
    assert evidence_oracle.best_order(query) == best
    reached = evidence_oracle.gain([len(new) for new in query.new], None)
    [value] = values(evidence, chunks, "evidence.nDCG", fuzzy_threshold=1)
    assert value == reached / evidence_oracle.gain(best, None)


def test_list_better_than_the_greedy_order_has_ndcg_1():
    evidence = [lettered(letter) for letter in "abcdef"]
    listed = [lettered(letters) for letters in ("abe", "cdf", "abcd")]
    assert values(evidence, listed, "evidence.nDCG@2", fuzzy_threshold=1) == [1.0]


@pytest.mark.parametrize(
    ("evidence", "chunk", "rule", "covered"),
    [
        ("İstanbul", "i\u0307STANBUL", {}, True),
        ("14 days", "within 14\u00a0days", {}, True),
        ("14 days", "within 14\u2009\n days", {}, True),
        ("👩🏽‍🚀 left", "The 👩🏽‍🚀 LEFT.", {}, True),
        ("refund", "re\u200bfund is", {"fuzzy_threshold": 1}, False),
        ("refund", "re\u200bfund is", {"fuzzy_threshold": 1, "zero_width": True}, True),
        ("Straße", "strasse 7", {"fuzzy_threshold": 1}, False),
        ("Straße", "strasse 7", {"fuzzy_threshold": 1, "casefold": True}, True),
        ("five", "ﬁve", {"fuzzy_threshold": 1}, False),
        ("five", "ﬁve", {"fuzzy_threshold": 1, "nfkc": True}, True),
        ("a long evidence", "long", {}, False),
        ("a long evidence", "long", {"direction": "either"}, True),
        ("abcdefghij", "abcdefgxyz", {}, True),  # a ratio of exactly 0.7
        ("abcdefghij", "abcdefgxyz", {"fuzzy_threshold": 0.7000001}, False),
        ("abcdefghij", "", {}, False),
    ],
)
def test_rule_decides_what_covers(evidence, chunk, rule, covered):
    assert values([evidence], [chunk], "evidence.recall", **rule) == [float(covered)]


def test_rank_of_full_coverage_is_a_median_over_queries_that_have_one():
    gold = {"a": ["apple"], "b": ["brine"], "c": ["crumb"], "d": []}
    run = {"a": ["apple"], "b": ["x", "y", "z", "brine"], "c": ["x"]}
    scores = karat.evaluate(gold_records(gold), run_records(run), "evidence.RankOfFullCoverage")
    assert scores.per_query.rows() == [("a", 1.0), ("b", 4.0), ("c", None), ("d", None)]
    assert scores.summary().select("value", "n", "left_out").rows() == [(2.5, 2, 2)]


def repeated():
    """Evidence, and a list with an item that covers it at three ranks."""
    gold = karat.Gold.of(evidence={"q": ["paid within 14 days"]})
    texts = {"a": "It is paid within 14 days.", "b": "By post."}
    results = [{"id": item, "text": texts[item]} for item in "abaab"]
    return gold, [{"query_id": "q", "results": results}]


def test_repeated_item_counts_as_the_convention_says():
    gold, run = repeated()
    for word, precision in {"first": 1 / 5, "count": 3 / 5, "set": 1 / 2}.items():
        words = {"duplicates": word}
        scores = karat.evaluate(gold, run, ["evidence.P", "evidence.AP"], conventions=words)
        assert list(dict(scores).values()) == [precision, 1.0]
        assert scores.noted["repeats"] == 3
        explained = karat.explain("evidence.P", gold=gold, run=run, query="q", conventions=words)
        assert explained.calculations[0].value == precision
    with refused(karat.ConventionError, field="duplicates") as error:
        karat.evaluate(gold, run, "evidence.P@5", conventions={"duplicates": "error"})
    assert "'q'" in error.value.problem
    assert "3" in error.value.problem


def test_items_without_ids_are_never_repeats():
    gold, run = repeated()
    for result in run[0]["results"]:
        del result["id"]
    scores = karat.evaluate(gold, run, "evidence.P@5")
    assert scores["evidence.P@5"] == 3 / 5
    assert "repeats" not in scores.noted
