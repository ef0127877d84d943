"""Retrievers behind HTTP: what is sent, and how each kind of answer is read."""

import json
import subprocess
import sys
import time
from email.utils import formatdate
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pytest

from karat.live.protocol import AttemptError, Search
from karat.live.retrievers import http as http_module
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.http import HttpRetriever, parse_server_timing, retry_after
from support import live_server
from support.direct_calls import ids, retrieve_in_turn, retrieve_together
from support.errors import refused
from support.live_server import saying, send, serving

SECRET = "s3cr3t-w0rd"


def http(url, search=None, fields=(), headers=None, body=None, method="POST"):
    return HttpRetriever(
        url, search or Search(), Fields.of(fields), headers or {}, body or {}, method
    )


def failure(respond, **given):
    """Return the error of a query that the server fails on, and the server."""
    with serving(respond) as server:
        (error,) = retrieve_together(http(server.url, **given), "why")
    assert isinstance(error, AttemptError), error
    return error, server


# What is sent


def test_query_and_top_k_are_posted_as_json():
    with serving(live_server.echo) as server:
        (answer,) = retrieve_together(http(server.url, Search(top_k=2)), "Wie hoch? “5 €”\n")
    assert server.requests == [{"query": "Wie hoch? “5 €”\n", "top_k": 2}]
    assert server.headers[0]["Content-Type"] == "application/json"
    assert len(ids(answer)) == 2


def test_settings_that_were_not_given_are_not_sent():
    search = Search(top_k=3, score_threshold=0.5, prefetch_limit=7, explicit=frozenset({"top_k"}))
    with serving(live_server.echo) as server:
        retrieve_together(http(server.url, search), "q")
    assert server.requests == [{"query": "q", "top_k": 3}]


def test_settings_that_were_given_are_sent_and_reported_as_taken():
    given = frozenset({"score_threshold", "prefetch_limit", "rerank_top_n"})
    search = Search(3, 0.5, 7, 9, explicit=given)
    with serving(live_server.echo) as server:
        retriever = http(server.url, search, ["rerank_top_n="])
        retrieve_together(retriever, "q")
    assert server.requests == [
        {"query": "q", "top_k": 3, "score_threshold": 0.5, "prefetch_limit": 7}
    ]
    assert retriever.accepts == {"top_k", "score_threshold", "prefetch_limit"}


def test_fields_and_body_make_the_request_that_a_server_expects():
    hits = {"hits": {"hits": [{"_id": 7}, {"_id": "b"}]}}
    fields = ["query=query.match.text", "top_k=size", "results=hits.hits", "id=_id"]
    with serving(saying(hits)) as server:
        retriever = http(server.url, Search(5), fields, body={"index": "faq"})
        (answer,) = retrieve_together(retriever, "q")
    assert server.requests == [{"index": "faq", "query": {"match": {"text": "q"}}, "size": 5}]
    assert ids(answer) == ["7", "b"]
    assert retriever.settings == {
        "body": {"index": "faq"},
        "fields": dict(word.split("=") for word in fields),
    }


def test_path_that_the_body_blocks_is_refused_before_the_first_query():
    with refused(path=None, line=None, field="field query=index.text"):
        http("http://127.0.0.1:1/", fields=["query=index.text"], body={"index": "faq"})


def parameters(handler, _request):
    """Return the method, the parameters of the address and the length of the body."""
    pairs = parse_qsl(urlsplit(handler.path).query, keep_blank_values=True)
    items = [handler.command, *(f"{name}={value}" for name, value in pairs)]
    body = [handler.headers["Content-Type"], handler.headers["Content-Length"]]
    send(handler, json.dumps([*items, f"body {body}"]).encode())


def test_get_sends_the_query_and_all_fields_as_parameters():
    text = "Wie hoch? 5 € & 100% + a=b;c#d"
    with serving(parameters) as server:
        retriever = http(
            f"{server.url}?index=faq",
            Search(3, 0.5, explicit=frozenset({"score_threshold"})),
            ["query=q.text", "top_k=rows"],
            body={"lang": ["de", "en"], "exact": True, "year": 2024},
            method="get",
        )
        (answer,) = retrieve_together(retriever, text)
    assert ids(answer) == [
        "GET",
        "index=faq",
        "lang=de",
        "lang=en",
        "exact=true",
        "year=2024",
        f"q.text={text}",
        "rows=3",
        "score_threshold=0.5",
        "body [None, None]",
    ]
    assert retriever.settings["method"] == "GET"


def test_post_is_the_default_and_not_among_the_settings():
    assert http("http://127.0.0.1:1/", method="Post").settings == {}


def test_failure_of_a_get_request_is_retried_like_one_of_a_post_request():
    with serving(live_server.leaving) as server:
        answers = retrieve_in_turn(http(server.url, Search(1), method="GET"), *map(str, range(5)))
    assert [ids(answer) for answer in answers] == [[f"{n}-0"] for n in range(5)]


def test_secrets_in_the_parameters_of_a_get_request_are_masked():
    def respond(handler, request):
        saying(f"bad {handler.path}".encode(), 400)(handler, request)

    error, _ = failure(respond, body={"api_key": SECRET}, method="GET")
    assert "api_key=***" in error.message
    assert SECRET not in error.message


@pytest.mark.parametrize("value", [None, {"a": 1}, [[1]], [None]])
def test_parameter_that_is_not_a_plain_value_is_refused(value):
    with refused(field="body.filter"):
        http("http://127.0.0.1:1/", body={"filter": value}, method="GET")


def test_parameter_that_the_address_has_already_is_refused():
    with refused(field="retriever") as caught:
        http("http://127.0.0.1:1/?q=", fields=["query=q"], method="GET")
    assert "'q'" in caught.value.problem


def test_other_methods_are_refused():
    with refused(field="method") as caught:
        http("http://127.0.0.1:1/", method="PUT")
    assert "'PUT'" in caught.value.problem


def nested(levels):
    body = []
    for _ in range(levels - 2):
        body = [body]
    return {"a": body}


@pytest.mark.parametrize(
    "body",
    [
        {"a": float("nan")},
        {"a": [{"b": float("inf")}]},
        {"a": 10**5000},
        {"a": "\ud800"},
        {"a": object()},
        nested(101),
        nested(100_000),
    ],
)
def test_body_that_json_cannot_hold_is_refused(body):
    with refused(path=None, line=None, field="body"):
        http("http://127.0.0.1:1/", body=body)


def test_body_may_be_nested_a_hundred_levels_deep():
    with serving(live_server.echo) as server:
        retrieve_together(http(server.url, body=nested(100)), "q")
    assert server.requests == [{**nested(100), "query": "q", "top_k": 20}]


@pytest.mark.parametrize("value", ["env:MY_TOKEN", "Bearer env:MY_TOKEN"])
def test_header_value_comes_from_an_environment_variable(monkeypatch, value):
    monkeypatch.setenv("MY_TOKEN", f"{SECRET}\n")

    def respond(handler, request):
        saying(f"no {handler.headers['Authorization']}".encode(), 403)(handler, request)

    error, server = failure(respond, headers={"Authorization": value})
    assert server.headers[0]["Authorization"] == value.replace("env:MY_TOKEN", SECRET)
    assert error.message.startswith("no ")
    assert SECRET not in error.message


@pytest.mark.parametrize("content", [None, "", " "])
def test_variable_that_is_not_set_is_refused_by_its_name(monkeypatch, content):
    monkeypatch.delenv("MY_TOKEN", raising=False)
    if content is not None:
        monkeypatch.setenv("MY_TOKEN", content)
    with refused(field="header X-Key") as caught:
        http("http://127.0.0.1:1/", headers={"X-Key": "env:MY_TOKEN"})
    assert "MY_TOKEN" in caught.value.problem


@pytest.mark.parametrize("value", ["env:", "env:a-b", "production env:", "env:A B", "x y env:A"])
def test_other_header_values_with_env_are_sent_as_they_are(value):
    with serving(live_server.echo) as server:
        retrieve_together(http(server.url, headers={"X-Stage": value}), "q")
    assert server.headers[0]["X-Stage"] == value


def test_header_that_was_given_takes_precedence():
    with serving(live_server.echo) as server:
        retrieve_together(http(server.url, headers={"content-type": "application/x-search"}), "q")
    assert server.headers[0].get_all("Content-Type") == ["application/x-search"]


@pytest.mark.parametrize("header", [("A b", "x"), ("", "x"), ("A", "x\r\nB: y"), ("Ä", "x")])
def test_invalid_header_is_refused_without_showing_its_value(header):
    with refused(field=f"header {header[0]}") as caught:
        http("http://127.0.0.1:1/", headers=dict([header]))
    assert "B: y" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://", "http:///x", "http://h:99999/", "ftp://h/", "http://a b/", "http://[::1/"]
)
def test_invalid_address_is_refused(url):
    with refused(path=None, line=None, field=None) as caught:
        http(url)
    assert caught.value.hint


def test_connections_are_reused():
    with serving(live_server.echo) as server:
        answers = retrieve_in_turn(http(server.url), *"abcdefgh")
    assert [len(ids(answer)) for answer in answers] == [20] * 8
    assert len(server.connections) == 1


def test_concurrent_queries_get_their_own_answers():
    queries = [f"query {n}" for n in range(100)]
    with serving(live_server.echo) as server:
        answers = retrieve_together(http(server.url, Search(1)), *queries, jobs=32)
    assert [ids(answer) for answer in answers] == [[f"{query}-0"] for query in queries]
    assert len(server.connections) <= 32


def test_connection_that_the_server_closed_is_not_a_failure():
    with serving(live_server.leaving) as server:
        answers = retrieve_in_turn(http(server.url, Search(1)), *map(str, range(30)))
    assert [ids(answer) for answer in answers] == [[f"{n}-0"] for n in range(30)]


def test_query_that_crashes_the_server_is_sent_only_once_more():
    def respond(handler, request):
        crashes = request["query"] == "bad"
        (live_server.silent if crashes else live_server.echo)(handler, request)

    with serving(respond) as server:
        first, second = retrieve_in_turn(http(server.url), "good", "bad")
    assert len(ids(first)) == 20
    assert second.kind == "ConnectionError"
    assert len(server.requests) == 3


# What comes back


def test_gzipped_answer_is_read():
    with serving(live_server.zipped) as server:
        (answer,) = retrieve_together(http(server.url), "q")
    assert ids(answer) == ["z"]


def test_byte_order_mark_before_json_is_ignored():
    with serving(saying(b'\xef\xbb\xbf["a"]')) as server:
        (answer,) = retrieve_together(http(server.url), "q")
    assert ids(answer) == ["a"]


def test_stages_are_read_from_the_answer():
    content = {"results": ["a"], "latency_ms": {"rerank": 5}}
    with serving(saying(content, Server_Timing="db;dur=53.2")) as server:
        (answer,) = retrieve_together(http(server.url), "q")
    assert answer.latency_ms == {"rerank": 5}


def test_stages_are_read_from_server_timing_if_the_answer_has_none():
    with serving(saying(["a"], Server_Timing=["db;dur=53.2, rerank;dur=12", "db;dur=1"])) as server:
        (answer,) = retrieve_together(http(server.url), "q")
    assert answer.latency_ms == pytest.approx({"db": 54.2, "rerank": 12})


@pytest.mark.parametrize(
    ("status", "again"),
    [
        *((status, False) for status in (400, 401, 403, 404, 405, 413, 422)),
        *((status, True) for status in (408, 425, 429, 500, 502, 503, 504)),
    ],
)
def test_refusal_is_reported_with_its_status_and_reason_in_one_line(status, again):
    error, _ = failure(saying(b"no\x1b[2J such index\r\n  at line 3", status))
    assert error.kind == f"HTTP {status}"
    assert error.message == "no�[2J such index at line 3"
    assert error.retryable is again


def test_long_refusal_is_cut():
    error, _ = failure(saying(b"x" * 5000, 500))
    assert len(error.message) == 301


def test_refusal_with_an_empty_body_has_a_message():
    error, _ = failure(saying(b"", 503))
    assert error.message


def test_wait_is_read_from_the_server():
    error, _ = failure(saying(b"slow down", 429, Retry_After="7"))
    assert error.retry_after == 7


def test_redirect_is_refused_and_its_address_shown():
    error, server = failure(saying(b"", 307, Location="/v2/search?key=abc"))
    assert error.kind == "HTTP 307"
    assert f"http://{server.host_and_port}/v2/search?key=***" in error.message
    assert not error.retryable
    assert len(server.requests) == 1


@pytest.mark.parametrize("location", ["http://[::1", "//[", "http://[x]/?api_key=s3cr3t-w0rd"])
def test_redirect_to_an_invalid_address_is_reported(location):
    error, _ = failure(saying(b"", 302, Location=location))
    assert (error.kind, error.retryable) == ("HTTP 302", False)
    assert error.message == "the server redirects to an invalid URL"


@pytest.mark.parametrize(
    ("respond", "cause"),
    [
        (live_server.silent, aiohttp.ServerDisconnectedError),
        (live_server.resetting, aiohttp.ClientOSError),
        (live_server.cutting, aiohttp.ClientPayloadError),
    ],
)
def test_lost_connection_is_reported_with_host_and_port(respond, cause):
    error, server = failure(respond)
    assert (error.kind, error.retryable) == ("ConnectionError", True)
    assert error.message.startswith(f"{server.host_and_port}: ")
    assert isinstance(error.__cause__, cause)


def test_server_that_is_not_running_is_a_connection_error():
    with serving(live_server.echo) as server:
        pass
    (error,) = retrieve_together(http(server.url), "q")
    assert (error.kind, error.retryable) == ("ConnectionError", True)
    assert error.message.startswith(f"{server.host_and_port}: ")
    assert isinstance(error.__cause__, aiohttp.ClientConnectorError)


def test_host_that_does_not_exist_is_a_connection_error():
    (error,) = retrieve_together(http("http://nowhere.invalid/"), "q")
    assert error.kind == "ConnectionError"
    assert error.message.startswith("nowhere.invalid:80: ")
    assert isinstance(error.__cause__, aiohttp.ClientConnectorDNSError)


@pytest.mark.parametrize(
    ("content", "again"),
    [
        (b"<html>Welcome</html>", True),
        (b"", True),
        (b'{"results": [NaN]}', True),
        (b'["\xff"]', True),
        (b'"a"', False),
        (b'{"found": []}', False),
        (b'[{"score": 1}]', False),
        (b"[1.5]", False),
        (b"null", False),
    ],
)
def test_bad_answer_is_reported_with_its_beginning(content, again):
    error, _ = failure(saying(content))
    assert (error.kind, error.retryable) == ("BadAnswer", again)
    if content:
        assert repr(content.decode(errors="replace")) in error.message


def test_invalid_gzip_is_a_failed_attempt():
    error, _ = failure(saying(b"plain", Content_Encoding="gzip"))
    assert error.kind in ("BadAnswer", "ConnectionError")


def test_answer_that_is_not_http_is_a_bad_answer():
    error, server = failure(live_server.not_http)
    assert error.kind == "BadAnswer"
    assert server.host_and_port in error.message


@pytest.mark.parametrize("respond", [live_server.huge, live_server.bomb])
def test_answer_above_the_size_limit_is_not_read(respond, monkeypatch):
    assert http_module.MAX_BYTES == 64 * 2**20
    monkeypatch.setattr(http_module, "MAX_BYTES", 2**20)
    error, _ = failure(respond)
    assert (error.kind, error.retryable) == ("BadAnswer", False)
    assert " 1 MB" in error.message


def test_query_after_a_timeout_has_a_clean_connection():
    def respond(handler, request):
        then = live_server.hanging if request["query"] == "hangs" else live_server.echo
        then(handler, request)

    with serving(respond) as server:
        retriever = http(server.url, Search(1))
        first, second = retrieve_in_turn(retriever, "hangs", "next", timeouts={"hangs": 0.3})
    assert isinstance(first, TimeoutError)
    assert ids(second) == ["next-0"]


def test_self_signed_certificate_is_refused_once(tmp_path):
    path = tmp_path / "self.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=x"
    subprocess.run(
        ["openssl", *words.split(), "-keyout", path, "-out", tmp_path / "cert.pem"],
        check=True,
        capture_output=True,
    )
    path.write_bytes(path.read_bytes() + (tmp_path / "cert.pem").read_bytes())
    with serving(live_server.echo, certificate=path) as server:
        (error,) = retrieve_together(http(server.url), "q")
    assert (error.kind, error.retryable) == ("ConnectionError", False)
    assert isinstance(error.__cause__, aiohttp.ClientSSLError)
    assert server.requests == []


# Headers


def test_retry_after_is_seconds_or_a_date_of_the_servers_clock():
    hour = formatdate(3600, usegmt=True)
    assert retry_after({"Retry-After": "120"}) == 120
    assert retry_after({"Retry-After": hour, "Date": formatdate(3590, usegmt=True)}) == 10
    assert retry_after({"Retry-After": hour, "Date": formatdate(9999, usegmt=True)}) == 0
    soon = retry_after({"Retry-After": formatdate(time.time() + 100, usegmt=True)})
    assert 90 < soon <= 100


@pytest.mark.parametrize("value", ["", "soon", "-5", "1.5", "²", "Wed, 99 Foo"])
def test_invalid_retry_after_is_none(value):
    assert retry_after({"Retry-After": value}) is None


@pytest.mark.parametrize(
    ("value", "stages"),
    [
        ("db;dur=53", {"db": 53}),
        ("total;dur=5.5;desc=all", {"total": 5.5}),
        ('a;desc="x, b;dur=9";dur=1', {"a": 1}),
        ('a;desc="say \\"dur=3\\""', {}),
        ("cache, db ; DUR = 2 ,", {"db": 2}),
        ("db;dur=-1, x;dur=NaN, y;dur=1e999, z;dur=", {}),
        ("", {}),
        (";;;,,==", {}),
    ],
)
def test_server_timing_is_read_by_the_standard(value, stages):
    assert parse_server_timing([value]) == stages


# Secrets


def shown_texts(retriever, *errors):
    """Return everything that is shown or written of a retriever and its errors."""
    texts = [retriever.name, repr(retriever.settings), *map(str, errors)]
    return " ".join([*texts, *(repr(error.__dict__) for error in errors)])


def test_secrets_are_sent_but_never_shown():
    def respond(handler, request):
        text = f"you sent {handler.headers['Authorization']} and {request} to {handler.path}"
        live_server.send(handler, text.encode(), 401)

    headers = {"Authorization": f"Bearer {SECRET}", "X-Team": "search"}
    body = {"index": "faq", "login": {"api_key": SECRET}}
    with serving(respond) as server:
        url = f"{server.url}?token={SECRET}&index=faq"
        retriever = http(url, headers=headers, body=body)
        (error,) = retrieve_together(retriever, "q")
    assert server.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert server.requests[0]["login"] == {"api_key": SECRET}
    assert SECRET not in shown_texts(retriever, error)
    assert "you sent *** and" in error.message
    assert retriever.name == f"{server.url}?token=***&index=faq"
    assert retriever.settings == {
        "headers": ["Authorization", "X-Team"],
        "body": {"index": "faq", "login": {"api_key": "***"}},
    }


def test_no_part_of_a_secret_remains_where_a_message_is_cut():
    text = "x" * 195 + SECRET + "y" * 100
    error, _ = failure(saying(text.encode(), 500), headers={"X-Key": SECRET})
    assert SECRET[:4] not in error.message


def test_user_of_an_address_is_sent_as_basic_and_left_out_of_its_name():
    def respond(handler, request):
        live_server.send(handler, handler.headers["Authorization"].encode(), 403)

    with serving(respond) as server:
        url = server.url.replace("://", "://otto:p%40ss%3Aword@")
        retriever = http(url)
        (error,) = retrieve_together(retriever, "q")
    assert server.headers[0]["Authorization"] == "Basic b3R0bzpwQHNzOndvcmQ="
    assert retriever.name == server.url
    assert not {"otto", "p%40ss", "p@ss", "b3R0bzpwQHNzOndvcmQ="} & set(
        shown_texts(retriever, error).split()
    )
    assert error.message == "*** ***"


def test_user_and_authorization_header_together_are_refused():
    with refused(field="header Authorization"):
        http("http://a:b@127.0.0.1/", headers={"authorization": "Bearer x"})


def test_no_secret_is_shown_of_a_server_that_is_not_running():
    with serving(live_server.echo) as server:
        pass
    url = server.url.replace("://", f"://me:{SECRET}@") + f"?apikey={SECRET}"
    retriever = http(url, headers={"X-Api-Key": SECRET})
    (error,) = retrieve_together(retriever, "q")
    assert SECRET not in shown_texts(retriever, error)


# Proxies


def proxied(handler, request):
    """Answer in place of the server behind a proxy."""
    live_server.send(handler, b'["from the proxy"]')


def test_proxy_of_the_environment_is_used_with_its_own_password(monkeypatch):
    with serving(proxied) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:word@{proxy.host_and_port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        (answer,) = retrieve_together(http("http://search.invalid/"), "q")
    assert ids(answer) == ["from the proxy"]
    assert proxy.headers[0]["Proxy-Authorization"] == "Basic bWU6d29yZA=="
    assert proxy.headers[0]["Host"] == "search.invalid"


def test_local_addresses_never_use_a_proxy(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with serving(live_server.echo) as server:
        answers = [retrieve_together(http(server.url), "q")[0]]
        answers += retrieve_together(http(server.url.replace("127.0.0.1", "localhost")), "q")
    assert [len(ids(answer)) for answer in answers] == [20, 20]


def test_proxy_that_is_not_running_is_a_connection_error(monkeypatch):
    with serving(live_server.echo) as server:
        pass
    monkeypatch.setenv("https_proxy", f"http://me:{SECRET}@{server.host_and_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    (error,) = retrieve_together(http("https://search.invalid/"), "q")
    assert error.kind == "ConnectionError"
    assert isinstance(error.__cause__, aiohttp.ClientProxyConnectionError)
    assert SECRET not in error.message


def test_unsupported_kind_of_proxy_is_refused(monkeypatch):
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with refused(field="http_proxy") as caught:
        http("http://search.invalid/")
    assert caught.value.hint


def test_missing_aiohttp_is_reported_with_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with refused(path=None, line=None, field=None) as caught:
        http("http://127.0.0.1:1/")
    assert "karat[live]" in caught.value.hint
