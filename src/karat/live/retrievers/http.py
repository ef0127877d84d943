"""A retriever behind an address: send a query by POST or GET, read the answer."""

from __future__ import annotations

import base64
import ipaddress
import json
import math
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from karat import checks
from karat.errors import InputError, printable
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search
from karat.live.redaction import Scrubber, masked, safe_url, secrets_of, secrets_of_url
from karat.live.retrievers.answers import Fields, answer_of, handed, said
from karat.version import __version__

if TYPE_CHECKING:
    import aiohttp


_VARIABLE = re.compile(r"(?P<before>(?:\S+\s+)?)env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)")


def parts_of(url: str) -> SplitResult:
    """Split an address into its parts, refusing what is none."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole or any(c.isspace() or not c.isprintable() for c in url):
        # Its parts cannot be told apart, so neither can what of it is secret.
        raise InputError(
            "the address of the retriever is none",
            hint="write it as http://host:port/path or https://host/path",
        )
    return parts


def port_of(parts: SplitResult) -> int:
    """Return the port that is asked."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def with_variables(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with the values of the environment variables that they name.

    `env:NAME` is the value of a variable, and `Bearer env:NAME` has a word before it.
    """
    return {name: _with_variable(name, value) for name, value in headers.items()}


def _with_variable(name: str, value: str) -> str:
    found = _VARIABLE.fullmatch(value)
    if found is None:
        return value
    variable = os.environ.get(found["name"], "").strip()
    if not variable:
        raise InputError(
            f"the environment variable {found['name']} is not set",
            field=f"header {printable(name)}",
            hint=f"set it before the run: export {found['name']}=…",
        )
    return found["before"] + variable


def headers_of(
    given: Mapping[str, str], parts: SplitResult, *, has_body: bool = True
) -> dict[str, str]:
    """Return the headers of every request; those that were given take precedence over ours."""
    for name, value in given.items():
        token = name.isascii() and name and not set(name) & set('()<>@,;:\\"/[]?={} \t')
        if not token or not name.isprintable() or any(ord(c) < 32 and c != "\t" for c in value):
            raise InputError(
                "this is no header of HTTP",
                field=f"header {printable(name)}",
                hint="write it as 'Name: value', in one line",
            )
    ours = {"Accept": "application/json", "User-Agent": f"karat/{__version__}"}
    if has_body:
        ours["Content-Type"] = "application/json"
    if parts.username is not None or parts.password is not None:
        pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        ours["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    named = {name.lower() for name in given}
    if "authorization" in named and "Authorization" in ours:
        raise InputError(
            "the address has a user in it, and there is a header Authorization",
            field="header Authorization",
            hint="give one of the two",
        )
    return {name: value for name, value in ours.items() if name.lower() not in named} | dict(given)


def proxy_of(parts: SplitResult) -> str | None:
    """Return the proxy that the environment names, never one for this very machine."""
    host = parts.hostname or ""
    if _is_loopback(host) or proxy_bypass(host):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy is None:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise InputError(
            "proxies of this kind are not supported",
            field=f"{parts.scheme}_proxy",
            hint="name an http:// proxy, or put the host of the retriever into no_proxy",
        )
    return proxy


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


_QUOTED = r'"(?:[^"\\]|\\.)*"'
# One metric: its name, then parameters, whose values may be quoted and hold commas.
_METRIC = re.compile(
    rf"(?:^|(?<=,))\s*([^\s;,=\"]+)\s*((?:;[^;,\"]*(?:{_QUOTED}[^;,\"]*)?)*)(?:,|$)"
)
_DURATION = re.compile(r";\s*dur\s*=\s*\"?([0-9]+(?:\.[0-9]+)?)\"?\s*(?:;|$)", re.IGNORECASE)
_MOST_MS = 1e15


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks us to wait (RFC 9110, section 10.2.3).

    A date is held against the server's own clock where it tells it.
    """
    told = headers.get("Retry-After", "").strip()
    if told.isascii() and told.isdecimal():
        return float(told)
    until = _seconds(told)
    if until is None:
        return None
    now = _seconds(headers.get("Date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def server_timing(values: Iterable[str]) -> dict[str, float]:
    """Return the milliseconds of each stage of `Server-Timing` headers (W3C Server Timing).

    >>> server_timing(['db;dur=53.2, cache;desc="hit, warm";dur=2, miss', "db;dur=0.8"])
    {'db': 54.0, 'cache': 2.0}
    """
    stages: dict[str, float] = {}
    for value in values:
        for metric in _METRIC.finditer(value):
            duration = _DURATION.search(re.sub(r"desc\s*=\s*" + _QUOTED, "", metric[2]))
            if duration and float(duration[1]) < _MOST_MS:
                stages[metric[1]] = stages.get(metric[1], 0.0) + float(duration[1])
    return stages


def _seconds(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


MOST_BYTES = 64 * 2**20
_METHODS = ("POST", "GET")
_MOST_NESTED = 100  # levels of a body: far more than any server has, and safe to recurse into
_LONGEST_REASON = 300
# Asking these again may help; any other refusal will be repeated.
_AGAIN = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered, as it came."""

    status: int
    headers: Mapping[str, str]
    timings: list[str]
    body: bytes


class HttpRetriever(Retriever):
    """A server that takes a query as a JSON body (POST) or as parameters of the address (GET).

    Connections are kept open. Redirects are not followed: each query would take the longer way,
    and secrets that were given for one address would be sent to another.
    """

    is_async = True

    def __init__(
        self,
        url: str,
        search: Search,
        fields: Fields,
        headers: Mapping[str, str],
        body: Mapping[str, Any],
        method: str = "POST",
    ) -> None:
        _require_aiohttp()
        self._method = _checked_method(method)
        _check_body(body)
        headers = with_variables(headers)
        parts = parts_of(url)
        self.name = safe_url(url)
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()
        self._place = f"{parts.hostname}:{port_of(parts)}"
        self._fields = fields
        self._body = body
        self._search = handed(search, fields)
        self.takes = frozenset(self._search)
        self.settings = {
            name: value
            for name, value in (
                ("method", self._method if self._method != "POST" else None),
                ("headers", sorted(headers)),
                ("body", masked(body)),
                ("fields", fields.as_dict()),
            )
            if value
        }
        self._headers = headers_of(headers, parts, has_body=self._method == "POST")
        self._scrub = Scrubber(
            [
                *secrets_of_url(parts),
                *secrets_of(body),
                *(word for value in headers.values() for word in (value, *value.split())),
                *self._headers.get("Authorization", "").split(),
            ]
        )
        # Refuse a request that cannot be built before the first query.
        self._request("")
        self._proxy = proxy_of(parts)
        self._session: aiohttp.ClientSession | None = None

    async def open(self, jobs: int) -> None:
        """Open a session that holds a connection for each job."""
        import aiohttp

        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=jobs),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            # The one who asks keeps the time.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            trace_configs=[trace],
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, question: Query) -> Reply:
        """Send a question and return what came back.

        A server may close a connection it kept open at the very moment it is used again. That
        says nothing about the question, and searching changes nothing, so it is sent once more.
        """
        import aiohttp

        url, body = self._request(question.text)
        while True:
            attempt = _Attempt()
            try:
                return await self._sent(url, body, attempt)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                if not attempt.reused:
                    raise self._lost(error) from error
            except (aiohttp.ClientError, OSError) as error:
                raise self._lost(error) from error

    def read(self, returned: Any) -> Answer:
        """Bring an answer into karat's words; a refusal is a failed attempt."""
        status = returned.status
        if status >= 300:
            raise self._refused(returned)
        try:
            held = msgspec.json.decode(returned.body.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._bad(f"the answer is no JSON; {self._beginning(returned)}") from error
        try:
            answer = answer_of(held, self._fields)
        except AttemptError as error:
            problem = f"{self._said(error.message)}; {self._beginning(returned)}"
            raise AttemptError(self._said(error.kind), problem, again=error.again) from error
        if answer.latency_ms or not returned.timings:
            return answer
        return replace(answer, latency_ms=server_timing(returned.timings))

    def _request(self, text: str) -> tuple[str, bytes | None]:
        """Return the address and the body of a request."""
        values = {"query": text, **self._search}
        if self._method == "GET":
            return _with_parameters(self._url, values, self._fields, self._body), None
        return self._url, msgspec.json.encode(self._fields.request(values, self._body))

    async def _sent(self, url: str, sent: bytes | None, attempt: _Attempt) -> Reply:
        assert self._session is not None
        async with self._session.request(
            self._method,
            url,
            data=sent,
            proxy=self._proxy,
            allow_redirects=False,
            trace_request_ctx=attempt,
        ) as response:
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > MOST_BYTES:
                    raise self._bad(
                        f"the answer has more than {MOST_BYTES // 2**20} MB", again=False
                    )
            timings = response.headers.getall("Server-Timing", [])
            return Reply(response.status, response.headers, timings, bytes(body))

    def _refused(self, reply: Reply) -> AttemptError:
        kind = f"HTTP {reply.status}"
        place = reply.headers.get("Location")
        if reply.status < 400:
            return AttemptError(kind, self._said(_redirect(self._url, place)), again=False)
        again = reply.status >= 500 or reply.status in _AGAIN
        return AttemptError(
            kind,
            self._reason(reply) or "the server gave no reason",
            again=again,
            wait=retry_after(reply.headers) if again else None,
        )

    def _lost(self, error: Exception) -> AttemptError:
        """Say what became of a connection."""
        import aiohttp

        if isinstance(error, aiohttp.ClientHttpProxyError):
            return AttemptError(
                f"HTTP {error.status}", f"the proxy does not lead to {self._place}", again=False
            )
        if isinstance(error, aiohttp.ClientResponseError):
            return self._bad(f"{self._place} does not speak HTTP: {self._said(error.message)}")
        why, again = _cause(error)
        return AttemptError("ConnectionError", f"{self._place}: {self._said(why)}", again=again)

    def _bad(self, problem: str, *, again: bool = True) -> AttemptError:
        return AttemptError("BadAnswer", self._scrub(problem), again=again)

    def _said(self, text: str) -> str:
        """Return what may be shown of a text; secrets go first, lest half of one be left."""
        return said(self._scrub(text))

    def _reason(self, reply: Reply) -> str:
        """Return the body of a refusal in one line: a JSON body may have any number of lines."""
        text = printable(" ".join(self._scrub(_start(reply)).split()))
        return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"

    def _beginning(self, reply: Reply) -> str:
        text = self._said(_start(reply))
        return f"it begins with {text!r}" if text else "it is empty"


@dataclass(slots=True)
class _Attempt:
    """Whether a request went over a connection that had been used before."""

    reused: bool = False


async def _note_reuse(_session: Any, context: SimpleNamespace, _details: Any) -> None:
    context.trace_request_ctx.reused = True


def _cause(error: Exception) -> tuple[str, bool]:
    """Return why a connection failed, and whether it may be there the next time."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        # Before aiohttp 3.14 this error has no os_error.
        return f"no safe connection: {error.certificate_error}", False
    if isinstance(error, aiohttp.ClientSSLError):
        return f"no safe connection: {error.os_error}", False
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy cannot be reached: {error.os_error.strerror or error.os_error}", True
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"no such host: {error.os_error.strerror or error.os_error}", True
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer", True
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection ended within the answer", True
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect: {error.os_error.strerror or error.os_error}", True
    return getattr(error, "strerror", None) or str(error) or type(error).__name__, True


def _checked_method(method: str) -> str:
    word = method.upper() if isinstance(method, str) else method
    return checks.one_of(word, "method", _METHODS)


def _check_body(body: Mapping[str, Any]) -> None:
    """Refuse a body that JSON cannot hold, or that is nested so deeply that reading it fails."""
    level, values = 0, [body]
    while values:
        level += 1
        if level > _MOST_NESTED:
            raise _bad_body(f"it is nested more than {_MOST_NESTED} levels deep")
        if any(isinstance(value, float) and not math.isfinite(value) for value in values):
            raise _bad_body("NaN and Infinity are not numbers in JSON", "use null, or a number")
        values = [inner for value in values for inner in _inside(value)]
    try:
        msgspec.json.encode(body)
    except (TypeError, OverflowError, ValueError) as error:
        raise _bad_body(f"it cannot be written as JSON ({error})") from error


def _inside(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    return list(value) if isinstance(value, (list, tuple)) else []


def _bad_body(problem: str, hint: str = """--body '{"collection": "faq"}'""") -> InputError:
    return InputError(problem, field="body", hint=hint)


def _with_parameters(
    url: str, values: Mapping[str, Any], fields: Fields, body: Mapping[str, Any]
) -> str:
    """Return an address with the query, the search settings and the body as parameters.

    Names are used as they are: a dot in `--field query=q.text` is part of the name.
    """
    ours = {fields.paths.get(name, name): value for name, value in values.items()}
    pairs = []
    for name, value in {**body, **ours}.items():
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is None or isinstance(each, (Mapping, list, tuple)):
                raise InputError(
                    "a parameter of an address must be a text, a number, true, false, or a list "
                    "of these",
                    field=f"body.{printable(str(name))}",
                    hint="use --method POST, or remove it from the body",
                )
            plain = msgspec.to_builtins(each)  # a date is text
            pairs.append((name, plain if isinstance(plain, str) else json.dumps(plain)))
    query = urlsplit(url).query
    for name, _ in parse_qsl(query, keep_blank_values=True):
        if name in {**body, **ours}:
            raise InputError(
                f"the address already has the parameter {name!r}",
                field="retriever",
                hint="remove it from the address; --field maps the names that karat sends",
            )
    joint = "" if not query and url.endswith("?") else "&" if query else "?"
    return f"{url}{joint}{urlencode(pairs, quote_via=quote, safe='')}"


def _redirect(url: str, location: str | None) -> str:
    """Say where a server sends us, which may be nowhere."""
    if not location:
        return "the server redirects without an address"
    try:
        target = safe_url(urljoin(url, location))
    except ValueError:
        return "the server redirects to an invalid address"
    return f"the server redirects to {target}; use that address as the retriever"


def _start(reply: Reply) -> str:
    """Return more of an answer than anybody is shown."""
    return reply.body[:4000].decode(errors="replace")


def _require_aiohttp() -> None:
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        raise InputError(
            "retrievers behind HTTP need aiohttp, which is not installed",
            hint="pip install 'karat[live]'",
        ) from None
