"""What a number means: declarations, names, kernels, and the score table."""

from karat.match.hits import Hits
from karat.measures import evidence, rank, run, span
from karat.measures.declare import REGISTRY, Declaration, Measure
from karat.measures.names import parse, parse_all
from karat.measures.plan import (
    DEFAULT_EVIDENCE_MEASURES,
    DEFAULT_MEASURES,
    DEFAULT_SPAN_MEASURES,
    Plan,
)
from karat.measures.scoring import score
from karat.measures.table import ScoreTable

__all__ = [
    "DEFAULT_EVIDENCE_MEASURES",
    "DEFAULT_MEASURES",
    "DEFAULT_SPAN_MEASURES",
    "REGISTRY",
    "Declaration",
    "Hits",
    "Measure",
    "Plan",
    "ScoreTable",
    "evidence",
    "parse",
    "parse_all",
    "rank",
    "run",
    "score",
    "span",
]
