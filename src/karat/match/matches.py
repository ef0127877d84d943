"""Which evidence was covered by what, and what came nearest to the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from karat.match.evidence import Found
from karat.match.texts import HOW, nearest, ratio, where

COLUMNS = {
    "query_id": pl.String,
    "evidence": pl.String,
    "rank": pl.Int64,
    "item_id": pl.String,
    "how": pl.String,
    "ratio": pl.Float64,
    "start": pl.Int64,
    "end": pl.Int64,
    "nearest_rank": pl.Int64,
    "nearest_item_id": pl.String,
    "nearest_indel": pl.Float64,
}


def matches(
    found: Found, query_ids: pl.Series, query: int | None = None, *, exactly: float = 0
) -> pl.DataFrame:
    """Return a row for each evidence that counts: what covers it first, or what comes nearest.

    `how` is exact, substring, fuzzy, function or missed. `ratio` is the matcher's number where it
    decided, 1 for exact; `start` and `end` say where in the chunk as it came. The nearest chunk of
    a missed evidence is so by Indel similarity, which decides nothing. Its exact `nearest_ratio`
    stands beside where two texts have at most `exactly` pairs of characters, since it takes time to
    compute. `query` is the number of the only one that is looked at.
    """
    covering = found.covering
    first, leads = np.unique(covering.evidence, return_index=True)
    lead_of = dict(zip(first.tolist(), leads.tolist(), strict=True))
    stops = np.searchsorted(found.items.query, np.arange(found.given.size), "right")
    rows = []
    for evidence in covering.counted.tolist():
        asked = int(found.evidence.query[evidence])
        if query is not None and asked != query:
            continue
        row: dict[str, Any] = {
            "query_id": query_ids[asked],
            "evidence": found.evidence.text[evidence],
        }
        if evidence in lead_of:
            row |= _covered(found, evidence, lead_of[evidence])
        else:
            begin = int(stops[asked - 1]) if asked else 0
            row |= _missed(found, evidence, begin, int(stops[asked]), exactly)
        rows.append(row)
    schema = COLUMNS | ({"nearest_ratio": pl.Float64} if exactly else {})
    return pl.DataFrame(rows, schema=schema)


def _covered(found: Found, evidence: int, lead: int) -> dict[str, Any]:
    item = int(found.covering.chunk[lead])
    how = HOW[found.covering.how[lead]]
    wanted, text = found.evidence.text[evidence], found.items.text[item]
    place = where(wanted, text, found.matching) or (None, None)
    row = {"how": how, "start": place[0], "end": place[1]} | _item(found, item, "")
    if how in ("fuzzy", "function"):
        row["ratio"] = ratio(wanted, text, found.matching)
    elif how == "exact":
        row["ratio"] = 1.0
    return row


def _missed(found: Found, evidence: int, start: int, stop: int, exactly: float) -> dict[str, Any]:
    wanted, texts = found.evidence.text[evidence], found.items.text[start:stop]
    near = nearest(wanted, texts, found.matching)
    if near is None:
        return {"how": "missed"}
    row = {"how": "missed", "nearest_indel": near.indel}
    row |= _item(found, start + near.chunk, "nearest_")
    if len(wanted) * len(texts[near.chunk]) <= exactly:
        row["nearest_ratio"] = ratio(wanted, texts[near.chunk], found.matching)
    return row


def _item(found: Found, item: int, before: str) -> dict[str, Any]:
    ids = None if found.ids is None else found.ids[item]
    return {f"{before}rank": int(found.rank[item]), f"{before}item_id": ids}
