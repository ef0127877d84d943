"""The built-in retrievers reach the known values on SciFact (5,183 abstracts, 300 claims)."""

import pytest

import karat
from karat.live.retrievers import BM25, Dense, Hybrid
from support.retrieval import SCIFACT, scifact_corpus

LUCENE_BM25, WORDLLAMA = 0.6789, 0.5134
"""nDCG@10 of the stored runs."""


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """The values of each retriever."""
    pytest.importorskip("wordllama")
    corpus = scifact_corpus(tmp_path_factory.mktemp("scifact"))
    gold = karat.Gold.read(SCIFACT / "qrels.txt")
    found = {}
    for make in (BM25, Dense, Hybrid):
        run = karat.retrieve(make(corpus, cache=False), SCIFACT / "topics.tsv", top_k=100)
        summary = karat.evaluate(gold, run, ["nDCG@10", "R@100"]).summary()
        found[make] = dict(summary.select("measure", "value").rows())
    return found


def test_bm25_is_that_of_lucene(values):
    assert values[BM25]["nDCG@10"] == pytest.approx(LUCENE_BM25, abs=0.01)


def test_wordllama_has_its_known_value(values):
    assert values[Dense]["nDCG@10"] == pytest.approx(WORDLLAMA, abs=0.01)


def test_hybrid_finds_more_than_both(values):
    assert values[Hybrid]["R@100"] > max(values[BM25]["R@100"], values[Dense]["R@100"])


def test_hybrid_ranks_worse_than_bm25(values):
    assert values[Hybrid]["nDCG@10"] < values[BM25]["nDCG@10"]
