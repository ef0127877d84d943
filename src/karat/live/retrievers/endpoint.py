"""Requests to a server that takes and returns JSON, for embeddings.

Connections are reused. Secrets are removed from everything that is shown.
"""

from __future__ import annotations

import http.client
import time
import weakref
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

from karat.errors import InputError, printable
from karat.live.protocol import AttemptError
from karat.live.redaction import Scrubber, safe_url, secrets_of_url
from karat.live.retrievers.answers import first_line
from karat.live.retrievers.http import (
    MAX_BYTES,
    RETRYABLE_STATUSES,
    effective_port,
    expand_variables,
    find_proxy,
    parse_url,
    request_headers,
    retry_after,
)
from karat.live.runner import retry_delay

TIMEOUT = 60.0
RETRIES = 2


class JsonEndpoint:
    """A server that answers a JSON object with JSON.

    Parameters
    ----------
    url : str
        The URL.
    key_env : str, optional
        The environment variable with the key, which is sent as a bearer token and never stored.
    role : str
        What the server is for, which names it in errors.
    """

    def __init__(self, url: str, key_env: str | None, role: str) -> None:
        self._role = role
        try:
            parts = parse_url(url)
            key = {} if key_env is None else {"Authorization": f"Bearer env:{key_env}"}
            headers = expand_variables(key)
            self._headers = request_headers(headers, parts)
        except InputError as error:
            error.field = role
            raise
        self.name = safe_url(url)
        self._parts = parts
        self._proxy = find_proxy(parts)
        secrets = self._headers.get("Authorization", "").split()
        self._scrub = Scrubber([*secrets_of_url(parts), *secrets])
        self._idle: list[http.client.HTTPConnection] = []
        weakref.finalize(self, _close_all, self._idle)

    def post(self, content: Any) -> Any:
        """Send a request once and return the answer; a failure is an `AttemptError`."""
        body = msgspec.json.encode(content)
        try:
            status, headers, answer = self._send(body)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            server = f"{self._parts.hostname}:{effective_port(self._parts)}"
            raise AttemptError(
                "ConnectionError", f"{server}: {self._safe_line(str(reason))}"
            ) from error
        if status >= 300:
            is_temporary = status >= 500 or status in RETRYABLE_STATUSES
            raise AttemptError(
                f"HTTP {status}",
                self._safe_line(answer[:4000].decode(errors="replace"))
                or "the server gave no reason",
                retryable=is_temporary,
                retry_after=retry_after(_titled(headers)) if is_temporary else None,
            )
        try:
            return msgspec.json.decode(answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            start = self._safe_line(answer[:4000].decode(errors="replace"))
            raise AttemptError(
                "BadAnswer", f"the response is not JSON; it starts with {start!r}"
            ) from error

    def post_with_retries(self, content: Any) -> Any:
        """Send a request and try again after temporary failures, with increasing pauses."""
        attempts = 0
        while True:
            try:
                return self.post(content)
            except AttemptError as error:
                attempts += 1
                if attempts > RETRIES or not error.retryable:
                    raise InputError(
                        f"{self.name} failed: {error.kind}: {error.message}",
                        field=self._role,
                        hint="check the URL, the model and the key, and run the command again",
                    ) from error
                time.sleep(retry_delay(attempts, error.retry_after))

    def _safe_line(self, text: str) -> str:
        return printable(first_line(self._scrub(text)))

    def _send(self, body: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send a request; a connection that the server has closed meanwhile is opened again."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._exchange(self._connect(), body)
            with suppress(http.client.RemoteDisconnected, ConnectionError):
                return self._exchange(connection, body)

    def _exchange(
        self, connection: http.client.HTTPConnection, body: bytes
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        target = self._parts._replace(netloc="", scheme="", fragment="").geturl() or "/"
        if self._proxy is not None and self._parts.scheme == "http":
            host = self._parts.netloc.rpartition("@")[2]
            target = self._parts._replace(netloc=host, fragment="").geturl()
        try:
            connection.request("POST", target, body, self._headers)
            response = connection.getresponse()
            answer = response.read(MAX_BYTES + 1)
            _refuse_too_large(answer)
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return response.status, response.headers, answer

    def _connect(self) -> http.client.HTTPConnection:
        is_tls = self._parts.scheme == "https"
        host, port = self._parts.hostname or "", effective_port(self._parts)
        if self._proxy is not None:
            proxy = urlsplit(self._proxy)
            proxy_host, proxy_port = proxy.hostname or "", effective_port(proxy)
            if not is_tls:
                return http.client.HTTPConnection(proxy_host, proxy_port, timeout=TIMEOUT)
            tunnel = http.client.HTTPSConnection(proxy_host, proxy_port, timeout=TIMEOUT)
            tunnel.set_tunnel(host, port)
            return tunnel
        if is_tls:
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT)
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT)


def _titled(headers: http.client.HTTPMessage) -> dict[str, str]:
    return {name.title(): value for name, value in headers.items()}


def _close_all(connections: list[http.client.HTTPConnection]) -> None:
    for connection in connections:
        connection.close()


def _refuse_too_large(answer: bytes) -> None:
    if len(answer) > MAX_BYTES:
        raise http.client.HTTPException(f"the response is larger than {MAX_BYTES // 2**20} MB")
