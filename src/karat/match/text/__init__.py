"""Matching by text: which evidence a chunk covers, how, and where.

Decisions are exactly those of the rule that `Matching` names; `cascade` only skips work.
"""

from karat.match.text.cascade import HOW, Covering, Listed, cover, covers, shared
from karat.match.text.normalize import normalize
from karat.match.text.ratios import Nearest, nearest, ratio, where
from karat.match.text.rule import Matching

__all__ = [
    "HOW",
    "Covering",
    "Listed",
    "Matching",
    "Nearest",
    "cover",
    "covers",
    "nearest",
    "normalize",
    "ratio",
    "shared",
    "where",
]
