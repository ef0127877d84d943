"""Write docs/handbook/gold.jsonl from the questions and the pages of the handbook.

docs/handbook/questions.jsonl is written by hand: it quotes the pages. This tool finds the offsets
of each quote, so that nobody has to count characters. Run it after a page or a question changed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HANDBOOK = Path(__file__).resolve().parent.parent / "docs" / "handbook"
HEADER = {"karat": 1, "kind": "gold", "name": "handbook"}


def read_pages(folder: Path) -> dict[str, str]:
    """Return the text of each page, by file name."""
    paths = sorted(folder.glob("*.md"))
    # Line ends are kept: offsets count the characters of the file.
    return {path.name: path.read_bytes().decode() for path in paths}


def gold_lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the header and one record of gold per question, ordered by id."""
    pages = read_pages(folder)
    path = folder / "questions.jsonl"
    records: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = _record(json.loads(line), pages)
        except (KeyError, ValueError) as error:
            raise SystemExit(f"{path}:{number}: {error}") from error
        if record["query_id"] in records:
            raise SystemExit(f"{path}:{number}: duplicate query_id {record['query_id']!r}")
        records[record["query_id"]] = record
    yield HEADER
    yield from (records[query] for query in sorted(records))


def _record(question: dict[str, Any], pages: dict[str, str]) -> dict[str, Any]:
    record = {name: question[name] for name in ("query_id", "query", "type", "difficulty")}
    if question.get("answerable") is False:
        if question.get("quotes") or question.get("relevant"):
            raise ValueError("a question without an answer must not have quotes or relevant pages")
        return record | {"answerable": False}
    spans = [_span(quote, pages) for quote in question["quotes"]]
    relevant = question["relevant"]
    if not spans:
        raise ValueError("the question has no quotes")
    for page in {*relevant, *(span["doc_id"] for span in spans)}:
        if page not in pages:
            raise ValueError(f"there is no page {page!r}")
    if missing := {span["doc_id"] for span in spans} - set(relevant):
        raise ValueError(f"{min(missing)} is quoted but not listed in relevant")
    evidence = list(dict.fromkeys(span["text"] for span in spans))
    return record | {"relevant": relevant, "spans": spans, "evidence": evidence}


def _span(quote: dict[str, Any], pages: dict[str, str]) -> dict[str, Any]:
    page, text = quote["doc_id"], quote["text"]
    if page not in pages:
        raise ValueError(f"there is no page {page!r}")
    if (count := pages[page].count(text)) != 1:
        raise ValueError(f"expected this text once in {page}, found it {count} times: {text!r}")
    start = pages[page].index(text)
    span = {"doc_id": page, "start": start, "end": start + len(text), "text": text}
    return span | {"grade": quote.get("grade", 1)}


def gold_text(folder: Path = HANDBOOK) -> str:
    """Return the content of gold.jsonl."""
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in gold_lines(folder))


if __name__ == "__main__":
    target = HANDBOOK / "gold.jsonl"
    target.write_text(gold_text(), encoding="utf-8")
    print(f"wrote {target}", file=sys.stderr)
