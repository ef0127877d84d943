"""How high a value could be if unjudged items were judged, for one query; no code of karat.

`most` goes through the list and counts every unjudged item as relevant. `attained` assumes
nothing: it tries every possible judgment of the unjudged items and keeps the highest value.
"""

from __future__ import annotations

from itertools import product

from oracles import rank as oracle

BOUNDED = {"P", "Success", "RR", "RBP"}


def listed(retrieved: list[str] | None, grades: dict[str, int], words: dict) -> list[str]:
    """The list that is scored."""
    if words["unjudged"] == "skip":
        retrieved = [item for item in retrieved or [] if is_judged(item, grades)]
    if words["duplicates"] == "set":
        retrieved = list(dict.fromkeys(retrieved or []))
    return list(retrieved or [])


def is_judged(item: str, grades: dict[str, int]) -> bool:
    return grades.get(item, -1) >= 0


def judged_share(retrieved, grades, k, words) -> float | None:
    """The share of different items in the top k that are judged; None if there is no item."""
    top = set(listed(retrieved, grades, words)[:k])
    return sum(is_judged(item, grades) for item in top) / len(top) if top else None


def most(measure, retrieved, grades, k, params, largest_grade, words) -> float | None:
    """The measure with every unjudged item relevant; None if the measure is left out."""
    value = oracle.value(measure, retrieved, grades, k, params, largest_grade, words)
    if value is None:
        return None
    top = listed(retrieved, grades, words)[:k]
    worth = []
    for rank, item in enumerate(top):
        again = item in top[:rank] and not (measure == "P" and words["duplicates"] == "count")
        worth.append(0.0 if again else worth_at_most(item, grades, params, largest_grade))
    return max(value, WALKS[measure](worth, k, params))


def worth_at_most(item, grades, params, largest_grade) -> float:
    if not is_judged(item, grades):
        return 1.0
    if grades[item] < params.get("rel", 1):
        return 0.0
    top_of_scale = params.get("max_grade") or largest_grade
    scale = {"linear": top_of_scale, "query": max(grades.values())}.get(params.get("gain"))
    return 1.0 if scale is None else grades[item] / scale


def precision(worth, k, params):
    places = len(worth) if k is None or params.get("denominator") == "retrieved" else k
    return sum(worth) / places if places else 0.0


def success(worth, k, params):
    return float(any(worth))


def reciprocal_rank(worth, k, params):
    return next((1 / rank for rank, one in enumerate(worth, 1) if one), 0.0)


def rank_biased_precision(worth, k, params):
    p = params["p"]
    read = (1 - p) * sum(one * p**place for place, one in enumerate(worth))
    return read + p ** len(worth)


WALKS = {
    "P": precision,
    "Success": success,
    "RR": reciprocal_rank,
    "RBP": rank_biased_precision,
}


def attained(measure, retrieved, grades, k, params, largest_grade, words) -> float:
    """The highest value for any judgments of the unjudged items; for RBP, with its tail."""
    rel = params.get("rel", 1)
    top_of_scale = params.get("max_grade") or largest_grade
    highest = max([rel, *grades.values()]) if params.get("gain") == "query" else top_of_scale
    unjudged = sorted({item for item in retrieved or [] if not is_judged(item, grades)})
    values = []
    for judgments in product({0, rel, max(rel, highest)}, repeat=len(unjudged)):
        completed = grades | dict(zip(unjudged, judgments, strict=True))
        scale = max(rel, largest_grade)
        values.append(oracle.value(measure, retrieved, completed, k, params, scale, words))
    tail = params["p"] ** len(listed(retrieved, grades, words)[:k]) if measure == "RBP" else 0.0
    return min(1.0, max(value for value in values if value is not None) + tail)
