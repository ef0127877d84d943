"""JSON of the pytrec_eval shape: `{query: {item: grade}}` and `{query: {item: score}}`.

A file may also contain lists of ids per query, or an array of native records, as Python data may.
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
    refuse_infinite_scores,
    require_ids,
    warn_of_gold_losses,
    warn_of_run_losses,
)
from karat.data.formats.json_lines import id_with_nul, unique_keys
from karat.data.formats.json_text import Mistake, value_extent
from karat.data.formats.native import kind_of_keys
from karat.data.frames import HAS_NUL, LONGEST_ID, TOO_LONG, has_ragas_columns
from karat.data.gold import Gold
from karat.data.ranking import scores_give_order
from karat.data.run import Run
from karat.errors import InputError
from karat.files import BYTE_ORDER_MARK, Source, decode, too_large

Converted = TypeVar("Converted")
# A first key with its colon, an array of objects, or a file that ends right after the bracket. A
# bracket alone is not enough: ids in other formats may start with one.
_OPENING = re.compile(
    rb'\s*(?:\{\s*(?:"(?:[^"\\]|\\.)*"\s*:|\}?\s*\Z)|\[\s*(?:\{\s*["}]|\]?\s*\Z))'
)
_SUSPICIOUS = re.compile(rf'\\u0000|"[^"]{{{LONGEST_ID + 1}}}')
_RECORD = re.compile(r"record (\d+): ")
SHAPE_HINT = "write {query: {item: value}}, with each query and each item once"


def sniff(source: Source) -> bool:
    """Return whether the file starts like JSON of this shape."""
    return bool(_OPENING.match(source.head.removeprefix(BYTE_ORDER_MARK)))


def kind(source: DataFile) -> Kind | None:
    """Return the kind from the keys of records, or "run" if a value has a fraction.

    Integers may be grades or scores.
    """
    content = load_content(source)
    if isinstance(content, list):
        keys = source.columns.rename_names(
            key for record in content if isinstance(record, dict) for key in record
        )
        return kind_of_contexts(keys) if has_ragas_columns(keys) else kind_of_keys(keys)
    values = (
        value for items in content.values() if isinstance(items, dict) for value in items.values()
    )
    has_fraction = any(isinstance(value, float) and not value.is_integer() for value in values)
    return "run" if has_fraction else None


def read_gold(source: DataFile) -> Gold:
    """Read judgments."""
    return convert_content(
        source, lambda content: Gold.of(content, name=source.name, columns=source.columns)
    )


def read_run(source: DataFile) -> Run:
    """Read scores; items are ranked by their scores alone."""

    def to_run(content: Any) -> Run:
        _refuse_other_scores(content)
        run = Run.of(content, name=source.name, columns=source.columns)
        scores = None if run.lists is None else run.lists.scores
        if scores is not None and np.isinf(scores).any():  # a number such as 1e999
            infinite = run.results.filter(run.results["score"].is_infinite())
            query, item = infinite.select("query_id", "item_id").row(0)
            raise InputError(
                f"query {query!r}, item {item!r}: the score is too large",
                field="score",
                hint="write a number below 1e308",
            )
        return run

    return convert_content(source, to_run)


def _refuse_other_scores(content: Any) -> None:
    """Raise an InputError for texts and booleans, which Python would convert to numbers."""
    if not isinstance(content, dict):
        return
    for query, items in content.items():
        types = set(map(type, items.values())) if isinstance(items, dict) else set()
        if types <= {int, float} or not types <= {int, float, str, bool}:
            continue
        item, score = next(pair for pair in items.items() if isinstance(pair[1], (str, bool)))
        raise InputError(
            f"query {query!r}, item {item!r}: must be a number, got {score!r}",
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
    """Write `{query: {item: score}}`, or lists of ids if the scores do not give the order."""
    results = run.results
    require_ids(results, "this JSON")
    has_repeats = results.select("query_id", "item_id").is_duplicated().any()
    lost = []
    nested: dict[str, Any]
    if scores_give_order(results) and not has_repeats:
        refuse_infinite_scores(results, "this JSON")
        nested = {query: {} for query in run.query_ids}
        for query, item, score in results.select("query_id", "item_id", "score").iter_rows():
            nested[query][item] = score
    else:
        nested = {query: [] for query in run.query_ids}
        for query, item in results.select("query_id", "item_id").iter_rows():
            nested[query].append(item)
        if "score" in results.columns:
            lost.append("scores (lists of ids in rank order are written instead)")
    file.write(msgspec.json.format(msgspec.json.encode(nested)))
    return warn_of_run_losses(run, "this JSON", stored=(), empty=True, also=lost)


def convert_content(source: Source, convert: Callable[[Any], Converted]) -> Converted:
    """Convert the content of a file; errors name the file."""
    content = load_content(source)
    try:
        return convert(content)
    except InputError as error:
        line = _line_of(error, content, source)
        raise source.error(error.problem, line=line, field=error.field, hint=error.hint) from error


def _line_of(error: InputError, content: Any, source: Source) -> int | None:
    """Return the line of the value that an error about a record is about, if that is known."""
    record = _RECORD.match(error.problem)
    if record is None or not isinstance(content, list):
        return None
    text = decode(source.read(), source)
    extent = value_extent(text, f"[{int(record[1]) - 1}].{error.field or ''}")
    return None if extent is None else 1 + text.count("\n", 0, extent[0])


def load_content(source: Source) -> Any:
    """Parse the file; raise an InputError for duplicate keys and invalid ids."""
    text = decode(source.read(), source)
    try:
        # Python's JSON reader, because it can report duplicate keys.
        content = json.loads(text, object_pairs_hook=unique_keys, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        mistake = Mistake.of(text, "file", error)
        raise source.error(
            mistake.problem,
            line=1 + text.count("\n", 0, mistake.position),
            hint=mistake.hint or "check that the file was written completely",
        ) from error
    except InputError as error:
        position = max(text.rfind(error.field or ""), 0)  # the field is the JSON text in question
        line = 1 + text.count("\n", 0, position)
        raise source.error(error.problem, line=line, hint=error.hint) from error
    except (ValueError, RecursionError) as error:
        raise too_large(source, text, error) from error
    if not content:
        raise source.error("the file has no queries", hint=SHAPE_HINT)
    _check_ids(content, text, source)
    return content


def _check_ids(content: Any, text: str, source: Source) -> None:
    """Raise an InputError for ids that are too long or have a NUL character.

    In an object every text is an id.
    """
    suspicious = _SUSPICIOUS.search(text)
    if suspicious is None:
        return
    problem = None
    if isinstance(content, dict):
        ids = list(_texts(content))
        if any("\0" in text_id for text_id in ids):
            problem = HAS_NUL
        elif any(len(text_id) > LONGEST_ID for text_id in ids):
            problem = TOO_LONG
    elif any(map(id_with_nul, content)):
        problem = HAS_NUL
    if problem:
        line = 1 + text.count("\n", 0, suspicious.start())
        raise source.error(f"an id {problem}", line=line, hint="use another id")


def _texts(content: Any) -> Iterator[str]:
    stack = [content]  # a stack instead of recursion: the content may be deeply nested
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, dict):
            yield from value
            stack += value.values()


def _refuse_constant(word: str) -> None:
    raise InputError(
        f"{word} is not allowed in JSON",
        field=word,
        hint="remove the items with NaN or Infinity",
    )


FORMAT = Format("json", (".json",), sniff, kind, read_gold, read_run, write_gold, write_run)
