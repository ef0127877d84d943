"""Saved scores: written as Parquet, and read back after everything in the file is checked."""

from __future__ import annotations

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
from karat.data.formats.table_files import (
    has_empty_object,
    memory_map,
    polars_source,
    suppress_panic_output,
)
from karat.data.list_cut import ListCut
from karat.errors import InputError, MeasureError
from karat.evaluation.scores import Scores
from karat.files import Source
from karat.measures import Measure, ScoreTable
from karat.measures.name_parser import imports
from karat.measures.plan import LEVELS
from karat.measures.presets import NO_PRESET, Preset, preset_named
from karat.measures.score_table import judged_column, upper_bound_column
from karat.measures.scoring import COUNTS

REMEDY = "write the scores again with karat eval -o FILE"


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
    n: dict[str, dict[str, int]] = {}


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


def holds_scores(given: Any) -> bool:
    """Return whether a path leads to scores that karat wrote, rather than to a run.

    If a format is given, it is a run.
    """
    path = path_of(given)
    has_format = isinstance(given, PathSource) and given.format is not None
    if path is None or has_format or not os.path.isfile(path):
        return False
    source = Source(path)
    if source.ending == ".parquet":
        try:
            return b"karat" in parquet_layout.metadata_keys(memory_map(source))
        except (parquet_layout.DamagedLayoutError, OSError):
            return False
    # Native files begin likewise, but with a number: the version of the format.
    return source.ending == ".json" and _VERSIONED.match(source.head) is not None


def write_parquet(scores: Sequence[Scores], file: IO[bytes]) -> None:
    """Write one row per run and query, with the fields of the query behind the measures."""
    frames = []
    for each in scores:
        fields = _storable(each.queries)
        fields = fields.rename(lambda c: c if c == "query_id" else f"field:{c}")
        rows = each.per_query.join(fields, on="query_id", how="left", maintain_order="left")
        rows = rows.hstack(each.table.weights.rename(lambda c: f"weight:{c}"))
        rows = rows.hstack(each.table.holes.rename(lambda c: f"hole:{c}"))
        frames.append(rows.select(pl.lit(each.name).alias("run"), pl.all()))
    first = scores[0]
    facts = {
        "conventions": first.conventions.as_dict(),
        "level": first.level,
        "matching": first.matching,
        "settings": first.settings.as_dict(),
        "preset": first.preset,
        "measures": first.keys(),
        "counts": {each.name: each.table.counts for each in scores},
        "loads": {each.name: each.load for each in scores},
        "notes": {each.name: each.notes for each in scores},
        "delivered": {each.name: each.delivered for each in scores},
        "n": {each.name: _numbers_of_values(each) for each in scores},
    }
    metadata = {"karat": msgspec.json.encode(facts).decode()}
    pl.concat(frames).write_parquet(file, metadata=metadata)


def _storable(queries: pl.DataFrame) -> pl.DataFrame:
    """Return fields of queries with those that Parquet cannot hold as JSON text."""
    unstorable = [name for name, kind in queries.schema.items() if has_empty_object(kind)]
    return queries.with_columns(
        pl.Series(name, [msgspec.json.encode(value).decode() for value in queries[name]])
        for name in unstorable
    )


def _numbers_of_values(scores: Scores) -> dict[str, int]:
    """Return how many queries have a value, by measure."""
    return {name: scores.per_query[name].count() for name in scores}


def read_scores(path: str | os.PathLike[str], run: str | None = None) -> Scores:
    """Read the scores of one run from JSON or Parquet."""
    source = Source(path)
    if source.ending not in (".parquet", ".json"):
        raise source.error("scores are read from .json and .parquet", hint="write them so first")
    with _refusing_damage(source), suppress_panic_output():
        read_file = _read_parquet if source.ending == ".parquet" else _read_json
        scores, n = read_file(source, run)
        _check(source, scores)
        _check_numbers_of_values(source, scores, n)
        # Whoever sorted the file another way must not change which query is drawn when.
        order = scores.per_query["query_id"].arg_sort()
        return replace(scores, table=scores.table.rows(order), path=os.fspath(path))


@contextmanager
def _refusing_damage(source: Source) -> Iterator[None]:
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
        is_panic = isinstance(error, pl.exceptions.PanicException)
        reason = "damaged values" if is_panic else str(error).partition("\n")[0]
        raise source.error(
            f"these are not scores that karat wrote ({reason})", hint=REMEDY
        ) from error


def _read_parquet(source: Source, run: str | None) -> tuple[Scores, dict[str, int]]:
    content = polars_source(source)
    metadata = pl.read_parquet_metadata(content).get("karat")
    if metadata is None:
        raise source.error("this file holds no scores", hint="write it with karat")
    facts = msgspec.json.decode(metadata, type=_ParquetFacts)
    name = _pick(source, list(facts.counts), run)
    rows = pl.read_parquet(content, glob=False).filter(pl.col("run") == name)
    preset_named(facts.preset)  # refuses an unknown one
    table = ScoreTable(
        tuple(_measure(name, NO_PRESET) for name in facts.measures),
        rows.select("query_id", *facts.measures),
        facts.counts[name],
        _behind("weight:", rows),
        _behind("hole:", rows),
    )
    scores = Scores(
        table,
        name=name,
        conventions=Conventions.of(facts.conventions),
        queries=rows.select("query_id").hstack(_behind("field:", rows)),
        level=facts.level,
        matching=facts.matching,
        settings=ListCut(**msgspec.structs.asdict(facts.settings)),
        load=facts.loads.get(name),
        notes=tuple(facts.notes.get(name, ())),
        delivered=facts.delivered.get(name, {}),
        preset=facts.preset,
    )
    return scores, facts.n.get(name, {})


def _behind(mark: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the columns with this prefix, without it."""
    marked = rows.select(column for column in rows.columns if column.startswith(mark))
    return marked.rename(lambda c: c.removeprefix(mark))


def _read_json(source: Source, run: str | None) -> tuple[Scores, dict[str, int]]:
    document = msgspec.json.decode(source.read(), type=_JsonDocument)
    runs = {saved.name: saved for saved in document.runs}
    if len(runs) < len(document.runs):
        raise source.error("two runs have the same name", field="runs", hint="rename one of them")
    saved = runs[_pick(source, list(runs), run)]
    if saved.per_query is None:
        raise source.error(
            "the values of the queries are not in it",
            hint="write it with karat eval --per-query, or as .parquet",
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
    )
    n = {names[name]: entry.n for name, entry in saved.measures.items() if entry.n is not None}
    return scores, n


def _measure(name: str, preset: Preset) -> Measure:
    """Return a measure of saved scores; what a file names is never imported."""
    try:
        if not imports(name):
            return preset.parse(name)
    except MeasureError:
        pass
    raise InputError(
        f"there is no measure {name!r}",
        field="measures",
        hint="if it is a measure of your own, import the module that declares it first; on the "
        "command line, name it: -m package.module:function",
    )


def _pick(source: Source, names: list[str], run: str | None) -> str:
    if run is None and len(names) == 1:
        return names[0]
    if run in names:
        return str(run)
    problem = f"there is no run {run!r} in it" if run else "there are several runs in it"
    known = ", ".join(map(repr, names))
    raise source.error(problem, hint=f"save one alone, or in Python say run= one of {known}")


def _check(source: Source, scores: Scores) -> None:
    """Refuse scores that no evaluation could have given."""
    counts = scores.table.counts
    if scores.level not in LEVELS:
        raise source.error(f"the level {scores.level!r} does not exist", field="level", hint=REMEDY)
    absent = [name for name in COUNTS if name not in counts]
    if absent:
        raise source.error(f"the count {absent[0]!r} is missing", field="counts", hint=REMEDY)
    if min(counts.values()) < 0:
        raise source.error("a count is negative", field="counts", hint=REMEDY)
    queries = scores.per_query["query_id"]
    for ids, field in ((queries, "query_id"), (scores.queries["query_id"], "queries")):
        if ids.dtype != pl.String or ids.null_count():
            raise source.error("an id of a query is missing", field=field, hint=REMEDY)
        if ids.is_duplicated().any():
            query = ids.filter(ids.is_duplicated())[0]
            raise source.error(f"query {query!r} is in it twice", field=field, hint=REMEDY)
    if counts["queries"] != queries.len():
        raise source.error(
            f"it has {queries.len():,} queries and says {counts['queries']:,}",
            field="counts",
            hint=REMEDY,
        )
    for measure in scores.table.measures:
        _check_values(source, scores.per_query, measure.name, measure)
    for table in (scores.table.weights, scores.table.holes):
        if table.width and table.height != queries.len():
            raise source.error("a column has too few values", field=table.columns[0], hint=REMEDY)
    _check_weights(source, scores)
    for measure in scores.table.measures:
        for name in (judged_column(measure), upper_bound_column(measure)):
            if name in scores.table.holes.columns:
                _check_values(source, scores.table.holes, name, None)


def _check_numbers_of_values(source: Source, scores: Scores, n: dict[str, int]) -> None:
    """Refuse scores from which values were removed: they would be excluded from the mean."""
    for name, count in _numbers_of_values(scores).items():
        if count != n.get(name, count):
            raise source.error(
                f"{count:,} queries have a value, and the file says {n[name]:,}",
                field=name,
                hint=REMEDY,
            )


def _check_weights(source: Source, scores: Scores) -> None:
    for measure in scores.table.measures:
        if measure.declaration.combine != "micro":
            continue
        weights = scores.table.weights[measure.name]
        if not weights.dtype.is_integer() or weights.null_count() or (weights < 0).any():
            raise source.error(
                "the denominators of a micro mean are not counts", field=measure.name, hint=REMEDY
            )


def _check_values(source: Source, table: pl.DataFrame, name: str, measure: Measure | None) -> None:
    """Refuse values that are not finite, or outside the range of the measure."""
    values = table[name]
    if not values.dtype.is_float():
        raise source.error("the values are not numbers", field=name, hint=REMEDY)
    known = values.drop_nulls()
    if not known.is_finite().all():
        bad = known.filter(~known.is_finite())[0]
        raise source.error(f"{bad} is not a finite number", field=name, hint=REMEDY)
    is_share = measure is None or measure.declaration.bounded
    # Rounding may leave a mean of shares a few units in the last place above 1.
    is_any = measure is not None and measure.declaration.unbounded
    outside = known.filter((known < 0) & (not is_any) | (known > 1 + 1e-9 if is_share else False))
    if outside.len():
        limits = "between 0 and 1" if is_share else "0 or more"
        raise source.error(f"{outside[0]} is not {limits}", field=name, hint=REMEDY)
