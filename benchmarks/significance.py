"""Significance: the same sign-flip test with karat, SciPy and ranx."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

RUNS, QUERIES, DRAWS = 10, 1_000, 100_000
PAIRS = list(combinations(range(RUNS), 2))
NAME = f"{len(PAIRS)} pairs × {QUERIES:,} queries × {DRAWS:,} draws"


def values() -> Any:
    """Return a value per query (rows) and run (columns); queries differ more than runs do."""
    import numpy as np

    random = np.random.default_rng(20_261_115)
    difficulty = random.beta(0.6, 0.9, (QUERIES, 1))
    shifts = np.linspace(0.0, 0.02, RUNS)
    return np.clip(difficulty + shifts + random.normal(0, 0.15, (QUERIES, RUNS)), 0, 1)


def differences() -> Any:
    """Return the differences per query, one column per pair."""
    import numpy as np

    table = values()
    return np.column_stack([table[:, b] - table[:, a] for a, b in PAIRS])


def p_by_pair(p_values: Iterable[float]) -> dict[str, float]:
    """Return the p-values with the names of their pairs."""
    return {f"p of {a} and {b}": float(p) for (a, b), p in zip(PAIRS, p_values, strict=True)}
