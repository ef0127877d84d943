"""Score your own search function on your own questions.

    python examples/own_function.py

Replace QUESTIONS by your questions, each with a quote from the document that answers it, and
`search` by your search.
"""

import karat

QUESTIONS = [
    {"query_id": "q1", "query": "How long does a refund take?", "evidence": ["within 14 days"]},
    {"query_id": "q2", "query": "Can I pay by invoice?", "evidence": ["may pay by invoice"]},
    {"query_id": "q3", "query": "Do you deliver to Norway?", "evidence": ["all of Europe"]},
]
TEXTS = {
    "refunds": "A refund is paid within 14 days after we receive the parcel.",
    "payment": "You can pay by card. Companies may pay by invoice.",
    "delivery": "We deliver to all of Europe within five days.",
}


def search(query, top_k):
    """Return the texts that share most words with the query, the best first."""
    words = set(query.lower().strip("?").split())
    names = sorted(TEXTS, key=lambda name: -len(words & set(TEXTS[name].lower().split())))
    return [{"id": name, "text": TEXTS[name]} for name in names[:top_k]]


run = karat.retrieve(search, QUESTIONS, top_k=3, name="search")
scores = karat.evaluate(QUESTIONS, run, ["evidence.coverage@1", "evidence.RR", "latency.p50"])
print(scores)
