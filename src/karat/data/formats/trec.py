"""TREC qrels (`query 0 item grade`) and run files (`query Q0 item rank score tag`).

Fields are separated by any white space; blank lines and lines starting with `#` are skipped.
As in trec_eval, a tag may hold spaces (its first word counts), scores may be infinite, and a grade
may be written `1.0`. A line with more than six fields whose sixth is a number is refused: an id
with a space in it shifts the score there.
A plain parser defines what a file means. Nearly every file is tidy enough, or can be tidied
quickly enough, for Polars to read instead; whenever Polars fails, the plain parser decides.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.data.data_file import DataFile
from karat.data.formats.base import (
    Format,
    Kind,
    WriteReport,
    require_ids,
    warn_of_gold_losses,
    warn_of_run_losses,
)
from karat.data.frames import (
    HAS_NUL,
    LARGEST_GRADE,
    LONGEST_ID,
    TOO_LONG,
    are_too_large,
    integers_of_text,
)
from karat.data.gold import Gold
from karat.data.ranking import ranked_by_score, with_scores_that_order
from karat.data.run import Run
from karat.errors import SWAPPED, InputError
from karat.files import BYTE_ORDER_MARK, Source, not_utf8, refuse_unreadable

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
_COMMENT_WITH_MORE = re.compile(rb"^[ \t\v\f\r]*#[^\n]*\r[^\n]*\S", re.MULTILINE)
_GRADE = re.compile(rb"[+-]?[0-9]+(?:\.0*)?")
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_OF_NUMBERS = b"0123456789+-.eE"
_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)


def sniff(source: Source) -> bool:
    """Tell whether the first line could be TREC's: four fields, six, or more after a score."""
    return kind(source) is not None


def kind(source: Source) -> Kind | None:
    """Tell qrels from a run by the number of fields."""
    fields = _first_fields(source.head)[1]
    if len(fields) == len(QRELS):
        return "gold"
    return "run" if len(fields) == len(RUN) or _is_long_run_line(fields) else None


def read_gold(source: DataFile) -> Gold:
    """Read qrels."""
    _refuse_the_other_kind(source, QRELS)
    return Gold(_read(source, QRELS).select("query_id", "item_id", "grade"), name=source.name)


def read_run(source: DataFile) -> Run:
    """Read a run; the rank column is ignored, as in trec_eval."""
    _refuse_the_other_kind(source, RUN)
    return Run(ranked_by_score(_read(source, RUN)), name=source.name)


def write_gold(gold: Gold, file: IO[bytes]) -> WriteReport:
    """Write qrels, one judgment a line."""
    _refuse_spaces(gold.judgments)
    gold.judgments.select("query_id", pl.lit("0").alias("iteration"), "item_id", "grade").write_csv(
        file, separator=" ", include_header=False, quote_style="never"
    )
    return warn_of_gold_losses(gold, "a qrels file", fields=False, empty=False)


def write_run(run: Run, file: IO[bytes]) -> WriteReport:
    """Write a run; where order and scores disagree, n…1 stand as scores, and that is said."""
    require_ids(run.results, "a TREC run")
    _refuse_spaces(run.results)
    tag = "_".join(str(run.settings.get("tag") or run.name or "karat").split()) or "karat"
    results, replaced = with_scores_that_order(run.results)
    rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
    results.select(
        "query_id", pl.lit("Q0").alias("q0"), "item_id", rank, "score", pl.lit(tag).alias("tag")
    ).write_csv(file, separator=" ", include_header=False, quote_style="never")
    return warn_of_run_losses(run, "a TREC run", holds=("tag",), empty=False, also=replaced)


def last_tag(source: Source) -> str:
    """Return the tag in the last line of a run: what trec_eval prints as runid."""
    last = b""
    for block in source.whole_lines():
        rest = block
        while rest:
            rest, _, line = rest.rpartition(b"\n")
            fields = line.split()
            if fields and not fields[0].startswith(b"#"):
                last = fields[len(RUN) - 1]
                break
    try:
        return last.decode("utf-8")
    except UnicodeDecodeError:
        return last.decode("latin-1")


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
    """Read lines as they are if they are tidy, else tidied; None if that does not work."""
    if b"#" in block and b"\r" in block and _COMMENT_WITH_MORE.search(block):
        return None
    separators = len(schema) - 1
    tidy = block
    lines = _count_tidy_lines(tidy, separators)
    if lines is None:
        tidy = _tidy(block)
        lines = _count_tidy_lines(tidy, separators)
    frame = None if lines is None else _polars(tidy, schema, lines)
    if frame is not None:
        return frame
    if schema is RUN:
        return _read_without_tags(block)
    return None if lines is None else _read_decimal_grades(tidy, lines)


def _read_without_tags(block: bytes) -> pl.DataFrame | None:
    """Read a run whose tags hold spaces or are not UTF-8: cut each line after the score."""
    if b"\r" in block.replace(b"\r\n", b"\n"):  # what looks like a tag may be further lines
        return None
    without_tags = _without_tags(_tidy(block))
    untagged = {name: kind for name, kind in RUN.items() if name != "tag"}
    lines = None if without_tags is None else _count_tidy_lines(without_tags, len(untagged) - 1)
    if without_tags is None or lines is None:
        return None
    return _polars(without_tags, untagged, lines)


def _without_tags(block: bytes) -> bytes | None:
    """Cut the lines of a tidy block before their tags; None if the plain parser has to decide."""
    codes: NDArray[np.uint8] = np.frombuffer(block, np.uint8)
    newlines = np.flatnonzero(codes == _NEWLINE)
    ends = newlines if block.endswith(b"\n") else np.append(newlines, codes.size)
    spaces = np.flatnonzero(codes == _SPACE)
    before = np.searchsorted(spaces, ends)  # spaces up to the end of each line
    tag = np.append(0, before[:-1]) + len(RUN) - 2  # of these, the one in front of the tag
    if not ends.size or (tag >= before).any() or (spaces[tag] + 1 == ends).any():
        return None
    more = tag + 1 < before  # the lines whose tag has several words
    words = codes[: ends[-1]], spaces[tag[more]] + 1, spaces[tag[more] + 1]
    if _any_made_of(_OF_NUMBERS, *words):
        return None
    change = np.zeros(codes.size + 1, np.int8)
    change[spaces[tag]] += 1
    change[ends] -= 1
    kept: NDArray[np.uint8] = codes[np.cumsum(change[:-1], dtype=np.int8) == 0]
    return kept.tobytes()


def _any_made_of(
    characters: bytes, codes: NDArray[np.uint8], starts: NDArray[Any], ends: NDArray[Any]
) -> bool:
    """Tell whether a word, given by its start and end, holds only these characters."""
    if not starts.size:
        return False
    allowed = np.zeros(256, np.bool_)
    allowed[list(characters)] = True
    others = np.append(0, np.cumsum(~allowed[codes], dtype=np.int32))
    return bool((others[ends] == others[starts]).any())


def _read_decimal_grades(block: bytes, lines: int) -> pl.DataFrame | None:
    """Read qrels in which some grades are written as `1.0`."""
    frame = _polars(block, {**QRELS, "grade": pl.String}, lines)
    if frame is None:
        return None
    grades = integers_of_text(frame["grade"])
    too_large = are_too_large(grades).any()
    return None if grades.null_count() or too_large else frame.with_columns(grades)


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
    if frame.height != lines or sum(frame.null_count().row(0)):
        return None
    longest = frame.select(pl.col("query_id", "item_id").str.len_bytes().max()).row(0)
    if any((length or 0) > LONGEST_ID for length in longest):
        return None
    if schema.get("grade") == pl.Int64 and are_too_large(frame["grade"]).any():
        return None
    if schema.get("score") == pl.Float64 and not frame["score"].is_finite().all():
        return frame if _infinities_are_spelled_out(block, schema, lines) else None
    return frame


def _infinities_are_spelled_out(block: bytes, schema: Schema, lines: int) -> bool:
    """Tell `inf` from a number that is too large, and from what is not a number."""
    as_text = _polars(block, {**schema, "score": pl.String}, lines)
    if as_text is None:
        return False
    scores = as_text["score"]
    infinite = scores.filter(~scores.cast(pl.Float64).is_finite())
    return bool(infinite.str.contains(r"(?i)^[+-]?inf(?:inity)?$").all())


def _count_tidy_lines(block: bytes, separators: int) -> int | None:
    """Count the lines if each has its fields with one space between them, otherwise None."""
    if block.startswith((b"#", b" ", b"\n")) or (b"#" in block and b"\n#" in block):
        return None
    codes = np.frombuffer(block, np.uint8)
    lines = position = 0  # position: how many spaces of the current line are behind us
    for start in range(0, codes.size, _PIECE):
        piece = codes[start : start + _PIECE + 1]  # one over, to see two gaps at the seam
        gap = piece <= _SPACE
        if np.any(gap[1:] & gap[:-1]):
            return None
        found = np.compress(gap[:_PIECE], piece[:_PIECE])
        ends = found[separators - position :: separators + 1]
        # Each line ends after the same number of spaces, and there are no tabs or other bytes.
        if np.any(ends != _NEWLINE) or np.count_nonzero(found == _SPACE) != found.size - ends.size:
            return None
        lines += ends.size
        position = (position + found.size) % (separators + 1)
    if codes.size and codes[-1] != _NEWLINE:
        return lines + 1 if position == separators and codes[-1] != _SPACE else None
    return lines if position == 0 else None


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
            _refuse_carriage_return(source, number, line)  # lines may be hidden in a comment
            continue
        if len(fields) != len(schema):
            _refuse_carriage_return(source, number, line)
            _check_field_count(source, number, fields, schema)
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
                + ("a number" if value == "score" else "a whole number such as 0, 1 or 2"),
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
    if not _GRADE.fullmatch(text):
        return "is not an integer"
    integer = text.partition(b".")[0]
    fits = len(integer) < 25 and abs(int(integer)) < LARGEST_GRADE
    return int(integer) if fits else "is too large"


def _score(text: bytes) -> float | str:
    if _INFINITE.fullmatch(text):
        return float(text)
    if not _DECIMAL.fullmatch(text):
        return "is not a number"
    number = float(text)
    return number if abs(number) != float("inf") else "is too large"


def _is_long_run_line(fields: list[bytes]) -> bool:
    """Tell whether fields are those of a run whose tag holds spaces."""
    return _has_tag_of_several_words(fields) and not isinstance(_score(fields[4]), str)


def _refuse_carriage_return(source: Source, number: int, line: bytes) -> None:
    if b"\r" in line.strip():
        raise source.error(
            "there is a carriage return inside the line",
            line=number,
            hint="end lines with a line feed: tr '\\r' '\\n' < file converts old line ends",
        )


def _check_field_count(source: Source, line: int, fields: list[bytes], schema: Schema) -> None:
    """Refuse a line with too few or too many fields; only the tag of a run may hold spaces."""
    run = schema is RUN
    if run and _has_tag_of_several_words(fields):
        return
    layout = "query Q0 item rank score tag" if run else "query 0 item grade"
    names = layout.split()
    hint = f"a line is: {layout}"
    if run and len(fields) > len(names):
        hint += "; ids cannot hold spaces, and a tag of several words cannot start with a number"
    raise source.error(
        f"{len(fields)} fields where a TREC {'run' if run else 'qrels'} line has {len(names)}",
        line=line,
        field=names[len(fields)] if len(fields) < len(names) else None,
        hint=hint,
    )


def _has_tag_of_several_words(fields: list[bytes]) -> bool:
    return len(fields) > len(RUN) and not _DECIMAL.fullmatch(fields[5])


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
    if other is RUN:
        six = len(fields) == len(RUN) and not isinstance(_score(fields[4]), str)
        found = six or _is_long_run_line(fields)
    else:
        found = len(fields) == len(QRELS) and not isinstance(_grade(fields[3]), str)
    if found:
        raise source.error(
            f"this is {name}: its lines have {len(fields)} fields",
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
