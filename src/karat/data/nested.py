"""JSON of the pytrec_eval shape: `{query: {item: grade}}` and `{query: {item: score}}`.

A file may also hold what Python takes: lists of ids, or an array of native records.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import IO, Any, TypeVar

import msgspec

from karat.data.files import Source, decode
from karat.data.format import Format
from karat.data.gold import Gold
from karat.data.order import scores_give_order
from karat.data.run import Run
from karat.errors import InputError, KaratWarning

Made = TypeVar("Made")


def sniff(head: bytes) -> bool:
    """Tell whether the file opens as JSON does."""
    return head.lstrip().startswith((b"{", b"["))


def read_gold(source: Source) -> Gold:
    """Read judgments."""
    return _placed(source, lambda content: Gold.of(content, name=source.name))


def read_run(source: Source) -> Run:
    """Read scores; the score alone decides the order."""
    return _placed(source, lambda content: Run.of(content, name=source.name))


def write_gold(gold: Gold, file: IO[bytes]) -> None:
    """Write `{query: {item: grade}}`."""
    nested: dict[str, dict[str, int]] = {query: {} for query in gold.query_ids_judged.sort()}
    for query, item, grade in gold.judgments.iter_rows():
        nested[query][item] = max(grade, nested[query].get(item, grade))
    file.write(msgspec.json.format(msgspec.json.encode(nested)))


def write_run(run: Run, file: IO[bytes]) -> None:
    """Write `{query: {item: score}}`, or lists of ids where scores do not give the order."""
    results = run.results
    if "item_id" not in results.columns:
        raise InputError("this JSON needs item ids", hint="write .jsonl or .parquet")
    repeats = results.select("query_id", "item_id").is_duplicated().any()
    scored = scores_give_order(results) and not repeats
    if not scored and "score" in results.columns:
        warnings.warn(
            KaratWarning("the scores do not give the order of the lists; lists of ids are written"),
            stacklevel=2,
        )
    nested: dict[str, Any] = {query: {} if scored else [] for query in run.query_ids}
    if scored:
        for query, item, score in results.select("query_id", "item_id", "score").iter_rows():
            nested[query][item] = score
    else:
        for query, item in results.select("query_id", "item_id").iter_rows():
            nested[query].append(item)
    file.write(msgspec.json.format(msgspec.json.encode(nested)))


def _placed(source: Source, make: Callable[[Any], Made]) -> Made:
    text = decode(source.read(), source)
    try:
        content = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise source.error(
            f"this is no complete JSON ({str(error).lower()})",
            hint="NaN, Infinity and lone surrogates are not JSON",
        ) from error
    try:
        return make(content)
    except InputError as error:
        raise source.error(error.problem, field=error.field, hint=error.hint) from error


FORMAT = Format("json", (".json",), sniff, read_gold, read_run, write_gold, write_run)
