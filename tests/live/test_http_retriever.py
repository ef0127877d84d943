"""Retrievers behind HTTP: what is sent, and what becomes of every kind of answer."""

import subprocess
import time
from email.utils import formatdate

import pytest

from karat.errors import InputError
from karat.live.adapters.fields import Fields
from karat.live.adapters.http import HttpRetriever
from karat.live.adapters.http_headers import retry_after, server_timing
from karat.live.exchange import AttemptError, Search
from support import live_server
from support.direct_calls import asked, ids, in_turn
from support.live_server import saying, serving

SECRET = "s3cr3t-w0rd"


def http(url, search=None, fields=(), headers=None, body=None):
    return HttpRetriever(url, search or Search(), Fields.of(fields), headers or {}, body or {})


def failure(respond, **given):
    """Ask a server one question that it fails on."""
    with serving(respond) as server:
        (error,) = asked(http(server.url, **given), "why")
    assert isinstance(error, AttemptError), error
    return error, server


# What is sent


def test_the_query_and_top_k_are_posted_as_json():
    with serving(live_server.echo) as server:
        (answer,) = asked(http(server.url, Search(top_k=2)), "Wie hoch? “5 €”\n")
    assert server.asked == [{"query": "Wie hoch? “5 €”\n", "top_k": 2}]
    assert server.headers[0]["Content-Type"] == "application/json"
    assert len(ids(answer)) == 2


def test_settings_that_nobody_gave_are_not_sent():
    search = Search(top_k=3, score_threshold=0.5, prefetch_limit=7, given=frozenset({"top_k"}))
    with serving(live_server.echo) as server:
        asked(http(server.url, search), "q")
    assert server.asked == [{"query": "q", "top_k": 3}]


def test_settings_that_were_given_are_sent_and_told():
    given = frozenset({"score_threshold", "prefetch_limit", "rerank_top_n"})
    search = Search(3, 0.5, 7, 9, given=given)
    with serving(live_server.echo) as server:
        retriever = http(server.url, search, ["rerank_top_n="])
        asked(retriever, "q")
    assert server.asked == [{"query": "q", "top_k": 3, "score_threshold": 0.5, "prefetch_limit": 7}]
    assert retriever.takes == {"top_k", "score_threshold", "prefetch_limit"}


def test_fields_and_constants_make_the_request_that_a_server_wants():
    hits = {"hits": {"hits": [{"_id": 7}, {"_id": "b"}]}}
    fields = ["query=query.match.text", "top_k=size", "results=hits.hits", "id=_id"]
    with serving(saying(hits)) as server:
        retriever = http(server.url, Search(5), fields, body={"index": "faq"})
        (answer,) = asked(retriever, "q")
    assert server.asked == [{"index": "faq", "query": {"match": {"text": "q"}}, "size": 5}]
    assert ids(answer) == ["7", "b"]
    assert retriever.settings == {
        "body": {"index": "faq"},
        "fields": dict(word.split("=") for word in fields),
    }


def test_paths_that_cannot_be_filled_are_refused_before_anything_is_asked():
    with pytest.raises(InputError, match=r"query=index\.text"):
        http("http://127.0.0.1:1/", fields=["query=index.text"], body={"index": "faq"})


def test_a_header_that_was_given_goes_before_ours():
    with serving(live_server.echo) as server:
        asked(http(server.url, headers={"content-type": "application/x-search"}), "q")
    assert server.headers[0].get_all("Content-Type") == ["application/x-search"]


@pytest.mark.parametrize("header", [("A b", "x"), ("", "x"), ("A", "x\r\nB: y"), ("Ä", "x")])
def test_what_is_no_header_is_refused_without_showing_its_value(header):
    with pytest.raises(InputError) as caught:
        http("http://127.0.0.1:1/", headers=dict([header]))
    assert "B: y" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://", "http:///x", "http://h:99999/", "ftp://h/", "http://a b/", "http://[::1/"]
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InputError, match="http://host:port/path"):
        http(url)


def test_connections_are_kept():
    with serving(live_server.echo) as server:
        answers = in_turn(http(server.url), *"abcdefgh")
    assert [len(ids(answer)) for answer in answers] == [20] * 8
    assert len(server.connections) == 1


def test_many_at_a_time_get_their_own_answers():
    queries = [f"query {n}" for n in range(200)]
    with serving(live_server.echo) as server:
        answers = asked(http(server.url, Search(1)), *queries, jobs=32)
    assert [ids(answer) for answer in answers] == [[f"{query}-0"] for query in queries]
    assert len(server.connections) <= 32


def test_a_connection_that_the_server_left_is_no_failure():
    with serving(live_server.leaving) as server:
        answers = in_turn(http(server.url, Search(1)), *map(str, range(50)))
    assert [ids(answer) for answer in answers] == [[f"{n}-0"] for n in range(50)]


def test_a_server_that_crashes_on_a_query_is_not_asked_for_ever():
    fine = live_server.echo

    def respond(handler, question):
        (live_server.silent if question["query"] == "bad" else fine)(handler, question)

    with serving(respond) as server:
        first, second = in_turn(http(server.url), "good", "bad")
    assert len(ids(first)) == 20
    assert second.kind == "ConnectionError"
    assert len(server.asked) == 3


# What comes back


def test_a_gzipped_answer_is_read():
    with serving(live_server.zipped) as server:
        (answer,) = asked(http(server.url), "q")
    assert ids(answer) == ["z"]


def test_a_byte_order_mark_before_json_is_passed_over():
    with serving(saying(b'\xef\xbb\xbf["a"]')) as server:
        (answer,) = asked(http(server.url), "q")
    assert ids(answer) == ["a"]


def test_stages_are_those_of_the_answer():
    said = {"results": ["a"], "latency_ms": {"rerank": 5}}
    with serving(saying(said, Server_Timing="db;dur=53.2")) as server:
        (answer,) = asked(http(server.url), "q")
    assert answer.latency_ms == {"rerank": 5}


def test_stages_of_a_server_timing_header_are_taken_where_the_answer_has_none():
    with serving(saying(["a"], Server_Timing=["db;dur=53.2, rerank;dur=12", "db;dur=1"])) as server:
        (answer,) = asked(http(server.url), "q")
    assert answer.latency_ms == pytest.approx({"db": 54.2, "rerank": 12})


@pytest.mark.parametrize(
    ("status", "again"),
    [
        *((status, False) for status in (400, 401, 403, 404, 405, 413, 422)),
        *((status, True) for status in (408, 425, 429, 500, 502, 503, 504)),
    ],
)
def test_a_refusal_is_told_by_its_status_and_first_line(status, again):
    error, _ = failure(saying(b"no\x1b[2J such index\r\nat line 3", status))
    assert error.kind == f"HTTP {status}"
    assert error.message == "no�[2J such index"
    assert error.again is again


def test_a_long_refusal_is_cut():
    error, _ = failure(saying(b"x" * 5000, 500))
    assert len(error.message) == 201


def test_a_refusal_without_a_word_says_so():
    error, _ = failure(saying(b"", 503))
    assert error.message == "the server gave no reason"


def test_the_server_says_how_long_to_wait():
    error, _ = failure(saying(b"slow down", 429, Retry_After="7"))
    assert error.wait == 7


def test_a_redirect_is_refused_and_its_address_told():
    error, server = failure(saying(b"", 307, Location="/v2/search?key=abc"))
    assert error.kind == "HTTP 307"
    assert f"http://{server.place}/v2/search?key=***" in error.message
    assert not error.again
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("respond", "why"),
    [
        (live_server.silent, "closed the connection without an answer"),
        (live_server.resetting, "reset"),
        (live_server.cutting, "ended within the answer"),
    ],
)
def test_a_lost_connection_is_told_with_host_and_port(respond, why):
    error, server = failure(respond)
    assert error.kind == "ConnectionError"
    assert error.message.startswith(f"{server.place}: ")
    assert why in error.message
    assert error.again


def test_nobody_there_is_a_connection_error():
    with serving(live_server.echo) as server:
        pass
    (error,) = asked(http(server.url), "q")
    assert error.kind == "ConnectionError"
    assert error.message.startswith(f"{server.place}: cannot connect: ")
    assert error.again


def test_a_host_that_does_not_exist_is_a_connection_error():
    (error,) = asked(http("http://nowhere.invalid/"), "q")
    assert error.kind == "ConnectionError"
    assert error.message.startswith("nowhere.invalid:80: no such host")


@pytest.mark.parametrize(
    ("content", "begins"),
    [
        (b"<html>Welcome</html>", "'<html>Welcome</html>'"),
        (b"", "it is empty"),
        (b'{"results": [NaN]}', "NaN"),
        (b'["\xff"]', "begins with"),
        (b'"a"', "begins with '\"a\"'"),
        (b'{"found": []}', "found"),
        (b'[{"score": 1}]', "score"),
        (b"[1.5]", "1.5"),
        (b"null", "null"),
    ],
)
def test_what_is_no_answer_is_told_by_how_it_begins(content, begins):
    error, _ = failure(saying(content))
    assert error.kind == "BadAnswer"
    assert begins in error.message


def test_what_is_no_gzip_is_a_failed_attempt():
    error, _ = failure(saying(b"plain", Content_Encoding="gzip"))
    assert error.kind in ("BadAnswer", "ConnectionError")


def test_what_is_no_http_is_a_bad_answer():
    error, server = failure(live_server.no_http)
    assert error.kind == "BadAnswer"
    assert f"{server.place} does not speak HTTP" in error.message


@pytest.mark.parametrize("respond", [live_server.huge, live_server.bomb])
def test_an_answer_beyond_all_bounds_is_not_read(respond):
    error, _ = failure(respond)
    assert error.kind == "BadAnswer"
    assert "more than 64 MB" in error.message
    assert not error.again


def test_a_question_given_up_leaves_the_next_one_a_clean_connection():
    def respond(handler, question):
        then = live_server.hanging if question["query"] == "hangs" else live_server.echo
        then(handler, question)

    with serving(respond) as server:
        first, second = in_turn(http(server.url, Search(1)), "hangs", "next", timeout=1.5)
    assert isinstance(first, TimeoutError)
    assert ids(second) == ["next-0"]


def test_a_certificate_that_nobody_vouches_for_is_refused_once(tmp_path):
    path = tmp_path / "self.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=x"
    subprocess.run(
        ["openssl", *words.split(), "-keyout", path, "-out", tmp_path / "cert.pem"],
        check=True,
        capture_output=True,
    )
    path.write_bytes(path.read_bytes() + (tmp_path / "cert.pem").read_bytes())
    with serving(live_server.echo, certificate=path) as server:
        (error,) = asked(http(server.url), "q")
    assert error.kind == "ConnectionError"
    assert "certificate" in error.message.lower()
    assert not error.again
    assert server.asked == []


# Headers


def test_retry_after_is_seconds_or_a_date_by_the_servers_clock():
    hour = formatdate(3600, usegmt=True)
    assert retry_after({"Retry-After": "120"}) == 120
    assert retry_after({"Retry-After": hour, "Date": formatdate(3590, usegmt=True)}) == 10
    assert retry_after({"Retry-After": hour, "Date": formatdate(9999, usegmt=True)}) == 0
    soon = retry_after({"Retry-After": formatdate(time.time() + 100, usegmt=True)})
    assert 90 < soon <= 100


@pytest.mark.parametrize("told", ["", "soon", "-5", "1.5", "²", "Wed, 99 Foo"])
def test_a_retry_after_that_says_nothing_is_none(told):
    assert retry_after({"Retry-After": told}) is None


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
def test_server_timing_is_read_as_the_standard_has_it(value, stages):
    assert server_timing([value]) == stages


# Secrets


def every_word(retriever, *errors):
    told = [retriever.name, repr(retriever.settings), *map(str, errors)]
    return " ".join([*told, *(repr(error.__dict__) for error in errors)])


def test_secrets_are_sent_but_told_to_nobody():
    def respond(handler, question):
        said = f"you sent {handler.headers['Authorization']} and {question} to {handler.path}"
        live_server.send(handler, said.encode(), 401)

    headers = {"Authorization": f"Bearer {SECRET}", "X-Team": "search"}
    body = {"index": "faq", "login": {"api_key": SECRET}}
    with serving(respond) as server:
        url = f"{server.url}?token={SECRET}&index=faq"
        retriever = http(url, headers=headers, body=body)
        (error,) = asked(retriever, "q")
    assert server.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert server.asked[0]["login"] == {"api_key": SECRET}
    assert SECRET not in every_word(retriever, error)
    assert "you sent *** and" in error.message
    assert retriever.name == f"{server.url}?token=***&index=faq"
    assert retriever.settings == {
        "headers": ["Authorization", "X-Team"],
        "body": {"index": "faq", "login": {"api_key": "***"}},
    }


def test_a_secret_is_not_left_by_half_where_a_message_is_cut():
    text = "x" * 195 + SECRET + "y" * 100
    error, _ = failure(saying(text.encode(), 500), headers={"X-Key": SECRET})
    assert SECRET[:4] not in error.message


def test_the_user_of_an_address_is_sent_as_basic_and_left_out_of_its_name():
    def respond(handler, question):
        live_server.send(handler, handler.headers["Authorization"].encode(), 403)

    with serving(respond) as server:
        url = server.url.replace("://", "://otto:p%40ss%3Aword@")
        retriever = http(url)
        (error,) = asked(retriever, "q")
    assert server.headers[0]["Authorization"] == "Basic b3R0bzpwQHNzOndvcmQ="
    assert retriever.name == server.url
    assert not {"otto", "p%40ss", "p@ss", "b3R0bzpwQHNzOndvcmQ="} & set(
        every_word(retriever, error).split()
    )
    assert error.message == "*** ***"


def test_a_user_and_a_header_that_says_another_are_refused():
    with pytest.raises(InputError, match="give one of the two"):
        http("http://a:b@127.0.0.1/", headers={"authorization": "Bearer x"})


def test_no_secret_is_told_of_a_server_that_is_not_there():
    with serving(live_server.echo) as server:
        pass
    url = server.url.replace("://", f"://me:{SECRET}@") + f"?apikey={SECRET}"
    retriever = http(url, headers={"X-Api-Key": SECRET})
    (error,) = asked(retriever, "q")
    assert SECRET not in every_word(retriever, error)


# Proxies


def proxied(handler, question):
    """Stand in for the server that a proxy would ask."""
    live_server.send(handler, b'["from the proxy"]')


def test_a_proxy_of_the_environment_is_asked_with_its_own_password(monkeypatch):
    with serving(proxied) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:word@{proxy.place}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        (answer,) = asked(http("http://search.invalid/"), "q")
    assert ids(answer) == ["from the proxy"]
    assert proxy.headers[0]["Proxy-Authorization"] == "Basic bWU6d29yZA=="
    assert proxy.headers[0]["Host"] == "search.invalid"


def test_this_machine_is_never_asked_through_a_proxy(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with serving(live_server.echo) as server:
        answers = [asked(http(server.url), "q")[0]]
        answers += asked(http(server.url.replace("127.0.0.1", "localhost")), "q")
    assert [len(ids(answer)) for answer in answers] == [20, 20]


def test_a_proxy_that_is_not_there_is_told_as_such(monkeypatch):
    with serving(live_server.echo) as server:
        pass
    monkeypatch.setenv("https_proxy", f"http://me:{SECRET}@{server.place}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    (error,) = asked(http("https://search.invalid/"), "q")
    assert error.kind == "ConnectionError"
    assert "the proxy cannot be reached" in error.message
    assert SECRET not in error.message


def test_a_proxy_of_another_kind_is_refused(monkeypatch):
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(InputError, match="no_proxy"):
        http("http://search.invalid/")


def test_without_aiohttp_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "aiohttp", None)
    with pytest.raises(InputError, match=r"karat\[live\]"):
        http("http://127.0.0.1:1/")
