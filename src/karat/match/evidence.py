"""Matching by text: which evidence texts the retrieved items cover, rank by rank.

`match_evidence` returns `EvidenceMatches`, which evidence measures read. `evidence_table` converts
it to a table that shows, for each evidence text, the item that covers it or the nearest miss.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.data.chunks import Chunks
from karat.data.gold import Gold
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


@dataclass(frozen=True, eq=False)
class EvidenceMatches:
    """The evidence texts of all queries, the retrieved texts, and which item covers which text."""

    has_gold: Flags
    """Which queries have a list of evidence texts, even an empty one."""
    length: Ints
    """The number of retrieved items of each query."""
    evidence: TextLists
    items: TextLists
    """The retrieved texts, by query and rank."""
    ids: list[str | None] | None
    """The ids of the items, if the run has ids."""
    is_repeat: Flags
    """Which items have an id that occurs at an earlier rank of the same query."""
    rank: Ints
    covering: Covering
    matching: Matching
    _verbatim: dict[int, tuple[Ints, Ints, Ints]] = field(default_factory=dict, repr=False)

    @cached_property
    def targets(self) -> Targets:
        """The evidence texts that count, as targets."""
        counted, item = self.covering.counted, self.covering.chunk
        return Targets(
            self.has_gold.size,
            self.evidence.query[counted],
            self.items.query[item],
            self.rank[item],
            np.searchsorted(counted, self.covering.evidence),
        )

    @cached_property
    def covering_items(self) -> RankedRows:
        """The items that cover an evidence text, without repeated items."""
        covering = self.targets.covering
        repeats = (self.items.query[self.is_repeat] << 32) | self.rank[self.is_repeat]
        return covering.where(~np.isin((covering.query << 32) | covering.rank, repeats))

    def counting_repeats(self) -> EvidenceMatches:
        """Return matches in which a repeated item counts again at each of its ranks."""
        return replace(self, is_repeat=np.zeros_like(self.is_repeat))

    def verbatim_characters(self, least: int) -> tuple[Ints, Ints, Ints]:
        """Return (target, rank, characters): how many characters are in no item at an earlier rank.

        `characters` is the number of characters of the target that are in the item at this rank and
        in no earlier item. A character is in an item if the item contains a piece of the evidence
        text around it, of `least` or more characters. If the evidence text is shorter than `least`,
        the item must contain all of it.
        """
        if least not in self._verbatim:
            self._verbatim[least] = shared_characters(
                self.evidence, self.items, self.rank, self.covering, self.matching, least
            )
        return self._verbatim[least]

    @cached_property
    def characters(self) -> Ints:
        """The number of characters of each target after normalisation, without spaces."""
        texts = (self.matching.normalize(self.evidence.text[at]) for at in self.covering.counted)
        lengths = (len(text) - text.count(" ") for text in texts)
        return np.fromiter(lengths, np.int64, self.covering.counted.size)


def match_evidence(
    gold: PreparedGold, run: Run, matching: Matching | None = None, chunks: Chunks | None = None
) -> EvidenceMatches:
    """Match the retrieved texts against the evidence texts of their query."""
    matching = matching or Matching()
    evidence_rows, has_gold = gold.evidence(matching), gold.has_evidence
    query, rank = query_and_rank(gold.query_ids, run)
    rows = np.flatnonzero(query >= 0)
    length = np.bincount(query[rows], minlength=has_gold.size)
    rows = rows[has_gold[query[rows]]]
    rows = rows[np.argsort(query[rows], kind="stable")]
    results = with_chunk_columns(run, chunks, "text")[rows]
    evidence = TextLists(
        query_numbers(gold.query_ids, evidence_rows["query_id"]), evidence_rows["text"].to_list()
    )
    items = TextLists(query[rows], _require_texts(results))
    is_repeat = np.zeros(rows.size, np.bool_)
    ids = None
    if "item_id" in results.columns:
        ids = results["item_id"].to_list()
        pairs = pl.struct(pl.lit(pl.Series("query", items.query)), "item_id")
        repeated = ~pairs.is_first_distinct() & pl.col("item_id").is_not_null()
        is_repeat = results.select(repeated).to_series().to_numpy()
    covering = cover(evidence, items, matching)
    return EvidenceMatches(
        has_gold, length, evidence, items, ids, is_repeat, rank[rows], covering, matching
    )


def _require_texts(results: pl.DataFrame) -> list[str]:
    if not results.height:
        return []
    if "text" not in results.columns or results["text"].null_count():
        hint = (
            "add the text to every result, provide the table of chunks with their texts "
            "(chunks=…, --chunks FILE), or choose measures that do not need texts"
        )
        if "item_id" in results.columns and "text" not in results.columns:
            hint += (
                "; if your function returns texts, let it return {'text': text} for each, because "
                "a plain string is an id"
            )
        raise InputError(
            "evidence measures require the text of every retrieved item", field="text", hint=hint
        )
    return results["text"].to_list()


def _has_only_ids(results: pl.DataFrame) -> bool:
    if "item_id" not in results.columns:
        return False
    return "text" not in results.columns or results["text"].null_count() == results.height


def lacks_texts(gold: Gold, run: Run) -> bool:
    """Whether gold has nothing but evidence texts, and the results of the run only ids."""
    only_evidence = gold.evidence is not None and gold.spans is None and not gold.judgments.height
    return only_evidence and run.results.height > 0 and _has_only_ids(run.results)


def evidence_table(
    matches: EvidenceMatches, query_ids: pl.Series, query: int | None = None, *, exactly: float = 0
) -> pl.DataFrame:
    """Return one row per evidence text: the first item that covers it, or the nearest item.

    `how` is exact, substring, fuzzy, function or missed. `ratio` is the similarity that decided, 1
    for exact matches. `start` and `end` are offsets in the text of the item before normalisation.
    The nearest item of a missed text is the one with the highest Indel similarity, which is only
    shown and decides nothing.

    Parameters
    ----------
    matches : EvidenceMatches
        The result of `match_evidence`.
    query_ids : Series
        The ids of all gold queries.
    query : int, default None
        Number of a query, to return only its rows.
    exactly : float, default 0
        Add the column `nearest_ratio`, the similarity by the rule of `matching`. Computing it is
        slow, so it is null if the product of the lengths of both texts is larger than this.
    """
    covering = matches.covering
    covered, first_rows = np.unique(covering.evidence, return_index=True)
    first_row = dict(zip(covered.tolist(), first_rows.tolist(), strict=True))
    stops = np.searchsorted(matches.items.query, np.arange(matches.has_gold.size), "right")
    rows = []
    for evidence in covering.counted.tolist():
        number = int(matches.evidence.query[evidence])
        if query is not None and number != query:
            continue
        row: dict[str, Any] = {
            "query_id": query_ids[number],
            "evidence": matches.evidence.text[evidence],
        }
        if evidence in first_row:
            row |= _covered_columns(matches, evidence, first_row[evidence])
        else:
            start = int(stops[number - 1]) if number else 0
            row |= _missed_columns(matches, evidence, start, int(stops[number]), exactly)
        rows.append(row)
    schema = COLUMNS | ({"nearest_ratio": pl.Float64} if exactly else {})
    return pl.DataFrame(rows, schema=schema)


def _covered_columns(matches: EvidenceMatches, evidence: int, covering_row: int) -> dict[str, Any]:
    item = int(matches.covering.chunk[covering_row])
    how = MATCH_KINDS[matches.covering.how[covering_row]]
    evidence_text, item_text = matches.evidence.text[evidence], matches.items.text[item]
    start, end = locate_in_chunk(evidence_text, item_text, matches.matching) or (None, None)
    row = {"how": how, "start": start, "end": end} | _item_columns(matches, item)
    if how in ("fuzzy", "function"):
        row["ratio"] = ratio(evidence_text, item_text, matches.matching)
    elif how == "exact":
        row["ratio"] = 1.0
    return row


def _missed_columns(
    matches: EvidenceMatches, evidence: int, start: int, stop: int, exactly: float
) -> dict[str, Any]:
    evidence_text, item_texts = matches.evidence.text[evidence], matches.items.text[start:stop]
    near = nearest(evidence_text, item_texts, matches.matching)
    if near is None:
        return {"how": "missed"}
    row = {"how": "missed", "nearest_indel": near.indel}
    row |= _item_columns(matches, start + near.chunk, "nearest_")
    if len(evidence_text) * len(item_texts[near.chunk]) <= exactly:
        row["nearest_ratio"] = ratio(evidence_text, item_texts[near.chunk], matches.matching)
    return row


def _item_columns(matches: EvidenceMatches, item: int, prefix: str = "") -> dict[str, Any]:
    item_id = None if matches.ids is None else matches.ids[item]
    return {f"{prefix}rank": int(matches.rank[item]), f"{prefix}item_id": item_id}
