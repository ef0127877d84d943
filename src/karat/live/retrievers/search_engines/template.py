"""Query templates: JSON or SQL with placeholders for the query, its vector and the search settings.

What is in this file:

- `JsonTemplate` is the body of a request. Placeholders are replaced in the parsed JSON, not in its
  text, so that no query can change its structure, whatever characters it has.
- `SqlTemplate` is a statement whose placeholders become parameters of the statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.checks import did_you_mean
from karat.errors import InputError, printable
from karat.files import Source, decode
from karat.live.protocol import Search

QUERY, VECTOR, LIMIT, PREFETCH = "query", "vector", "limit", "prefetch_limit"
PLACEHOLDERS = (QUERY, VECTOR, LIMIT, PREFETCH)
_SETTINGS = {LIMIT: "top_k", PREFETCH: "prefetch_limit"}
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
# A placeholder outside of a JSON string, as in `"size": {{limit}}`.
_BARE_PLACEHOLDER = re.compile(r'("(?:[^"\\]|\\.)*")|(\{\{\s*\w+\s*\}\})')
_IN_QUOTES = re.compile(r"'[^']*'")


@dataclass(frozen=True)
class JsonTemplate:
    """A JSON object with placeholders.

    >>> template = JsonTemplate.of('{"query": "{{query}}", "size": {{limit}}}', "template")
    >>> template.fill({"query": 'say "hi"', "limit": 5})
    {'query': 'say "hi"', 'size': 5}
    """

    content: Mapping[str, Any]

    @classmethod
    def of(cls, template: Any, field: str) -> JsonTemplate:
        """Parse a template: an object, its JSON text, or the path of a file with it."""
        parsed = cls(parse_json(template, field))
        check_placeholders(parsed.names, field, limit='"{{limit}}"')
        for text in _texts(parsed.content):
            if VECTOR in _names(text) and not _PLACEHOLDER.fullmatch(text):
                raise _bad_template(
                    f"{{{{vector}}}} is only a part of the text {text!r}",
                    field,
                    'write it as the whole value: "query_vector": "{{vector}}"',
                )
        return parsed

    @property
    def names(self) -> frozenset[str]:
        """The names of all placeholders."""
        return frozenset(name for text in _texts(self.content) for name in _names(text))

    def fill(self, values: Mapping[str, Any]) -> Any:
        """Return the object with values. A text that is only a placeholder keeps their type."""
        return _filled(self.content, values)


@dataclass(frozen=True)
class SqlTemplate:
    """An SQL query with placeholders.

    >>> SqlTemplate.of("SELECT id FROM faq WHERE id <> '5%' LIMIT {{limit}} -- {{query}}").statement
    "SELECT id FROM faq WHERE id <> '5%%' LIMIT %(limit)s -- %(query)s"
    """

    text: str

    @classmethod
    def of(cls, template: str | Path) -> SqlTemplate:
        """Parse a template: its text, or the path of a file with it."""
        text = read_text(template, "template").strip().rstrip(";")
        if not re.match(r"(select|with)\b", text, re.IGNORECASE):
            raise _bad_template(
                "the template is not an SQL query",
                "template",
                "write SELECT … with the columns id, score, text, …",
            )
        check_placeholders(frozenset(_names(text)), "template", limit="LIMIT {{limit}}")
        check_not_quoted(text, "template")
        return cls(text)

    @property
    def names(self) -> frozenset[str]:
        """The names of all placeholders."""
        return frozenset(_names(self.text))

    @property
    def statement(self) -> str:
        """The statement for psycopg, with a named parameter for each placeholder."""
        return to_parameters(self.text)


def to_parameters(text: str) -> str:
    """Return SQL with named parameters instead of placeholders; a percent sign is escaped."""

    def parameter(match: re.Match[str]) -> str:
        return f"%({match[1]})s" + ("::vector" if match[1] == VECTOR else "")

    return _PLACEHOLDER.sub(parameter, text.replace("%", "%%"))


def values_for(text: str, search: Search, vector: list[float] | None) -> dict[str, Any]:
    """Return the values of all placeholders for a query."""
    prefetch = max(search.prefetch_limit, search.top_k)
    return {QUERY: text, VECTOR: vector, LIMIT: search.top_k, PREFETCH: prefetch}


def accepted_settings(names: Collection[str]) -> frozenset[str]:
    """Return the search settings that a template with these placeholders uses."""
    return frozenset(setting for name, setting in _SETTINGS.items() if name in names)


def check_placeholders(names: frozenset[str], field: str, limit: str) -> None:
    """Raise an error for unknown placeholders, and if a necessary one is missing."""
    for name in sorted(names - set(PLACEHOLDERS)):
        similar = did_you_mean(name, PLACEHOLDERS, show=lambda word: f"{{{{{word}}}}}") or ""
        known = ", ".join(f"{{{{{word}}}}}" for word in PLACEHOLDERS)
        raise _bad_template(
            f"unknown placeholder {{{{{printable(name)}}}}}",
            field,
            f"{similar} the placeholders are {known}".lstrip(),
        )
    if not names & {QUERY, VECTOR}:
        raise _bad_template(
            "the template has no placeholder for the query",
            field,
            "write {{query}} where the text of the query belongs, or {{vector}} for its embedding",
        )
    if LIMIT not in names:
        raise _bad_template(
            "the template has no placeholder for the number of results",
            field,
            f"write {limit} where the engine expects the number of results (--top-k, top_k=)",
        )


def check_not_quoted(text: str, field: str) -> None:
    """Raise an error for a placeholder in an SQL string, which would not be replaced."""
    for quoted in _IN_QUOTES.findall(text):
        if _PLACEHOLDER.search(quoted):
            raise _bad_template(
                f"the placeholder in {quoted} is in quotes",
                field,
                "remove the quotes: a placeholder becomes a parameter of the query",
            )


def parse_json(value: Any, field: str) -> Mapping[str, Any]:
    """Return a JSON object: a mapping, its text, or the path of a file with the text."""
    if isinstance(value, Mapping):
        return value
    text = _quote_bare_placeholders(read_text(value, field))
    hint = """write a JSON object: '{"query": {"match": {"text": "{{query}}"}}}'"""
    path = value if isinstance(value, Path) else None
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        line = error.lineno if path else None
        problem = f"the text is not JSON: {error}"
        raise InputError(problem, path=path, line=line, field=field, hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise InputError("the JSON is too large", path=path, field=field, hint=hint) from error
    if not isinstance(content, dict):
        raise InputError("the JSON is not an object", path=path, field=field, hint=hint)
    return content


def read_text(value: Any, field: str) -> str:
    """Return a text, or the content of a file."""
    if isinstance(value, Path):
        source = Source(value)
        return decode(source.read(), source)
    if isinstance(value, str):
        return value
    raise InputError(
        f"expected text or a path, got an object of type {type(value).__name__}",
        field=field,
        hint="pass a string, or pathlib.Path(…) for a file",
    )


def _quote_bare_placeholders(text: str) -> str:
    def quoted(match: re.Match[str]) -> str:
        return match[1] or f'"{match[2]}"'

    return _BARE_PLACEHOLDER.sub(quoted, text)


def _filled(content: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(content, Mapping):
        return {key: _filled(child, values) for key, child in content.items()}
    if isinstance(content, (list, tuple)):
        return [_filled(child, values) for child in content]
    if not isinstance(content, str):
        return content
    if whole := _PLACEHOLDER.fullmatch(content):
        return values[whole[1]]
    return _PLACEHOLDER.sub(_text_of(values), content)


def _text_of(values: Mapping[str, Any]) -> Callable[[re.Match[str]], str]:
    return lambda match: str(values[match[1]])


def _names(text: str) -> list[str]:
    return [match[1] for match in _PLACEHOLDER.finditer(text)]


def _texts(content: Any) -> Iterator[str]:
    """Yield all strings of a JSON value, without keys."""
    if isinstance(content, Mapping):
        for child in content.values():
            yield from _texts(child)
    elif isinstance(content, (list, tuple)):
        for child in content:
            yield from _texts(child)
    elif isinstance(content, str):
        yield content


def _bad_template(problem: str, field: str, hint: str) -> InputError:
    return InputError(problem, field=field, hint=hint)
