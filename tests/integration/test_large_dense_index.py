"""Approximate search of many vectors: how much of the exact result it finds."""

from __future__ import annotations

import numpy as np
import pytest

from karat.live.retrievers import Dense

N_ITEMS, N_QUERIES, DIMENSIONS = 20_000, 50, 64


@pytest.fixture(scope="module")
def table():
    """Random directions, which are harder to search than the embeddings of texts."""
    random = np.random.default_rng(11)
    names = [f"d{n}" for n in range(N_ITEMS)] + [f"q{n}" for n in range(N_QUERIES)]
    return dict(zip(names, random.standard_normal((len(names), DIMENSIONS)), strict=True))


def search(table, depth, **options):
    """Return the lists of all queries."""
    corpus = {name: name for name in table if name.startswith("d")}
    retriever = Dense(
        corpus, embedder=lambda texts: np.array([table[text] for text in texts]), **options
    )
    return [retriever.search(f"q{n}", depth) for n in range(N_QUERIES)]


@pytest.mark.parametrize(("depth", "least"), [(10, 0.98), (100, 0.95)])
def test_approximate_search_finds_nearly_everything(table, depth, least):
    exact = search(table, depth, exact_limit=N_ITEMS)
    approximate = search(table, depth, exact_limit=N_ITEMS - 1)
    shares = []
    for one, other in zip(exact, approximate, strict=True):
        scores = {item["id"]: item["score"] for item in one}
        common = [item for item in other if item["id"] in scores]
        assert all(item["score"] == scores[item["id"]] for item in common)
        shares.append(len(common) / depth)
    assert least <= np.mean(shares) <= 1
    assert exact != approximate, "the search is not approximate, so nothing was tested"


def test_approximate_search_is_deterministic(table):
    one, other = (search(table, 20, exact_limit=0) for _ in range(2))
    assert one == other
