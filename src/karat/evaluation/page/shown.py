"""The lists of a run as they are shown: each the list that was scored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.evaluation.opened import Opened
from karat.evaluation.page.outcomes import relevant_from
from karat.match.evidence import Found
from karat.match.hits import Hits, merged
from karat.match.numbers import numbers_of
from karat.match.spans import Coverage
from karat.measures import Measure
from karat.measures.declare import Family
from karat.report.calculation import TOP

MOST_BELOW = 40
"""How many hits are shown below them at most."""
BEGINNING = 60
"""How many characters name an item that has nothing but a text."""

_WHOLE = dict.fromkeys(("query", "rank", "grade", "characters"), pl.Int64())
HITS = pl.Schema({**_WHOLE, "evidence": pl.List(pl.Int64())})


@dataclass(frozen=True, eq=False)
class Shown:
    """The lists of a run, as the first measure that reads gold reads them.

    At the level of documents that is the first chunk of each, and where unjudged items are skipped,
    only what is judged; measures of spans and evidence read every chunk all the same. So what those
    find stands beside the list only where it is the list that they read, and the other way round.
    """

    opened: Opened
    measure: Measure | None
    """The first measure that reads gold."""

    @cached_property
    def _ranked_anew(self) -> bool:
        """Whether rank measures read another list than came."""
        plan = self.opened.plan
        return plan.level == "doc" or plan.conventions.unjudged == "skip"

    @cached_property
    def is_own(self) -> bool:
        """Whether the list shown is that other list."""
        by_rank = self.measure is not None and self.measure.declaration.family == "rank"
        return by_rank and self._ranked_anew

    @cached_property
    def families(self) -> set[Family]:
        """The kinds of gold that the list shown was held against."""
        if self.is_own:
            return {"rank"}
        return set(self.opened.readings) - ({"rank"} if self._ranked_anew else set())

    @property
    def _items(self) -> str:
        """The column that names items."""
        return "doc_id" if self.is_own and self.opened.plan.level == "doc" else "item_id"

    @cached_property
    def _all(self) -> tuple[Ints, Ints]:
        """The query and the row of each item, queries in order and the items of each in rank."""
        run = self.opened.run
        number = numbers_of(self.opened.session.prepared.query_ids, run.segments.query_ids)
        query = np.repeat(number, run.segments.lengths)
        row = np.flatnonzero(query >= 0)
        if self.is_own and row.size:
            row = row[self._read(query)[row]]
        if np.any(number[1:] < number[:-1]):
            row = row[np.argsort(query[row], kind="stable")]
        return query[row], row

    def _read(self, query: Ints) -> Flags:
        """Tell which rows rank measures read."""
        plan = self.opened.plan
        items = pl.DataFrame({"query": query, "item": self.opened.run.results[self._items]})
        read = np.ones(query.size, np.bool_)
        if plan.level == "doc":
            read &= items.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
        if plan.conventions.unjudged == "skip":
            judged = self.opened.session.prepared.table.filter(pl.col("grade") >= 0)
            held = judged.select("query", pl.col("item_id").alias("item"), judged=True)
            both = items.join(held, on=["query", "item"], how="left", maintain_order="left")
            read &= both["judged"].fill_null(value=False).to_numpy()
        return read

    @cached_property
    def length(self) -> Ints:
        """How long the list of each query is."""
        return np.bincount(self._all[0], minlength=self.opened.session.prepared.query_ids.len())

    @cached_property
    def hits(self) -> pl.DataFrame:
        """What was found: query, rank, grade, characters, evidence, and whether it is below.

        The grade of what is judged; how many characters of gold a rank brings that none before
        it had; the numbers of the evidences that it covers. `below` is what counts as found and
        stands under what is shown in any case.
        """
        ways = {"rank": self._graded, "span": self._characters, "evidence": self._evidence}
        every = pl.DataFrame(schema={"query": pl.Int64, "rank": pl.Int64})
        for family, way in ways.items():
            if family in self.families:
                every = every.join(way(), on=["query", "rank"], how="full", coalesce=True)
        lacking = [
            pl.lit(None, kind).alias(name) for name, kind in HITS.items() if name not in every
        ]
        every = every.with_columns(lacking).sort("query", "rank")
        counts = pl.col("characters").is_not_null() | pl.col("evidence").is_not_null()
        counts |= (pl.col("grade") >= relevant_from(self.measure)).fill_null(value=False)
        lower = counts & (pl.col("rank") > TOP)
        nth = lower.cast(pl.Int64).cum_sum().over("query")
        return every.select(*HITS, below=lower & (nth <= MOST_BELOW))

    def _graded(self) -> pl.DataFrame:
        hits: Hits = self.opened.readings["rank"].data
        found = hits.found
        if self.opened.plan.conventions.duplicates == "count":
            found = merged(found, hits.repeats.where(hits.repeats.grade >= 0))
        return pl.DataFrame({"query": found.query, "rank": found.rank, "grade": found.grade})

    def _characters(self) -> pl.DataFrame:
        coverage: Coverage = self.opened.readings["span"].data
        brought = coverage.parts(None)[2]
        places = coverage.places.where(brought > 0)
        held = {"query": places.query, "rank": places.rank, "characters": brought[brought > 0]}
        return pl.DataFrame(held)

    def _evidence(self) -> pl.DataFrame:
        found: Found = self.opened.readings["evidence"].data
        pieces = found.pieces
        first = np.cumsum(pieces.count) - pieces.count
        pairs = {"query": pieces.query, "rank": pieces.rank}
        pairs["evidence"] = pieces.piece - first[pieces.query]
        return pl.DataFrame(pairs).group_by("query", "rank").agg(pl.col("evidence").sort())

    @cached_property
    def places(self) -> pl.DataFrame:
        """What is shown: query, rank, row in the results, and the key and the label of the item."""
        query, row = self._all
        starts = np.cumsum(self.length) - self.length
        rank = np.arange(1, query.size + 1) - starts[query]
        top = np.flatnonzero(rank <= TOP)
        below = self.hits.filter("below").select("query", "rank").to_numpy()
        at = np.sort(np.concatenate((top, starts[below[:, 0]] + below[:, 1] - 1)))
        named = self._named(row[at])
        return pl.DataFrame({"query": query[at], "rank": rank[at], "row": row[at]}).hstack(named)

    def _named(self, rows: Ints) -> pl.DataFrame:
        """Name items by their id, else by their place, else by their text.

        The label of a text is how it begins; the key is all of it.
        """
        results = self.opened.run.results
        if not rows.size:  # a run that retrieved nothing says nothing of documents either
            return pl.DataFrame(schema={"key": pl.String, "label": pl.String})
        begins = pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars()
        place = pl.format("{}[{}:{}]", "doc_id", "start", "end")
        ways = {
            (self._items,): (pl.col(self._items), pl.col(self._items)),
            ("doc_id", "start", "end"): (place, place),
            ("text",): (pl.col("text"), begins.str.head(BEGINNING)),
        }
        used = []
        for names, way in ways.items():
            if set(names) <= set(results.columns):
                used.append(way)
                if not any(results[name].null_count() for name in names):
                    break  # nobody looks at long texts of items that have a name
        keys, labels = zip(*used, strict=True)
        return results[rows].select(key=pl.coalesce(keys), label=pl.coalesce(labels))
