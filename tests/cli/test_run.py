"""`karat run`: the run it writes, its messages and its exit codes."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import karat
from karat.live import prices
from karat.live.retrieve import RunRequest
from karat.live.run_options import RunOptions
from support.errors import refused
from support.live_server import saying, serving

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
    # Each test needs another module name, since Python keeps imported modules.
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


def test_run_has_every_query_and_can_be_scored(run, command):
    run("search", "-o", "run.jsonl")
    _, found = lines()
    assert sorted(found) == ["q1", "q2", "q3"]
    assert found["q1"]["results"][0] == {"id": "a", "score": 0.9}
    assert found["q1"]["latency_ms"]["total"] > 0
    assert command("eval", "gold.jsonl", "run.jsonl", "-m", "R@3,latency.p50")[0] == 0


def test_header_has_the_settings_of_the_run(run, folder):
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


def test_options_take_precedence_over_environment_variables(run, monkeypatch):
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


def test_setting_that_the_retriever_does_not_take_is_a_warning(run, folder):
    result = run("plain", "-o", "run.jsonl", "--prefetch-limit", "50")
    assert re.search(rf"^warning: prefetch_limit .*{folder}:plain ", result.err, re.MULTILINE)


def test_invalid_environment_variable_is_named(run, monkeypatch):
    monkeypatch.setenv("RAG_TOP_K", "many")
    assert "RAG_TOP_K" in run("search", "-o", "run.jsonl", code=2).err
    assert not Path("run.jsonl").exists()


def test_filter_sample_and_limit_select_queries(run):
    run("plain", "-o", "run.jsonl", "--filter", "kind=billing")
    assert set(lines()[1]) == {"q1", "q3"}
    run("plain", "-o", "one.jsonl", "--limit", "1")
    assert set(lines("one.jsonl")[1]) == {"q1"}
    run("plain", "-o", "two.jsonl", "--sample", "2", "--seed", "3")
    assert len(lines("two.jsonl")[1]) == 2


def test_too_many_failures_exit_with_2_and_run_again_with_the_same_command(run):
    Path("broken").touch()
    result = run("failing", "-o", "run.jsonl", "--retries", "0", code=2)
    assert re.search(r"^error: 1 of 3\b.*\b1 RuntimeError\b.*\b5%", result.err, re.MULTILINE)
    assert "  hint: " in result.err
    error = lines()[1]["q2"]["error"]
    assert error == {"type": "RuntimeError", "message": "no index"}
    run("failing", "-o", "run.jsonl", "--retries", "0", "--fail-on-error", "0.5")
    Path("broken").unlink()
    run("failing", "-o", "run.jsonl", "--retries", "0")
    assert "error" not in lines()[1]["q2"]
    assert len(lines()[1]) == 3


def test_changed_settings_are_refused_unless_the_run_is_overwritten(run):
    run("search", "-o", "run.jsonl")
    # Without its last query the run is unfinished.
    before = b"".join(Path("run.jsonl").read_bytes().splitlines(keepends=True)[:-1])
    Path("run.jsonl").write_bytes(before)
    result = run("search", "-o", "run.jsonl", "--top-k", "1", code=2)
    assert result.out == ""
    assert re.search(r"^error: .*run\.jsonl: .*top_k 20 → 1\n  hint: ", result.err)
    assert Path("run.jsonl").read_bytes() == before
    run("search", "-o", "run.jsonl", "--top-k", "1", "--overwrite")
    assert len(lines()[1]["q1"]["results"]) == 1


def test_complete_run_is_left_unchanged_unless_it_is_overwritten(run):
    assert "looking for" in run("talking", "-o", "run.jsonl").err
    before = Path("run.jsonl").read_bytes()
    result = run("talking", "-o", "run.jsonl", code=2)
    assert result.out == ""
    assert "looking for" not in result.err
    assert Path("run.jsonl").read_bytes() == before
    assert "looking for" in run("talking", "-o", "run.jsonl", "--overwrite").err


def test_progress_is_plain_lines_without_a_terminal(run):
    assert "3 of 3 queries" in run("search", "-o", "run.jsonl").err
    assert "3 of 3 queries" not in run("search", "-o", "quiet.jsonl", "--no-progress").err


def test_dry_run_writes_nothing(run):
    result = run("search", "--dry-run", "-o", "run.jsonl")
    assert not Path("run.jsonl").exists()
    assert "3 queries" in result.out
    assert json.loads(run("search", "--dry-run", "--json").out)["queries"] == 3


def test_dry_run_asks_a_few_queries_once():
    queries = []
    texts = {f"q{number}": str(number) for number in range(50)}
    options = RunOptions(repeat=7, warmup=30)
    request = RunRequest.of(lambda query: queries.append(query) or [], texts, options)
    assert len(request.run_first_queries()) == len(queries) == len(set(queries)) == 5


def test_prices_are_loaded_before_the_first_query():
    prices._model.cache_clear()
    run = karat.retrieve(lambda _: [str(prices._model.cache_info().misses)], {"q": "text"})
    assert run.results["item_id"].to_list() == ["1"]


def test_summary_is_printed_as_json(run):
    summary = json.loads(run("search", "-o", "run.jsonl", "--json").out)
    assert summary["run"]["queries"] == 3
    assert summary["latency"]["stages"]["total"]["n"] == 3


def test_tokens_of_texts_are_counted(run, command, folder):
    Path("counting.py").write_text("words = str.split\n")
    run("texts", "-o", "run.jsonl", "--tokenizer", "counting:words")
    header, found = lines()
    assert [result["tokens"] for result in found["q1"]["results"]] == [3, 1]
    assert header["settings"]["tokenizer"] == "counting:words"
    _, out, _ = command("eval", "gold.jsonl", "run.jsonl", "-m", "context.tokens@2", "--json")
    assert json.loads(out)["runs"][0]["measures"]["context.tokens@2"]["value"] == 4.0


def test_invalid_tokenizer_is_refused(run):
    Path("failing.py").write_text("def letter(text): return 'x'\nzero = 0")
    run("texts", "-o", "bad.jsonl", "--tokenizer", "failing:letter", code=2)
    errors = [line["error"] for line in lines("bad.jsonl")[1].values()]
    assert [error["type"] for error in errors] == ["BadAnswer"] * 3
    assert "str" in errors[0]["message"]
    result = run("texts", "-o", "no.jsonl", "--tokenizer", "failing:zero", code=2)
    assert (result.out, result.err.startswith("error: tokenizer: ")) == ("", True)


def test_next_command_scores_the_run(run):
    assert "next: karat eval gold.jsonl run.jsonl" in run("search", "-o", "run.jsonl").err


def test_next_command_after_a_part_of_the_queries_skips_the_others(run, command):
    err = run("search", "-o", "run.jsonl", "--limit", "1").err
    assert "next: karat eval gold.jsonl run.jsonl --missing skip" in err
    ended, out, _ = command("eval", "gold.jsonl", "run.jsonl", "--missing", "skip", "-m", "R@3")
    assert ended == 0
    assert out.splitlines()[3].split()[-1] == "1"


EVIDENCE = '{"query_id":"q1","query":"track a parcel","evidence":["one two"]}\n'


def test_ids_without_texts_are_a_warning_if_gold_has_only_evidence(command, folder):
    Path("evidence.jsonl").write_text(EVIDENCE)

    def messages(gold, function):
        words = ("-r", f"{folder}.py:{function}", "-o", f"{gold}-{function}.jsonl")
        ended, _, err = command("run", f"{gold}.jsonl", *words)
        assert ended == 0
        return err

    assert "ids without text" in messages("evidence", "plain")
    assert "next: " not in messages("evidence", "search")
    assert "ids without text" not in messages("evidence", "texts")
    assert "ids without text" not in messages("gold", "plain")


def test_error_for_missing_texts_names_functions_that_return_texts():
    gold = karat.Gold.of(evidence={"q": ["one two"]})
    run = [{"query_id": "q", "results": ["a"]}]
    with refused() as error:
        karat.evaluate(gold, run, "evidence.recall@3")
    assert error.value.field.endswith("text")
    assert "return {'text': text}" in error.value.hint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.tsv", "q1\tpay by card\n"),
        ("q.jsonl", '{"query_id": "q1", "query": "pay by card"}\n'),
        ("q.json", '{"q1": "pay by card"}'),
    ],
)
def test_no_next_command_for_queries_without_judgments(command, folder, name, text):
    Path(name).write_text(text)
    ended, _, err = command("run", name, "-r", f"{folder}:plain", "-o", "run.jsonl")
    assert ended == 0, err
    assert "next:" not in err


def test_queries_are_never_overwritten(run):
    Path("link.jsonl").symlink_to("gold.jsonl")
    for name in ("gold.jsonl", "link.jsonl"):
        result = run("search", "-o", name, "--overwrite", code=2)
        assert (result.out, result.err.startswith(f"error: {name}: ")) == ("", True)
    assert Path("gold.jsonl").read_text() == GOLD


def test_output_of_a_retriever_goes_to_stderr(run):
    result = run("talking", "-o", "run.jsonl", "--json")
    assert json.loads(result.out)["run"]["queries"] == 3
    assert "looking for pay by invoice" in result.err
    assert json.loads(run("talking", "--dry-run", "--json").out)["queries"] == 3


def test_retriever_that_ends_python_is_named(run, folder):
    err = run("leaving", "-o", "run.jsonl", code=3).err
    assert f"SystemExit: raised by {folder}:leaving" in err
    assert re.search(r"\b0 of 3\b.* run\.jsonl\b", err)


def test_dry_run_reports_failed_queries(run):
    Path("broken").touch()
    result = run("failing", "--dry-run", "--retries", "0", code=2)
    assert re.search(r"\b1 of 3\b.*\b1 RuntimeError\b.*\b5%", result.err)
    assert "q2: RuntimeError: no index" in result.err
    run("failing", "--dry-run", "--retries", "0", "--fail-on-error", "0.5")


@pytest.mark.parametrize(
    ("words", "place", "value"),
    [
        ([], "--output", ""),
        (["-o", "run.csv"], "run.csv", "'.csv'"),
        (["-o", "nowhere/run.jsonl"], "nowhere/run.jsonl", ""),
        (["-o", "run.jsonl", "-j", "0"], "jobs", "0"),
        (["-o", "run.jsonl", "--rate", "-1"], "rate", "-1"),
        (["-o", "run.jsonl", "--fail-on-error", "7"], "fail_on_error", "7"),
        (["-o", "run.jsonl", "--header", "secret"], "--header", " 1 "),
        (["-o", "run.jsonl", "--body", "[1]"], "--body", ""),
        (["-o", "run.jsonl", "--body", ""], "--body", "not JSON"),
        (["-o", "run.jsonl", "--body", "{"], "--body", "line 1 column 2"),
        (["-o", "run.jsonl", "--body", '{"a":' + "9" * 5000 + "}"], "--body", "digits"),
        (["-o", "run.jsonl", "--body", '{"a":' + "[" * 10**5], "--body", "nested"),
        (["-o", "run.jsonl", "--method", "GET"], "method", "HTTP"),
        (["-o", "run.jsonl", "--stop-after-failures", "-1"], "stop_after_failures", "-1"),
        (["-o", "run.jsonl", "--header-file", "absent.txt"], "absent.txt: --header-file", ""),
        (["-o", "run.jsonl", "--offsets", "bytes"], "offsets", "'bytes'"),
        (["-o", "run.jsonl", "--filter", "color=red"], "filter", "'color'"),
        (["-o", "run.jsonl", "--field", "identifier=_id"], "field identifier=_id", "'identifier'"),
    ],
)
def test_invalid_option_is_refused_before_anything_is_asked(run, words, place, value):
    result = run("search", *words, code=2)
    assert result.out == ""
    assert result.err.startswith(f"error: {place}: ")
    assert value in result.err.removeprefix(f"error: {place}: ")
    assert "secret" not in result.err
    assert not Path("run.jsonl").exists()


# Retrievers behind HTTP


def protected(handler, request):
    """Answer those who send two headers, by GET with a parameter `q`."""
    sent = (handler.headers["Authorization"], handler.headers["X-Tenant"])
    if handler.command != "GET":
        saying({"detail": "Method Not Allowed"}, 405)(handler, request)
    elif sent != ("Bearer t0ken-of-file", "t0ken-of-variable"):
        saying(f"wrong: {sent}".encode(), 401)(handler, request)
    else:
        saying([request["q"]])(handler, request)


HEADERS = """\
# the token of the test server

Authorization: Bearer t0ken-of-file
"""


def test_get_with_headers_of_a_file_and_a_variable(command, folder, monkeypatch):
    monkeypatch.setenv("MY_TENANT", "t0ken-of-variable")
    Path("headers.txt").write_text(HEADERS)
    words = ["--method", "GET", "--field", "query=q", "--header-file", "headers.txt"]
    with serving(protected) as server:
        code, _, err = command(
            *("run", "gold.jsonl", "-r", server.url, "-o", "run.jsonl", *words),
            *("--header", "X-Tenant: env:MY_TENANT"),
        )
    assert code == 0, err
    header, found = lines()
    assert found["q2"]["results"] == [{"id": "track a parcel"}]
    assert header["settings"]["method"] == "GET"
    assert header["settings"]["headers"] == ["Authorization", "X-Tenant"]
    assert "t0ken" not in Path("run.jsonl").read_text()


def test_header_values_are_not_in_any_message(command, folder, monkeypatch):
    monkeypatch.setenv("MY_TENANT", "another-t0ken")
    Path("headers.txt").write_text(HEADERS)
    words = ["--method", "GET", "--field", "query=q", "--header-file", "headers.txt"]
    with serving(protected) as server:
        code, out, err = command(
            *("run", "gold.jsonl", "-r", server.url, "-o", "run.jsonl", *words),
            *("--header", "X-Tenant: env:MY_TENANT"),
        )
    assert code == 2
    assert "wrong: " in err
    assert "t0ken" not in out + err + Path("run.jsonl").read_text()


@pytest.mark.parametrize(
    ("content", "line"),
    [("A: 1\nt0ken\n", 2), ("# c\n: t0ken\n", 2), ("A: 1\na: t0ken\n", 2), ("\xff", None)],
)
def test_invalid_header_file_is_refused_without_its_values(command, folder, content, line):
    Path("headers.txt").write_bytes(content.encode("latin-1"))
    code, _, err = command(
        *("run", "gold.jsonl", "-r", "http://127.0.0.1:1/", "-o", "run.jsonl"),
        *("--header-file", "headers.txt"),
    )
    assert code == 2
    place = "headers.txt" if line is None else f"headers.txt:{line}"
    assert err.startswith(f"error: {place}: --header-file: ")
    assert "t0ken" not in err


def test_header_that_is_given_twice_is_refused(command, folder):
    Path("headers.txt").write_text(HEADERS)
    code, _, err = command(
        *("run", "gold.jsonl", "-r", "http://127.0.0.1:1/", "-o", "run.jsonl"),
        *("--header-file", "headers.txt", "--header", "authorization: t0ken"),
    )
    assert code == 2
    assert err.startswith("error: headers.txt:3: --header-file: ")
    assert "t0ken" not in err


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_body_with_a_number_that_is_not_json_is_refused(command, folder, number):
    code, _, err = command(
        *("run", "gold.jsonl", "-r", "http://127.0.0.1:1/", "-o", "run.jsonl"),
        *("--body", f'{{"a": [{number}]}}'),
    )
    assert code == 2
    assert err.startswith("error: body: ")
    assert not Path("run.jsonl").exists()


def test_key_after_a_semicolon_is_not_in_the_run(command, folder):
    with serving(saying(["a"])) as server:
        address = f"{server.url}?index=faq;api_key=K3Y-1;part=K3Y-2&lang=de"
        code, _, err = command("run", "gold.jsonl", "-r", address, "-o", "run.jsonl")
    assert code == 0, err
    header, _ = lines()
    assert header["settings"]["retriever"] == f"{server.url}?index=faq;api_key=***&lang=de"
    assert "K3Y" not in Path("run.jsonl").read_text() + err


def test_repeated_failures_stop_the_command_with_the_reason_and_a_hint(command, folder):
    queries = [{"query_id": f"q{n:02}", "query": f"query {n}"} for n in range(60)]
    Path("gold.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    words = ["-o", "run.jsonl", "-j", "1", "--no-progress"]
    with serving(protected) as server:
        code, _, err = command("run", "gold.jsonl", "-r", server.url, *words)
        assert code == 2
        assert err.startswith('error: HTTP 405: {"detail": "Method Not Allowed"}\n')
        assert "10 failures" in err
        assert "--method GET" in err
        assert len(lines()[1]) == len(server.requests) == 10
        command("run", "gold.jsonl", "-r", server.url, *words, "--stop-after-failures", "3")
        assert len(lines()[1]) == 3
        command("run", "gold.jsonl", "-r", server.url, *words, "--stop-after-failures", "0")
        assert len(lines()[1]) == 60


# Files in the current folder


def test_files_of_the_current_folder_take_the_place_of_no_package(folder):
    for name in ("genai_prices", "aiohttp", "polars", "click"):
        Path(f"{name}.py").write_text("open('imported', 'a').write(__name__)\n")
    source = Path(karat.__file__).parents[1]
    words = ["run", "gold.jsonl", "-r", f"{folder}:plain", "-o", "run.jsonl", "--no-progress"]
    ended = subprocess.run(
        [sys.executable, "-m", "karat", *words],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert len(lines()[1]) == 3
    assert not Path("imported").exists()


def test_function_is_evaluated_as_deep_as_the_measures_need():
    depths = []

    def search(query, top_k):
        depths.append(top_k)
        return ["a"]

    gold = karat.Gold.of([{"query_id": "q", "query": "refund", "relevant": ["a"]}])
    assert karat.evaluate(gold, search, ["R@5"])["R@5"] == 1.0
    karat.evaluate(gold, search, ["R@50"])
    karat.evaluate(gold, search, ["R@50"], top_k=7)
    assert depths == [20, 50, 7]


def test_failed_queries_are_scored_with_a_warning():
    gold = karat.Gold.of([{"query_id": "q1", "query": "x", "relevant": ["a"]}])
    with pytest.warns(karat.KaratWarning, match=r"\b1 of 1\b.*\b1 BadAnswer\b") as caught:
        scores = karat.evaluate(gold, lambda _: None, "RR", fail_on_error=1)
    assert scores["RR"] == 0
    assert "q1: BadAnswer: " in str(caught[0].message)
    assert caught[0].filename == __file__


def test_gold_without_texts_cannot_be_evaluated_with_a_retriever():
    with refused(path=None, line=None, field="query") as caught:
        karat.evaluate({"q9": ["a"]}, lambda query: ["a"])
    assert "q9" in caught.value.problem


def test_retrievers_are_compared_like_runs():
    gold = karat.Gold.of([{"query_id": "q", "query": "refund", "relevant": ["a"]}])
    runs = {"one": lambda query: ["a"], "two": lambda query: ["b"]}
    comparison = karat.compare(gold, runs, ["RR"])
    assert [scores["RR"] for scores in comparison.scores] == [1.0, 0.0]


def test_too_many_failures_raise_an_error_in_python():
    def search(query):
        raise OSError("gone")

    with pytest.raises(karat.RetrieverError, match=r"\b1 of 1\b.*\b1 OSError\b.*\b50%"):
        karat.retrieve(search, {"q": "text"}, retries=0, fail_on_error=0.5)
    with pytest.raises(karat.RetrieverError, match=r"\b1 of 1\b.*\b5%"):
        karat.retrieve(search, {"q": "text"}, retries=0)
    assert karat.retrieve(search, {"q": "text"}, retries=0, fail_on_error=1).failed == 1


def test_share_of_failures_may_equal_the_limit():
    def search(query):
        if int(query) < 29:
            raise OSError("gone")
        return []

    texts = {f"q{number}": str(number) for number in range(100)}
    options = {"retries": 0, "stop_after_failures": 0}
    assert karat.retrieve(search, texts, fail_on_error=0.29, **options).failed == 29
    with pytest.raises(karat.RetrieverError, match=r"\b29 of 100\b.*\b28%"):
        karat.retrieve(search, texts, fail_on_error=0.28, **options)


def test_run_has_the_order_of_the_queries_and_not_of_the_answers():
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


def test_a_text_file_with_one_question_per_line_is_run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("questions.txt").write_text("How do I pay?\nWhere is my parcel?\n")
    Path("echoing.py").write_text("def search(query):\n    return [{'id': 'a', 'text': query}]\n")
    code, _, err = command("run", "questions.txt", "-r", "echoing:search", "-o", "run.jsonl")
    assert code == 0, err
    texts = karat.Run.read("run.jsonl").results["text"]
    assert sorted(texts) == ["How do I pay?", "Where is my parcel?"]


def test_queries_are_run_by_a_mapping_of_their_columns(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("gold.csv").write_text("nr,frage,zitat\n1,pay?,card\n")
    Path("echoed.py").write_text("def search(query):\n    return [{'id': 'a', 'text': query}]\n")
    words = ("--column", "query_id=nr", "--column", "query=frage", "--column", "evidence=zitat")
    code, _, err = command("run", "gold.csv", "-r", "echoed:search", "-o", "run.jsonl", *words)
    assert code == 0, err
    assert karat.Run.read("run.jsonl").results.rows() == [("1", "a", "pay?")]
    assert f"next: karat eval gold.csv run.jsonl {' '.join(words)}" in err
    words = ("--column", "query_id=nr", "--column", "query=fragen")
    result = command("run", "gold.csv", "-r", "echoed:search", "-o", "other.jsonl", *words)
    assert (result[0], Path("other.jsonl").exists()) == (2, False)
    assert "fragen" in result[2]
