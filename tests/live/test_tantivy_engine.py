"""BM25 with the engine tantivy: the scores and lists of bm25s, from an index on disk."""

import json
import tempfile
from pathlib import Path
from random import Random

import pytest

import karat
from karat.cache import cached_entries
from karat.live.retrievers import BM25, Hybrid, tantivy
from oracles import retrieval as oracle
from support.errors import refused
from support.retrieval import FAQ, QUERIES, letters

pytest.importorskip("tantivy")

PLAIN = {"stemmer": "none", "stop_words": "none", "cache": False, "engine": "tantivy"}


@pytest.fixture(autouse=True)
def folders(tmp_path_factory, monkeypatch):
    """Return the folder of temporary files; the cache is in another one."""
    home, temporary = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return temporary


def ids(results):
    return [result["id"] for result in results]


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_the_formula(seed):
    random = Random(seed)
    words = ["ant", "bee", "cat", "dog", "emu", "fox", "gnu"]

    def text(most):
        return " ".join(random.choices(words[: seed + 4], k=random.randint(1, most)))

    corpus = {f"d{n}ä": text(40) for n in range((1, 2, 10, 30)[seed])}
    retriever = BM25(corpus, **PLAIN)
    documents = {name: text.split() for name, text in corpus.items()}
    for query in [text(6) for _ in range(25)]:
        expected = oracle.bm25(query.split(), documents, 1.2, 0.75)
        for top_k in (1, 5, 50):
            results = retriever.search(query, top_k)
            assert len(results) == min(top_k, len(expected))
            for result in results:
                assert result["score"] == pytest.approx(expected[result["id"]], rel=1e-5)
            scores = [result["score"] for result in results]
            assert scores == sorted(scores, reverse=True)
            left_out = [score for name, score in expected.items() if name not in ids(results)]
            assert all(score <= scores[-1] * (1 + 1e-5) for score in left_out)


def test_items_are_those_of_bm25s():
    for options in ({}, {"chunker": "sentences", "chunk_size": 25}):
        one = BM25(FAQ, engine="tantivy", cache=False, **options)
        other = BM25(FAQ, k1=1.2, b=0.75, cache=False, **options)
        for query in (*QUERIES.values(), "the", "zebra", ""):
            pairs = zip(one.search(query), other.search(query), strict=True)
            for item, expected in pairs:
                assert item.pop("score") == pytest.approx(expected.pop("score"), rel=1e-5)
                assert item == expected


def test_equal_scores_are_ordered_by_id_at_every_depth():
    corpus = {f"d{n:03}": f"one two w{n % 3}" for n in range(300)}
    retriever = BM25(corpus, **PLAIN)
    expected = ids(retriever.search("one w2", 300))
    same = [f"d{n:03}" for n in range(300) if n % 3 == 2]
    assert expected[:100] == sorted(same, reverse=True)
    for depth in (1, 7, 99, 100, 101, 250):
        assert ids(retriever.search("one w2", depth)) == expected[:depth]


def test_several_segments_give_the_same_list(monkeypatch):
    """A corpus that does not fit into the memory of the writer has several segments."""
    unique = "_".join("abcdefghijklmnopqrstuvwxyz")
    corpus = {
        f"d{n}": f"one two w{n % 7} " + " ".join(f"{unique}{n}_{m}" for m in range(50))
        for n in range(2500)
    }
    whole = BM25(corpus, **PLAIN)
    monkeypatch.setattr(tantivy, "_WRITER_BYTES", 15_000_000)
    parts = BM25(corpus, **PLAIN)
    assert parts._index._searcher.num_segments > whole._index._searcher.num_segments == 1
    for depth in (1, 50, 500):
        assert parts.search("two w3", depth) == whole.search("two w3", depth)


def test_equal_texts_have_equal_scores():
    words = [f"w{n}" for n in range(12)]
    texts = [" ".join(words[n % 5 : n % 5 + n % 7 + 1]) for n in range(2000)]
    corpus = {f"d{n}": text for n, text in enumerate(texts)}
    scores = {}
    for item in BM25(corpus, **PLAIN).search(" ".join(words[1:9]), 2000):
        scores.setdefault(item["text"], set()).add(item["score"])
    assert len(scores) > 20
    assert all(len(values) == 1 for values in scores.values())


@pytest.mark.parametrize("jobs", [1, 16])
def test_lists_and_scores_do_not_depend_on_the_number_of_workers(jobs):
    corpus = {f"d{n}": " ".join(f"w{n * k % 7}" for k in range(1, 9)) for n in range(200)}
    queries = {f"q{n}": f"w{n % 7} w{n % 5} w{n % 3}" for n in range(60)}
    expected = karat.retrieve(BM25(corpus, **PLAIN), queries, jobs=3).results
    assert karat.retrieve(BM25(corpus, **PLAIN), queries, jobs=jobs).results.equals(expected)


# The index on disk


def answers(retriever):
    return [retriever.search(query) for query in QUERIES.values()]


def test_index_is_stored_and_read(monkeypatch):
    first = answers(BM25(FAQ, engine="tantivy"))
    BM25(FAQ)
    assert len(cached_entries()) == 2
    monkeypatch.setattr(tantivy.TantivyIndex, "build", None)
    assert answers(BM25(FAQ, engine="tantivy")) == first


def test_damaged_index_is_reported_and_built_again():
    first = answers(BM25(FAQ, engine="tantivy"))
    (entry,) = cached_entries()
    assert not list(entry.path.glob("*.lock"))
    (file,) = entry.path.glob("*.idx")
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    with pytest.warns(karat.KaratWarning, match="is built again"):
        assert answers(BM25(FAQ, engine="tantivy")) == first
    assert answers(BM25(FAQ, engine="tantivy")) == first  # without a warning


def test_temporary_index_is_removed(folders):
    retriever = BM25(FAQ, engine="tantivy", cache=False)
    assert len(list(folders.iterdir())) == 1
    del retriever
    assert list(folders.iterdir()) == []
    assert cached_entries() == []


def test_full_disk_is_an_error_and_nothing_is_stored(folders, monkeypatch):
    class FullDisk:
        def __init__(self, schema, path):
            (Path(path) / "part").write_text("x")

        def writer(self, **options):
            raise ValueError("Internal error: 'No space left on device (os error 28)'")

    monkeypatch.setattr("tantivy.Index", FullDisk)
    with refused() as caught:
        BM25(FAQ, engine="tantivy")
    assert Path(caught.value.path).parent == folders
    assert list(folders.iterdir()) == []
    assert cached_entries() == []


# Options


def test_engine_is_an_option_of_a_run(tmp_path, command):
    rows = [json.dumps({"doc_id": name, "text": text}) for name, text in FAQ.items()]
    (tmp_path / "docs.jsonl").write_text("\n".join(rows))
    (tmp_path / "q.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))
    code, _, err = command(
        "run", tmp_path / "q.tsv", "-r", f"bm25:{tmp_path / 'docs.jsonl'}", "--engine", "tantivy",
        "--top-k", "1", "-o", tmp_path / "run.jsonl", "--no-progress",
    )  # fmt: skip
    assert code == 0, err
    run = karat.Run.read(tmp_path / "run.jsonl")
    found = dict(run.results.select("query_id", "item_id").rows())
    assert found == {"q1": "refund", "q2": "pay", "q3": "account"}
    used = {name: run.settings[name] for name in ("bm25_engine", "k1", "b")}
    assert used == {"bm25_engine": "tantivy", "k1": 1.2, "b": 0.75}


def test_hybrid_uses_the_engine():
    options = {"embedder": letters, "cache": False}
    one = Hybrid(FAQ, engine="tantivy", **options)
    other = Hybrid(FAQ, k1=1.2, b=0.75, **options)
    assert one.settings["bm25_engine"] == "tantivy"
    assert answers(one) == answers(other)


@pytest.mark.parametrize(
    ("options", "field"),
    [({"k1": 0.9}, "k1"), ({"b": 0.4}, "b"), ({"engine": "tantivi"}, "engine")],
)
def test_options_that_tantivy_does_not_have_are_errors(options, field):
    with refused(field=field):
        BM25(FAQ, **({"engine": "tantivy"} | options))
    BM25(FAQ, engine="tantivy", k1=1.2, b=0.75, cache=False)


def test_missing_package_is_an_error_and_nothing_is_stored(monkeypatch):
    monkeypatch.setattr(tantivy, "find_spec", lambda name: None)
    with refused(field="engine"):
        BM25(FAQ, engine="tantivy")
    assert cached_entries() == []
