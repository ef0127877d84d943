"""Runs that are larger than the memory limit, which is tiny here."""

from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import polars as pl

import karat
from karat import files
from karat.data import gold_source, run_source, spill
from karat.data.formats import table_files
from karat.engines import scoring_options
from karat.evaluation import evaluator
from karat.evaluation.loaded_run import LoadedRun
from karat.report.page.queries import query_sample
from messages.cases import Section, written

SECTION = Section("data: runs larger than memory")
case = SECTION.case

GOLD = {"q1": ["a"], "q2": ["b"]}
TREC = "q1 Q0 a 1 0.9 tag\nq2 Q0 a 1 0.9 tag\n"
LINE = '{"query_id":"q1","results":[{"id":"a","text":"pay by card"}]}\n'
TWICE = "q1 Q0 a 1 0.9 tag\nq2 Q0 b 1 0.9 tag\nq1 Q0 c 1 0.9 tag\n"


def in_batches(path, gold=GOLD, measures="RR", batch=1):
    """Evaluate a run in batches of so many bytes, by default of one row."""
    with ExitStack() as stack:
        for module, name, value in (
            (scoring_options, "LEAST_MEMORY", 1),
            (run_source, "_SMALLEST_BATCH", batch),
            (table_files, "_MOST_ROWS", 1),
            (files.Source.whole_lines, "__defaults__", (1,)),
            (spill, "_parent", lambda: Path("spill")),
        ):
            stack.enter_context(patch.object(module, name, value))
        return karat.evaluate(gold, path, measures, memory=1)


def table(columns, path="run.parquet"):
    pl.DataFrame(columns).write_parquet(path)
    return path


def files_of(ending, content):
    for name in ("a", "b"):
        written(f"runs/{name}.{ending}", content)
    return f"runs/*.{ending}"


case("the memory limit is not a size", lambda: karat.evaluate(GOLD, GOLD, memory="lots"))
case("the memory limit is too small", lambda: karat.evaluate(GOLD, GOLD, memory="1M"))
case(
    "a format is read as a whole",
    lambda: in_batches(written("run.json", '{"q1": {"a": 1.0}, "q2": {"b": 1.0}}')),
)
case(
    "a score in a table is not a number",
    lambda: in_batches(
        table({"query_id": ["q1", "q1"], "item_id": ["a", "b"], "score": [1.0, float("nan")]})
    ),
)
case(
    "a rank is repeated in a table",
    lambda: in_batches(
        table({"query_id": ["q1", "q1"], "item_id": ["a", "b"], "rank": [1, 1]}),
    ),
)
case("a query is in two files", lambda: in_batches(files_of("run", TREC)))
case("a query is in two files of lists", lambda: in_batches(files_of("jsonl", LINE)))
case(
    "a query is in two rows of lists",
    lambda: in_batches(table({"query_id": ["q1", "q1"], "results": [["a"], ["b"]]})),
)
case(
    "a query is in two rows of lists, and gold is large",
    lambda: in_batches(
        table({"query_id": ["q1", "q1"], "results": [["a"], ["b"]]}),
        written("gold.qrels", "q1 0 a 1\nq2 0 b 1\n"),
        batch=1 << 20,
    ),
)


def query_in_two_formats():
    written("runs/a.run", TWICE)
    written("runs/b.jsonl", LINE.replace("q1", "q2"))
    in_batches("runs/*.*")


case("a query is in two files of different formats", query_in_two_formats)


def full_disk(name):
    path = written("run.run", TWICE)
    with patch(name, side_effect=OSError(28, "No space left on device")):
        in_batches(path)


case("a temporary folder cannot be created", lambda: full_disk("tempfile.mkdtemp"))
case("temporary files cannot be written", lambda: full_disk("polars.DataFrame.write_ipc_stream"))
case(
    "lists of a large run are not shown",
    lambda: LoadedRun.of(in_batches(written("run.run", TREC))),
)


def many_queries(path=None):
    """Return the scores of four queries, of which two are listed."""
    gold = {f"q{number}": ["a"] for number in range(4)}
    if path is None:
        return karat.evaluate(gold, gold, "RR")
    lines = "".join(f"{query} Q0 a 1 0.9 tag\n" for query in gold)
    return in_batches(written(path, lines), gold)


def report_of_many():
    limits = patch.multiple(query_sample, MOST_LISTED=3, SAMPLE_SIZE=2)
    with limits:
        many_queries().report("report.html")


case("a report lists a sample of very many queries", report_of_many)
case(
    "a chart is drawn from a sample of a large run",
    lambda: many_queries("run.run").plot("curves"),
)
case(
    "evidence matches of a large run are not kept",
    lambda: (
        in_batches(
            written("run.jsonl", LINE),
            [{"query_id": "q1", "evidence": ["pay by card"]}],
            "evidence.recall@1",
        ).matches
    ),
)
case(
    "candidates of a large run lack texts",
    lambda: in_batches(
        written("run.jsonl", LINE.replace("}\n", ',"candidates":["x","a"]}\n')),
        [{"query_id": "q1", "evidence": ["pay by card"]}],
        "evidence.recall@1",
    ).reranking(),
)


def folder_with(**contents):
    for name, content in contents.items():
        written(f"parts/{name}", content)
    return "parts"


case(
    "a folder contains files of different formats",
    lambda: karat.evaluate(GOLD, folder_with(**{"a.run": TREC, "b.jsonl": LINE})),
)
case(
    "a folder contains another folder",
    lambda: karat.evaluate(GOLD, folder_with(**{"day=1/a.run": TREC})),
)
case("a folder contains no files", lambda: karat.evaluate(GOLD, folder_with(_SUCCESS="")))


def with_large_gold(content, path="gold.jsonl", run=None, **options):
    with ExitStack() as stack:
        stack.enter_context(patch.object(scoring_options, "LEAST_MEMORY", 1))
        stack.enter_context(patch.object(gold_source, "_SMALLEST_PART", 100))
        stack.enter_context(patch.object(spill, "_parent", lambda: Path("spill")))
        return karat.evaluate(written(path, content), run or {"q1": ["a"]}, memory=1, **options)


case(
    "large gold has to be held in memory",
    lambda: with_large_gold('{"q1": {"a": 1}}', "gold.json"),
)
case(
    "evidence matches are not kept with large gold",
    lambda: (
        with_large_gold(
            '{"query_id": "q1", "evidence": ["pay by card"]}\n',
            run=[{"query_id": "q1", "results": [{"id": "a", "text": "pay by card"}]}],
        ).matches
    ),
)
case(
    "offsets and texts of large gold differ in length",
    lambda: with_large_gold(
        '{"query_id": "q1", "spans": [{"doc_id": "d", "start": 0, "end": 4, "text": "pay"}]}\n',
        run=[{"query_id": "q1", "results": [{"id": "a", "doc_id": "d", "start": 0, "end": 9}]}],
    ),
)
case(
    "a span of large gold does not fit its document",
    lambda: with_large_gold(
        '{"query_id": "q1", "spans": [{"doc_id": "d", "start": 0, "end": 4}]}\n',
        corpus={"d": "pay"},
    ),
)
case(
    "a list of ids in large gold is invalid",
    lambda: with_large_gold('query_id,relevant\nq1,a;b\nq2,"[""a"""\n', "gold.csv"),
)
case(
    "lists are not shown with large gold",
    lambda: LoadedRun.of(with_large_gold("q1 0 a 1\n", "gold.qrels")),
)


def from_pipe():
    with patch.object(evaluator, "is_pipe", lambda _: True):
        return in_batches(written("run.run", TREC))


case("a run from a pipe is too large", from_pipe)


def with_little_expansion():
    with patch.dict("os.environ", KARAT_MAX_EXPANDED="1"):
        return in_batches(table({"query_id": ["q1"], "item_id": ["a"], "score": [1.0]}))


case("a part of a table needs too much memory", with_little_expansion)
case(
    "a query is in two files, with large gold",
    lambda: with_large_gold("q1 0 a 1\n", "gold.qrels", run=files_of("jsonl", LINE)),
)
