"""Measures of what a run took: importing this declares them."""

from karat.measures.run import context, cost, latency

__all__ = ["context", "cost", "latency"]
