"""Strategies for random records of gold and runs, and everything that a user sees of scores."""

from hypothesis import strategies as st

QUERIES = ["q1", "q2", "Q2", "301", "ж", "😀"]
ITEMS = ["a", "b", "c", "é"]
DOCUMENTS = ["docs/a.md", "b.md", "c.md", "é.md"]
TEXTS = ["the refund is paid within 14 days", "pay by card", "PAY by  card", " ", "call us"]
MEASURES = {
    "judgments": ["nDCG@3", "AP", "P@2", "Judged@2", "Full@2", "ERR@3"],
    "spans": ["span.recall@2", "span.iou", "span.precision@20c"],
    "evidence": ["evidence.recall@2", "evidence.coverage@1"],
    "usage": ["latency.mean", "latency.p50(stage=rerank)", "context.tokens@2"],
}

spans = st.builds(
    lambda doc_id, start, length: {"doc_id": doc_id, "start": start, "end": start + length},
    st.sampled_from(DOCUMENTS),
    st.integers(0, 20),
    st.integers(0, 15),
)
gold_lines = st.fixed_dictionaries(
    {},
    optional={
        "relevant": st.dictionaries(st.sampled_from(ITEMS), st.integers(0, 3), max_size=4),
        "spans": st.lists(spans, max_size=3),
        "evidence": st.lists(st.sampled_from(TEXTS), max_size=3),
        "answerable": st.booleans(),
    },
)
results = st.builds(
    lambda item, score, span, text, tokens: (
        {"id": item, **span} | score | ({"text": text} if text else {}) | tokens
    ),
    st.sampled_from(ITEMS),
    st.sampled_from([{"score": 1.0}, {"score": 0.5}, {"score": 1.0}, {}]),
    st.one_of(spans, spans, spans, st.just({})),
    st.sampled_from([*TEXTS, *TEXTS, None]),
    st.sampled_from([{"tokens": 12}, {"tokens": 5}, {}]),
)
errors = st.builds(
    lambda kind, message: {"error": {"type": kind, "message": message}},
    st.sampled_from(["Timeout", "HTTP 500"]),
    st.sampled_from(["", "too slow"]),
)
run_lines = st.one_of(
    st.fixed_dictionaries(
        {"results": st.lists(results, max_size=4)},
        optional={
            "latency_ms": st.dictionaries(
                st.sampled_from(["total", "rerank"]), st.floats(0, 99), min_size=1
            )
        },
    ),
    st.fixed_dictionaries({"results": st.lists(results, max_size=4)}),
    st.fixed_dictionaries({"results": st.lists(results, min_size=1, max_size=4)}),
    errors,
)
options = st.fixed_dictionaries(
    {"fail_on_error": st.sampled_from([0.3, 1.0, 1.0])},
    optional={
        "top_k": st.integers(1, 3),
        "score_threshold": st.sampled_from([0.6]),
        "conventions": st.fixed_dictionaries(
            {},
            optional={
                "missing": st.sampled_from(["skip", "error"]),
                "unknown": st.just("error"),
                "duplicates": st.sampled_from(["count", "set", "error"]),
                "no_gold": st.sampled_from(["one", "skip"]),
                "unjudged": st.just("skip"),
            },
        ),
    },
)


def by_query(lines, least=1):
    return st.dictionaries(st.sampled_from(QUERIES), lines, min_size=least)


def records(lines):
    return [{"query_id": query, **line} for query, line in lines.items()]


def described(scores):
    """Everything that a user sees of scores, with every bit of every value."""
    table = scores.table
    frames = [table.frame, table.weights, table.holes]
    values = [[cell(v) for v in row] for frame in frames for row in frame.iter_rows()]
    totals = [cell(table.value(measure)) for measure in table.measures]
    delivered = {name: value.hex() for name, value in scores.delivered.items()}
    return [frame.schema for frame in frames], values, totals, table.counts, scores.notes, delivered


def cell(value):
    return value.hex() if isinstance(value, float) else value
