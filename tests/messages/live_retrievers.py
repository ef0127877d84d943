"""Retrievers: how they are named, what they take, and what they return."""

import contextlib
import functools
import os
import signal
import socket
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import aiohttp

from karat import Run, retrieve
from karat.live.protocol import AttemptError, Search
from karat.live.retrievers.answers import Fields, parse_answer
from karat.live.retrievers.http import HttpRetriever
from karat.live.retrievers.resolve import resolve_retriever
from messages.cases import Section, written
from support import live_server
from support.fake_retrievers import Fake
from support.live_server import saying, serving

SECTION = Section("live: retrievers")
case = SECTION.case

QUERY = {"q1": "pay by card"}


def recorded(run: Run) -> str:
    """Return the error that a run records for its query."""
    assert run.errors is not None
    kind, message = run.errors.select("type", "message").row(0)
    return f"recorded in the run: {kind}: {message}"


def run_error(retriever, **how) -> str:
    return recorded(retrieve(retriever, QUERY, retries=0, fail_on_error=1, **how))


def made(name: str, given, search: Search | None = None, fields=(), **how) -> None:
    """Add a case of a retriever that cannot be made."""
    case(
        name,
        lambda: resolve_retriever(given, search or Search(), fields=Fields.of(fields), **how),
    )


# Names of Python objects


def module(name: str, spec: str, content: str | None = None, **how) -> None:
    """Add a case of a name in a module of the current folder."""

    def find():
        before = set(sys.modules)
        try:
            if content is not None:
                written(f"{spec.partition(':')[0].removesuffix('.py')}.py", content)
            with patch("sys.dont_write_bytecode", True):
                resolve_retriever(spec, Search(), fields=Fields.of(()))
        finally:
            for added in set(sys.modules) - before:
                del sys.modules[added]

    case(name, find, **how)


module("a retriever is not a name", "search")
module("a retriever is in a file that does not exist", "search.py:find")
module("a retriever is in a file that fails", "broken.py:find", "1 / 0\n")
module("a retriever is a file without a name", "search.py")
module("an address is mistyped", "https:/user:word@host/search?api_key=abc")
ORIGIN = r"(?<=imported from )\S+(?=, not)"
module("a file is hidden by a module", "pyclbr:find", "def find(query): ...\n", volatile=ORIGIN)
module("another file is hidden by a module", "pyclbr:readmodule", "", volatile=ORIGIN)
module("a module is unknown", "karat_nowhere:find")
module("a name is not in a module", "found_1:find", "x = 1\n")
module("a name in a module is misspelled", "found_2:find", "def fnid(query): ...\n")
module(
    "a name is not in an object",
    "found_3:one.search",
    "class Index:\n    size = 1\n\none = Index()\n",
)
module("a module imports an unknown module", "found_4:find", "\nimport karat_nowhere\n")
module("a module fails", "found_5:find", "\n1 / 0\n")
module("a module has a syntax error", "found_6:find", "\ndef\n", volatile="(?<=SyntaxError: ).*")
module("a module exits", "found_7:find", "raise SystemExit(1)\n")

# Functions and objects


class Failing:
    """Cannot be made."""

    def __init__(self) -> None:
        raise OSError("no connection")


async def making():
    """Take no query."""


def needing(query, top_k, index):
    """Take more than karat has."""


def no_query(*, depth):
    """Take no query."""


made("a retriever is not a retriever", 7)
made("a function takes no query", no_query)
made("a function needs more than karat has", needing)
made("an async function takes no query", making)
made("a class cannot be made", Failing)
case("a function returns something to be awaited", lambda: run_error(lambda query: making()))
made("headers are given to a function", lambda query: [], headers={"X": "1"})
made("a body is given to a function", lambda query: [], body={"x": 1})
made("a method is given to a function", lambda query: [], method="GET")


class Pipeline:
    """A pipeline of Haystack as far as karat looks at it."""

    __module__ = "haystack.core.pipeline"

    def __init__(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        self.graph = SimpleNamespace(edges=[])
        self._inputs, self._outputs = inputs, outputs

    def inputs(self):
        return self._inputs

    def outputs(self, *, include_components_with_connected_outputs: bool):
        return self._outputs


class Embedding:
    """A component of Haystack that takes a vector."""

    __haystack_input__ = None

    def run(self, query_embedding, top_k=None):
        """Take no text."""


TEXT = {"query": {"type": str, "is_mandatory": True}}
VECTOR = {"vector": {"type": list, "is_mandatory": True}}
DOCUMENTS = {"documents": {}}
made("a component of Haystack takes no text", Embedding())
made("a pipeline of Haystack needs a vector", Pipeline({"a": VECTOR}, {"a": DOCUMENTS}))
made("a pipeline of Haystack takes no query", Pipeline({"a": {}}, {"a": DOCUMENTS}))
made("a pipeline of Haystack gives no documents", Pipeline({"a": TEXT}, {"a": {}}))
made(
    "a pipeline of Haystack gives documents twice",
    Pipeline({"a": TEXT}, {"a": DOCUMENTS, "b": DOCUMENTS}),
)

# Names of fields


def field(name: str, *words: str) -> None:
    case(name, lambda: Fields.of(words))


def body(name: str, fields: list[str], body: dict[str, Any]) -> None:
    made(name, "http://127.0.0.1/", fields=fields, body=body)


field("a field has no equals sign", "id")
field("a field is unknown", "nothing=x")
field("a field is misspelled", "socre=x")
field("a field is named twice", "id=a", "id=b")
field("a field has no name", "id=")
field("a field has an empty part", "id=a..b")
field("a path of a field is too long", f"id={'a' * 1001}")
body("a path of a field leads through a value", ["query=a.b.c"], {"a": 1})
body("a path of a field ends in a value", ["query=a.b"], {"a": 1})
body("a path of a field has an index past the end of a list", ["query=a.3"], {"a": [1]})
body("a body is not JSON", [], {"a": float("nan")})
body("a body is nested too deeply", [], {"a": functools.reduce(lambda a, _: [a], range(100), [])})
body("a body has half a character", [], {"a": "\ud800"})

# Answers


def answer(name: str, returned, *fields: str) -> None:
    """Add a case of what a retriever returned."""

    def read():
        try:
            parse_answer(returned, Fields.of(fields))
        except AttemptError as error:
            return f"recorded in the run: {error.kind}: {error.message}"

    case(name, read)


answer("nothing was returned", None)
answer("a text was returned", "a")
answer("a set was returned", {"a"})
answer("an error was returned", {"error": "overloaded"})
answer("an error with a type was returned", {"error": {"type": "Busy", "message": "later"}})
answer("a number was returned", 7)
answer("an object without results was returned", {"took": "3 ms"})
answer("one result was returned", {"id": "a", "score": 1.0})
answer("nothing is at the path of the results", {"hits": []}, "results=data")
answer("a result is nothing", [None])
answer("a result is a float", [0.5])
answer("a result is a tuple of three", [("a", 1.0, "x")])
answer("a result has no id, place or text", [{"rank": 1}])
answer("a result has nothing at the path of its id", [{"rank": 1}], "id=_id")
answer("no result has anything at a path", [{"id": "a"}], "text=body")
answer("a result has an id that is not an id", [{"id": True}])
answer("a result has half a character", [{"id": "a\ud800"}])
answer("a result has a score of the wrong type", [{"id": "a", "score": "high"}])
answer("a result ends before it starts", [{"id": "a", "doc_id": "d", "start": 5, "end": 2}])
answer("a score is not finite", [("a", float("nan"))])
answer("a latency is negative", {"results": [], "latency_ms": {"rerank": -1}})
answer("a call has two prices", {"results": [], "calls": [{"price_per_1k": 1, "price_in": 1}]})
answer("a trace has no spans", {"results": [], "trace": {"x": 1}})
case(
    "a result has no score for the threshold",
    lambda: run_error(lambda query: ["a"], score_threshold=0.5),
)
case(
    "a retriever of another kind returns half a character",
    lambda: run_error(Fake(lambda query: ["\ud800"])),
)

# HTTP

PORT = r"(?<=127\.0\.0\.1:)\d+"


def http(name: str, respond, **how) -> None:
    """Add a case of how a server answers."""

    def ask():
        with serving(respond) as server:
            return run_error(server.url)

    case(name, ask, volatile=PORT, **how)


made("an address is not an address", "http://")
made("a header is not a header", "http://127.0.0.1/", headers={"a b": "x"})
made("a method is not supported", "http://127.0.0.1/", method="PUT")
made("a variable is not set", "http://127.0.0.1/", headers={"X-Key": "env:KARAT_NOWHERE"})
made("a parameter is an object", "http://127.0.0.1/", body={"a": {}}, method="GET")
made("a parameter is in the address", "http://127.0.0.1/?query=", method="GET")
made(
    "an address has a user and a header too",
    "http://user:word@127.0.0.1/",
    headers={"Authorization": "x"},
)


def proxied():
    with patch.dict(os.environ, {"http_proxy": "socks5://127.0.0.1", "no_proxy": ""}):
        resolve_retriever("http://retriever.test/", Search(), fields=Fields.of(()))


def without_aiohttp():
    with patch.dict(sys.modules, aiohttp=None):
        resolve_retriever("http://127.0.0.1/", Search(), fields=Fields.of(()))


def unreachable():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    return run_error(f"http://127.0.0.1:{port}/search")


case("a proxy is of an unknown kind", proxied)
case("aiohttp is not installed", without_aiohttp)
case("a server cannot be reached", unreachable, volatile=rf"{PORT}|(?<=cannot connect: ).*")
http("a server sends to another address", saying({}, 302, Location="/v2"))
http("a server sends to no address", saying({}, 302))
http("a server sends to an invalid address", saying({}, 302, Location="http://[::1"))
http("a server refuses", saying({"detail": "no such index"}, 404))
http("a server refuses without a reason", saying(b"", 500))
http("a server answers without JSON", saying(b"<html>"))
http("a server answers with nothing", saying(b""))
http("a server answers too deeply", saying(b"[" * 10**5))
http("a server answers without results", saying({"took": "3 ms"}))
http("a server closes the connection", live_server.silent)
http("a server breaks off its answer", live_server.cutting)


def too_long():
    with (
        patch("karat.live.retrievers.http.MAX_BYTES", 1 << 20),
        serving(saying(b" " * 2**21)) as s,
    ):
        return run_error(s.url)


case("a server answers too much", too_long)


def lost(name: str, error: Exception) -> None:
    """Add a case of a connection that fails in a way that needs more than one machine."""

    def fail():
        retriever = HttpRetriever("http://retriever.test/", Search(), Fields.of(()), {}, {})
        problem = retriever._connection_error(error)
        return f"recorded in the run: {problem.kind}: {problem.message}"

    case(name, fail)


KEY = SimpleNamespace(host="retriever.test", port=80, ssl=None, is_ssl=False)
REQUEST = SimpleNamespace(real_url="http://retriever.test/")
REFUSED = OSError(111, "Connection refused")
lost("a server does not speak HTTP", aiohttp.ClientResponseError(REQUEST, (), message="bad line"))
lost("a proxy refuses", aiohttp.ClientHttpProxyError(REQUEST, (), status=407))
lost("a proxy cannot be reached", aiohttp.ClientProxyConnectionError(KEY, REFUSED))
lost("a host is unknown", aiohttp.ClientConnectorDNSError(KEY, OSError(-2, "Name not known")))
lost("a certificate is not valid", aiohttp.ClientConnectorSSLError(KEY, OSError(1, "expired")))

# Commands

made("a command has an open quote", "cmd:find 'x")
made("a command is empty", "cmd: ")
made("a command is unknown", "cmd:karat-nowhere")
case(
    "a command lacks ./ before its name",
    lambda: resolve_retriever(f"cmd:{written('search-faq', '')}", Search(), fields=Fields.of(())),
)


def script(content: str, mode: int = 0o755) -> str:
    os.chmod(written("bin/find", content), mode)
    return "cmd:./bin/find"


def started(content: str, grace: float = 0, **patches) -> str:
    """Ask a program; what decides by time whether it has ended is patient on a busy machine."""
    with (
        patch.multiple("karat.live.retrievers.command", **{"_EXIT_SECONDS": 5.0} | patches),
        patch("karat.live.retrievers.command._STARTUP_SECONDS", grace),
    ):
        return run_error(script(f"#!/bin/sh\n{content}\n"))


def replying(name: str, *lines: str, **patches) -> None:
    """Add a case of a program that answers a query with these lines of shell."""
    case(name, lambda: started("\n".join(["read query", *lines]), **patches))


STAY = "read more"
case("a command may not be executed", lambda: run_error(script("#!/bin/sh\n", 0o644)))
case("a command cannot be started", lambda: run_error(script("#!/nowhere/sh\n")))
case("a command ends at once", lambda: started("echo no index >&2\nexit 3", grace=5))
replying("a command does not answer in JSON", "echo loading", STAY)
replying("a command answers too deeply", f"echo '{'[' * 2000}'", STAY)
replying("a command answers another query", """echo '{"query_id": "q9"}'""", STAY)
replying("a command answers without the query_id", """echo '{"results": ["a"]}'""", STAY)
replying("a command answers without results", """echo '{"query_id": "q1", "took": "3 ms"}'""", STAY)
replying("a command answers with two lines", "printf '[]\\n[]\\n'", STAY)
replying("a command answers too much", "echo '[         ]'", STAY, MAX_BYTES=4)
replying("a command ends without an answer", "exit 0")
replying("a command ends with an error", "echo no index >&2", "exit 3")
replying("a command is ended by a signal", "kill -9 $$")


def left() -> None:
    lines = [
        "#!/bin/sh",
        "read query",
        "setsid sh -c 'touch started; exec sleep 600' &",
        "while [ ! -e started ]; do sleep 0.01; done",  # until it has a session of its own
        """echo '{"query_id": "q1", "results": ["'$!'"]}'""",
        "read more",
    ]
    with patch("karat.live.retrievers.command._processes_with_mark", lambda _: []):
        run = retrieve(script("\n".join([*lines, ""])), QUERY)
    os.kill(int(run.results["item_id"][0]), signal.SIGKILL)


case("a command leaves a process behind", left)
