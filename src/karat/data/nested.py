"""JSON of the pytrec_eval shape: `{query: {item: grade}}` and `{query: {item: score}}`.

A file may also hold what Python takes: lists of ids, or an array of native records.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from typing import IO, Any, TypeVar

import msgspec

from karat.data.files import BYTE_ORDER_MARK, Source, decode
from karat.data.format import Format
from karat.data.gold import Gold
from karat.data.losses import need_ids, say_what_a_run_loses, say_what_gold_loses
from karat.data.native_lines import held_once
from karat.data.order import scores_give_order
from karat.data.run import Run
from karat.errors import InputError, KaratWarning

Made = TypeVar("Made")
# A first key with its colon, an array of objects, or something that was cut off right away: ids
# in other formats may begin with a bracket too.
_OPENING = re.compile(
    rb'\s*(?:\{\s*(?:"(?:[^"\\]|\\.)*"\s*:|\}?\s*\Z)|\[\s*(?:\{\s*["}]|\]?\s*\Z))'
)
SHAPE = "write {query: {item: value}}, each query and each item once"


def sniff(head: bytes, ending: str) -> bool:  # noqa: ARG001
    """Tell whether the file opens as such JSON does."""
    return bool(_OPENING.match(head.removeprefix(BYTE_ORDER_MARK)))


def read_gold(source: Source) -> Gold:
    """Read judgments."""
    return _placed(source, lambda content: Gold.of(content, name=source.name))


def read_run(source: Source) -> Run:
    """Read scores; the score alone decides the order."""
    return _placed(source, lambda content: Run.of(content, name=source.name))


def write_gold(gold: Gold, file: IO[bytes]) -> None:
    """Write `{query: {item: grade}}`."""
    say_what_gold_loses(gold, "this JSON", fields=False, empty=True)
    nested: dict[str, dict[str, int]] = {query: {} for query in gold.query_ids_judged.sort()}
    for query, item, grade in gold.judgments.iter_rows():
        nested[query][item] = max(grade, nested[query].get(item, grade))
    file.write(msgspec.json.format(msgspec.json.encode(nested)))


def write_run(run: Run, file: IO[bytes]) -> None:
    """Write `{query: {item: score}}`, or lists of ids where scores do not give the order."""
    results = run.results
    need_ids(results, "this JSON")
    say_what_a_run_loses(run, "this JSON", places=False, empty=True)
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
    except RecursionError as error:
        raise source.error("this JSON is nested too deep", hint=SHAPE) from error
    if not content:
        raise source.error("it holds no query", hint=SHAPE)
    try:
        return make(content)
    except InputError as error:
        raise source.error(error.problem, field=error.field, hint=error.hint) from error


def _refuse_constant(word: str) -> None:
    raise InputError(
        f"{word} is no number in JSON",
        field=word,
        hint="NaN and Infinity are not JSON; drop such items",
    )


def _place(text: str, token: str | None) -> int:
    """Find where a token that stands in the text stands for the last time."""
    return max(text.rfind(token or ""), 0)


FORMAT = Format("json", (".json",), sniff, read_gold, read_run, write_gold, write_run)
