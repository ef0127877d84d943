"""The sign-flip test and its interval by brute force: every sign pattern, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product


def p_of(differences: list[Fraction], weights: list[Fraction], shift: Fraction) -> Fraction:
    """Return the two-sided p of a shift: how many patterns of signs give as far a sum."""
    moved = [d - shift * w for d, w in zip(differences, weights, strict=True)]
    observed = abs(sum(moved))
    patterns = list(product((1, -1), repeat=len(moved)))
    reached = sum(
        abs(sum(sign * value for sign, value in zip(signs, moved, strict=True))) >= observed
        for signs in patterns
    )
    return Fraction(reached, len(patterns))


def interval_of(
    differences: list[Fraction], weights: list[Fraction], alpha: Fraction
) -> tuple[Fraction | None, Fraction | None]:
    """Return the least and greatest shift with p ≥ α; None where there is none.

    p changes only where a subset of the queries has the shift as its mean, so these are tried.
    """
    n = len(differences)
    candidates = set()
    for chosen in product((False, True), repeat=n):
        weight = sum((w for w, c in zip(weights, chosen, strict=True) if c), Fraction(0))
        if weight:
            total = sum((d for d, c in zip(differences, chosen, strict=True) if c), Fraction(0))
            candidates.add(total / weight)
    kept = [shift for shift in candidates if p_of(differences, weights, shift) >= alpha]
    beyond = max(abs(c) for c in candidates) + 1
    low = None if p_of(differences, weights, -beyond) >= alpha else min(kept)
    high = None if p_of(differences, weights, beyond) >= alpha else max(kept)
    return low, high
