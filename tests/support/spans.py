"""Gold and runs of character spans, drawn at random, as karat's records."""

from hypothesis import strategies as st

# Few documents and short ones, so that spans overlap, touch, nest and repeat; ids that differ only
# in case, normal form or a NUL, and one document that several queries share.
QUERIES = ["q1", "Q1", "ж", "😀", "10"]
DOCUMENTS = ["d", "D", "d\0", "é", "e\u0301", "😀", "7"]


@st.composite
def stretches(draw, documents=DOCUMENTS):
    """A stretch near the beginning, often of no length; few enough that two are often equal."""
    start = draw(st.integers(0, 12) | st.integers(0, 60))
    length = draw(st.sampled_from([0, 1, 2, 5]) | st.integers(0, 30))
    return draw(st.sampled_from(documents)), start, start + length


def lists_of_stretches(most):
    """Lists in any documents, or all in one so that they must meet."""
    return st.lists(stretches(), max_size=most) | st.lists(stretches(["d"]), max_size=most)


golds = st.dictionaries(st.sampled_from(QUERIES), st.none() | lists_of_stretches(5), min_size=1)
runs = st.dictionaries(st.sampled_from(QUERIES), lists_of_stretches(9))


def placed(stretch):
    return dict(zip(("doc_id", "start", "end"), stretch, strict=True))


def gold_records(gold):
    """Native records; a query without spans has judgments, which no span measure reads."""
    return [
        {"query_id": query, "relevant": ["x"]}
        if spans is None
        else {"query_id": query, "spans": [placed(span) for span in spans]}
        for query, spans in gold.items()
    ]


def run_records(run):
    return [
        {"query_id": query, "results": [placed(item) for item in items]}
        for query, items in run.items()
    ]
