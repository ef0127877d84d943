"""karat's own files: JSON Lines, one query a line, an optional header first."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, TypeVar

import msgspec
import polars as pl

from karat.data.files import BYTE_ORDER_MARK, Source, not_utf8, refuse_foreign_encoding
from karat.data.format import Format
from karat.data.gold import NO_JUDGMENTS, Gold, queries_table
from karat.data.order import contradictions
from karat.data.run import NO_RESULTS, Run
from karat.errors import InputError, KaratWarning

GOLD_KEYS = {"query_id", "query", "relevant", "spans", "evidence"}
SPANS = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
    "grade": pl.Int64,
}
RESULTS = {
    "item_id": pl.String,
    "score": pl.Float64,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
}

Id = str | int
Line = TypeVar("Line")
Numbered = Iterable[tuple[int, Line]]
MakeError = Callable[..., InputError]


class Header(msgspec.Struct, omit_defaults=True):
    """The optional first line: what the file is."""

    karat: int
    kind: str
    name: str | None = None
    offsets: str = "codepoint"
    settings: dict[str, Any] = {}


class Span(msgspec.Struct, omit_defaults=True):
    """A stretch of a document, half-open, in code points."""

    doc_id: Id
    start: int
    end: int
    text: str | None = None
    grade: int = 1


class GoldLine(msgspec.Struct, omit_defaults=True):
    """What should be found for one query; further keys are fields of the query."""

    query_id: Id
    query: str | None = None
    relevant: dict[str, int] | list[Id] | None = None
    spans: list[Span] | None = None
    evidence: list[str] | None = None


class Result(msgspec.Struct, omit_defaults=True):
    """One retrieved item."""

    id: Id | None = None
    score: float | None = None
    doc_id: Id | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = None


class Failure(msgspec.Struct, omit_defaults=True):
    """Why a query has no results."""

    type: str
    message: str = ""
    attempts: int = 1


class RunLine(msgspec.Struct, omit_defaults=True):
    """What was found for one query."""

    query_id: Id
    results: list[Result | Id] | None = None
    latency_ms: dict[str, float] | None = None
    calls: list[dict[str, Any]] | None = None
    error: Failure | None = None


def sniff(head: bytes) -> bool:
    """Tell whether the first line is a header or a query of a native file."""
    first = next((line for line in head.split(b"\n") if line.strip()), b"")
    return bool(re.match(rb'\s*\{.*"(karat|query_id)"\s*:', first.removeprefix(BYTE_ORDER_MARK)))


def read_gold(source: Source) -> Gold:
    """Read native gold."""
    header, lines = _open(source, "gold")
    return _gold(_decoded(lines, msgspec.json.Decoder().decode, source), header, source.error)


def read_run(source: Source) -> Run:
    """Read a native run; the order listed is the ranking."""
    header, lines = _open(source, "run")
    return _run(_decoded(lines, msgspec.json.Decoder(RunLine).decode, source), header, source.error)


def gold_of_records(records: Sequence[Any], *, name: str | None = None) -> Gold:
    """Make gold from native records: dicts such as a native file has on its lines."""
    return _gold(enumerate(records, 1), Header(1, "gold", name), _record_error)


def run_of_records(records: Sequence[Any], *, name: str | None = None) -> Run:
    """Make a run from native records."""
    lines = (
        (n, _convert(n, record, RunLine, _record_error)) for n, record in enumerate(records, 1)
    )
    return _run(lines, Header(1, "run", name), _record_error)


def write_gold(gold: Gold, file: IO[bytes]) -> None:
    """Write gold, one query a line, after a header."""
    encode = msgspec.json.Encoder().encode
    file.write(encode(Header(1, "gold", gold.name, settings=gold.settings)) + b"\n")
    relevant = _grouped(gold.judgments)
    spans = _grouped(gold.spans)
    evidence = _grouped(gold.evidence)
    empty = set(gold.empty_judgments)
    if gold.mapping is not None:
        empty |= {query for query, items in gold.mapping.items() if not items}
    for row in gold.queries.iter_rows(named=True):
        query = row.pop("query_id")
        line: dict[str, Any] = {"query_id": query}
        if row.get("text") is not None:
            line["query"] = row.pop("text")
        line |= {key: value for key, value in row.items() if value is not None}
        if query in relevant or query in empty:
            line["relevant"] = {r["item_id"]: r["grade"] for r in relevant.get(query, [])}
        if query in spans:
            line["spans"] = [_without_nulls(span) for span in spans[query]]
        if query in evidence:
            line["evidence"] = [piece["text"] for piece in evidence[query]]
        file.write(encode(line) + b"\n")


def write_run(run: Run, file: IO[bytes]) -> None:
    """Write a run, one query a line, after a header."""
    encode = msgspec.json.Encoder().encode
    file.write(encode(Header(1, "run", run.name, settings=run.settings)) + b"\n")
    results = _grouped(run.results.rename({"item_id": "id"}, strict=False))
    timings, calls, errors = map(_grouped, (run.timings, run.calls, run.errors))
    for query in run.query_ids:
        line: dict[str, Any] = {"query_id": query}
        line["results"] = [_without_nulls(result) for result in results.get(query, [])]
        if query in timings:
            line["latency_ms"] = {t["stage"]: t["ms"] for t in timings[query]}
        if query in calls:
            line["calls"] = [_without_nulls(call) for call in calls[query]]
        if query in errors:
            line["error"] = errors[query][0]
        file.write(encode(line) + b"\n")


def _grouped(table: pl.DataFrame | None) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    if table is not None:
        for row in table.iter_rows(named=True):
            groups.setdefault(row.pop("query_id"), []).append(row)
    return groups


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}


def _open(source: Source, kind: str) -> tuple[Header, Numbered[bytes]]:
    """Split off the header, and number the lines that hold something."""
    content = source.read()
    refuse_foreign_encoding(content, source)
    lines = enumerate(content.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1)
    held = [(number, line) for number, line in lines if line.strip()]
    number, first = held[0]
    if not re.match(rb'\s*\{\s*"karat"', first):
        return Header(1, kind), held
    header = next(iter(_decoded([held[0]], msgspec.json.Decoder(Header).decode, source)))[1]
    if header.karat != 1:
        raise source.error(
            f"version {header.karat} of the format is not known",
            line=number,
            field="karat",
            hint="this file needs a newer karat",
        )
    if header.kind != kind:
        raise source.error(
            f"this is a {header.kind} and not a {kind}" if kind == "run" else "this is a run",
            line=number,
            field="kind",
            hint="gold comes first, then the run; were they swapped?",
        )
    if len(held) == 1:
        raise source.error("there is a header and no query", line=number)
    return header, held[1:]


def _decoded(
    lines: Numbered[bytes], decode: Callable[[bytes], Line], source: Source
) -> Iterator[tuple[int, Line]]:
    for number, line in lines:
        try:
            yield number, decode(line)
        except UnicodeDecodeError as error:
            raise not_utf8(source, number, error) from error
        except msgspec.ValidationError as error:
            raise _invalid(error, number, source.error) from error
        except msgspec.DecodeError as error:
            raise source.error(
                f"this line is no complete JSON ({str(error).lower()})",
                line=number,
                hint="one object a line; NaN, Infinity and lone surrogates are not JSON",
            ) from error


def _convert(number: int, record: Any, to: type[Line], error: MakeError) -> Line:
    try:
        return msgspec.convert(record, to)
    except msgspec.ValidationError as problem:
        raise _invalid(problem, number, error) from problem


def _invalid(error: msgspec.ValidationError, number: int, make: MakeError) -> InputError:
    problem, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".") or None
    return make(
        problem.replace("`", ""),
        line=number,
        field=field,
        hint="see docs/formats.md for the fields",
    )


def _record_error(
    problem: str, *, line: int, field: str | None = None, hint: str | None = None
) -> InputError:
    return InputError(f"record {line}: {problem}", field=field, hint=hint)


def _gold(lines: Numbered[Any], header: Header, error: MakeError) -> Gold:
    judgments: list[tuple[str, str, int]] = []
    spans: list[tuple[Any, ...]] = []
    evidence: list[tuple[str, str]] = []
    queries: dict[str, dict[str, Any]] = {}
    empty: list[str] = []
    for number, record in lines:
        line = _convert(number, record, GoldLine, error)
        query = _new_query(line.query_id, queries, number, error)
        queries[query] = {"text": line.query} | {
            key: value for key, value in record.items() if key not in GOLD_KEYS
        }
        if "results" in record and not record.keys() & {"relevant", "spans", "evidence"}:
            raise error(
                "this is the line of a run",
                line=number,
                field="results",
                hint="gold comes first, then the run; were they swapped?",
            )
        if isinstance(line.relevant, list):
            line.relevant = dict.fromkeys(map(str, line.relevant), 1)
        if line.relevant:
            judgments += [(query, item, grade) for item, grade in line.relevant.items()]
        elif line.relevant is not None:
            empty.append(query)
        for at, span in enumerate(line.spans or ()):
            if span.start < 0 or span.end < span.start:
                raise error(
                    f"[{span.start}, {span.end}) is no stretch of text",
                    line=number,
                    field=f"spans[{at}]",
                    hint="0 ≤ start ≤ end, counted in code points",
                )
            spans.append((query, str(span.doc_id), span.start, span.end, span.text, span.grade))
        evidence += [(query, text) for text in line.evidence or ()]
    return Gold(
        pl.DataFrame(judgments, schema=NO_JUDGMENTS.schema, orient="row"),
        queries=_queries(queries),
        empty_judgments=empty,
        spans=pl.DataFrame(spans, schema=SPANS, orient="row") if spans else None,
        evidence=pl.DataFrame(
            evidence, schema={"query_id": pl.String, "text": pl.String}, orient="row"
        )
        if evidence
        else None,
        name=header.name,
        settings=header.settings,
    )


def _run(lines: Numbered[RunLine], header: Header, error: MakeError) -> Run:
    seen: dict[str, None] = {}
    rows: dict[str, list[Any]] = {"query_id": [], **{column: [] for column in RESULTS}}
    empty: list[str] = []
    timings: list[tuple[str, str, float]] = []
    calls: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []
    for number, line in lines:
        query = _new_query(line.query_id, seen, number, error)
        seen[query] = None
        if line.error is not None:
            failures.append({"query_id": query} | msgspec.structs.asdict(line.error))
        elif line.results is None:
            raise error(
                "there are no results",
                line=number,
                field="results",
                hint="write [] for nothing retrieved; were gold and run swapped?",
            )
        # A failed query is scored as nothing retrieved, whatever had arrived before it failed.
        results = line.results if line.results and line.error is None else []
        if not results:
            empty.append(query)
        for at, result in enumerate(results):
            _add(rows, query, result, number, at, error)
        timings += [(query, stage, ms) for stage, ms in (line.latency_ms or {}).items()]
        calls += [{"query_id": query} | call for call in line.calls or ()]
    results_table = pl.DataFrame(rows, schema={"query_id": pl.String, **RESULTS})
    held = [
        c for c in results_table.columns if results_table[c].null_count() < results_table.height
    ]
    results_table = results_table.select(held) if results_table.height else NO_RESULTS
    if rises := contradictions(results_table):
        warnings.warn(
            KaratWarning(
                f"{header.name or 'the run'}: {rises} items score higher than the item listed "
                "before them; the order listed is the ranking"
            ),
            stacklevel=3,
        )
    return Run(
        results_table,
        empty=empty,
        errors=pl.DataFrame(failures) if failures else None,
        timings=pl.DataFrame(
            timings,
            schema={"query_id": pl.String, "stage": pl.String, "ms": pl.Float64},
            orient="row",
        )
        if timings
        else None,
        calls=pl.DataFrame(calls, infer_schema_length=None) if calls else None,
        name=header.name,
        settings=header.settings,
    )


def _add(
    rows: dict[str, list[Any]],
    query: str,
    result: Result | Id,
    number: int,
    at: int,
    error: MakeError,
) -> None:
    if not isinstance(result, Result):
        result = Result(id=result)
    item = result.id
    if item is None and result.start is None:
        item = result.doc_id
    if item is None and result.start is None and result.text is None:
        raise error(
            "the result has neither id, nor place, nor text",
            line=number,
            field=f"results[{at}]",
            hint='give it an "id"',
        )
    if result.score is not None and not math.isfinite(result.score):
        raise error(
            f"{result.score} is not finite",
            line=number,
            field=f"results[{at}].score",
            hint="write a finite number, or leave the score out",
        )
    rows["query_id"].append(query)
    rows["item_id"].append(None if item is None else str(item))
    rows["score"].append(result.score)
    rows["doc_id"].append(None if result.doc_id is None else str(result.doc_id))
    rows["start"].append(result.start)
    rows["end"].append(result.end)
    rows["text"].append(result.text)


def _new_query(given: Id, seen: Iterable[str], number: int, error: MakeError) -> str:
    query = str(given)
    if not query:
        raise error("the id is empty", line=number, field="query_id", hint="give the query an id")
    if query in seen:
        raise error(
            f"query {query!r} stands there twice",
            line=number,
            field="query_id",
            hint="a query is one line; put all of it there",
        )
    return query


def _queries(queries: dict[str, dict[str, Any]]) -> pl.DataFrame:
    """Make the table of queries; a field of mixed types becomes text."""
    names = list(dict.fromkeys(name for fields in queries.values() for name in fields))
    columns = [pl.Series("query_id", list(queries), pl.String)]
    for name in names:
        values = [fields.get(name) for fields in queries.values()]
        if all(value is None for value in values):
            continue
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:
            values = [
                None if v is None else v if isinstance(v, str) else msgspec.json.encode(v).decode()
                for v in values
            ]
        columns.append(pl.Series(name, values, strict=False))
    return queries_table(pl.DataFrame(columns))


FORMAT = Format("jsonl", (".jsonl", ".ndjson"), sniff, read_gold, read_run, write_gold, write_run)
