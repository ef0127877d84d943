"""Score tables for tests of what is made of them: columns of values, a row a query."""

import polars as pl

from karat.measures import ScoreTable, parse

MICRO = "evidence.recall@5"


def table_of(columns, query_ids=None, weights=None):
    """Make a table of {measure: values}; queries are q000, q001, … unless they are named."""
    measures = [parse(name) for name in columns]
    n = len(next(iter(columns.values())))
    ids = [f"q{i:03}" for i in range(n)] if query_ids is None else list(query_ids)
    values = [
        pl.Series(measure.name, column, pl.Float64)
        for measure, column in zip(measures, columns.values(), strict=True)
    ]
    weighed = {MICRO: pl.Series(weights, dtype=pl.Int64)} if weights is not None else {}
    frame = pl.DataFrame([pl.Series("query_id", ids, pl.String), *values])
    order = frame["query_id"].arg_sort()
    weighed = pl.DataFrame(weighed)
    return ScoreTable(
        tuple(measures), frame[order], {}, weighed[order] if weighed.width else weighed
    )
