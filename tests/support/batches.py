"""Gold and runs in files of all formats, for tests that read them in parts."""

import gzip
import random
import sys
import warnings

import polars as pl

import karat
from karat.files import zstd

CHANCE = random.Random(7)
MEASURES = ["nDCG@10", "AP", "Judged@5"]
GOLD = {
    f"q{query}": {f"d{CHANCE.randrange(99)}": CHANCE.randrange(3) for _ in range(8)}
    for query in range(2, 33)
}
ROWS = pl.DataFrame(
    [
        (f"q{query}", f"d{item}", rank, CHANCE.choice([2.0, 1.0, 0.5]))
        for query in range(30)
        for rank, item in enumerate(CHANCE.sample(range(99), 20), 1)
    ],
    schema=["query_id", "item_id", "rank", "score"],
    orient="row",
)


def trec(table):
    return "".join(f"{q} Q0 {item} {rank} {score} tag\n" for q, item, rank, score in table.rows())


WRITERS = {
    "run.zst": lambda table, path: path.write_bytes(zstd.compress(trec(table).encode())),
    "run": lambda table, path: path.write_text(trec(table)),
    "run.gz": lambda table, path: path.write_bytes(gzip.compress(trec(table).encode())),
    "csv": lambda table, path: table.write_csv(path),
    "tsv": lambda table, path: table.drop("rank").write_csv(path, separator="\t"),
    "parquet": lambda table, path: table.write_parquet(path),
    "arrow": lambda table, path: table.write_ipc(path),
    "jsonl": lambda table, path: karat.Run.of(table).write(path),
}


JUDGMENTS = pl.DataFrame(
    [(query, item, grade) for query, items in GOLD.items() for item, grade in items.items()],
    schema=["query_id", "item_id", "grade"],
    orient="row",
)


def qrels(table):
    return "".join(f"{query} 0 {item} {grade}\n" for query, item, grade in table.rows())


def with_fields(table):
    """Judgments with a field of the query, and a column with several values per query."""
    topic = pl.col("query_id").str.slice(-1)
    return table.with_columns(
        topic=topic, query="what is " + pl.col("query_id") + "?", judge=pl.int_range(pl.len()) % 3
    )


def gold_lines(table, path):
    gold = karat.Gold.of(with_fields(table).drop("judge"))
    gold.write(path)
    with path.open("a") as file:
        file.write('{"query_id": "none", "relevant": []}\n')
        file.write('{"query_id": "no answer", "relevant": ["d1"], "answerable": false}\n')


GOLD_WRITERS = {
    "qrels": lambda table, path: path.write_text(qrels(table)),
    "qrels.gz": lambda table, path: path.write_bytes(gzip.compress(qrels(table).encode())),
    "csv": lambda table, path: with_fields(table).write_csv(path),
    "tsv": lambda table, path: with_fields(table).write_csv(path, separator="\t"),
    "parquet": lambda table, path: with_fields(table).write_parquet(path),
    "arrow": lambda table, path: with_fields(table).write_ipc(path),
    "jsonl": gold_lines,
}


def evaluated_with(gold, run, **options):
    """Everything about the scores, the queries, and the messages of all warnings in order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = karat.evaluate(gold, run, MEASURES, **options)
    table = scores.table
    messages = [str(warning.message) for warning in caught]
    queries = scores.queries
    return table.frame.rows(), table.holes.rows(), table.counts, scores.notes, queries, messages


def command(tmp_path, *words):
    return [sys.executable, "-m", "karat", "eval", *map(str, words), "--memory", "256M"]
