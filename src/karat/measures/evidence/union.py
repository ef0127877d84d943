"""What the retrieved texts hold of the evidence together."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.match.evidence import Found
from karat.measures.arrays import divide
from karat.measures.declare import Param, measure, whole_number_from
from karat.measures.evidence.coverage import LEFT_OUT
from karat.measures.families import EVIDENCE
from karat.measures.workings import note

_LEAST = Param(
    "least",
    20,
    "how many characters in a row must be the same to count as held",
    whole_number_from(1),
)


@measure(
    "evidence.union",
    family=EVIDENCE.name,
    title="Evidence held by several items together",
    formula="mean over evidences of the share of its characters that the top k holds word for "
    "word, in stretches of `least` or more; 1 for an evidence that an item covers",
    edges="spaces are not counted; an evidence shorter than `least` must be there whole; never "
    f"below evidence.coverage; {LEFT_OUT}",
    differs="no other common tool has it",
    params=(_LEAST,),
)
def union(found: Found, k: int | None, least: int) -> Floats:
    pieces = found.pieces
    piece, rank, characters = found.shared(least)
    within = rank <= (np.inf if k is None else k)
    held = np.bincount(piece[within], characters[within], pieces.whose.size)
    share = divide(held, found.characters)
    covered = pieces.piece[pieces.rank <= (np.inf if k is None else k)]
    share[covered] = 1.0
    # From the smallest share up, so that no order of the evidence changes a digit.
    order = np.argsort(share, kind="stable")
    total = np.bincount(pieces.whose[order], share[order], pieces.n_queries)
    note(sum_of_shares=total, evidences=pieces.count)
    return np.where(pieces.count > 0, divide(total, pieces.count), np.nan)
