"""From spans to judgments: which chunks of any chunker hold what should be found."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.data.chunks import Chunks
from karat.data.gold import Gold
from karat.errors import InputError, KaratWarning, counted
from karat.match.span_intervals import overlaps
from karat.match.spans import (
    MinOverlap,
    relevant_spans,
    to_intervals,
    number_documents,
)


def to_judgments(
    gold: Any,
    chunks: Any,
    *,
    min_overlap: int | float | str = 1,
    shares: Sequence[float | str] = (),
) -> Gold:
    """Judge the chunks of any chunker by gold's spans, so that every rank measure works on them.

    A chunk is relevant if it holds at least `min_overlap` of a gold span: characters as a whole
    number, or a share of the span as a float (1.0 is all of it). Its grade is the highest of the
    spans it holds; with `shares`, it is 1 and one more for each share of a span that it reaches.

    >>> spans = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "start": [90], "end": [130]})
    >>> chunks = pl.DataFrame(
    ...     {"id": ["a", "b"], "doc_id": ["d", "d"], "start": [0, 100], "end": [100, 200]}
    ... )
    >>> to_judgments(Gold.of(spans=spans), chunks, shares=[0.5]).judgments.rows()
    [('q', 'a', 1), ('q', 'b', 2)]
    >>> to_judgments(Gold.of(spans=spans), chunks, min_overlap=0.5).judgments.rows()
    [('q', 'b', 1)]
    """
    held = Gold.open(gold)
    table, least = Chunks.open(chunks).frame, MinOverlap.of(min_overlap)
    rising = _rising(shares)
    if held.spans is None:
        raise InputError(
            "gold holds no spans", field="spans", hint="karat.locate makes spans of evidence"
        )
    spans = relevant_spans(held)
    of_span, of_chunk = number_documents(spans, table)
    wanted = to_intervals(of_span, spans)
    span, chunk, shared = overlaps(wanted, to_intervals(of_chunk, table))
    enough = least.reached(shared, wanted.length[span])
    span, chunk, shared = span[enough], chunk[enough], shared[enough]
    if rising.size:
        reached = shared / wanted.length[span]
        grade = 1 + np.searchsorted(rising, reached, "right")
    else:
        grade = spans["grade"].to_numpy()[span]
    judgments = (
        pl.DataFrame(
            {
                "query_id": spans["query_id"][span],
                "item_id": table["item_id"][chunk],
                "grade": grade,
            }
        )
        .group_by("query_id", "item_id")
        .agg(pl.col("grade").max())
        .sort("query_id", "item_id")
    )
    given = pl.concat([held.spans["query_id"], pl.Series(held.empty_spans, dtype=pl.String)])
    empty = given.unique().sort()
    empty = empty.filter(~empty.is_in(judgments["query_id"].implode()))
    _warn_of_the_unheld(spans, judgments)
    return held.with_judgments(judgments, empty=empty.to_list())


def _rising(shares: Sequence[float | str]) -> Floats:
    if isinstance(shares, (int, float, str)):
        raise InputError(
            f"{shares!r} is no list of shares", field="shares", hint="give a list, such as [0.5]"
        )
    return np.sort([_share(share) for share in shares])


def _share(value: float | str) -> float:
    try:
        if 0 < float(value) <= 1:
            return float(value)
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"{value!r} is no share", field="shares", hint="a share is above 0 and at most 1"
    )


def _warn_of_the_unheld(spans: pl.DataFrame, judgments: pl.DataFrame) -> None:
    """Say for how many queries no chunk holds enough of any span."""
    wanted = spans.filter(pl.col("end") > pl.col("start"))["query_id"].unique()
    unheld = wanted.filter(~wanted.is_in(judgments["query_id"].implode())).sort()
    if unheld.len():
        warnings.warn(
            KaratWarning(
                f"of {counted(wanted.len(), 'query')} with spans, {unheld.len()} such as "
                f"{unheld[0]!r} have no chunk that holds enough of any; they will score 0"
            ),
            stacklevel=3,
        )
