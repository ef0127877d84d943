"""Reranking: order, scores, candidates, threshold, stages, for every kind of retriever."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data.formats.native_run import ResultRow
from karat.live.reranker import rerank
from karat.live.retrievers import BM25
from support.live_server import saying, serving
from support.retrieval import FAQ, QUERIES

RESULTS = [{"id": f"d{n}", "score": 9.0 - n, "text": "x" * n} for n in range(6)]
QUERY = {"q1": "question"}


def by_length(query, texts):
    return [len(text) for text in texts]


def search(query, top_k):
    return RESULTS[:top_k]


def ids(run):
    return run.results["item_id"].to_list()


@given(st.lists(st.integers(0, 3)), st.integers(1, 8))
def test_first_items_are_sorted_and_the_rest_keeps_its_order(scores, count):
    rows = [ResultRow(id=str(n), score=0.5, text=str(n)) for n in range(len(scores))]
    reranked = rerank(lambda _, texts: [scores[int(t)] for t in texts], "q", rows, count)
    first = sorted(range(len(scores[:count])), key=lambda n: (-scores[n], n))
    assert [int(row.id) for row in reranked] == [*first, *range(count, len(scores))]
    assert [row.score for row in reranked[:count]] == [scores[n] for n in first]
    assert all(row.score is None for row in reranked[count:])


def test_reranker_gets_more_items_than_the_run_keeps():
    asked = []

    def recording(query, top_k):
        asked.append(top_k)
        return RESULTS[:top_k]

    run = karat.retrieve(recording, QUERY, top_k=2, rerank_top_n=5, reranker=by_length)
    assert asked == [5]
    assert ids(run) == ["d4", "d3"]


def test_items_behind_the_reranked_ones_follow_without_a_score():
    run = karat.retrieve(search, QUERY, rerank_top_n=2, reranker=by_length)
    assert ids(run) == ["d1", "d0", "d2", "d3", "d4", "d5"]
    assert run.results["score"].to_list() == [1, 0, None, None, None, None]


def test_threshold_applies_to_the_scores_of_the_reranker():
    run = karat.retrieve(search, QUERY, rerank_top_n=4, reranker=by_length, score_threshold=2)
    assert ids(run) == ["d3", "d2"]


def test_candidates_are_written_in_the_form_of_results(tmp_path):
    output = tmp_path / "run.jsonl"
    karat.retrieve(search, QUERY, top_k=2, rerank_top_n=3, reranker=by_length, output=output)
    line = json.loads(output.read_text().splitlines()[1])
    assert line["candidates"] == RESULTS[:3]
    assert [result["id"] for result in line["results"]] == ["d2", "d1"]
    assert {"total", "rerank"} <= line["latency_ms"].keys()


def test_candidates_that_a_retriever_returns_are_written(tmp_path):
    output = tmp_path / "run.jsonl"
    answer = {"results": [{"id": "b"}], "candidates": ["a", {"id": "b", "score": 1}]}
    karat.retrieve(lambda query: answer, QUERY, output=output)
    line = json.loads(output.read_text().splitlines()[1])
    assert line["candidates"] == [{"id": "a"}, {"id": "b", "score": 1.0}]


def test_runs_without_reranker_have_no_candidates(tmp_path):
    output = tmp_path / "run.jsonl"
    karat.retrieve(search, QUERY, output=output)
    assert "candidates" not in json.loads(output.read_text().splitlines()[1])


def test_http_and_async_retrievers_are_reranked():
    async def search_later(query, top_k):
        return RESULTS[:top_k]

    expected = ["d5", "d4", "d3", "d2", "d1", "d0"]
    assert ids(karat.retrieve(search_later, QUERY, reranker=by_length)) == expected
    with serving(saying({"results": RESULTS})) as server:
        assert ids(karat.retrieve(server.url, QUERY, reranker=by_length)) == expected
        assert server.requests == [{"query": "question", "top_k": 20}]


def test_commands_are_reranked(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    query_id = json.loads(line)['query_id']\n"
        f"    print(json.dumps({{'query_id': query_id, 'results': {RESULTS!r}}}), flush=True)\n"
    )
    run = karat.retrieve(f"cmd:python3 {program}", QUERY, reranker=by_length)
    assert ids(run) == ["d5", "d4", "d3", "d2", "d1", "d0"]
    times = dict(run.timings.select("stage", "ms").rows())
    assert times["total"] >= times["rerank"]


def test_built_in_retriever_is_reranked_on_the_command_line(tmp_path, command, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "by_size.py").write_text(
        "def shortest(query, texts): return [-len(t) for t in texts]"
    )
    rows = [{"doc_id": name, "text": text} for name, text in FAQ.items()]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "q.tsv").write_text("q1\tdays\n")
    words = ["--reranker", "by_size:shortest", "--rerank-top-n", "3", "--top-k", "1"]
    code, _, err = command("run", "q.tsv", "-r", "bm25:docs.jsonl", "-o", "run.jsonl", *words)
    assert code == 0, err
    run = karat.Run.read("run.jsonl")
    assert ids(run) == ["refund"]
    assert run.settings["reranker"] == "by_size:shortest"


def test_server_reranks(monkeypatch):
    monkeypatch.setenv("TEST_KEY", "secret-key-3")
    answer = {"results": [{"index": n, "relevance_score": n / 10} for n in (2, 0, 1)]}
    with serving(saying(answer)) as server:
        options = {"reranker": server.url, "reranker_model": "m", "reranker_key_env": "TEST_KEY"}
        run = karat.retrieve(search, QUERY, top_k=2, rerank_top_n=3, **options)
        assert ids(run) == ["d2", "d1"]
        texts = [result["text"] for result in RESULTS[:3]]
        assert server.requests == [{"model": "m", "query": "question", "documents": texts}]
        assert server.headers[0]["Authorization"] == "Bearer secret-key-3"
    assert run.settings["reranker_model"] == "m"
    assert "secret-key-3" not in json.dumps(run.settings)


def test_server_that_fails_once_is_tried_again(monkeypatch):
    monkeypatch.setattr("karat.live.runner.FIRST_DELAY", 0.01)
    statuses = iter([503])
    answer = {"results": [{"index": n, "relevance_score": n} for n in range(6)]}

    def respond(handler, request):
        saying(answer, next(statuses, 200))(handler, request)

    with serving(respond) as server:
        run = karat.retrieve(search, QUERY, reranker=server.url)
    assert ids(run)[0] == "d5"
    assert run.attempts["attempts"].to_list() == [2]


@pytest.mark.parametrize("answer", [{"results": []}, {"results": [{"index": "x"}]}, [1]])
def test_server_that_returns_something_else_fails_the_query(answer):
    with serving(saying(answer)) as server:
        run = karat.retrieve(search, QUERY, reranker=server.url, fail_on_error=1)
    assert run.errors["type"].to_list() == ["BadAnswer"]


def test_class_is_created_once():
    class Model:
        def __init__(self):
            self.calls = 0

        def __call__(self, query, texts):
            self.calls += 1
            return [self.calls] * len(texts)

    run = karat.retrieve(BM25(FAQ, cache=False), QUERIES, reranker=Model, jobs=1)
    assert set(run.results["score"]) == {1, 2, 3}


@pytest.mark.parametrize(
    "reranker",
    [
        lambda query, texts: [1.0],
        lambda query, texts: [float("nan")] * len(texts),
        lambda query, texts: None,
        lambda query, texts: ["x"] * len(texts),
    ],
)
def test_reranker_that_returns_something_else_fails_the_query(reranker):
    run = karat.retrieve(search, QUERY, reranker=reranker, fail_on_error=1)
    assert run.errors["type"].to_list() == ["BadAnswer"]
    assert run.errors["attempts"].to_list() == [1]


def test_reranker_needs_texts():
    run = karat.retrieve(lambda query: ["a"], QUERY, reranker=by_length, fail_on_error=1)
    assert "has no text" in run.errors["message"][0]


def test_object_that_is_not_a_reranker_is_an_error():
    with pytest.raises(karat.InputError) as caught:
        karat.retrieve(search, QUERY, reranker=7)
    assert caught.value.field == "reranker"
