"""Everything that is known of single queries: texts, calculations, highlights."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from karat.evaluation.page.highlighting import documents
from karat.evaluation.page.matched import MOST_TEXT, evidence_of, match_of
from karat.evaluation.page.shown import BEGINNING, Shown
from karat.evaluation.page.sources import Texts, results_of
from karat.evaluation.retracing import retraced
from karat.evaluation.scores import Scores
from karat.match.numbers import numbers_of
from karat.match.spans import WANTED
from karat.match.usage import Usage
from karat.measures.run.cost import prices_of
from karat.report.calculation import TOP, Calculation, Row
from karat.report.page.model import Json

MOST_LISTED = 50
"""How many items are kept of an ideal list, and of what a list misses."""


def details(
    scores: Sequence[Scores],
    runs: Sequence[Shown | None],
    queries: pl.DataFrame,
    numbers: Sequence[int],
) -> dict[int, Json]:
    """Return what is known of some queries, by their numbers.

    `queries` has a row a query: its id, its text where there is one, its fields as text.
    """
    shown = next(run for run in runs if run is not None)
    texts, spans = Texts.of(shown.opened), _spans(shown, numbers)
    evidence = evidence_of(shown.opened, numbers)
    results = [{} if run is None else results_of(run, numbers, texts) for run in runs]
    told = [
        {} if run is None else _told(score, run, queries["query_id"], numbers)
        for score, run in zip(scores, runs, strict=True)
    ]
    made = {}
    for number, row in zip(numbers, queries[numbers].iter_rows(named=True), strict=True):
        known = {name: value for name, value in row.items() if value is not None}
        wanted = spans.get(number, [])
        listed = [each.get(number, []) for each in results]
        made[number] = {
            "text": known.get("text"),
            "fields": {n: v for n, v in known.items() if n not in ("query_id", "text")},
            "spans": [_cut(span | {"text": texts.text(span)}) for span in wanted],
            "evidence": evidence[number],
            "runs": [
                _NOTHING | each.get(number, {}) | {"results": list(map(_cut, items))}
                for each, items in zip(told, listed, strict=True)
            ],
            "documents": documents(wanted, listed, texts),
        }
    return made


_NOTHING: Json = {
    "error": None,
    "timings": None,
    "calls": None,
    "results": [],
    "calculations": {},
    "matches": [],
}


def _cut(placed: Row) -> Json:
    """Keep the beginning of a long text, and how long it is."""
    text = placed["text"]
    if text is None:
        return placed | {"length": None}
    return placed | {"text": text[:MOST_TEXT], "length": len(text)}


def _spans(shown: Shown, numbers: Sequence[int]) -> dict[int, list[Row]]:
    """Return the spans that should be found, if they and the run are counted in one way."""
    gold, run = shown.opened.gold, shown.opened.run
    wanted: dict[int, list[Row]] = {}
    if gold.spans is None or {gold.offsets, run.offsets} != {"codepoint"}:
        return wanted
    whose = numbers_of(gold.query_ids, gold.spans["query_id"])
    spans = gold.spans.with_columns(query=whose).filter(WANTED, pl.col("query").is_in(numbers))
    columns = ("query", "doc_id", "start", "end", "text")
    for row in spans.select(columns).sort(columns).iter_rows(named=True):
        wanted.setdefault(row.pop("query"), []).append(row)
    return wanted


def _told(
    score: Scores, shown: Shown, query_ids: pl.Series, numbers: Sequence[int]
) -> dict[int, Json]:
    """Return what a run says of some queries, and how their values come about."""
    ids = query_ids[numbers]
    run = shown.opened.run.only(ids)
    number_of = dict(zip(ids, numbers, strict=True))
    told: dict[int, Json] = {number: {"calculations": {}} for number in numbers}
    if run.errors is not None:
        for error in run.errors.iter_rows(named=True):
            told[number_of[error.pop("query_id")]]["error"] = error
    if run.timings is not None:
        for query, stage, ms in run.timings.iter_rows():
            spent = told[number_of[query]].setdefault("timings", {})
            spent[stage] = spent.get(stage, 0.0) + ms
    if run.calls is not None:
        calls = Usage.of(ids, run, run.calls)
        priced = calls.table.with_columns(usd=pl.Series(prices_of(calls), nan_to_null=True))
        columns = ("stage", "model", "prompt_tokens", "completion_tokens", "usd")
        for at, call in zip(calls.places.query, priced.select(columns).to_dicts(), strict=True):
            told[numbers[at]].setdefault("calls", []).append(call)
    found = shown.opened.found
    for (query, measure), calculation in retraced(score, run, ids, score.table.measures):
        number = number_of[query]
        plain = told[number]["calculations"][measure.name] = _plain(calculation)
        if measure.declaration.family != "evidence":
            continue
        assert found is not None, "evidence was measured"
        if found.ids is None:
            for row in plain["rows"]:
                row["item"] = row["item"][:BEGINNING]
        if "matches" not in told[number]:
            matches = [match_of(match, found, number) for match in calculation.matches]
            told[number]["matches"] = matches
    return told


def _plain(calculation: Calculation) -> Json:
    """Return a calculation as data, of a long list only what is shown."""
    top = [rank for rank in calculation.counted if rank <= TOP]
    return {
        "value": calculation.value,
        "columns": calculation.columns,
        "rows": calculation.picked,
        "counted": [*top, *calculation.counted_below],
        "ideal": calculation.ideal[:MOST_LISTED],
        "missed": calculation.missed[:MOST_LISTED],
        "n_ideal": len(calculation.ideal),
        "n_missed": len(calculation.missed),
        "numbers": calculation.numbers,
        "remarks": calculation.remarks,
    }
