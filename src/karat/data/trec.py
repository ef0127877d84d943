"""TREC qrels (`query 0 item grade`) and run files (`query Q0 item rank score tag`).

Fields stand apart by any white space; blank lines and lines starting with `#` are passed over.
A plain parser defines what a file means. Nearly every file is tidy enough, or can be tidied
quickly enough, for Polars to read instead; whenever it stumbles, the plain parser decides.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING

import numpy as np
import polars as pl

from karat.data.files import BYTE_ORDER_MARK, Source, not_utf8, refuse_unreadable
from karat.data.format import Format, Kind
from karat.data.frames import HAS_NUL, LONGEST_ID, TOO_LONG
from karat.data.gold import Gold
from karat.data.losses import Written, need_ids, say_what_a_run_loses, say_what_gold_loses
from karat.data.order import ranked_by_score, with_scores_that_order
from karat.data.run import Run
from karat.errors import SWAPPED, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Schema = dict[str, type[pl.DataType]]

QRELS: Schema = {
    "query_id": pl.String,
    "iteration": pl.String,
    "item_id": pl.String,
    "grade": pl.Int64,
}
RUN: Schema = {
    "query_id": pl.String,
    "q0": pl.String,
    "item_id": pl.String,
    "rank": pl.String,
    "score": pl.Float64,
    "tag": pl.String,
}

_SPACE, _NEWLINE = 32, 10
_PIECE = 1 << 18  # bytes that fit the cache: scanning such pieces is several times as fast
_OTHER_SPACES = bytes([9, 11, 12, 13])
_TO_SPACE = bytes(_SPACE if byte in _OTHER_SPACES else byte for byte in range(256))
_WHITE = r"[ \t\n\v\f\r]"
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def sniff(source: Source) -> bool:
    """Tell whether the first line could be TREC's: text in four or six fields."""
    return kind(source) is not None


def kind(source: Source) -> Kind | None:
    """Tell qrels from a run by the number of fields."""
    counts: dict[int, Kind] = {len(QRELS): "gold", len(RUN): "run"}
    return counts.get(len(_first_fields(source.head)[1]))


def read_gold(source: Source) -> Gold:
    """Read qrels."""
    _refuse_the_other_kind(source, QRELS)
    return Gold(_read(source, QRELS).select("query_id", "item_id", "grade"), name=source.name)


def read_run(source: Source) -> Run:
    """Read a run; the rank column is ignored, as in trec_eval."""
    _refuse_the_other_kind(source, RUN)
    return Run(ranked_by_score(_read(source, RUN)), name=source.name)


def write_gold(gold: Gold, file: IO[bytes]) -> Written:
    """Write qrels, one judgment a line."""
    _refuse_spaces(gold.judgments)
    gold.judgments.select("query_id", pl.lit("0").alias("iteration"), "item_id", "grade").write_csv(
        file, separator=" ", include_header=False, quote_style="never"
    )
    return say_what_gold_loses(gold, "a qrels file", fields=False, empty=False)


def write_run(run: Run, file: IO[bytes]) -> Written:
    """Write a run; where order and scores disagree, n…1 stand as scores, and that is said."""
    need_ids(run.results, "a TREC run")
    _refuse_spaces(run.results)
    tag = "_".join(str(run.settings.get("tag") or run.name or "karat").split()) or "karat"
    results, replaced = with_scores_that_order(run.results)
    rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
    results.select(
        "query_id", pl.lit("Q0").alias("q0"), "item_id", rank, "score", pl.lit(tag).alias("tag")
    ).write_csv(file, separator=" ", include_header=False, quote_style="never")
    return say_what_a_run_loses(run, "a TREC run", holds=("tag",), empty=False, also=replaced)


def last_tag(source: Source) -> str:
    """Return the tag in the last line of a run: what trec_eval prints as runid."""
    last = b""
    for block in source.whole_lines():
        rest = block
        while rest:
            rest, _, line = rest.rpartition(b"\n")
            fields = line.split()
            if fields and not fields[0].startswith(b"#"):
                last = fields[-1]
                break
    try:
        return last.decode("utf-8")
    except UnicodeDecodeError as error:
        raise source.error(
            "the tag of the last line is not valid UTF-8", field="tag", hint="save it as UTF-8"
        ) from error


def has_iterations(source: Source) -> bool:
    """Tell whether the second field of qrels says anything: whether it is not always the same."""
    found: set[bytes] = set()
    for block in source.whole_lines():
        lines = (line.split(None, 2) for line in block.split(b"\n"))
        found |= {f[1] for f in lines if len(f) > 2 and not f[0].startswith(b"#")}
        if len(found - {b"0", b"Q0"}) > 0 or len(found) > 1:
            return True
    return False


def neither_kind(source: Source) -> InputError:
    """Make the error for a file that is neither qrels nor a run."""
    line, fields = _first_fields(source.head)
    return source.error(
        f"{len(fields)} fields where TREC qrels have {len(QRELS)} and a run has {len(RUN)}",
        line=line,
        hint="a line is: query 0 item grade, or: query Q0 item rank score tag",
    )


def _read(source: Source, schema: Schema) -> pl.DataFrame:
    """Read block by block, so that memory holds the table and little else."""
    frames = []
    for block in source.whole_lines():
        frame = _read_block(block, schema)
        if frame is None:
            return parse(source, schema)
        frames.append(frame)
    if not any(frame.height for frame in frames):
        return parse(source, schema)
    return pl.concat(frames)


def _read_block(block: bytes, schema: Schema) -> pl.DataFrame | None:
    """Read lines as they are if they are tidy, else tidied; None where that does not do."""
    separators = len(schema) - 1
    lines = _count_tidy_lines(block, separators)
    if lines is None:
        block = _tidy(block)
        lines = _count_tidy_lines(block, separators)
    return None if lines is None else _polars(block, schema, lines)


def _polars(block: bytes, schema: Schema, lines: int) -> pl.DataFrame | None:
    wanted = [
        i for i, name in enumerate(schema) if name in ("query_id", "item_id", "grade", "score")
    ]
    try:
        frame = pl.read_csv(
            block,
            separator=" ",
            has_header=False,
            quote_char=None,
            schema=schema,
            columns=wanted,
            raise_if_empty=False,
        )
    except (pl.exceptions.PolarsError, OSError):
        return None
    whole = frame.height == lines and sum(frame.null_count().row(0)) == 0
    longest = frame.select(pl.col("query_id", "item_id").str.len_bytes().max()).row(0)
    whole = whole and all((length or 0) <= LONGEST_ID for length in longest)
    if whole and "score" in schema:
        whole = bool(frame["score"].is_finite().all())
    return frame if whole else None


def _count_tidy_lines(block: bytes, separators: int) -> int | None:
    """Count the lines if every field is followed by one space or newline, else say None."""
    if block.startswith((b"#", b" ", b"\n")) or (b"#" in block and b"\n#" in block):
        return None
    codes = np.frombuffer(block, np.uint8)
    spaces = newlines = 0
    for start in range(0, codes.size, _PIECE):
        piece = codes[start : start + _PIECE + 1]  # one over, to see two gaps at the seam
        gap = piece <= _SPACE
        if np.any(gap[1:] & gap[:-1]):
            return None
        newline = int(np.count_nonzero(piece[:_PIECE] == _NEWLINE))
        space = int(np.count_nonzero(piece[:_PIECE] == _SPACE))
        if np.count_nonzero(gap[:_PIECE]) != newline + space:  # tabs and other odd bytes
            return None
        newlines += newline
        spaces += space
    if block.endswith(b" "):
        return None
    lines = newlines + (block[-1:] not in (b"\n", b""))
    return lines if spaces == separators * lines else None


def _tidy(lines: bytes) -> bytes:
    """Return lines with one space between fields, no blank lines and no comments."""
    codes: NDArray[np.uint8] = np.frombuffer(lines.translate(_TO_SPACE), np.uint8)
    # A space goes if a gap stands before it; then a space before a newline, a newline after one.
    gap = (codes == _SPACE) | (codes == _NEWLINE)
    after_gap = np.concatenate(([True], gap[:-1]))
    codes = codes[~((codes == _SPACE) & after_gap)]
    before_newline = np.concatenate((codes[1:] == _NEWLINE, [False]))
    codes = codes[~((codes == _SPACE) & before_newline)]
    newline = codes == _NEWLINE
    codes = codes[~(newline & np.concatenate(([True], newline[:-1])))]
    text = codes.tobytes()
    return re.sub(rb"^#[^\n]*\n?", b"", text, flags=re.MULTILINE) if b"#" in text else text


def parse(source: Source, schema: Schema) -> pl.DataFrame:
    """Read line by line: slow, and the definition of what a TREC file means."""
    content = source.read()
    refuse_unreadable(content, source)
    value = "score" if "score" in schema else "grade"
    at = list(schema).index(value)
    columns: dict[str, list[str | float | int]] = {"query_id": [], "item_id": [], value: []}
    for number, line in enumerate(content.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        fields = line.split()
        if not fields or fields[0].startswith(b"#"):
            continue
        if len(fields) != len(schema):
            raise _field_count(source, number, fields, schema)
        try:
            columns["query_id"].append(fields[0].decode("utf-8"))
            columns["item_id"].append(fields[2].decode("utf-8"))
        except UnicodeDecodeError as error:
            raise not_utf8(source, number, error) from error
        _check_id(source, number, "query_id", fields[0])
        _check_id(source, number, "item_id", fields[2])
        parsed = _score(fields[at]) if value == "score" else _grade(fields[at])
        if isinstance(parsed, str):
            raise source.error(
                f"{fields[at].decode('utf-8', 'replace')!r} {parsed}",
                line=number,
                field=value,
                hint=f"field {at + 1} of the line is the {value}: "
                + ("a finite number" if value == "score" else "a whole number such as 0, 1 or 2"),
            )
        columns[value].append(parsed)
    if not columns["query_id"]:
        raise source.error("the file holds only comments", hint="check the command that wrote it")
    return pl.DataFrame(
        columns, schema={"query_id": pl.String, "item_id": pl.String, value: schema[value]}
    )


def _check_id(source: Source, line: int, field: str, text: bytes) -> None:
    if len(text) > LONGEST_ID or b"\0" in text:
        problem = HAS_NUL if b"\0" in text else TOO_LONG
        raise source.error(f"the id {problem}", line=line, field=field, hint="use another id")


def _grade(text: bytes) -> int | str:
    if not _INTEGER.fullmatch(text):
        return "is no integer"
    fits = len(text) < 25 and -(1 << 63) <= int(text) < 1 << 63
    return int(text) if fits else "is too large"


def _score(text: bytes) -> float | str:
    if _DECIMAL.fullmatch(text):
        number = float(text)
        return number if abs(number) != float("inf") else "is not finite"
    word = text.lower().lstrip(b"+-")
    return "is not finite" if word in (b"nan", b"inf", b"infinity") else "is no number"


def _field_count(source: Source, line: int, fields: list[bytes], schema: Schema) -> InputError:
    run = schema is RUN
    layout = "query Q0 item rank score tag" if run else "query 0 item grade"
    names = layout.split()
    missing = names[len(fields)] if len(fields) < len(names) else None
    return source.error(
        f"{len(fields)} fields where a TREC {'run' if run else 'qrels'} line has {len(names)}",
        line=line,
        field=missing,
        hint=f"a line is: {layout}",
    )


def _first_fields(head: bytes) -> tuple[int, list[bytes]]:
    """Return the first line that holds something: its number and its fields."""
    for number, line in enumerate(head.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        fields = line.split()
        if fields and not fields[0].startswith(b"#"):
            return number, fields
    return 1, []


def _refuse_the_other_kind(source: Source, schema: Schema) -> None:
    other, name = (RUN, "a run") if schema is QRELS else (QRELS, "qrels")
    line, fields = _first_fields(source.head)
    if len(fields) != len(other):
        return
    value = _score(fields[4]) if other is RUN else _grade(fields[3])
    if not isinstance(value, str):
        raise source.error(
            f"this is {name}: its lines have {len(other)} fields",
            line=line,
            hint=SWAPPED,
        )


def _refuse_spaces(table: pl.DataFrame) -> None:
    """Refuse ids that a line cannot hold; only a query's may not open like a comment."""
    for name, bad_id in (("query_id", rf"{_WHITE}|^#"), ("item_id", _WHITE)):
        column = table[name]
        bad = column.str.contains(bad_id)
        if bad.any():
            raise InputError(
                f"TREC files cannot hold the id {column.filter(bad)[0]!r}",
                field=column.name,
                hint="write .jsonl, .csv or .parquet, which hold any id",
            )


FORMAT = Format(
    "trec",
    (".qrels", ".run", ".trec", ".txt", ""),
    sniff,
    kind,
    read_gold,
    read_run,
    write_gold,
    write_run,
)
