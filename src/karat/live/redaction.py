"""What must not be written down: passwords, keys and tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

MASK = "***"
# Anything shorter would blot out words that have nothing to do with it.
_SHORTEST = 4
# What a word must end in; so keywords, max_tokens, author and design may be shown.
_SECRET = re.compile(
    r"(key|token|secret|password|passwd|passphrase|pass|pwd|sig|signature|auth|authorization"
    r"|credentials?|cookie|bearer|jwt)(?![a-z])"
)
# What sets something, within a word: `NAME=`, `Name: ` or `--name `.
_SETTING = re.compile(r"[\w-]+(?:=|:(?!//)\s*)|--?[\w-]+\s+")
_USER = re.compile(r"(?<=://)[^/\s@]*@")
# What may be a user and a password in an address whose parts cannot be told apart.
_ANY_USER = re.compile(r"^(\s*(?:[a-z][a-z0-9+.-]*:/+|https?:?/*))?.*@", re.IGNORECASE | re.DOTALL)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def looks_secret(name: str) -> bool:
    """Tell whether what goes by this name had better not be shown.

    >>> [name for name in ("api_key", "X-Amz-Signature", "keyId") if looks_secret(name)]
    ['api_key', 'X-Amz-Signature', 'keyId']
    >>> [name for name in ("keywords", "max_tokens", "index") if looks_secret(name)]
    []
    """
    return _SECRET.search(_HUMP.sub("_", name).lower()) is not None


def safe_url(url: str) -> str:
    """Return an address that may be shown.

    >>> safe_url("https://me:word@search.example/v1?index=faq&api_key=abc")
    'https://search.example/v1?index=faq&api_key=***'
    >>> safe_url("https://search.example/v1;token=abc?index=faq;api_key=abc")
    'https://search.example/v1;token=***?index=faq;api_key=***'
    """
    parts = urlsplit(url)
    query = "&".join(_safe_pairs(pairs) for pairs in parts.query.split("&"))
    path = "/".join(_safe_pairs(pairs) for pairs in parts.path.split("/"))
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, path=path, query=query, fragment="").geturl()


def _safe_pairs(pairs: str) -> str:
    """Return `name=value` pairs with semicolons between them, up to the first secret."""
    secret = _secret_in(pairs)
    return pairs.removesuffix(secret) + MASK if secret else pairs


def _secret_in(pairs: str) -> str:
    """Return the first secret value and all after it, since a secret may have a semicolon."""
    rest = pairs
    while rest:
        name, _, value = rest.partition(";")[0].partition("=")
        if value and looks_secret(unquote(name)):
            return rest.partition("=")[2]
        rest = rest.partition(";")[2]
    return ""


def secrets_of_url(parts: SplitResult) -> list[str]:
    """Return what `safe_url` leaves out of an address, in each way it may be spelled."""
    found = [parts.username, parts.password]
    for pairs in (*parts.query.split("&"), *parts.path.split("/")):
        secret = _secret_in(pairs)
        found += [secret, secret.partition(";")[0]]
    return [spelled for text in found if text for spelled in (text, unquote(text))]


def masked(value: Any) -> Any:
    """Return a copy of anything JSON can hold, without what looks secret by its key.

    >>> masked({"index": "faq", "auth": {"token": "abc"}, "filters": [{"apikey": "x"}]})
    {'index': 'faq', 'auth': '***', 'filters': [{'apikey': '***'}]}
    """
    if isinstance(value, Mapping):
        return {key: MASK if looks_secret(key) else masked(held) for key, held in value.items()}
    return [masked(held) for held in value] if isinstance(value, list) else value


def secrets_of(value: Any, *, hidden: bool = False) -> list[str]:
    """Return the texts that `masked` leaves out."""
    if isinstance(value, Mapping):
        found = [
            secrets_of(held, hidden=hidden or looks_secret(key)) for key, held in value.items()
        ]
    elif isinstance(value, list):
        found = [secrets_of(held, hidden=hidden) for held in value]
    else:
        return [str(value)] if hidden else []
    return [text for texts in found for text in texts]


def safe_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command without the values of options that look secret.

    >>> safe_words(["./ask", "--api-key=abc", "--token", "def", "--index", "faq"])
    ['./ask', '--api-key=***', '--token', '***', '--index', 'faq']
    >>> safe_words(["curl", "-H", "X-Api-Key: abc", "https://me:word@search.example"])
    ['curl', '-H', 'X-Api-Key: ***', 'https://search.example']
    """
    return [MASK if _is_value(words, at) else _cut(word) for at, word in enumerate(words)]


def safe_text(text: str) -> str:
    """Return a text that may be a mistyped address or command, without what may be secret.

    >>> safe_text("https:/me:word@search.example/v1?index=faq&api_key=abc")
    'https:/***@search.example/v1?index=faq&api_key=***'
    """
    return _cut(_ANY_USER.sub(rf"\g<1>{MASK}@", text))


def _is_value(words: Sequence[str], at: int) -> bool:
    """Tell whether a word is what the option before it is set to, which looks secret."""
    before = words[at - 1] if at > 1 else ""
    is_option = before.startswith("-") and "=" not in before
    return is_option and looks_secret(before) and not words[at].startswith("-")


def _cut(word: str) -> str:
    """Return a word up to the first secret in it, and without the user of an address.

    >>> _cut("API_KEY=abc ./ask"), _cut("ask --index faq --token abc")
    ('API_KEY=***', 'ask --index faq --token ***')
    """
    word = _USER.sub("", word)
    for name in _SETTING.finditer(word):
        if looks_secret(name[0]):
            return word[: name.end()] + MASK
    return word


class Scrubber:
    """Takes secrets out of what a server said, which may repeat what it was sent."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spelled = {way for text in secrets for way in (text, quote(text), quote(text, safe=""))}
        long = sorted((text for text in spelled if len(text) >= _SHORTEST), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, long))) if long else None

    def __call__(self, text: str) -> str:
        """Return the text with each secret masked."""
        return self._pattern.sub(MASK, text) if self._pattern else text
