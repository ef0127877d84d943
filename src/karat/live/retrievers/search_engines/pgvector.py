"""PostgreSQL with pgvector: the nearest rows of a table, or an SQL template, by psycopg."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, LifoQueue
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from karat import checks
from karat.checks import did_you_mean
from karat.errors import InputError, printable
from karat.live.instrumentation import stage
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search
from karat.live.query_vectors import PROBE
from karat.live.redaction import Scrubber, safe_url, secrets_of_url
from karat.live.retrievers.answers import Fields, first_line, parse_answer
from karat.live.retrievers.embedders import EmbeddingFunction
from karat.live.retrievers.search_engines.engine import (
    FORMS,
    SearchEngine,
    check_dimension,
    engine_settings,
    missing_extra,
    missing_part,
    query_vectors,
    refuse_with_template,
    result_fields,
    stopped_by,
)
from karat.live.retrievers.search_engines.template import (
    LIMIT,
    VECTOR,
    SqlTemplate,
    accepted_settings,
    check_not_quoted,
    read_text,
    to_parameters,
    values_for,
)

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

DISTANCES = {"cosine": "<=>", "l2": "<->", "inner": "<#>"}
"""The operator of each distance; that of `inner` returns the negative inner product."""
DEFAULT_VECTOR, DEFAULT_DISTANCE = "embedding", "cosine"
SEARCH_STAGE = "search"
"""The stage of the time that the engine takes."""
_VECTOR_TYPES = ("vector", "halfvec")
_NOT_SELECTED = (*_VECTOR_TYPES, "sparsevec", "bit", "tsvector", "bytea")
_DISTANCE = "karat_distance"
_SCHEMES = ("postgresql", "postgres")
_COLUMNS = """
SELECT a.attname, t.typname, n.nspname, a.atttypmod
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE a.attrelid = to_regclass(%(table)s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_TABLES = """
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE n.nspname || '.' END || c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^(pg_|information_schema$)'
ORDER BY 1
"""


@dataclass(frozen=True)
class PgVector(SearchEngine):
    """A table of PostgreSQL with a column of pgvector, for `karat.retrieve`.

    Before a run, karat checks the table and searches once, so that a wrong setting is one error.
    Scores are higher for closer rows. Requires `pip install 'karat[pgvector]'`.

    Parameters
    ----------
    url : str
        The address of the database: `"postgresql://user@localhost/support"`. The password may be in
        the environment variable PGPASSWORD or in `~/.pgpass`, as for psql.
    table : str, optional
        The table or view, exactly as it is stored, optionally with its schema: `"faq.chunks"`.
        Required without a template.
    embedder : callable or str, optional
        Embeds the queries: a function `texts -> array`; its name, `package.module:name`; the URL of
        an OpenAI-compatible server, `"https://host/v1"`; or `"wordllama"`.
        Required unless a template has no `{{vector}}`.
    vector : str, optional
        The column with the vectors, of type vector or halfvec. Default: `"embedding"`.
    distance : {"cosine", "l2", "inner"}, optional
        The distance that ranks the rows, which should be that of the index. Default: `"cosine"`.
        The score is 1 − the cosine distance, the negative l2 distance, or the inner product.
    filter : str or Path, optional
        An SQL condition for the rows, or a file with it: `"language = 'en'"`. It may have the
        placeholder `{{query}}`.
    template : str or Path, optional
        An SQL query, instead of the options before, or a file with it, with the placeholders
        `{{query}}`, `{{vector}}`, `{{limit}}` and `{{prefetch_limit}}`. Its columns are those of a
        result: `"SELECT id, text, ts_rank(words, plainto_tsquery({{query}})) AS score FROM faq
        ORDER BY score DESC, id LIMIT {{limit}}"`.
    embedding_model : str, optional
        The name of the model, for an embedder on a server.
    embedding_key_env : str, optional
        The environment variable with the key of this server. The key is never stored.

    Examples
    --------
    >>> from karat.live.retrievers import PgVector
    >>> engine = PgVector(
    ...     "postgresql://me@localhost/support", "chunks", embedder="my_model:embed"
    ... )

    `karat.retrieve(engine, gold, fields=["id=chunk_id", "text=body"])` runs it.
    """

    engine: ClassVar[str] = "pgvector"
    option_names: ClassVar[tuple[str, ...]] = ("vector", "distance", "filter", "template")

    url: str
    table: str | None = None
    embedder: str | EmbeddingFunction | None = None
    vector: str | None = None
    distance: str | None = None
    filter: str | Path | None = None
    template: str | Path | None = None
    embedding_model: str | None = None
    embedding_key_env: str | None = None

    @classmethod
    def from_address(cls, address: str, options: Mapping[str, Any]) -> Self:
        """Create the engine from `postgresql://user@host/database?table=TABLE`."""
        url, _, query = address.partition("?")
        parameters = [pair for pair in query.split("&") if pair]
        tables = [value for name, value in parse_qsl(query) if name == "table"]
        rest = "&".join(pair for pair in parameters if not pair.startswith("table="))
        return cls(f"{url}?{rest}" if rest else url, tables[0] if tables else None, **options)

    def bind(self, search: Search, fields: Fields, headers: Mapping[str, str]) -> Retriever:
        """Return a retriever, after one search that checks the settings."""
        if headers:
            raise InputError(
                "pgvector has no HTTP headers",
                field="header",
                hint="set the password in the environment variable PGPASSWORD, or in ~/.pgpass",
            )
        retriever = _TableRetriever(self, search, fields)
        retriever.check()
        return retriever


@dataclass(frozen=True)
class _Column:
    name: str
    type: str
    schema: str
    """The schema of the type."""
    modifier: int
    """For vectors, the dimension; -1 if it is not declared."""


class _TableRetriever(Retriever):
    """Runs one SQL query per search, in threads with a connection each."""

    is_async = False

    def __init__(self, engine: PgVector, search: Search, fields: Fields) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise missing_extra("pgvector", "psycopg", "pgvector") from None
        result_fields(fields, engine.engine)
        refuse_with_template(engine, ("table", "vector", "distance", "filter"))
        parts = _checked_url(engine.url)
        if engine.table is None and engine.template is None:
            raise missing_part(engine.engine, "table")
        self._engine = engine
        self._search = search
        self._fields = fields
        self._scrub = Scrubber(_secrets(parts))
        self._distance = checks.one_of(engine.distance or DEFAULT_DISTANCE, "distance", DISTANCES)
        self._template = None if engine.template is None else SqlTemplate.of(engine.template)
        self._filter = None if engine.filter is None else read_text(engine.filter, "filter")
        if self._filter is not None:
            check_not_quoted(self._filter, "filter")
        names = frozenset({VECTOR, LIMIT}) if self._template is None else self._template.names
        self.accepts = accepted_settings(names)
        self._vectors = query_vectors(engine, names, "pgvector")
        self.name = f"pgvector:{_shown_url(engine.url)}"
        own = self._template is None
        self.settings = engine_settings(
            engine,
            self._vectors,
            fields,
            {},
            table=engine.table,
            vector=(engine.vector or DEFAULT_VECTOR) if own else None,
            distance=self._distance if own else None,
            filter=self._filter,
            template=self._template and self._template.text,
        )
        self._connections: LifoQueue[psycopg.Connection[Any]] = LifoQueue()
        self._statement: str | sql.Composed = ""

    def check(self) -> None:
        """Check the table and search once; raise an InputError if the settings are wrong."""
        try:
            if self._template is None:
                with self._connection() as connection:
                    self._statement = self._compose(connection)
            else:
                self._statement = self._template.statement
            self.parse(self.retrieve(Query("-", PROBE)))
        except AttemptError as error:
            raise stopped_by(error, self.settings) from error
        finally:
            self._close()

    async def open(self, jobs: int) -> None:
        """Open one connection per job, so that no query waits for its connection.

        If the database allows fewer, the queries without a connection try again.
        """
        with suppress(AttemptError):
            for _ in range(jobs):
                self._connections.put(await asyncio.to_thread(self._connect))

    async def close(self) -> None:
        """Close the connections."""
        self._close()

    def retrieve(self, query: Query) -> list[dict[str, Any]]:
        """Embed the query if the statement needs its vector, and return the rows."""
        vector = None if self._vectors is None else self._vectors(query.text)
        values = values_for(query.text, self._search, vector)
        if vector is not None:
            values[VECTOR] = f"[{','.join(map(repr, vector))}]"
        with self._connection() as connection, stage(SEARCH_STAGE):
            cursor = connection.execute(self._statement, values)
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def parse(self, response: Any) -> Answer:
        """Convert the rows; a distance becomes a score, and equal scores are ordered by id."""
        if self._template is not None:
            return parse_answer({"results": response}, self._fields)
        # The cosine distance to a vector of zeros is not a number.
        rows = [row for row in response if not math.isnan(row[_DISTANCE])]
        answer = parse_answer(
            {"results": [{**row, "score": self._score(row.pop(_DISTANCE))} for row in rows]},
            self._fields,
        )
        if "score" not in self._fields.paths:
            answer.results.sort(key=lambda result: (-(result.score or 0.0), str(result.id)))
        return answer

    def _score(self, distance: float) -> float:
        return 1.0 - distance if self._distance == "cosine" else 0.0 - distance

    def _compose(self, connection: psycopg.Connection[Any]) -> sql.Composed:
        """Return the statement for a table, after checking its columns."""
        from psycopg import sql

        assert self._engine.table is not None
        table = sql.Identifier(*self._engine.table.split("."))
        columns = self._columns(connection, table.as_string(connection))
        vector = self._vector_column(columns)
        self._check_fields(columns)
        selected = [c.name for c in columns if c.type not in _NOT_SELECTED and c.name != _DISTANCE]
        # The type and its operators may be in a schema that is not on the search path.
        distance = sql.SQL("{} OPERATOR({}.{}) %(vector)s::{}").format(
            sql.Identifier(vector.name),
            sql.Identifier(vector.schema),
            sql.SQL(DISTANCES[self._distance]),
            sql.Identifier(vector.schema, vector.type),
        )
        condition = sql.SQL("{} IS NOT NULL").format(sql.Identifier(vector.name))
        if self._filter is not None:
            # The condition is SQL of the user, like a template.
            condition += sql.SQL(f" AND ({to_parameters(self._filter)}\n)")
        return sql.SQL("SELECT {}, {} AS {} FROM {} WHERE {} ORDER BY {} LIMIT %(limit)s").format(
            sql.SQL(", ").join(map(sql.Identifier, selected)),
            distance,
            sql.Identifier(_DISTANCE),
            table,
            condition,
            sql.Identifier(_DISTANCE),
        )

    def _columns(self, connection: psycopg.Connection[Any], table: str) -> list[_Column]:
        rows = connection.execute(_COLUMNS, {"table": table}).fetchall()
        if not rows:
            tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
            listed = ", ".join(map(printable, tables[:12]))
            raise InputError(
                f"the table {self._engine.table!r} was not found",
                field="retriever",
                hint=did_you_mean(self._engine.table, tables)
                or f"the tables of the database: {listed or 'none'}",
            )
        return [_Column(*row) for row in rows]

    def _vector_column(self, columns: list[_Column]) -> _Column:
        name = self._engine.vector or DEFAULT_VECTOR
        vectors = [column for column in columns if column.type in _VECTOR_TYPES]
        for column in vectors:
            if column.name == name:
                dimension = column.modifier if column.modifier > 0 else None
                check_dimension(self._vectors, dimension, f"the column {name!r}")
                return column
        listed = ", ".join(repr(column.name) for column in vectors)
        raise InputError(
            f"the table {self._engine.table!r} has no column {name!r} of type vector or halfvec",
            field="vector",
            hint=f"set its column: {listed} (--retriever-option vector=NAME)"
            if vectors
            else "add a column of pgvector to the table, or choose another table",
        )

    def _check_fields(self, columns: list[_Column]) -> None:
        """Raise an error for a field that is mapped to a column that does not exist."""
        names = [column.name for column in columns if column.type not in _NOT_SELECTED]
        for field, path in self._fields.paths.items():
            if path not in names and path.split(".")[0] not in names:
                similar = did_you_mean(path, names) or ""
                raise InputError(
                    f"the table {self._engine.table!r} has no column {path!r}",
                    field=f"field {field}={path}",
                    hint=f"{similar} its columns are {', '.join(names)}".lstrip(),
                )

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection; its errors become failed attempts, and a broken one is replaced."""
        import psycopg

        try:
            connection = self._connections.get_nowait()
        except Empty:
            connection = self._connect()
        try:
            yield connection
        except psycopg.Error as error:
            is_lost = connection.closed or isinstance(error, psycopg.OperationalError)
            raise AttemptError(
                "ConnectionError" if connection.closed else type(error).__name__,
                self._message(error),
                retryable=is_lost,
            ) from error
        finally:
            if not connection.closed:
                self._connections.put(connection)

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        try:
            return psycopg.connect(
                self._engine.url, autocommit=True, prepare_threshold=None, client_encoding="utf8"
            )
        except psycopg.Error as error:
            raise AttemptError("ConnectionError", self._message(error)) from error

    def _message(self, error: psycopg.Error) -> str:
        parts = (error.diag.message_primary, error.diag.message_hint)
        text = "; ".join(part for part in parts if part) or str(error)
        return first_line(self._scrub(" ".join(text.split())))

    def _close(self) -> None:
        while not self._connections.empty():
            self._connections.get_nowait().close()


def _checked_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in _SCHEMES and "://" in url and (parts.port or 1) > 0
    except ValueError:
        is_valid = False
    if not is_valid:
        # The URL is not shown, because it cannot be parsed and may contain a secret anywhere.
        raise InputError(
            "the address of the database is invalid",
            field="retriever",
            hint=f"write {FORMS['pgvector']}",
        )
    return parts


def _secrets(parts: SplitResult) -> list[str]:
    """Return the secrets of a URL; the user is shown in messages of PostgreSQL, as in psql."""
    host = parts.netloc.rpartition("@")[2]
    passwords = [parts.password, unquote(parts.password)] if parts.password else []
    return [*passwords, *secrets_of_url(parts._replace(netloc=host))]


def _shown_url(url: str) -> str:
    """Return a URL without its secrets; an empty host keeps its slashes."""
    return re.sub(r"^(\w+):/(?!/)", r"\1:///", safe_url(url))
