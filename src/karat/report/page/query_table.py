"""What a page knows of the queries of some scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats, Ints
from karat.config import REPORT_TEXTS
from karat.errors import InputError, KaratWarning
from karat.evaluation.loaded_run import LoadedRun
from karat.evaluation.scores import Scores
from karat.measures import Measure
from karat.report.page.gold_kinds import GOLD_KINDS, GoldFound, first_gold_measure
from karat.report.page.model import Outcomes, Queries
from karat.report.page.query_details import details
from karat.report.page.query_status import (
    FAILED,
    no_gold_counts,
    query_outcomes,
    scores_only_outcomes,
)
from karat.report.page.ranked_lists import RankedLists, ScoredLists


def informative_queries(
    values: Floats, failed: Flags, n: int, *, higher_is_better: bool = True
) -> Ints:
    """Return the numbers of the n queries that tell most, in their order.

    Values have a row a run; no number where a query is left out. First come the queries that a
    run failed on; then, by turns, those that even the best run is worst at and those whose value
    moves most from run to run. Of equals, the first.
    """
    n_queries = values.shape[1]
    if n >= n_queries:
        return np.arange(n_queries)
    known = ~np.isnan(values).all(axis=0)
    signed = values if higher_is_better else -values
    best = np.where(known, np.fmax.reduce(signed, axis=0), np.inf)
    moved = np.where(known, best - np.fmin.reduce(signed, axis=0), 0.0)
    worst_first = np.argsort(best, kind="stable")
    most_moved_first = np.argsort(-moved, kind="stable")
    most_moved_first[np.count_nonzero(moved) :] = -1
    by_turns = np.stack((worst_first, most_moved_first), axis=1).ravel()
    order = np.concatenate((np.flatnonzero(failed), by_turns[by_turns >= 0]))
    _, first = np.unique(order, return_index=True)
    return np.sort(order[np.sort(first)][:n])


_QUERY_TEXT = 120
"""How many characters of a query's text are known of every query."""


def load_queries(
    scores: Sequence[Scores], opened: Sequence[LoadedRun | None], *, texts: int = REPORT_TEXTS
) -> Queries:
    """Bring together what is known of the queries, which are the same in all scores.

    A run that is not opened has values alone. Texts, calculations and highlights are kept for the
    queries that tell most, as many as `texts` says.
    """
    ids = scores[0].table.frame["query_id"]
    _check_same_queries(scores, ids)
    known = _query_fields(scores, ids)
    fields = [name for name in known.columns if name not in ("query_id", "text")]
    measure = first_gold_measure(scores[0].table.measures)
    with warnings.catch_warnings():  # whatever there is to warn of was said when runs were scored
        warnings.simplefilter("ignore", KaratWarning)
        held = [None if run is None else _gold_found(run, measure) for run in opened]
        became = [
            scores_only_outcomes(ids.len())
            if run is None or found is None
            else query_outcomes(run, found)
            for run, found in zip(opened, held, strict=True)
        ]
        wanted = next((found.wanted for found in held if found), np.zeros(ids.len(), np.int64))
        runs = [None if run is None else ScoredLists(run, measure) for run in opened]
        numbers = _queries_with_texts(scores, became, texts)
        at_hand = any(runs)
        return Queries(
            ids=ids,
            texts=known["text"].str.head(_QUERY_TEXT) if "text" in known.columns else None,
            fields=known.select(fields),
            wanted=pl.Series("wanted", wanted, pl.Int32),
            outcomes=became if at_hand else [],
            lists=RankedLists(runs) if at_hand else (),
            details=details(scores, runs, known, numbers) if at_hand else {},
        )


def _check_same_queries(scores: Sequence[Scores], ids: pl.Series) -> None:
    for score in scores:
        if not score.table.frame["query_id"].equals(ids):
            raise InputError(
                f"the scores of {score.name!r} are of other queries than those of "
                f"{scores[0].name!r}",
                field="runs",
                hint="score all runs against the same gold",
            )


def _query_fields(scores: Sequence[Scores], ids: pl.Series) -> pl.DataFrame:
    """Return what is known of each query: its id, its text where there is one, fields as text.

    All scores of one gold know the same of its queries; saved ones may know less.
    """
    known = max((score.queries for score in scores), key=lambda queries: queries.width)
    known = ids.to_frame().join(known, on="query_id", how="left", maintain_order="left")
    return known.select(as_text(column) for column in known.iter_columns())


def _gold_found(run: LoadedRun, measure: Measure | None) -> GoldFound:
    if measure is None:
        return no_gold_counts(run.query_ids.len())
    family = measure.declaration.family
    return GOLD_KINDS[family].found(run.readings[family], measure)


def as_text(field: pl.Series) -> pl.Series:
    """Return a field of the queries as text; what has parts, as JSON."""
    if not field.dtype.is_nested():
        return field.cast(pl.String)
    encoded = field.to_frame("value").select(pl.struct("value").struct.json_encode()).to_series()
    inner = encoded.str.strip_prefix('{"value":').str.strip_suffix("}")
    return inner.set(field.is_null(), None).alias(field.name)


def _queries_with_texts(
    scores: Sequence[Scores], became: Sequence[Outcomes], texts: int
) -> list[int]:
    first = scores[0].table.measures[0]
    values = [score.table.frame[first.name].fill_null(float("nan")) for score in scores]
    failed = np.logical_or.reduce([(one.status == FAILED).to_numpy() for one in became])
    higher = first.declaration.higher_is_better
    numbers: list[int] = informative_queries(
        np.array([column.to_numpy() for column in values]), failed, texts, higher_is_better=higher
    ).tolist()
    return numbers
