"""JSON of the pytrec_eval shape: `{query: {item: grade}}` and `{query: {item: score}}`.

A file may also hold what Python takes: lists of ids, or an array of native records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

import msgspec
import numpy as np

from karat.data.data_file import DataFile
from karat.data.formats.base import (
    Format,
    Kind,
    WriteReport,
    kind_of_contexts,
    need_ids,
    refuse_infinite_scores,
    warn_of_gold_losses,
    warn_of_run_losses,
)
from karat.data.formats.json_lines import held_once, id_with_nul
from karat.data.formats.native import kind_of_keys
from karat.data.frames import HAS_NUL, LONGEST_ID, TOO_LONG, has_ragas_columns
from karat.data.gold import Gold
from karat.data.ranking import scores_give_order
from karat.data.run import Run
from karat.errors import InputError
from karat.files import BYTE_ORDER_MARK, Source, decode, too_large

Made = TypeVar("Made")
# A first key with its colon, an array of objects, or something that was cut off right away: ids
# in other formats may begin with a bracket too.
_OPENING = re.compile(
    rb'\s*(?:\{\s*(?:"(?:[^"\\]|\\.)*"\s*:|\}?\s*\Z)|\[\s*(?:\{\s*["}]|\]?\s*\Z))'
)
_SUSPICIOUS = re.compile(rf'\\u0000|"[^"]{{{LONGEST_ID + 1}}}')
SHAPE = "write {query: {item: value}}, each query and each item once"


def sniff(source: Source) -> bool:
    """Tell whether the file opens as such JSON does."""
    return bool(_OPENING.match(source.head.removeprefix(BYTE_ORDER_MARK)))


def kind(source: DataFile) -> Kind | None:
    """Tell records by their keys, and scores by a fraction; whole numbers may be either."""
    content = content_of(source)
    if isinstance(content, list):
        keys = source.columns.rename_names(
            key for record in content if isinstance(record, dict) for key in record
        )
        return kind_of_contexts(keys) if has_ragas_columns(keys) else kind_of_keys(keys)
    values = (v for items in content.values() if isinstance(items, dict) for v in items.values())
    return "run" if any(isinstance(v, float) and not v.is_integer() for v in values) else None


def read_gold(source: DataFile) -> Gold:
    """Read judgments."""
    return placed(
        source, lambda content: Gold.of(content, name=source.name, columns=source.columns)
    )


def read_run(source: DataFile) -> Run:
    """Read scores; the score alone decides the order."""

    def run_of(content: Any) -> Run:
        _refuse_other_scores(content)
        run = Run.of(content, name=source.name, columns=source.columns)
        scores = None if run.lists is None else run.lists.scores
        if scores is not None and np.isinf(scores).any():  # JSON has no infinity: it was 1e999
            infinite = run.results.filter(run.results["score"].is_infinite())
            query, item = infinite.select("query_id", "item_id").row(0)
            raise InputError(
                f"query {query!r}, item {item!r}: the score is too large",
                field="score",
                hint="write a number below 1e308",
            )
        return run

    return placed(source, run_of)


def _refuse_other_scores(content: Any) -> None:
    """Refuse scores that are not numbers in JSON: Python reads "0.5", "1_000" and true as such."""
    if not isinstance(content, dict):
        return
    for query, items in content.items():
        kinds = set(map(type, items.values())) if isinstance(items, dict) else set()
        if not kinds <= {int, float} and kinds <= {int, float, str, bool}:
            for item, score in items.items():
                if isinstance(score, (str, bool)):
                    raise InputError(
                        f"query {query!r}, item {item!r}: {score!r} is not a number",
                        field="score",
                        hint="write scores as numbers, without quotes",
                    )


def write_gold(gold: Gold, file: IO[bytes]) -> WriteReport:
    """Write `{query: {item: grade}}`."""
    nested: dict[str, dict[str, int]] = {query: {} for query in gold.query_ids_judged.sort()}
    for query, item, grade in gold.judgments.iter_rows():
        nested[query][item] = max(grade, nested[query].get(item, grade))
    file.write(msgspec.json.format(msgspec.json.encode(nested)))
    return warn_of_gold_losses(gold, "this JSON", fields=False, empty=True)


def write_run(run: Run, file: IO[bytes]) -> WriteReport:
    """Write `{query: {item: score}}`, or lists of ids where scores do not give the order."""
    results = run.results
    need_ids(results, "this JSON")
    repeats = results.select("query_id", "item_id").is_duplicated().any()
    scored = scores_give_order(results) and not repeats
    nested: dict[str, Any] = {query: {} if scored else [] for query in run.query_ids}
    if scored:
        refuse_infinite_scores(results, "this JSON")
        for query, item, score in results.select("query_id", "item_id", "score").iter_rows():
            nested[query][item] = score
    else:
        for query, item in results.select("query_id", "item_id").iter_rows():
            nested[query].append(item)
    file.write(msgspec.json.format(msgspec.json.encode(nested)))
    lost = []
    if not scored and "score" in results.columns:
        lost.append("scores that do not give the order of the lists (ids are listed instead)")
    return warn_of_run_losses(run, "this JSON", holds=(), empty=True, also=lost)


def placed(source: Source, make: Callable[[Any], Made]) -> Made:
    """Make something of what the file holds, which is named if that fails."""
    content = content_of(source)
    try:
        return make(content)
    except InputError as error:
        raise source.error(error.problem, field=error.field, hint=error.hint) from error


def content_of(source: Source) -> Any:
    """Return what the file holds, each key once."""
    text = decode(source.read(), source)
    try:
        # Python's own reader, since it alone tells of a key that stands twice.
        content = json.loads(text, object_pairs_hook=held_once, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise source.error(
            f"this is no complete JSON ({error.msg.lower()})",
            line=error.lineno,
            hint="check that the file was written to the end",
        ) from error
    except InputError as error:
        line = 1 + text.count("\n", 0, _place(text, error.field))
        raise source.error(error.problem, line=line, hint=error.hint) from error
    except (ValueError, RecursionError) as error:
        raise too_large(source, text, error) from error
    if not content:
        raise source.error("it holds no query", hint=SHAPE)
    _check_ids(content, text, source)
    return content


def _check_ids(content: Any, text: str, source: Source) -> None:
    """Refuse ids that are too long or have a NUL character; in objects every text is an id."""
    found = _SUSPICIOUS.search(text)
    if found is None:
        return
    problem = None
    if isinstance(content, dict):
        ids = list(_texts(content))
        if any("\0" in name for name in ids):
            problem = HAS_NUL
        elif any(len(name) > LONGEST_ID for name in ids):
            problem = TOO_LONG
    elif any(map(id_with_nul, content)):
        problem = HAS_NUL
    if problem:
        line = 1 + text.count("\n", 0, found.start())
        raise source.error(f"an id {problem}", line=line, hint="use another id")


def _texts(content: Any) -> Iterator[str]:
    held = [content]  # not recursive: the content may be nested deep
    while held:
        value = held.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            held += value
        elif isinstance(value, dict):
            yield from value
            held += value.values()


def _refuse_constant(word: str) -> None:
    raise InputError(
        f"{word} is no number in JSON",
        field=word,
        hint="NaN and Infinity are not JSON; drop such items",
    )


def _place(text: str, token: str | None) -> int:
    """Find where a token that stands in the text stands for the last time."""
    return max(text.rfind(token or ""), 0)


FORMAT = Format("json", (".json",), sniff, kind, read_gold, read_run, write_gold, write_run)
