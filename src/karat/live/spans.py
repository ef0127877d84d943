"""Spans of traces, however they were written: OTLP, the OpenTelemetry SDK, Phoenix."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from karat.errors import InputError

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
