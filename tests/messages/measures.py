"""Names and parameters of measures, conventions, and data that a measure cannot use."""

import sys

import karat
from karat import Conventions, Plan, Run, ScoreTable, evaluate, score
from karat.measures import REGISTRY, parse, parse_all
from karat.measures.registry import unregister
from messages.cases import Section, written

SECTION = Section("measures")
case = SECTION.case


# Names


def name(text: str, given) -> None:
    case(text, lambda: parse(given))


name("a measure is not text", 7)
name("a measure is not a name", "nDCG@@10")
name("a measure has its parameters twice", "P(rel=2)@5(rel=2)")
name("a measure is unknown", "nothing@10")
name("a measure is misspelled", "nCDG@10")
name("parameters are written as in trec_eval", "ndcg.1=3")
name("a measure without a cutoff has a number behind an underscore", "bpref_10")
name("a parameter is given in the name and in brackets", "Rprec_mult_0.2(multiple=2)")
name("a measure lacks its number", "Rprec_mult")
name("a measure lacks its cutoff as in trec_eval", "ndcg_cut")
name("a measure lacks its point of recall", "IPrec")
name("a measure takes no cutoff", "Bpref@10")
name("a parameter is unknown", "AP(relevance=2)")
name("a measure takes no parameters", "NumQ(rel=2)")
name("a cutoff is 0", "P@0")
name("a point of recall is above 1", "IPrec@2")
name("a budget of characters is 0", "span.recall@0c")
name("a parameter has no value", "AP(rel)")
name("a parameter is given twice", "AP(rel=1, rel=2)")
name("a gain is not a mapping", "nDCG(gain={1})@10")
name("judged_only is set for a single measure", "P(judged_only=True)@5")
name("relative is neither True nor False", "SetP(relative=2)")
name("F1 has a beta", "F(beta=2)")
name("a formula of DCG is unknown", "nDCG(dcg='log10')@5")
name("gains are given twice", "nDCG(gain=exp2, gains={1: 2})")
name("a cutoff is given in brackets and behind @", "P(cutoff=5)@5")
case("no measure is named", lambda: parse_all([]))

# Parameters

name("a whole number is too small", "AP(rel=0)")
name("a share is above 1", "RBP(p=2)")
name("a parameter is not a number", "Utility(a=x)")
name("a parameter is not above 0", "Rprec(multiple=0)")
name("a word is not one of those allowed", "P(denominator=all)@5")
name("a name is empty", "latency.p90(stage='')")
name("a gain for a grade is negative", "nDCG(gain={1: -1})@10")
name("a least overlap is 0", "span.hit(min_overlap=0)@5")

# Plans and conventions

GOLD = {"q1": {"a": 1}, "q2": {"b": 1}}
RUN = {"q1": ["a"], "q2": ["b"]}

case("a convention is unknown", lambda: Conventions.of({"nothing": "zero"}))
case("a convention is misspelled", lambda: Conventions.of({"mising": "zero"}))
case("a word of a convention is unknown", lambda: Conventions(missing="never"))
case("a level is unknown", lambda: Plan.of(level="page"))
case("matching is not Matching", lambda: Plan.of(matching=0.8))
case("a measure needs chunks", lambda: Plan.of("span.precision_omega"))


def conventional(text: str, run, **words) -> None:
    case(text, lambda: score(GOLD, run, Plan.of("P@1", conventions=words)))


conventional("a query of gold is missing", {"q1": ["a"]}, missing="error")
conventional("a query of the run is unknown", RUN | {"q3": ["a"]}, unknown="error")
conventional("an item is in a list twice", {"q1": ["a", "a"], "q2": ["b"]}, duplicates="error")

# Data that a measure cannot use

TEXTS = [{"query_id": "q1", "evidence": ["one text"]}]
TEXT = {"text": "one text"}
SPANS = [{"query_id": "q1", "spans": [{"doc_id": "d", "start": 0, "end": 9}]}]


def needs(text: str, measure: str, gold=GOLD, run=RUN, **how) -> None:
    case(text, lambda: evaluate(gold, run, measure, **how))


needs("a run has no timings", "latency.p90")
needs("a run has no calls", "cost.sum")
needs("a run has no numbers of tokens", "context.tokens@5")
needs("a grade is too large for 2^grade", "nDCG(gain=exp2)", {"q1": {"a": 2000}})
needs("gold has no spans", "span.recall@5")
needs("gold has no evidence", "evidence.recall@5")
needs("gold has no judgments and has evidence", "P@5", TEXTS)
needs("gold has evidence and no spans", "span.recall@5", TEXTS)
needs("gold and run have no query in common", "P@5", GOLD, {"q3": ["a"]})
case(
    "an evidence text is matched twice by one item",
    lambda: score(
        TEXTS,
        [{"query_id": "q1", "results": [{"id": "a", **TEXT}, {"id": "a", **TEXT}]}],
        Plan.of("evidence.recall@5", conventions={"duplicates": "error"}),
    ),
)
case("a grade is above that of the plan", lambda: score(GOLD, RUN, Plan.of("P@1", largest_grade=0)))
case("a measure needs the largest grade", lambda: score(GOLD, RUN, Plan.of("ERR@5")))


def timed(*stages: str) -> Run:
    times = dict.fromkeys(stages, 1.0)
    return Run.of([{"query_id": "q1", "results": ["a"], "latency_ms": times}])


needs("a stage is unknown", "latency.p90(stage=rank)", GOLD, timed("rerank", "total"))
needs("a stage is unknown among many", "latency.p90(stage=x)", GOLD, timed(*map(str, range(30))))
case("no tables are joined", lambda: ScoreTable.concat([]))
case(
    "a query is in two tables",
    lambda: ScoreTable.concat([score(GOLD, RUN, Plan.of("P@1"))] * 2),
)
case(
    "a measure is not in the scores", lambda: score(GOLD, RUN, Plan.of("P@1")).measure(parse("AP"))
)

# Functions

case("a text is given instead of a list of ids", lambda: karat.mrr("abc", ["a"]))
case("a grade of one query is not an integer", lambda: karat.mrr(["a"], {"a": 0.5}))
case("k is 0", lambda: karat.hit_rate(["a"], ["a"], 0))
case("a span is not a span", lambda: karat.merge_overlapping_spans(["a"]))
case("a span ends before it starts", lambda: karat.calculate_overlap([(5, 2)], [(0, 1)]))

case(
    "a grade is above max_grade",
    lambda: evaluate({"q": {"a": 5}}, {"q": ["a"]}, "ERR(max_grade=4)"),
)


# Measures of your own

MODULE = """
import sys

import karat

@karat.measure("Taken", aliases=["taken_too"], bounded={bounded})
def mine(hits, k):
    return {returned}

def other(hits): ...

number = 7
"""


def own(text: str, returned: str, path: str = "mine", *, bounded: bool = True) -> None:
    """Add a case of a measure that is imported from a module."""
    module = f"own_{len(SECTION.cases)}"

    def provoke():
        sys.modules.pop(module, None)
        for declaration in [each for each in REGISTRY.values() if each.function is not None]:
            unregister(declaration)
        written(f"{module}.py", MODULE.format(returned=returned, bounded=bounded))
        evaluate(GOLD, {"q1": ["a"], "q2": ["b"]}, f"{module}:{path}")

    case(text, provoke)


own("a measure of a user raises an exception", "1 / 0")
own("a measure of a user returns too few values", "[1.0]")
own("a measure of a user returns a single number", "1.0")
own("a measure of a user returns texts", "['a', 'b']")
own("a measure of a user returns NaN", "[0, float('nan')]")
own("a measure of a user returns more than 1", "[0, 2]")
own("a function of a user is not declared", "[]", "other")
own("what is imported as a measure is not a function", "[]", "number")


def declare(text: str, name, function=lambda hits: [], **facts) -> None:
    """Add a case of a declaration that is refused."""
    case(text, lambda: karat.measure(name, **facts)(function))


declare("the name of a new measure has a cutoff", "Mine@10")
declare("a new measure has the name of a measure of karat", "MRR")
declare(
    "a new measure has the name of a measure of a preset", "HitRates", aliases=["EvidenceRecall"]
)
declare("values of queries are combined in an unknown way", "Mine", over_queries="average")
declare("a new measure is not a function", "Mine", 7)
declare("a parameter of a new measure has no default", "Mine", lambda hits, k, rel: [])
declare("a parameter is described that a new measure does not have", "Mine", params={"p": "x"})


def _declared_twice() -> None:
    def one(hits): ...

    def two(hits): ...

    karat.measure("Twice")(one)
    karat.measure("Twice")(two)


case("two functions have the name of one measure", _declared_twice)


def _parameter_is(default, given: str) -> None:
    def typed(hits, p=default): ...

    if "Typed" in REGISTRY:
        unregister(REGISTRY["Typed"])
    parse(karat.measure("Typed")(typed).__name__.title() + f"(p={given})")


case("a parameter is not an integer", lambda: _parameter_is(1, "1.5"))
case("a parameter is neither true nor false", lambda: _parameter_is(True, "yes"))
case(
    "a measure to list is unknown",
    lambda: karat.measures.name_parser.declaration_named("nothing"),
)
