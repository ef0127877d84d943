"""Runs of retrievers: settings, queries, the file of a run, stages and calls, traces."""

import asyncio
import os
import threading
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from unittest.mock import patch

import karat
from karat import Run, retrieve
from karat.data.formats.json_lines import Header
from karat.live import otel
from karat.live.journal import Journal
from karat.live.locked_file import LockedFile
from karat.live.protocol import Answer, AttemptError, Search
from karat.live.run_options import RunOptions
from karat.live.selection import select_queries
from messages.cases import Section, written
from messages.live_retrievers import recorded
from support.fake_retrievers import Fake

SECTION = Section("live: runs")
case = SECTION.case

QUERY = {"q1": "pay by card"}
ALLOWED = {"retries": 0, "fail_on_error": 1}
"""Settings with which a query may fail, once."""


def find(query: str) -> list[str]:
    return ["a"]


def running(name: str, retriever=find, queries=QUERY, **how) -> None:
    case(name, lambda: retrieve(retriever, queries, **how))


class Counted:
    """A component of Haystack as far as karat looks at it."""

    __haystack_input__ = None
    top_k = 4

    def run(self, query: str, top_k: int) -> dict[str, list[str]]:
        return {"documents": ["a"]}


# Settings

running("top_k is 0", top_k=0)
running("a score threshold is not finite", score_threshold=float("nan"))
running("the number of workers is 0", jobs=0)
running("a timeout is 0", timeout=0)
running("the share of failures is above 1", fail_on_error=2)
running("a unit of offsets is unknown", offsets="bytes")
running("a tokenizer is not a function", tokenizer=7)
running("a setting is not taken by the retriever", rerank_top_n=5)
running("a retriever is set to another number of results", Counted(), top_k=9)
case("a setting of a search is 0", lambda: Search(prefetch_limit=0))
case("a number of retries is negative", lambda: RunOptions(retries=-1))


def tokens(returned) -> str:
    text = [{"id": "a", "text": "one text"}]
    return recorded(retrieve(lambda query: text, QUERY, tokenizer=lambda _: returned, **ALLOWED))


case("a tokenizer returns text", lambda: tokens("one"))

# Failures


def rejected(name: str, kind: str, message: str) -> None:
    """Add a case of a run that stops because all queries fail."""

    def search(query: str) -> list[str]:
        raise AttemptError(kind, message, retryable=False)

    queries = {f"q{number}": "pay" for number in range(20)}
    case(name, lambda: retrieve(search, queries, jobs=1, output="run.jsonl"))


rejected("a run stops after failures in a row", "HTTP 422", "question is required")
rejected("a run stops as the method is not allowed", "HTTP 405", "Method Not Allowed")
rejected("a run stops as the server fails", "HTTP 500", "out of memory")
rejected("a run stops after failures without a hint", "BadAnswer", "no results")


def failing(query: str) -> list[str]:
    raise OSError("no connection")


def hanging() -> str:
    async def wait(query: str) -> list[str]:
        await asyncio.sleep(60)
        return []

    return recorded(retrieve(wait, QUERY, timeout=0.05, **ALLOWED))


class Unclosable(Fake):
    """Fails when it is closed."""

    async def close(self) -> None:
        raise OSError("still busy")


case(
    "a retriever of another kind returns a negative latency",
    lambda: recorded(retrieve(Fake(lambda query: Answer([], {"rerank": -1.0})), QUERY, **ALLOWED)),
)
running("too many queries failed", failing, retries=0, fail_on_error=0.5)
running("a retriever cannot be closed", Unclosable(find))
case("a query takes too long", hanging)


def going_on():
    released = threading.Event()

    def wait(query: str) -> list[str]:
        released.wait(5)
        return []

    with patch("karat.live.workers.CANCEL_TIMEOUT", 0.01):
        try:
            retrieve(wait, QUERY, timeout=0.02, **ALLOWED)
        finally:
            released.set()


class Late(Fake):
    """Records a call when its query is finished."""

    def __init__(self) -> None:
        super().__init__(self.find)

    def find(self, query: str) -> list[str]:
        self.context = copy_context()
        return ["a"]

    async def close(self) -> None:
        self.context.run(karat.record_call, model="m")


case("an attempt goes on after the timeout", going_on)
running("a call is recorded too late", Late())


def without_carry(query: str) -> list[str]:
    thread = threading.Thread(target=karat.record_call)
    thread.start()
    thread.join()
    return ["a"]


running("a call is recorded in a thread without a query", without_carry)

# Selection of queries


def selecting(name: str, queries=QUERY, **how) -> None:
    case(name, lambda: select_queries(queries, RunOptions(**how)))


TOPICS = [
    {"query_id": "q1", "query": "pay by card", "topic": "pay", "tags": ["card"]},
    {"query_id": "q2", "query": "lost parcel", "topic": "mail", "tags": ["parcel"]},
]
selecting("a limit is 0", limit=0)
selecting("a seed is negative", seed=-1)
selecting("queries have no texts", {"q1": ["a"]})
selecting("some of many queries have no texts", {"q0": "pay"} | {f"q{n}": " " for n in range(1, 9)})
selecting("a filter has no equals sign", TOPICS, filters=["topic"])
selecting("a field of a filter is unknown", TOPICS, filters=["kind=pay"])
selecting("a value of a filter is unknown", TOPICS, filters=["topic=refund"])
selecting("no query passes all filters", TOPICS, filters=["topic=pay", "tags=parcel"])

# The file of a run

HEADER = Header(1, "run", "find", "codepoint", {"top_k": 5})
LINE = b'{"query_id":"q1","results":[]}\n'
FULL = OSError(28, "No space left on device")


def opening(
    name: str, content: str | bytes, header: Header = HEADER, volatile: str = r"\(.*\)"
) -> None:
    """Add a case of a file that cannot be continued."""

    def start():
        with Journal.open(written("run.jsonl", content), header):
            raise AssertionError(name)

    case(name, start, volatile=volatile)


BEGUN = b'{"karat":1,"kind":"run","name":"find","offsets":"codepoint","settings":{"top_k":5}}\n'
opening("a file is not a run", "query_id,item_id\n")
opening("a file is gold", '{"karat":1,"kind":"gold"}\n')
opening("a file is of a newer version", '{"karat":2,"kind":"run"}\n')
opening("a line of a file is not a line of a run", BEGUN + b"{}\n" + LINE)
opening(
    "a line of a file is of another process",
    BEGUN.replace(b"}}", b'},"run_id":"0a1b2c3d"}') + LINE,
)
opening("a query is in a file twice", BEGUN + LINE + LINE)
opening(
    "a run was begun with other settings",
    BEGUN + LINE,
    Header(1, "run", "find", "codepoint", {"top_k": 9}),
)
opening(
    "a run is complete",
    BEGUN.replace(b'"top_k":5', b'"queries":{"count":1}') + LINE,
    Header(1, "run", "find", "codepoint", {"queries": {"count": 1}}),
    volatile=r"\d+ s(?= ago)",
)
opening(
    "the source code of a retriever changed",
    BEGUN.replace(b'"top_k":5', b'"source_sha256":"0a"') + LINE,
    Header(1, "run", "find", "codepoint", {"source_sha256": "0b"}),
)


def damaged():
    with Journal.open(written("run.jsonl", BEGUN + LINE[:-9] + LINE), HEADER):
        pass


case("a line of a file is damaged", damaged)
case("the file of a run has another ending", lambda: Journal.open("run.csv", HEADER))


def pipe():
    os.mkfifo("run.jsonl")
    Journal.open("run.jsonl", HEADER)


case("the file of a run is a pipe", pipe)
case(
    "the file of a run is that of the queries",
    lambda: retrieve(
        find, written("q.jsonl", '{"query_id": "q1", "query": "x"}'), output="q.jsonl"
    ),
)


@contextmanager
def opened():
    file = LockedFile(Path("run.jsonl").absolute())
    try:
        yield file
    finally:
        file.close()


def held(name: str, use, failing: str | None = None, error: OSError = FULL) -> None:
    """Add a case of what happens to an open file."""

    def run():
        with opened() as file:
            file.append(LINE)
            if failing is None:
                use(file)
            else:
                with patch(failing, side_effect=error):
                    use(file)

    case(name, run)


def held_twice():
    with opened(), opened():
        pass


def unlockable():
    with patch("fcntl.flock", side_effect=OSError(37, "No locks available")), opened():
        pass


def unopenable():
    with patch("os.open", side_effect=PermissionError(13, "Permission denied")), opened():
        pass


def removed(file: LockedFile) -> None:
    file.path.unlink()
    file.check_unchanged()


def appended(file: LockedFile) -> None:
    with file.path.open("ab") as other:
        other.write(LINE)
    file.check_unchanged()


def shortened(file: LockedFile) -> None:
    os.truncate(file.path, 3)
    file.check_unchanged()


case("another process writes the file", held_twice)
case("a file cannot be locked", unlockable)
case("a file cannot be opened for writing", unopenable)
held("a line cannot be written", lambda file: file.append(LINE), "os.write")
held("a file cannot be cut", lambda file: file.truncate(0), "os.ftruncate")
held("a file cannot be rewritten", lambda file: file.rewrite([LINE]), "os.open")
held("a file cannot be synchronized", lambda file: file.sync(), "os.fsync")
held(
    "a file cannot be looked up",
    lambda file: file.check_unchanged(),
    "pathlib.Path.stat",
    PermissionError(13, "Permission denied"),
)
held("a file was removed", removed)
held("a file was appended to", appended)
held("a file was cut short", shortened)

# Stages and calls


def generator():
    yield 1


case("a stage has no name", lambda: karat.stage(""))
case("a stage has the name of the total", lambda: karat.stage("total"))
case("a stage is a generator", lambda: karat.stage("rerank")(generator))
case("a carried function is a generator", lambda: karat.carry(generator))
case("a carried function is its result", lambda: karat.carry(find("a query")))


def call(name: str, **told) -> None:
    def record(query: str) -> list[str]:
        karat.record_call(**told)
        return ["a"]

    case(name, lambda: recorded(retrieve(record, QUERY, **ALLOWED)))


call("a model has no name", model="")
call("a number of tokens is negative", prompt_tokens=-1)
call("a price is negative", price_per_call=-1)
call("a price is for all and for some tokens", price_per_1k=1, price_in=1)

# Traces

SPAN = {
    "name": "find",
    "traceId": "t1",
    "spanId": "s1",
    "startTimeUnixNano": "1000000000",
    "endTimeUnixNano": "2000000000",
    "attributes": {otel.QUERY: "q1", "openinference.span.kind": "LLM"},
}
FOUND = Run.of({"q1": ["a"]})


def trace(name: str, *spans, without: str | None = None, **told) -> None:
    """Add a case of a trace that cannot be read."""
    given = [*spans] or [{key: v for key, v in (SPAN | told).items() if key != without}]
    case(name, lambda: otel.attach(FOUND, given))


def marked(name: str, **attributes) -> None:
    trace(name, attributes=SPAN["attributes"] | attributes)


trace("a trace has no spans", {"x": 1})
trace("a span is not a span", 7)
case("a trace is not JSON", lambda: otel.usage("{"), volatile=r"\(.*\)")
case(
    "a file of traces is not JSON",
    lambda: otel.attach(FOUND, Path(written("trace.json", "[]\n{"))),
    volatile=r"\(.*\)",
)
trace("a span ends before it starts", endTimeUnixNano="1")
trace("a span has no id", without="spanId")
trace("a span has no end", without="endTimeUnixNano")
trace("a time is not a time", endTimeUnixNano="soon")
trace("attributes are not attributes", attributes=[1])
trace("a span is inside itself", SPAN | {"parentSpanId": "s1"})
marked("the id of a query is a float", **{otel.QUERY: 0.5})
marked("a number of tokens in a trace is negative", **{"llm.token_count.prompt": -1})
trace("no trace belongs to the run", attributes={})
trace(
    "some traces are left out",
    SPAN,
    SPAN | {"traceId": "t2", "attributes": {}},
    SPAN | {"traceId": "t3", "attributes": {otel.QUERY: "q9"}},
)
