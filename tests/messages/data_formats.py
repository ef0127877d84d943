"""Errors and warnings of the file formats: invalid content, and data that a format cannot store."""

import gzip
import json
import os
from unittest.mock import patch

import polars as pl

from karat import Chunks, Gold, Run, evaluate
from karat.data.columns import Columns
from messages.cases import Section, written
from support.paths import GOLDEN

SECTION = Section("data: formats")
case, file = SECTION.case, SECTION.file


def gold(name: str, path: str, content: str | bytes, **how) -> None:
    file(name, Gold.read, path, content, **how)


def run(name: str, path: str, content: str | bytes, **how) -> None:
    file(name, Run.read, path, content, **how)


def lines(*records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


# Native files

HEADER = {"karat": 1, "kind": "gold"}
RUN_HEADER = '{"karat":1,"kind":"run"}\n'
FOUND = '{"query_id": "q1", "results": ["a"]}\n'
LIBRARY = r"\(.*\)"

gold("a line is not complete JSON", "gold.jsonl", '{"query_id": "q1"\n', volatile=LIBRARY)
run("the last line of a run is cut off", "a.jsonl", RUN_HEADER + '{"query', volatile=LIBRARY)
gold("a number in JSON is not finite", "gold.jsonl", '{"query_id": "q1", "weight": [NaN]}\n')
run("a text in JSON has a lone surrogate", "run.jsonl", r'{"query_id": "\ud800", "results": []}')
gold("a key in JSON has a lone surrogate", "gold.jsonl", '{"query_id": "q1", "\\ud800": 1}')
gold("a grade is not an integer", "gold.jsonl", lines({"query_id": "q1", "relevant": {"a": 0.5}}))
gold("a grade is text", "gold.jsonl", lines({"query_id": "q1", "relevant": {"b": 1, "a": "high"}}))
gold("a grade is too large", "gold.jsonl", lines({"query_id": "q1", "relevant": {"a": 1 << 40}}))
gold("the key of a grade is empty", "gold.jsonl", lines({"query_id": "q1", "relevant": {"": 1}}))
gold("a query id is empty", "gold.jsonl", lines({"query_id": "", "relevant": ["a"]}))
gold("an evidence text is a number", "gold.jsonl", lines({"query_id": "q1", "evidence": [5]}))
gold("judgments are a number", "gold.jsonl", lines({"query_id": "q1", "relevant": 5}))
gold("a span is a list", "gold.jsonl", lines({"query_id": "q1", "spans": [["a", 0, 1]]}))
gold("a line is a list", "gold.jsonl", '{"query_id": "q1", "relevant": ["a"]}\n["q2"]\n')
gold("a line ends with a comma", "gold.jsonl", '{"query_id": "q1", "relevant": ["a"],}\n')
gold("a text in a line has no quotes", "gold.jsonl", '{"query_id": q1}\n', volatile=LIBRARY)
run(
    "a latency is text",
    "run.jsonl",
    lines({"query_id": "q1", "results": ["a"], "latency_ms": {"total": 1, "x": "2"}}),
)
run("a score is too large in a line", "run.jsonl", '{"query_id":"q","results":[{"score":1e999}]}\n')
gold("a line has no query id", "gold.jsonl", lines({"relevant": {"a": 1}}))
run(
    "a result has a field of the wrong type",
    "run.jsonl",
    lines({"query_id": "q", "results": [{"id": "a", "score": "high"}]}),
)
gold("a query is on two lines", "gold.jsonl", lines(*[{"query_id": "q1", "relevant": ["a"]}] * 2))
gold(
    "an item is judged twice in one line",
    "gold.jsonl",
    '{"query_id": "q1", "relevant": {"a": 1, "a": 2}}\n',
)
gold("gold has the line of a run", "gold.jsonl", lines(HEADER) + FOUND)
gold(
    "a span ends before it starts",
    "gold.jsonl",
    lines({"query_id": "q1", "spans": [{"doc_id": "d", "start": 5, "end": 2}]}),
)
gold("the version of a file is unknown", "gold.jsonl", lines(HEADER | {"karat": 2}))
gold("gold begins with the header of a run", "gold.jsonl", RUN_HEADER + FOUND)
run("a run begins with the header of gold", "run.jsonl", lines(HEADER) + FOUND)
gold("a header names an unknown unit", "gold.jsonl", lines(HEADER | {"offsets": "bytes"}))
gold("a file has a header and no queries", "gold.jsonl", lines(HEADER))
MISSPELLED = {"query_id": "q1", "results": ["a"], "candiates": ["a"]}
run("a key of a run is misspelled", "run.jsonl", lines(MISSPELLED))
run("the results of a run are misspelled", "run.jsonl", lines({"query_id": "q", "resutls": ["a"]}))
run("a line of a run has no results", "run.jsonl", lines({"query_id": "q1", "relevant": ["a"]}))


def result(name: str, **fields) -> None:
    run(name, "run.jsonl", lines({"query_id": "q1", "results": [fields]}))


result("a result has no id, offsets or text", score=1)
result("a result ends before it starts", doc_id="d", start=5, end=2)
case(
    "a score in Python is not finite",
    lambda: Run.of([{"query_id": "q1", "results": [{"id": "a", "score": float("nan")}]}]),
)
run(
    "a latency is negative",
    "run.jsonl",
    lines({"query_id": "q1", "results": [], "latency_ms": {"rerank": -1}}),
)


def call(name: str, **prices) -> None:
    run(name, "run.jsonl", lines({"query_id": "q1", "results": [], "calls": [prices]}))


call("a call has a price for all and for some tokens", price_per_1k=1, price_in=1)
call("a call has a price per call in two units", price_per_call=1, price_per_1k_calls=1)
call("a call has a negative price", price_per_call=-1)
call("a call has an unknown field", cost=1)
call("a call has a negative number of tokens", prompt_tokens=-1)
run(
    "scores rise in a list",
    "run.jsonl",
    lines({"query_id": "q1", "results": [{"id": "a", "score": 1}, {"id": "b", "score": 2}]}),
)
case(
    "a field of queries has the name of a field of the file",
    lambda: Gold.of({"q1": ["a"]}, queries=pl.DataFrame({"query_id": ["q1"], "spans": [1]})).write(
        "gold.jsonl"
    ),
)

# TREC

gold("a line of qrels has too few fields", "gold.qrels", "q1 0 a 1\nq1 0 a\n")
gold("a line of qrels has too many fields", "gold.qrels", "q1 0 a 1\nq1 0 a 1 2\n")
run("a line of a TREC run has too few fields", "a.run", "q1 Q0 a 1 0.9 tag\nq1 Q0 a 1\n")
run("a line of a TREC run has a carriage return", "a.run", "q1 Q0 a 1 9 t\rq1 Q0 b 2 8 t\r")
gold("a grade in qrels is not a number", "gold.qrels", "q1 0 a yes\n")
gold("a grade in qrels is too large", "gold.qrels", "q1 0 a 99999999999999999999\n")
run("a score in a TREC run is not a number", "a.run", "q1 Q0 a 1 high tag\n")
run("a score in a TREC run is too large", "a.run", "q1 Q0 a 1 1e999 tag\n")
gold("qrels have only comments", "gold.qrels", "# nothing\n")
gold("a TREC run is read as gold", "gold.qrels", "q1 Q0 a 1 0.9 tag\n")
run("qrels are read as a run", "a.run", "q1 0 a 1\n")
case("an id has a space and is written as TREC", lambda: Gold.of({"q 1": ["a"]}).write("g.qrels"))
gold(
    "qrels look like an export of ir_datasets",
    "gold.qrels",
    "q1\ta\t1\t0\nq1\tb\t2\t0\n",
)

# Tables

CSV = "query_id,item_id,grade\nq1,a,1\n"
gold("a row of a CSV file has too many values", "gold.csv", CSV + "q1,b,1,2\n")
gold("a row of a CSV file has too few values", "gold.csv", CSV + "q1,b\n")
gold(
    "quotes in a CSV file are misplaced",
    "gold.csv",
    'query_id,relevant\nab","\na""a',
    volatile="(?<=table: ).*",
)
gold("a CSV file has no column for the grade", "gold.csv", "query_id,item_id,grad\nq1,a,1\n")
gold("a grade in a CSV file is not an integer", "gold.csv", CSV + "\nq1,b,1.5\n")
gold("an id in a CSV file is missing", "gold.csv", CSV + ",b,1\n")
run("a score in a CSV file is not a number", "run.csv", "query_id,item_id,score\nq1,a,high\n")
run("a score in a CSV file is too large", "run.csv", "query_id,item_id,score\nq1,a,1e999\n")
run(
    "two items in a CSV file have the same rank",
    "run.csv",
    "query_id,item_id,rank\nq1,a,1\nq1,b,1\n",
)
run(
    "a number of tokens in a CSV file is negative",
    "run.csv",
    "query_id,item_id,score,tokens\nq1,a,1,-1\n",
)
gold("a CSV file of a run is read as gold", "gold.csv", "query_id,item_id,rank\nq1,a,1\n")
run("a CSV file of gold is read as a run", "run.csv", CSV)
gold("a Parquet file is cut off", "gold.parquet", b"PAR1 PAR1", volatile="(?<=file: ).*")


def parquet() -> str:
    pl.DataFrame({"query_id": ["q1"], "item_id": ["a"], "grade": [0.5]}).write_parquet("g.parquet")
    return "g.parquet"


def parquet_with_long_texts() -> str:
    texts = {"query_id": ["q1"] * 9, "item_id": ["a"] * 9, "text": ["x" * 9_000] * 9}
    pl.DataFrame(texts).write_parquet("r.parquet")
    return "r.parquet"


def limited(limit: str, read, path: str):
    with patch.dict(os.environ, {"KARAT_MAX_EXPANDED": limit}):
        return read(path)


DAMAGED = (GOLDEN / "damaged" / "abort1.parquet").read_bytes()
gold("the lengths in a Parquet file are damaged", "gold.parquet", DAMAGED)
case(
    "the texts of a Parquet file take too much memory",
    lambda: limited("20K", Run.read, parquet_with_long_texts()),
)
case(
    "the pages of a Parquet file take too much memory",
    lambda: limited("1K", Run.read, parquet_with_long_texts()),
)
file(
    "compressed content takes too much memory",
    lambda path: limited("1M", Gold.read, path),
    "gold.qrels.gz",
    gzip.compress(b"q1 0 a 1\n" * 200_000, mtime=0),
)
file(
    "the limit of memory is not a number",
    lambda path: limited("much", Gold.read, path),
    "gold.qrels.gz",
    gzip.compress(b"q1 0 a 1\n", mtime=0),
)
gold(
    "a cell is neither true nor false",
    "gold.csv",
    "query_id,item_id,grade,answerable\nq1,a,1,\nq2,,,no\n",
)
gold(
    "a grade below a row without an item is not an integer",
    "gold.csv",
    "query_id,item_id,grade,answerable\nq1,,,false\nq2,a,high,\n",
)
case("a grade in a Parquet file is not an integer", lambda: Gold.read(parquet()))
case(
    "a field of queries has the name of a column of the table",
    lambda: Gold.of({"q1": ["a"]}, queries=pl.DataFrame({"query_id": ["q1"], "grade": [1]})).write(
        "gold.csv"
    ),
)
case(
    "a field of queries would be read as their text",
    lambda: Gold.of(
        [{"query_id": "q1", "user_input": "?", "reference_context_ids": ["a"], "query": ["x"]}]
    ).write("gold.parquet"),
)

# JSON of dicts

gold("a list in JSON ends with a comma", "gold.json", '{"q1": ["a",]}')
gold(
    "a record in a file of JSON has a wrong grade",
    "gold.json",
    '[{"query_id": "q1", "relevant": ["a"]},\n{"query_id": "q2", "relevant": {"a": "high"}}]',
)
gold("JSON is not complete", "gold.json", '{"q1": {"a": 1}', volatile=LIBRARY)
gold("a query is twice in JSON", "gold.json", '{"q1": {"a": 1},\n"q1": {"a": 1}}')
gold("a constant is not allowed in JSON", "gold.json", '{"q1": {"a": 1},\n"q2": {"a": NaN}}')
gold("JSON is nested too deeply", "gold.json", '{"q1": ' + "[" * 100_000)
gold("a number in JSON has too many digits", "gold.json", f'{{"q1": {{"a": {"9" * 5_000}}}}}')
gold("a line is nested too deeply", "gold.jsonl", '{"query_id": ' + "[" * 100_000)
gold(
    "a field is nested too deeply",
    "gold.jsonl",
    '{"query_id": "q1", "relevant": ["a"], "x": ' + "[" * 33 + "]" * 33 + "}",
)
gold("an id in JSON has a NUL character", "gold.json", '{"q1": {"a\\u0000": 1}}')
gold("an id in JSON is too long", "gold.json", f'{{"q1": {{"{"x" * 65_537}": 1}}}}')
gold("an id in a line has a NUL character", "gold.jsonl", '{"query_id": "q\\u0000"}')
gold("an id in a line is too long", "gold.jsonl", f'{{"query_id": "{"x" * 65_537}"}}')
gold("an id in TREC has a NUL character", "gold.qrels", "q\0 0 a 1\n")
gold("an id in CSV has a NUL character", "gold.csv", "query_id,item_id,grade\nq\0,a,1\n")
gold("JSON has no queries", "gold.json", "{}")
run("a score in JSON is too large", "run.json", '{"q1": {"a": 1e999}}')
case(
    "an infinite score is written as JSON",
    lambda: Run.of({"q1": {"a": float("-inf")}}).write("run.jsonl"),
)
gold("a grade in JSON is text", "gold.json", '{"q1": {"a": "yes"}}')

# Ragas

ROW = {"query_id": "q1", "user_input": "pay", "reference_contexts": ["x"]}
gold("a row of Ragas is a conversation", "gold.jsonl", lines(ROW | {"user_input": ["a", "b"]}))
gold("a row of Ragas has no query", "gold.jsonl", lines({"reference_contexts": ["x"]}))
gold("a query is twice in rows of Ragas", "gold.jsonl", lines(ROW, ROW))
gold(
    "a text is twice in rows of Ragas without ids",
    "gold.jsonl",
    lines(*[{"user_input": "pay", "reference_contexts": ["x"]}] * 2),
)
case("a query is twice in records of Ragas", lambda: Gold.of([ROW, ROW]))
gold(
    "rows of Ragas have no reference contexts",
    "gold.jsonl",
    lines({"user_input": "pay", "retrieved_contexts": ["x"]}),
)
run(
    "rows of Ragas have no retrieved contexts",
    "run.jsonl",
    lines({"query_id": "q1", "retrieved_contexts": ["x"]}, ROW | {"query_id": "q2"}),
)
run(
    "rows of Ragas have fewer ids than contexts",
    "run.jsonl",
    lines({"query_id": "q1", "retrieved_contexts": ["x", "y"], "retrieved_context_ids": ["a"]}),
)
case(
    "a text of Ragas has a lone surrogate",
    lambda: Gold.of([{"user_input": "\ud800", "reference_contexts": []}]),
)
gold(
    "a cell of a CSV file of Ragas is not a list",
    "gold.csv",
    "query_id,reference_contexts\nq1,x and y\n",
)
gold("a CSV file of Ragas has no rows", "gold.csv", "query_id,reference_contexts\n")
gold("rows of Ragas have no ids of items", "gold.jsonl", lines(ROW))
run(
    "rows of Ragas have no ids",
    "run.jsonl",
    lines({"user_input": "pay", "retrieved_contexts": ["x"]}),
)

# ir_datasets


def exported(read, content: str):
    return lambda: read(written("x.tsv", content), format="ir_datasets")


case("a line of ir_datasets has too few fields", exported(Gold.read, "q1\ta\n"))
case("a carriage return is in a line of ir_datasets", exported(Gold.read, "q1\ta\r\t1\n"))
case("a file of ir_datasets has only Unicode white space", exported(Gold.read, "\u2028"))
case("scores of ir_datasets are ranks", exported(Run.read, "q1\ta\t1\nq1\tb\t2\n"))
case("a grade of ir_datasets is not an integer", exported(Gold.read, "q1\ta\tyes\t0\n"))
case(
    "an id has a tab and is written for ir_datasets",
    lambda: Gold.of({"q\t1": ["a"]}).write("x.tsv", format="ir_datasets"),
)

# What formats cannot store

TEXT = {"query_id": "q1", "results": [{"text": "x"}]}


def losses() -> Run:
    failure = {"type": "Timeout", "message": "", "attempts": 1}
    return Run.of(
        [
            {"query_id": "q1", "results": [{"id": "a", "text": "x", "score": 1}]},
            {"query_id": "q2", "results": [], "latency_ms": {"total": 1}, "error": failure},
        ]
    )


case("items without ids are written as TREC", lambda: Run.of([TEXT]).write("a.run"))
case("a TREC file cannot store all of a run", lambda: losses().write("a.run"))
case("a CSV file cannot store all of a run", lambda: losses().write("a.csv"))
case(
    "scores do not give the order in a TREC run",
    lambda: Run.of(
        pl.DataFrame({"query_id": "q1", "item_id": ["a", "b"], "rank": [1, 2], "score": [1, 2]})
    ).write("a.run"),
)
case(
    "a qrels file cannot store all of gold",
    lambda: Gold.of(
        [
            {"query_id": "q1", "query": "pay", "relevant": {"a": 1}, "topic": "x"},
            {"query_id": "q2", "relevant": {}, "evidence": ["x"]},
            {"query_id": "q3", "spans": [{"doc_id": "d", "start": 0, "end": 1}]},
        ]
    ).write("gold.qrels"),
)

# Names of columns

QUESTIONS = "id,question,quote\n1,how?,by card\n"


def mapped(name: str, columns, content: str = QUESTIONS) -> None:
    case(name, lambda: Gold.read(written("gold.csv", content), columns=columns))


gold("no column is gold", "gold.csv", QUESTIONS)
gold("a table with results is given as gold", "gold.csv", "id,question,retrieved\n1,how?,a\n")
gold("two columns have the same name", "gold.csv", "query_id,item_id,item_id\nq1,a,b\n")
gold("a list of ids in a cell is cut off", "gold.csv", 'id,question,relevant\n1,how?,"[""a"\n')
gold(
    "a query in a table has neither an id nor a text",
    "gold.csv",
    "question,relevant_ids,evidence\n,a;b,x\n,c,y\n",
)
gold("an id in a cell is not an id", "gold.csv", 'id,question,relevant\n1,how?,"[1.5]"\n')
run("an id of a result in a cell is not an id", "run.csv", 'id,question,results\n1,how?,"[1.5]"\n')
run("a list of results in a cell is cut off", "run.csv", 'id,question,results\n1,how?,"[""a"\n')
run("a table with lists of results has no rows", "run.csv", "query_id,results\n")
mapped("a column is mapped that is not there", {"evidence": "quotes"})
mapped("a mapped name is in none of the files", {"query": "asked"}, "query_id,evidence\n1,a\n")
mapped("a name is mapped that is not karat's", {"evidenc": "quote"})
mapped("a name is mapped to nothing", {"evidence": ""})
mapped("a column is mapped twice", {"evidence": "quote", "query": "quote"})
mapped("a mapped column has an empty value", {"evidence": "quote"}, "id,question,quote\n1,how?,\n")
case("a mapping has no =", lambda: Columns.of(["evidence"]))
case("a name is mapped twice", lambda: Columns.of(["query=a", "query=b"]))
case(
    "no query of a file of queries is in gold",
    lambda: Gold.of({"q1": ["a"]}).with_query_texts({"q2": "pay"}),
)
case(
    "a file of queries has more queries than gold",
    lambda: Gold.of({"q1": ["a"]}).with_query_texts({"q1": "pay", "q2": "lost"}),
)
case(
    "a query has another text in a file of queries",
    lambda: Gold.of([{"query_id": "q1", "query": "pay", "relevant": ["a"]}]).with_query_texts(
        {"q1": "pay by card"}
    ),
)

# What the fuzzers found

gold("text follows a closing quote", "a.csv", 'query_id,item_id,grade\nq1,"a"b,1\n')
gold("a quoted value has no end", "a.csv", 'query_id,item_id,grade,x\nq1,a,1,"b\n')
gold("a quote is inside an unquoted value", "a.csv", 'query_id,item_id,grade\nq1,5" disk,1\n')
gold("an id in a list in CSV has a NUL character", "a.csv", "query_id,relevant\nq1,a\0\n")
gold(
    "an id in a Ragas table has a NUL character",
    "a.csv",
    'id,reference_context_ids\nq1,"[""a\\u0000""]"\n',
)
gold("a quote is inside the name of a column", "a.csv", 'query_id,item_id,grade,5"\nq1,a,1,3"\n')
gold("names of columns differ in case", "a.csv", "Query_ID,query_id,item_id,grade\nq1,q,a,1\n")
gold("a grade in a CSV file is too large", "a.csv", "query_id,item_id,grade\nq1,a,2147483648\n")
run("a score in JSON is text", "run.json", '{"q1": {"a": "0.5"}}')
file("a table of chunks has no rows", Chunks.read, "a.csv", "item_id,doc_id,start,end\n")
case(
    "a grade in a table that was not read is too large",
    lambda: evaluate(
        Gold(pl.DataFrame({"query_id": ["q1"], "item_id": ["a"], "grade": [1 << 31]})),
        {"q1": ["a"]},
        "nDCG",
    ),
)
