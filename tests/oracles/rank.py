"""Every rank measure for one query at a time: slow, literal, and without any code of karat.

Each function follows the definition of the measure word by word. Lists are plain lists in rank
order, judgments are a dict from item to grade, and `None` is a value that is left out.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from fractions import Fraction

DEFAULTS = {
    "missing": "zero",
    "unknown": "ignore",
    "no_gold": "family",
    "duplicates": "first",
    "unjudged": "irrelevant",
}


@dataclass
class Query:
    """One query: the retrieved items in order, and the grades of gold."""

    listed: list[str]
    grades: dict[str, int]
    largest_grade: int
    conventions: dict[str, str]

    def places(self, k: int | None) -> list[str | None]:
        """The top k; a repeated item keeps its place, which is then empty."""
        places: list[str | None] = []
        seen = set()
        for item in self.listed[:k]:
            places.append(None if item in seen else item)
            seen.add(item)
        return places

    def grade(self, item: str | None) -> int | None:
        """The grade of an item, None if it is unjudged."""
        if item is None or item not in self.grades or self.grades[item] < 0:
            return None
        return self.grades[item]

    def top_of_scale(self, max_grade: int | None) -> int:
        """The highest grade of the scale: the given one, or the largest of the whole gold."""
        return self.largest_grade if max_grade is None else max_grade

    def is_relevant(self, item: str | None, rel: int) -> bool:
        grade = self.grade(item)
        return grade is not None and grade >= rel

    def all_relevant(self, rel: int) -> int:
        return sum(self.is_relevant(item, rel) for item in self.grades)

    def ranks_of_relevant(self, k: int | None, rel: int) -> list[int]:
        return [rank for rank, item in enumerate(self.places(k), 1) if self.is_relevant(item, rel)]

    def hits(self, k: int | None, rel: int) -> int:
        """Relevant items in the top k, each once."""
        return len(self.ranks_of_relevant(k, rel))

    def hits_with_repeats(self, k: int | None, rel: int) -> int:
        """Relevant items in the top k, as often as the convention on duplicates says."""
        if self.conventions["duplicates"] == "count":
            return sum(self.is_relevant(item, rel) for item in self.listed[:k])
        return self.hits(k, rel)


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


# Sets: which items are in the top k.


def precision(query, k, rel=1, denominator="k"):
    if k is None or denominator == "retrieved":
        return share(query.hits_with_repeats(k, rel), len(query.listed[:k]))
    return query.hits_with_repeats(k, rel) / k


def recall(query, k, rel=1):
    return share(query.hits(k, rel), query.all_relevant(rel))


def f1(query, k, rel=1, denominator="k"):
    places = len(query.listed[:k]) if k is None or denominator == "retrieved" else k
    p = share(query.hits(k, rel), places)
    r = recall(query, k, rel)
    return share(2 * p * r, p + r)


def success(query, k, rel=1):
    return 1.0 if query.hits(k, rel) else 0.0


def full(query, k, rel=1):
    """Every relevant item is in the top k; groups of items are tested in test_full.py."""
    wanted = {item for item in query.grades if query.is_relevant(item, rel)}
    return 1.0 if wanted and wanted <= set(query.listed[:k]) else 0.0


def hits(query, k, rel=1):
    return query.hits_with_repeats(k, rel)


def capped_recall(query, k, rel=1):
    places = len(query.listed) if k is None else k
    return share(query.hits(k, rel), min(places, query.all_relevant(rel)))


def r_precision(query, k, rel=1, multiple=1.0):
    """trec_eval's m_Rprec_mult.c: how deep to look is cut to a whole number after 0.9 is added."""
    depth = math.trunc(multiple * query.all_relevant(rel) + 0.9)
    return share(query.hits(depth, rel), depth)


# The whole list as one set: neither the order of items nor the place of a repeat matters.


def set_f(query, k, rel=1, weight=1.0):
    p = share(query.hits(None, rel), len(query.listed))
    r = recall(query, None, rel)
    return share((weight + 1) * p * r, weight * p + r)


def set_average_precision(query, k, rel=1):
    found = query.hits(None, rel)
    return share(found**2, len(query.listed) * query.all_relevant(rel))


def utility(query, k, rel=1, a=1.0, b=-1.0, c=0.0, d=0.0, documents=0):
    relevant = {item for item in query.grades if query.is_relevant(item, rel)}
    retrieved = set(query.listed)
    worth = a * len(retrieved & relevant)
    worth += b * len(retrieved - relevant)
    worth += c * len(relevant - retrieved)
    worth += d * (documents - len(retrieved | relevant))
    return worth


# Ranks: where the relevant items are.


def reciprocal_rank(query, k, rel=1):
    ranks = query.ranks_of_relevant(k, rel)
    return 1 / ranks[0] if ranks else 0.0


def first_relevant(query, k, rel=1):
    ranks = query.ranks_of_relevant(k, rel)
    return ranks[0] if ranks else None


def average_precision(query, k, rel=1, denominator="relevant"):
    total = 0.0
    ranks = query.ranks_of_relevant(k, rel)
    for found, rank in enumerate(ranks, 1):
        total += found / rank
    r = query.all_relevant(rel)
    if denominator == "hits":
        return share(total, len(ranks))
    if denominator == "min" and k is not None:
        return share(total, min(k, r))
    return share(total, r)


def found_at(query, rel):
    """Each relevant item of the list: how many are found with it, and its rank."""
    return list(enumerate(query.ranks_of_relevant(None, rel), 1))


def yet_another_average_precision(query, k, rel=1):
    """Robertson (ECIR 2012): the odds of average precision, smoothed by one item either way."""
    r = query.all_relevant(rel)
    reached = sum(found / rank for found, rank in found_at(query, rel))
    return math.log((1 + reached) / (1 + r - reached))


def inferred_average_precision(query, k, rel=1):
    """Yilmaz and Aslam (CIKM 2006), with the smoothing of trec_eval's m_infap.c."""
    smoothing = 0.00001
    total = 0.0
    in_pool = judged = relevant = 0  # of the items above
    for rank, item in enumerate(query.places(None), 1):
        if query.is_relevant(item, rel):
            expected = share(in_pool, rank - 1)
            expected *= (relevant + smoothing) / (judged + 2 * smoothing)
            total += 1 / rank + (rank - 1) / rank * expected
        in_pool += item in query.grades
        judged += query.grade(item) is not None
        relevant += query.is_relevant(item, rel)
    return share(total, query.all_relevant(rel))


def interpolated_precision(query, k, rel=1):
    """trec_eval 10.0's m_iprec_at_recall.c; k is a point of recall, and half an item is a whole."""
    needed = math.floor(Fraction(k * query.all_relevant(rel)) + Fraction(1, 2))
    # Precision is highest where a relevant item has just been found, or nowhere above 0.
    enough = [found / rank for found, rank in found_at(query, rel) if found >= needed]
    return max(enough, default=0.0)


def eleven_points(query, k, rel=1):
    points = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    return sum(interpolated_precision(query, point, rel) for point in points) / 11


def binary_gain(query, k, rel=1):
    """trec_eval's m_binG.c: every place above that holds no relevant item counts."""
    total = 0.0
    for found, rank in found_at(query, rel):
        total += 1 / math.log2(2 + rank - found)
    return share(total, query.all_relevant(rel))


def bpref(query, k, rel=1):
    """trec_eval's m_bpref.c, after Buckley and Voorhees (SIGIR 2004)."""
    r = query.all_relevant(rel)
    judged_nonrelevant = [g for g in query.grades.values() if 0 <= g < rel]
    total = 0.0
    above = 0
    for item in query.places(None):
        grade = query.grade(item)
        if grade is None:
            continue
        if grade < rel:
            above += 1
        elif above == 0:
            total += 1.0
        else:
            total += 1.0 - min(above, r) / min(len(judged_nonrelevant), r)
    return share(total, r)


# Gains: the value of a grade.


def gain_of(grade: int | None, gain) -> float:
    if grade is None:
        return 0.0
    if gain == "exp2":
        return 2.0**grade - 1
    if gain == "linear":
        return float(grade)
    return float(gain.get(grade, grade))


def discounted(gains: list[float]) -> float:
    total = 0.0
    for rank, gain in enumerate(gains, 1):
        total += gain / math.log2(rank + 1)
    return total


def dcg(query, k, gain="linear"):
    return discounted([gain_of(query.grade(item), gain) for item in query.places(k)])


def best_gains(query, gain) -> list[float]:
    """The gains of all judged items in the best order."""
    return sorted((gain_of(query.grade(item), gain) for item in query.grades), reverse=True)


def ideal_dcg(query, k, gain="linear"):
    return discounted(best_gains(query, gain)[:k])


def ndcg(query, k, gain="linear"):
    return share(dcg(query, k, gain), ideal_dcg(query, k, gain))


def ndcg_at_relevant(query, k, gain="linear"):
    """trec_eval's m_ndcg_rel.c: for an item not found, the DCG of the list over the best of all."""
    places = query.places(None)
    at_each = []
    for item in query.grades:
        if gain_of(query.grade(item), gain) > 0:
            depth = places.index(item) + 1 if item in places else None
            at_each.append(ndcg(query, depth, gain))
    return share(math.fsum(at_each), len(at_each))


def ndcg_at_levels(query, k, gain="linear"):
    """trec_eval's m_Rndcg.c: nDCG where the best list ends a level, and at the end of a long list.

    The end of the list is a point of its own only if it lies two places or more beyond the last
    item that the best list gains anything from.
    """
    best = [worth for worth in best_gains(query, gain) if worth > 0]
    depths = [depth for depth in range(1, len(best)) if best[depth] < best[depth - 1]]
    if best:
        depths.append(len(best))
        if len(query.listed) > len(best) + 1:
            depths.append(len(query.listed))
    return share(math.fsum(ndcg(query, depth, gain) for depth in depths), len(depths))


def normalised_gain(query, k, gain="linear"):
    """trec_eval's m_G.c: a gain is discounted by how far the list lags behind the best one."""
    best = best_gains(query, gain)
    total = 0.0
    reached = 0.0
    could_be = 0.0
    for rank, item in enumerate(query.places(None), 1):
        worth = gain_of(query.grade(item), gain)
        reached += worth
        could_be += max(1.0, best[rank - 1] if rank <= len(best) else 0.0)
        total += worth / math.log2(2 + could_be - reached)
    return share(total, math.fsum(best))


def rank_biased_precision(query, k, p=0.8, rel=1, gain="binary", max_grade=None):
    total = 0.0
    for rank, item in enumerate(query.places(k), 1):
        if not query.is_relevant(item, rel):
            worth = 0.0
        elif gain == "binary":
            worth = 1.0
        elif gain == "linear":
            worth = query.grade(item) / query.top_of_scale(max_grade)
        else:
            worth = query.grade(item) / max(1, *query.grades.values())
        total += worth * p ** (rank - 1)
    return (1 - p) * total


def rank_biased_residual(query, k, p=0.8):
    """trec_eval's m_rbp_resid.c: what unjudged items, and any items after the list, could add."""
    ranks = [
        rank
        for rank, item in enumerate(query.places(None), 1)
        if item is not None and query.grade(item) is None
    ]
    if not ranks:
        return 0.0
    return p ** len(query.listed) + (1 - p) * sum(p ** (rank - 1) for rank in ranks)


def cascade(grades: list[int | None], largest_grade: int) -> float:
    """Chapelle et al. (CIKM 2009): the user goes down the list and stops where satisfied."""
    total = 0.0
    gets_here = 1.0
    for rank, grade in enumerate(grades, 1):
        stops = 0.0 if grade is None else (2.0**grade - 1) / 2.0**largest_grade
        total += gets_here * stops / rank
        gets_here *= 1 - stops
    return total


def err(query, k, max_grade=None):
    grades = [query.grade(item) for item in query.places(k)]
    return cascade(grades, query.top_of_scale(max_grade))


def nerr(query, k, max_grade=None):
    best = sorted((g for g in query.grades.values() if g >= 0), reverse=True)
    return share(err(query, k, max_grade), cascade(best[:k], query.top_of_scale(max_grade)))


# Counts, and the share of judged items.


def judged(query, k):
    different = set(query.listed[:k])
    return share(sum(query.grade(item) is not None for item in different), len(different))


def unjudged(query, k):
    different = set(query.listed[:k])
    places = len(query.listed) if k is None else k
    return share(sum(query.grade(item) is None for item in different), places)


def num_q(query, k):
    return 1


def num_ret(query, k):
    return len(set(query.listed))


def num_rel(query, k, rel=1):
    return query.all_relevant(rel)


def num_rel_ret(query, k, rel=1):
    return query.hits(None, rel)


def num_nonrel_ret(query, k, rel=1):
    grades = [query.grade(item) for item in set(query.listed)]
    return sum(grade is not None and grade < rel for grade in grades)


MEASURES = {
    "P": precision,
    "R": recall,
    "F1": f1,
    "Success": success,
    "Full": full,
    "Hits": hits,
    "R_cap": capped_recall,
    "Rprec": r_precision,
    "SetF": set_f,
    "SetAP": set_average_precision,
    "Utility": utility,
    "RR": reciprocal_rank,
    "FirstRelevant": first_relevant,
    "AP": average_precision,
    "GMAP": average_precision,
    "YAAP": yet_another_average_precision,
    "infAP": inferred_average_precision,
    "IPrec": interpolated_precision,
    "11pt": eleven_points,
    "binG": binary_gain,
    "Bpref": bpref,
    "GMBpref": bpref,
    "DCG": dcg,
    "IDCG": ideal_dcg,
    "nDCG": ndcg,
    "nDCGrel": ndcg_at_relevant,
    "RnDCG": ndcg_at_levels,
    "G": normalised_gain,
    "RBP": rank_biased_precision,
    "RBPresid": rank_biased_residual,
    "ERR": err,
    "nERR": nerr,
    "Judged": judged,
    "Unjudged": unjudged,
    "NumQ": num_q,
    "NumRet": num_ret,
    "NumRel": num_rel,
    "NumRelRet": num_rel_ret,
    "NumNonrelRet": num_nonrel_ret,
}

SUMS = {"NumQ", "NumRet", "NumRel", "NumRelRet", "NumNonrelRet"}
MEDIANS = {"FirstRelevant"}
GEOMETRIC_MEANS = {"GMAP", "GMBpref"}

NO_GOLD_DOES_NOT_APPLY = {"DCG", "IDCG", "Hits", "FirstRelevant", "Judged", "Unjudged"}
NO_GOLD_DOES_NOT_APPLY |= {"YAAP", "RBPresid", "Utility"} | SUMS


RECALLS = {"R", "R_cap"}
"""Measures that are 1 with `no_gold=recall` where there is nothing to find; the others are 0."""


def nothing_to_find(measure: str, query: Query, params: dict) -> bool:
    """Whether even the best list would have the value 0."""
    if measure in ("ERR", "nERR"):
        worth = [query.grade(item) or 0 for item in query.grades]
    elif measure in ("nDCG", "nDCGrel", "RnDCG", "G"):
        gain = params.get("gain", "linear")
        worth = [gain_of(query.grade(item), gain) for item in query.grades]
    else:
        worth = [query.is_relevant(item, params.get("rel", 1)) for item in query.grades]
    return not any(w > 0 for w in worth)


def value(
    measure: str,
    retrieved: list[str] | None,
    grades: dict[str, int],
    k: float | None = None,
    params: dict | None = None,
    largest_grade: int = 0,
    conventions: dict[str, str] | None = None,
) -> float | None:
    """Return a measure of one query; `retrieved` is None if the run does not have the query."""
    params = params or {}
    conventions = DEFAULTS | (conventions or {})
    if retrieved is None and conventions["missing"] == "skip":
        return None
    listed = list(retrieved or [])
    query = Query(listed, grades, largest_grade, conventions)
    if conventions["unjudged"] == "skip":
        query.listed = [item for item in listed if query.grade(item) is not None]
    if conventions["duplicates"] == "set":
        query.listed = list(dict.fromkeys(query.listed))
    if measure not in NO_GOLD_DOES_NOT_APPLY and nothing_to_find(measure, query, params):
        if conventions["no_gold"] == "skip":
            return None
        if conventions["no_gold"] == "one":
            return 1.0
        if conventions["no_gold"] == "recall":
            return 1.0 if measure in RECALLS else 0.0
    return MEASURES[measure](query, k, **params)


def over_queries(measure: str, values: list[float | None]) -> float | None:
    """Combine the values of all queries without those that are left out."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if measure in SUMS:
        return math.fsum(known)
    if measure in MEDIANS:
        return statistics.median(known)
    if measure in GEOMETRIC_MEANS:
        return math.prod(max(value, 0.00001) ** (1 / len(known)) for value in known)
    return math.fsum(known) / len(known)


def violated_conventions(
    gold: dict[str, dict[str, int]], run: dict[str, list[str]], conventions: dict[str, str]
) -> set[str]:
    """Return the conventions that declare something in this data an error."""
    present = {
        "missing": bool(gold.keys() - run.keys()),
        "unknown": bool(run.keys() - gold.keys()),
        "duplicates": any(len(set(run[q])) < len(run[q]) for q in gold.keys() & run.keys()),
    }
    return {name for name in present if present[name] and conventions.get(name) == "error"}


def ranked(scored: list[tuple[str, float]]) -> list[str]:
    """Order items by score descending, ties by id descending compared as UTF-8 bytes."""
    best_first = sorted(scored, key=lambda pair: (pair[1], pair[0].encode()), reverse=True)
    return [item for item, _ in best_first]
