"""`karat run` asks a retriever, says how it went, and ends as its answer says."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import karat
from karat.live.request import Request

GOLD = """\
{"query_id":"q1","query":"how long does a refund take","kind":"billing","relevant":["a"]}
{"query_id":"q2","query":"track a parcel","kind":"shipping","relevant":["b"]}
{"query_id":"q3","query":"pay by invoice","kind":"billing","relevant":["c"]}
"""
MODULE = """
import os

def search(query, top_k, score_threshold=None, rerank_top_n=None):
    return [("a", 0.9), ("b", 0.5), ("c", 0.1)][:top_k]

def plain(query):
    return ["a", "b", "c"]

def texts(query):
    return [{"id": "a", "text": "one two three"}, {"id": "b", "text": "four"}]

def talking(query):
    print("looking for", query)
    return ["a"]

def leaving(query):
    raise SystemExit(3)

def failing(query):
    if os.path.exists("broken") and "parcel" in query:
        raise RuntimeError("no index")
    return ["a"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gold.jsonl").write_text(GOLD)
    # A module of its own for each test: Python remembers what it has imported.
    name = f"searching_{tmp_path.name.replace('-', '_')}"
    Path(f"{name}.py").write_text(MODULE)
    for variable in ("RAG_TOP_K", "RAG_SCORE_THRESHOLD", "HYBRID_PREFETCH_LIMIT", "RERANK_TOP_N"):
        monkeypatch.delenv(variable, raising=False)
    return name


@pytest.fixture
def run(command, folder):
    def run(function, *words, code=0):
        ended, out, err = command("run", "gold.jsonl", "-r", f"{folder}:{function}", *words)
        assert ended == code, err
        return SimpleNamespace(out=out, err=err)

    return run


def lines(path="run.jsonl"):
    header, *rest = map(json.loads, Path(path).read_text().splitlines())
    return header, {line["query_id"]: line for line in rest}


def test_every_query_is_asked_and_the_run_can_be_scored(run, command):
    run("search", "-o", "run.jsonl")
    _, found = lines()
    assert sorted(found) == ["q1", "q2", "q3"]
    assert found["q1"]["results"][0] == {"id": "a", "score": 0.9}
    assert found["q1"]["latency_ms"]["total"] > 0
    assert command("eval", "gold.jsonl", "run.jsonl", "-m", "R@3,latency.p50")[0] == 0


def test_the_header_says_how_the_run_was_made(run, folder):
    run("search", "-o", "run.jsonl", "--top-k", "2", "--rerank-top-n", "7", "-j", "3")
    header, found = lines()
    settings = header["settings"]
    assert header["name"] == "run"
    assert settings["retriever"] == f"{folder}:search"
    assert settings["top_k"] == 2
    assert settings["prefetch_limit"] == 100
    assert settings["rerank_top_n"] == 7
    assert settings["handed"] == ["rerank_top_n", "top_k"]
    assert settings["jobs"] == 3
    assert settings["queries"]["count"] == 3
    assert len(found["q1"]["results"]) == 2


def test_settings_come_from_the_environment_and_options_go_first(run, monkeypatch):
    monkeypatch.setenv("RAG_TOP_K", "1")
    monkeypatch.setenv("RAG_SCORE_THRESHOLD", "0.4")
    monkeypatch.setenv("HYBRID_PREFETCH_LIMIT", "50")
    monkeypatch.setenv("RERANK_TOP_N", "10")
    run("search", "-o", "run.jsonl")
    run("search", "-o", "two.jsonl", "--top-k", "2")
    settings = lines()[0]["settings"]
    names = ("top_k", "score_threshold", "prefetch_limit", "rerank_top_n")
    assert [settings[name] for name in names] == [1, 0.4, 50, 10]
    assert lines("two.jsonl")[0]["settings"]["top_k"] == 2


def test_a_setting_that_the_retriever_does_not_take_is_said(run):
    result = run("plain", "-o", "run.jsonl", "--prefetch-limit", "50")
    assert "takes no prefetch_limit" in result.err


def test_a_wrong_variable_is_named(run, monkeypatch):
    monkeypatch.setenv("RAG_TOP_K", "many")
    assert "RAG_TOP_K" in run("search", "-o", "run.jsonl", code=2).err
    assert not Path("run.jsonl").exists()


def test_filter_sample_and_limit_choose_queries(run):
    run("plain", "-o", "run.jsonl", "--filter", "kind=billing")
    assert set(lines()[1]) == {"q1", "q3"}
    run("plain", "-o", "one.jsonl", "--limit", "1")
    assert set(lines("one.jsonl")[1]) == {"q1"}
    run("plain", "-o", "two.jsonl", "--sample", "2", "--seed", "3")
    assert len(lines("two.jsonl")[1]) == 2


def test_too_many_failures_end_with_1_and_are_asked_again(run):
    Path("broken").touch()
    result = run("failing", "-o", "run.jsonl", "--retries", "0", code=1)
    assert "1 of 3 queries failed (1 RuntimeError)" in result.err
    assert "--retry-errors" in result.err
    error = lines()[1]["q2"]["error"]
    assert error == {"type": "RuntimeError", "message": "no index"}
    run("failing", "-o", "run.jsonl", "--retries", "0", "--fail-on-error", "0.5")
    Path("broken").unlink()
    run("failing", "-o", "run.jsonl", "--retries", "0", "--retry-errors")
    assert "error" not in lines()[1]["q2"]
    assert len(lines()[1]) == 3


def test_other_settings_stop_before_anything_is_asked(run):
    run("search", "-o", "run.jsonl")
    before = Path("run.jsonl").read_bytes()
    result = run("search", "-o", "run.jsonl", "--top-k", "1", code=2)
    assert "top_k" in result.err
    assert "--no-resume" in result.err
    assert Path("run.jsonl").read_bytes() == before
    run("search", "-o", "run.jsonl", "--top-k", "1", "--no-resume")
    assert len(lines()[1]["q1"]["results"]) == 1


def test_a_complete_run_is_asked_nothing_more(run):
    run("search", "-o", "run.jsonl")
    before = Path("run.jsonl").read_bytes()
    result = run("search", "-o", "run.jsonl")
    assert "3 queries of 3 answered before" in result.err
    assert Path("run.jsonl").read_bytes() == before


def test_progress_is_plain_lines_where_there_is_no_terminal(run):
    assert "3 of 3 queries" in run("search", "-o", "run.jsonl").err
    assert "3 of 3 queries" not in run("search", "-o", "quiet.jsonl", "--no-progress").err


def test_a_dry_run_writes_nothing(run):
    result = run("search", "--dry-run", "-o", "run.jsonl")
    assert not Path("run.jsonl").exists()
    assert "3 queries" in result.out
    told = json.loads(run("search", "--dry-run", "--json").out)
    assert told["queries"] == 3


def test_a_dry_run_asks_a_few_queries_once():
    asked = []
    texts = {f"q{number}": str(number) for number in range(50)}
    request = Request.of(lambda query: asked.append(query) or [], texts, repeat=7, warmup=30)
    assert len(request.tried()) == len(asked) == len(set(asked)) == 5


def test_prices_are_read_before_the_first_question():
    code = """
import sys, karat

def search(query):
    return [str("genai_prices" in sys.modules)]

print(karat.retrieve(search, {"q": "text"}).results["item_id"].to_list())
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "['True']\n"


def test_the_summary_is_printed_as_json(run):
    told = json.loads(run("search", "-o", "run.jsonl", "--json").out)
    assert told["run"]["queries"] == 3
    assert told["latency"]["stages"]["total"]["n"] == 3


def test_tokens_of_texts_are_counted(run, command, folder):
    Path("counting.py").write_text("words = str.split\ndef letter(text): return 'x'\nzero = 0")
    run("texts", "-o", "run.jsonl", "--tokenizer", "counting:words")
    header, found = lines()
    assert [each["tokens"] for each in found["q1"]["results"]] == [3, 1]
    assert header["settings"]["tokenizer"] == "counting:words"
    _, out, _ = command("eval", "gold.jsonl", "run.jsonl", "-m", "context.tokens@2", "--json")
    assert json.loads(out)["runs"][0]["measures"]["context.tokens@2"]["value"] == 4.0
    bad = run("texts", "-o", "bad.jsonl", "--tokenizer", "counting:letter", code=1)
    assert "the tokenizer returned a str" in bad.err
    assert (
        "tokenizer: " in run("texts", "-o", "no.jsonl", "--tokenizer", "counting:zero", code=2).err
    )


def test_the_next_command_scores_the_run(run):
    assert "next: karat eval gold.jsonl run.jsonl" in run("search", "-o", "run.jsonl").err


def test_the_next_command_scores_what_was_asked_of_a_part(run, command):
    err = run("search", "-o", "run.jsonl", "--limit", "1").err
    assert "next: karat eval gold.jsonl run.jsonl --missing skip" in err
    ended, out, _ = command("eval", "gold.jsonl", "run.jsonl", "--missing", "skip", "-m", "R@3")
    assert ended == 0
    assert out.splitlines()[1].split()[-1] == "1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.tsv", "q1\tpay by card\n"),
        ("q.jsonl", '{"query_id": "q1", "query": "pay by card"}\n'),
        ("q.json", '{"q1": "pay by card"}'),
    ],
)
def test_queries_with_nothing_that_is_right_are_not_said_to_be_scored(command, folder, name, text):
    Path(name).write_text(text)
    ended, _, err = command("run", name, "-r", f"{folder}:plain", "-o", "run.jsonl")
    assert ended == 0, err
    assert "next:" not in err


def test_the_queries_are_never_written_over(run):
    Path("link.jsonl").symlink_to("gold.jsonl")
    for name in ("gold.jsonl", "link.jsonl"):
        assert "the file of the queries" in run("search", "-o", name, "--no-resume", code=2).err
    assert Path("gold.jsonl").read_text() == GOLD


def test_what_a_retriever_prints_is_not_in_the_answer(run):
    result = run("talking", "-o", "run.jsonl", "--json")
    assert json.loads(result.out)["run"]["queries"] == 3
    assert "looking for pay by invoice" in result.err
    assert json.loads(run("talking", "--dry-run", "--json").out)["queries"] == 3


def test_a_retriever_that_ends_python_is_named(run, folder):
    err = run("leaving", "-o", "run.jsonl", code=3).err
    assert f"SystemExit: {folder}:leaving ended it\n" in err
    assert "0 of 3 queries are in run.jsonl; the same command goes on" in err


def test_a_dry_run_says_why_queries_failed(run):
    Path("broken").touch()
    result = run("failing", "--dry-run", "--retries", "0", code=1)
    assert "1 of 3 queries failed (1 RuntimeError), more than the 5% that may fail" in result.err
    assert "such as q2: RuntimeError: no index" in result.err
    run("failing", "--dry-run", "--retries", "0", "--fail-on-error", "0.5")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "-o run.jsonl"),
        (["-o", "run.csv"], ".jsonl"),
        (["-o", "nowhere/run.jsonl"], "does not exist"),
        (["-o", "run.jsonl", "-j", "0"], "jobs"),
        (["-o", "run.jsonl", "--rate", "-1"], "rate"),
        (["-o", "run.jsonl", "--fail-on-error", "7"], "fail"),
        (["-o", "run.jsonl", "--header", "secret"], "no colon"),
        (["-o", "run.jsonl", "--body", "[1]"], "no JSON object"),
        (["-o", "run.jsonl", "--body", "{"], "no JSON"),
        (["-o", "run.jsonl", "--offsets", "bytes"], "utf16"),
        (["-o", "run.jsonl", "--filter", "color=red"], "color"),
        (["-o", "run.jsonl", "--field", "identifier=_id"], "identifier"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(run, words, said):
    result = run("search", *words, code=2)
    assert said in result.err
    assert not Path("run.jsonl").exists()


def test_a_function_is_evaluated_as_deep_as_the_measures_look():
    depths = []

    def search(query, top_k):
        depths.append(top_k)
        return ["a"]

    gold = karat.Gold.of([{"query_id": "q", "query": "refund", "relevant": ["a"]}])
    assert karat.evaluate(gold, search, ["R@5"])["R@5"] == 1.0
    karat.evaluate(gold, search, ["R@50"])
    karat.evaluate(gold, search, ["R@50"], top_k=7)
    assert depths == [20, 50, 7]


def test_queries_that_failed_are_not_scored_in_silence():
    gold = karat.Gold.of([{"query_id": "q1", "query": "x", "relevant": ["a"]}])
    with pytest.warns(karat.KaratWarning) as told:
        scores = karat.evaluate(gold, lambda _: None, "RR")
    assert scores["RR"] == 0
    assert str(told[0].message) == (
        "1 of 1 query failed (1 BadAnswer), scored as nothing retrieved\n"
        "  such as q1: BadAnswer: nothing was returned; did the function forget its return?"
    )
    assert told[0].filename == __file__


def test_retrievers_are_compared_like_runs():
    gold = {"q": ["a"]}
    with pytest.raises(karat.InputError, match="text"):
        karat.evaluate(gold, lambda query: ["a"])  # there is no text to ask
    gold = karat.Gold.of([{"query_id": "q", "query": "refund", "relevant": ["a"]}])
    found = karat.compare(gold, {"one": lambda query: ["a"], "two": lambda query: ["b"]}, ["RR"])
    assert [scores["RR"] for scores in found.scores] == [1.0, 0.0]


def test_too_many_failures_are_an_error_in_python():
    def search(query):
        raise OSError("gone")

    with pytest.raises(karat.RetrieverError, match=r"1 of 1 query failed \(1 OSError\)"):
        karat.retrieve(search, {"q": "text"}, retries=0, fail_on_error=0.5)
    assert karat.retrieve(search, {"q": "text"}, retries=0).failed == 1


def test_as_many_failures_as_may_be_are_not_too_many():
    def search(query):
        if int(query) < 29:
            raise OSError("gone")
        return []

    texts = {f"q{number}": str(number) for number in range(100)}
    assert karat.retrieve(search, texts, retries=0, fail_on_error=0.29).failed == 29
    with pytest.raises(karat.RetrieverError, match="29 of 100 queries"):
        karat.retrieve(search, texts, retries=0, fail_on_error=0.28)


def test_a_run_is_in_the_order_of_its_questions_whoever_answers_first():
    second_is_done = threading.Event()

    def search(query):
        if query == "first":
            second_is_done.wait(30)
        return [query]

    class Watch:
        def begun(self, total, done, failed):
            pass

        def finished(self, line):
            second_is_done.set()

    run = karat.retrieve(search, {"q1": "first", "q2": "second"}, jobs=2, watch=Watch())
    assert run.query_ids.to_list() == ["q1", "q2"]
    assert run.results["item_id"].to_list() == ["first", "second"]
