"""What a run says only by ids, told by the table of all chunks."""

from __future__ import annotations

import polars as pl

from karat.data.chunks import Chunks
from karat.data.run import Run
from karat.errors import InputError


def described(run: Run, chunks: Chunks | None, *columns: str) -> pl.DataFrame:
    """Return the results of a run, with columns that it lacks taken from the table of all chunks.

    What the run says itself counts, item by item.
    """
    results = run.results
    found = told(results, chunks, *columns)
    if chunks is None or found is results:
        return results
    for name in columns:
        if name in chunks.frame.columns and found[name].null_count():
            unknown = found.filter(pl.col(name).is_null())
            raise InputError(
                f"the run does not say {name} of {unknown['item_id'][0]!r}, "
                "and the table of all chunks does not hold it",
                field=name,
                hint="give the table that the run was made with",
            )
    return found


def told(results: pl.DataFrame, chunks: Chunks | None, *columns: str) -> pl.DataFrame:
    """Do so as far as the table of all chunks knows the items."""
    lacking = [c for c in columns if c not in results.columns or results[c].null_count()]
    if not lacking or chunks is None or "item_id" not in results.columns:
        return results
    known = chunks.frame.select("item_id", *(c for c in lacking if c in chunks.frame.columns))
    found = results.join(
        known, on="item_id", how="left", suffix=":chunk", maintain_order="left"
    ).with_columns(
        pl.coalesce(c, f"{c}:chunk").alias(c) for c in known.columns[1:] if c in results.columns
    )
    return found.select(*results.columns, *(c for c in known.columns[1:] if c not in results))
