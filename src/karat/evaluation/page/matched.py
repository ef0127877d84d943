"""Evidence with the texts that cover it, or come nearest to it, as they are shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karat.evaluation.opened import Opened
from karat.evaluation.page.shown import BEGINNING
from karat.match.evidence import Found
from karat.report.calculation import Row
from karat.report.page.model import Json

AROUND = 300
"""How many characters are shown before and after what matches."""
MOST_TEXT = 2000
"""How many characters are kept of a text: an item, a span, what matches or comes nearest."""


def evidence_of(opened: Opened, numbers: Sequence[int]) -> dict[int, list[str]]:
    """Return the evidence of some queries, in the order in which it is numbered."""
    texts: dict[int, list[str]] = {number: [] for number in numbers}
    if "evidence" in opened.readings:
        found: Found = opened.readings["evidence"].data
        counted = found.covering.counted
        whose = found.evidence.query[counted]
        for at in np.flatnonzero(np.isin(whose, numbers)).tolist():
            texts[int(whose[at])].append(found.evidence.text[counted[at]])
    return texts


def match_of(match: Row, found: Found, query: int) -> Json:
    """Return what covers an evidence, with what stands around it, or what comes nearest."""
    shown = {name: match[name] for name in ("evidence", "rank", "how", "ratio")}
    nearest = {"nearest_rank": match["nearest_rank"], "nearest_ratio": match["nearest_ratio"]}
    none = dict.fromkeys(("item", "before", "stretch", "after", "nearest_item", "nearest_text"))
    if match["rank"] is not None:
        text = _text(found, query, match["rank"])
        whole = (0, len(text))  # where a function decides, nobody knows what it went by
        start, end = whole if match["start"] is None else (match["start"], match["end"])
        around = {
            "item": _named(match["item_id"], text),
            "before": text[max(0, start - AROUND) : start],
            "stretch": text[start:end][:MOST_TEXT],
            "after": text[end : end + AROUND],
        }
    elif match["nearest_rank"] is not None:
        text = _text(found, query, match["nearest_rank"])
        named = _named(match["nearest_item_id"], text)
        around = {"nearest_item": named, "nearest_text": text[:MOST_TEXT]}
    else:
        around = {}
    return shown | nearest | none | around


def _text(found: Found, query: int, rank: int) -> str:
    """Return the text that a query has at a rank; all its items stand in a row."""
    return found.items.text[int(np.searchsorted(found.items.query, query)) + rank - 1]


def _named(item_id: str | None, text: str) -> str:
    return " ".join(text.split())[:BEGINNING] if item_id is None else item_id
