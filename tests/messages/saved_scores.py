"""Messages about saved scores that are damaged."""

import json

import polars as pl

from karat import evaluate
from karat.evaluation.scores import Scores
from messages.cases import Section

SECTION = Section("saved scores")

GOLD = [{"query_id": f"q{n}", "relevant": ["a"], "evidence": ["x"]} for n in range(2)]
RUN = [{"query_id": f"q{n}", "results": [{"id": "a", "text": "x"}]} for n in range(2)]


def damaged(name, frame=lambda frame: frame, facts=lambda facts: facts, *, volatile=None):
    """Add a case of a Parquet file with other rows or another header."""

    def provoke():
        evaluate(GOLD, RUN, ["RR", "evidence.recall@3"]).write("scores.parquet")
        header = json.loads(pl.read_parquet_metadata("scores.parquet")["karat"])
        metadata = {"karat": json.dumps(facts(header))}
        frame(pl.read_parquet("scores.parquet")).write_parquet("bad.parquet", metadata=metadata)
        Scores.read("bad.parquet")

    SECTION.case(name, provoke, volatile=volatile)


def counts(**changed):
    return lambda f: f | {"counts": {"run": f["counts"]["run"] | changed}}


def without_metadata():
    pl.DataFrame({"a": [1]}).write_parquet("scores.parquet")
    Scores.read("scores.parquet")


def too_few_weights():
    evaluate(GOLD, RUN, ["evidence.recall@3"]).write("scores.json")
    with open("scores.json") as file:
        document = json.load(file)
    document["runs"][0]["weights"]["evidence.recall@3"].pop()
    with open("scores.json", "w") as file:
        json.dump(document, file)
    Scores.read("scores.json")


def two_runs_of_one_name():
    evaluate(GOLD, RUN, ["RR"]).write("scores.json")
    with open("scores.json") as file:
        document = json.load(file)
    document["runs"] *= 2
    with open("scores.json", "w") as file:
        json.dump(document, file)
    Scores.read("scores.json")


SECTION.case("two runs of saved scores have the same name", two_runs_of_one_name)
damaged(
    "a saved measure is not declared",
    lambda f: f.rename({"RR": "Undeclared@3"}),
    lambda f: f | {"measures": ["Undeclared@3", "evidence.recall@3"]},
)
damaged("a saved value is missing", lambda f: f.with_columns(RR=pl.Series([None, 1.0])))
SECTION.case("a Parquet file was not written by karat", without_metadata)
SECTION.case("a column has too few values", too_few_weights)
damaged("a convention of saved scores is unknown", facts=lambda f: f | {"conventions": {"x": "y"}})
damaged("the level of saved scores is unknown", facts=lambda f: f | {"level": "page"})
damaged("a count of saved scores is missing", facts=lambda f: f | {"counts": {"run": {}}})
damaged("a count of saved scores is negative", facts=counts(failed=-1))
damaged("saved scores have fewer queries than they say", lambda f: f.head(1))
damaged(
    "a query id of saved scores is missing",
    lambda f: f.with_columns(query_id=pl.lit(None, pl.String)),
)
damaged("a query of saved scores is there twice", lambda f: pl.concat([f, f]))
damaged("saved scores are not numbers", lambda f: f.with_columns(RR=pl.lit("high")))
damaged("saved scores are not finite", lambda f: f.with_columns(RR=pl.lit(float("inf"))))
damaged("saved scores are above 1", lambda f: f.with_columns(RR=pl.lit(7.0)))
damaged(
    "the denominators of saved scores are not counts",
    lambda f: f.with_columns(pl.lit(-1).alias("weight:evidence.recall@3")),
)
