"""Traces made by the OpenTelemetry SDK."""

import time

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
    InMemorySpanExporter,
)

from karat.data import Run
from karat.live.otel import attach, usage


def traced(queries):
    """Search for some queries as an instrumented program does, and return its spans."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    for query in queries:
        with tracer.start_as_current_span("search", attributes={"karat.query_id": query}):
            kind = {"openinference.span.kind": "RETRIEVER"}
            with tracer.start_as_current_span("retrieve", attributes=kind):
                asked = {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e"}
                with tracer.start_as_current_span("embed", attributes=asked) as embedding:
                    time.sleep(0.002)
                    embedding.set_attribute("gen_ai.usage.input_tokens", 12)
            with tracer.start_as_current_span("fuse", attributes={"karat.stage": True}):
                pass
    provider.shutdown()
    return exporter.get_finished_spans()


def test_spans_of_the_sdk_give_stages_and_calls():
    spans = traced(["q1"])
    recorded = usage([span.to_json() for span in spans])
    assert usage(spans) == recorded
    assert set(recorded.latency_ms) == {"retrieval", "embedding", "fuse"}
    by_name = {span.name: (span.end_time - span.start_time) / 1e6 for span in spans}
    for stage, name in (("retrieval", "retrieve"), ("embedding", "embed"), ("fuse", "fuse")):
        # Its JSON has microseconds.
        assert abs(recorded.latency_ms[stage] - by_name[name]) <= 0.002
    assert recorded.latency_ms["retrieval"] >= recorded.latency_ms["embedding"] >= 2
    (call,) = recorded.calls
    assert (call.stage, call.model, call.prompt_tokens) == ("embedding", "e", 12)


def test_spans_in_a_file_are_attached(tmp_path):
    path = tmp_path / "spans.json"
    path.write_text("\n".join(span.to_json() for span in traced(["q1", "q2"])))
    run = attach(Run.of({"q1": ["a"], "q2": ["a"]}), path)
    assert run.timings["query_id"].n_unique() == 2
    assert run.timings["stage"].n_unique() == 3
    assert run.calls["prompt_tokens"].to_list() == [12, 12]
