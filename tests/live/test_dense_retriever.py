"""Dense and hybrid retrieval: similarities, embedders, endpoints, fusion."""

import json
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.cache import cached_entries
from karat.errors import InputError
from karat.live.retrievers import BM25, Dense, Hybrid
from oracles import retrieval as oracle
from support.live_server import saying, send, serving
from support.retrieval import FAQ, QUERIES, letters

VECTORS = st.lists(st.integers(-3, 3), min_size=3, max_size=3)


@pytest.fixture(autouse=True)
def cache_home(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The FAQ and its queries as files in the current folder, next to an embedder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "letters_of_files.py").write_text("from support.retrieval import letters\n")
    rows = [json.dumps({"doc_id": name, "text": text}) for name, text in FAQ.items()]
    (tmp_path / "docs.jsonl").write_text("\n".join(rows))
    (tmp_path / "q.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))


EMBEDDER = ("--embedder", "letters_of_files:letters")


def as_vectors(texts):
    """Embed texts such as "1 -2 3" as their numbers."""
    return [list(map(float, text.split())) for text in texts]


@given(st.lists(VECTORS, min_size=1, max_size=12), VECTORS, st.integers(1, 15))
def test_similarities_are_those_of_brute_force(vectors, query, top_k):
    corpus = {f"d{n:02}": " ".join(map(str, vector)) for n, vector in enumerate(vectors)}
    retriever = Dense(corpus, embedder=as_vectors)
    results = retriever.search(" ".join(map(str, query)), top_k)
    expected = {f"d{n:02}": oracle.cosine(vector, query) for n, vector in enumerate(vectors)}
    best = sorted(expected.values(), reverse=True)[:top_k]
    assert [item["score"] for item in results] == pytest.approx(best, abs=1e-6)
    for item in results:
        assert item["score"] == pytest.approx(expected[item["id"]], abs=1e-6)


def test_equal_vectors_have_equal_scores_and_are_ordered_by_id():
    random = np.random.default_rng(7)
    one, *others = random.standard_normal((300, 257))
    table = {f"d{n:03}": one if n % 7 == 0 else others[n] for n in range(250)}
    retriever = Dense(
        {name: name for name in table}, embedder=lambda t: [table.get(x, one) for x in t]
    )
    results = retriever.search("the query", 36)
    assert [item["id"] for item in results] == sorted(
        (f"d{n:03}" for n in range(0, 250, 7)), reverse=True
    )
    assert {item["score"] for item in results} == {results[0]["score"]}


def test_usearch_finds_what_exact_search_finds_and_always_the_same():
    pytest.importorskip("usearch")
    random = np.random.default_rng(3)
    table = {f"d{n:04}": vector for n, vector in enumerate(random.standard_normal((2000, 32)))}
    table["q"] = random.standard_normal(32)
    corpus = {name: name for name in table if name != "q"}

    def embed(texts):
        return [table[text] for text in texts]

    exact = Dense(corpus, embedder=embed).search("q", 10)
    graphs = [Dense(corpus, embedder=embed, exact_limit=100) for _ in range(2)]
    assert graphs[0].search("q", 10) == graphs[1].search("q", 10)
    common = {item["id"] for item in exact} & {item["id"] for item in graphs[0].search("q", 10)}
    assert len(common) >= 8
    assert graphs[0].settings["search"].startswith("approximate, usearch ")


def test_graph_of_usearch_is_stored_and_read(tmp_path, monkeypatch):
    pytest.importorskip("usearch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters_here.py").write_text(
        "def embed(texts):\n    return [[t.count(c) for c in 'abcdefghij'] for t in texts]\n"
    )
    corpus = {f"d{n}": "abcdefghij"[: n % 10 + 1] * (n + 1) for n in range(50)}
    options = {"embedder": "letters_here:embed", "exact_limit": 10}
    first = Dense(corpus, **options).search("abc", 5)
    assert [entry.path.name.split("-")[0] for entry in cached_entries()] == ["dense"]
    assert Dense(corpus, **options).search("abc", 5) == first


def test_wordllama_is_the_default_and_is_deterministic():
    pytest.importorskip("wordllama")
    first, again = Dense(FAQ), Dense(dict(reversed(FAQ.items())), cache=False)
    assert first.settings["embedder"] == "wordllama"
    for query in QUERIES.values():
        assert first.search(query) == again.search(query)
    assert first.search("refund my money")[0]["id"] == "refund"


@pytest.mark.parametrize("jobs", [1, 16])
def test_lists_and_scores_do_not_depend_on_the_number_of_workers(jobs):
    corpus = {f"d{n}": FAQ["pay"][n % 40 :] for n in range(300)}
    queries = {f"q{n}": FAQ["ship"][n:] for n in range(40)}
    for make in (Dense, Hybrid):
        expected = karat.retrieve(make(corpus, embedder=letters), queries, jobs=3).results
        run = karat.retrieve(make(corpus, embedder=letters), queries, jobs=jobs)
        assert run.results.equals(expected)


# Hybrid


@given(st.sampled_from(sorted(QUERIES.values())), st.integers(1, 5), st.integers(1, 5))
def test_hybrid_is_the_fusion_of_both_lists(query, top_k, prefetch_limit):
    options = {"cache": False}
    lists = [
        [item["id"] for item in BM25(FAQ, **options).search(query, prefetch_limit)],
        [item["id"] for item in Dense(FAQ, embedder=letters).search(query, prefetch_limit)],
    ]
    expected = oracle.reciprocal_ranks(lists, 60)
    results = Hybrid(FAQ, embedder=letters, **options).search(query, top_k, prefetch_limit)
    assert [item["id"] for item in results] == oracle.ranked(expected)[:top_k]
    for item in results:
        assert item["score"] == pytest.approx(expected[item["id"]])


def test_hybrid_is_the_same_as_fused_runs():
    retrievers = (BM25(FAQ, cache=False), Dense(FAQ, embedder=letters))
    runs = [karat.retrieve(retriever, QUERIES, top_k=3) for retriever in retrievers]
    hybrid = Hybrid(FAQ, embedder=letters, rrf_k=7, cache=False)
    run = karat.retrieve(hybrid, QUERIES, prefetch_limit=3)
    columns = ["query_id", "item_id", "score"]
    expected = karat.fuse(runs, "rrf", k=7).results.select(columns)
    assert run.results.select(columns).equals(expected)


def test_weights_scale_the_scores_of_each_list():
    query = QUERIES["q2"]
    expected = {}
    for weight, retriever in ((0.7, BM25(FAQ, cache=False)), (0.3, Dense(FAQ, embedder=letters))):
        scores = {item["id"]: item["score"] for item in retriever.search(query)}
        low, high = min(scores.values()), max(scores.values())
        for name, score in scores.items():
            scaled = 1.0 if high == low else (score - low) / (high - low)
            expected[name] = expected.get(name, 0.0) + weight * scaled
    hybrid = Hybrid(FAQ, embedder=letters, weights=(0.7, 0.3), cache=False)
    results = {item["id"]: item["score"] for item in hybrid.search(query)}
    assert results == pytest.approx(expected)
    assert hybrid.settings["weights"] == [0.7, 0.3]


def test_weights_exclude_the_constant_of_reciprocal_ranks(files, command):
    words = ("-r", "hybrid:docs.jsonl", *EMBEDDER, "--weights", "1,1", "--rrf-k", "60")
    code, _, err = command("run", "q.tsv", "-o", "run.jsonl", *words)
    assert (code, err.count("error: rrf_k:")) == (2, 1)


def test_prefetch_limit_is_passed_by_the_run():
    run = karat.retrieve(
        Hybrid(FAQ, embedder=letters, cache=False), QUERIES, prefetch_limit=1, top_k=10
    )
    assert run.results.group_by("query_id").len()["len"].max() <= 2
    stages = run.timings["stage"].unique().sort().to_list()
    assert stages == ["embedding", "fusion", "retrieval", "total"]


@pytest.mark.parametrize("weights", [(1,), (-1, 2), (0, 0), (float("nan"), 1)])
def test_invalid_weights_are_errors(weights):
    with pytest.raises(InputError) as caught:
        Hybrid(FAQ, embedder=letters, weights=weights, cache=False)
    assert caught.value.field == "weights"


def test_embedder_may_be_in_a_file(files, command):
    words = ("-r", "dense:docs.jsonl", "--embedder", "letters_of_files.py:letters")
    code, _, err = command("run", "q.tsv", "-o", "run.jsonl", *words)
    assert code == 0, err
    assert karat.Run.read("run.jsonl").settings["embedder"] == "letters_of_files.py:letters"


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_embedder_is_an_option_of_a_run(kind, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"letters_of_{kind}.py").write_text("from support.retrieval import letters\n")
    rows = [json.dumps({"doc_id": name, "text": text}) for name, text in FAQ.items()]
    (tmp_path / "docs.jsonl").write_text("\n".join(rows))
    (tmp_path / "q.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))
    make = {"dense": Dense, "hybrid": Hybrid}[kind]
    expected = karat.retrieve(make(FAQ, embedder=letters, cache=False), QUERIES)
    run = karat.retrieve(f"{kind}:docs.jsonl", QUERIES, embedder=letters)
    assert run.results.equals(expected.results)
    code, _, err = command(
        "run", "q.tsv", "-r", f"{kind}:docs.jsonl", "-o", "run.jsonl",
        "--embedder", f"letters_of_{kind}:letters",
    )  # fmt: skip
    assert code == 0, err
    stored = karat.Run.read("run.jsonl").results.sort("query_id", maintain_order=True)
    assert stored["item_id"].equals(expected.results["item_id"])


def test_exact_limit_of_zero_is_passed(files, command):
    pytest.importorskip("usearch")
    words = ("-r", "dense:docs.jsonl", *EMBEDDER, "--exact-limit", "0")
    code, _, err = command("run", "q.tsv", "-o", "run.jsonl", *words)
    assert code == 0, err
    assert karat.Run.read("run.jsonl").settings["search"].startswith("approximate, usearch ")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("rrf_k", ("--rrf-k", "0")),
        ("chunk_size", ("--chunker", "recursive", "--chunk-size", "0")),
        ("chunk_overlap", ("--chunker", "fixed", "--chunk-size", "5", "--chunk-overlap", "5")),
    ],
)
def test_number_that_is_not_valid_is_an_error_of_the_command(field, words, files, command):
    code, _, err = command(
        "run", "q.tsv", "-r", "hybrid:docs.jsonl", "-o", "run.jsonl", *EMBEDDER, *words
    )
    assert (code, err.count("error:")) == (2, 1)
    assert f"error: {field}: must be" in err


# Endpoints


def embeddings(dimensions=lambda number: 16):
    """Answer as OpenAI does, in reverse order; `dimensions` may change with each request."""
    numbers = iter(range(10**6))
    lock = threading.Lock()

    def respond(handler, request):
        with lock:
            size = dimensions(next(numbers))
        data = [
            {"index": n, "embedding": vector[:size]}
            for n, vector in enumerate(letters(request["input"]))
        ]
        send(handler, json.dumps({"data": data[::-1]}).encode())

    return respond


def url(server):
    return re.sub("/search$", "/v1", server.url)


def test_endpoint_returns_the_same_lists_as_the_function(monkeypatch):
    monkeypatch.setenv("TEST_KEY", "secret-key-1")
    corpus = {f"d{n}": text for n, text in enumerate(list(FAQ.values()) * 40)}
    expected = karat.retrieve(Dense(corpus, embedder=letters), QUERIES)
    with serving(embeddings()) as server:
        retriever = Dense(
            corpus, embedder=url(server), embedding_model="m", embedding_key_env="TEST_KEY"
        )
        run = karat.retrieve(retriever, QUERIES)
        assert run.results.equals(expected.results)
        assert [len(request["input"]) for request in server.requests[:3]] == [64, 64, 32]
        assert {request["model"] for request in server.requests} == {"m"}
        assert {h["Authorization"] for h in server.headers} == {"Bearer secret-key-1"}
        (entry,) = cached_entries()
        stored = b"".join(path.read_bytes() for path in entry.path.iterdir())
        assert b"secret-key-1" not in stored
        assert "secret-key-1" not in json.dumps(run.settings)


def test_endpoint_is_tried_again_after_temporary_failures(monkeypatch):
    monkeypatch.setattr("karat.live.runner.FIRST_DELAY", 0.01)
    answer = embeddings()
    failures = iter([503, 429])

    def respond(handler, request):
        status = next(failures, None)
        if status is None:
            answer(handler, request)
        else:
            send(handler, b"busy", status)

    with serving(respond) as server:
        retriever = Dense(FAQ, embedder=url(server), embedding_model="m")
        assert len(server.requests) == 4
        assert retriever.search("refund")


@pytest.mark.parametrize(
    "respond",
    [
        lambda handler, request: send(handler, b"wrong key secret-key-2", 401),
        lambda handler, request: send(handler, b"<html>"),
        lambda handler, request: send(handler, b'{"data": [{"embedding": "x"}]}'),
        lambda handler, request: send(handler, b'{"data": []}'),
    ],
    ids=["status", "not JSON", "not numbers", "too few"],
)
def test_failing_endpoint_is_one_error_and_nothing_is_cached(
    respond, tmp_path, monkeypatch, command
):
    monkeypatch.setattr("karat.live.runner.FIRST_DELAY", 0.01)
    monkeypatch.setenv("TEST_KEY", "secret-key-2")
    (tmp_path / "docs.jsonl").write_text('{"doc_id":"a","text":"one"}\n')
    (tmp_path / "q.tsv").write_text("q1\tone\n")
    with serving(respond) as server:
        code, _, err = command(
            "run", tmp_path / "q.tsv", "-r", f"dense:{tmp_path / 'docs.jsonl'}",
            "--embedder", url(server), "--embedding-model", "m",
            "--embedding-key-env", "TEST_KEY", "-o", tmp_path / "run.jsonl",
        )  # fmt: skip
    assert code == 2
    assert err.count("error:") == 1
    assert "secret-key-2" not in err
    assert cached_entries() == []
    assert not (tmp_path / "run.jsonl").exists()


def test_endpoint_that_changes_its_dimension_while_indexing_is_an_error():
    corpus = {f"d{n}": "text" for n in range(100)}
    with (
        serving(embeddings(lambda number: 16 - number)) as server,
        pytest.raises(InputError) as caught,
    ):
        Dense(corpus, embedder=url(server), embedding_model="m")
    assert caught.value.field == "embedder"
    assert cached_entries() == []


def changing_after(count):
    """Answer with 16 dimensions first, and with 8 after some requests."""
    return embeddings(lambda number: 16 if number < count else 8)


def run_words(kind, server):
    return (
        "run", "q.tsv", "-r", f"{kind}:docs.jsonl", "-o", "run.jsonl", "-j", "1",
        "--embedder", url(server), "--embedding-model", "m", "--fail-on-error", "1",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
def test_endpoint_that_changes_its_dimension_after_the_corpus_is_one_error(kind, files, command):
    with serving(changing_after(1)) as server:
        code, _, err = command(*run_words(kind, server))
    assert (code, err.count("error:")) == (2, 1)
    assert "8 dimensions" in err
    assert len(server.requests) == 2
    assert cached_entries() == []
    assert not Path("run.jsonl").exists()


@pytest.mark.parametrize("kind", ["dense", "hybrid"])
@pytest.mark.parametrize("answered", [0, 2])
def test_endpoint_that_changes_its_dimension_during_the_run_stops_it(
    kind, answered, files, command
):
    with serving(changing_after(2 + answered)) as server:
        code, _, err = command(*run_words(kind, server))
    assert (code, err.count("error:")) == (2, 1)
    assert "again" in err
    assert len(server.requests) == 2 + answered + 1
    assert not Path("run.jsonl").exists()


def test_answers_of_an_earlier_run_are_kept_if_the_dimension_changes(files, command):
    numbers, busy = iter(range(100)), saying(b"busy", 400)

    def respond(handler, request):
        number = next(numbers)
        respond_now = busy if number == 4 else embeddings(lambda _: 16 if number < 6 else 8)
        respond_now(handler, request)

    with serving(respond) as server:
        assert command(*run_words("dense", server))[0] == 0  # the last query failed
        code, _, err = command(*run_words("dense", server))
    assert (code, "8 dimensions" in err) == (2, True)
    assert karat.Run.read("run.jsonl").query_ids.to_list() == ["q1", "q2"]


def test_stored_vectors_of_a_changed_model_are_built_again():
    with serving(changing_after(2)) as server:
        options = {"embedder": url(server), "embedding_model": "m"}
        Dense(FAQ, **options)
        with pytest.warns(karat.KaratWarning, match="other vectors"):
            retriever = Dense(FAQ, **options)
        assert retriever.search("refund")
        Dense(FAQ, **options)  # without a warning


def test_failing_query_of_an_endpoint_is_tried_again_by_the_run(monkeypatch):
    monkeypatch.setattr("karat.live.runner.FIRST_DELAY", 0.01)
    answer = embeddings()
    numbers = iter(range(100))

    def respond(handler, request):
        if next(numbers) == 2:
            send(handler, b"busy", 503)
        else:
            answer(handler, request)

    with serving(respond) as server:
        retriever = Dense(FAQ, embedder=url(server), embedding_model="m", cache=False)
        run = karat.retrieve(retriever, {"q1": "refund"})
    assert run.failed == 0
    assert run.attempts["attempts"].to_list() == [2]


def test_endpoint_is_reached_through_a_proxy(monkeypatch):
    with serving(embeddings()) as server:
        monkeypatch.setattr("karat.live.retrievers.endpoint.find_proxy", lambda _: server.url)
        retriever = Dense(FAQ, embedder="http://nowhere.invalid/v1", embedding_model="m")
        assert retriever.search("refund")
    assert {headers["Host"] for headers in server.headers} == {"nowhere.invalid"}


def test_connection_that_the_server_closed_is_opened_again():
    answer = embeddings()

    def respond(handler, request):
        answer(handler, request)
        handler.close_connection = True

    with serving(respond) as server:
        retriever = Dense(FAQ, embedder=url(server), embedding_model="m", cache=False)
        assert [bool(retriever.search(query)) for query in QUERIES.values()] == [True] * 3
    assert len(server.connections) == 5


def test_vectors_of_a_function_without_a_name_are_not_stored():
    Dense(FAQ, embedder=letters)
    assert cached_entries() == []


@pytest.mark.parametrize(
    "embedder",
    [
        lambda texts: [[1.0]],
        lambda texts: [[float("nan")] for _ in texts],
        lambda texts: [[1.0] * (n + 1) for n, _ in enumerate(texts)],
        lambda texts: np.ones(len(texts)),
        lambda texts: 1 / 0,
        7,
        "karat_nowhere:embed",
    ],
)
def test_embedder_that_returns_something_else_is_an_error(embedder):
    with pytest.raises(InputError) as caught:
        Dense(FAQ, embedder=embedder)
    assert caught.value.field == "embedder"
