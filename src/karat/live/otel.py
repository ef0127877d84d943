"""Latencies and model calls from traces, in the formats of OpenTelemetry and OpenInference.

What is in this file:

- `usage` returns the stages and model calls of one query, and `attach` adds those of a file of
  traces to a run.
- `parse_spans` reads spans from OTLP JSON, from the JSON of the OpenTelemetry SDK, and from
  exports of Phoenix.

The names of attributes are those of OpenInference and of OpenTelemetry's semantic conventions for
generative AI.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import polars as pl

from karat.data.formats.json_lines import record_error, table_of
from karat.data.formats.native_run import CALLS, TIMINGS, Call, call_rows
from karat.data.run import Run
from karat.errors import InputError, counted, warn
from karat.files import Source, decode
from karat.live.prices import with_prices

QUERY = "karat.query_id"
STAGE = "karat.stage"
NOT_SPANS = (
    "pass OTLP JSON, spans of the OpenTelemetry SDK as JSON, or spans as Phoenix exports them"
)
_TOTAL, _REPORTED = "total", "reported"
_STAGE_BY_KIND = {
    "RETRIEVER": "retrieval",
    "RERANKER": "rerank",
    "LLM": "generation",
    "EMBEDDING": "embedding",
}
_STAGE_BY_OPERATION = {
    "chat": "generation",
    "text_completion": "generation",
    "generate_content": "generation",
    "embeddings": "embedding",
    "retrieval": "retrieval",
}
_MODELS = (
    "llm.model_name",
    "embedding.model_name",
    "reranker.model_name",
    "gen_ai.request.model",
    "gen_ai.response.model",
)
_PROMPTS = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_COMPLETIONS = (
    "llm.token_count.completion",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
)
# Keys whose values contain spans, directly or nested, in OTLP and in responses of Phoenix.
_CONTAINERS = ("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans", "data")
_TRACE_IDS = ("traceId", "trace_id")
_SPAN_IDS = ("spanId", "span_id")
_START_TIMES = ("startTimeUnixNano", "start_time")
_END_TIMES = ("endTimeUnixNano", "end_time")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TraceUsage:
    """The usage of one query: milliseconds by stage, and model calls in the order of their start.

    Attributes
    ----------
    latency_ms : dict of str to float
        Milliseconds by stage.
    calls : list of Call
        The model calls, with the model, the stage and the numbers of tokens.
    """

    latency_ms: dict[str, float]
    calls: list[Call]


def usage(trace: Any) -> TraceUsage:
    """Return the stages and model calls of the spans of one query.

    The latency of a stage is the sum over its spans, even if they overlap. A span inside another
    span of the same stage is part of it and is not added. Model calls are counted in the same way:
    of nested spans with numbers of tokens, only the outermost one counts. A stage named `total` is
    renamed to `reported`, because `total` is the time that karat measures.

    Parameters
    ----------
    trace : str, bytes, dict, list or span
        OTLP JSON, spans of the OpenTelemetry SDK (as objects or as JSON), spans as Phoenix exports
        them, or a list of these.

    Returns
    -------
    TraceUsage
        The latencies by stage and the model calls.

    Examples
    --------
    >>> span = {
    ...     "name": "search",
    ...     "traceId": "1",
    ...     "spanId": "2",
    ...     "startTimeUnixNano": "1000000000",
    ...     "endTimeUnixNano": "1250000000",
    ...     "attributes": {"openinference.span.kind": "RETRIEVER"},
    ... }
    >>> usage(span).latency_ms
    {'retrieval': 250.0}
    """
    return _summarize(parse_spans(trace))


def attach(run: Run, traces: Any, *, attribute: str = QUERY) -> Run:
    """Return a run with the latencies and model calls from traces.

    If any span of a trace has the attribute with a query id, the trace belongs to that query. If
    the spans of a trace have several query ids, each span belongs to the query of its own id, or
    else of the closest span around it that has one. If the traces contain a stage of a query, its
    latency and model calls are taken from the traces instead of the run.

    Parameters
    ----------
    run : Run
        The run, which is not changed.
    traces : path, str, bytes, dict, list or span
        A JSON or JSON Lines file, as collectors and SDKs write them, or anything that `usage`
        accepts.
    attribute : str, default "karat.query_id"
        The attribute of spans that has the id of the query.

    Returns
    -------
    Run
        A copy of the run with the usage of its queries.

    Raises
    ------
    InputError
        If the traces cannot be read, or none of them belongs to a query of the run.

    Examples
    --------
    >>> span = {
    ...     "name": "search",
    ...     "traceId": "1",
    ...     "spanId": "2",
    ...     "startTimeUnixNano": "1000000000",
    ...     "endTimeUnixNano": "1250000000",
    ...     "attributes": {"openinference.span.kind": "RETRIEVER", "karat.query_id": "q1"},
    ... }
    >>> attach(Run.of({"q1": ["faq-1"]}), [span]).timings.rows()
    [('q1', 'retrieval', 250.0)]
    """
    is_file = isinstance(traces, os.PathLike) or (
        isinstance(traces, str) and not traces.lstrip().startswith(("{", "["))
    )
    spans = list(_read_file(Source(traces)) if is_file else parse_spans(traces))
    spans_by_query, n_unnamed = _group_by_query(spans, attribute)
    run_queries = set(run.query_ids)
    usage_by_query = {
        query_id: _summarize(query_spans)
        for query_id, query_spans in spans_by_query.items()
        if query_id in run_queries
    }
    if not usage_by_query:
        raise InputError(
            "no trace belongs to a query of the run",
            path=traces if is_file else None,
            hint=f"in each trace, set the attribute {attribute} of one span to the query id, or "
            "pass the name of the attribute that contains the query id",
        )
    _warn_about_skipped(n_unnamed, len(spans_by_query) - len(usage_by_query), attribute)
    return run.with_usage(
        timings=_replace_rows(run.timings, _timing_rows(usage_by_query), TIMINGS),
        calls=_replace_rows(run.calls, _call_rows(usage_by_query), CALLS),
    )


@dataclass(frozen=True)
class TraceLocation:
    """The position of a value in a trace, for error messages."""

    path: str = "trace"
    make_error: Callable[..., InputError] = InputError

    def child(self, step: str) -> TraceLocation:
        """Return the position of a value inside this one."""
        return replace(self, path=f"{self.path}{step}")

    def error(self, problem: str, hint: str = NOT_SPANS) -> InputError:
        """Return an error about the value at this position."""
        return self.make_error(problem, field=self.path, hint=hint)


_ROOT = TraceLocation()


@dataclass(frozen=True)
class TraceSpan:
    """One step of a trace."""

    trace: str
    id: str
    parent: str | None
    name: str
    start: int
    """Nanoseconds since 1970."""
    ms: float
    attributes: Mapping[str, Any]
    location: TraceLocation

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the span."""
        return self.trace, self.id


SpansByKey = Mapping[tuple[str, str], TraceSpan]


def parse_spans(data: Any, location: TraceLocation = _ROOT) -> Iterator[TraceSpan]:
    """Yield all spans in spans, lists or objects of spans, or JSON of these."""
    if isinstance(data, (str, bytes)):
        data = _parse_json(data, location)
    elif callable(getattr(data, "to_json", None)):  # a span object of the SDK
        data = _parse_json(data.to_json(), location)
    if isinstance(data, Mapping):
        if "name" in data and ("startTimeUnixNano" in data or "start_time" in data):
            yield _parse_span(data, location)
            return
        containers = [key for key in _CONTAINERS if key in data]
        if not containers:
            raise location.error("the object contains no spans")
        for key in containers:
            yield from parse_spans(data[key], location.child(f".{key}"))
    elif isinstance(data, (list, tuple)):
        for position, element in enumerate(data):
            yield from parse_spans(element, location.child(f"[{position}]"))
    else:
        raise location.error(f"expected a span, got a value of type {type(data).__name__}")


def _parse_json(text: str | bytes, location: TraceLocation) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise location.error(f"the trace is not valid JSON ({error})") from error


def _parse_span(data: Mapping[str, Any], location: TraceLocation) -> TraceSpan:
    context = data.get("context")
    ids: Mapping[str, Any] = {**data, **context} if isinstance(context, Mapping) else data
    trace_id = _parse_id(ids, _TRACE_IDS, location)
    span_id = _parse_id(ids, _SPAN_IDS, location)
    parent = data.get("parentSpanId") or data.get("parent_id")
    start = _timestamp(data, _START_TIMES, location)
    end = _timestamp(data, _END_TIMES, location)
    if end < start:
        raise location.error(
            "the span ends before it starts", "check whether the start and end times are swapped"
        )
    attributes = _parse_attributes(data.get("attributes") or {}, location.child(".attributes"))
    kind = data.get("span_kind")  # Phoenix has it outside the attributes
    if isinstance(kind, str):
        attributes.setdefault("openinference.span.kind", kind)
    return TraceSpan(
        trace=trace_id,
        id=span_id,
        parent=_normalize_id(parent) if isinstance(parent, str) else None,
        name=str(data["name"]),
        start=start,
        ms=(end - start) / 1e6,
        attributes=attributes,
        location=location,
    )


def _parse_id(ids: Mapping[str, Any], names: tuple[str, str], location: TraceLocation) -> str:
    value = next((ids[name] for name in names if ids.get(name)), None)
    if not isinstance(value, str):
        raise location.error(f"the span has no {names[1]}")
    return _normalize_id(value)


def _normalize_id(value: str) -> str:
    # The SDK writes 0x before an id, OTLP does not.
    return value.lower().removeprefix("0x")


def _timestamp(span: Mapping[str, Any], names: tuple[str, ...], location: TraceLocation) -> int:
    """Return a time in nanoseconds since 1970: OTLP has numbers, other formats have dates."""
    name = next((name for name in names if span.get(name)), names[-1])
    value = span.get(name)
    try:
        if isinstance(value, datetime):
            return _to_nanoseconds(value)
        if isinstance(value, str) and not value.isdecimal():
            return _to_nanoseconds(datetime.fromisoformat(value))
        if isinstance(value, (str, int)) and int(value) > 0:
            return int(value)
    except (ValueError, OverflowError):
        pass
    if value:
        raise location.child(f".{name}").error(
            f"expected a time, got {value!r}",
            "write nanoseconds since 1970, or a date such as 2026-01-31T12:00:00.5Z",
        )
    raise location.child(f".{name}").error(
        "the time is missing", "end every span before it is exported"
    )


def _to_nanoseconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1000


def _parse_attributes(data: Any, location: TraceLocation) -> dict[str, Any]:
    """Return attributes by their full names: OTLP has a list of them, other formats nest them."""
    if isinstance(data, Mapping):
        return dict(_flatten(data))
    if isinstance(data, list) and all(
        isinstance(pair, Mapping) and isinstance(pair.get("key"), str) for pair in data
    ):
        return {pair["key"]: _otlp_value(pair.get("value")) for pair in data}
    raise location.error(
        "attributes must be an object or a list of OTLP attributes",
        'write {"name": "value"}, or [{"key": "name", "value": {"stringValue": "value"}}]',
    )


def _flatten(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _otlp_value(value: Any) -> Any:
    """Return the content of an OTLP value; karat does not need lists and bytes."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(number := value.get("intValue"), str):
        return int(number) if number.lstrip("-").isdecimal() else number
    types = ("stringValue", "intValue", "doubleValue", "boolValue")
    return next((value[name] for name in types if name in value), None)


def _read_file(source: Source) -> Iterator[TraceSpan]:
    """Yield the spans of a file of one JSON document, or several one after the other."""
    text = decode(source.read(), source)
    decoder, position, line = json.JSONDecoder(), 0, 1
    while position < len(text):
        if text[position].isspace():
            line += text[position] == "\n"
            position += 1
            continue
        try:
            document, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise source.error(
                f"the file is not valid JSON ({error})", line=line, hint=NOT_SPANS
            ) from error
        yield from parse_spans(document, TraceLocation("trace", partial(source.error, line=line)))
        line += text.count("\n", position, end)
        position = end


def _summarize(spans: Iterable[TraceSpan]) -> TraceUsage:
    by_key = {span.key: span for span in spans}  # a span may be exported twice
    spans_by_stage: dict[str, list[TraceSpan]] = {}
    for span in sorted(by_key.values(), key=lambda span: (span.start, span.key)):
        if (stage := _stage(span)) is not None:
            spans_by_stage.setdefault(stage, []).append(span)
    latency = {
        stage: math.fsum(span.ms for span in _outermost(stage_spans, by_key))
        for stage, stage_spans in spans_by_stage.items()
    }
    calls = [
        (span, stage)
        for stage, stage_spans in spans_by_stage.items()
        for span in _model_calls(stage_spans, by_key)
    ]
    calls.sort(key=lambda call: (call[0].start, call[0].key))
    return TraceUsage(latency, [_to_call(span, stage) for span, stage in calls])


def _stage(span: TraceSpan) -> str | None:
    """Return the stage of a span: from the attribute `karat.stage`, otherwise from its kind."""
    explicit = span.attributes.get(STAGE)
    kind = str(span.attributes.get("openinference.span.kind", "")).upper()
    operation = span.attributes.get("gen_ai.operation.name")
    stage = _STAGE_BY_KIND.get(kind) or _STAGE_BY_OPERATION.get(str(operation))
    if explicit not in (None, False, ""):
        stage = explicit if isinstance(explicit, str) else span.name
    return _REPORTED if stage == _TOTAL else stage


def _ancestors(span: TraceSpan, by_key: SpansByKey) -> list[TraceSpan]:
    """Return the spans around a span, the closest one first."""
    chain = [span]
    while (parent := chain[-1].parent) is not None and (span.trace, parent) in by_key:
        ancestor = by_key[span.trace, parent]
        if ancestor in chain:
            raise ancestor.location.error(
                "the span is its own ancestor", "correct the parent ids of the trace"
            )
        chain.append(ancestor)
    return chain[1:]


def _outermost(spans: Sequence[TraceSpan], by_key: SpansByKey) -> list[TraceSpan]:
    """Return the spans that are not nested in another of the given spans."""
    keys = {span.key for span in spans}
    return [
        span
        for span in spans
        if keys.isdisjoint(ancestor.key for ancestor in _ancestors(span, by_key))
    ]


def _model_calls(spans: Sequence[TraceSpan], by_key: SpansByKey) -> list[TraceSpan]:
    """Return the spans of a stage that are model calls.

    Spans with numbers of tokens take precedence, because an inner span may have them although the
    outer one only has the name of the model.
    """
    with_tokens = _outermost([span for span in spans if _tokens(span) != (None, None)], by_key)
    around = {ancestor.key for span in with_tokens for ancestor in _ancestors(span, by_key)}
    with_model = [span for span in spans if span.key not in around and _model(span) is not None]
    candidates = {span.key: span for span in (*with_tokens, *with_model)}
    return _outermost(list(candidates.values()), by_key)


def _to_call(span: TraceSpan, stage: str) -> Call:
    prompt, completion = _tokens(span)
    return Call(stage=stage, model=_model(span), prompt_tokens=prompt, completion_tokens=completion)


def _model(span: TraceSpan) -> str | None:
    values = (span.attributes.get(name) for name in _MODELS)
    return next((model for model in values if isinstance(model, str) and model), None)


def _tokens(span: TraceSpan) -> tuple[int | None, int | None]:
    return _token_count(span, _PROMPTS), _token_count(span, _COMPLETIONS)


def _token_count(span: TraceSpan, names: Sequence[str]) -> int | None:
    for name in names:
        count = span.attributes.get(name)
        if count is None or (isinstance(count, float) and math.isnan(count)):
            continue  # tables have NaN for a missing value
        if isinstance(count, float) and count.is_integer():
            count = int(count)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 1 << 53:
            raise span.location.child(f".attributes.{name}").error(
                f"expected a number of tokens, got {count!r}", "write an integer of at least 0"
            )
        return count
    return None


def _group_by_query(
    spans: Iterable[TraceSpan], attribute: str
) -> tuple[dict[str, list[TraceSpan]], int]:
    """Return the spans of each query, and the number of traces that name no query."""
    traces: dict[str, list[TraceSpan]] = {}
    for span in spans:
        traces.setdefault(span.trace, []).append(span)
    spans_by_query: dict[str, list[TraceSpan]] = {}
    n_unnamed = 0
    for trace in traces.values():
        ids = (_query_id(span, attribute) for span in trace)
        query_ids = {query_id for query_id in ids if query_id is not None}
        if not query_ids:
            n_unnamed += 1
            continue
        only_id = query_ids.pop() if len(query_ids) == 1 else None
        by_key = {span.key: span for span in trace}
        for span in trace:
            nearest_id = _nearest_query_id(span, by_key, attribute)
            query_id = only_id or nearest_id
            if query_id is not None:
                spans_by_query.setdefault(query_id, []).append(span)
    return spans_by_query, n_unnamed


def _nearest_query_id(span: TraceSpan, by_key: SpansByKey, attribute: str) -> str | None:
    for candidate in (span, *_ancestors(span, by_key)):
        query_id = _query_id(candidate, attribute)
        if query_id is not None:
            return query_id
    return None


def _query_id(span: TraceSpan, attribute: str) -> str | None:
    value = span.attributes.get(attribute)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise span.location.child(f".attributes.{attribute}").error(
            f"expected the id of a query, got {value!r}", "write the id as a string"
        )
    return str(value)


def _warn_about_skipped(n_unnamed: int, n_unknown: int, attribute: str) -> None:
    skipped = []
    if n_unnamed:
        verb = "has" if n_unnamed == 1 else "have"
        skipped.append(f"{counted(n_unnamed, 'trace')} that {verb} no {attribute}")
    if n_unknown:
        skipped.append(f"the traces of {counted(n_unknown, 'query')} not in the run")
    if skipped:
        warn(f"skipped {', and '.join(skipped)}", stacklevel=3)


def _timing_rows(usage_by_query: Mapping[str, TraceUsage]) -> list[tuple[Any, ...]]:
    return [
        (query_id, stage, ms)
        for query_id, query_usage in usage_by_query.items()
        for stage, ms in query_usage.latency_ms.items()
    ]


def _call_rows(usage_by_query: Mapping[str, TraceUsage]) -> list[tuple[Any, ...]]:
    return [
        row
        for query_id, query_usage in usage_by_query.items()
        for row in call_rows(query_id, list(map(with_prices, query_usage.calls)), 1, record_error)
    ]


def _replace_rows(
    existing: pl.DataFrame | None, rows: list[tuple[Any, ...]], schema: dict[str, Any]
) -> pl.DataFrame | None:
    """Add rows to a table; they replace rows of the same query and stage."""
    if not rows:
        return existing
    table = table_of(rows, schema, "trace", orient="row")
    if existing is None:
        return table
    unaffected = existing.join(table, on=["query_id", "stage"], how="anti", maintain_order="left")
    return pl.concat([unaffected, table])
