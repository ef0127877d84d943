"""Failed queries: the messages of runs that stopped or in which too many queries failed."""

import pytest

import karat
from karat import Run
from karat.live.failures import hint_for, too_many_failed
from karat.live.run_options import RunOptions
from support.fake_retrievers import without_pauses
from support.live_server import saying, serving

QUERIES = {f"q{n:02}": f"question {n}" for n in range(60)}
MISSING = {"detail": [{"loc": ["body", "question"], "msg": "Field required"}]}


@pytest.fixture(autouse=True)
def _no_waiting():
    with without_pauses():
        yield


def message(respond, **options):
    with serving(respond) as server, pytest.raises(karat.RetrieverError) as caught:
        karat.retrieve(server.url, QUERIES, jobs=1, **options)
    return str(caught.value), server


def test_message_begins_with_the_reason_of_the_server(tmp_path):
    text, server = message(saying(MISSING, 422), output=tmp_path / "run.jsonl")
    first, second, third, hint = text.splitlines()
    assert first.startswith("HTTP 422: ")
    assert "Field required" in first
    assert "10 failures" in second
    assert "run.jsonl" in third
    assert "--field query=question" in hint
    assert len(server.requests) == 10


def test_answers_before_the_stop_are_kept_and_the_same_command_continues(tmp_path):
    path = tmp_path / "run.jsonl"
    down = True

    def respond(handler, request):
        is_late = int(request["query"].split()[1]) >= 5
        saying(b"busy" if down and is_late else ["a"], 503 if down and is_late else 200)(
            handler, request
        )

    with serving(respond) as server:
        for retries in (0, 1):
            with pytest.raises(karat.RetrieverError):
                karat.retrieve(server.url, QUERIES, jobs=1, output=path, retries=retries)
            run = Run.read(path)
            assert (run.query_ids.len(), run.failed) == (15, 10)
        down = False
        before = len(server.requests)
        run = karat.retrieve(server.url, QUERIES, output=path)
    assert len(server.requests) - before == 55
    assert (run.query_ids.len(), run.failed) == (60, 0)


def test_run_with_only_failures_can_be_continued_with_other_fields(tmp_path):
    path = tmp_path / "run.jsonl"

    def respond(handler, request):
        is_right = "question" in request
        saying(["a"] if is_right else MISSING, 200 if is_right else 422)(handler, request)

    with serving(respond) as server:
        with pytest.raises(karat.RetrieverError):
            karat.retrieve(server.url, QUERIES, output=path)
        run = karat.retrieve(server.url, QUERIES, output=path, fields=["query=question"])
    assert (run.query_ids.len(), run.failed) == (60, 0)


def test_short_run_that_fails_ends_with_the_same_hint():
    with serving(saying(MISSING, 422)) as server, pytest.raises(karat.RetrieverError) as caught:
        karat.retrieve(server.url, dict(list(QUERIES.items())[:3]))
    assert str(caught.value).startswith("3 of 3 queries failed (3 HTTP 422)")
    assert "--field query=question" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "settings", "part"),
    [
        ("HTTP 400", {}, "--field query=question"),
        ("HTTP 401", {}, "--header-file"),
        ("HTTP 403", {}, "--header "),
        ("HTTP 404", {}, "path"),
        ("HTTP 405", {}, "--method GET"),
        ("HTTP 405", {"method": "GET"}, "--method POST"),
        ("HTTP 415", {}, "Content-Type"),
        ("HTTP 422", {}, "--field query=question"),
        ("HTTP 429", {}, "--rate"),
        ("HTTP 503", {}, "log of the server"),
        ("ConnectionError", {}, "running"),
        ("Timeout", {}, "--timeout"),
    ],
)
def test_hint_depends_on_the_kind_of_failure(kind, settings, part):
    assert part in hint_for(kind, settings)


def test_unknown_kind_has_no_hint():
    assert hint_for("HTTP 5000", {}) is None
    assert hint_for("RuntimeError", {}) is None


def test_example_and_hint_are_those_of_the_most_common_failure():
    error = {"type": "HTTP 405", "message": "no POST"}
    rows = [{"query_id": f"q{n}", "error": error} for n in (2, 3)]
    run = Run.of([{"query_id": "q1", "error": {"type": "Timeout", "message": "slow"}}, *rows])
    problem = too_many_failed(run, 0.05)
    assert "for example q2: HTTP 405: no POST" in problem
    assert "--method GET" in problem


def test_run_in_which_all_may_fail_does_not_stop_by_default():
    assert [RunOptions(fail_on_error=share).max_failures_in_a_row for share in (0, 0.05, 1)] == [
        10,
        10,
        0,
    ]
    assert RunOptions(stop_after_failures=3, fail_on_error=1).max_failures_in_a_row == 3

    def search(query):
        raise RuntimeError("down")

    assert karat.retrieve(search, QUERIES, retries=0, fail_on_error=1).failed == 60
