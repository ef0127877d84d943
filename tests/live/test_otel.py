"""Traces of OpenTelemetry and OpenInference: how long stages took, and which models were called."""

import json
import math
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.data import Run
from karat.data.native_usage import Call
from karat.errors import InputError, KaratWarning
from karat.live.otel import attach, usage

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def span(at, parent=None, ms=10, name="step", trace="t1", start=0, **attributes):
    """Return a span as OTLP has it; attributes have `__` for a point."""
    begin = START + start * 1_000_000
    return {
        "traceId": trace,
        "spanId": f"s{at}",
        "parentSpanId": "" if parent is None else f"s{parent}",
        "name": name,
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(begin + round(ms * 1_000_000)),
        "attributes": [
            {"key": key.replace("__", "."), "value": value_of(value)}
            for key, value in attributes.items()
        ],
    }


def value_of(value):
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value} if isinstance(value, str) else {"doubleValue": value}


def otlp(*spans):
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}


def llm(at, parent=None, prompt=None, completion=None, model="m", **more):
    told = {"llm__token_count__prompt": prompt, "llm__token_count__completion": completion}
    held = {key: count for key, count in told.items() if count is not None}
    named = {} if model is None else {"llm__model_name": model}
    return span(at, parent, openinference__span__kind="LLM", **held, **named, **more)


@pytest.mark.parametrize(
    ("attributes", "stage"),
    [
        ({"openinference__span__kind": "RETRIEVER"}, "retrieval"),
        ({"openinference__span__kind": "RERANKER"}, "rerank"),
        ({"openinference__span__kind": "LLM"}, "generation"),
        ({"openinference__span__kind": "EMBEDDING"}, "embedding"),
        ({"openinference__span__kind": "CHAIN"}, None),
        ({"gen_ai__operation__name": "chat"}, "generation"),
        ({"gen_ai__operation__name": "text_completion"}, "generation"),
        ({"gen_ai__operation__name": "generate_content"}, "generation"),
        ({"gen_ai__operation__name": "embeddings"}, "embedding"),
        ({"gen_ai__operation__name": "retrieval"}, "retrieval"),
        ({"gen_ai__operation__name": "invoke_agent"}, None),
        ({"karat__stage": True}, "step"),
        ({"karat__stage": "fusion"}, "fusion"),
        ({"karat__stage": "fusion", "openinference__span__kind": "LLM"}, "fusion"),
        ({"karat__stage": False, "openinference__span__kind": "LLM"}, "generation"),
        ({"karat__stage": "total"}, "reported"),
        ({}, None),
    ],
)
def test_a_span_belongs_to_the_stage_of_its_kind_or_its_mark(attributes, stage):
    told = usage(otlp(span(1, ms=12.5, **attributes)))
    assert told.latency_ms == ({} if stage is None else {stage: 12.5})
    assert told.calls == []


@pytest.mark.parametrize(
    ("attributes", "call"),
    [
        (
            {"openinference__span__kind": "LLM", "llm__model_name": "m"}
            | {"llm__token_count__prompt": 7, "llm__token_count__completion": 2},
            Call(stage="generation", model="m", prompt_tokens=7, completion_tokens=2),
        ),
        (
            {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m"}
            | {"gen_ai__response__model": "m-2026"}
            | {"gen_ai__usage__input_tokens": 7, "gen_ai__usage__output_tokens": 0},
            Call(stage="generation", model="m", prompt_tokens=7, completion_tokens=0),
        ),
        (
            {"gen_ai__operation__name": "embeddings", "gen_ai__response__model": "e"}
            | {"gen_ai__usage__input_tokens": 7.0},
            Call(stage="embedding", model="e", prompt_tokens=7),
        ),
        (
            {"openinference__span__kind": "EMBEDDING", "embedding__model_name": "e"},
            Call(stage="embedding", model="e"),
        ),
        (
            {"openinference__span__kind": "RERANKER", "reranker__model_name": "r"},
            Call(stage="rerank", model="r"),
        ),
    ],
)
def test_a_span_with_a_model_or_its_tokens_is_a_call(attributes, call):
    assert usage(otlp(span(1, **attributes))).calls == [call]


def test_siblings_add_up_and_what_stands_within_counts_once():
    told = usage(
        otlp(
            span(1, ms=100, openinference__span__kind="CHAIN"),
            span(2, 1, ms=30, openinference__span__kind="RETRIEVER"),
            span(3, 2, ms=20, openinference__span__kind="RETRIEVER"),
            span(4, 3, ms=5, openinference__span__kind="EMBEDDING"),
            span(5, 1, ms=40, openinference__span__kind="RETRIEVER"),
        )
    )
    assert told.latency_ms == {"retrieval": 70.0, "embedding": 5.0}


def test_of_nested_calls_the_outermost_that_knows_its_tokens_counts():
    outer_knows = otlp(llm(1, None, 9, 1, "outer"), llm(2, 1, 9, 1, "inner"))
    assert [call.model for call in usage(outer_knows).calls] == ["outer"]
    inner_know = otlp(llm(1, None, model="outer"), llm(2, 1, 5), llm(3, 1, 6), llm(4, 3, 6))
    assert [call.prompt_tokens for call in usage(inner_know).calls] == [5, 6]
    none_knows = otlp(llm(1, None, model=None), llm(2, 1, model="a"), llm(3, 2, model="b"))
    assert [call.model for call in usage(none_knows).calls] == ["a"]


STAGES = ["LLM", "RETRIEVER", "CHAIN"]
NAMES = {"LLM": "generation", "RETRIEVER": "retrieval"}
# A node is named by the way to it: it stands in all whose way its own begins with.
ways = st.lists(st.lists(st.integers(0, 2), max_size=4).map(tuple), min_size=1, max_size=9)
nodes = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(STAGES),
        "ms": st.integers(0, 50),
        "tokens": st.none() | st.integers(0, 9),
        "model": st.none() | st.sampled_from(["a", "b"]),
    }
)


@given(ways=ways, data=st.data())
@settings(max_examples=200, deadline=None)
def test_any_tree_of_spans_tells_what_pairs_of_spans_say(ways, data):
    tree = {
        way: data.draw(nodes) for way in sorted({w[:n] for w in ways for n in range(len(w) + 1)})
    }
    number = {way: at for at, way in enumerate(tree)}
    spans = []
    for way, node in tree.items():
        told = {"llm__token_count__prompt": node["tokens"], "llm__model_name": node["model"]}
        held = {key: value for key, value in told.items() if value is not None}
        parent = number[way[:-1]] if way else None
        start = number[way]
        spans.append(
            span(number[way], parent, node["ms"], openinference__span__kind=node["kind"], **held)
            | {"startTimeUnixNano": str(START + start), "spanId": f"s{start}"}
            | {"endTimeUnixNano": str(START + start + node["ms"] * 1_000_000)}
        )
    data.draw(st.randoms(use_true_random=False)).shuffle(spans)
    told = usage(otlp(*spans))

    def within(one, other):
        return len(one) > len(other) and one[: len(other)] == other

    latency, calls = {}, []
    for kind, stage in NAMES.items():
        own = [way for way in tree if tree[way]["kind"] == kind]
        outer = [way for way in own if not any(within(way, other) for other in own)]
        if own:
            latency[stage] = float(sum(tree[way]["ms"] for way in outer))
        known = [way for way in own if tree[way]["tokens"] is not None]
        known = [way for way in known if not any(within(way, other) for other in known)]
        named = [
            way
            for way in own
            if tree[way]["model"] and not any(within(other, way) for other in known)
        ]
        either = {*known, *named}
        calls += [way for way in either if not any(within(way, other) for other in either)]
    assert told.latency_ms == latency
    wanted = [
        (NAMES[tree[way]["kind"]], tree[way]["model"], tree[way]["tokens"])
        for way in sorted(calls, key=number.get)
    ]
    assert [(call.stage, call.model, call.prompt_tokens) for call in told.calls] == wanted


FLAT = {
    "name": "ChatCompletion",
    "context": {"trace_id": "0xAB", "span_id": "0x1"},
    "parent_id": None,
    "start_time": "2026-01-31T12:00:00.000000Z",
    "end_time": "2026-01-31T12:00:00.012500Z",
    "attributes": {"openinference.span.kind": "LLM", "llm.token_count.prompt": 7},
}


@pytest.mark.parametrize(
    "trace",
    [
        FLAT,
        [FLAT],
        json.dumps(FLAT),
        {"data": [FLAT], "next_cursor": None},
        FLAT | {"start_time": "2026-01-31T13:00:00+01:00", "end_time": "2026-01-31T12:00:00.0125"},
        FLAT
        | {"span_kind": "LLM", "attributes": {"llm": {"token_count": {"prompt": 7}}}}
        | {"context": {"trace_id": "ab", "span_id": "1"}},
        [FLAT, FLAT],  # exported twice
    ],
)
def test_spans_of_the_sdk_and_of_phoenix_are_read(trace):
    told = usage(trace)
    assert told.latency_ms == {"generation": 12.5}
    assert told.calls == [Call(stage="generation", prompt_tokens=7)]


@pytest.mark.parametrize(
    ("trace", "field", "problem"),
    [
        ("{", "trace", "this is no JSON"),
        (3, "trace", "a int is no span"),
        ({"metrics": []}, "trace", "there are no spans"),
        ([FLAT, None], "trace[1]", "a NoneType is no span"),
        (FLAT | {"context": {}}, "trace", "the span has no trace_id"),
        (FLAT | {"context": {"trace_id": "t"}}, "trace", "the span has no span_id"),
        (FLAT | {"end_time": None}, "trace.end_time", "no such time; was it ended?"),
        (FLAT | {"end_time": "noon"}, "trace.end_time", "'noon' is no time"),
        (FLAT | {"end_time": "2025-01-31T12:00:00Z"}, "trace", "ends before it starts"),
        (FLAT | {"attributes": [1]}, "trace.attributes", "these are no attributes"),
        (
            otlp(span(1) | {"endTimeUnixNano": "0x1"}),
            "trace.resourceSpans[0].scopeSpans[0].spans[0].endTimeUnixNano",
            "'0x1' is no time",
        ),
        (
            otlp(llm(1, None, -1)),
            "trace.resourceSpans[0].scopeSpans[0].spans[0].attributes.llm.token_count.prompt",
            "-1 is no number of tokens",
        ),
        (
            otlp(llm(1, None, "many")),
            "trace.resourceSpans[0].scopeSpans[0].spans[0].attributes.llm.token_count.prompt",
            "'many' is no number of tokens",
        ),
        (
            otlp(llm(1, 2), llm(2, 1)),
            "trace.resourceSpans[0].scopeSpans[0].spans[0]",
            "the span stands within itself",
        ),
    ],
)
def test_a_trace_that_cannot_be_is_refused_where_it_stands(trace, field, problem):
    with pytest.raises(InputError, match=re.escape(problem)) as caught:
        usage(trace)
    assert caught.value.field == field
    assert caught.value.hint


RUN = [
    {"query_id": "q1", "results": ["a"], "latency_ms": {"total": 50.0, "generation": 1.0}}
    | {"calls": [{"stage": "generation", "model": "old"}, {"model": "kept"}]},
    {"query_id": "2", "results": ["a"], "latency_ms": {"total": 60.0}},
]


def of_query(query, trace, at=1):
    root = span(at, trace=trace, karat__query_id=query)
    return [root, llm(at + 1, at, 9, 0, "my-own", ms=8, trace=trace)]


def test_traces_are_attached_to_the_queries_that_they_name():
    run = attach(Run.of(RUN), [otlp(*of_query("q1", "t1")), otlp(*of_query(2, "t2"))])
    assert run.timings.rows() == [
        ("q1", "total", 50.0),
        ("2", "total", 60.0),
        ("q1", "generation", 8.0),
        ("2", "generation", 8.0),
    ]
    assert run.calls.select("query_id", "stage", "model", "prompt_tokens").rows() == [
        ("q1", None, "kept", None),
        ("q1", "generation", "my-own", 9),
        ("2", "generation", "my-own", 9),
    ]
    again = attach(run, otlp(*of_query("q1", "t1"), *of_query(2, "t2")))
    assert again.timings.equals(run.timings)
    assert again.calls.equals(run.calls)


def test_of_a_trace_over_several_queries_a_span_belongs_to_what_it_stands_under():
    whole = [
        span(9),
        *(
            each | {"parentSpanId": each["parentSpanId"] or "s9"}
            for each in (*of_query("q1", "t1", 1), *of_query("2", "t1", 3))
        ),
        llm(7, 9, 1000),
    ]
    run = attach(Run.of(RUN), otlp(*whole))
    assert run.calls.filter(prompt_tokens=9)["query_id"].to_list() == ["q1", "2"]
    assert run.calls.filter(prompt_tokens=1000).is_empty()


def test_spans_of_one_query_in_several_traces_add_up():
    run = attach(Run.of(RUN), otlp(*of_query("q1", "t1"), *of_query("q1", "t2")))
    assert run.timings.filter(query_id="q1", stage="generation")["ms"].to_list() == [16.0]


def test_models_that_traces_name_are_priced():
    pytest.importorskip("genai_prices")
    root = span(1, karat__query_id="q1")
    run = attach(Run.of(RUN), otlp(root, llm(2, 1, 1000, None, "voyage-3")))
    assert run.calls["price_in"].to_list()[-1] == 0.00006


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([otlp(*of_query("q1", "t1")), otlp(*of_query("2", "t2"))]),
        "\n".join(json.dumps(otlp(*of_query(q, f"t{q}"))) for q in ("q1", "2")) + "\n",
        "\ufeff" + json.dumps(otlp(*of_query("q1", "t1"), *of_query("2", "t2")), indent=2),
        "".join(
            json.dumps(each, indent=1) + "\n" for each in of_query("q1", "a") + of_query("2", "b")
        ),
    ],
    ids=["JSON", "JSON Lines", "one document", "one span after the other"],
)
def test_traces_are_read_from_files(tmp_path, text):
    path = tmp_path / "traces.jsonl"
    path.write_text(text, encoding="utf-8")
    run = attach(Run.of(RUN), path)
    assert attach(Run.of(RUN), str(path)).timings.equals(run.timings)
    assert run.timings.filter(stage="generation").rows() == [
        ("q1", "generation", 8.0),
        ("2", "generation", 8.0),
    ]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (json.dumps(otlp(*of_query("q1", "t1"))) + "\n{", 2, "this is no JSON"),
        ("\n\n" + json.dumps(FLAT | {"end_time": ""}), 3, "no such time"),
        (json.dumps(FLAT, indent=1) + "\n" + json.dumps({}), 15, "there are no spans"),
        (json.dumps(otlp(llm(1, None, -1, karat__query_id="q1"))), 1, "no number of tokens"),
        (json.dumps(otlp(llm(1, karat__query_id=0.5))), 1, "0.5 is no id of a query"),
        (json.dumps(otlp(llm(1))), None, "no trace belongs to a query of the run"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_line(tmp_path, text, line, problem):
    path = tmp_path / "traces.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=problem) as caught:
        attach(Run.of(RUN), path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_what_belongs_to_no_query_is_counted():
    traces = otlp(*of_query("q1", "t1"), *of_query("q9", "t2"), llm(1, None, 5, trace="t3"))
    message = "left out: 1 trace without karat.query_id and traces of 1 query that the run does not"
    with pytest.warns(KaratWarning, match=message):
        attach(Run.of(RUN), traces)


def test_another_attribute_may_name_the_query():
    run = attach(Run.of(RUN), otlp(llm(1, None, 5, session__id="q1")), attribute="session.id")
    assert run.calls.filter(prompt_tokens=5)["query_id"].to_list() == ["q1"]


def test_times_far_apart_keep_their_digits():
    trace = span(1, ms=0.001, openinference__span__kind="LLM")
    assert math.isclose(usage(otlp(trace)).latency_ms["generation"], 0.001)


def test_traces_are_reached_from_the_package_alone():
    told = "import karat; karat.live.otel.attach; print(hasattr(karat.live, 'nothing'))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
