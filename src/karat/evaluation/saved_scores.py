"""Saved scores: write them as Parquet; read and check them from Parquet or JSON."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Any

import msgspec
import polars as pl

from karat.conventions import Conventions
from karat.data.data_file import PathSource, path_of
from karat.data.formats import parquet_layout
from karat.data.formats.mismatches import Mismatch
from karat.data.formats.table_files import (
    has_empty_object,
    memory_map,
    polars_source,
    suppress_panic_output,
)
from karat.data.list_cut import ListCut
from karat.errors import InputError, MeasureError
from karat.evaluation.provenance import Provenance
from karat.evaluation.scores import Scores
from karat.files import Source
from karat.measures import Measure, ScoreTable
from karat.measures.name_parser import imports
from karat.measures.plan import LEVELS
from karat.measures.presets import NO_PRESET, Preset, preset_named
from karat.measures.score_table import judged_column, upper_bound_column
from karat.measures.scoring import COUNTS

REMEDY = "write the scores again with `karat eval -o FILE`"
_VERSIONED = re.compile(rb'\s*\{\s*"karat"\s*:\s*"')


class _ListSettings(msgspec.Struct, forbid_unknown_fields=True):
    top_k: int | None = None
    score_threshold: float | None = None
    origin: dict[str, str] = {}


class _ParquetFacts(msgspec.Struct):
    """The metadata of a Parquet file."""

    conventions: dict[str, str]
    level: str
    measures: list[str]
    counts: dict[str, dict[str, int]]
    preset: str | None = None
    matching: str | None = None
    settings: _ListSettings = msgspec.field(default_factory=_ListSettings)
    loads: dict[str, str | None] = {}
    notes: dict[str, list[str]] = {}
    delivered: dict[str, dict[str, float]] = {}
    cluster: str | None = None
    n: dict[str, dict[str, int]] = {}
    provenance: Provenance | None = None


class _JsonCluster(msgspec.Struct):
    field: str


class _JsonMeasure(msgspec.Struct):
    n: int | None = None


class _JsonRun(msgspec.Struct):
    name: str
    measures: dict[str, _JsonMeasure]
    counts: dict[str, int]
    per_query: list[dict[str, Any]] | None = None
    weights: dict[str, list[int]] = {}
    holes: dict[str, list[float | None]] = {}
    load: str | None = None
    notes: list[str] = []
    delivered: dict[str, float] = {}


class _JsonDocument(msgspec.Struct):
    conventions: dict[str, str]
    level: str
    runs: list[_JsonRun]
    preset: str | None = None
    matching: str | None = None
    settings: _ListSettings = msgspec.field(default_factory=_ListSettings)
    queries: list[dict[str, Any]] | None = None
    cluster: _JsonCluster | None = None
    provenance: Provenance | None = None


def holds_scores(source: Any) -> bool:
    """Return whether a path is a file of saved scores rather than a run.

    A path with a format is a run.
    """
    path = path_of(source)
    has_format = isinstance(source, PathSource) and source.format is not None
    if path is None or has_format or not os.path.isfile(path):
        return False
    file = Source(path)
    if file.ending == ".parquet":
        try:
            return b"karat" in parquet_layout.metadata_keys(memory_map(file))
        except (parquet_layout.DamagedLayoutError, OSError):
            return False
    # Native files begin with "karat", too, but its value there is a number (the format version).
    return file.ending == ".json" and _VERSIONED.match(file.head) is not None


def write_parquet(scores: Sequence[Scores], file: IO[bytes]) -> None:
    """Write one row per run and query: the measures, then the fields of the query."""
    frames = []
    for score in scores:
        fields = _storable(score.queries)
        fields = fields.rename(lambda name: name if name == "query_id" else f"field:{name}")
        rows = score.per_query.join(fields, on="query_id", how="left", maintain_order="left")
        rows = rows.hstack(score.table.weights.rename(lambda name: f"weight:{name}"))
        rows = rows.hstack(score.table.holes.rename(lambda name: f"hole:{name}"))
        frames.append(rows.select(pl.lit(score.name).alias("run"), pl.all()))
    first = scores[0]
    facts = {
        "conventions": first.conventions.as_dict(),
        "level": first.level,
        "matching": first.matching,
        "settings": first.settings.as_dict(),
        "preset": first.preset,
        "cluster": first.cluster,
        "measures": first.keys(),
        "counts": {score.name: score.table.counts for score in scores},
        "loads": {score.name: score.load for score in scores},
        "notes": {score.name: score.notes for score in scores},
        "delivered": {score.name: score.delivered for score in scores},
        "n": {score.name: _value_counts(score) for score in scores},
        "provenance": first.provenance.as_dict(),
    }
    metadata = {"karat": msgspec.json.encode(facts).decode()}
    pl.concat(frames).write_parquet(file, metadata=metadata)


def _storable(queries: pl.DataFrame) -> pl.DataFrame:
    """Return the queries with fields that Parquet cannot store converted to JSON text."""
    unstorable = [name for name, kind in queries.schema.items() if has_empty_object(kind)]
    return queries.with_columns(
        pl.Series(name, [msgspec.json.encode(value).decode() for value in queries[name]])
        for name in unstorable
    )


def _value_counts(scores: Scores) -> dict[str, int]:
    """Return the number of queries with a value, by measure."""
    return {name: scores.per_query[name].count() for name in scores}


def read_scores(path: str | os.PathLike[str], run: str | None = None) -> Scores:
    """Read the scores of one run from JSON or Parquet."""
    source = Source(path)
    if source.ending not in (".parquet", ".json"):
        raise source.error(
            "saved scores must be .json or .parquet files",
            hint="write them with `karat eval -o FILE`",
        )
    with _damage_as_input_error(source), suppress_panic_output():
        read_file = _read_parquet if source.ending == ".parquet" else _read_json
        scores, value_counts = read_file(source, run)
        _check_scores(source, scores)
        _check_value_counts(source, scores, value_counts)
        # The order of the rows decides which queries a random test or bootstrap draws.
        order = scores.per_query["query_id"].arg_sort()
        return replace(scores, table=scores.table.rows(order), path=os.fspath(path))


def saved_run_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the runs in a file of saved scores."""
    source = Source(path)
    with _damage_as_input_error(source), suppress_panic_output():
        if source.ending == ".parquet":
            metadata = pl.read_parquet_metadata(polars_source(source))["karat"]
            return list(msgspec.json.decode(metadata, type=_ParquetFacts).counts)
        document = msgspec.json.decode(source.read(), type=_JsonDocument)
        return [run.name for run in document.runs]


@contextmanager
def _damage_as_input_error(source: Source) -> Iterator[None]:
    """Turn every failure to read the file into an error that names it."""
    try:
        yield
    except InputError as error:
        if error.path is not None:
            raise
        raise source.error(error.problem, field=error.field, hint=error.hint or REMEDY) from error
    except (
        msgspec.DecodeError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        raise source.error(
            f"the file is not a valid file of saved scores ({_reason(error)})", hint=REMEDY
        ) from error


def _reason(error: BaseException) -> str:
    if isinstance(error, pl.exceptions.PanicException):
        return "damaged values"
    if isinstance(error, msgspec.ValidationError):
        return str(Mismatch.of(error))
    return str(error).partition("\n")[0]


def _read_parquet(source: Source, run: str | None) -> tuple[Scores, dict[str, int]]:
    content = polars_source(source)
    metadata = pl.read_parquet_metadata(content).get("karat")
    if metadata is None:
        raise source.error("the file contains no scores saved by karat", hint=REMEDY)
    facts = msgspec.json.decode(metadata, type=_ParquetFacts)
    name = _run_name(source, list(facts.counts), run)
    rows = pl.read_parquet(content, glob=False).filter(pl.col("run") == name)
    preset_named(facts.preset)  # raises an error if it is unknown
    table = ScoreTable(
        tuple(_measure(name, NO_PRESET) for name in facts.measures),
        rows.select("query_id", *facts.measures),
        facts.counts[name],
        _columns_with_prefix("weight:", rows),
        _columns_with_prefix("hole:", rows),
    )
    scores = Scores(
        table,
        name=name,
        conventions=Conventions.of(facts.conventions),
        queries=rows.select("query_id").hstack(_columns_with_prefix("field:", rows)),
        level=facts.level,
        matching=facts.matching,
        settings=ListCut(**msgspec.structs.asdict(facts.settings)),
        load=facts.loads.get(name),
        notes=tuple(facts.notes.get(name, ())),
        delivered=facts.delivered.get(name, {}),
        preset=facts.preset,
        saved=facts.provenance,
    ).clustered(facts.cluster)
    return scores, facts.n.get(name, {})


def _columns_with_prefix(prefix: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the columns with this prefix, and remove it from their names."""
    columns = rows.select(column for column in rows.columns if column.startswith(prefix))
    return columns.rename(lambda name: name.removeprefix(prefix))


def _read_json(source: Source, run: str | None) -> tuple[Scores, dict[str, int]]:
    document = msgspec.json.decode(source.read(), type=_JsonDocument)
    runs = {saved.name: saved for saved in document.runs}
    if len(runs) < len(document.runs):
        raise source.error("two runs have the same name", field="runs", hint="rename one of them")
    saved = runs[_run_name(source, list(runs), run)]
    if saved.per_query is None:
        raise source.error(
            "the file does not contain the values of each query",
            hint="write it with `karat eval --per-query`, or as .parquet",
        )
    preset = preset_named(document.preset)
    measures = {name: _measure(name, preset) for name in saved.measures}
    names = {name: measure.name for name, measure in measures.items()}
    schema = {"query_id": pl.String} | dict.fromkeys(names, pl.Float64)
    queries = document.queries or [{"query_id": row["query_id"]} for row in saved.per_query]
    table = ScoreTable(
        tuple(measures.values()),
        pl.DataFrame(saved.per_query, schema=schema).rename(names),
        saved.counts,
        pl.DataFrame(saved.weights).rename(names, strict=False),
        pl.DataFrame(saved.holes, schema=dict.fromkeys(saved.holes, pl.Float64)),
    )
    scores = Scores(
        table,
        name=saved.name,
        conventions=Conventions.of(document.conventions),
        queries=pl.DataFrame(queries, infer_schema_length=None),
        level=document.level,
        matching=document.matching,
        settings=ListCut(**msgspec.structs.asdict(document.settings)),
        load=saved.load,
        notes=tuple(saved.notes),
        delivered={names.get(name, name): mean for name, mean in saved.delivered.items()},
        preset=document.preset,
        saved=document.provenance,
    ).clustered(None if document.cluster is None else document.cluster.field)
    value_counts = {
        names[name]: entry.n for name, entry in saved.measures.items() if entry.n is not None
    }
    return scores, value_counts


def _measure(name: str, preset: Preset) -> Measure:
    """Return a measure by its saved name. A file must never cause an import of other code."""
    try:
        if not imports(name):
            return preset.parse(name)
    except MeasureError:
        pass
    raise InputError(
        f"the measure {name!r} is unknown",
        field="measures",
        hint="for a measure of your own, import the module that declares it first; on the "
        "command line, add -m package.module:function",
    )


def _run_name(source: Source, names: list[str], run: str | None) -> str:
    if run is None and len(names) == 1:
        return names[0]
    if run in names:
        return str(run)
    problem = f"the file has no run {run!r}" if run else "the file contains several runs"
    choices = " or ".join(f"run={name!r}" for name in names)
    raise source.error(
        problem, hint=f"save each run in its own file; in Python, you can also pass {choices}"
    )


def _check_scores(source: Source, scores: Scores) -> None:
    """Raise an error for scores that no evaluation could have produced."""
    if scores.level not in LEVELS:
        raise source.error(
            f"the level must be {' or '.join(LEVELS)}, got {scores.level!r}",
            field="level",
            hint=REMEDY,
        )
    for query_ids, field in (
        (scores.per_query["query_id"], "query_id"),
        (scores.queries["query_id"], "queries"),
    ):
        _check_query_ids(source, query_ids, field)
    _check_counts(source, scores)
    for measure in scores.table.measures:
        _check_values(source, scores.per_query, measure.name, measure)
    for table in (scores.table.weights, scores.table.holes):
        if table.width and table.height != scores.per_query.height:
            raise source.error("a column has too few values", field=table.columns[0], hint=REMEDY)
    _check_weights(source, scores)
    _check_holes(source, scores)


def _check_query_ids(source: Source, query_ids: pl.Series, field: str) -> None:
    if query_ids.dtype != pl.String or query_ids.null_count():
        raise source.error("a query has no id", field=field, hint=REMEDY)
    if query_ids.is_duplicated().any():
        query = query_ids.filter(query_ids.is_duplicated())[0]
        raise source.error(f"query {query!r} appears more than once", field=field, hint=REMEDY)


def _check_counts(source: Source, scores: Scores) -> None:
    counts, n_queries = scores.table.counts, scores.per_query.height
    missing = [name for name in COUNTS if name not in counts]
    if missing:
        raise source.error(f"the count {missing[0]!r} is missing", field="counts", hint=REMEDY)
    if min(counts.values()) < 0:
        raise source.error("a count is negative", field="counts", hint=REMEDY)
    if counts["queries"] != n_queries:
        raise source.error(
            f"expected {counts['queries']:,} queries, got {n_queries:,}",
            field="counts",
            hint=REMEDY,
        )


def _check_value_counts(source: Source, scores: Scores, expected: dict[str, int]) -> None:
    """Raise an error if values were removed: the mean would silently leave them out."""
    for name, count in _value_counts(scores).items():
        if count != expected.get(name, count):
            raise source.error(
                f"expected {expected[name]:,} queries with a value, got {count:,}",
                field=name,
                hint=REMEDY,
            )


def _check_holes(source: Source, scores: Scores) -> None:
    for measure in scores.table.measures:
        for name in (judged_column(measure), upper_bound_column(measure)):
            if name in scores.table.holes.columns:
                _check_values(source, scores.table.holes, name, None)


def _check_weights(source: Source, scores: Scores) -> None:
    for measure in scores.table.measures:
        if measure.declaration.combine != "micro":
            continue
        weights = scores.table.weights[measure.name]
        if not weights.dtype.is_integer() or weights.null_count() or (weights < 0).any():
            raise source.error(
                "the weights of a micro average must be integers of at least 0",
                field=measure.name,
                hint=REMEDY,
            )


def _check_values(source: Source, table: pl.DataFrame, name: str, measure: Measure | None) -> None:
    """Raise an error for values that are not finite, or outside the range of the measure.

    Without a measure, values are shares.
    """
    values = table[name]
    if not values.dtype.is_float():
        raise source.error("the values are not numbers", field=name, hint=REMEDY)
    values = values.drop_nulls()
    if not values.is_finite().all():
        infinite = values.filter(~values.is_finite())[0]
        raise source.error(f"the value {infinite} is not finite", field=name, hint=REMEDY)
    if measure is not None and measure.declaration.unbounded:
        low, high, limits = -math.inf, math.inf, ""
    elif measure is None or measure.declaration.bounded:
        # Rounding may leave a mean of shares a few units in the last place above 1.
        low, high, limits = 0.0, 1 + 1e-9, "between 0 and 1"
    else:
        low, high, limits = 0.0, math.inf, "at least 0"
    outside = values.filter((values < low) | (values > high))
    if outside.len():
        raise source.error(f"a value must be {limits}, got {outside[0]}", field=name, hint=REMEDY)
