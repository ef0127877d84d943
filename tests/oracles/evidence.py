"""Every evidence measure for one query: every chunk is compared with every evidence text.

A list contains the texts of the chunks in rank order; `None` is a value that is left out, or a
query that gold or the run does not have. difflib decides whether a chunk covers a text (see
texts.py). No code is shared with karat.
"""

from __future__ import annotations

import math
import statistics
from functools import lru_cache

from oracles import texts as text_oracle

# Every measure and cutoff repeats the same comparisons.
how = lru_cache(1 << 16)(text_oracle.how)
normalize = lru_cache(1 << 16)(text_oracle.normalize)

NORMALISING = ("casefold", "nfkc", "zero_width")


def normal(text, rule):
    return normalize(text, **{name: rule.get(name, False) for name in NORMALISING})


def distinct(evidence, rule):
    """Return each evidence text once, normalised, without empty ones."""
    wanted = []
    for text in evidence:
        one = normal(text, rule)
        if one and one not in wanted:
            wanted.append(one)
    return wanted


def covered_by(chunk, wanted, rule):
    """Return the evidence texts that a chunk covers."""
    options = {name: word for name, word in rule.items() if name not in NORMALISING}
    chunk = normal(chunk, rule)
    return {one for one in wanted if how(one, chunk, **options)}


class Query:
    """One query: what each rank covers, and what it is the first to cover."""

    def __init__(self, listed, evidence, rule, k):
        self.k = k
        self.wanted = distinct(evidence, rule)
        self.chunks = [normal(chunk, rule) for chunk in listed[:k]]
        self.all_covers = [covered_by(chunk, self.wanted, rule) for chunk in listed]
        self.covers = self.all_covers[:k]
        self.new, known = [], set()
        for covers in self.covers:
            self.new.append(covers - known)
            known |= covers
        self.known = known


def precision(query):
    read = len(query.covers) if query.k is None else query.k
    relevant = sum(1 for covers in query.covers if covers)
    return relevant / read if read else 0.0


def coverage(query):
    return len(query.known) / len(query.wanted)


def full(query):
    return 1.0 if query.known == set(query.wanted) else 0.0


def reciprocal_rank(query):
    for rank, covers in enumerate(query.covers, 1):
        if covers:
            return 1 / rank
    return 0.0


def success(query):
    return 1.0 if query.known else 0.0


def average_precision(query):
    total, ranks = 0.0, 0
    for rank, new in enumerate(query.new, 1):
        if new:
            ranks += 1
            total += len(new) * (ranks / rank)
    return total / len(query.wanted)


def usual_average_precision(query):
    """Sum the precision at each relevant rank over all evidence texts: the textbook AP."""
    total = 0.0
    for rank, covers in enumerate(query.covers, 1):
        if covers:
            total += sum(1 for above in query.covers[:rank] if above) / rank
    return total / len(query.wanted)


def rank_of_full_coverage(query):
    known = set()
    for rank, covers in enumerate(query.covers, 1):
        known |= covers
        if len(known) == len(query.wanted):
            return float(rank)
    return None


def gain(counts, k):
    total = 0.0
    for rank, count in enumerate(counts[:k], 1):
        total += count / math.log2(rank + 1)
    return total


def best_order(query):
    """Return what each rank adds in the greedy order, followed by the texts that were missed."""
    left, waiting, counts = set(query.wanted), list(query.all_covers), []
    while waiting:
        best = max(waiting, key=lambda covers: len(covers & left))
        if not best & left:
            break
        waiting.remove(best)
        counts.append(len(best & left))
        left -= best
    return counts + [1] * len(left)


def ndcg(query):
    reached = gain([len(new) for new in query.new], query.k)
    return min(1.0, reached / gain(best_order(query), query.k))


def contained_share(evidence, chunks, least):
    """Return the share of characters, without spaces, in stretches that a chunk contains too."""
    size = min(least, len(evidence))
    marked = set()
    for start in range(len(evidence) - size + 1):
        if any(evidence[start : start + size] in chunk for chunk in chunks):
            marked |= set(range(start, start + size))
    inked = {at for at, character in enumerate(evidence) if character != " "}
    return len(marked & inked) / len(inked)


def union(query, least=20):
    """Add from the smallest share up, so that the order of the texts does not affect any digit."""
    shares = [
        1.0 if one in query.known else contained_share(one, query.chunks, least)
        for one in query.wanted
    ]
    total = 0.0
    for share in sorted(shares):
        total += share
    return total / len(shares)


MEASURES = {
    "evidence.P": precision,
    "evidence.recall": coverage,
    "evidence.coverage": coverage,
    "evidence.full": full,
    "evidence.AP": average_precision,
    "evidence.RR": reciprocal_rank,
    "evidence.Success": success,
    "evidence.nDCG": ndcg,
    "evidence.RankOfFullCoverage": rank_of_full_coverage,
    "evidence.union": union,
}


# Neither 0 nor 1 is a meaningful rank here.
NO_GOLD_DOES_NOT_APPLY = {"evidence.RankOfFullCoverage"}
RECALLS = {"evidence.recall", "evidence.coverage"}
"""Measures that are 1 with `no_gold=recall` where there is nothing to find; the others are 0."""


def value(measure, listed, evidence, k=None, rule=None, conventions=None, **parameters):
    """Return a measure of one query; gold or the run may not have it (None)."""
    words = conventions or {}
    if evidence is None or (listed is None and words.get("missing") == "skip"):
        return None
    query = Query(listed or [], evidence, rule or {}, k)
    if not query.wanted and measure not in NO_GOLD_DOES_NOT_APPLY:
        by_word = {"zero": 0.0, "one": 1.0, "recall": float(measure in RECALLS)}
        return by_word.get(words.get("no_gold", "family"))
    return MEASURES[measure](query, **parameters) if query.wanted else None


def micro_recall(queries, k=None, rule=None):
    """Count the texts of all queries together, given pairs of a list and its evidence."""
    found = wanted = 0
    for listed, evidence in queries:
        if evidence is not None:
            query = Query(listed or [], evidence, rule or {}, k)
            found += len(query.known)
            wanted += len(query.wanted)
    return found / wanted if wanted else None


def over_queries(measure, values):
    """Take the median of the ranks of full coverage, the mean of anything else but recall."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if measure == "evidence.RankOfFullCoverage":
        return statistics.median(known)
    return math.fsum(known) / len(known)
