"""Measures of a ranked list: importing this declares them."""

from karat.measures.rank import average_precision, counts, first, gain, judged, sets, users

__all__ = ["average_precision", "counts", "first", "gain", "judged", "sets", "users"]
