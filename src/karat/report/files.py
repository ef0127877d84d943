"""Scores in files; the ending says how they are written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any

import msgspec
import polars as pl

from karat.data.files import Source, Unopened, path_of
from karat.report.document import document, encoded
from karat.report.endings import REPORT, Endings
from karat.report.latex import latex_of_scores
from karat.report.markdown import markdown
from karat.report.sheet import Sheet

_VERSIONED = re.compile(rb'\s*\{\s*"karat"\s*:\s*"')


@dataclass(frozen=True)
class Saved:
    """One run's scores as they were saved."""

    name: str
    conventions: dict[str, Any]
    level: str
    matching: str | None
    settings: dict[str, Any]
    load: str | None
    notes: tuple[str, ...]
    delivered: dict[str, float]
    counts: dict[str, int]
    measures: list[str]
    per_query: pl.DataFrame
    queries: pl.DataFrame
    weights: pl.DataFrame
    holes: pl.DataFrame


def read(path: str | os.PathLike[str], run: str | None) -> Saved:
    """Read the scores of one run from JSON or Parquet."""
    source = Source(path)
    if source.ending == ".parquet":
        return _read_parquet(source, run)
    if source.ending == ".json":
        return _read_json(source, run)
    raise source.error("scores are read from .json and .parquet", hint="write them so first")


def holds_scores(given: Any) -> bool:
    """Tell whether a path leads to scores that karat wrote, rather than to a run.

    Where a format was said, it is a run.
    """
    path = path_of(given)
    said = isinstance(given, Unopened) and given.format is not None
    if path is None or said or not os.path.isfile(path):
        return False
    source = Source(path)
    if source.ending == ".parquet":
        try:
            return "karat" in pl.read_parquet_metadata(source.path)
        except (pl.exceptions.PolarsError, OSError):
            return False
    # Native files begin likewise, but with a number: the version of the format.
    return source.ending == ".json" and _VERSIONED.match(source.head) is not None


def _write_json(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    file.write(encoded(document(sheets)) + b"\n")


def _write_csv(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    """Write a row for each run and measure, or for each group of these where groups are asked."""
    _named((s.name, s.summary if s.groups is None else s.groups) for s in sheets).write_csv(file)


def _write_queries(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    """Write a row for each run and query."""
    _named((sheet.name, sheet.per_query) for sheet in sheets).write_csv(file)


def _named(frames: Iterable[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Return the rows of all runs, with the name of the run before them."""
    return pl.concat(frame.select(pl.lit(name).alias("run"), pl.all()) for name, frame in frames)


def _write_parquet(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    """Write a row for each run and query, with the fields of the query behind the measures."""
    frames = []
    for sheet in sheets:
        fields = sheet.queries.rename(lambda c: c if c == "query_id" else f"field:{c}")
        rows = sheet.per_query.join(fields, on="query_id", how="left", maintain_order="left")
        rows = rows.hstack(sheet.weights.rename(lambda c: f"weight:{c}"))
        rows = rows.hstack(sheet.holes.rename(lambda c: f"hole:{c}"))
        frames.append((sheet.name, rows))
    told = {
        "conventions": sheets[0].conventions.as_dict(),
        "level": sheets[0].level,
        "matching": sheets[0].matching,
        "settings": sheets[0].settings.as_dict(),
        "measures": sheets[0].summary["measure"].to_list(),
        "counts": {sheet.name: sheet.counts for sheet in sheets},
        "loads": {sheet.name: sheet.load for sheet in sheets},
        "notes": {sheet.name: sheet.notes for sheet in sheets},
        "delivered": {sheet.name: sheet.delivered for sheet in sheets},
    }
    _named(frames).write_parquet(file, metadata={"karat": msgspec.json.encode(told).decode()})


def _write_markdown(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    file.write(markdown(sheets).encode())


def _write_latex(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    file.write(latex_of_scores(sheets).encode())


_ENDINGS: Endings[Sequence[Sheet]] = Endings(
    "scores",
    {
        ".json": _write_json,
        ".csv": _write_csv,
        ".parquet": _write_parquet,
        ".md": _write_markdown,
        ".tex": _write_latex,
    },
    hint=REPORT,
    queries={".csv": _write_queries},
)
write, check = _ENDINGS.write, _ENDINGS.check


def _read_parquet(source: Source, run: str | None) -> Saved:
    try:
        told = pl.read_parquet_metadata(source.path).get("karat")
    except (pl.exceptions.PolarsError, OSError):
        told = None
    if told is None:
        raise source.error("this file holds no scores", hint="write it with karat")
    facts = msgspec.json.decode(told)
    name = _pick(source, list(facts["counts"]), run)
    rows = pl.read_parquet(source.path).filter(pl.col("run") == name)
    return Saved(
        name,
        facts["conventions"],
        facts["level"],
        facts.get("matching"),
        facts.get("settings", {}),
        facts.get("loads", {}).get(name),
        tuple(facts.get("notes", {}).get(name, ())),
        facts.get("delivered", {}).get(name, {}),
        facts["counts"][name],
        facts["measures"],
        rows.select("query_id", *facts["measures"]),
        rows.select("query_id").hstack(_behind("field:", rows)),
        _behind("weight:", rows),
        _behind("hole:", rows),
    )


def _behind(mark: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the columns that are marked so, without the mark."""
    marked = rows.select(column for column in rows.columns if column.startswith(mark))
    return marked.rename(lambda c: c.removeprefix(mark))


def _read_json(source: Source, run: str | None) -> Saved:
    try:
        told = msgspec.json.decode(source.read())
        runs = {saved["name"]: saved for saved in told["runs"]}
        told["conventions"], told["level"]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise source.error("this JSON holds no scores", hint="write it with karat") from error
    saved = runs[_pick(source, list(runs), run)]
    if "per_query" not in saved:
        raise source.error(
            "the values of the queries are not in it",
            hint="write it with karat eval --per-query, or as .parquet",
        )
    names = list(saved["measures"])
    schema = {"query_id": pl.String} | dict.fromkeys(names, pl.Float64)
    holes = saved.get("holes", {})
    queries = told.get("queries") or [{"query_id": q["query_id"]} for q in saved["per_query"]]
    return Saved(
        saved["name"],
        told["conventions"],
        told["level"],
        told.get("matching"),
        told.get("settings", {}),
        saved.get("load"),
        tuple(saved.get("notes", ())),
        saved.get("delivered", {}),
        saved["counts"],
        names,
        pl.DataFrame(saved["per_query"], schema=schema),
        pl.DataFrame(queries, infer_schema_length=None),
        pl.DataFrame(saved.get("weights", {})),
        pl.DataFrame(holes, schema=dict.fromkeys(holes, pl.Float64)),
    )


def _pick(source: Source, names: list[str], run: str | None) -> str:
    if run is None and len(names) == 1:
        return names[0]
    if run in names:
        return str(run)
    problem = f"there is no run {run!r} in it" if run else "there are several runs in it"
    known = ", ".join(map(repr, names))
    raise source.error(problem, hint=f"save one alone, or in Python say run= one of {known}")
