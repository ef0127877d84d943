"""What traces tell of a retriever: how long its stages took, and which models it called.

Names are those of OpenInference and of OpenTelemetry's conventions for generative AI.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import polars as pl

from karat.data.formats.json_lines import record_error, table_of
from karat.data.formats.native_run import CALLS, TIMINGS, Call, call_rows
from karat.data.run import Run
from karat.errors import InputError, KaratWarning, counted
from karat.files import Source, decode
from karat.live.prices import priced

_KINDS = ("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans", "data")
"""What holds spans, or what holds them, in OTLP and in what Phoenix returns."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOT_SPANS = "give OTLP JSON, spans of the OpenTelemetry SDK as JSON, or spans as Phoenix exports"


@dataclass(frozen=True)
class Place:
    """Where something stands in a trace, for errors."""

    path: str = "trace"
    make: Callable[..., InputError] = InputError

    def at(self, step: str) -> Place:
        """Return a place within this one."""
        return replace(self, path=f"{self.path}{step}")

    def error(self, problem: str, hint: str = NOT_SPANS) -> InputError:
        """Make the error for what stands here."""
        return self.make(problem, field=self.path, hint=hint)


_ANYWHERE = Place()


@dataclass(frozen=True)
class Span:
    """One step of a trace: what it was, under which other step, and for how long."""

    trace: str
    id: str
    parent: str | None
    name: str
    start: int
    """In nanoseconds since 1970."""
    ms: float
    attributes: Mapping[str, Any]
    place: Place

    @property
    def key(self) -> tuple[str, str]:
        """What no other span has."""
        return self.trace, self.id


def spans_of(given: Any, place: Place = _ANYWHERE) -> Iterator[Span]:
    """Yield the spans in what was given: spans, lists and objects of them, or their JSON."""
    if isinstance(given, (str, bytes)):
        given = _decoded(given, place)
    elif callable(getattr(given, "to_json", None)):  # a span of the SDK itself
        given = _decoded(given.to_json(), place)
    if isinstance(given, Mapping):
        if "name" in given and ("startTimeUnixNano" in given or "start_time" in given):
            yield _span(given, place)
            return
        held = [kind for kind in _KINDS if kind in given]
        if not held:
            raise place.error("there are no spans")
        for kind in held:
            yield from spans_of(given[kind], place.at(f".{kind}"))
    elif isinstance(given, (list, tuple)):
        for at, each in enumerate(given):
            yield from spans_of(each, place.at(f"[{at}]"))
    else:
        raise place.error(f"a {type(given).__name__} is no span")


def _decoded(text: str | bytes, place: Place) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise place.error(f"this is no JSON ({error})") from error


def _span(given: Mapping[str, Any], place: Place) -> Span:
    context = given.get("context")
    ids: Mapping[str, Any] = {**given, **context} if isinstance(context, Mapping) else given
    trace, own = (_id(ids, names, place) for names in (_TRACES, _OWN))
    parent = given.get("parentSpanId") or given.get("parent_id")
    start, end = (_moment(given, words, place) for words in (_STARTS, _ENDS))
    if end < start:
        raise place.error("the span ends before it starts", "were its times swapped?")
    attributes = _attributes(given.get("attributes") or {}, place.at(".attributes"))
    kind = given.get("span_kind")  # Phoenix keeps the kind apart
    if isinstance(kind, str):
        attributes.setdefault("openinference.span.kind", kind)
    return Span(
        trace=trace,
        id=own,
        parent=_plain(parent) if isinstance(parent, str) else None,
        name=str(given["name"]),
        start=start,
        ms=(end - start) / 1e6,
        attributes=attributes,
        place=place,
    )


def _id(ids: Mapping[str, Any], names: tuple[str, str], place: Place) -> str:
    held = next((ids[name] for name in names if ids.get(name)), None)
    if not isinstance(held, str):
        raise place.error(f"the span has no {names[1]}")
    return _plain(held)


def _plain(given: str) -> str:
    """Return an id as it is in any shape: the SDK writes 0x before it."""
    return given.lower().removeprefix("0x")


_TRACES = ("traceId", "trace_id")
_OWN = ("spanId", "span_id")
_STARTS = ("startTimeUnixNano", "start_time")
_ENDS = ("endTimeUnixNano", "end_time")


def _moment(span: Mapping[str, Any], names: tuple[str, ...], place: Place) -> int:
    """Return a time in nanoseconds: OTLP counts them, the others write a date."""
    name = next((name for name in names if span.get(name)), names[-1])
    given = span.get(name)
    try:
        if isinstance(given, datetime):
            return _nanoseconds(given)
        if isinstance(given, str) and not given.isdecimal():
            return _nanoseconds(datetime.fromisoformat(given))
        if isinstance(given, (str, int)) and int(given) > 0:
            return int(given)
    except (ValueError, OverflowError):
        pass
    raise place.at(f".{name}").error(
        f"{given!r} is no time" if given else "the span has no such time; was it ended?",
        "write nanoseconds since 1970, or a date such as 2026-01-31T12:00:00.5Z",
    )


def _nanoseconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1000


def _attributes(given: Any, place: Place) -> dict[str, Any]:
    """Return attributes by their whole names: OTLP lists them, others nest them."""
    if isinstance(given, Mapping):
        return dict(_flat(given))
    if isinstance(given, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("key"), str) for each in given
    ):
        return {each["key"]: _value(each.get("value")) for each in given}
    raise place.error("these are no attributes", "write {name: value}, or OTLP's list")


def _flat(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _value(given: Any) -> Any:
    """Return what a value of OTLP holds; of lists and bytes nothing is ever asked."""
    if not isinstance(given, Mapping):
        return None
    if isinstance(number := given.get("intValue"), str):
        return int(number) if number.lstrip("-").isdecimal() else number
    kinds = ("stringValue", "intValue", "doubleValue", "boolValue")
    return next((given[kind] for kind in kinds if kind in given), None)


Known = Mapping[tuple[str, str], Span]

QUERY = "karat.query_id"
STAGE = "karat.stage"
_TOTAL, _REPORTED = "total", "reported"
_BY_KIND = {
    "RETRIEVER": "retrieval",
    "RERANKER": "rerank",
    "LLM": "generation",
    "EMBEDDING": "embedding",
}
_BY_OPERATION = {
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


@dataclass(frozen=True)
class Usage:
    """What a trace tells: milliseconds by stage, and calls of models as they came."""

    latency_ms: dict[str, float]
    calls: list[Call]


def usage(trace: Any) -> Usage:
    """Return what the spans of one query tell.

    A stage takes the sum of its spans, side by side or not; one within another of the same stage
    is part of it and counts nothing. So it is with calls, where the outermost span that knows its
    tokens counts. A stage that somebody called `total` is told as `reported`.
    """
    return _usage(spans_of(trace))


def attach(run: Run, traces: Any, *, attribute: str = QUERY) -> Run:
    """Return a run with what traces tell of its queries.

    `traces` is a file of JSON or JSON Lines, as collectors and SDKs write them, or what `usage`
    takes. A trace belongs to the query that the attribute names on any of its spans; where it
    names several, a span belongs to the one that it stands under. What is told of a stage takes
    the place of what the run said of it.
    """
    is_file = isinstance(traces, os.PathLike) or (
        isinstance(traces, str) and not traces.lstrip().startswith(("{", "["))
    )
    spans = list(_read(Source(traces)) if is_file else spans_of(traces))
    by_query, nameless = _by_query(spans, attribute)
    asked = set(run.query_ids)
    told = {query: _usage(held) for query, held in by_query.items() if query in asked}
    if not told:
        raise InputError(
            "no trace belongs to a query of the run",
            path=traces if is_file else None,
            hint=f"set {attribute} to the query's id on a span of each trace, or name the "
            "attribute that holds it",
        )
    _warn(nameless, len(by_query) - len(told), attribute)
    return run.with_usage(
        timings=_replaced(run.timings, _timings(told), TIMINGS),
        calls=_replaced(run.calls, _calls(told), CALLS),
    )


def _usage(given: Iterable[Span]) -> Usage:
    known = {span.key: span for span in given}  # a span that was exported twice is one
    stages: dict[str, list[Span]] = {}
    for span in sorted(known.values(), key=lambda span: (span.start, span.key)):
        if (stage := _stage(span)) is not None:
            stages.setdefault(stage, []).append(span)
    latency = {
        stage: math.fsum(span.ms for span in _outermost(held, known))
        for stage, held in stages.items()
    }
    calls = [(span, stage) for stage, held in stages.items() for span in _calling(held, known)]
    calls.sort(key=lambda call: (call[0].start, call[0].key))
    return Usage(latency, [_call(span, stage) for span, stage in calls])


def _stage(span: Span) -> str | None:
    """Return the stage that a span belongs to: as it is marked, else by its kind."""
    marked = span.attributes.get(STAGE)
    kind = str(span.attributes.get("openinference.span.kind", "")).upper()
    operation = span.attributes.get("gen_ai.operation.name")
    stage = _BY_KIND.get(kind) or _BY_OPERATION.get(str(operation))
    if marked not in (None, False, ""):
        stage = marked if isinstance(marked, str) else span.name
    return _REPORTED if stage == _TOTAL else stage


def _above(span: Span, known: Known) -> list[Span]:
    """Return the spans that a span stands in, from within."""
    found = [span]
    while (parent := found[-1].parent) is not None and (span.trace, parent) in known:
        up = known[span.trace, parent]
        if up in found:
            raise up.place.error("the span stands within itself", "mend the ids of its parents")
        found.append(up)
    return found[1:]


def _outermost(spans: Sequence[Span], known: Known) -> list[Span]:
    """Return the spans that stand in no other of them."""
    keys = {span.key for span in spans}
    return [span for span in spans if keys.isdisjoint(up.key for up in _above(span, known))]


def _calling(spans: Sequence[Span], known: Known) -> list[Span]:
    """Return the spans of a stage that are calls: an inner one may know what an outer does not."""
    counted = _outermost([span for span in spans if _tokens(span) != (None, None)], known)
    inside = {up.key for span in counted for up in _above(span, known)}
    named = [span for span in spans if span.key not in inside and _model(span) is not None]
    return _outermost(list({span.key: span for span in (*counted, *named)}.values()), known)


def _call(span: Span, stage: str) -> Call:
    prompt, completion = _tokens(span)
    return Call(stage=stage, model=_model(span), prompt_tokens=prompt, completion_tokens=completion)


def _model(span: Span) -> str | None:
    held = (span.attributes.get(name) for name in _MODELS)
    return next((model for model in held if isinstance(model, str) and model), None)


def _tokens(span: Span) -> tuple[int | None, int | None]:
    return _count(span, _PROMPTS), _count(span, _COMPLETIONS)


def _count(span: Span, names: Sequence[str]) -> int | None:
    for name in names:
        count = span.attributes.get(name)
        if count is None or (isinstance(count, float) and math.isnan(count)):
            continue  # tables write NaN where there is nothing
        if isinstance(count, float) and count.is_integer():
            count = int(count)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 1 << 53:
            raise span.place.at(f".attributes.{name}").error(
                f"{count!r} is no number of tokens", "write a whole number from 0 up"
            )
        return count
    return None


def _read(source: Source) -> Iterator[Span]:
    """Yield the spans of a file, which may hold one document, or one after the other."""
    text = decode(source.read(), source)
    decoder, at, line = json.JSONDecoder(), 0, 1
    while at < len(text):
        if text[at].isspace():
            line += text[at] == "\n"
            at += 1
            continue
        try:
            held, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise source.error(f"this is no JSON ({error})", line=line, hint=NOT_SPANS) from error
        yield from spans_of(held, Place("trace", partial(source.error, line=line)))
        line += text.count("\n", at, end)
        at = end


def _by_query(spans: Iterable[Span], attribute: str) -> tuple[dict[str, list[Span]], int]:
    """Return the spans of each query, and how many traces name none."""
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace, []).append(span)
    by_query: dict[str, list[Span]] = {}
    nameless = 0
    for held in traces.values():
        queries = {query for span in held if (query := _named(span, attribute)) is not None}
        nameless += not queries
        known = {span.key: span for span in held}
        for span in held if queries else ():
            around = (_named(each, attribute) for each in (span, *_above(span, known)))
            nearest = next((query for query in around if query is not None), None)
            query = next(iter(queries)) if len(queries) == 1 else nearest
            if query is not None:
                by_query.setdefault(query, []).append(span)
    return by_query, nameless


def _named(span: Span, attribute: str) -> str | None:
    held = span.attributes.get(attribute)
    if held is None or held == "":
        return None
    if isinstance(held, bool) or not isinstance(held, (str, int)):
        raise span.place.at(f".attributes.{attribute}").error(
            f"{held!r} is no id of a query", "write it as text"
        )
    return str(held)


def _warn(nameless: int, unknown: int, attribute: str) -> None:
    said = []
    if nameless:
        said.append(f"{counted(nameless, 'trace')} without {attribute}")
    if unknown:
        said.append(f"traces of {counted(unknown, 'query')} that the run does not hold")
    if said:
        warnings.warn(KaratWarning(f"left out: {' and '.join(said)}"), stacklevel=3)


def _timings(told: Mapping[str, Usage]) -> list[tuple[Any, ...]]:
    return [
        (query, stage, ms) for query, each in told.items() for stage, ms in each.latency_ms.items()
    ]


def _calls(told: Mapping[str, Usage]) -> list[tuple[Any, ...]]:
    return [
        row
        for query, each in told.items()
        for row in call_rows(query, list(map(priced, each.calls)), 1, record_error)
    ]


def _replaced(
    before: pl.DataFrame | None, rows: list[tuple[Any, ...]], schema: dict[str, Any]
) -> pl.DataFrame | None:
    """Put rows in the place of those of the same query and stage."""
    if not rows:
        return before
    table = table_of(rows, schema, "trace", orient="row")
    if before is None:
        return table
    kept = before.join(table, on=["query_id", "stage"], how="anti", maintain_order="left")
    return pl.concat([kept, table])
