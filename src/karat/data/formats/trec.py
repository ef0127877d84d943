"""TREC qrels (`query 0 item grade`) and run files (`query Q0 item rank score tag`).

Fields are separated by any white space; blank lines and lines that start with `#` are skipped.
As in trec_eval, a tag may contain spaces (its first word is used), scores may be infinite, and a
grade may be written as `1.0`. A line of a run with more than six fields is an error if the sixth is
a number: then an id probably contains a space, which shifts the score to the sixth field.

`parse` reads line by line and defines what a file means. It is slow, so Polars reads the file
instead if its lines are tidy (one space between fields, no comments) or can be tidied. Lines that
Polars cannot read are parsed as in `parse`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.data.data_file import DataFile
from karat.data.formats.base import (
    Format,
    Kind,
    RunPiece,
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
from karat.read_ahead import map_ahead

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
# Slices of this size fit into the CPU cache, which makes scanning several times as fast.
_SLICE = 1 << 18
_OTHER_SPACES = bytes([9, 11, 12, 13])
_TO_SPACE = bytes(_SPACE if byte in _OTHER_SPACES else byte for byte in range(256))
_WHITE_SPACE = r"[ \t\n\v\f\r]"
# A comment line in which text follows a carriage return, which may be the next line of an old Mac
# file.
_COMMENT_WITH_MORE = re.compile(rb"^[ \t\v\f\r]*#[^\n]*\r[^\n]*\S", re.MULTILINE)
_GRADE = re.compile(rb"[+-]?[0-9]+(?:\.0*)?")
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NUMBER_CHARACTERS = b"0123456789+-.eE"
_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)


def sniff(source: Source) -> bool:
    """Return whether the first line has the number of fields of qrels or of a run."""
    return kind(source) is not None


def kind(source: Source) -> Kind | None:
    """Return the kind from the number of fields."""
    fields = _first_fields(source.head)[1]
    if len(fields) == len(QRELS):
        return "gold"
    return "run" if len(fields) == len(RUN) or _is_long_run_line(fields) else None


def read_gold(source: DataFile) -> Gold:
    """Read qrels."""
    _refuse_the_other_kind(source, QRELS)
    return Gold(_read(source, QRELS).select("query_id", "item_id", "grade"), name=source.name)


def read_gold_pieces(source: DataFile) -> Iterator[Gold]:
    """Read qrels block by block."""
    _refuse_the_other_kind(source, QRELS)
    for frame in _read_blocks(source, QRELS):
        yield Gold(frame.select("query_id", "item_id", "grade"), name=source.name)


def read_run(source: DataFile) -> Run:
    """Read a run; the rank column is ignored, as in trec_eval."""
    _refuse_the_other_kind(source, RUN)
    return Run(ranked_by_score(_read(source, RUN)), name=source.name)


def read_run_pieces(source: DataFile) -> Iterator[RunPiece]:
    """Read a run block by block."""
    _refuse_the_other_kind(source, RUN)
    for frame in _read_blocks(source, RUN):
        yield RunPiece(Run(frame, name=source.name), ranked_by_score)


def write_gold(gold: Gold, file: IO[bytes]) -> WriteReport:
    """Write qrels, one judgment per line."""
    _refuse_spaces(gold.judgments)
    gold.judgments.select("query_id", pl.lit("0").alias("iteration"), "item_id", "grade").write_csv(
        file, separator=" ", include_header=False, quote_style="never"
    )
    return warn_of_gold_losses(gold, "a qrels file", fields=False, empty=False)


def write_run(run: Run, file: IO[bytes]) -> WriteReport:
    """Write a run; if the scores contradict the order, write n…1 instead and warn."""
    require_ids(run.results, "a TREC run")
    _refuse_spaces(run.results)
    tag = "_".join(str(run.settings.get("tag") or run.name or "karat").split()) or "karat"
    results, replaced = with_scores_that_order(run.results)
    rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
    results.select(
        "query_id", pl.lit("Q0").alias("q0"), "item_id", rank, "score", pl.lit(tag).alias("tag")
    ).write_csv(file, separator=" ", include_header=False, quote_style="never")
    return warn_of_run_losses(run, "a TREC run", stored=("tag",), empty=False, also=replaced)


def last_tag(source: Source) -> str:
    """Return the tag of the last line of a run, which trec_eval prints as runid."""
    tag = b""
    for block in source.whole_lines():
        rest = block
        while rest:
            rest, _, line = rest.rpartition(b"\n")
            fields = line.split()
            if fields and not fields[0].startswith(b"#"):
                tag = fields[len(RUN) - 1]
                break
    try:
        return tag.decode("utf-8")
    except UnicodeDecodeError:
        return tag.decode("latin-1")


def has_iterations(source: Source) -> bool:
    """Return whether the second field of qrels is informative.

    It is if it contains a value other than 0 and Q0, or if both 0 and Q0 occur.
    """
    iterations: set[bytes] = set()
    for block in source.whole_lines():
        rows = (line.split(None, 2) for line in block.split(b"\n"))
        iterations |= {
            fields[1] for fields in rows if len(fields) > 2 and not fields[0].startswith(b"#")
        }
        if iterations - {b"0", b"Q0"} or len(iterations) > 1:
            return True
    return False


def neither_kind(source: Source) -> InputError:
    """Make the error for a file that is neither qrels nor a run."""
    line, fields = _first_fields(source.head)
    return source.error(
        f"expected {len(QRELS)} fields (TREC qrels) or {len(RUN)} fields (a TREC run), "
        f"got {len(fields)}",
        line=line,
        hint="the format of a line is: query 0 item grade, or: query Q0 item rank score tag",
    )


def _read(source: Source, schema: Schema) -> pl.DataFrame:
    """Read the file block by block.

    Besides the table, one block and at most `source.n_ahead` blocks after it are in memory.
    """
    return pl.concat(_read_blocks(source, schema))


def _read_blocks(source: Source, schema: Schema) -> Iterator[pl.DataFrame]:
    """Yield the rows of each block; raise an error if the whole file has none."""
    n_lines_before = n_rows = 0
    read = partial(_read_block, schema=schema)
    with closing(map_ahead(source.whole_lines(), read, source.n_ahead)) as blocks:
        for block, (frame, n_lines) in blocks:
            if frame is None:
                refuse_unreadable(block if n_lines_before else source.head, source)
                frame = _parse_lines(source, block, schema, n_lines_before + 1)
            n_rows += frame.height
            n_lines_before += n_lines
            yield frame
    if not n_rows:
        parse(source, schema)  # raises the error


def _read_block(block: bytes, schema: Schema) -> tuple[pl.DataFrame | None, int]:
    """Read lines with Polars, after tidying them if needed, and count them.

    The table is None if Polars cannot read the block, so that `_parse_lines` has to.
    """
    if b"#" in block and b"\r" in block and _COMMENT_WITH_MORE.search(block):
        return None, _count_lines(block)
    n_lines = _count_tidy_lines(block, len(schema) - 1)
    if n_lines is None:
        return _read_untidy(block, schema), _count_lines(block)
    frame = _read_with_polars(block, schema, n_lines)
    return _read_special(block, block, schema, n_lines) if frame is None else frame, n_lines


def _read_untidy(block: bytes, schema: Schema) -> pl.DataFrame | None:
    """Read lines with several spaces, tabs, comments or blank lines."""
    tidy = _tidy(block)
    n_lines = _count_tidy_lines(tidy, len(schema) - 1)
    frame = None if n_lines is None else _read_with_polars(tidy, schema, n_lines)
    return _read_special(block, tidy, schema, n_lines) if frame is None else frame


def _read_special(
    block: bytes, tidy: bytes, schema: Schema, n_lines: int | None
) -> pl.DataFrame | None:
    """Read a run with unusual tags, or qrels with decimal grades."""
    if schema is RUN:
        return _read_without_tags(block)
    return None if n_lines is None else _read_decimal_grades(tidy, n_lines)


def _read_without_tags(block: bytes) -> pl.DataFrame | None:
    """Read a run in which tags contain spaces or are not UTF-8: drop everything after the score."""
    # A lone CR may be a line ending, so `_parse_lines` decides.
    if b"\r" in block.replace(b"\r\n", b"\n"):
        return None
    without_tags = _without_tags(_tidy(block))
    if without_tags is None:
        return None
    schema = {name: dtype for name, dtype in RUN.items() if name != "tag"}
    n_lines = _count_tidy_lines(without_tags, len(schema) - 1)
    return None if n_lines is None else _read_with_polars(without_tags, schema, n_lines)


def _without_tags(block: bytes) -> bytes | None:
    """Remove the tags from the lines of a tidy block; None if `_parse_lines` has to read it."""
    codes: NDArray[np.uint8] = np.frombuffer(block, np.uint8)
    newlines = np.flatnonzero(codes == _NEWLINE)
    ends = newlines if block.endswith(b"\n") else np.append(newlines, codes.size)
    spaces = np.flatnonzero(codes == _SPACE)
    n_spaces = np.searchsorted(spaces, ends)  # number of spaces up to the end of each line
    before_tag = np.append(0, n_spaces[:-1]) + len(RUN) - 2  # index of the space before the tag
    if not ends.size or (before_tag >= n_spaces).any() or (spaces[before_tag] + 1 == ends).any():
        return None
    is_long = before_tag + 1 < n_spaces  # lines in which the tag has several words
    first_word_starts = spaces[before_tag[is_long]] + 1
    first_word_ends = spaces[before_tag[is_long] + 1]
    if _any_made_of(_NUMBER_CHARACTERS, codes[: ends[-1]], first_word_starts, first_word_ends):
        return None
    change = np.zeros(codes.size + 1, np.int8)  # +1 where a tag starts, -1 where it ends
    change[spaces[before_tag]] += 1
    change[ends] -= 1
    outside_tags: NDArray[np.uint8] = codes[np.cumsum(change[:-1], dtype=np.int8) == 0]
    return outside_tags.tobytes()


def _any_made_of(
    characters: bytes, codes: NDArray[np.uint8], starts: NDArray[Any], ends: NDArray[Any]
) -> bool:
    """Return whether any of the words, given by starts and ends, has only these characters."""
    if not starts.size:
        return False
    is_allowed = np.zeros(256, np.bool_)
    is_allowed[list(characters)] = True
    n_others = np.append(0, np.cumsum(~is_allowed[codes], dtype=np.int32))
    return bool((n_others[ends] == n_others[starts]).any())


def _read_decimal_grades(block: bytes, n_lines: int) -> pl.DataFrame | None:
    """Read qrels in which some grades are written as `1.0`."""
    frame = _read_with_polars(block, {**QRELS, "grade": pl.String}, n_lines)
    if frame is None:
        return None
    grades = integers_of_text(frame["grade"])
    if grades.null_count() or are_too_large(grades).any():
        return None
    return frame.with_columns(grades)


def _read_with_polars(block: bytes, schema: Schema, n_lines: int) -> pl.DataFrame | None:
    """Read a tidy block; None unless all of its lines and values are valid."""
    names = list(schema)
    # A line with too few fields has no value in the last column.
    columns = sorted({0, 2, names.index("score" if "score" in schema else "grade"), len(names) - 1})
    try:
        frame = pl.read_csv(
            block,
            separator=" ",
            has_header=False,
            quote_char=None,
            schema=schema,
            columns=columns,
            raise_if_empty=False,
        )
    except (pl.exceptions.PolarsError, OSError):
        return None
    if frame.height != n_lines or sum(frame.null_count().row(0)):
        return None
    frame = frame.drop("tag", strict=False)
    longest = frame.select(pl.col("query_id", "item_id").str.len_bytes().max()).row(0)
    if any((length or 0) > LONGEST_ID for length in longest):
        return None
    if schema.get("grade") == pl.Int64 and are_too_large(frame["grade"]).any():
        return None
    if schema.get("score") == pl.Float64 and not frame["score"].is_finite().all():
        return frame if _infinities_are_spelled_out(block, schema, n_lines) else None
    return frame.rechunk()  # Polars reads many chunks, which slow down everything after this


def _infinities_are_spelled_out(block: bytes, schema: Schema, n_lines: int) -> bool:
    """Return whether all scores that are not finite are written as `inf` (not `1e999` or `nan`)."""
    as_text = _read_with_polars(block, {**schema, "score": pl.String}, n_lines)
    if as_text is None:
        return False
    scores = as_text["score"]
    infinite = scores.filter(~scores.cast(pl.Float64).is_finite())
    return bool(infinite.str.contains(r"(?i)^[+-]?inf(?:inity)?$").all())


def _count_lines(block: bytes) -> int:
    """Count the line feeds; faster than `bytes.count` if there are many lines."""
    codes = np.frombuffer(block, np.uint8)
    starts = range(0, codes.size, _SLICE)
    return sum(_count(codes[start : start + _SLICE] == _NEWLINE) for start in starts)


def _count(flags: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(flags))


def _count_tidy_lines(block: bytes, n_separators: int) -> int | None:
    """Return the number of lines.

    It is None if they are not tidy, or if the total number of separators is wrong. If the total is
    right, every line is right unless some line has too few fields, which `_read_with_polars`
    detects.
    """
    if block.startswith((b"#", b" ", b"\n")) or (b"#" in block and b"\n#" in block):
        return None
    codes = np.frombuffer(block, np.uint8)
    n_newlines = n_spaces = 0
    for start in range(0, codes.size, _SLICE):
        # One more byte, to detect adjacent gaps across the boundary.
        part = codes[start : start + _SLICE + 1]
        is_gap = part <= _SPACE
        if np.any(is_gap[1:] & is_gap[:-1]):
            return None
        part, is_gap = part[:_SLICE], is_gap[:_SLICE]
        newlines, spaces = _count(part == _NEWLINE), _count(part == _SPACE)
        if newlines + spaces != _count(is_gap):  # there are tabs or other bytes
            return None
        n_newlines += newlines
        n_spaces += spaces
    if not block.endswith(b"\n"):
        n_newlines += 1 if block else 0
    is_tidy = n_spaces == n_newlines * n_separators and not block.endswith(b" ")
    return n_newlines if is_tidy else None


def _tidy(text: bytes) -> bytes:
    """Return the lines with one space between fields, no blank lines and no comments."""
    codes: NDArray[np.uint8] = np.frombuffer(text.translate(_TO_SPACE), np.uint8)
    ends = [text.rfind(b"\n", 0, stop) + 1 for stop in range(_SLICE, codes.size, _SLICE)]
    bounds = pairwise(dict.fromkeys([0, *ends, codes.size]))
    tidy = b"".join(_tidy_slice(codes[start:stop]).tobytes() for start, stop in bounds)
    if b"#" not in tidy:
        return tidy
    return re.sub(rb"^#[^\n]*\n?", b"", tidy, flags=re.MULTILINE)


def _tidy_slice(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return whole lines with one space between fields and no blank lines."""
    is_space, is_newline = codes == _SPACE, codes == _NEWLINE
    codes = codes[~(is_space & _after(is_space | is_newline))]
    is_space, is_newline = codes == _SPACE, codes == _NEWLINE
    before_newline = is_space[:-1] & is_newline[1:]
    if before_newline.any():
        codes = codes[np.append(~before_newline, True)]
        is_newline = codes == _NEWLINE
    is_blank = is_newline & _after(is_newline)
    return codes[~is_blank] if is_blank.any() else codes


def _after(is_gap: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which bytes follow a gap; the first byte follows the end of a line."""
    return np.concatenate(([True], is_gap[:-1]))


def parse(source: Source, schema: Schema) -> pl.DataFrame:
    """Read line by line: slow, but the definition of what a TREC file means."""
    content = source.read()
    refuse_unreadable(content, source)
    table = _parse_lines(source, content.removeprefix(BYTE_ORDER_MARK), schema, 1)
    if not table.height:
        raise source.error(
            "the file contains only comments and blank lines",
            hint="check the command that wrote the file",
        )
    return table


def _parse_lines(source: Source, content: bytes, schema: Schema, first_line: int) -> pl.DataFrame:
    value = "score" if "score" in schema else "grade"
    value_index = list(schema).index(value)
    columns: dict[str, list[str | float | int]] = {"query_id": [], "item_id": [], value: []}
    for number, line in enumerate(content.split(b"\n"), first_line):
        fields = line.split()
        if not fields or fields[0].startswith(b"#"):
            # After a CR, a comment may contain further lines.
            _refuse_carriage_return(source, number, line)
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
        columns[value].append(_parse_value(source, number, value, fields[value_index]))
    return pl.DataFrame(
        columns, schema={"query_id": pl.String, "item_id": pl.String, value: schema[value]}
    )


def _check_id(source: Source, line: int, field: str, text: bytes) -> None:
    if len(text) > LONGEST_ID or b"\0" in text:
        problem = HAS_NUL if b"\0" in text else TOO_LONG
        raise source.error(f"the id {problem}", line=line, field=field, hint="use another id")


def _parse_value(source: Source, line: int, field: str, text: bytes) -> float | int:
    """Parse the score of a run (field 5) or the grade of qrels (field 4)."""
    if field == "score":
        parsed: float | int | str = _parse_score(text)
        hint = "field 5 of the line is the score: write a number"
    else:
        parsed = _parse_grade(text)
        hint = "field 4 of the line is the grade: write an integer such as 0, 1 or 2"
    if isinstance(parsed, str):
        raise source.error(
            f"{text.decode('utf-8', 'replace')!r} {parsed}", line=line, field=field, hint=hint
        )
    return parsed


def _parse_grade(text: bytes) -> int | str:
    """Return the grade, or the problem with it."""
    if not _GRADE.fullmatch(text):
        return "is not an integer"
    integer = text.partition(b".")[0]
    if len(integer) >= 25 or abs(int(integer)) >= LARGEST_GRADE:
        return "is too large"
    return int(integer)


def _parse_score(text: bytes) -> float | str:
    """Return the score, or the problem with it."""
    if _INFINITE.fullmatch(text):
        return float(text)
    if not _DECIMAL.fullmatch(text):
        return "is not a number"
    number = float(text)
    return "is too large" if math.isinf(number) else number


def _is_long_run_line(fields: list[bytes]) -> bool:
    """Return whether these are the fields of a run with a tag of several words."""
    return _has_tag_of_several_words(fields) and not isinstance(_parse_score(fields[4]), str)


def _refuse_carriage_return(source: Source, number: int, line: bytes) -> None:
    if b"\r" in line.strip():
        raise source.error(
            "the line contains a carriage return (CR)",
            line=number,
            hint="use line feeds (LF) as line endings: tr '\\r' '\\n' < FILE converts them",
        )


def _check_field_count(source: Source, line: int, fields: list[bytes], schema: Schema) -> None:
    """Raise an InputError for too few or too many fields; only a tag may contain spaces."""
    is_run = schema is RUN
    if is_run and _has_tag_of_several_words(fields):
        return
    layout = "query Q0 item rank score tag" if is_run else "query 0 item grade"
    names = layout.split()
    hint = f"the format of a line is: {layout}"
    if is_run and len(fields) > len(names):
        hint += "; ids cannot contain spaces, and a tag with spaces cannot start with a number"
    name = "a TREC run" if is_run else "TREC qrels"
    raise source.error(
        f"expected {len(names)} fields ({name}), got {len(fields)} fields",
        line=line,
        field=names[len(fields)] if len(fields) < len(names) else None,
        hint=hint,
    )


def _has_tag_of_several_words(fields: list[bytes]) -> bool:
    return len(fields) > len(RUN) and not _DECIMAL.fullmatch(fields[5])


def _first_fields(head: bytes) -> tuple[int, list[bytes]]:
    """Return number and fields of the first line that is not blank and not a comment."""
    for number, line in enumerate(head.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        fields = line.split()
        if fields and not fields[0].startswith(b"#"):
            return number, fields
    return 1, []


def _refuse_the_other_kind(source: Source, schema: Schema) -> None:
    line, fields = _first_fields(source.head)
    if schema is QRELS and _is_run_line(fields):
        problem = "expected TREC qrels, got a TREC run"
    elif schema is RUN and _is_qrels_line(fields):
        problem = "expected a TREC run, got TREC qrels"
    else:
        return
    raise source.error(f"{problem} ({len(fields)} fields per line)", line=line, hint=SWAPPED)


def _is_run_line(fields: list[bytes]) -> bool:
    if len(fields) == len(RUN):
        return not isinstance(_parse_score(fields[4]), str)
    return _is_long_run_line(fields)


def _is_qrels_line(fields: list[bytes]) -> bool:
    return len(fields) == len(QRELS) and not isinstance(_parse_grade(fields[3]), str)


def _refuse_spaces(table: pl.DataFrame) -> None:
    """Raise an InputError for ids with white space, and for query ids that start with #."""
    for name, pattern in (("query_id", rf"{_WHITE_SPACE}|^#"), ("item_id", _WHITE_SPACE)):
        column = table[name]
        is_invalid = column.str.contains(pattern)
        if is_invalid.any():
            raise InputError(
                f"TREC files cannot store the id {column.filter(is_invalid)[0]!r}",
                field=column.name,
                hint="write a .jsonl, .csv or .parquet file, which can store any id",
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
    read_run_pieces=read_run_pieces,
    read_gold_pieces=read_gold_pieces,
)
