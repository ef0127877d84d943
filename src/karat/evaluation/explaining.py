"""Explain a measure: in words, and on a query step by step."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from karat.conventions import Conventions
from karat.data.corpus import Corpus
from karat.data.gold import Gold
from karat.data.run import Run
from karat.data.shaping import Settings
from karat.errors import InputError
from karat.match import level as levels
from karat.match.described import described
from karat.match.evidence import Found
from karat.match.matches import matches
from karat.match.prepared import PreparedGold, prepare
from karat.match.texts import Matching
from karat.measures import Measure, Plan, parse, score
from karat.measures.declare import declared
from karat.measures.rank.gain import worth
from karat.measures.reading import read
from karat.measures.run.known import check_run
from karat.measures.scoring import scored
from karat.measures.workings import Noted, NotedOthers, Workings, listening
from karat.report.explanation import Calculation, Explanation, Row

EXAMPLE_GOLD: dict[str, Any] = {
    "query_id": "q",
    "relevant": {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1},
    "spans": [{"doc_id": "d1", "start": 120, "end": 310}, {"doc_id": "d2", "start": 0, "end": 50}],
    "evidence": ["Refunds are paid within 14 days", "to the card you paid with", "in euros"],
}
_PLACES = ("d1", 0), ("d3", 0), ("d1", 150), ("d2", 0), ("d1", 300), ("d3", 150)
_TEXTS = (
    "Orders may be returned within 30 days.",
    "We ship to all of Europe.",
    "Refunds are paid within fourteen days.",
    "Money goes back to the card you paid with.",
    "Refunds are paid within 14 days, to the card you paid with.",
    "We pay in euros.",
)
EXAMPLE_RUN: dict[str, Any] = {
    "query_id": "q",
    "results": [
        {"id": item, "doc_id": document, "start": start, "end": start + 200, "text": text}
        for item, (document, start), text in zip("bxadcy", _PLACES, _TEXTS, strict=True)
    ],
    "latency_ms": {"total": 123.4, "retrieval": 80.1, "rerank": 43.0},
    "calls": [
        {"stage": "retrieval", "model": "embedder", "prompt_tokens": 12, "price_in": 0.00002},
        {"stage": "rerank", "model": "reranker", "price_per_call": 0.002},
    ],
}
EXAMPLE_CHUNKS = pl.DataFrame(EXAMPLE_RUN["results"])


def explain(
    measure: str | Measure,
    *,
    gold: Any = None,
    run: Any = None,
    query: str | int | None = None,
    other: Any = None,
    conventions: Conventions | dict[str, Any] | None = None,
    level: str = "item",
    chunks: Any = None,
    corpus: Any = None,
    matching: Matching | None = None,
    top_k: int | None = None,
    score_threshold: float | None = None,
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
    words, settings = Conventions.of(conventions), Settings(top_k, score_threshold)
    if gold is None and run is None and query is None and other is None:
        if settings:
            raise InputError(
                "top_k and score_threshold need data to show",
                field="list",
                hint="give gold, run and query as well",
            )
        return _explain_in_words(measure, words, level, matching)
    needed = {"gold": gold, "run": run, "query": query}
    if lacking := [name for name, part in needed.items() if part is None]:
        raise InputError(
            f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} needed as well",
            hint="a calculation needs gold, run and query",
        )
    opened, listed = Gold.open(gold), [run] if other is None else [run, other]
    runs = [Run.open(each).shaped(top_k, score_threshold) for each in listed]
    if corpus is not None:
        documents = Corpus.open(corpus)
        opened = opened.in_code_points(documents)
        runs = [each.in_code_points(documents) for each in runs]
    asked = _known(query, opened)
    plan = _plan(parse(measure), opened, words, level, chunks, matching)
    for each in runs:
        check_run(each, plan)
    if "error" in (words.missing, words.unknown, words.duplicates):
        for each in runs:  # such a word speaks of all queries, as it does in evaluate
            score(prepare(opened), each, plan)
    judged = prepare(opened.only(asked))
    calculations = [_calculation(judged, each, asked, plan) for each in runs]
    if settings:
        calculations = [
            replace(each, remarks=[*each.remarks, f"list: {settings}"]) for each in calculations
        ]
    return Explanation(plan.measures[0], asked, calculations, words, level, plan.rule)


def _explain_in_words(
    measure: str | Measure, conventions: Conventions, level: str, matching: Matching | None
) -> Explanation:
    if level != "item":
        raise InputError(
            "a level needs data to show", field="level", hint="give gold, run and query as well"
        )
    known = declared(measure) if isinstance(measure, str) else None
    if known is not None and known.cutoff == "share":  # words alone need no point of recall
        measure = f"{measure}@0.5"
    gold = Gold.of([EXAMPLE_GOLD])
    plan = _plan(parse(measure), gold, conventions, level, EXAMPLE_CHUNKS, matching)
    example = _calculation(prepare(gold), Run.of([EXAMPLE_RUN]), "q", plan)
    return Explanation(plan.measures[0], None, [example], conventions, level, plan.rule)


def _plan(
    measure: Measure,
    gold: Gold,
    conventions: Conventions,
    level: str,
    chunks: Any,
    matching: Matching | None,
) -> Plan:
    return Plan.of(
        measure,
        conventions=conventions,
        level=level,
        largest_grade=PreparedGold(gold).largest_grade if measure.needs_largest_grade else None,
        chunks=chunks,
        matching=matching,
    )


def _known(query: str | int | None, gold: Gold) -> str:
    name = str(query) if isinstance(query, int) and not isinstance(query, bool) else query
    if not isinstance(name, str) or name not in gold.query_ids:
        first = ", ".join(map(repr, gold.query_ids.head(3)))
        raise InputError(f"gold has no query {query!r}", field="query", hint=f"it has {first}, …")
    return name


def _run_of(run: Run, query: str) -> Run:
    return Run(
        run.results.filter(pl.col("query_id") == query),
        empty=[each for each in run.empty if each == query],
        offsets=run.offsets,
        timings=_rows_of(run.timings, query),
        calls=_rows_of(run.calls, query),
        name=run.name,
    )


def _rows_of(table: pl.DataFrame | None, query: str) -> pl.DataFrame | None:
    return None if table is None else table.filter(pl.col("query_id") == query)


def _calculation(gold: PreparedGold, run: Run, query: str, plan: Plan) -> Calculation:
    """Score one query while listening to its kernel."""
    own = _run_of(run, query)
    measure = plan.measures[0]
    with listening() as workings:
        readings = read(gold, own, plan)
        table = scored(gold, own, plan, readings)
    grades: dict[str, int] = dict(gold.table.select("item_id", "grade").iter_rows())
    family = measure.declaration.family
    found = readings["evidence"].data if family == "evidence" else None
    if family == "span":
        rows = _stretches(described(own, plan.chunks, "doc_id", "start", "end"))
    elif found is not None:
        rows = _texts(found)
    elif measure.declaration.reads_gold:
        rows = _ranked(
            levels.documents(own) if plan.level == "doc" else own, grades, plan.conventions
        )
    else:
        rows = _used(own, measure)
    counted = _note(workings, rows)
    limit = measure.cutoff if isinstance(measure.cutoff, int) else len(rows)
    end = max([limit, *counted])
    columns = [name for noted in workings.tables if not _is_ideal(noted) for name in noted.columns]
    return Calculation(
        run=run.name or "run",
        value=table.frame[measure.name][0],
        rows=rows[:end],
        columns=list(dict.fromkeys(map(_words, columns))),
        counted=counted,
        ideal=_ideal(workings, family),
        missed=_missed(measure, grades, rows, end),
        matches=[]
        if found is None
        else matches(found, gold.query_ids, 0).drop("query_id").to_dicts(),
        numbers={_words(name): _plain(each[0]) for name, each in workings.numbers.items()},
        remarks=_remarks(table.counts, plan),
    )


def _ranked(run: Run, grades: dict[str, int], conventions: Conventions) -> list[Row]:
    listed = run.results["item_id"].to_list()
    if conventions.unjudged == "skip":
        listed = [item for item in listed if grades.get(item, -1) >= 0]
    return [
        {"rank": rank, "item": item, "grade": grades.get(item)}
        for rank, item in enumerate(listed, 1)
    ]


def _stretches(results: pl.DataFrame) -> list[Row]:
    if not results.height:
        return []
    places = results.select("doc_id", "start", "end").iter_rows()
    return [
        {"rank": rank, "item": f"{document}[{start}:{end}]"}
        for rank, (document, start, end) in enumerate(places, 1)
    ]


def _texts(found: Found) -> list[Row]:
    ids = found.ids or [None] * len(found.items.text)
    named = (
        " ".join(text.split()) if item is None else item
        for item, text in zip(ids, found.items.text, strict=True)
    )
    return [
        {"rank": rank, "item": item} for rank, item in zip(found.rank.tolist(), named, strict=True)
    ]


def _used(run: Run, measure: Measure) -> list[Row]:
    """Return what the run says of the stages or of the calls of a query."""
    if measure.declaration.family == "latency":
        assert run.timings is not None
        return run.timings.select("stage", "ms").to_dicts()
    assert run.calls is not None
    tokens = {"prompt_tokens": "in", "completion_tokens": "out"}
    return run.calls.select("stage", "model", *tokens).rename(tokens).to_dicts()


def _note(workings: Workings, rows: list[Row]) -> list[int]:
    """Put what was noted of places beside them; return the ranks that count."""
    counted: dict[int, None] = {}
    for noted in workings.tables:
        if isinstance(noted, NotedOthers):
            for rank in _other_ranks(noted, rows):
                counted[rank] = None
                for name, function in noted.columns.items():
                    rows[rank - 1][_words(name)] = function(rank)
        elif not noted.ideal:
            for at, rank in enumerate(noted.places.rank.tolist()):
                counted[rank] = None
                for name, values in noted.columns.items():
                    rows[rank - 1][_words(name)] = _plain(values[at])
    return sorted(counted)


def _other_ranks(noted: NotedOthers, rows: list[Row]) -> list[int]:
    """Return the ranks of items that stand at none of the noted places, each item once."""
    known = set(noted.places.rank.tolist())
    first: dict[str, int] = {}
    for row in rows[: noted.cutoff]:
        first.setdefault(row["item"], row["rank"])
    return [rank for rank in first.values() if rank not in known]


def _is_ideal(noted: Noted | NotedOthers) -> bool:
    return isinstance(noted, Noted) and noted.ideal


def _ideal(workings: Workings, family: str) -> list[Row]:
    rows: dict[int, Row] = {}
    for noted in workings.tables:
        if not isinstance(noted, Noted) or not noted.ideal:
            continue
        for at, rank in enumerate(noted.places.rank.tolist()):
            row = rows.setdefault(rank, {"rank": rank})
            if family == "rank":
                row["grade"] = int(noted.places.grade[at])
            for name, values in noted.columns.items():
                row[_words(name)] = _plain(values[at])
    return [rows[rank] for rank in sorted(rows)]


def _missed(measure: Measure, grades: dict[str, int], rows: list[Row], end: int) -> list[Row]:
    """Return what the measure would have rewarded, and where it stands if it does further down."""
    params = measure.params
    rewards = "rel" in params or "gain" in params or measure.needs_largest_grade
    if not rewards or not measure.declaration.higher_is_better:
        return []
    gain = params.get("gain")
    if isinstance(gain, dict):
        wanted = [item for item, grade in grades.items() if worth(np.array([grade]), gain)[0] > 0]
    else:
        wanted = [item for item, grade in grades.items() if grade >= params.get("rel", 1)]
    ranks: dict[str, int] = {}
    for row in rows:
        ranks.setdefault(row["item"], row["rank"])
    missed = [item for item in wanted if ranks.get(item, end + 1) > end]
    return [
        {"item": item, "grade": grades[item], "rank": ranks.get(item)}
        for item in sorted(missed, key=lambda item: (-grades[item], item))
    ]


def _remarks(counts: dict[str, int], plan: Plan) -> list[str]:
    """Say which convention decided, where one did."""
    words = plan.conventions
    said = {
        "missing": f"the run lacks this query: missing={words.missing}",
        "no_judgments": "gold has no judgments for this query, so it is left out",
        "no_spans": "gold has no spans for this query, so it is left out",
        "no_evidence": "gold has no evidence for this query, so it is left out",
        "no_texts": f"gold's evidence holds no text here: no_gold={words.no_gold}",
        "no_characters": f"gold's spans hold no characters here: no_gold={words.no_gold}",
        "no_relevant": f"gold holds nothing relevant here: no_gold={words.no_gold}",
        "not_run": "the run lacks this query, so it is left out",
        "no_timings": "the run has no such timing for this query, so it is left out",
        "unpriced": "a call has no price, or not the tokens it is for: the cost is not known",
        "repeats": f"an item stands again in the list: duplicates={words.duplicates}",
    }
    return [remark for name, remark in said.items() if counts[name]]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _plain(value: Any) -> Any:
    """Return a value of NumPy's as Python's own; what is no number is none."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and math.isnan(plain) else plain
