"""Compare evidence texts with chunks: which text a chunk covers, how, and at which offsets.

`rule` defines `Matching`, `ratios` computes similarities of one pair of texts, and `cascade`
decides many pairs with the same result but hardly any similarity computed.
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
