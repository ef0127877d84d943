"""Measures: their declarations, names and kernels, and the score table they fill."""

from karat.match.hits import Hits
from karat.measures import kernels
from karat.measures.name_parser import parse, parse_all
from karat.measures.plan import (
    DEFAULT_EVIDENCE_MEASURES,
    DEFAULT_MEASURES,
    DEFAULT_SPAN_MEASURES,
    Plan,
)
from karat.measures.registry import REGISTRY, Declaration, Measure
from karat.measures.score_table import ScoreTable
from karat.measures.scoring import score

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
    "kernels",
    "parse",
    "parse_all",
    "score",
]
