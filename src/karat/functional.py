"""Plain functions for one query: a ranked list of ids, and what is relevant.

`relevant` is a collection of ids, or a dict from id to grade. Each function is the measure of
the same name, called on one query; k < 1 is an InputError.
"""

from __future__ import annotations

from collections.abc import Sequence

from karat.measures.one import Relevant, value_of


def precision_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return relevant items in the top k / k.

    >>> precision_at_k(["a", "b"], ["a"], 5)
    0.2
    """
    return value_of("P", retrieved, relevant, k)


def recall_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return relevant items in the top k / all relevant items.

    >>> recall_at_k(["a", "x", "b"], ["a", "b"], 2)
    0.5
    """
    return value_of("R", retrieved, relevant, k)


def ndcg_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return DCG@k / the DCG@k of the best order, gain = grade, discount log2(rank + 1).

    >>> round(ndcg_at_k(["a", "c", "b"], {"a": 2, "b": 1, "c": 0}, 3), 3)
    0.95
    """
    return value_of("nDCG", retrieved, relevant, k)


def mrr(retrieved: Sequence[str], relevant: Relevant, k: int | None = None) -> float:
    """Return 1 / rank of the first relevant item, 0 if there is none.

    >>> mrr(["x", "a"], ["a"])
    0.5
    """
    return value_of("RR", retrieved, relevant, k)


def average_precision(retrieved: Sequence[str], relevant: Relevant, k: int | None = None) -> float:
    """Return the sum of precision at each relevant item / all relevant items.

    >>> round(average_precision(["a", "x", "b", "y"], ["a", "b"]), 4)
    0.8333
    """
    return value_of("AP", retrieved, relevant, k)


def hit_rate(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return 1.0 if a relevant item is in the top k, else 0.0.

    >>> hit_rate(["x", "a"], ["a"], 2)
    1.0
    """
    return value_of("Success", retrieved, relevant, k)
