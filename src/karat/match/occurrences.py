"""Where texts occur in documents, letter by letter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl


def occurrences(wanted: pl.Series, documents: pl.Series) -> pl.DataFrame:
    """Return every place of every wanted text: wanted, document (its row), start, end.

    Places may overlap one another. All texts are looked for in one pass (Aho and Corasick, 1975),
    so the time follows the documents and not the number of texts.
    """
    found = pl.DataFrame(
        {
            "document": pl.int_range(documents.len(), eager=True),
            "wanted": documents.str.extract_many(wanted.implode(), overlapping=True),
            "start": documents.str.find_many(wanted.implode(), overlapping=True),
        }
    )
    found = found.filter(pl.col("start").list.len() > 0)
    parts = [
        found[at].explode("wanted", "start").with_columns(start=_code_points(documents[row], byte))
        for at, (row, byte) in enumerate(found.select("document", "start").iter_rows())
    ]
    every = pl.concat([found.clear().explode("wanted", "start").cast({"start": pl.Int64}), *parts])
    return every.select(
        "wanted", "document", "start", end=pl.col("start") + pl.col("wanted").str.len_chars()
    )


def _code_points(text: str, offsets: list[int]) -> npt.NDArray[np.int64]:
    """Turn offsets in bytes of UTF-8 into offsets in code points."""
    places = np.array(offsets, np.int64)
    if text.isascii():
        return places
    content = np.frombuffer(text.encode(), np.uint8)
    begun: npt.NDArray[np.int64] = np.cumsum(content & 0xC0 != 0x80)
    return begun[places] - 1
