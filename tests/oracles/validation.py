"""Faults of gold, a corpus, chunks and runs, by plain loops.

Gold is a list of native records; a corpus is {doc_id: text}; chunks are (id, document, start, end,
text); runs are lists of native records. Faults are counted by (kind, source). No code is shared
with karat.
"""

from __future__ import annotations

from collections import Counter

LIMIT = 2**32
ENCODINGS = {"codepoint": ("utf-32-le", 4), "utf16": ("utf-16-le", 2), "utf8": ("utf-8", 1)}


def place_fault(document, start, end, text, unit):
    """Return the fault of a place in a document, or None and the text at that place."""
    encoding, width = ENCODINGS[unit]
    encoded = document.encode(encoding)
    if end * width > len(encoded):
        # The start is checked first; an end past the document is not inside a character.
        try:
            encoded[: start * width].decode(encoding)
        except UnicodeDecodeError:
            return "inside-character", None
        return "past-end", None
    try:
        encoded[: start * width].decode(encoding)
        encoded[: end * width].decode(encoding)
    except UnicodeDecodeError:
        return "inside-character", None
    there = encoded[start * width : end * width].decode(encoding)
    if text is not None and text != there:
        return "text-mismatch", None
    return None, there


def is_in(text, places):
    """Whether a place contains the text; differences in case or white space do not matter."""
    words, dense = " ".join(text.lower().split()), "".join(text.split())
    return any(
        words in " ".join(place.lower().split()) or dense in "".join(place.split())
        for place in places
    )


def missing_evidence(records, corpus, chunks):
    """Count the pairs of a query and a text that the corpus, or else the chunks, do not have."""
    counts = Counter()
    pairs = {(r["query_id"], text) for r in records for text in r.get("evidence") or []}
    pairs = {(query, text) for query, text in pairs if text.strip()}
    if corpus is not None:
        missing = {pair for pair in pairs if not is_in(pair[1], corpus.values())}
        counts["evidence-not-in-corpus"] = len(missing)
        pairs -= missing
    if chunks is not None and all(chunk[4] is not None for chunk in chunks):
        texts = [chunk[4] for chunk in chunks]
        counts["evidence-not-in-chunks"] = sum(not is_in(text, texts) for _, text in pairs)
    return counts


def gold_faults(records, corpus, unit):
    """Count the faults of gold by itself and in its corpus."""
    counts = Counter()
    seen, with_gold, all_spans, evidence, grades = set(), set(), [], [], {}
    for record in records:
        query = record["query_id"]
        if query in seen:
            counts["duplicate-query"] += 1
        seen.add(query)
        for item, grade in (record.get("relevant") or {}).items():
            with_gold.add(query)
            grades.setdefault(query, []).append((item, grade))
        for text in record.get("evidence") or []:
            with_gold.add(query)
            evidence.append((query, " ".join(text.split()).lower()))
        for span in record.get("spans") or []:
            with_gold.add(query)
            start, end = span["start"], span["end"]
            if start < 0:
                counts["negative"] += 1
            elif end < start:
                counts["inverted"] += 1
            elif end > LIMIT:
                counts["too-far"] += 1
            else:
                all_spans.append((query, span["doc_id"], start, end, span.get("text")))
    counts["no-gold"] = len(seen - with_gold)
    for judged in grades.values():
        counts["nothing-relevant"] += all(grade <= 0 for _, grade in judged)
        times = Counter(item for item, _ in judged)
        counts["judged-twice"] += sum(1 for item in times if times[item] > 1)
    counts["empty-evidence"] = sum(1 for _, text in evidence if not text)
    counts["duplicate-evidence"] = sum(
        1 for piece, times in Counter(evidence).items() if times > 1 and piece[1]
    )
    counts.update(span_faults(all_spans, corpus, unit))
    return counts


def span_faults(spans, corpus, unit):
    counts = Counter()
    for _, doc_id, start, end, text in spans:
        fault, seen = None, text
        if corpus is None:
            encoding, width = ENCODINGS[unit]
            if text is not None and len(text.encode(encoding)) // width != end - start:
                fault = "text-mismatch"
        elif doc_id not in corpus:
            fault = "unknown-document"
        else:
            fault, there = place_fault(corpus[doc_id], start, end, text, unit)
            seen = there if fault is None else text
        if fault is not None:
            counts[fault] += 1
        if start == end:
            counts["zero-length"] += 1
        elif seen is not None and seen.strip() == "":
            counts["blank"] += 1
    full = sorted((q, d, s, e) for q, d, s, e, _ in spans if s < e)
    for at, (query, doc_id, start, end) in enumerate(full):
        for other in full[:at]:
            if other[:2] == (query, doc_id) and set(range(start, end)) & set(range(*other[2:])):
                counts["overlap"] += 1
                break
    return counts


def places_faults(rows, corpus, unit):
    """Count the faults of (document, start, end, text) of chunks or results."""
    counts = Counter()
    for doc_id, start, end, text in rows:
        if doc_id not in corpus:
            if doc_id is not None or start is not None:
                counts["unknown-document"] += 1
        elif start is not None:
            fault, _ = place_fault(corpus[doc_id], start, end, text, unit)
            if fault is not None:
                counts[fault] += 1
    return counts


def query_faults(gold_queries, run_queries):
    if run_queries and not gold_queries & run_queries:
        return Counter({"no-shared-query": len(run_queries)})
    return Counter(
        {
            "missing-query": len(gold_queries - run_queries),
            "unknown-query": len(run_queries - gold_queries),
        }
    )


def id_faults(wanted, known, retrieved, unknown, word):
    """Count ids found nowhere; `known` is None where neither corpus nor chunks are given.

    `retrieved` is None where no run has such ids.
    """
    if known is None and retrieved is None:
        return Counter()
    unseen = wanted - (known or set()) - (retrieved or set())
    if known is not None:
        return Counter({unknown: len(unseen)})
    none = unseen == wanted
    return Counter({f"no-{word}-retrieved" if none else f"{word}-not-retrieved": len(unseen)})


def faults(records, corpus, chunks, runs, unit):
    """Count everything, by (kind, source); `runs` is {name: (unit, records)}."""
    counted = {"gold": gold_faults(records, corpus, unit)}
    counted["gold"].update(missing_evidence(records, corpus, chunks))
    wanted = {
        item
        for record in records
        for item, grade in (record.get("relevant") or {}).items()
        if grade > 0
    }
    documents = {
        span["doc_id"]
        for record in records
        for span in record.get("spans") or []
        if 0 <= span["start"] <= span["end"] <= LIMIT
    }
    if chunks is not None and corpus is not None:
        counted["chunks"] = places_faults([c[1:] for c in chunks], corpus, "codepoint")
    item_ids = doc_ids = None
    for name, (run_unit, lines) in runs.items():
        results = [result for line in lines for result in line["results"]]
        queries = {line["query_id"] for line in lines}
        counts = query_faults({record["query_id"] for record in records}, queries)
        if corpus is not None:
            rows = [tuple(r.get(k) for k in ("doc_id", "start", "end", "text")) for r in results]
            counts.update(places_faults(rows, corpus, run_unit))
        counted[f"run {name}"] = counts
        ids = {r["id"] for r in results if r.get("id") is not None}
        sources = {r["doc_id"] for r in results if r.get("doc_id") is not None}
        # A run without any result still has ids, namely none.
        item_ids = (item_ids or set()) | ids | sources
        if sources:
            doc_ids = (doc_ids or set()) | sources
    known_items = known_documents = None
    if corpus is not None:
        known_items = set(corpus)
    if chunks is not None:
        known_documents = {chunk[1] for chunk in chunks}
        known_items = (known_items or set()) | known_documents | {chunk[0] for chunk in chunks}
    gold = counted["gold"]
    gold.update(id_faults(wanted, known_items, item_ids, "unknown-item", "item"))
    if corpus is None:
        gold.update(id_faults(documents, known_documents, doc_ids, "unknown-document", "document"))
    return {
        (kind, source): count
        for source, counts in counted.items()
        for kind, count in counts.items()
        if count
    }
