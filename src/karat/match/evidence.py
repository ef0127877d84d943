"""Matching by text: which evidence of gold the retrieved items cover, rank by rank."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.data.chunks import Chunks
from karat.data.run import Run
from karat.errors import InputError
from karat.match.align import query_and_rank, query_numbers, with_chunk_columns
from karat.match.gold_index import PreparedGold
from karat.match.hits import RankedRows
from karat.match.targets import Targets
from karat.match.text import (
    MATCH_KINDS,
    Covering,
    Matching,
    TextLists,
    cover,
    locate_in_chunk,
    nearest,
    ratio,
    shared_characters,
)


@dataclass(frozen=True, eq=False)
class EvidenceMatches:
    """The evidence of all queries, the retrieved texts in rank order, and which covers which.

    `given` says which queries have evidence at all, be it none; `length` how many items each
    query has retrieved; `ids` are those of the items, where they have some; `again` marks the
    items whose id stands above them already.
    """

    given: Flags
    length: Ints
    evidence: TextLists
    items: TextLists
    ids: list[str | None] | None
    again: Flags
    rank: Ints
    covering: Covering
    matching: Matching
    _shared: dict[int, tuple[Ints, Ints, Ints]] = field(default_factory=dict, repr=False)

    @cached_property
    def pieces(self) -> Targets:
        """Each evidence that counts as a piece to find."""
        counted, covering = self.covering.counted, self.covering
        piece = np.searchsorted(counted, covering.evidence)
        item = covering.chunk
        return Targets(
            self.given.size,
            self.evidence.query[counted],
            self.items.query[item],
            self.rank[item],
            piece,
        )

    @cached_property
    def covering_items(self) -> RankedRows:
        """The items that cover an evidence, each at its first place."""
        covering = self.pieces.covering
        again = (self.items.query[self.again] << 32) | self.rank[self.again]
        return covering.where(~np.isin((covering.query << 32) | covering.rank, again))

    def counting_repeats(self) -> EvidenceMatches:
        """Return what was found if an item that stands again counts again."""
        return replace(self, again=np.zeros_like(self.again))

    def shared(self, least: int) -> tuple[Ints, Ints, Ints]:
        """Return which characters of a piece a rank is the first to hold word for word.

        Piece, rank and how many characters: those that stand in a stretch of `least` or more that
        both texts have; of a shorter evidence, all of it.
        """
        if least not in self._shared:
            self._shared[least] = shared_characters(
                self.evidence, self.items, self.rank, self.covering, self.matching, least
            )
        return self._shared[least]

    @cached_property
    def characters(self) -> Ints:
        """How many characters each piece has as it is compared, spaces not counted."""
        texts = (self.matching.normalize(self.evidence.text[at]) for at in self.covering.counted)
        lengths = (len(text) - text.count(" ") for text in texts)
        return np.fromiter(lengths, np.int64, self.covering.counted.size)


def match_evidence(
    gold: PreparedGold, run: Run, matching: Matching | None = None, chunks: Chunks | None = None
) -> EvidenceMatches:
    """Bring gold's evidence and the texts of the run together, each query's own."""
    matching = matching or Matching()
    wanted, given = gold.evidence(matching), gold.evidenced
    query = query_numbers(gold.query_ids, wanted["query_id"])
    number, rank = query_and_rank(gold.query_ids, run)
    known = np.flatnonzero(number >= 0)
    length = np.bincount(number[known], minlength=given.size)
    known = known[given[number[known]]]
    known = known[np.argsort(number[known], kind="stable")]
    results = with_chunk_columns(run, chunks, "text")[known]
    evidence = TextLists(query, wanted["text"].to_list())
    items = TextLists(number[known], _texts(results))
    again = np.zeros(known.size, np.bool_)
    ids = None
    if "item_id" in results.columns:
        ids = results["item_id"].to_list()
        named = pl.struct(pl.lit(pl.Series("query", items.query)), "item_id")
        repeats = ~named.is_first_distinct() & pl.col("item_id").is_not_null()
        again = results.select(repeats).to_series().to_numpy()
    covering = cover(evidence, items, matching)
    return EvidenceMatches(
        given, length, evidence, items, ids, again, rank[known], covering, matching
    )


def _texts(results: pl.DataFrame) -> list[str]:
    if not results.height:
        return []
    if "text" not in results.columns or results["text"].null_count():
        raise InputError(
            "evidence measures need the text of every retrieved item",
            field="text",
            hint="write the text of each chunk, or give the table of all chunks with their texts: "
            "chunks=…, --chunks FILE; or name measures that need no texts",
        )
    return results["text"].to_list()


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


def evidence_table(
    found: EvidenceMatches, query_ids: pl.Series, query: int | None = None, *, exactly: float = 0
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


def _covered(found: EvidenceMatches, evidence: int, lead: int) -> dict[str, Any]:
    item = int(found.covering.chunk[lead])
    how = MATCH_KINDS[found.covering.how[lead]]
    wanted, text = found.evidence.text[evidence], found.items.text[item]
    place = locate_in_chunk(wanted, text, found.matching) or (None, None)
    row = {"how": how, "start": place[0], "end": place[1]} | _item(found, item, "")
    if how in ("fuzzy", "function"):
        row["ratio"] = ratio(wanted, text, found.matching)
    elif how == "exact":
        row["ratio"] = 1.0
    return row


def _missed(
    found: EvidenceMatches, evidence: int, start: int, stop: int, exactly: float
) -> dict[str, Any]:
    wanted, texts = found.evidence.text[evidence], found.items.text[start:stop]
    near = nearest(wanted, texts, found.matching)
    if near is None:
        return {"how": "missed"}
    row = {"how": "missed", "nearest_indel": near.indel}
    row |= _item(found, start + near.chunk, "nearest_")
    if len(wanted) * len(texts[near.chunk]) <= exactly:
        row["nearest_ratio"] = ratio(wanted, texts[near.chunk], found.matching)
    return row


def _item(found: EvidenceMatches, item: int, before: str) -> dict[str, Any]:
    ids = None if found.ids is None else found.ids[item]
    return {f"{before}rank": int(found.rank[item]), f"{before}item_id": ids}
