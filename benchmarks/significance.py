"""Is the difference significant: the same sign-flip test for karat and its peers."""

from __future__ import annotations

from itertools import combinations
from typing import Any

RUNS, QUERIES, DRAWS = 10, 1_000, 100_000
PAIRS = list(combinations(range(RUNS), 2))
NAME = f"{len(PAIRS)} pairs × {QUERIES:,} queries × {DRAWS:,} draws"


def values() -> Any:
    """Make a value for each query and run: queries differ more than runs do."""
    import numpy as np

    random = np.random.default_rng(20_261_115)
    difficulty = random.beta(0.6, 0.9, (QUERIES, 1))
    shifts = np.linspace(0.0, 0.02, RUNS)
    return np.clip(difficulty + shifts + random.normal(0, 0.15, (QUERIES, RUNS)), 0, 1)


def differences() -> Any:
    """Return one column per pair."""
    import numpy as np

    table = values()
    return np.column_stack([table[:, b] - table[:, a] for a, b in PAIRS])


def named(p: Any) -> dict[str, float]:
    """Name each p by its pair."""
    return {f"p of {a} and {b}": float(one) for (a, b), one in zip(PAIRS, p, strict=True)}
