"""Built-in retrievers, embedders, rerankers, and the cache of indexes."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from karat import retrieve
from karat.cache import cached_entries
from karat.live import runner
from karat.live.retrievers import BM25, Dense, Hybrid, bm25
from karat.live.retrievers.built_in import create_built_in
from messages.cases import Section, written
from messages.live_retrievers import QUERY, recorded, run_error
from support.live_server import saying, serving
from support.retrieval import FAQ, letters

SECTION = Section("live: built-in retrievers")
case = SECTION.case
HIDDEN = r"(?<=the index )\S+(?= is built)|(?<=not stored in )\S+(?=:)"
HOST = r"127\.0\.0\.1:\d+"


@contextmanager
def own_cache():
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, XDG_CACHE_HOME=folder):
        yield


# Names and options

case("a built-in retriever has no corpus", lambda: create_built_in("bm25:"))
case("a built-in retriever lacks an option", lambda: create_built_in("dense:x", {"k1": 1.0}))
case("a corpus does not exist", lambda: create_built_in("bm25:nowhere.jsonl"))


def module_like_corpus():
    written("bm25.py", "def search(query): return []")
    create_built_in("bm25:search")


case("a function is in a module with the name of a built-in retriever", module_like_corpus)


def built(name: str, make=BM25, corpus=FAQ, **options) -> None:
    case(name, lambda: make(corpus, cache=False, **options))


built("a corpus is empty", corpus={})
built("a document has no text", corpus={"a": "one", "b": " "})
built("documents have no text", corpus={"a": "one", "b": " ", "c": ""})
built("chunks of a corpus are empty", corpus={"a": "one"}, chunker=lambda text: [])
built("a size of chunks is given without a chunker", chunk_size=100)
built("a chunker has no overlap", chunker="sentences", chunk_overlap=10)
built("a chunker is unknown", chunker="recursiv")
built("k1 is negative", k1=-1.0)
built("b is above 1", b=1.5)
built("an engine of BM25 is unknown", engine="lucene")
built("an engine of BM25 has a fixed constant", engine="tantivy", k1=0.9)
built("a language of the stemmer is misspelled", stemmer="englisch")
case(
    "a language of stop words is unknown",
    lambda: BM25(FAQ, stop_words="klingon"),
    volatile="(?<=choose one of ).*",
)
built("one weight is missing", Hybrid, embedder=letters, weights=(1.0,))
built("weights are given with a constant", Hybrid, embedder=letters, weights=(1, 1), rrf_k=60)
built("a weight is negative", Hybrid, embedder=letters, weights=(1.0, -1.0))


def command(name: str, *words: str) -> None:
    """Add a case of options on the command line."""

    def run():
        from karat.cli.main import app

        written("q.tsv", "q1\tone\n")
        written("docs.jsonl", '{"doc_id":"a","text":"one"}\n')
        app(["run", "q.tsv", "-o", "run.jsonl", *words], standalone_mode=False)

    case(name, run)


command("an option of built-in retrievers is given to another one", "-r", "a:b", "--k1", "1")
command("weights are not numbers", "-r", "hybrid:docs.jsonl", "--weights", "a,b")

# Embedders


def without(package: str, make):
    with patch(f"karat.live.retrievers.{package}.find_spec", lambda name: None):
        make()


case(
    "tantivy is not installed",
    lambda: without("tantivy", lambda: BM25(FAQ, engine="tantivy")),
)
case("wordllama is not installed", lambda: without("embedders", lambda: Dense(FAQ)))
case(
    "usearch is not installed",
    lambda: without("dense", lambda: Dense(FAQ, embedder=letters, exact_limit=1)),
)
built("an embedder is not a name", Dense, embedder="ada")
built("an embedder is not a function", Dense, embedder=7)
built("an embedder fails", Dense, embedder=lambda texts: 1 / 0)
built("an embedder returns too few vectors", Dense, embedder=lambda texts: [[1.0]])
built("an embedder returns an array of another shape", Dense, embedder=lambda t: bm25.np.ones(4))
built("an embedder returns no vectors", Dense, embedder=lambda texts: None)
built("an embedder returns NaN", Dense, embedder=lambda texts: [[float("nan")] for _ in texts])
built("a model is given without a server", Dense, embedder=letters, embedding_model="m")
built("a model of a server is missing", Dense, embedder="http://127.0.0.1/v1")
built(
    "a key is not in the environment",
    Dense,
    embedder="http://127.0.0.1/v1",
    embedding_model="m",
    embedding_key_env="KARAT_NO_SUCH_KEY",
)
sizes = iter([2, 3, 2, 3])
built(
    "an embedder changes its dimension",
    Dense,
    corpus={f"d{n}": "one" for n in range(100)},
    embedder=lambda texts, sizes=sizes: (lambda size: [[1.0] * size for _ in texts])(next(sizes)),
)
case(
    "an embedder has another dimension for queries",
    lambda: Dense(FAQ, embedder=lambda texts: [[1.0] * len(texts) for _ in texts]),
)


def served(name: str, respond) -> None:
    """Add a case of a server that fails while the corpus is embedded."""

    def make():
        with serving(respond) as server, patch.object(runner, "FIRST_DELAY", 0.001):
            Dense(FAQ, embedder=server.url, embedding_model="m", cache=False)

    case(name, make, volatile=HOST)


served("an embedding server refuses", saying(b"wrong key", 401))
served("an embedding server is busy", saying(b"", 503))
served("an embedding server does not return JSON", saying(b"<html>"))
served("an embedding server returns something else", saying({"data": [{"embedding": "x"}]}))


def unreachable():
    with patch.object(runner, "FIRST_DELAY", 0.001):
        Dense(FAQ, embedder="http://127.0.0.1:1/v1", embedding_model="m", cache=False)


case("an embedding server cannot be reached", unreachable)


def answers_for_the_corpus_and_then(later):
    """Embed the corpus and one of its texts, and then give another answer."""
    requests = []

    def respond(handler, request):
        requests.append(request)
        first = {"data": [{"embedding": vector} for vector in letters(request["input"])]}
        (saying(first) if len(requests) <= 2 else later)(handler, request)

    return respond


def other_answer():
    later = saying({"data": [{"embedding": "x"}]})
    with serving(answers_for_the_corpus_and_then(later)) as server:
        dense = Dense(FAQ, embedder=server.url, embedding_model="m", cache=False)
        return run_error(dense)


case("an embedding server returns something else for a query", other_answer, volatile=HOST)

# Rerankers

ITEMS = [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}]


def reranked(name: str, reranker, search=lambda query: ITEMS) -> None:
    case(
        name,
        lambda: recorded(retrieve(search, QUERY, retries=0, fail_on_error=1, reranker=reranker)),
    )


reranked("a reranker is not a name", "cohere")
reranked("a reranker is not a function", 7)
reranked("a reranker returns too few scores", lambda query, texts: [1.0])
reranked("a reranker returns nothing", lambda query, texts: None)
reranked("a result to be reranked has no text", lambda query, texts: [], lambda query: ["a"])

case(
    "a model is given to a reranking function",
    lambda: retrieve(lambda query: ITEMS, QUERY, reranker=letters, reranker_model="m"),
)
case(
    "a model is given without a reranker",
    lambda: retrieve(lambda query: ITEMS, QUERY, reranker_model="m"),
)


def served_scores():
    with serving(saying({"scores": [1]})) as server:
        return recorded(
            retrieve(lambda query: ITEMS, QUERY, retries=0, fail_on_error=1, reranker=server.url)
        )


case("a reranking server returns something else", served_scores, volatile=HOST)

# The cache


def damaged():
    with own_cache():
        BM25(FAQ)
        (entry,) = cached_entries()
        (entry.path / "data.npy").write_bytes(b"")
        BM25(FAQ)


def without_manifest():
    with own_cache():
        BM25(FAQ)
        (entry,) = cached_entries()
        (entry.path / "manifest.json").unlink()
        BM25(FAQ)


def outdated():
    answer = iter([1.0, 1.0, 2.0, 2.0, 2.0])

    def respond(handler, request):
        value = next(answer)
        data = [{"embedding": [value, 1.0]} for _ in request["input"]]
        saying({"data": data})(handler, request)

    with own_cache(), serving(respond) as server:
        for _ in range(2):
            Dense(FAQ, embedder=server.url, embedding_model="m")


def not_stored():
    def fail(index, folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with own_cache(), patch.object(bm25.BM25Index, "save", fail):
        BM25(FAQ)


def without_space():
    problem = ValueError("Internal error: 'No space left on device (os error 28)'")
    with own_cache(), patch("tantivy.Index", side_effect=problem):
        BM25(FAQ, engine="tantivy")


case("tantivy cannot write", without_space, volatile=r"(?<=InputError: )\S+(?=:)")
case("a file of a stored index is damaged", damaged, volatile=HIDDEN)
case("the manifest of a stored index is missing", without_manifest, volatile=HIDDEN)
case("the vectors of a stored index are outdated", outdated, volatile=HIDDEN)
case("an index cannot be stored", not_stored, volatile=HIDDEN)
