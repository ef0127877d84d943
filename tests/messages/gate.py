"""Thresholds of gates, and what keeps one from being judged."""

from karat import evaluate, gate
from karat.evaluation.verdict import Verdict
from karat.testing import per_query
from messages.cases import Section, written

SECTION = Section("gate")
case = SECTION.case

GOLD = [
    {"query_id": f"q{n}", "relevant": ["a"], "kind": "short" if n else "long"} for n in range(4)
]
RUN = {f"q{n}": ["a"] for n in range(4)}


def threshold(name: str, *thresholds, run=RUN, **how) -> None:
    given = thresholds[0] if len(thresholds) == 1 else list(thresholds)
    case(name, lambda: gate(GOLD, run, given, **how))


def table(name: str, **limits) -> None:
    threshold(name, {"RR": limits})


# Thresholds

threshold("there is no threshold")
threshold("a threshold has no sign", "RR 0.5")
threshold("a threshold is not text", [7])
threshold("a threshold in a table is not text", {"RR": 0.5})
threshold("a text in a table is not a threshold", {"RR": "about 0.5"})
threshold("the measure of a threshold is unknown", "nothing >= 0.5")
threshold("a name with a dot has no quotes", {"latency": {"p90": "<= 1 s"}})
threshold("a measure has two thresholds", {"R@10": ">= 0.5", "recall@10": ">= 0.6"})
table("a key of a threshold is unknown", nothing=1)
table("a key of a threshold is misspelled", mini=1)
table("a threshold has no limit", strict=True)
table("a threshold is strict without a comparison", min=0.5, strict=True)
table("a limit is not a number", min=[1])
table("a limit is text", min="much")
table("a confidence is too low", max_drop=0.1, confidence=0.1)
table("strict is not true or false", max_drop=0.1, strict="yes")
table("a change is negative", max_drop=-1)
table("the direction of a change is wrong", max_rise=0.1)
threshold("the direction of a cost is wrong", {"latency.p90": {"max_drop": 1}})
threshold("a unit is not one of the measure", {"latency.p90": "<= 1 USD"})
threshold("a measure has no unit", {"RR": "<= 1 s"})
threshold("thresholds of groups are not a table", {"by": 7})
threshold("thresholds of groups are empty", {"by": {"kind": {}}})

# What cannot be judged

threshold("a baseline is missing", "RR max_drop 0.1")
threshold("a field of a group is unknown", {"by": {"topic": {"x": {"RR": ">= 0"}}}})
threshold("a value of a group is unknown", {"by": {"kind": {"x": {"RR": ">= 0"}}}})
threshold("a group has one query", {"by": {"kind": {"long": {"RR": ">= 0"}}}})
threshold(
    "a gate has no query with a value", "RR >= 0", run={"q0": []}, conventions={"missing": "skip"}
)
case(
    "nothing bounds a difference",
    lambda: gate(GOLD, timed(1.0), "latency.max max_rise 1", baseline=timed(2.0)),
)
case(
    "a measure has no value",
    lambda: gate(
        [{"query_id": f"q{n}", "evidence": ["text"] if n == 2 else []} for n in range(3)],
        [{"query_id": f"q{n}", "results": []} for n in range(2)],
        "evidence.recall@5 >= 0",
        conventions={"no_gold": "zero", "missing": "skip"},
    ),
)


def timed(ms: float) -> list[dict]:
    times = {"latency_ms": {"total": ms}}
    return [{"query_id": query, "results": items, **times} for query, items in RUN.items()]


def toml():
    return gate(GOLD, RUN, config=written("karat.toml", '[gate]\n"RR" = "about 1"\n'))


def no_gate():
    return gate(GOLD, RUN, config=written("karat.toml", "[conventions]\n"))


case("a threshold in a file cannot be read", toml)
case("a file has no threshold", no_gate)


def baseline(conventions: dict) -> str:
    evaluate(GOLD, RUN, "RR", conventions=conventions).write("base.parquet")
    return "base.parquet"


case(
    "the baseline has other conventions",
    lambda: gate(GOLD, RUN, "RR max_drop 0.1", baseline=baseline({"missing": "skip"})),
)
case("a verdict has no scores to report", lambda: Verdict("run", None, ()).report("page.html"))


def slowest():
    gold = [{"query_id": f"q{n}", "relevant": ["a"]} for n in range(6)]
    runs = [
        [
            {"query_id": f"q{n}", "results": ["a"], "latency_ms": {"total": 10.0 * n + step}}
            for n in range(6)
        ]
        for step in (1, 2)
    ]
    gate(gold, runs[0], "latency.max max_rise 5 ms", baseline=runs[1])


case("a difference of maxima has no bound", slowest)


def four_users():
    gold = [{"query_id": f"q{n}", "relevant": ["a"], "user": n % 4} for n in range(8)]
    old, new = ({f"q{n}": [*"x" * shift, "a"] for n in range(8)} for shift in (0, 1))
    gate(gold, new, "RR max_drop 0.1", baseline=old, cluster="user")


case("there are too few clusters to compare with a baseline", four_users)
case(
    "a threshold of a test per query needs a baseline",
    lambda: per_query({"q1": ["a"]}, {"q1": ["a"]}, "RR max_drop 0.1"),
)


def updated(baseline, *thresholds: str):
    return lambda: gate(GOLD, RUN, thresholds, baseline=baseline, update_baseline=True)


case("a baseline that is not a file is updated", updated(RUN, "RR >= 0.1"))
case("a run is updated as a baseline", updated("main.jsonl", "RR >= 0.1"))
case(
    "the baseline of a threshold does not exist",
    lambda: gate(GOLD, RUN, "RR max_drop 0.1", baseline="absent.parquet"),
)
