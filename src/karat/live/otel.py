"""What traces tell of a retriever: how long its stages took, and which models it called.

Names are those of OpenInference and of OpenTelemetry's conventions for generative AI.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from karat.data.native_lines import record_error, table_of
from karat.data.native_usage import CALLS, TIMINGS, Call, call_rows
from karat.data.run import Run
from karat.errors import InputError, KaratWarning, counted
from karat.files import Source, decode
from karat.live.prices import priced
from karat.live.spans import NOT_SPANS, Place, Span, spans_of

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
