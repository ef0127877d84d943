"""Fusion of ranked lists by plain loops. No code is shared with karat.

A run is {query: [(item, score), …]} in rank order; scores may be None.
"""

from __future__ import annotations

import math
from statistics import median

BY_RANK = ("rrf", "isr", "log_isr", "logn_isr", "borda", "condorcet", "rbc")
BY_SCORE = ("combsum", "combmnz", "combanz", "combmed", "combmin", "combmax", "combgmnz")
WEIGHTED = ("weighted", "wmnz", "mixed")
NORMALIZATIONS = ("min-max", "max", "z-score", "sum", "rank", "borda", "none")


def fused(runs, method, normalization="min-max", weights=None, k=60, sigma=0.01, phi=0.9, gamma=2):
    """Return {query: {item: score}}."""
    result = {}
    for query in {query for run in runs for query in run}:
        lists = [run.get(query, []) for run in runs]
        items = {item for ranked in lists for item, _ in ranked}
        w = [1] * len(lists) if weights is None else weights
        if method == "condorcet":
            result[query] = condorcet(lists, items, w)
        elif method == "borda":
            points = [borda(ranked, items) for ranked in lists]
            result[query] = {
                item: sum(x * p[item] for x, p in zip(w, points, strict=True) if p)
                for item in items
            }
        elif method in BY_RANK:
            ranks = [{item: at for at, (item, _) in enumerate(ranked, 1)} for ranked in lists]
            result[query] = {
                item: by_rank(
                    method, [(x, r[item]) for x, r in zip(w, ranks, strict=True) if item in r],
                    k, sigma, phi,
                )
                for item in items
            }  # fmt: skip
        else:
            values = [normalized(ranked, normalization, items) for ranked in lists]
            result[query] = {
                item: by_score(
                    method, [(x, v[item]) for x, v in zip(w, values, strict=True) if item in v],
                    gamma,
                )
                for item in items
            }  # fmt: skip
    return {query: items for query, items in result.items() if items}


def by_rank(method, found, k, sigma, phi):
    n = len(found)
    if method == "rrf":
        return sum(w / (k + rank) for w, rank in found)
    if method == "rbc":
        return sum(w * (1 - phi) * phi ** (rank - 1) for w, rank in found)
    squares = sum(1 / rank**2 for _, rank in found)
    return squares * {"isr": n, "log_isr": math.log(n), "logn_isr": math.log(n + sigma)}[method]


def by_score(method, found, gamma):
    scores = [score for _, score in found]
    n = len(scores)
    weighted = sum(w * score for w, score in found)
    return {
        "combsum": sum(scores),
        "combmnz": sum(scores) * n,
        "combanz": sum(scores) / n,
        "combmed": median(scores),
        "combmin": min(scores),
        "combmax": max(scores),
        "combgmnz": sum(scores) * n**gamma,
        "weighted": weighted,
        "wmnz": sum(scores) * sum(w for w, _ in found),
        "mixed": weighted * math.sqrt(n),
    }[method]


def normalized(ranked, name, items):
    """Return {item: value} of one list; ValueError if the maximum cannot be divided by."""
    if not ranked:
        return {}
    n = len(ranked)
    if name == "rank":
        return {item: (n - at) / n for at, (item, _) in enumerate(ranked)}
    if name == "borda":
        return {item: points / len(items) for item, points in borda(ranked, items).items()}
    scores = [score for _, score in ranked]
    low, high, mean = min(scores), max(scores), sum(scores) / n
    if name == "none":
        shift, scale = 0, 1
    elif name == "min-max":
        shift, scale = low, high - low
    elif name == "sum":
        shift, scale = low, sum(score - low for score in scores)
    elif name == "z-score":
        shift, scale = mean, math.sqrt(sum((score - mean) ** 2 for score in scores) / n)
        scale = 0 if low == high else scale
    else:
        shift, scale = 0, high
        if high <= 0 and any(scores):
            raise ValueError(high)
    return {item: (score - shift) / scale if scale else 0.0 for item, score in ranked}


def borda(ranked, items):
    """Return {item: points}; items that were not retrieved share the points that are left."""
    if not ranked:
        return {}
    points = {item: len(items) - at for at, (item, _) in enumerate(ranked)}
    left = range(1, len(items) - len(ranked) + 1)
    for item in items - points.keys():
        points[item] = sum(left) / len(left)
    return points


def condorcet(lists, items, weights):
    """Merge sort by majority, from the order of Borda; ties of Borda by item id descending."""
    points = [borda(ranked, items) for ranked in lists]
    start = {
        item: sum(w * p[item] for w, p in zip(weights, points, strict=True) if p) for item in items
    }
    ranks = [{item: at for at, (item, _) in enumerate(ranked)} for ranked in lists]

    def beats(one, other):
        lead = 0
        for w, rank in zip(weights, ranks, strict=True):
            first, second = rank.get(one, math.inf), rank.get(other, math.inf)
            lead += w * ((first < second) - (second < first))
        return lead > 1e-12 * sum(weights)

    blocks = [[item] for item in ordered(start)]
    while len(blocks) > 1:
        merged = []
        for left, right in zip(blocks[::2], [*blocks[1::2], []], strict=False):
            block = []
            while left and right:
                block.append((right if beats(right[0], left[0]) else left).pop(0))
            merged.append(block + left + right)
        blocks = merged
    order = [item for block in blocks for item in block]
    return {item: len(order) - at for at, item in enumerate(order)}


def ordered(scores):
    """Return the items of {item: score} by score, ties by item id, both descending."""
    by_id = sorted(scores, key=lambda item: item.encode(), reverse=True)
    return sorted(by_id, key=lambda item: scores[item], reverse=True)
