"""The queries of a page: texts, fields, outcomes, ranked lists and details."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from karat.config import REPORT_TEXTS
from karat.errors import InputError, without_warnings
from karat.evaluation.loaded_run import LoadedRun
from karat.evaluation.scores import Scores
from karat.measures import Measure
from karat.report.page.model import Outcomes, Queries
from karat.report.page.queries.gold_kinds import GOLD_KINDS, GoldFound, first_gold_measure
from karat.report.page.queries.informative import informative_queries
from karat.report.page.queries.query_details import details
from karat.report.page.queries.query_status import (
    FAILED,
    no_gold_counts,
    query_outcomes,
    scores_only_outcomes,
)
from karat.report.page.queries.ranked_lists import RankedLists, ScoredLists

_QUERY_TEXT = 201
"""How many characters of the text are kept for every query: one more than the list shows, so that
it knows what to shorten."""


def load_queries(
    scores: Sequence[Scores], opened: Sequence[LoadedRun | None], *, texts: int = REPORT_TEXTS
) -> Queries:
    """Return the queries of a page; all scores must have the same queries.

    A run that is None has values only. Texts, calculations and highlights are kept for the `texts`
    most informative queries.
    """
    ids = scores[0].table.frame["query_id"]
    _check_same_queries(scores, ids)
    table = _query_fields(scores, ids)
    fields = [name for name in table.columns if name not in ("query_id", "text")]
    measure = first_gold_measure(scores[0].table.measures)
    with without_warnings():  # scoring the runs has already issued these warnings
        counts = [None if run is None else _gold_found(run, measure) for run in opened]
        outcomes = [
            scores_only_outcomes(ids.len())
            if run is None or found is None
            else query_outcomes(run, found)
            for run, found in zip(opened, counts, strict=True)
        ]
        n_relevant = next((found.total for found in counts if found), np.zeros(ids.len(), np.int64))
        runs = [None if run is None else ScoredLists(run, measure) for run in opened]
        numbers = _queries_with_texts(scores, outcomes, texts)
        has_lists = any(runs)
        known, chunks = details(scores, runs, table, numbers) if has_lists else ({}, [])
        return Queries(
            ids=ids,
            texts=table["text"].str.head(_QUERY_TEXT) if "text" in table.columns else None,
            fields=table.select(fields),
            n_relevant=pl.Series("wanted", n_relevant, pl.Int32),
            outcomes=outcomes if has_lists else [],
            lists=RankedLists(runs) if has_lists else (),
            details=known,
            chunks=chunks,
        )


def _check_same_queries(scores: Sequence[Scores], ids: pl.Series) -> None:
    for score in scores:
        if not score.table.frame["query_id"].equals(ids):
            raise InputError(
                f"{score.name!r} and {scores[0].name!r} were scored on different queries",
                field="runs",
                hint="score all runs against the same gold",
            )


def _query_fields(scores: Sequence[Scores], ids: pl.Series) -> pl.DataFrame:
    """Return the id of each query, its text if there is one, and its fields as text.

    All scores against one gold have the same fields; saved scores may have fewer.
    """
    table = max((score.queries for score in scores), key=lambda queries: queries.width)
    table = ids.to_frame().join(table, on="query_id", how="left", maintain_order="left")
    return table.select(as_text(column) for column in table.iter_columns())


def _gold_found(run: LoadedRun, measure: Measure | None) -> GoldFound:
    if measure is None:
        return no_gold_counts(run.query_ids.len())
    family = measure.declaration.family
    return GOLD_KINDS[family].found(run.readings[family], measure)


def as_text(field: pl.Series) -> pl.Series:
    """Return a field of the queries as text; lists and structs become JSON."""
    if not field.dtype.is_nested():
        return field.cast(pl.String)
    encoded = field.to_frame("value").select(pl.struct("value").struct.json_encode()).to_series()
    inner = encoded.str.strip_prefix('{"value":').str.strip_suffix("}")
    return inner.set(field.is_null(), None).alias(field.name)


def _queries_with_texts(
    scores: Sequence[Scores], outcomes: Sequence[Outcomes], texts: int
) -> list[int]:
    first = scores[0].table.measures[0]
    values = [score.table.frame[first.name].fill_null(float("nan")) for score in scores]
    failed = np.logical_or.reduce([(run.status == FAILED).to_numpy() for run in outcomes])
    higher = first.declaration.higher_is_better
    numbers: list[int] = informative_queries(
        np.array([column.to_numpy() for column in values]), failed, texts, higher_is_better=higher
    ).tolist()
    return numbers
