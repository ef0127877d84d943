"""`karat.to_judgments`: convert gold spans to judgments of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.data.chunks import Chunks
from karat.data.gold import Gold
from karat.errors import InputError, counted, for_example, warn
from karat.match.span_intervals import overlaps
from karat.match.spans import MinOverlap, number_documents, relevant_spans, to_intervals


def to_judgments(
    gold: Any,
    chunks: Any,
    *,
    min_overlap: int | float | str = 1,
    shares: Sequence[float | str] = (),
) -> Gold:
    """Convert gold spans to judgments of chunks, so that rank measures work with any chunking.

    A chunk is relevant if it contains at least `min_overlap` of a gold span. A chunk that contains
    several spans gets the highest of their grades. If no chunk contains enough of any span of a
    query, the query keeps an empty list of judgments, and a `KaratWarning` counts these queries.

    Parameters
    ----------
    gold : path, table, dict, records or Gold
        Gold with spans. Offsets must be counted in code points.
    chunks : path, table, records or Chunks
        All chunks of the corpus, with the columns id, doc_id, start and end.
    min_overlap : int, float or str, default 1
        How much of a gold span a chunk must contain: an integer is a number of characters, a float
        is a share of the span (1.0 is the whole span). A str is read the same way, so "1" is one
        character and "1.0" is the whole span.
    shares : sequence of float, default ()
        If given, the grade of a chunk depends on the share of a span that it contains. With
        [0.5, 1.0], the grade is 1 for a share below 0.5, 2 from 0.5 on, and 3 for the whole span.
        If empty, a chunk gets the grade of the span.

    Returns
    -------
    Gold
        The same gold, with judgments of chunks.

    Raises
    ------
    InputError
        If gold has no spans, or a parameter is out of range.

    Examples
    --------
    >>> import polars as pl
    >>> from karat import Gold, to_judgments
    >>> spans = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "start": [90], "end": [130]})
    >>> gold = Gold.of(spans=spans)
    >>> chunks = pl.DataFrame(
    ...     {"id": ["a", "b"], "doc_id": ["d", "d"], "start": [0, 100], "end": [100, 200]}
    ... )
    >>> to_judgments(gold, chunks, min_overlap=0.5).judgments.rows()
    [('q', 'b', 1)]
    >>> to_judgments(gold, chunks, shares=[0.5]).judgments.rows()
    [('q', 'a', 1), ('q', 'b', 2)]
    """
    source = Gold.open(gold)
    chunk_table, least = Chunks.open(chunks).frame, MinOverlap.of(min_overlap)
    sorted_shares = _sorted_shares(shares)
    if source.spans is None:
        raise InputError(
            "gold has no spans",
            field="spans",
            hint="use gold with spans, or create them from evidence texts with karat.locate",
        )
    spans = relevant_spans(source)
    span_document, chunk_document = number_documents(spans, chunk_table)
    span_intervals = to_intervals(span_document, spans)
    span, chunk, shared = overlaps(span_intervals, to_intervals(chunk_document, chunk_table))
    enough = least.is_reached(shared, span_intervals.length[span])
    span, chunk, shared = span[enough], chunk[enough], shared[enough]
    if sorted_shares.size:
        share = shared / span_intervals.length[span]
        grade = 1 + np.searchsorted(sorted_shares, share, "right")
    else:
        grade = spans["grade"].to_numpy()[span]
    judgments = (
        pl.DataFrame(
            {
                "query_id": spans["query_id"][span],
                "item_id": chunk_table["item_id"][chunk],
                "grade": grade,
            }
        )
        .group_by("query_id", "item_id")
        .agg(pl.col("grade").max())
        .sort("query_id", "item_id")
    )
    empty_spans = pl.Series(source.empty_spans, dtype=pl.String)
    query_ids = pl.concat([source.spans["query_id"], empty_spans]).unique().sort()
    without_judgments = query_ids.filter(~query_ids.is_in(judgments["query_id"].implode()))
    _warn_of_queries_without_chunks(spans, judgments)
    return source.with_judgments(judgments, empty=without_judgments.to_list())


def _sorted_shares(shares: Sequence[float | str]) -> Floats:
    if isinstance(shares, (int, float, str)):
        raise InputError(
            f"expected a list of shares, got {shares!r}",
            field="shares",
            hint="use a list, such as [0.5]",
        )
    return np.sort([_parse_share(share) for share in shares])


def _parse_share(value: float | str) -> float:
    try:
        if 0 < float(value) <= 1:
            return float(value)
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"a share must be a number above 0 and at most 1, got {value!r}",
        field="shares",
        hint="0.5 means half of a span",
    )


def _warn_of_queries_without_chunks(spans: pl.DataFrame, judgments: pl.DataFrame) -> None:
    with_spans = spans.filter(pl.col("end") > pl.col("start"))["query_id"].unique()
    missing = with_spans.filter(~with_spans.is_in(judgments["query_id"].implode())).sort()
    if missing.len():
        warn(
            f"{missing.len():,} of {counted(with_spans.len(), 'query')} with spans will score "
            "0, because no chunk contains enough of any span"
            f"{for_example(missing.len(), f'query {missing[0]!r}')}",
            stacklevel=3,
        )
