"""What a reranker did with its candidates, query by query and item by item."""

import math
from itertools import permutations


def dcg(items, grades, k):
    """Return the DCG of a list; an item that is repeated counts at its first rank."""
    total = 0.0
    for rank, item in enumerate(items[:k], 1):
        if item not in items[: rank - 1]:
            total += max(grades.get(item, 0), 0) / math.log2(rank + 1)
    return total


def ndcg(items, grades, k):
    ideal = dcg(sorted(grades, key=grades.get, reverse=True), grades, k)
    return dcg(items, grades, k) / ideal if ideal else 0.0


def best_ndcg(candidates, grades, k, depth):
    """Try every order of the first candidates; the others follow in their order."""
    first, rest = candidates[:depth], candidates[depth:]
    return max(ndcg([*order, *rest], grades, k) for order in permutations(first))


def lost(grades, line, k, rel, depth):
    """Return how many relevant items each stage lost.

    If everything after a stage were perfect, the top k would hold as many of the relevant items
    that are left as fit. What a stage loses is how much lower this is after it than before it.
    """
    relevant = [item for item, grade in grades.items() if grade >= rel]
    top = line["results"][:k]
    left = [item for item in relevant if item in line["candidates"][:depth] or item in top]
    reached = [item for item in left if item in top]
    by_candidates = min(len(relevant), k) - min(len(left), k)
    later = min(len(left), k) - len(reached)
    if len(line["results"]) < k:
        return {"candidates": by_candidates, "rerank": 0, "cut": later}
    return {"candidates": by_candidates, "rerank": later, "cut": 0}


def stage(lost_items):
    """Return the stage that lost most, the first of several."""
    chosen, most = "none", 0
    for name in ("candidates", "rerank", "cut"):
        if lost_items[name] > most:
            chosen, most = name, lost_items[name]
    return chosen


def recall(grades, candidates, rel, depth):
    relevant = [item for item, grade in grades.items() if grade >= rel]
    return sum(item in candidates[:depth] for item in relevant) / len(relevant)
