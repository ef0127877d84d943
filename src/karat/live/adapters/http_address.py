"""Where a question is sent by HTTP: the address, its headers, the proxy before it."""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from karat.errors import InputError, printable
from karat.version import __version__

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
