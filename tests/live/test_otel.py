"""Traces of OpenTelemetry and OpenInference: times of stages and calls of models."""

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.data import Run
from karat.data.formats.native_run import Call
from karat.errors import KaratWarning
from karat.live.otel import attach, usage
from support.effort import examples
from support.errors import refused

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def span(at, parent=None, ms=10, name="step", trace="t1", start=0, **attributes):
    """Return a span of OTLP; `__` in the name of an attribute is a dot."""
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
    attributes = {
        "llm__token_count__prompt": prompt,
        "llm__token_count__completion": completion,
        "llm__model_name": model,
    }
    known = {key: value for key, value in attributes.items() if value is not None}
    return span(at, parent, openinference__span__kind="LLM", **known, **more)


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
def test_span_belongs_to_the_stage_of_its_kind_or_its_attribute(attributes, stage):
    used = usage(otlp(span(1, ms=12.5, **attributes)))
    assert used.latency_ms == ({} if stage is None else {stage: 12.5})
    assert used.calls == []


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
def test_span_with_a_model_or_tokens_is_a_call(attributes, call):
    assert usage(otlp(span(1, **attributes))).calls == [call]


def test_siblings_are_added_and_nested_spans_count_once():
    used = usage(
        otlp(
            span(1, ms=100, openinference__span__kind="CHAIN"),
            span(2, 1, ms=30, openinference__span__kind="RETRIEVER"),
            span(3, 2, ms=20, openinference__span__kind="RETRIEVER"),
            span(4, 3, ms=5, openinference__span__kind="EMBEDDING"),
            span(5, 1, ms=40, openinference__span__kind="RETRIEVER"),
        )
    )
    assert used.latency_ms == {"retrieval": 70.0, "embedding": 5.0}


def test_outermost_of_nested_calls_with_tokens_counts():
    outer_knows = otlp(llm(1, None, 9, 1, "outer"), llm(2, 1, 9, 1, "inner"))
    assert [call.model for call in usage(outer_knows).calls] == ["outer"]
    inner_know = otlp(llm(1, None, model="outer"), llm(2, 1, 5), llm(3, 1, 6), llm(4, 3, 6))
    assert [call.prompt_tokens for call in usage(inner_know).calls] == [5, 6]
    none_knows = otlp(llm(1, None, model=None), llm(2, 1, model="a"), llm(3, 2, model="b"))
    assert [call.model for call in usage(none_knows).calls] == ["a"]


STAGES = ["LLM", "RETRIEVER", "CHAIN"]
NAMES = {"LLM": "generation", "RETRIEVER": "retrieval"}
# A node is named by the path to it, so its ancestors are the prefixes of its name.
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
@examples(60, 800)
def test_any_tree_of_spans_agrees_with_comparing_pairs_of_spans(ways, data):
    tree = {
        way: data.draw(nodes) for way in sorted({w[:n] for w in ways for n in range(len(w) + 1)})
    }
    number = {way: at for at, way in enumerate(tree)}
    spans = []
    for way, node in tree.items():
        attributes = {"llm__token_count__prompt": node["tokens"], "llm__model_name": node["model"]}
        known = {key: value for key, value in attributes.items() if value is not None}
        parent = number[way[:-1]] if way else None
        start = number[way]
        spans.append(
            span(number[way], parent, node["ms"], openinference__span__kind=node["kind"], **known)
            | {"startTimeUnixNano": str(START + start), "spanId": f"s{start}"}
            | {"endTimeUnixNano": str(START + start + node["ms"] * 1_000_000)}
        )
    data.draw(st.randoms(use_true_random=False)).shuffle(spans)
    used = usage(otlp(*spans))

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
    assert used.latency_ms == latency
    expected = [
        (NAMES[tree[way]["kind"]], tree[way]["model"], tree[way]["tokens"])
        for way in sorted(calls, key=number.get)
    ]
    assert [(call.stage, call.model, call.prompt_tokens) for call in used.calls] == expected


FLAT = {
    "name": "ChatCompletion",
    "context": {"trace_id": "0xAB", "span_id": "0x1"},
    "parent_id": None,
    "start_time": "2026-01-31T12:00:00.000000Z",
    "end_time": "2026-01-31T12:00:00.012500Z",
    "attributes": {"openinference.span.kind": "LLM", "llm.token_count.prompt": 7},
}


FIRST = "trace.resourceSpans[0].scopeSpans[0].spans[0]"


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
    used = usage(trace)
    assert used.latency_ms == {"generation": 12.5}
    assert used.calls == [Call(stage="generation", prompt_tokens=7)]


@pytest.mark.parametrize(
    ("trace", "field", "value"),
    [
        ("{", "trace", "line 1 column 2"),
        (3, "trace", "int"),
        ({"metrics": []}, "trace", ""),
        ([FLAT, None], "trace[1]", "NoneType"),
        (FLAT | {"context": {}}, "trace", "trace_id"),
        (FLAT | {"context": {"trace_id": "t"}}, "trace", "span_id"),
        (FLAT | {"end_time": None}, "trace.end_time", ""),
        (FLAT | {"end_time": "noon"}, "trace.end_time", "'noon'"),
        (FLAT | {"end_time": "2025-01-31T12:00:00Z"}, "trace", ""),
        (FLAT | {"attributes": [1]}, "trace.attributes", ""),
        (otlp(span(1) | {"endTimeUnixNano": "0x1"}), f"{FIRST}.endTimeUnixNano", "'0x1'"),
        (otlp(llm(1, None, -1)), f"{FIRST}.attributes.llm.token_count.prompt", "-1"),
        (otlp(llm(1, None, "many")), f"{FIRST}.attributes.llm.token_count.prompt", "'many'"),
        (otlp(llm(1, 2), llm(2, 1)), FIRST, ""),
    ],
)
def test_invalid_trace_is_refused_with_its_field(trace, field, value):
    with refused(path=None, line=None, field=field) as caught:
        usage(trace)
    assert value in caught.value.problem
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


def test_span_in_a_trace_of_several_queries_belongs_to_the_nearest_one_above():
    whole = [
        span(9),
        *(
            inner | {"parentSpanId": inner["parentSpanId"] or "s9"}
            for inner in (*of_query("q1", "t1", 1), *of_query("2", "t1", 3))
        ),
        llm(7, 9, 1000),
    ]
    run = attach(Run.of(RUN), otlp(*whole))
    assert run.calls.filter(prompt_tokens=9)["query_id"].to_list() == ["q1", "2"]
    assert run.calls.filter(prompt_tokens=1000).is_empty()


def test_spans_of_one_query_in_several_traces_are_added():
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
            json.dumps(one, indent=1) + "\n" for one in of_query("q1", "a") + of_query("2", "b")
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
    ("text", "line", "field"),
    [
        (json.dumps(otlp(*of_query("q1", "t1"))) + "\n{", 2, None),
        ("\n\n" + json.dumps(FLAT | {"end_time": ""}), 3, "trace.end_time"),
        (json.dumps(FLAT, indent=1) + "\n" + json.dumps({}), 15, "trace"),
        (
            json.dumps(otlp(llm(1, None, -1, karat__query_id="q1"))),
            1,
            f"{FIRST}.attributes.llm.token_count.prompt",
        ),
        (json.dumps(otlp(llm(1, karat__query_id=0.5))), 1, f"{FIRST}.attributes.karat.query_id"),
        (json.dumps(otlp(llm(1))), None, None),
    ],
)
def test_invalid_file_is_refused_with_its_line(tmp_path, text, line, field):
    path = tmp_path / "traces.jsonl"
    path.write_text(text)
    with refused(path=path, line=line, field=field):
        attach(Run.of(RUN), path)


def test_traces_that_belong_to_no_query_are_counted_in_a_warning():
    traces = [*of_query("q1", "t1"), *of_query("q7", "t2"), *of_query("q8", "t3")]
    traces.append(llm(1, None, 5, trace="t4"))
    with pytest.warns(KaratWarning, match=r"\b1\b.*karat\.query_id.*\b2\b"):
        attach(Run.of(RUN), otlp(*traces))


def test_another_attribute_can_name_the_query():
    run = attach(Run.of(RUN), otlp(llm(1, None, 5, session__id="q1")), attribute="session.id")
    assert run.calls.filter(prompt_tokens=5)["query_id"].to_list() == ["q1"]


def test_short_spans_keep_their_precision():
    trace = span(1, ms=0.001, openinference__span__kind="LLM")
    assert math.isclose(usage(otlp(trace)).latency_ms["generation"], 0.001)


def test_traces_can_be_used_after_importing_karat_alone():
    code = "import karat; karat.live.otel.attach; print(hasattr(karat.live, 'nothing'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
