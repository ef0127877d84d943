"""Measures of what a run took: importing this declares them."""

from karat.measures.run import cost, latency

__all__ = ["cost", "latency"]
