"""What all search engines have in common: options, field names, and the check before a run.

What is in this file:

- `SearchEngine` is the base class of the public classes, which hold the settings of an engine.
- `engine_from_spec` makes one from `--retriever qdrant:…` and its options.
- The functions below are used by all engines. Each engine searches once before a run, so that wrong
  settings stop karat before a file is written: `stopped_by` returns this error.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

from karat.checks import did_you_mean
from karat.data.results import RESULT_FIELDS
from karat.errors import InputError, printable
from karat.live.failures import hint_for
from karat.live.protocol import AttemptError, Retriever, Search
from karat.live.query_vectors import QueryVectors
from karat.live.resume import SOURCE
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.embedders import (
    EmbeddingFunction,
    create_embedder,
    refuse_endpoint_options,
)
from karat.live.retrievers.search_engines.template import VECTOR

FORMS = {
    "elasticsearch": "elasticsearch:http://localhost:9200/INDEX",
    "opensearch": "opensearch:http://localhost:9200/INDEX",
    "qdrant": "qdrant:http://localhost:6333/COLLECTION, or qdrant:FOLDER/COLLECTION",
    "pgvector": "pgvector:postgresql://user@host/database?table=TABLE",
}
"""How the spec of each engine is written."""
_CLASSES = {
    "elasticsearch": ("elasticsearch", "Elasticsearch"),
    "opensearch": ("elasticsearch", "OpenSearch"),
    "qdrant": ("qdrant", "Qdrant"),
    "pgvector": ("pgvector", "PgVector"),
}
_CHECK_HINTS = {
    "BadAnswer": "check that this is the address of the engine, and the names of its fields "
    "(--field, fields=)",
    "Timeout": "check that the engine is running, and is not overloaded",
}
_FILE = "@"
_TEXT_OPTIONS = ("template", "filter")  # options whose value may be a file


class SearchEngine(ABC):
    """The settings of a search engine; `karat.retrieve` runs it."""

    engine: ClassVar[str]
    """The name of the engine in a spec and in the header of a run."""
    option_names: ClassVar[tuple[str, ...]]
    """The parameters that `--retriever-option` sets."""
    embedder: str | EmbeddingFunction | None
    embedding_model: str | None
    embedding_key_env: str | None

    @classmethod
    @abstractmethod
    def from_address(cls, address: str, options: Mapping[str, Any]) -> Self:
        """Create the engine from the part of a spec after the name of the engine."""

    @abstractmethod
    def bind(self, search: Search, fields: Fields, headers: Mapping[str, str]) -> Retriever:
        """Return a retriever with these search settings; wrong settings are an InputError."""


def engine_of(spec: str) -> str | None:
    """Return the engine that a spec names, or None."""
    engine = spec.partition(":")[0].lower()
    return engine if engine in FORMS and ":" in spec else None


def engine_from_spec(
    spec: str, options: Iterable[str] | Mapping[str, Any], embedding: Mapping[str, Any]
) -> SearchEngine:
    """Create a search engine from a spec such as `qdrant:http://localhost:6333/faq`.

    `embedding` has the options of the embedder.
    """
    engine = engine_of(spec)
    assert engine is not None
    module, name = _CLASSES[engine]
    engine_class: type[SearchEngine] = getattr(
        import_module(f"karat.live.retrievers.search_engines.{module}"), name
    )
    values = _parse_options(options, engine_class)
    return engine_class.from_address(spec.partition(":")[2], {**values, **embedding})


def _parse_options(
    options: Iterable[str] | Mapping[str, Any], engine_class: type[SearchEngine]
) -> dict[str, Any]:
    """Return options by name. A value `@FILE` of a template or a filter is a file."""
    if not isinstance(options, Mapping):
        options = _parse_pairs(options)
    names = engine_class.option_names
    values: dict[str, Any] = {}
    for name, value in options.items():
        if name not in names:
            similar = did_you_mean(name, names) or ""
            raise _option_error(
                name,
                f"{engine_class.engine} has no option {name!r}",
                f"{similar} the options are {', '.join(names)}".lstrip(),
            )
        is_file = name in _TEXT_OPTIONS and isinstance(value, str) and value.startswith(_FILE)
        values[name] = Path(value.removeprefix(_FILE)) if is_file else value
    return values


def _parse_pairs(pairs: Iterable[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals:
            raise _option_error(pair, '"=" is missing', "write NAME=VALUE, as in vector=embedding")
        if name in values:
            raise _option_error(name, "the option is set twice", "set each option once")
        values[name] = value
    return values


def _option_error(name: str, problem: str, hint: str) -> InputError:
    return InputError(problem, field=f"retriever option {printable(name)}", hint=hint)


def missing_part(engine: str, part: str) -> InputError:
    """Return the error for a spec without the name of an index, a collection or a table."""
    return InputError(
        f"the address has no {part}", field="retriever", hint=f"write {FORMS[engine]}"
    )


def missing_extra(engine: str, package: str, extra: str) -> InputError:
    """Return the error for a library that is not installed."""
    return InputError(
        f"{engine} requires {package}, which is not installed", hint=f"pip install 'karat[{extra}]'"
    )


def result_fields(fields: Fields, engine: str, also: tuple[str, ...] = ()) -> Fields:
    """Return the field names; raise an error for those of a request, which a template replaces."""
    for name in fields.paths:
        if name not in (*RESULT_FIELDS, *also):
            raise InputError(
                f"{engine} has no field {name!r} to map",
                field=f"field {name}={fields.paths[name]}",
                hint=f"map a field of the results: {', '.join((*RESULT_FIELDS, *also))}",
            )
    return fields


def relative_to(document: str, outside: tuple[str, ...], fields: Fields) -> Fields:
    """Return the field names with the key of the document before paths that start in it."""
    return Fields(
        {
            name: path
            if name not in RESULT_FIELDS or path.split(".")[0] in outside
            else f"{document}.{path}"
            for name, path in fields.paths.items()
        }
    )


def query_vectors(
    engine: SearchEngine, names: frozenset[str], shown_name: str
) -> QueryVectors | None:
    """Return what embeds the queries, if the template has a placeholder for a vector."""
    if engine.embedder is None and VECTOR in names:
        raise InputError(
            f"{shown_name} needs an embedder for the vectors of the queries",
            field="embedder",
            hint="add --embedder (embedder=) with the model that embedded the stored texts: "
            "package.module:name, a function texts -> array; https://host/v1; or wordllama",
        )
    if engine.embedder is None:
        refuse_endpoint_options(engine.embedding_model, engine.embedding_key_env)
        return None
    if VECTOR not in names:
        raise InputError(
            "the embedder is not used: the query has no {{vector}}",
            field="embedder",
            hint="remove the embedder, or write {{vector}} in the template",
        )
    return QueryVectors(
        create_embedder(engine.embedder, engine.embedding_model, engine.embedding_key_env)
    )


def engine_settings(
    engine: SearchEngine,
    vectors: QueryVectors | None,
    fields: Fields,
    headers: Mapping[str, str],
    **options: Any,
) -> dict[str, Any]:
    """Return the settings for the header of a run; those that are empty are left out."""
    embedding = {} if vectors is None else vectors.settings
    source = embedding.pop("embedder_sha256", None)
    engine_options = {"name": engine.engine, **options, **embedding}
    settings = {
        "engine": {name: value for name, value in engine_options.items() if value},
        SOURCE: source,
        "headers": sorted(headers),
        "fields": fields.as_dict(),
    }
    return {name: value for name, value in settings.items() if value}


def check_dimension(vectors: QueryVectors | None, dimension: int | None, where: str) -> None:
    """Raise an error if the vectors of the embedder have another dimension than those stored."""
    if vectors is not None and dimension is not None and vectors.dimension != dimension:
        raise InputError(
            f"{vectors.settings['embedder']} returns vectors with {vectors.dimension:,} values, "
            f"but {where} has vectors with {dimension:,} values",
            field="embedder",
            hint="use the model that embedded the stored texts",
        )


def stopped_by(error: AttemptError, settings: Mapping[str, Any]) -> InputError:
    """Return the error that stops karat before the run, for a search that failed."""
    return InputError(
        f"{error.kind}: {error.message}",
        field="retriever",
        hint=_CHECK_HINTS.get(error.kind)
        or hint_for(error.kind, settings)
        or "correct the address or the options of the engine",
    )


def options_in_use(engine: Any, names: Iterable[str]) -> list[str]:
    """Return the names of options that were set."""
    defaults = {field.name: field.default for field in dataclasses.fields(engine)}
    return [name for name in names if getattr(engine, name) != defaults[name]]


def refuse_with_template(engine: Any, names: Iterable[str]) -> None:
    """Raise an error for an option that a template replaces."""
    if engine.template is not None and (used := options_in_use(engine, names)):
        raise InputError(
            f"a template replaces the option {used[0]!r}",
            field="template",
            hint=f"remove {used[0]!r}, and write it into the template",
        )
