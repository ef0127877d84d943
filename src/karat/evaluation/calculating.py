"""How the value of one query comes about: its kernel is listened to while it works."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from karat.conventions import Conventions
from karat.data.run import Run
from karat.match import level as levels
from karat.match.described import described
from karat.match.evidence import Found
from karat.match.matches import matches
from karat.match.prepared import PreparedGold
from karat.measures import Measure, Plan
from karat.measures.rank.gain import worth
from karat.measures.reading import read
from karat.measures.scoring import scored
from karat.measures.workings import Noted, NotedOthers, Workings, listening
from karat.report.calculation import Calculation, Row


def calculation(gold: PreparedGold, run: Run, query: str, plan: Plan) -> Calculation:
    """Score one query by the first measure of a plan, while listening to its kernel.

    Gold holds that query alone; the plan knows what the whole gold decides.
    """
    own = run.only([query])
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
