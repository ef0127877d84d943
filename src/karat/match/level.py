"""Scoring documents where the run holds chunks."""

from __future__ import annotations

import polars as pl

from karat.data.run import Run
from karat.errors import InputError


def documents(run: Run) -> Run:
    """Collapse each list of chunks to the first of each document."""
    results = run.results
    if not results.height:
        return run
    if "doc_id" not in results.columns or results["doc_id"].null_count():
        raise InputError(
            "the run does not say which document each item is from",
            field="doc_id",
            hint="add doc_id to every result, or score items",
        )
    first = results.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    return Run(
        first.select("query_id", pl.col("doc_id").alias("item_id")),
        empty=run.empty,
        errors=run.errors,
        name=run.name,
        settings=run.settings,
    )
