"""Runs in karat's own files."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import IO, Annotated, Any

import msgspec
import polars as pl

from karat.data.columns import RESULTS as RESULT_LISTS
from karat.data.data_file import DataFile
from karat.data.formats.base import WriteReport, refuse_infinite_scores
from karat.data.formats.json_lines import (
    Count,
    Header,
    Id,
    MakeError,
    Numbered,
    Offset,
    converted,
    decoded,
    grouped,
    new_query,
    opened,
    record_error,
    table_of,
    with_item_keys,
    with_known_keys,
    with_query_id,
    without_nulls,
)
from karat.data.frames import (
    OFFSETS_HINT,
    QUERY_ID,
    QUERY_TEXT,
    Hashed,
    generated_id,
)
from karat.data.ranking import contradictions
from karat.data.run import NO_RESULTS, Run
from karat.errors import InputError, KaratWarning, counted

TIMINGS = {"query_id": pl.String, "stage": pl.String, "ms": pl.Float64}
CALLS = {
    "query_id": pl.String,
    "stage": pl.String,
    "model": pl.String,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "price_per_1k": pl.Float64,
    "price_in": pl.Float64,
    "price_out": pl.Float64,
    "price_per_call": pl.Float64,
    "price_per_1k_calls": pl.Float64,
}
# Far above anything real, and low enough that no sum over queries can overflow.
_MOST_MS = 1e15
Price = Annotated[float, msgspec.Meta(ge=0, lt=1e9)]


class Call(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One call of a model, and what it costs in USD."""

    query_id: Id | None = None  # ignored: a call belongs to the query on whose line it stands
    stage: str | None = None
    model: str | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    price_per_1k: Price | None = None
    price_in: Price | None = None
    price_out: Price | None = None
    price_per_call: Price | None = None
    price_per_1k_calls: Price | None = None


def timing_rows(
    query: str, latency: dict[str, float] | None, number: int, error: MakeError
) -> list[tuple[str, str, float]]:
    """Return a row for each stage of a line, refusing what is no duration."""
    for stage, ms in (latency or {}).items():
        if not 0 <= ms < _MOST_MS:
            raise error(
                f"{ms} is no number of milliseconds",
                line=number,
                field=f"latency_ms.{stage}",
                hint="write a finite number from 0 up, or leave the stage out",
            )
    return [(query, stage, ms) for stage, ms in (latency or {}).items()]


def refuse_two_prices(call: Call, error: Callable[..., InputError], **place: Any) -> None:
    """Refuse a call that is priced in two ways at once."""
    apart = call.price_in is not None or call.price_out is not None
    if call.price_per_1k is not None and apart:
        raise error(
            "price_per_1k is for all tokens, price_in and price_out are for either kind",
            hint="give one price, or the two",
            **place,
        )
    if call.price_per_call is not None and call.price_per_1k_calls is not None:
        raise error(
            "price_per_call and price_per_1k_calls are one price in two units",
            hint="give one of them",
            **place,
        )


def call_rows(
    query: str, calls: Sequence[Call] | None, number: int, error: MakeError
) -> list[tuple[Any, ...]]:
    """Return a row for each call of a line, refusing prices that contradict each other."""
    for at, call in enumerate(calls or ()):
        refuse_two_prices(call, error, line=number, field=f"calls[{at}]")
    return [(query, *msgspec.structs.astuple(call)[1:]) for call in calls or ()]


RESULTS = {
    "item_id": pl.String,
    "score": pl.Float64,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
    "tokens": pl.Int64,
}


ALIASES = {"query_id": QUERY_ID[1:], "query": QUERY_TEXT[1:], "results": RESULT_LISTS[1:]}
"""Other names of the keys of a run, as benchmark scripts and other tools use them."""
CONTEXTS = ("retrieved_contexts", "contexts")
_RUN_KEYS = ("query_id", "query", "results", "latency_ms", "calls")
_ITEM_KEYS = (b'"item_id"', b'"chunk_id"', b'"docid"', b'"docId"', b'"docno"', b'"corpus-id"')
ATTEMPTS = {"query_id": pl.String, "attempts": pl.Int64, "varied": pl.Boolean}
Attempts = Annotated[int, msgspec.Meta(ge=1, lt=1 << 53)]


class ResultRow(msgspec.Struct, omit_defaults=True):
    """One retrieved item."""

    id: Id | None = None
    score: float | None = None
    doc_id: Id | None = None
    start: Offset | None = None
    end: Offset | None = None
    text: str | None = None
    tokens: Count | None = None
    """How many tokens its text has, by whatever tokenizer."""


class Failure(msgspec.Struct, omit_defaults=True):
    """Why a query has no results."""

    type: str
    message: str = ""
    attempts: Attempts = 1


class RunLine(msgspec.Struct, omit_defaults=True):
    """What was found for one query."""

    query_id: Id
    results: list[ResultRow | Id] | None = None
    latency_ms: dict[str, float] | None = None
    calls: list[Call] | None = None
    error: Failure | None = None
    attempts: Attempts = 1
    varied: bool = False
    """Whether it was asked several times and the lists were not the same."""


def read_run(source: DataFile) -> Run:
    """Read a native run; the order listed is the ranking."""
    header, lines = opened(source, "run")
    hashed = Hashed()
    decode_own, decode_any = msgspec.json.Decoder(RunLine).decode, msgspec.json.Decoder().decode

    has_own_names = False  # told once per file, by the first line whose results have no ids

    def decode(line: bytes) -> RunLine:
        nonlocal has_own_names
        failure = None
        if not source.columns:
            try:
                read = decode_own(line)
                if has_own_names and read.results is not None:
                    return read
                if not _lacks_names(read, line):
                    has_own_names = _lacks_ids(read)
                    return read
            except msgspec.ValidationError as error:  # perhaps only for the names of its keys
                failure = error
        try:
            record = decode_any(line)
        except msgspec.ValidationError as error:  # a number out of range
            raise failure or error from None
        return line_of_record(source.columns.record(record), 0, _unplaced, hashed, read_as)

    read_as: dict[str, str] = {}
    run = _run(decoded(lines, decode, source), header, source.error)
    hashed.warn("the run")
    return replace(run, recognised=source.columns.in_their_names(read_as))


def run_of_records(
    records: Iterable[Any], *, name: str | None = None, error: MakeError = record_error
) -> Run:
    """Make a run from native records."""
    hashed = Hashed()
    read_as: dict[str, str] = {}
    lines = (
        (n, line_of_record(record, n, error, hashed, read_as))
        for n, record in enumerate(records, 1)
    )
    run = _run(lines, Header(1, "run", name), error)
    hashed.warn("the run")
    return replace(run, recognised=read_as)


def line_of_record(
    given: Any, number: int, error: MakeError, hashed: Hashed, read_as: dict[str, str]
) -> RunLine:
    """Read the record of a query, its keys called as other tools call them too."""
    theirs: dict[str, str] = {}
    record = with_known_keys(given, ALIASES, number, error, theirs)
    if isinstance(record, dict):
        if record.get("results") is None and "error" not in record:
            hashed.items |= _with_contexts(record, theirs)
        if isinstance(record.get("results"), list):
            items = record["results"]
            record["results"] = [with_item_keys(item, ("id", "doc_id"), theirs) for item in items]
        if type(record.get("latency_ms")) in (int, float):
            record["latency_ms"] = {"total": record["latency_ms"]}
        read_as |= {key: theirs.get(key, key) for key in _RUN_KEYS if key in record}
        hashed.queries |= with_query_id(record)
    return converted(number, record, RunLine, error, theirs)


def _with_contexts(record: dict[str, Any], theirs: dict[str, str]) -> bool:
    """Take retrieved texts as results; tell whether they go by a hash of their texts."""
    name = next((name for name in CONTEXTS if name in record), None)
    texts, ids = record.get(name or ""), record.get("retrieved_context_ids")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return False
    theirs["results"] = name or "results"
    if isinstance(ids, list) and len(ids) == len(texts):
        record["results"] = [
            {"id": item, "text": text} for item, text in zip(ids, texts, strict=True)
        ]
        return False
    record["results"] = [{"id": generated_id(text), "text": text} for text in texts]
    return bool(texts)


def _lacks_names(line: RunLine, content: bytes) -> bool:
    """Tell whether a line may have its results, or their ids, under other names."""
    if line.results is None:
        return line.error is None
    return _lacks_ids(line) and any(key in content for key in _ITEM_KEYS)


def _lacks_ids(line: RunLine) -> bool:
    """Tell by the first result whether results have no ids; looking at all takes too long."""
    first = line.results[0] if line.results else None
    return isinstance(first, ResultRow) and first.id is None


def _unplaced(
    problem: str, *, line: int, field: str | None = None, hint: str | None = None
) -> InputError:
    """Make the error for a line, whose number the caller knows."""
    del line
    return InputError(problem, field=field, hint=hint)


def run_of_lines(lines: Iterable[RunLine], header: Header | None = None) -> Run:
    """Make a run from lines that were never in a file."""
    return _run(enumerate(lines, 1), header or Header(1, "run"), record_error)


def write_run(run: Run, file: IO[bytes]) -> WriteReport:
    """Write a run, one query per line, after a header."""
    refuse_infinite_scores(run.results, "JSON Lines")
    encode = msgspec.json.Encoder().encode
    file.write(encode(Header(1, "run", run.name, run.offsets, run.settings)) + b"\n")
    results = grouped(run.results.rename({"item_id": "id"}, strict=False))
    timings, calls, errors, attempts = map(
        grouped, (run.timings, run.calls, run.errors, run.attempts)
    )
    for query in run.query_ids:
        line: dict[str, Any] = {"query_id": query}
        line["results"] = [without_nulls(result) for result in results.get(query, [])]
        if query in timings:
            line["latency_ms"] = _by_stage(timings[query])
        if query in calls:
            line["calls"] = [without_nulls(call) for call in calls[query]]
        if query in errors:
            line["error"] = errors[query][0]
        if query in attempts:
            line |= attempts[query][0]
        file.write(encode(line) + b"\n")
    return WriteReport(run.query_ids.len(), run.results.height)


def _by_stage(timings: list[dict[str, Any]]) -> dict[str, float]:
    """Return the time of each stage; one that was gone through several times takes them all."""
    spent: dict[str, float] = {}
    for timing in timings:
        spent[timing["stage"]] = spent.get(timing["stage"], 0.0) + timing["ms"]
    return spent


def _run(lines: Numbered[RunLine], header: Header, error: MakeError) -> Run:
    seen: dict[str, None] = {}
    rows: dict[str, list[Any]] = {"query_id": [], **{column: [] for column in RESULTS}}
    empty: list[str] = []
    timings: list[tuple[str, str, float]] = []
    calls: list[tuple[Any, ...]] = []
    failures: list[dict[str, Any]] = []
    attempts: list[tuple[str, int, bool]] = []
    for number, line in lines:
        query = new_query(line.query_id, seen, number, error)
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
        timings += timing_rows(query, line.latency_ms, number, error)
        calls += call_rows(query, line.calls, number, error)
        if line.attempts > 1 or line.varied:
            attempts.append((query, line.attempts, line.varied))
    results_table = table_of(rows, {"query_id": pl.String, **RESULTS}, "results")
    held = [
        c for c in results_table.columns if results_table[c].null_count() < results_table.height
    ]
    results_table = results_table.select(held) if results_table.height else NO_RESULTS
    if rises := contradictions(results_table):
        warnings.warn(
            KaratWarning(
                f"{header.name or 'the run'}: {counted(rises, 'item')} with a higher score than "
                "the item listed before; the order listed is the ranking"
            ),
            stacklevel=3,
        )
    return Run(
        results_table,
        empty=empty,
        errors=pl.DataFrame(failures) if failures else None,
        timings=table_of(timings, TIMINGS, "latency_ms", orient="row") if timings else None,
        calls=table_of(calls, CALLS, "calls", orient="row") if calls else None,
        attempts=pl.DataFrame(attempts, ATTEMPTS, orient="row") if attempts else None,
        offsets=header.offsets,
        name=header.name,
        settings=header.settings,
    )


def check_result(result: ResultRow, number: int, at: int, error: MakeError) -> None:
    """Refuse a result that names nothing, or that has a place or a score which is none."""
    if result.id is None and result.start is None and result.doc_id is None and result.text is None:
        raise error(
            "the result has neither id, nor place, nor text",
            line=number,
            field=f"results[{at}]",
            hint='give it an "id"',
        )
    if result.start is not None and (result.end is None or result.end < result.start):
        raise error(
            f"[{result.start}, {result.end}) is no stretch of text",
            line=number,
            field=f"results[{at}]",
            hint=OFFSETS_HINT,
        )
    if result.score is not None and not math.isfinite(result.score):
        raise error(
            f"{result.score} is not finite",
            line=number,
            field=f"results[{at}].score",
            hint="write a finite number, or leave the score out",
        )


def _add(
    rows: dict[str, list[Any]],
    query: str,
    result: ResultRow | Id,
    number: int,
    at: int,
    error: MakeError,
) -> None:
    if not isinstance(result, ResultRow):
        result = ResultRow(id=result)
    check_result(result, number, at, error)
    item = result.id
    if item is None and result.start is None:
        item = result.doc_id
    rows["query_id"].append(query)
    rows["item_id"].append(None if item is None else str(item))
    rows["score"].append(result.score)
    rows["doc_id"].append(None if result.doc_id is None else str(result.doc_id))
    rows["start"].append(result.start)
    rows["end"].append(result.end)
    rows["text"].append(result.text)
    rows["tokens"].append(result.tokens)
