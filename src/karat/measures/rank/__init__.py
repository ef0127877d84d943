"""Measures of a ranked list: importing this declares them."""

from karat.measures.rank import (
    average_precision,
    counts,
    first,
    gain,
    gain_levels,
    interpolated,
    judged,
    sets,
    users,
    whole,
)

__all__ = [
    "average_precision",
    "counts",
    "first",
    "gain",
    "gain_levels",
    "interpolated",
    "judged",
    "sets",
    "users",
    "whole",
]
