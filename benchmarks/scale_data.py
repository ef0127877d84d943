"""Large files for `benchmarks.scale`, in blocks: `python -m benchmarks.scale_data KIND FOLDER N`.

| kind | N | files |
| --- | --- | --- |
| large | rows | gold.qrels, and the same run as large.run and large.parquet |
| untidy | – | the rows of large.parquet as TREC runs: tabs.run with tabs, mixed.run with tabs and \
several spaces, shuffled.run the same with shuffled rows |
| pair | queries | gold.qrels, a.run, b.run: two runs to compare |
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

DEPTH = 100
DEPTH_OF_PAIR = 10
_POOL = 20  # items per query of which the runs of a pair retrieve the best ones
_JUDGED = 10  # items per query
_BLOCK = 10_000  # queries


def write_large(folder: Path, rows: int) -> None:
    parts = folder / "parts"
    parts.mkdir()
    with (folder / "gold.qrels").open("wb") as gold, (folder / "large.run").open("wb") as run:
        for number, (judgments, results) in enumerate(_large_blocks(rows // DEPTH)):
            _write_judgments(judgments, gold)
            _write_results(results, run)
            results.write_parquet(parts / f"{number:05}.parquet")
    pl.scan_parquet(parts / "*.parquet").sink_parquet(folder / "large.parquet")
    for part in parts.iterdir():
        part.unlink()
    parts.rmdir()


def write_untidy(folder: Path) -> None:
    results = pl.read_parquet(folder / "large.parquet")
    mixed = pl.Series(["\t", "  ", " \t"])
    _write_with_gaps(results, pl.Series(["\t"]), folder / "tabs.run")
    _write_with_gaps(results, mixed, folder / "mixed.run")
    shuffled = results.sample(fraction=1.0, shuffle=True, seed=1)
    _write_with_gaps(shuffled, mixed, folder / "shuffled.run")


def _write_with_gaps(results: pl.DataFrame, gaps: pl.Series, path: Path) -> None:
    """Write a TREC run with these gaps in turn between the fields, line by line."""
    gap = gaps.gather(np.arange(len(results)) % len(gaps))
    fields = ["query_id", pl.lit("Q0"), "item_id", pl.lit("1"), "score", pl.lit("t")]
    separated = [part for field in fields for part in (gap, field)][1:]
    lines = results.select(pl.concat_str(separated))
    lines.write_csv(path, include_header=False, quote_style="never")


def write_pair(folder: Path, queries: int) -> None:
    """Write two runs; the scores of run b depend slightly more on the grades."""
    random = np.random.default_rng(2)
    paths = [folder / name for name in ("gold.qrels", "a.run", "b.run")]
    with paths[0].open("wb") as gold, paths[1].open("wb") as a, paths[2].open("wb") as b:
        for ids in _query_ids(queries):
            grades = random.integers(0, 4, (len(ids), _POOL))
            items = _items(random, len(ids), _POOL)
            judgments = {"query_id": _repeat(ids, _JUDGED), "item_id": items[:, :_JUDGED].ravel()}
            _write_judgments(_table(judgments, grade=grades[:, :_JUDGED]), gold)
            for run, weight in ((a, 0.10), (b, 0.11)):
                scores = random.random(grades.shape) + weight * grades
                best = (-scores).argsort(axis=1)[:, :DEPTH_OF_PAIR]
                results = {
                    "query_id": _repeat(ids, DEPTH_OF_PAIR),
                    "item_id": np.take_along_axis(items, best, 1).ravel(),
                }
                _write_results(_table(results, score=np.take_along_axis(scores, best, 1)), run)


def _large_blocks(n_queries: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield judgments and results; 60% of the judged items are retrieved, scores are distinct."""
    random = np.random.default_rng(1)
    ranks = np.arange(DEPTH)
    for ids in _query_ids(n_queries):
        n = len(ids)
        items = _items(random, n, DEPTH)
        results = {"query_id": _repeat(ids, DEPTH), "item_id": items.ravel()}
        scores = DEPTH - ranks + random.random((n, 1))
        judged = np.sort(random.random((n, DEPTH)).argsort(axis=1)[:, :_JUDGED], axis=1)
        # 2,000 more is an item that no list of this query contains.
        missed = 2000 * (random.random(judged.shape) > 0.6)
        judgments = {
            "query_id": _repeat(ids, _JUDGED),
            "item_id": (np.take_along_axis(items, judged, 1) + missed).ravel(),
        }
        grades = random.integers(0, 4, judged.shape)
        yield _table(judgments, grade=grades), _table(results, score=scores)


def _query_ids(n_queries: int) -> Iterator[pl.Series]:
    for first in range(0, n_queries, _BLOCK):
        last = min(first + _BLOCK, n_queries)
        yield pl.Series([f"q{query:07}" for query in range(first, last)])


def _items(random: np.random.Generator, n: int, per_query: int) -> np.ndarray:
    """Return distinct item numbers for each query."""
    return random.integers(0, 9_000_000, (n, 1)) + np.arange(per_query) * 7919 % 1009


def _repeat(ids: pl.Series, times: int) -> pl.Series:
    return ids.gather(np.repeat(np.arange(len(ids)), times))


def _table(ids: dict[str, pl.Series | np.ndarray], **values: np.ndarray) -> pl.DataFrame:
    columns = {name: column.ravel() for name, column in values.items()}
    items = "d" + pl.Series(ids["item_id"]).cast(pl.String)
    return pl.DataFrame({**ids, "item_id": items, **columns})


def _write_judgments(judgments: pl.DataFrame, file: object) -> None:
    columns = judgments.select("query_id", pl.lit("0").alias("iteration"), "item_id", "grade")
    columns.write_csv(file, separator=" ", include_header=False)


def _write_results(results: pl.DataFrame, file: object) -> None:
    columns = results.select(
        "query_id",
        pl.lit("Q0").alias("q0"),
        "item_id",
        pl.lit(1).alias("rank"),
        "score",
        pl.lit("t").alias("tag"),
    )
    columns.write_csv(file, separator=" ", include_header=False)


KINDS = {"large": write_large, "untidy": write_untidy, "pair": write_pair}

if __name__ == "__main__":
    KINDS[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))
