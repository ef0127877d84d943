"""Explain a measure: in words, and on a query step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from karat.conventions import Conventions
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError
from karat.match.level import documents
from karat.match.prepared import PreparedGold, prepare
from karat.measures import Measure, Plan, parse, score
from karat.measures.workings import Workings, listening
from karat.report.explanation import Calculation, Explanation, Row

EXAMPLE_GOLD = {"q": {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}}
EXAMPLE_RUN = {"q": ["b", "x", "a", "d", "c", "y"]}


def explain(
    measure: str | Measure,
    *,
    gold: Any = None,
    run: Any = None,
    query: str | None = None,
    other: Any = None,
    conventions: Conventions | dict[str, Any] | None = None,
    level: str = "item",
) -> Explanation:
    """Say what a measure means; with gold, run and query, how its value comes about there.

    `other` is a second run, shown side by side with what made the difference.

    >>> gold, run = {"q1": {"a": 1, "b": 1}}, {"q1": ["a", "x", "b"]}
    >>> print(explain("AP", gold=gold, run=run, query="q1"))
    AP: Average precision, for query 'q1'
    Formula      Σ precision at the rank of each relevant item in the top k / all
                 relevant items
    <BLANKLINE>
    run
    rank  item  grade  precision
    1     a         1     1.0000
    2     x         –          –
    3     b         1     0.6667
    <BLANKLINE>
    sum of precisions = 1.6666666666666665
    divided by = 2
    AP = 0.8333333333333333
    """
    chosen = Conventions.of(conventions)
    data = (gold, run, query)
    if all(part is None for part in (*data, other)):
        plan = _plan(measure, EXAMPLE_GOLD, Conventions(), "item")
        example = _calculation(prepare(Gold.of(EXAMPLE_GOLD)), Run.of(EXAMPLE_RUN), "q", plan)
        return Explanation(plan.measures[0], None, [example], chosen)
    if gold is None or run is None or query is None:
        lacking = [
            n for n, part in zip(("gold", "run", "query"), data, strict=True) if part is None
        ]
        raise InputError(
            f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} needed as well",
            hint="a calculation needs gold, run and query",
        )
    opened = Gold.open(gold)
    plan = _plan(measure, opened, chosen, level)
    _refuse_unknown(query, opened)
    judged = _gold_of(opened, query)
    runs = [Run.open(each) for each in (run, other) if each is not None]
    calculations = [_calculation(prepare(judged), each, query, plan) for each in runs]
    return Explanation(plan.measures[0], query, calculations, chosen)


def _plan(measure: str | Measure, gold: Any, conventions: Conventions, level: str) -> Plan:
    largest = PreparedGold(Gold.open(gold)).largest_grade
    return Plan.of(parse(measure), conventions=conventions, level=level, largest_grade=largest)


def _refuse_unknown(query: str, gold: Gold) -> None:
    if query not in gold.query_ids:
        first = ", ".join(map(repr, gold.query_ids.head(3)))
        raise InputError(f"gold has no query {query!r}", field="query", hint=f"it has {first}, …")


def _gold_of(gold: Gold, query: str) -> Gold:
    return Gold(
        gold.judgments.filter(pl.col("query_id") == query),
        queries=gold.queries.filter(pl.col("query_id") == query),
        empty_judgments=[each for each in gold.empty_judgments if each == query],
    )


def _run_of(run: Run, query: str) -> Run:
    return Run(
        run.results.filter(pl.col("query_id") == query),
        empty=[each for each in run.empty if each == query],
        name=run.name,
    )


def _calculation(gold: PreparedGold, run: Run, query: str, plan: Plan) -> Calculation:
    """Score one query while listening to its kernel."""
    own = _run_of(run, query)
    measure = plan.measures[0]
    with listening() as workings:
        table = score(gold, own, plan)
    value = table.frame[measure.name][0]
    judgments = dict(gold.gold.judgments.select("item_id", "grade").iter_rows())
    listed = (documents(own) if plan.level == "doc" else own).results["item_id"].to_list()
    if plan.conventions.unjudged == "skip":
        listed = [item for item in listed if judgments.get(item, -1) >= 0]
    rows: list[Row] = [
        {"rank": rank, "item": item, "grade": judgments.get(item)}
        for rank, item in enumerate(listed, 1)
    ]
    counted = _note(workings, rows)
    limit = measure.cutoff if isinstance(measure.cutoff, int) else len(rows)
    rows = rows[: max(limit, *counted) if counted else limit]
    return Calculation(
        run.name or "run",
        value,
        rows,
        counted,
        _ideal(workings),
        _missed(judgments, rows),
        {_words(name): _plain(numbers[0]) for name, numbers in workings.numbers.items()},
        _remarks(table.counts, plan),
    )


def _note(workings: Workings, rows: list[Row]) -> set[int]:
    """Put what was noted of places beside them; return which places were counted."""
    counted: set[int] = set()
    for noted in workings.tables:
        if noted.ideal:
            continue
        for at, rank in enumerate(noted.places.rank.tolist()):
            counted.add(rank)
            for name, values in noted.columns.items():
                rows[rank - 1][_words(name)] = _plain(values[at])
    return counted


def _ideal(workings: Workings) -> list[Row]:
    rows: dict[int, Row] = {}
    for noted in workings.tables:
        if not noted.ideal:
            continue
        for at, rank in enumerate(noted.places.rank.tolist()):
            row = rows.setdefault(rank, {"rank": rank, "grade": int(noted.places.grade[at])})
            for name, values in noted.columns.items():
                row[_words(name)] = _plain(values[at])
    return [rows[rank] for rank in sorted(rows)]


def _missed(judgments: dict[str, int], rows: list[Row]) -> list[Row]:
    there = {row["item"] for row in rows}
    missed = [(item, grade) for item, grade in judgments.items() if grade > 0 and item not in there]
    return [
        {"item": item, "grade": grade}
        for item, grade in sorted(missed, key=lambda pair: (-pair[1], pair[0]))
    ]


def _remarks(counts: dict[str, int], plan: Plan) -> list[str]:
    """Say which convention decided, where one did."""
    words = plan.conventions
    said = {
        "missing": f"the run lacks this query: missing={words.missing}",
        "no_judgments": "gold has no judgments for this query, so it is left out",
        "no_relevant": f"gold holds nothing relevant here: no_gold={words.no_gold}",
        "repeats": f"an item stands again in the list: duplicates={words.duplicates}",
    }
    return [remark for name, remark in said.items() if counts[name]]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
