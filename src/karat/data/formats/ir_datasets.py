"""TSV files of `ir_datasets export … --format tsv`: separated by tabs, without column names.

Judgments have the fields query, document, relevance and iteration; scored documents have query,
document and score. TREC qrels also have four fields, in another order; a file that may be either
is read as TREC.
"""

from __future__ import annotations

import re
from typing import IO

import polars as pl

from karat.data import frames
from karat.data.data_file import DataFile
from karat.data.formats.base import (
    Format,
    Kind,
    WriteReport,
    require_ids,
    warn_of_gold_losses,
    warn_of_run_losses,
)
from karat.data.gold import Gold
from karat.data.ranking import ranked_by_score, with_scores_that_order
from karat.data.run import Run
from karat.errors import InputError, warn
from karat.files import BYTE_ORDER_MARK, HEAD_BYTES, Source, decode

QRELS = ("query_id", "doc_id", "relevance", "iteration")
SCORED = ("query_id", "doc_id", "score")
LAYOUTS = {
    "relevance": "query, document, relevance and (optional) iteration",
    "score": "query, document and score",
}
_TARGET = "a TSV file of ir_datasets"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_GRADE = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BLANK_LINES = re.compile(r"\A(?:[ \t\r]*\n)+")
_LONE_CR = re.compile(r"\r(?!\n|\Z)")
_SAMPLE_LINES = 50  # number of lines that are used to detect the format


def sniff(source: Source) -> bool:
    """Return whether the file can only be an export; most with four fields may also be TREC."""
    lines = _sample(source)
    field_counts = {len(fields) for fields in lines}
    if field_counts == {3}:
        word_counts = {len("\t".join(fields).split()) for fields in lines}
        is_trec = word_counts in ({4}, {6})
        return not is_trec and all(_NUMBER.fullmatch(fields[2]) for fields in lines)
    return (
        field_counts == {4}
        and all(_GRADE.fullmatch(third) for _, _, third, _ in lines)
        and not any(_INTEGER.fullmatch(fourth) for _, _, _, fourth in lines)
        and any(second not in ("0", "Q0") for _, second, _, _ in lines)
    )


def warn_if_likely_export(source: Source) -> None:
    """Warn if a file that is read as TREC qrels looks like an ir_datasets export."""
    lines = _sample(source)
    if {len(fields) for fields in lines} != {4}:
        return
    _, second, third, fourth = (set(column) for column in zip(*lines, strict=True))
    if len(second) > 1 and len(fourth) == 1 and all(map(_GRADE.fullmatch, third | fourth)):
        warn(
            f"{source.path} is read as TREC qrels (query, iteration, item, grade), but the "
            "third field looks like the grade; if the file was written by ir_datasets, set "
            "the format to ir_datasets",
            stacklevel=5,
        )


def kind(source: Source) -> Kind | None:
    """Return "gold" for four fields, "run" if a score is not an integer, otherwise None."""
    lines = _sample(source)
    if any(len(fields) == len(QRELS) for fields in lines):
        return "gold"
    return None if all(_INTEGER.fullmatch(fields[-1]) for fields in lines) else "run"


def read_gold(source: DataFile) -> Gold:
    """Read judgments; the iteration is ignored, as in TREC files."""
    table, locate = _read(source, QRELS)
    judgments = pl.DataFrame(
        [
            frames.ids(table["query_id"], "query_id", locate),
            frames.ids(table["doc_id"], "item_id", locate),
            frames.whole_numbers(table["relevance"], "grade", locate),
        ]
    )
    return Gold(judgments, name=source.name)


def read_run(source: DataFile) -> Run:
    """Read scored documents; they are ranked by their scores alone."""
    table, locate = _read(source, SCORED)
    _refuse_ranks(table, source)
    results = pl.DataFrame(
        [
            frames.ids(table["query_id"], "query_id", locate),
            frames.ids(table["doc_id"], "item_id", locate),
            frames.scores(table["score"], "score", locate),
        ]
    )
    return Run(ranked_by_score(results), name=source.name)


def write_gold(gold: Gold, file: IO[bytes]) -> WriteReport:
    """Write judgments, with the iteration 0."""
    _write(gold.judgments.select("query_id", "item_id", "grade", pl.lit("0")), file)
    return warn_of_gold_losses(gold, _TARGET, fields=False, empty=False)


def write_run(run: Run, file: IO[bytes]) -> WriteReport:
    """Write scores; if they contradict the order, write n…1 instead and warn."""
    require_ids(run.results, _TARGET)
    results, replaced = with_scores_that_order(run.results)
    _write(results.select("query_id", "item_id", "score"), file)
    return warn_of_run_losses(run, _TARGET, stored=(), empty=False, also=replaced)


def _sample(source: Source) -> list[list[str]]:
    """Return the fields of the first complete lines."""
    text = source.head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    if len(source.head) == HEAD_BYTES:
        text = text.rpartition("\n")[0]
    lines = [line.rstrip("\r") for line in text.split("\n", _SAMPLE_LINES)[:_SAMPLE_LINES]]
    return [line.split("\t") for line in lines if line.strip()]


def _read(source: Source, names: tuple[str, ...]) -> tuple[pl.DataFrame, frames.Locate]:
    text = decode(source.read(), source)
    body = _BLANK_LINES.sub("", text, count=1).lstrip("\r")
    skipped = text.count("\n", 0, len(text) - len(body))
    _refuse_lone_cr(source, body, skipped)
    try:
        table = pl.read_csv(
            body.encode(),
            separator="\t",
            has_header=False,
            quote_char=None,
            infer_schema=False,
            extra_columns="raise",
        )
    except (pl.exceptions.PolarsError, OSError):
        table = None
    if table is None or not 3 <= table.width <= len(names) or _ends_with_tab(body, table.width):
        raise _field_count_error(source, text, names)
    is_blank = table.select(pl.all_horizontal(pl.all().is_null())).to_series()
    line_numbers = (~is_blank).arg_true() + 1 + skipped

    def locate(row: int, field: str, problem: str, hint: str | None) -> InputError:
        return source.error(problem, line=line_numbers[row - 1], field=field, hint=hint)

    return table.filter(~is_blank).rename(dict(zip(table.columns, names, strict=False))), locate


def _refuse_lone_cr(source: Source, body: str, skipped: int) -> None:
    """Raise an InputError for a carriage return inside a line: Polars would drop it from an id."""
    if lone_cr := _LONE_CR.search(body):
        raise source.error(
            "the line contains a carriage return (CR) without a line feed (LF)",
            line=skipped + body.count("\n", 0, lone_cr.start()) + 1,
            hint="save the file with LF or CRLF line endings",
        )


def _ends_with_tab(body: str, width: int) -> bool:
    """Return whether the last line has an additional empty field, which Polars ignores."""
    return body.endswith("\t") and body.rpartition("\n")[2].count("\t") >= width


def _field_count_error(source: Source, text: str, names: tuple[str, ...]) -> InputError:
    """Make the error for the first line with too few or too many fields."""
    counts = [
        (number, line.count("\t") + 1)
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    ]
    if not counts:
        return source.error("the file has no text", hint="check the command that wrote the file")
    first_count = counts[0][1]
    invalid = [pair for pair in counts if not 3 <= pair[1] <= len(names)]
    different = [pair for pair in counts if pair[1] != first_count]
    number, count = (*invalid, *different, counts[0])[0]
    return source.error(
        f"unexpected number of fields: {count}",
        line=number,
        hint=f"separate the fields by tabs: {LAYOUTS[names[2]]}",
    )


def _refuse_ranks(table: pl.DataFrame, source: Source) -> None:
    """Raise an InputError for scores 1, 2, 3, …: ranks, which as scores would reverse the lists."""
    long_lists = table.filter(pl.len().over("query_id") > 1)
    rank = pl.int_range(1, pl.len() + 1).over("query_id").cast(pl.String)
    are_ranks = long_lists.select((pl.col("score") == rank).all()).item()
    if long_lists.height and are_ranks:
        raise source.error(
            "the third field is 1, 2, 3, …: these look like ranks, not scores",
            field="score",
            hint="add a first line with the column names query_id, item_id and rank, separated "
            "by tabs",
        )


def _write(table: pl.DataFrame, file: IO[bytes]) -> None:
    for name in ("query_id", "item_id"):
        is_invalid = table[name].str.contains(r"[\t\n\r]")
        if is_invalid.any():
            raise InputError(
                f"{_TARGET} cannot store the id {table[name].filter(is_invalid)[0]!r}",
                field=name,
                hint="write a .jsonl, .csv or .parquet file, which can store any id",
            )
    table.write_csv(file, separator="\t", include_header=False, quote_style="never")


FORMAT = Format("ir_datasets", (), sniff, kind, read_gold, read_run, write_gold, write_run)
