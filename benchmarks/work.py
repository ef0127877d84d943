"""The work: qrels and a run, generated from a seed, kept in `benchmarks/work`.

Run as a module it writes the files, so that the process that measures stays small.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, dataclass
from json import dumps, loads
from pathlib import Path

FOLDER = Path(__file__).parent / "work"
SEED = 20_240_229

# As many documents as MS MARCO has passages, roughly. A prime: any step through it visits every
# document once before it comes back, so no list holds a document twice.
DOCUMENTS = 8_388_593


@dataclass(frozen=True)
class Work:
    """How many queries, how deep their lists, how many items are judged for each."""

    queries: int
    depth: int
    judged: int
    found: int
    """How many of the judged items stand in the list."""
    tidy: bool = True
    """One space between fields and rows in order of score, as tools write it; else neither."""

    @property
    def name(self) -> str:
        return f"{self.queries:,} × {self.depth:,}"

    @property
    def rows(self) -> int:
        return self.queries * self.depth

    @property
    def gold(self) -> Path:
        return FOLDER / f"{self._stem}.qrels"

    @property
    def run(self) -> Path:
        return FOLDER / f"{self._stem}.run"

    @property
    def _stem(self) -> str:
        shape = f"{self.queries}x{self.depth}-{self.judged}-{self.found}"
        return shape if self.tidy else f"{shape}-untidy"

    def make(self) -> None:
        """Write the files, unless an earlier benchmark did."""
        if not (self.gold.exists() and self.run.exists()):
            command = [sys.executable, "-m", "benchmarks.work", dumps(asdict(self))]
            subprocess.run(command, check=True)


# Somewhat over half of what is judged is found: see UNTIDY for why not just half.
DEEP = Work(queries=1_000, depth=1_000, judged=50, found=30)
WIDE = Work(queries=10_000, depth=100, judged=10, found=6)
LARGE = Work(queries=100_000, depth=100, judged=10, found=6)
GROWTH = (*(Work(queries, 100, 10, 6) for queries in (100, 1_000)), WIDE, LARGE)

# What karat has no short way for: tabs between fields, rows in no order, and fewer than half of
# the relevant items found, where it looks whether gold and run spell their ids alike.
UNTIDY = Work(queries=1_000, depth=1_000, judged=50, found=20, tidy=False)


def write(work: Work) -> None:
    """Generate the work and write it as TREC files."""
    import numpy as np
    import polars as pl

    random = np.random.default_rng([SEED, work.queries, work.depth])
    ranks = np.arange(work.depth)

    first = random.integers(DOCUMENTS, size=(work.queries, 1))
    step = random.integers(1, DOCUMENTS, size=(work.queries, 1))

    def documents(places: np.ndarray) -> np.ndarray:
        return (first + step * places) % DOCUMENTS

    # Scores lie at least 0.5 apart: no tie, not even in the 32 bits that some peers keep.
    scores = work.depth - ranks + random.random((work.queries, work.depth)) / 2

    # The higher an item stands, the likelier it is judged. Judged items that were not found are
    # the ones the step through the documents would visit next.
    lots = random.random((work.queries, work.depth)) * (ranks + 1)
    found = np.argpartition(lots, work.found)[:, : work.found]
    missed = work.depth + np.arange(work.judged - work.found)
    judged = np.hstack([found, np.broadcast_to(missed, (work.queries, missed.size))])
    grades = random.integers(0, 4, size=judged.shape)
    grades[:, 0] = random.integers(1, 4, size=work.queries)  # something is relevant everywhere

    def query_ids(items: int) -> pl.Series:
        return pl.Series(np.repeat(np.arange(1, work.queries + 1), items))

    def document_ids(numbers: np.ndarray) -> pl.Expr:
        return pl.format("D{}", pl.Series(numbers.ravel()))

    gold = pl.select(
        query=query_ids(work.judged),
        iteration=pl.lit("0"),
        item=document_ids(documents(judged)),
        grade=pl.Series(grades.ravel()),
    )
    run = pl.select(
        query=query_ids(work.depth),
        q0=pl.lit("Q0"),
        item=document_ids(documents(np.broadcast_to(ranks, scores.shape))),
        rank=pl.Series(np.tile(ranks + 1, work.queries)),
        score=pl.Series(scores.ravel()),
        tag=pl.lit("bench"),
    )
    if not work.tidy:
        gold, run = (table.sample(fraction=1, shuffle=True, seed=SEED) for table in (gold, run))
    FOLDER.mkdir(exist_ok=True)
    for table, path in ((gold, work.gold), (run, work.run)):
        beside = path.with_suffix(".part")  # a benchmark that is broken off leaves no half work
        table.write_csv(
            beside,
            separator=" " if work.tidy else "\t",
            include_header=False,
            float_precision=6,
        )
        beside.replace(path)


if __name__ == "__main__":
    write(Work(**loads(sys.argv[1])))
