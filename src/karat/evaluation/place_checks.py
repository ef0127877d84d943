"""What can be wrong with places in documents: those of gold, of chunks and of runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import polars as pl

from karat.data.corpus import Corpus
from karat.data.offset_causes import explain_offsets, text_lengths
from karat.data.places import Placed, fault, placed
from karat.evaluation.findings import Finder, Finding, Row


def span_findings(
    finder: Finder, spans: pl.DataFrame, corpus: Corpus | None, unit: str
) -> Iterator[Finding]:
    """Yield spans of gold that do not hold, hold nothing, or overlap."""
    explained = explain_offsets(spans, unit, corpus)
    if explained is not None:
        yield Finding(
            "systematic-offsets",
            finder.source,
            explained.count,
            (),
            f"{explained}; {explained.hint}",
        )
    if corpus is None:
        yield from _length_findings(finder, spans, unit)
        texts = spans["text"].to_list()
    else:
        found = placed(spans, corpus, unit)
        yield from _fault_findings(finder, spans, found, corpus, unit)
        texts = _texts(found, corpus)
    empty = spans["start"] == spans["end"]
    yield from finder.found("zero-length", spans.filter(empty), lambda _: "it ends where it begins")
    blank = pl.Series([text is not None and not text.strip() for text in texts], dtype=pl.Boolean)
    yield from finder.found(
        "blank", spans.filter(~empty & blank), lambda _: "there is nothing but white space"
    )
    yield from _overlap_findings(finder, spans.filter(~empty))


def place_findings(
    finder: Finder, table: pl.DataFrame, corpus: Corpus, unit: str
) -> Iterator[Finding]:
    """Yield places of chunks or results that do not hold, and documents that there are not."""
    found = placed(table, corpus, unit)
    if "doc_id" in table.columns:
        strange = ~table["doc_id"].is_in(corpus.doc_ids.implode()).fill_null(value=True)
        found.faults["unknown-document"] = strange.to_numpy() | found.faults.get(
            "unknown-document", np.zeros(table.height, np.bool_)
        )
    yield from _fault_findings(finder, table, found, corpus, unit)


def _fault_findings(
    finder: Finder, table: pl.DataFrame, found: Placed, corpus: Corpus, unit: str
) -> Iterator[Finding]:
    for kind, rows in found.faults.items():
        say = partial(fault, kind, corpus=corpus, unit=unit)
        yield from finder.found(kind, table.filter(rows), say)


def _length_findings(finder: Finder, spans: pl.DataFrame, unit: str) -> Iterator[Finding]:
    """Yield texts that cannot stand in their place, which is longer or shorter."""
    length = text_lengths(unit)
    place = pl.col("end") - pl.col("start")
    yield from finder.found(
        "text-mismatch",
        spans.with_columns(length.alias("length")).filter(pl.col("length") != place),
        lambda row: f"the place is {row['end'] - row['start']} long and the text {row['length']}",
    )


def _texts(found: Placed, corpus: Corpus) -> list[str | None]:
    """Return what stands in each place that holds, and else what gold says."""
    held = found.table.select("doc_id", "start", "end", "text").iter_rows()
    return [
        text if at_fault else corpus[doc_id][start:end]
        for (doc_id, start, end, text), at_fault in zip(held, found.faulty, strict=True)
    ]


def _overlap_findings(finder: Finder, spans: pl.DataFrame) -> Iterator[Finding]:
    """Yield each span that shares characters with one that begins no later."""
    text = ["query_id", "doc_id"]
    ordered = spans.select(*text, "start", "end").sort(*text, "start", "end")
    reach = pl.col("end").cum_max().shift(1).over(text)

    def overlapped(row: Row) -> str:
        same = [pl.col(name) == row[name] for name in text]
        others = ordered.filter(*same, pl.col("start") < row["end"], pl.col("end") > row["start"])
        start, end = others.select("start", "end").row(0)
        twin = (start, end) == (row["start"], row["end"])
        return "it is there twice" if twin else f"[{start}, {end}) shares characters with it"

    yield from finder.found("overlap", ordered.filter(pl.col("start") < reach), overlapped)
