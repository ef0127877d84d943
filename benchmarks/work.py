"""The work: gold and a run, generated with a seed and kept in `benchmarks/work`.

Run as a module it writes the files, so that the measuring process stays small.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, dataclass
from json import dumps, loads
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "work"
SEED = 20_240_229

# About as many documents as MS MARCO has passages. The number is prime, so a walk with any step
# visits every document once before it returns to the first: no list contains a document twice.
DOCUMENTS = 8_388_593

TREC, SHUFFLED, PARQUET = "trec", "shuffled", "parquet"


@dataclass(frozen=True)
class Work:
    """The number of queries, and of results and judged items per query."""

    queries: int
    depth: int
    judged: int
    retrieved: int
    """How many of the judged items are in the list."""
    layout: str = TREC
    """TREC: one space between fields, rows in the order of scores, as most tools write them.
    SHUFFLED: TREC with tabs, rows in random order. PARQUET: tables, with grades 0 and 1 only."""

    @property
    def name(self) -> str:
        return f"{self.queries:,} × {self.depth:,}"

    @property
    def rows(self) -> int:
        return self.queries * self.depth

    @property
    def gold(self) -> Path:
        return self._path("gold" if self.layout == PARQUET else "qrels")

    @property
    def run(self) -> Path:
        return self._path("run")

    def _path(self, kind: str) -> Path:
        name = f"{self.queries}x{self.depth}-{self.judged}-{self.retrieved}"
        if self.layout == PARQUET:
            return FOLDER / f"{name}.{kind}.parquet"
        return FOLDER / f"{name}{'-shuffled' if self.layout == SHUFFLED else ''}.{kind}"

    def make(self) -> None:
        """Write the files, unless an earlier benchmark has written them."""
        if not (self.gold.exists() and self.run.exists()):
            command = [sys.executable, "-m", "benchmarks.work", dumps(asdict(self))]
            subprocess.run(command, check=True)


# A little more than half of the judged items are retrieved; SHUFFLED_ROWS says why not just half.
DEEP = Work(queries=1_000, depth=1_000, judged=50, retrieved=30)
WIDE = Work(queries=10_000, depth=100, judged=10, retrieved=6)
LARGE = Work(queries=100_000, depth=100, judged=10, retrieved=6)
GROWTH = (*(Work(queries, 100, 10, 6) for queries in (100, 1_000)), WIDE, LARGE)

# The slow case for karat: tabs, rows in random order, and less than half of the relevant items
# retrieved, so that it also checks whether gold and run spell their ids in the same way.
SHUFFLED_ROWS = Work(queries=1_000, depth=1_000, judged=50, retrieved=20, layout=SHUFFLED)


def write(work: Work) -> None:
    """Generate the work and write its files."""
    import numpy as np
    import polars as pl

    random = np.random.default_rng([SEED, work.queries, work.depth])
    ranks = np.arange(work.depth)

    first = random.integers(DOCUMENTS, size=(work.queries, 1))
    step = random.integers(1, DOCUMENTS, size=(work.queries, 1))

    def documents(positions: np.ndarray) -> np.ndarray:
        return (first + step * positions) % DOCUMENTS

    # Scores differ by at least 0.5, so there are no ties, even in 32 bits.
    scores = work.depth - ranks + random.random((work.queries, work.depth)) / 2

    # Items at the top ranks are more likely to be judged. Judged items that were not retrieved are
    # those that the walk through the documents would visit next.
    priority = random.random((work.queries, work.depth)) * (ranks + 1)
    retrieved = np.argpartition(priority, work.retrieved)[:, : work.retrieved]
    missed = work.depth + np.arange(work.judged - work.retrieved)
    judged = np.hstack([retrieved, np.broadcast_to(missed, (work.queries, missed.size))])
    grades = random.integers(0, 4, size=judged.shape)
    grades[:, 0] = random.integers(1, 4, size=work.queries)  # every query has a relevant item

    def query_ids(items: int) -> pl.Series:
        return pl.Series(np.repeat(np.arange(1, work.queries + 1), items)).cast(pl.String)

    def document_ids(numbers: np.ndarray) -> pl.Expr:
        return pl.format("D{}", pl.Series(numbers.ravel()))

    gold = pl.select(
        query_id=query_ids(work.judged),
        iteration=pl.lit("0"),
        item_id=document_ids(documents(judged)),
        grade=pl.Series(grades.ravel()),
    )
    run = pl.select(
        query_id=query_ids(work.depth),
        q0=pl.lit("Q0"),
        item_id=document_ids(documents(np.broadcast_to(ranks, scores.shape))),
        rank=pl.Series(np.tile(ranks + 1, work.queries)),
        score=pl.Series(scores.ravel()),
        tag=pl.lit("bench"),
    )
    FOLDER.mkdir(exist_ok=True)
    if work.layout == PARQUET:
        binary = gold.select("query_id", "item_id", grade=(pl.col("grade") > 0).cast(pl.Int64))
        _replace(work.gold, binary.write_parquet)
        _replace(work.run, run.select("query_id", "item_id", "score").write_parquet)
        return
    if work.layout == SHUFFLED:
        gold, run = (table.sample(fraction=1, shuffle=True, seed=SEED) for table in (gold, run))
    separator = "\t" if work.layout == SHUFFLED else " "
    options = {"separator": separator, "include_header": False, "float_precision": 6}
    _replace(work.gold, gold.write_csv, **options)
    _replace(work.run, run.write_csv, **options)


def _replace(path: Path, write_table: Any, **options: Any) -> None:
    """Write a file under another name first, so that an interrupted benchmark leaves no part."""
    part = path.with_suffix(".part")
    write_table(part, **options)
    part.replace(path)


if __name__ == "__main__":
    write(Work(**loads(sys.argv[1])))
