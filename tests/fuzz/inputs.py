"""One input per format and seed: its files, how to read it, and what was changed in it."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from fuzz import mutations, samples
from fuzz.mutations import change_bytes, change_columns, change_records, change_table
from fuzz.samples import Row, Sample

PAIRED = ("trec", "csv", "tsv", "jsonl", "json", "ragas", "beir", "ir_datasets", "parquet", "arrow")
OTHERS = ("scores", "chunks", "corpus", "toml", "queries", "trec_eval")
FORMATS = (*PAIRED, *OTHERS)


@dataclass
class Input:
    """Files that were changed, and the valid sample that they were made from."""

    format: str
    seed: int
    draw: random.Random
    data: Sample
    kind: str = "gold"
    files: dict[str, bytes] = field(default_factory=dict)
    main: str = ""
    """The path, within the folder of the input, that karat is asked to read."""
    named: str | None = None
    """The format that is given to the reader; None if it is to be detected."""
    changes: list[str] = field(default_factory=list)
    undamaged: bytes | None = None
    """Columns before their bytes were changed."""

    def write(self, folder: Path) -> Path:
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder / self.main


def build(name: str, seed: int) -> Input:
    """Make the input of a format and a seed."""
    draw = random.Random(f"{name}/{seed}")
    made = Input(name, seed, draw, samples.sample(draw), draw.choice(["gold", "run"]))
    BUILDERS[name](made)
    return made


def rounds(made: Input) -> range:
    """Draw how many changes are made; a few inputs stay valid, to see that these are read."""
    return range(made.draw.choice([0, 1, 1, 1, 1, 2, 2, 3]))


def is_odd(made: Input) -> bool:
    odd = made.draw.random() < 0.4
    made.changes += ["style"] if odd else []
    return odd


def finish(made: Input, stem: str, ending: str, content: bytes, tail: bool = False) -> None:
    """Damage some bytes, compress, and choose whether the format is detected or named."""
    draw = made.draw
    if draw.random() < 0.25 and made.changes != []:
        for _ in range(draw.choice([1, 1, 2, 4])):
            content = change_bytes(draw, content, tail)
        made.changes.append("bytes")
    if draw.random() < 0.06:
        packed, content = mutations.compress(draw, content)
        ending += packed
        made.changes.append(packed)
    made.main = f"{stem}{ending}"
    made.files[made.main] = content
    made.named = made.format if made.format in PAIRED and draw.random() < 0.6 else None


def trec(made: Input, stem: str = "") -> None:
    draw = made.draw
    if made.kind == "gold":
        names = ["query", "iteration", "item", "grade"]
        rows: list[Row] = [[q, 0, item, grade] for q, item, grade in samples.gold_rows(made.data)]
    else:
        names = ["query", "Q0", "item", "rank", "score", "tag"]
        rows = [
            [q, "Q0", i, n, s, "tag"] for n, (q, i, s) in enumerate(samples.run_rows(made.data))
        ]
    made.changes += [change_table(draw, names, rows) for _ in rounds(made)]
    content = mutations.separated(draw, rows, is_odd(made), None)
    finish(made, stem or made.kind, draw.choice([".txt", ".qrels", ".run", ""]), content)


def ir_datasets(made: Input) -> None:
    rows = samples.gold_rows(made.data) if made.kind == "gold" else samples.run_rows(made.data)
    names = ["query_id", "doc_id", "value"]
    if made.kind == "gold" and made.draw.random() < 0.5:
        names.append("iteration")
        rows = [[*row, "Q0"] for row in rows]
    made.changes += [change_table(made.draw, names, rows) for _ in rounds(made)]
    content = mutations.separated(made.draw, rows, is_odd(made), "\t")
    finish(made, made.kind, ".tsv", content)


def table(made: Input) -> tuple[list[str], list[Row]]:
    columns = samples.gold_columns if made.kind == "gold" else samples.run_columns
    names, rows = columns(made.data, made.draw)
    return names, rows


def delimited(made: Input) -> None:
    names, rows = table(made)
    made.changes += [change_table(made.draw, names, rows) for _ in rounds(made)]
    separator = "," if made.format == "csv" else "\t"
    content = mutations.delimited(made.draw, names, rows, is_odd(made), separator)
    finish(made, made.kind, f".{made.format}", content)


def columnar(made: Input) -> None:
    draw = made.draw
    if draw.random() < 0.15:
        records = samples.ragas_records(made.data, draw)
        names = list(dict.fromkeys(key for record in records for key in record))
        columns = {name: [record.get(name) for record in records] for name in names}
    else:
        names, rows = table(made)
        columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    made.changes += [change_columns(draw, columns) for _ in rounds(made)]
    content = made.undamaged = column_bytes(draw, columns, made.format)
    if draw.random() < 0.3 and made.changes:
        content = change_bytes(draw, content, tail=True)
        made.changes.append("footer")
    finish(made, made.kind, ".parquet" if made.format == "parquet" else ".arrow", content)


def column_bytes(draw: random.Random, columns: dict[str, list[Any]], name: str) -> bytes:
    """Encode columns with PyArrow, in one of the layouts that writers use."""
    arrays = {column: array(draw, values) for column, values in columns.items()}
    file = io.BytesIO()
    made = pa.table(arrays)
    if name == "parquet":
        pa.parquet.write_table(
            made,
            file,
            compression=draw.choice(["none", "snappy", "zstd", "gzip"]),
            use_dictionary=draw.random() < 0.5,
            data_page_version=draw.choice(["1.0", "2.0"]),
            row_group_size=draw.choice([2, 1000]),
        )
        return file.getvalue()
    new = pa.ipc.new_file if draw.random() < 0.5 else pa.ipc.new_stream
    packing = draw.choice([None, None, "lz4", "zstd"])
    with new(file, made.schema, options=pa.ipc.IpcWriteOptions(compression=packing)) as writer:
        writer.write_table(made, max_chunksize=draw.choice([2, 1000]))
    return file.getvalue()


def array(draw: random.Random, values: list[Any]) -> pa.Array:
    """Return values as an array; mixed values become text."""
    try:
        plain = pa.array(values)
        if plain.type == pa.string() and draw.random() < 0.3:
            kind = draw.choice([pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
            return plain.cast(kind)
        if plain.type == pa.int64() and draw.random() < 0.3:
            return plain.cast(draw.choice([pa.int32(), pa.int16(), pa.uint64(), pa.float64()]))
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])
    return plain


def records_of(made: Input) -> list[Any]:
    if made.format == "ragas":
        return samples.ragas_records(made.data, made.draw)
    native = samples.gold_records if made.kind == "gold" else samples.run_records
    return native(made.data, made.draw)


def json_lines(made: Input) -> None:
    records = records_of(made)
    made.changes += [change_records(made.draw, records) for _ in rounds(made)]
    content = mutations.json_lines(made.draw, records, is_odd(made))
    finish(made, made.kind, made.draw.choice([".jsonl", ".jsonl", ".ndjson"]), content)


def nested_json(made: Input) -> None:
    draw, shape = made.draw, made.draw.random()
    values: Any = made.data.grades if made.kind == "gold" else made.data.scores
    content: Any = {query: dict(items) for query, items in values.items()}
    if shape < 0.2:
        content = {query: list(items) for query, items in values.items()}
    elif shape < 0.4:
        content = [r for r in records_of(made) if "karat" not in r]
    holder = [content]
    made.changes += [change_records(draw, holder) for _ in rounds(made)]
    text = mutations.json_text(holder[0] if holder else None, indent=draw.choice([None, 1]))
    if draw.random() < 0.05 and text.startswith("{") and len(text) > 2:
        text = f"{text[:-1]},{text[1:]}"
        made.changes.append("every key twice")
    finish(made, made.kind, ".json", text.encode("utf-8", "surrogatepass"))


def beir(made: Input) -> None:
    draw = made.draw
    made.kind = "gold"
    names, rows = ["query-id", "corpus-id", "score"], samples.gold_rows(made.data)
    records: list[Any] = [
        {"_id": query, "text": text, "metadata": {}} for query, text in made.data.queries.items()
    ]
    for _ in rounds(made):
        if draw.random() < 0.6:
            made.changes.append(change_table(draw, names, rows))
        else:
            made.changes.append(change_records(draw, records))
    made.files["faq/queries.jsonl"] = mutations.json_lines(draw, records, is_odd(made))
    content = mutations.delimited(draw, names, rows, is_odd(made), "\t")
    finish(made, "faq/qrels/test", ".tsv", content)
    made.main, made.named = "faq", None


def chunks(made: Input) -> None:
    rows_of_files(made, samples.chunk_records(made.data), "chunks")


def corpus(made: Input) -> None:
    draw = made.draw
    if draw.random() < 0.25:
        for at, text in enumerate(made.data.texts.values()):
            content = f"{draw.choice(['', ' '])}{text}{draw.choice(['', chr(10), ' '])}".encode()
            if draw.random() < 0.4:
                content = change_bytes(draw, content)
            made.files[
                f"texts/{draw.choice(['', 'a/', '.b/'])}{at}.{draw.choice(['md', 'txt'])}"
            ] = content
        made.main = "texts"
        made.changes.append("bytes")
        return
    rows_of_files(made, samples.document_records(made.data, draw), "corpus")


def rows_of_files(made: Input, records: list[Any], stem: str) -> None:
    """Write records as JSON Lines, CSV, TSV, Parquet or Arrow."""
    draw = made.draw
    ending = draw.choice([".jsonl", ".jsonl", ".csv", ".tsv", ".parquet", ".arrow"])
    if ending == ".jsonl":
        made.changes += [change_records(draw, records) for _ in rounds(made)]
        content = mutations.json_lines(draw, records, is_odd(made))
    elif ending in (".csv", ".tsv"):
        names, rows = list(records[0]), [list(record.values()) for record in records]
        made.changes += [change_table(draw, names, rows) for _ in rounds(made)]
        separator = "," if ending == ".csv" else "\t"
        content = mutations.delimited(draw, names, rows, is_odd(made), separator)
    else:
        columns = {name: [record[name] for record in records] for name in records[0]}
        made.changes += [change_columns(draw, columns) for _ in rounds(made)]
        content = column_bytes(draw, columns, ending[1:])
    finish(made, stem, ending, content, tail=ending in (".parquet", ".arrow"))


def queries(made: Input) -> None:
    draw = made.draw
    if draw.random() < 0.3:
        rows = [[query, text] for query, text in made.data.queries.items()]
        made.changes += [change_table(draw, ["id", "text"], rows) for _ in rounds(made)]
        finish(made, "queries", ".tsv", mutations.separated(draw, rows, is_odd(made), "\t"))
    elif draw.random() < 0.2:
        holder: list[Any] = [dict(made.data.queries)]
        made.changes += [change_records(draw, holder) for _ in rounds(made)]
        text = mutations.json_text(holder[0] if holder else None)
        finish(made, "queries", ".json", text.encode("utf-8", "surrogatepass"))
    else:
        rows_of_files(made, samples.query_records(made.data, draw), "queries")


def toml(made: Input) -> None:
    holder = [samples.settings(made.draw)]
    made.changes += [change_records(made.draw, holder) for _ in rounds(made)]
    settings = holder[0] if holder and isinstance(holder[0], dict) else {"x": holder}
    finish(made, "karat", ".toml", mutations.toml(made.draw, settings, is_odd(made)))
    if len(made.files) == 1 and not made.main.endswith(".toml"):
        made.files = {"karat.toml": next(iter(made.files.values()))}
        made.main = "karat.toml"


def trec_eval(made: Input) -> None:
    """Change qrels, or the run; the other file is valid."""
    changed = made.kind
    for kind in ("gold", "run"):
        made.kind = kind
        if kind == changed:
            trec(made, stem=kind)
        else:
            rows: list[Row] = [[q, "0", i, g] for q, i, g in samples.gold_rows(made.data)]
            if kind == "run":
                rows = [[q, "Q0", i, 1, s, "t"] for q, i, s in samples.run_rows(made.data)]
            made.files[f"{kind}-valid"] = mutations.separated(made.draw, rows, False, None)
    made.kind = changed


@cache
def saved_scores() -> dict[str, bytes]:
    """Return scores as karat writes them: Parquet, and JSON with the values of every query."""
    import karat

    data = samples.sample(random.Random(3))
    scores = karat.evaluate(data.grades, data.scores, ["RR", "P@2", "nDCG@5"])
    with TemporaryDirectory() as folder:
        for ending in ("parquet", "json"):
            scores.write(Path(folder) / f"scores.{ending}")
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def scores(made: Input) -> None:
    draw = made.draw
    name = draw.choice(["scores.parquet", "scores.parquet", "scores.json"])
    content = saved_scores()[name]
    if name.endswith(".json"):
        holder = [json.loads(content)]
        made.changes += [change_records(draw, holder) for _ in rounds(made)]
        content = mutations.json_text(holder[0] if holder else None).encode(
            "utf-8", "surrogatepass"
        )
    elif draw.random() < 0.7:
        held = pa.parquet.read_table(io.BytesIO(content))
        columns = {column: held[column].to_pylist() for column in held.column_names}
        known = pa.parquet.read_metadata(io.BytesIO(content)).metadata
        metadata = {b"karat": known[b"karat"]}
        for _ in rounds(made):
            if draw.random() < 0.1:  # a query twice, and counts that agree with that
                facts = [json.loads(metadata[b"karat"])]
                add_query_again(columns, facts[0])
                metadata[b"karat"] = json.dumps(facts[0]).encode()
                made.changes.append("a query again")
            elif draw.random() < 0.5:
                made.changes.append(change_columns(draw, columns))
            else:
                facts = [json.loads(metadata[b"karat"])]
                made.changes.append(f"header: {change_records(draw, facts)}")
                text = mutations.json_text(facts[0] if facts else None)
                metadata[b"karat"] = text.encode("utf-8", "surrogatepass")
                if any(word in repr(facts) for word in mutations.UNREADABLE):
                    break
        made_table = pa.table({c: array(draw, values) for c, values in columns.items()})
        file = io.BytesIO()
        pa.parquet.write_table(made_table.replace_schema_metadata(metadata), file)
        content = file.getvalue()
    else:
        content = change_bytes(draw, content, tail=True)
        made.changes.append("footer")
    finish(made, "scores", Path(name).suffix, content, tail=True)


def add_query_again(columns: dict[str, list[Any]], facts: Any) -> None:
    for values in columns.values():
        values += values[:1]
    if isinstance(facts, dict) and isinstance(facts.get("counts"), dict):
        for counts in facts["counts"].values():
            if isinstance(counts, dict) and isinstance(counts.get("queries"), int):
                counts["queries"] += 1


BUILDERS: dict[str, Callable[[Input], None]] = {
    "trec": trec,
    "csv": delimited,
    "tsv": delimited,
    "jsonl": json_lines,
    "json": nested_json,
    "ragas": json_lines,
    "beir": beir,
    "ir_datasets": ir_datasets,
    "parquet": columnar,
    "arrow": columnar,
    "scores": scores,
    "chunks": chunks,
    "corpus": corpus,
    "toml": toml,
    "queries": queries,
    "trec_eval": trec_eval,
}
