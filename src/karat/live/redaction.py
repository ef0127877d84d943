"""Remove passwords, keys and tokens from what is stored in a run or shown in a message."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

MASK = "***"
# Replacing a shorter secret would also mask unrelated words.
_MIN_LENGTH = 4
# A name is secret if one of its words ends like this; keywords, max_tokens, author and design are
# not.
_SECRET = re.compile(
    r"(key|token|secret|password|passwd|passphrase|pass|pwd|sig|signature|auth|authorization"
    r"|credentials?|cookie|bearer|jwt)(?![a-z])"
)
# The start of a setting inside a word: `NAME=`, `Name: ` or `--name `.
_SETTING = re.compile(r"[\w-]+(?:=|:(?!//)\s*)|--?[\w-]+\s+")
_USER = re.compile(r"(?<=://)[^/\s@]*@")
# A possible user and password in a URL that cannot be parsed.
_ANY_USER = re.compile(r"^(\s*(?:[a-z][a-z0-9+.-]*:/+|https?:?/*))?.*@", re.IGNORECASE | re.DOTALL)
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")


def looks_secret(name: str) -> bool:
    """Return whether the value of a setting with this name may be secret.

    >>> [name for name in ("api_key", "X-Amz-Signature", "keyId") if looks_secret(name)]
    ['api_key', 'X-Amz-Signature', 'keyId']
    >>> [name for name in ("keywords", "max_tokens", "index") if looks_secret(name)]
    []
    """
    return _SECRET.search(_CAMEL_CASE.sub("_", name).lower()) is not None


def safe_url(url: str) -> str:
    """Return a URL without its secrets.

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
    """Mask `name=value` pairs, which have semicolons between them, from the first secret on."""
    secret = _secret_in(pairs)
    return pairs.removesuffix(secret) + MASK if secret else pairs


def _secret_in(pairs: str) -> str:
    """Return everything from the first secret on.

    The secret is not cut at the next semicolon, because it may contain one.
    """
    rest = pairs
    while rest:
        name, _, value = rest.partition(";")[0].partition("=")
        if value and looks_secret(unquote(name)):
            return rest.partition("=")[2]
        rest = rest.partition(";")[2]
    return ""


def secrets_of_url(parts: SplitResult) -> list[str]:
    """Return the secrets that `safe_url` removes from a URL, also decoded."""
    secrets = [parts.username, parts.password]
    for pairs in (*parts.query.split("&"), *parts.path.split("/")):
        secret = _secret_in(pairs)
        secrets += [secret, secret.partition(";")[0]]
    return [spelling for text in secrets if text for spelling in (text, unquote(text))]


def mask_secrets(value: Any, *, public: Collection[str] = ()) -> Any:
    """Return a copy of a JSON value, with the values of secret-looking keys masked.

    The values of `public` keys are never masked.

    >>> mask_secrets({"index": "faq", "auth": {"token": "abc"}, "filters": [{"apikey": "x"}]})
    {'index': 'faq', 'auth': '***', 'filters': [{'apikey': '***'}]}
    """
    if isinstance(value, Mapping):
        return {
            key: MASK
            if looks_secret(key) and key not in public
            else mask_secrets(child, public=public)
            for key, child in value.items()
        }
    if isinstance(value, list):
        return [mask_secrets(child, public=public) for child in value]
    return value


def secrets_of(value: Any, *, hidden: bool = False) -> list[str]:
    """Return the texts that `mask_secrets` masks."""
    if isinstance(value, Mapping):
        texts = [
            secrets_of(child, hidden=hidden or looks_secret(key)) for key, child in value.items()
        ]
    elif isinstance(value, list):
        texts = [secrets_of(child, hidden=hidden) for child in value]
    else:
        return [str(value)] if hidden else []
    return list(itertools.chain.from_iterable(texts))


def safe_command(words: Sequence[str]) -> list[str]:
    """Return the words of a command with the values of secret-looking options masked.

    >>> safe_command(["./search", "--api-key=abc", "--token", "def", "--index", "faq"])
    ['./search', '--api-key=***', '--token', '***', '--index', 'faq']
    >>> safe_command(["curl", "-H", "X-Api-Key: abc", "https://me:word@search.example"])
    ['curl', '-H', 'X-Api-Key: ***', 'https://search.example']
    """
    return [
        MASK if _is_secret_value(words, position) else _mask_setting(word)
        for position, word in enumerate(words)
    ]


def safe_text(text: str) -> str:
    """Mask what may be secret in a text that may be a mistyped URL or command.

    >>> safe_text("https:/me:word@search.example/v1?index=faq&api_key=abc")
    'https:/***@search.example/v1?index=faq&api_key=***'
    """
    return _mask_setting(_ANY_USER.sub(rf"\g<1>{MASK}@", text))


def _is_secret_value(words: Sequence[str], position: int) -> bool:
    """Return whether a word is the value of a secret-looking option before it."""
    option = words[position - 1] if position > 1 else ""
    is_option = option.startswith("-") and "=" not in option
    return is_option and looks_secret(option) and not words[position].startswith("-")


def _mask_setting(word: str) -> str:
    """Mask a word from its first secret on, and remove the user of a URL.

    >>> _mask_setting("API_KEY=abc ./ask"), _mask_setting("ask --index faq --token abc")
    ('API_KEY=***', 'ask --index faq --token ***')
    """
    word = _USER.sub("", word)
    for name in _SETTING.finditer(word):
        if looks_secret(name[0]):
            return word[: name.end()] + MASK
    return word


class Scrubber:
    """Masks known secrets in the texts of a server, which may repeat what it was sent."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {
            spelling
            for secret in secrets
            for spelling in (secret, quote(secret), quote(secret, safe=""))
        }
        long = sorted((s for s in spellings if len(s) >= _MIN_LENGTH), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, long))) if long else None

    def __call__(self, text: str) -> str:
        """Return the text with all secrets masked."""
        return self._pattern.sub(MASK, text) if self._pattern else text
