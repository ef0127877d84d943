"""A small corpus, embedders, and the folder of a cache for tests of built-in retrievers."""

import gzip
import json

import pytest

from support.paths import SHARED_DATA

FAQ = {
    "pay": "Pay by card or by invoice. Invoices are due in 30 days.",
    "refund": "Refunds are paid within 14 days.",
    "ship": "We ship to all countries. Shipping takes five days.",
    "account": "Delete your account in the settings.",
}
QUERIES = {"q1": "when are refunds paid?", "q2": "pay an invoice", "q3": "delete account"}
SCIFACT = SHARED_DATA / "scifact"


def letters(texts):
    """Embed a text by how often it has each letter."""
    return [[text.lower().count(letter) for letter in "abcdefghijklmnop"] for text in texts]


def scifact_corpus(folder):
    """Write the abstracts as a BEIR folder, as they are in BEIR: title, and sentences as a text."""
    if not SCIFACT.exists():
        pytest.skip("no ../shared/data/scifact")
    with (
        gzip.open(SCIFACT / "corpus.jsonl.gz") as source,
        open(folder / "corpus.jsonl", "w", encoding="utf-8") as target,
    ):
        for line in source:
            document = json.loads(line)
            text = " ".join(document["abstract"])
            row = {"_id": document["doc_id"], "title": document["title"], "text": text}
            target.write(json.dumps(row) + "\n")
    return folder
