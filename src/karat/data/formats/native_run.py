"""Runs in the native format: read, check and write their lines, with timings and model calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import IO, Annotated, Any

import msgspec
import polars as pl

from karat.data.columns import EVIDENCE_LISTS, RELEVANT
from karat.data.columns import RESULTS as RESULT_LISTS
from karat.data.data_file import DataFile
from karat.data.formats.base import RESPONSES, RunPiece, WriteReport, refuse_infinite_scores
from karat.data.formats.json_lines import (
    Count,
    Header,
    Id,
    MakeError,
    Numbered,
    Offset,
    converted,
    decoded,
    header_of,
    new_query_id,
    numbered_blocks,
    read_header,
    record_error,
    rows_by_query,
    similar_key,
    table_of,
    warn_of_misspelled_keys,
    with_item_keys,
    with_karat_keys,
    with_query_id,
    without_nulls,
)
from karat.data.frames import (
    OFFSETS_HINT,
    QUERY_ID,
    QUERY_TEXT,
    Hashed,
    describe_invalid_span,
    generated_id,
)
from karat.data.ranking import contradictions
from karat.data.run import NO_RESULTS, Run
from karat.errors import InputError, counted, warn

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
# Far above any real duration, and low enough that no sum over queries overflows.
_MAX_MS = 1e15
Price = Annotated[float, msgspec.Meta(ge=0, lt=1e9)]


class Call(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One call of a model, and its price in USD."""

    query_id: Id | None = None  # ignored: a call belongs to the query of its line
    stage: str | None = None
    model: str | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    price_per_1k: Price | None = None
    price_in: Price | None = None
    price_out: Price | None = None
    price_per_call: Price | None = None
    price_per_1k_calls: Price | None = None


RESULT_SCHEMA = {
    "item_id": pl.String,
    "score": pl.Float64,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
    "tokens": pl.Int64,
}
ALIASES = {"query_id": QUERY_ID[1:], "query": QUERY_TEXT[1:], "results": RESULT_LISTS[1:]}
"""Other names for the keys of a run that benchmark scripts and other tools use."""
CONTEXTS = ("retrieved_contexts", "contexts")
_LIST_KEYS = {
    "results": (*RESULT_LISTS, *CONTEXTS),
    "candidates": ("candidates",),
    "calls": ("calls",),
}
"""The keys of a line that hold a list, with their other names."""
_OTHER_KEYS = {"latency_ms": ("latency_ms",), "error": ("error",)}
_RUN_KEYS = ("query_id", "query", "results", "latency_ms", "calls", "candidates")
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
    """Number of tokens of the text, by any tokenizer."""


class Failure(msgspec.Struct, omit_defaults=True):
    """The reason why a query has no results."""

    type: str
    message: str = ""
    attempts: Attempts = 1


class RunLine(msgspec.Struct, omit_defaults=True):
    """The results of one query."""

    query_id: Id
    results: list[ResultRow | Id] | None = None
    latency_ms: dict[str, float] | None = None
    calls: list[Call] | None = None
    error: Failure | None = None
    attempts: Attempts = 1
    varied: bool = False
    """Whether repeated attempts returned different lists."""
    response: Any = None
    """The answer that was generated from the results; kept for reports if it is a text."""
    answer: Any = None
    """Another name of `response`."""
    candidates: list[ResultRow | Id] | None = None
    """The list before reranking."""


_KNOWN_KEYS = {
    *RunLine.__struct_fields__,
    *(name for names in ALIASES.values() for name in names),
    *CONTEXTS,
    *("query", "id", "text", "run_id", "retrieved_context_ids"),
    *(*RELEVANT, *EVIDENCE_LISTS, "any_of", "spans", "evidence", "reference_contexts"),
}
"""The keys of runs and of gold, which may be in the same line."""


class _UnknownKeys:
    """Keys that are not read, with the keys that their lines lack and that they may be meant as."""

    def __init__(self) -> None:
        self._lacking: dict[str, dict[str, None]] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Add the keys of a line, which has decoded values or `msgspec.Raw`."""
        for key in filter(_is_text, line.keys() - _KNOWN_KEYS):
            self._lacking.setdefault(key, {}).update(dict.fromkeys(_lacking_keys(line, key)))

    def warn(self, name: str | None) -> None:
        """Warn of those that look misspelled."""
        for key, lacking in sorted(self._lacking.items()):
            warn_of_misspelled_keys([key], lacking, name, "it is ignored")


def _is_text(key: Any) -> bool:
    return isinstance(key, str)


def _lacking_keys(line: Mapping[str, Any], unknown: str) -> Iterator[str]:
    """Yield the names of keys that a line lacks and that may hold the value of an unknown key."""
    value = line[unknown]
    is_raw = isinstance(value, msgspec.Raw)
    is_list = bytes(memoryview(value)[:1]) == b"[" if is_raw else isinstance(value, list)
    for names in (_LIST_KEYS if is_list else _OTHER_KEYS).values():
        if line.keys().isdisjoint(names):
            yield from names


def read_run(source: DataFile) -> Run:
    """Read a native run; the order of each list is the ranking."""
    header, lines = read_header(source, "run")
    decoder = _LineDecoder(source)
    run = _run(decoded(lines, decoder.decode, source), header, source.error)
    decoder.warn(header.name)
    return replace(run, recognised=source.columns.in_their_names(decoder.recognised))


def read_run_pieces(source: DataFile) -> Iterator[RunPiece]:
    """Read a native run block by block; every query is on one line."""
    blocks = numbered_blocks(source)
    header, lines, _ = header_of(next(blocks), source, "run")
    decoder, query_ids = _LineDecoder(source), dict[str, None]()
    for block in chain([lines], blocks):
        rows = _RunRows(source.error, query_ids)
        for number, line in decoded(block, decoder.decode, source):
            rows.add(number, line)
        if block:
            results = rows.results.table()
            yield RunPiece(rows.to_run(results, header), None, contradictions(results))
    if not query_ids:
        read_run(source)  # raises the error for a file without queries
    decoder.warn(header.name)


class _LineDecoder:
    """Decodes lines of a run: directly to `RunLine` if possible, which is much faster.

    If the results or their ids may have the key of another tool, the line is decoded to a dict
    and its keys are renamed.
    """

    def __init__(self, source: DataFile) -> None:
        self.columns = source.columns
        self.hashed = Hashed()
        self.recognised: dict[str, str] = {}
        self._unknown = _UnknownKeys()
        self._decode_keys = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
        self._decode_native = msgspec.json.Decoder(RunLine).decode
        self._decode_any = msgspec.json.Decoder().decode
        self._is_native = False
        """Whether a line without ids had karat's keys; then the lines after it are not checked."""

    def decode(self, content: bytes) -> RunLine:
        failure = None
        if not self.columns:
            try:
                line = self._decode_native(content)
                self._unknown.add(self._decode_keys(content))
                if self._is_native and line.results is not None:
                    return line
                if not _may_have_other_names(line, content):
                    self._is_native = _lacks_ids(line)
                    return line
            except msgspec.ValidationError as error:  # perhaps only because of other names
                failure = error
        try:
            record = self._decode_any(content)
        except msgspec.ValidationError as error:  # a number is out of range
            raise failure or error from None
        renamed = self.columns.record(record)
        if isinstance(renamed, dict):
            self._unknown.add(renamed)
        return line_of_record(renamed, 0, _error_without_line, self.hashed, self.recognised)

    def warn(self, name: str | None) -> None:
        """Warn of ids that are hashes, and of keys that look misspelled."""
        self.hashed.warn("the run")
        self._unknown.warn(name)


def run_of_records(
    records: Iterable[Any], *, name: str | None = None, error: MakeError = record_error
) -> Run:
    """Convert native records, dicts like the lines of a native file, to a run."""
    hashed, unknown = Hashed(), _UnknownKeys()
    recognised: dict[str, str] = {}

    def lines() -> Iterator[tuple[int, RunLine]]:
        for number, record in enumerate(records, 1):
            if isinstance(record, Mapping):
                unknown.add(record)
            yield number, line_of_record(record, number, error, hashed, recognised)

    run = _run(lines(), Header(1, "run", name), error)
    hashed.warn("the run")
    unknown.warn(name)
    return replace(run, recognised=recognised)


def line_of_record(
    original: Any, number: int, error: MakeError, hashed: Hashed, recognised: dict[str, str]
) -> RunLine:
    """Convert the record of a query, which may have the keys of other tools."""
    theirs: dict[str, str] = {}
    record = with_karat_keys(original, ALIASES, number, error, theirs)
    if isinstance(record, dict):
        if record.get("results") is None and "error" not in record:
            hashed.items |= _use_contexts_as_results(record, theirs)
            _refuse_misspelled_results(record, number, error)
        for key in ("candidates", "results"):  # the names of the results take precedence
            if isinstance(items := record.get(key), list):
                record[key] = [with_item_keys(item, ("id", "doc_id"), theirs) for item in items]
        if type(record.get("latency_ms")) in (int, float):
            record["latency_ms"] = {"total": record["latency_ms"]}
        recognised |= {key: theirs.get(key, key) for key in _RUN_KEYS if key in record}
        hashed.queries |= with_query_id(record)
    return converted(number, record, RunLine, error, theirs)


def _use_contexts_as_results(record: dict[str, Any], theirs: dict[str, str]) -> bool:
    """Set `results` from a list of retrieved texts; return whether their ids are hashes."""
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


def _refuse_misspelled_results(record: Mapping[Any, Any], number: int, error: MakeError) -> None:
    """Raise an error for a record whose results seem to have a misspelled key."""
    if record.get("results") is not None:
        return
    for key in sorted(filter(_is_text, record.keys() - _KNOWN_KEYS)):
        if isinstance(record[key], list) and similar_key(key, _LIST_KEYS["results"]):
            raise error(
                "the line has no results, and this key looks like a misspelling of 'results'",
                line=number,
                field=key,
                hint="rename the key to results",
            )


def _may_have_other_names(line: RunLine, content: bytes) -> bool:
    """Return whether the results, or their ids, may be there under the names of another tool."""
    if line.results is None:
        return line.error is None
    return _lacks_ids(line) and any(key in content for key in _ITEM_KEYS)


def _lacks_ids(line: RunLine) -> bool:
    """Return whether the first result or candidate has no id; to check all would take too long."""
    first_items = [items[0] for items in (line.results, line.candidates) if items]
    return any(isinstance(item, ResultRow) and item.id is None for item in first_items)


def _error_without_line(
    problem: str, *, line: int, field: str | None = None, hint: str | None = None
) -> InputError:
    """Make an error to which the caller adds the line number."""
    del line
    return InputError(problem, field=field, hint=hint)


def run_of_lines(lines: Iterable[RunLine], header: Header | None = None) -> Run:
    """Convert lines that do not come from a file to a run."""
    return _run(enumerate(lines, 1), header or Header(1, "run"), record_error)


def write_run(run: Run, file: IO[bytes]) -> WriteReport:
    """Write a header, and then one query per line."""
    refuse_infinite_scores(run.results, "JSON Lines")
    encode = msgspec.json.Encoder().encode
    file.write(encode(Header(1, "run", run.name, run.offsets, run.settings)) + b"\n")
    results = _items_by_query(run)
    candidates = {} if run.candidates is None else _items_by_query(run.candidates)
    timings, calls, errors, attempts, responses = map(
        rows_by_query, (run.timings, run.calls, run.errors, run.attempts, run.responses)
    )
    for query in run.query_ids:
        line: dict[str, Any] = {"query_id": query}
        line["results"] = results.get(query, [])
        if query in candidates:
            line["candidates"] = candidates[query]
        if query in timings:
            line["latency_ms"] = _by_stage(timings[query])
        if query in calls:
            line["calls"] = [without_nulls(call) for call in calls[query]]
        if query in errors:
            line["error"] = errors[query][0]
        if query in attempts:
            line |= attempts[query][0]
        if query in responses:
            line |= responses[query][0]
        file.write(encode(line) + b"\n")
    return WriteReport(run.query_ids.len(), run.results.height)


def _items_by_query(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Return the list of each query as it is written, in the order of the ranks."""
    lists = rows_by_query(run.results.rename({"item_id": "id"}, strict=False))
    empty: dict[str, list[dict[str, Any]]] = {query: [] for query in run.empty}
    return empty | {query: list(map(without_nulls, items)) for query, items in lists.items()}


def _by_stage(timings: list[dict[str, Any]]) -> dict[str, float]:
    """Return the total time per stage; a stage may have several timings."""
    ms_by_stage: dict[str, float] = {}
    for timing in timings:
        stage = timing["stage"]
        ms_by_stage[stage] = ms_by_stage.get(stage, 0.0) + timing["ms"]
    return ms_by_stage


def _run(lines: Numbered[RunLine], header: Header, error: MakeError) -> Run:
    rows = _RunRows(error)
    for number, line in lines:
        rows.add(number, line)
    results = rows.results.table()
    warn_of_rises(contradictions(results), header.name)
    return rows.to_run(results, header)


def warn_of_rises(n_rises: int, name: str | None) -> None:
    """Warn of items with a higher score than the item before them, if there are any."""
    if n_rises:
        run_name = f"run {name!r}" if name else "the run"
        warn(
            f"{run_name}: {counted(n_rises, 'item')} {'has' if n_rises == 1 else 'have'} a "
            "higher score than the item before; the results are ranked in the order of the "
            "list, not by score",
            stacklevel=4,
        )


class _Items:
    """The items of all queries, collected list by list: the results, or the candidates."""

    def __init__(self, key: str, error: MakeError) -> None:
        self.key = key
        self.error = error
        self.queries = 0
        self.empty: list[str] = []
        self.columns: dict[str, list[Any]] = {
            "query_id": [],
            **{column: [] for column in RESULT_SCHEMA},
        }

    def add(self, query: str, items: Sequence[ResultRow | Id], number: int) -> None:
        """Check the list of a query and add its items."""
        self.queries += 1
        if not items:
            self.empty.append(query)
        columns = self.columns
        for i, entry in enumerate(items):
            result = entry if isinstance(entry, ResultRow) else ResultRow(id=entry)
            check_result(result, number, f"{self.key}[{i}]", self.error)
            item_id = result.id
            if item_id is None and result.start is None:
                item_id = result.doc_id
            columns["query_id"].append(query)
            columns["item_id"].append(None if item_id is None else str(item_id))
            columns["score"].append(result.score)
            columns["doc_id"].append(None if result.doc_id is None else str(result.doc_id))
            columns["start"].append(result.start)
            columns["end"].append(result.end)
            columns["text"].append(result.text)
            columns["tokens"].append(result.tokens)

    def table(self) -> pl.DataFrame:
        """Return the table of items without the columns that have no values."""
        table = table_of(self.columns, {"query_id": pl.String, **RESULT_SCHEMA}, self.key)
        if not table.height:
            return NO_RESULTS
        return table.select(name for name in table.columns if _has_values(table[name]))


class _RunRows:
    """The rows of the tables of a run, collected line by line."""

    def __init__(self, error: MakeError, query_ids: dict[str, None] | None = None) -> None:
        self.error = error
        self.query_ids = {} if query_ids is None else query_ids
        """The ids of all queries so far; those of other blocks of the same file, too."""
        self.results = _Items("results", error)
        self.candidates = _Items("candidates", error)
        self.timings: list[tuple[str, str, float]] = []
        self.calls: list[tuple[Any, ...]] = []
        self.failures: list[dict[str, Any]] = []
        self.attempts: list[tuple[str, int, bool]] = []
        self.responses: list[tuple[str, str]] = []

    def add(self, number: int, line: RunLine) -> None:
        """Check a line and add its rows."""
        query = new_query_id(line.query_id, self.query_ids, number, self.error)
        self.query_ids[query] = None
        if line.error is not None:
            self.failures.append({"query_id": query} | msgspec.structs.asdict(line.error))
        elif line.results is None:
            raise self.error(
                "the line has no results",
                line=number,
                field="results",
                hint="write [] if nothing was retrieved; if this is gold, "
                "check whether you swapped gold and run",
            )
        # A failed query is scored as if nothing was retrieved, even if it has partial results.
        is_scored = line.error is None
        self.results.add(query, (line.results or ()) if is_scored else (), number)
        if line.candidates is not None and is_scored:
            self.candidates.add(query, line.candidates, number)
        self.timings += timing_rows(query, line.latency_ms, number, self.error)
        self.calls += call_rows(query, line.calls, number, self.error)
        if line.attempts > 1 or line.varied:
            self.attempts.append((query, line.attempts, line.varied))
        response = line.answer if line.response is None else line.response
        if isinstance(response, str):
            self.responses.append((query, response))

    def to_run(self, results: pl.DataFrame, header: Header) -> Run:
        """Build the other tables."""
        errors = timings = calls = attempts = responses = None
        if self.failures:
            errors = pl.DataFrame(self.failures)
        if self.timings:
            timings = table_of(self.timings, TIMINGS, "latency_ms", orient="row")
        if self.calls:
            calls = table_of(self.calls, CALLS, "calls", orient="row")
        if self.attempts:
            attempts = pl.DataFrame(self.attempts, ATTEMPTS, orient="row")
        if self.responses:
            responses = pl.DataFrame(self.responses, RESPONSES, orient="row")
        candidates = None
        if self.candidates.queries:
            candidates = Run(
                self.candidates.table(), empty=self.candidates.empty, offsets=header.offsets
            )
        return Run(
            results,
            empty=self.results.empty,
            errors=errors,
            timings=timings,
            calls=calls,
            attempts=attempts,
            responses=responses,
            candidates=candidates,
            offsets=header.offsets,
            name=header.name,
            settings=header.settings,
        )


def _has_values(column: pl.Series) -> bool:
    return column.null_count() < column.len()


def check_result(result: ResultRow, number: int, field: str, error: MakeError) -> None:
    """Raise an error for a result without id, offsets and text, or with an invalid value."""
    if result.id is None and result.start is None and result.doc_id is None and result.text is None:
        raise error(
            "the result has no id, no offsets and no text",
            line=number,
            field=field,
            hint='add an "id"',
        )
    if result.start is not None and (result.end is None or result.end < result.start):
        raise error(
            describe_invalid_span(result.start, result.end),
            line=number,
            field=field,
            hint=OFFSETS_HINT,
        )
    if result.score is not None and not math.isfinite(result.score):
        raise error(
            f"must be a finite number, got {result.score}",
            line=number,
            field=f"{field}.score",
            hint="write a finite number, or omit the score",
        )


def timing_rows(
    query: str, latency: dict[str, float] | None, number: int, error: MakeError
) -> list[tuple[str, str, float]]:
    """Return one row per stage; raise an error for a latency that is negative or not finite."""
    for stage, ms in (latency or {}).items():
        if not 0 <= ms < _MAX_MS:
            raise error(
                f"must be at least 0 and below {_MAX_MS:g} (milliseconds), got {ms}",
                line=number,
                field=f"latency_ms.{stage}",
                hint="correct the value, or omit the stage",
            )
    return [(query, stage, ms) for stage, ms in (latency or {}).items()]


def refuse_two_prices(call: Call, error: Callable[..., InputError], **location: Any) -> None:
    """Raise an error for a call with two prices for the same thing."""
    has_separate_prices = call.price_in is not None or call.price_out is not None
    if call.price_per_1k is not None and has_separate_prices:
        raise error(
            "price_per_1k is the price of all tokens and cannot be combined with price_in or "
            "price_out",
            hint="use price_per_1k, or price_in and price_out",
            **location,
        )
    if call.price_per_call is not None and call.price_per_1k_calls is not None:
        raise error(
            "price_per_call and price_per_1k_calls are the same price in two units",
            hint="use one of them",
            **location,
        )


def call_rows(
    query: str, calls: Sequence[Call] | None, number: int, error: MakeError
) -> list[tuple[Any, ...]]:
    """Return one row per call; raise an error for contradictory prices."""
    for i, call in enumerate(calls or ()):
        refuse_two_prices(call, error, line=number, field=f"calls[{i}]")
    return [(query, *msgspec.structs.astuple(call)[1:]) for call in calls or ()]
