"""Slow, obvious versions of BM25, cosine similarity and fusion."""

import math


def bm25(query, documents, k1, b):
    """Score lists of words by {id: words}; documents without a word of the query are left out."""
    average = sum(map(len, documents.values())) / len(documents)
    scores = {}
    for name, words in documents.items():
        score = 0.0
        for word in query:
            frequency = words.count(word)
            if not frequency:
                continue
            having = sum(word in other for other in documents.values())
            idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
            score += idf * frequency / (frequency + k1 * (1 - b + b * len(words) / average))
        if score > 0:
            scores[name] = score
    return scores


def cosine(one, other):
    length = math.sqrt(math.fsum(x * x for x in one)) * math.sqrt(math.fsum(x * x for x in other))
    return math.fsum(x * y for x, y in zip(one, other, strict=True)) / length if length else 0.0


def reciprocal_ranks(lists, k):
    """Fuse lists of ids."""
    scores = {}
    for ids in lists:
        for rank, name in enumerate(ids, 1):
            scores[name] = scores.get(name, 0.0) + 1 / (k + rank)
    return scores


def ranked(scores):
    """Return ids by score, equal scores by id in descending order."""
    return sorted(sorted(scores, reverse=True), key=lambda name: -scores[name])
