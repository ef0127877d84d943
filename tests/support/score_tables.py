"""Score tables with one row per query, for tests of the statistics that use them."""

import random

import numpy as np
import polars as pl

from karat.measures import ScoreTable, parse
from karat.stats.pairs import Pair
from karat.stats.samples import Sample

MICRO = "evidence.recall@5"


def table_of(columns, query_ids=None, weights=None):
    """Return a table of {measure: values}; the queries are q000, q001, … unless ids are given."""
    measures = [parse(name) for name in columns]
    n = len(next(iter(columns.values())))
    ids = [f"q{i:03}" for i in range(n)] if query_ids is None else list(query_ids)
    values = [
        pl.Series(measure.name, column, pl.Float64)
        for measure, column in zip(measures, columns.values(), strict=True)
    ]
    weight_columns = {MICRO: pl.Series(weights, dtype=pl.Int64)} if weights is not None else {}
    frame = pl.DataFrame([pl.Series("query_id", ids, pl.String), *values])
    order = frame["query_id"].arg_sort()
    weight_frame = pl.DataFrame(weight_columns)
    return ScoreTable(
        tuple(measures),
        frame[order],
        {},
        weight_frame[order] if weight_frame.width else weight_frame,
    )


def random_tables(n, k, names=("nDCG@10", "GMAP", "latency.p90", MICRO), seed=3):
    """Return the tables of k runs over n queries, where some queries and some values are missing.

    With more than 16 queries the randomization test draws; with fewer it tries every swap.
    """
    chance = random.Random(seed)
    tables = {}
    for run in range(k):
        ids = [f"q{i}" for i in range(n) if chance.random() < 0.9 or i < 4]
        columns = {}
        for name in names:
            whole = 8 if name == MICRO else 1_000
            columns[name] = [
                None if chance.random() < 0.1 else chance.randint(0, whole) / whole for _ in ids
            ]
        tables[f"run {run}"] = table_of(columns, ids, [8] * len(ids) if MICRO in names else None)
    return tables


def pairs_of(columns, name="latency.mean"):
    """Return a pair of runs for each column of differences, over the same queries.

    Latencies may be of any size. For a bounded measure, differences must lie in [-1, 1].
    """
    measure = parse(name)
    ids = pl.Series("query_id", [f"q{i:05}" for i in range(len(columns))])
    pairs = []
    for column in columns.T:
        apart = np.asarray(column, dtype=float)
        # One of the two values is 0, so that the difference is not rounded.
        ahead, behind = np.maximum(apart, 0.0), np.maximum(-apart, 0.0)
        samples = [Sample(measure.declaration.combine, values) for values in (behind, ahead)]
        pairs.append(Pair(measure, ids, *samples, 0))
    return pairs
