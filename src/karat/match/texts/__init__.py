"""Matching by text: which evidence a chunk covers, how, and where.

Decisions are exactly those of the rule that `Matching` names; `cascade` only skips work.
"""

from karat.match.texts.batch import Covering, Listed, cover
from karat.match.texts.cascade import HOW, covers
from karat.match.texts.looking import Nearest, nearest, ratio, where
from karat.match.texts.matching import Matching
from karat.match.texts.normal import normalize
from karat.match.texts.shared import shared

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
