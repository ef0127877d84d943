"""What `ir_datasets export … --format tsv` prints: tabs, and no line that names the columns.

Judgments are query, document, relevance and iteration; scored documents are query, document and
score. With four fields TREC has another order, so that TREC wins wherever a file could be either.
"""

from __future__ import annotations

import re
import warnings
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
from karat.errors import InputError, KaratWarning
from karat.files import BYTE_ORDER_MARK, HEAD_BYTES, Source, decode

QRELS = ("query_id", "doc_id", "relevance", "iteration")
SCORED = ("query_id", "doc_id", "score")
LAYOUTS = {
    "relevance": "query, document, relevance and, if you like, iteration",
    "score": "query, document and score",
}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_GRADE = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BLANK_LINES = re.compile(r"\A(?:[ \t\r]*\n)+")
_LONE_CR = re.compile(r"\r(?!\n|\Z)")
_SAMPLE = 50  # lines that are looked at to tell the format


def sniff(source: Source) -> bool:
    """Tell files that can be nothing else; those of four fields mostly could be TREC's too."""
    lines = _sample(source)
    width = {len(fields) for fields in lines}
    if width == {3}:
        words = {len("\t".join(fields).split()) for fields in lines}
        return words not in ({4}, {6}) and all(_NUMBER.fullmatch(f[2]) for f in lines)
    return (
        width == {4}
        and all(_GRADE.fullmatch(f[2]) and not _INTEGER.fullmatch(f[3]) for f in lines)
        and any(f[1] not in ("0", "Q0") for f in lines)
    )


def warn_if_likely_export(source: Source) -> None:
    """Warn of a file that is read as TREC qrels and is laid out more like an export."""
    lines = _sample(source)
    if {len(fields) for fields in lines} != {4}:
        return
    _, second, third, fourth = (set(column) for column in zip(*lines, strict=True))
    if len(second) > 1 and len(fourth) == 1 and all(map(_GRADE.fullmatch, third | fourth)):
        warnings.warn(
            KaratWarning(
                f"{source.path} is read as TREC qrels (query, iteration, item, grade), but its "
                "third field looks like the grade; if ir_datasets wrote it, name that format"
            ),
            stacklevel=5,
        )


def kind(source: Source) -> Kind | None:
    """Tell judgments by their fourth field, and scores by a fraction."""
    lines = _sample(source)
    if any(len(fields) == len(QRELS) for fields in lines):
        return "gold"
    return None if all(_INTEGER.fullmatch(fields[-1]) for fields in lines) else "run"


def read_gold(source: DataFile) -> Gold:
    """Read judgments; the iteration is passed over, as it is in TREC files."""
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
    """Read scored documents; the score alone decides the order."""
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
    """Write judgments, with 0 as the iteration."""
    _write(gold.judgments.select("query_id", "item_id", "grade", pl.lit("0")), file)
    return warn_of_gold_losses(gold, "a TSV of ir_datasets", fields=False, empty=False)


def write_run(run: Run, file: IO[bytes]) -> WriteReport:
    """Write scores; where they do not give the order, n…1 stand in their place."""
    require_ids(run.results, "a TSV of ir_datasets")
    results, replaced = with_scores_that_order(run.results)
    _write(results.select("query_id", "item_id", "score"), file)
    return warn_of_run_losses(run, "a TSV of ir_datasets", holds=(), empty=False, also=replaced)


def _sample(source: Source) -> list[list[str]]:
    """Return the fields of the first lines, of those that are whole."""
    text = source.head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    if len(source.head) == HEAD_BYTES:
        text = text.rpartition("\n")[0]
    lines = [line.rstrip("\r") for line in text.split("\n", _SAMPLE)[:_SAMPLE]]
    return [line.split("\t") for line in lines if line.strip()]


def _read(source: Source, names: tuple[str, ...]) -> tuple[pl.DataFrame, frames.Locate]:
    text = decode(source.read(), source)
    body = _BLANK_LINES.sub("", text, count=1).lstrip("\r")
    top = text.count("\n", 0, len(text) - len(body))
    _refuse_lone_cr(source, body, top)

    def locate(row: int, field: str, problem: str, hint: str | None) -> InputError:
        return source.error(problem, line=top + lines[row - 1], field=field, hint=hint)

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
        raise _field_count(source, text, names)
    blank = table.select(pl.all_horizontal(pl.all().is_null())).to_series()
    lines = (~blank).arg_true() + 1
    return table.filter(~blank).rename(dict(zip(table.columns, names, strict=False))), locate


def _refuse_lone_cr(source: Source, body: str, top: int) -> None:
    """Refuse a carriage return inside a line: Polars would drop it from an id."""
    if found := _LONE_CR.search(body):
        raise source.error(
            "a carriage return (CR) without a line feed (LF)",
            line=top + body.count("\n", 0, found.start()) + 1,
            hint="save the file with LF or CRLF line endings",
        )


def _ends_with_tab(body: str, width: int) -> bool:
    """Tell whether the last line has a field too many, which is empty: Polars ignores that."""
    return body.endswith("\t") and body.rpartition("\n")[2].count("\t") >= width


def _field_count(source: Source, text: str, names: tuple[str, ...]) -> InputError:
    """Find the first line that has too few or too many fields."""
    counts = [
        (number, line.count("\t") + 1)
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    ]
    if not counts:
        return source.error("the file has no text", hint="check the command that wrote it")
    wrong = next((c for c in counts if not 3 <= c[1] <= len(names)), None)
    number, count = wrong or next((c for c in counts if c[1] != counts[0][1]), counts[0])
    return source.error(
        f"{count} fields between tabs",
        line=number,
        hint=f"ir_datasets prints {LAYOUTS[names[2]]}",
    )


def _refuse_ranks(table: pl.DataFrame, source: Source) -> None:
    """Refuse lists that count up from 1, which read as scores would stand upside down."""
    given = table.filter(pl.len().over("query_id") > 1)
    counted = given.select(
        (pl.col("score") == (pl.int_range(1, pl.len() + 1).over("query_id").cast(pl.String))).all()
    ).item()
    if given.height and counted:
        raise source.error(
            "the third field counts 1, 2, 3, …: these are ranks and not scores",
            field="score",
            hint="put a first line there: query_id, item_id and rank, with tabs between them",
        )


def _write(table: pl.DataFrame, file: IO[bytes]) -> None:
    for name in ("query_id", "item_id"):
        bad = table[name].str.contains(r"[\t\n\r]")
        if bad.any():
            raise InputError(
                f"a TSV of ir_datasets cannot hold the id {table[name].filter(bad)[0]!r}",
                field=name,
                hint="write .jsonl, .csv or .parquet, which hold any id",
            )
    table.write_csv(file, separator="\t", include_header=False, quote_style="never")


FORMAT = Format("ir_datasets", (), sniff, kind, read_gold, read_run, write_gold, write_run)
