"""Measures of text evidence: importing this declares them."""

from karat.measures.evidence import coverage, pieces, union

__all__ = ["coverage", "pieces", "union"]
