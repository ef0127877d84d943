"""Gold and runs of character spans, drawn at random, as karat's records."""

from hypothesis import strategies as st

# Few documents and short ones, so that spans overlap, touch, nest and repeat; ids that differ only
# in case, normal form or a NUL, and one document that several queries share.
QUERIES = ["q1", "Q1", "ж", "😀", "10"]
DOCUMENTS = ["d", "D", "d\x01", "é", "e\u0301", "😀", "7"]


# Near the beginning, often of no length, and few enough that two stretches are often equal.
STARTS = [*range(13)] * 4 + [*range(61)]
LENGTHS = [0, 1, 2, 5] * 8 + [*range(31)]


def stretches(documents=DOCUMENTS):
    columns = map(st.sampled_from, (documents, STARTS, LENGTHS))
    return st.tuples(*columns).map(lambda drawn: (drawn[0], drawn[1], drawn[1] + drawn[2]))


def lists_of_stretches(most):
    """Lists in any documents, or all in one so that they overlap."""
    return st.lists(stretches(), max_size=most) | st.lists(stretches(["d"]), max_size=most)


golds = st.dictionaries(st.sampled_from(QUERIES), st.none() | lists_of_stretches(5), min_size=1)
runs = st.dictionaries(st.sampled_from(QUERIES), lists_of_stretches(9))


def placed(stretch):
    return dict(zip(("doc_id", "start", "end"), stretch, strict=True))


def gold_records(gold):
    """Native records; a query without spans has judgments, which span measures ignore."""
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
