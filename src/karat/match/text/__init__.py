"""Matching by text: which evidence a chunk covers, how, and where.

Decisions are exactly those of the rule that `Matching` names; `cascade` only skips work.
"""

from karat.match.text.cascade import (
    MATCH_KINDS,
    Covering,
    TextLists,
    cover,
    covers,
    shared_characters,
)
from karat.match.text.normalize import normalize
from karat.match.text.ratios import Nearest, locate_in_chunk, nearest, ratio
from karat.match.text.rule import Matching

__all__ = [
    "MATCH_KINDS",
    "Covering",
    "Matching",
    "Nearest",
    "TextLists",
    "cover",
    "covers",
    "locate_in_chunk",
    "nearest",
    "normalize",
    "ratio",
    "shared_characters",
]
