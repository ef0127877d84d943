"""HTTP retrievers: send a query to a server by POST or GET, and parse the response.

What is in this file:

- `HttpRetriever`, with the requests that it sends and the errors that it raises.
- The parts of a request: body, parameters, URL, headers with environment variables, and proxy.
- The response headers `Retry-After` and `Server-Timing`.

Secrets in the URL, the headers and the body are removed from everything that is stored or shown.
"""

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
from karat.live.redaction import Scrubber, mask_secrets, safe_url, secrets_of, secrets_of_url
from karat.live.retrievers.answers import Fields, first_line, parse_answer, settings_to_send
from karat.version import __version__

if TYPE_CHECKING:
    import aiohttp

MAX_BYTES = 64 * 2**20
_METHODS = ("POST", "GET")
_MAX_NESTING = 100  # levels of a body: far more than any server expects, and safe for recursion
_MAX_REASON_LENGTH = 300
# These statuses, and all from 500, are temporary. After any other, a retry would fail again.
RETRYABLE_STATUSES = frozenset({408, 425, 429})
_VARIABLE = re.compile(r"(?P<before>(?:\S+\s+)?)env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
_QUOTED = r'"(?:[^"\\]|\\.)*"'
# One metric of Server-Timing: its name, then parameters. Quoted values may contain commas.
_METRIC = re.compile(
    rf"(?:^|(?<=,))\s*([^\s;,=\"]+)\s*((?:;[^;,\"]*(?:{_QUOTED}[^;,\"]*)?)*)(?:,|$)"
)
_DURATION = re.compile(r";\s*dur\s*=\s*\"?([0-9]+(?:\.[0-9]+)?)\"?\s*(?:;|$)", re.IGNORECASE)
_MAX_MS = 1e15


@dataclass(frozen=True, slots=True)
class Reply:
    """The raw response of a server."""

    status: int
    headers: Mapping[str, str]
    timings: list[str]
    body: bytes


class HttpRetriever(Retriever):
    """A server that takes a query in a JSON body (POST) or in the parameters of the URL (GET).

    Connections are reused. Redirects are not followed: each query would take two requests, and
    secrets for one server might be sent to another.
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
        headers = expand_variables(headers)
        parts = parse_url(url)
        self.name = safe_url(url)
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()
        self._server = f"{parts.hostname}:{effective_port(parts)}"
        self._fields = fields
        self._body = body
        self._search = settings_to_send(search, fields)
        self.accepts = frozenset(self._search)
        settings = {
            "method": None if self._method == "POST" else self._method,
            "headers": sorted(headers),
            "body": mask_secrets(body),
            "fields": fields.as_dict(),
        }
        self.settings = {name: value for name, value in settings.items() if value}
        self._headers = request_headers(headers, parts, has_body=self._method == "POST")
        self._scrub = Scrubber(
            [
                *secrets_of_url(parts),
                *secrets_of(body),
                *(word for value in headers.values() for word in (value, *value.split())),
                *self._headers.get("Authorization", "").split(),
            ]
        )
        # Raise the error for a request that cannot be built now, before the first query.
        self._request("")
        self._proxy = find_proxy(parts)
        self._session: aiohttp.ClientSession | None = None

    async def open(self, jobs: int) -> None:
        """Open a session with up to one connection per job."""
        import aiohttp

        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=jobs),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            # The runner applies the timeout.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            trace_configs=[trace],
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def retrieve(self, query: Query) -> Reply:
        """Send a query and return the response."""
        return await self._exchange(*self._request(query.text))

    async def _exchange(self, url: str, body: bytes | None) -> Reply:
        """Send a request and return the response.

        A server may close an idle connection just when it is used again. That is not a failure of
        the query, and a search changes nothing on the server, so the request is sent again.
        """
        import aiohttp

        while True:
            connection = _ConnectionUse()
            try:
                return await self._send(url, body, connection)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                if not connection.is_reused:
                    raise self._connection_error(error) from error
            except (aiohttp.ClientError, OSError) as error:
                raise self._connection_error(error) from error

    def parse(self, response: Any) -> Answer:
        """Convert a response; a status from 300 on is a failed attempt."""
        if response.status >= 300:
            raise self._status_error(response)
        try:
            content = msgspec.json.decode(response.body.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._bad_answer(
                f"the response is not JSON; it {self._describe_start(response)}"
            ) from error
        try:
            answer = parse_answer(content, self._fields)
        except AttemptError as error:
            start = self._describe_start(response)
            problem = f"{self._safe_line(error.message)}; the response {start}"
            raise AttemptError(
                self._safe_line(error.kind), problem, retryable=error.retryable
            ) from error
        if answer.latency_ms or not response.timings:
            return answer
        return replace(answer, latency_ms=parse_server_timing(response.timings))

    def _request(self, text: str) -> tuple[str, bytes | None]:
        """Return the URL and the body of a request."""
        values = {"query": text, **self._search}
        if self._method == "GET":
            return _with_parameters(self._url, values, self._fields, self._body), None
        return self._url, msgspec.json.encode(self._fields.request(values, self._body))

    async def _send(
        self, url: str, request_body: bytes | None, connection: _ConnectionUse
    ) -> Reply:
        assert self._session is not None
        async with self._session.request(
            self._method,
            url,
            data=request_body,
            proxy=self._proxy,
            allow_redirects=False,
            trace_request_ctx=connection,
        ) as response:
            body = bytearray()
            async for part in response.content.iter_any():
                body += part
                if len(body) > MAX_BYTES:
                    raise self._bad_answer(
                        f"the response is larger than {MAX_BYTES // 2**20} MB", retryable=False
                    )
            timings = response.headers.getall("Server-Timing", [])
            return Reply(response.status, response.headers, timings, bytes(body))

    def _status_error(self, reply: Reply) -> AttemptError:
        kind = f"HTTP {reply.status}"
        if reply.status < 400:
            problem = _redirect_problem(self._url, reply.headers.get("Location"))
            return AttemptError(kind, self._safe_line(problem), retryable=False)
        is_temporary = reply.status >= 500 or reply.status in RETRYABLE_STATUSES
        return AttemptError(
            kind,
            self._reason(reply) or "the server gave no reason",
            retryable=is_temporary,
            retry_after=retry_after(reply.headers) if is_temporary else None,
        )

    def _connection_error(self, error: Exception) -> AttemptError:
        import aiohttp

        if isinstance(error, aiohttp.ClientHttpProxyError):
            return AttemptError(
                f"HTTP {error.status}",
                f"the proxy refused to connect to {self._server}",
                retryable=False,
            )
        if isinstance(error, aiohttp.ClientResponseError):
            return self._bad_answer(
                f"the response of {self._server} is not valid HTTP: "
                f"{self._safe_line(error.message)}"
            )
        problem, retryable = _connection_problem(error)
        return AttemptError(
            "ConnectionError",
            f"{self._server}: {self._safe_line(problem)}",
            retryable=retryable,
        )

    def _bad_answer(self, problem: str, *, retryable: bool = True) -> AttemptError:
        return AttemptError("BadAnswer", self._scrub(problem), retryable=retryable)

    def _safe_line(self, text: str) -> str:
        # Secrets are removed before the text is cut, so that no part of one remains.
        return first_line(self._scrub(text))

    def _reason(self, reply: Reply) -> str:
        """Return the body of an error response in one line, since JSON may have many lines."""
        text = printable(" ".join(self._scrub(_body_start(reply)).split()))
        return text if len(text) <= _MAX_REASON_LENGTH else f"{text[:_MAX_REASON_LENGTH]}…"

    def _describe_start(self, reply: Reply) -> str:
        text = self._safe_line(_body_start(reply))
        return f"starts with {text!r}" if text else "is empty"


@dataclass(slots=True)
class _ConnectionUse:
    """Whether a request was sent over a connection that had been used before."""

    is_reused: bool = False


async def _note_reuse(_session: Any, context: SimpleNamespace, _details: Any) -> None:
    context.trace_request_ctx.is_reused = True


def _connection_problem(error: Exception) -> tuple[str, bool]:
    """Return why a connection failed, and whether a retry may succeed."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        # Before aiohttp 3.14 this error has no os_error.
        return f"the TLS connection failed: {error.certificate_error}", False
    if isinstance(error, aiohttp.ClientSSLError):
        return f"the TLS connection failed: {error.os_error}", False
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"cannot connect to the proxy: {_os_problem(error)}", True
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"host not found: {_os_problem(error)}", True
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without a response", True
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection was closed before the response was complete", True
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect: {_os_problem(error)}", True
    return getattr(error, "strerror", None) or str(error) or type(error).__name__, True


def _os_problem(error: aiohttp.ClientConnectorError) -> str:
    return error.os_error.strerror or str(error.os_error)


def _redirect_problem(url: str, location: str | None) -> str:
    if not location:
        return "the server redirects without a target URL"
    try:
        target = safe_url(urljoin(url, location))
    except ValueError:
        return "the server redirects to an invalid URL"
    return f"the server redirects to {target}; use that URL as the retriever"


def _body_start(reply: Reply) -> str:
    """Return the start of a response, longer than what any message shows."""
    return reply.body[:4000].decode(errors="replace")


def _require_aiohttp() -> None:
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        raise InputError(
            "HTTP retrievers require aiohttp, which is not installed",
            hint="pip install 'karat[live]'",
        ) from None


# The request


def _checked_method(method: str) -> str:
    name = method.upper() if isinstance(method, str) else method
    return checks.one_of(name, "method", _METHODS)


def _check_body(body: Mapping[str, Any]) -> None:
    """Raise an error for a body that is not valid JSON, or is nested too deeply."""
    level, values = 0, [body]
    while values:
        level += 1
        if level > _MAX_NESTING:
            raise _bad_body(
                f"the body is nested more than {_MAX_NESTING} levels deep", "use fewer levels"
            )
        if any(isinstance(value, float) and not math.isfinite(value) for value in values):
            raise _bad_body(
                "NaN and Infinity are not allowed in JSON", "use null or another number"
            )
        values = [child for value in values for child in _children(value)]
    try:
        msgspec.json.encode(body)
    except (TypeError, OverflowError, ValueError) as error:
        raise _bad_body(f"the body cannot be written as JSON ({error})") from error


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    return list(value) if isinstance(value, (list, tuple)) else []


def _bad_body(
    problem: str, hint: str = """write a JSON object: --body '{"collection": "faq"}'"""
) -> InputError:
    return InputError(problem, field="body", hint=hint)


def _with_parameters(
    url: str, values: Mapping[str, Any], fields: Fields, body: Mapping[str, Any]
) -> str:
    """Return a URL with the query, the search settings and the body as parameters.

    Names are not split: a dot in `--field query=q.text` is part of the name.
    """
    parameters = {**body, **{fields.paths.get(name, name): v for name, v in values.items()}}
    pairs = []
    for name, value in parameters.items():
        for element in value if isinstance(value, (list, tuple)) else [value]:
            if element is None or isinstance(element, (Mapping, list, tuple)):
                raise InputError(
                    "a URL parameter must be a string, a number, true, false, or a list of these",
                    field=f"body.{printable(str(name))}",
                    hint="use --method POST, or remove the parameter from the body",
                )
            plain = msgspec.to_builtins(element)  # a date becomes a text
            pairs.append((name, plain if isinstance(plain, str) else json.dumps(plain)))
    query = urlsplit(url).query
    for name, _ in parse_qsl(query, keep_blank_values=True):
        if name in parameters:
            raise InputError(
                f"the URL already has the parameter {name!r}",
                field="retriever",
                hint="remove it from the URL, or use --field to send karat's value under another "
                "name",
            )
    added = urlencode(pairs, quote_via=quote, safe="")
    if query:
        return f"{url}&{added}"
    return f"{url.removesuffix('?')}?{added}"


def parse_url(url: str) -> SplitResult:
    """Split a URL into its parts; raise an InputError if it is invalid."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or any(c.isspace() or not c.isprintable() for c in url):
        # The URL is not shown, because it cannot be parsed and may contain a secret anywhere.
        raise InputError(
            "the URL of the retriever is invalid",
            hint="write it as http://host:port/path or https://host/path",
        )
    return parts


def effective_port(parts: SplitResult) -> int:
    """Return the port of a URL, by default that of its scheme."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def expand_variables(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with the values of environment variables.

    A value `env:NAME` is replaced by the variable; `Bearer env:NAME` keeps the word before it.
    """
    return {name: _expand_variable(name, value) for name, value in headers.items()}


def _expand_variable(header: str, value: str) -> str:
    match = _VARIABLE.fullmatch(value)
    if match is None:
        return value
    variable = os.environ.get(match["name"], "").strip()
    if not variable:
        raise InputError(
            f"the environment variable {match['name']} is not set",
            field=f"header {printable(header)}",
            hint=f"set it before the run: export {match['name']}=…",
        )
    return match["before"] + variable


def request_headers(
    user_headers: Mapping[str, str], parts: SplitResult, *, has_body: bool = True
) -> dict[str, str]:
    """Return the headers of every request; those of the user take precedence over the defaults."""
    for name, value in user_headers.items():
        _check_header(name, value)
    defaults = {"Accept": "application/json", "User-Agent": f"karat/{__version__}"}
    if has_body:
        defaults["Content-Type"] = "application/json"
    if parts.username is not None or parts.password is not None:
        credentials = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        defaults["Authorization"] = f"Basic {base64.b64encode(credentials.encode()).decode()}"
    user_names = {name.lower() for name in user_headers}
    if "authorization" in user_names and "Authorization" in defaults:
        raise InputError(
            "both the URL (user:password@) and the header Authorization have credentials",
            field="header Authorization",
            hint="remove one of them",
        )
    kept_defaults = {name: v for name, v in defaults.items() if name.lower() not in user_names}
    return kept_defaults | dict(user_headers)


def _check_header(name: str, value: str) -> None:
    is_token = name.isascii() and name and not set(name) & set('()<>@,;:\\"/[]?={} \t')
    if not is_token or not name.isprintable() or any(ord(c) < 32 and c != "\t" for c in value):
        raise InputError(
            "the HTTP header is invalid",
            field=f"header {printable(name)}",
            hint="write it as 'Name: value', on one line and without spaces in the name",
        )


def find_proxy(parts: SplitResult) -> str | None:
    """Return the proxy from the environment variables; this machine itself never needs one."""
    host = parts.hostname or ""
    if _is_loopback(host) or proxy_bypass(host):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy is None:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise InputError(
            "the proxy must be an HTTP proxy",
            field=f"{parts.scheme}_proxy",
            hint="use an http:// proxy, or add the host of the retriever to no_proxy",
        )
    return proxy


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


# The headers of a response


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server requires to wait (RFC 9110, section 10.2.3).

    A date is compared with the server's clock if the response has a `Date`.
    """
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdecimal():
        return float(value)
    until = _parse_date(value)
    if until is None:
        return None
    now = _parse_date(headers.get("Date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def parse_server_timing(values: Iterable[str]) -> dict[str, float]:
    """Return the milliseconds of each stage of `Server-Timing` headers (W3C Server Timing).

    >>> parse_server_timing(['db;dur=53.2, cache;desc="hit, warm";dur=2, miss', "db;dur=0.8"])
    {'db': 54.0, 'cache': 2.0}
    """
    stages: dict[str, float] = {}
    for value in values:
        for metric in _METRIC.finditer(value):
            duration = _DURATION.search(re.sub(r"desc\s*=\s*" + _QUOTED, "", metric[2]))
            if duration and float(duration[1]) < _MAX_MS:
                stages[metric[1]] = stages.get(metric[1], 0.0) + float(duration[1])
    return stages


def _parse_date(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
