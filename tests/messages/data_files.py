"""Files and folders: what cannot be opened, decoded or written, and what is in a folder."""

import gzip
from pathlib import Path
from unittest.mock import patch

import polars as pl

from karat import Gold, Run
from karat.data.chunks import Chunks
from karat.data.convert import convert
from karat.data.corpus import Corpus
from karat.data.queries import read_queries
from messages.cases import Section, written

SECTION = Section("data: files")
case, file = SECTION.case, SECTION.file

QRELS = "q1 0 a 1\n"
RUN = "q1 Q0 a 1 0.9 tag\n"


def folder(name: str, **files: str) -> str:
    """Make a folder with files in it; __ in a name becomes a dot."""
    Path(name).mkdir(parents=True)
    for path, content in files.items():
        written(f"{name}/{path.replace('__', '.')}", content)
    return name


def failing(name: str, error: OSError):
    """Replace a function of the system by one that fails."""
    return patch(name, side_effect=error)


# Opening and decoding

case("a file does not exist", lambda: Gold.read("gold.qrels"))
case("a file and its folder do not exist", lambda: Gold.read("nowhere/gold.qrels"))
case("a file has a similar name", lambda: (written("gold.qrels", QRELS), Gold.read("gold.qrel"))[1])
case("a folder is given instead of a file", lambda: Gold.read(folder("gold", a__run=RUN)))
case("an empty folder is given instead of a file", lambda: Gold.read(folder("gold")))
case("no file matches a pattern", lambda: Run.read("runs/*.run"))


def unreadable():
    written("gold.qrels", QRELS)
    with failing("pathlib.Path.open", PermissionError(13, "Permission denied")):
        Gold.read("gold.qrels")


case("a file may not be read", unreadable)
file(
    "compressed data is cut off",
    Gold.read,
    "gold.qrels.gz",
    gzip.compress(QRELS.encode() * 99, mtime=0)[:-12],
    volatile=r"\(.*\)",
)
file("a file is not UTF-8", Gold.read, "gold.jsonl", b'{"query_id": "q1"}\n{"query_id": "\xe9"}\n')
file("a CSV file is not UTF-8", Gold.read, "gold.csv", b"query_id,item_id,grade\nq1,\xe9,1\n")
file("a TREC file is not UTF-8", Gold.read, "gold.qrels", b"q1 0 \xe9 1\n")
file("a file is UTF-16", Gold.read, "gold.qrels", QRELS.encode("utf-16"))
file("a file is UTF-16 without a mark", Gold.read, "gold.csv", QRELS.encode("utf-16-le"))
file("a file is empty", Gold.read, "gold.qrels", " \n")

# Writing


def write(path: str, **how):
    Gold.of({"q1": ["a"]}).write(path, **how)


def unwritable():
    with failing("os.access", None) as access:
        access.side_effect = None
        access.return_value = False
        write("gold.qrels")


def full_disk():
    with failing("pathlib.Path.replace", OSError(28, "No space left on device")):
        write("gold.qrels")


def full_disk_for_a_folder():
    with failing("pathlib.Path.mkdir", OSError(28, "No space left on device")):
        write("gold", format="beir")


case("a file is to be written where a folder is", lambda: write(folder("gold.qrels")))
case("the folder to write into does not exist", lambda: write("nowhere/gold.qrels"))
case("the folder to write into is not writable", unwritable)
case("a file cannot be written", full_disk)
case("a folder cannot be written", full_disk_for_a_folder)
case("the new folder has no name", lambda: write("..", format="beir"))
case("a file is where a folder is to be written", lambda: write(written("x", ""), format="beir"))
case("the folder to write is not empty", lambda: write(folder("x", a=""), format="beir"))
case("the extension of the file to write is unknown", lambda: write("gold.docx"))
case("the format to write is unknown", lambda: write("gold.docx", format="docx"))
case(
    "a table of chunks is written with an unknown extension",
    lambda: CHUNKS().write("chunks.docx"),
)
case(
    "a table of chunks is written in an unknown format",
    lambda: CHUNKS().write("chunks", format="docx"),
)


def CHUNKS() -> Chunks:
    return Chunks.of(pl.DataFrame({"item_id": ["c"], "doc_id": ["d"], "start": [0], "end": [1]}))


# Several files


def several(first: str, second: str, read, ending: str = "jsonl"):
    written(f"part1.{ending}", first)
    written(f"part2.{ending}", second)
    return lambda: read(f"part*.{ending}")


case("a query is in two files of a run", lambda: several(RUN, RUN, Run.read, "run")())
case(
    "files of a run count offsets in different units",
    lambda: several(
        '{"karat": 1, "kind": "run", "offsets": "utf8"}\n{"query_id": "q1", "results": ["a"]}\n',
        '{"query_id": "q2", "results": ["a"]}\n',
        Run.read,
    )(),
)
case(
    "a field has different types in two files of gold",
    lambda: several(
        '{"query_id": "q1", "relevant": ["a"], "year": [1]}\n',
        '{"query_id": "q2", "relevant": ["a"], "year": {"of": 1}}\n',
        Gold.read,
    )(),
)

# BEIR folders


def beir(**splits: str) -> str:
    for name, content in splits.items():
        written(f"beir/qrels/{name}.tsv", content)
    return "beir"


JUDGED = "query-id\tcorpus-id\tscore\nq1\ta\t1\n"

case("a BEIR folder has no test split", lambda: Gold.read(beir(dev=JUDGED, train=JUDGED)))
case(
    "a run is read from a BEIR folder",
    lambda: (written("beir/queries.jsonl", ""), Run.read(beir(test=JUDGED))),
)
case(
    "a run is read from a split of a BEIR folder",
    lambda: (
        written("beir/queries.jsonl", ""),
        Run.read(beir(test=JUDGED) + "/qrels/test.tsv"),
    ),
)
case("a run is written as a BEIR folder", lambda: Run.of({"q1": ["a"]}).write("x", format="beir"))


def beir_queries(content: str):
    beir(test=JUDGED)
    written("beir/queries.jsonl", content)
    return Gold.read("beir")


case("a query of a BEIR folder has no id", lambda: beir_queries('{"text": "pay"}\n'))
case(
    "a query is in a BEIR folder twice",
    lambda: beir_queries('{"_id": "q1", "text": "pay"}\n{"_id": "q1", "text": "pay"}\n'),
)

# Conversion


def converted(source: str, content: str, target: str, **how):
    return lambda: convert(written(source, content), target, **how)


case("standard input is converted", lambda: convert("-", "gold.jsonl"))
case("something is converted to standard output", lambda: convert("gold.jsonl", "-"))
case("a run is converted with a corpus", converted("a.run", RUN, "b.csv", change=lambda gold: gold))
case("the kind of data is unknown", converted("a.qrels", QRELS, "b.csv", kind="qrels"))
case("the kind cannot be detected", converted("a.json", '{"q1": {"a": 1}}', "b.csv"))
case("a TREC file is neither gold nor a run", converted("a.trec", "q1 a 1 1 1\n", "b.csv"))
case("a file is converted to itself", converted("a.qrels", QRELS, "a.qrels"))
case("the wrong kind is named for a conversion", converted("a.run", RUN, "b.csv", kind="gold"))
case(
    "iterations of qrels are lost in a conversion",
    converted("a.qrels", "q1 1 a 1\nq1 2 b 1\n", "b.csv"),
)

# A corpus and chunks

case("a corpus is not a corpus", lambda: Corpus.of(7))
case("the id of a document is a float", lambda: Corpus.of({0.5: "text"}))
case("the text of a document is not text", lambda: Corpus.of({"d1": b"text"}))
case(
    "the text of a document is missing",
    lambda: Corpus.of(pl.DataFrame({"doc_id": ["d"], "text": [None]})),
)
case("a document is in a corpus twice", lambda: Corpus.of({1: "one", "1": "one"}))
case("a corpus is read in an unknown format", lambda: Corpus.read("docs", format="docx"))
case("a folder is read as a table of documents", lambda: Corpus.read(folder("docs"), format="csv"))
case("a folder has no BEIR corpus", lambda: Corpus.read(folder("docs"), format="beir"))
case("a folder has no documents", lambda: Corpus.read(folder("docs", a__py="")))
file("the format of a corpus cannot be detected", Corpus.read, "docs.bin", "what")
file("a document in JSON Lines has no text", Corpus.read, "docs.jsonl", '{"doc_id": "d1"}\n')
file("a text in JSON Lines is null", Corpus.read, "docs.jsonl", '{"doc_id": "d", "text": null}\n')
file("a text in JSON Lines is a list", Corpus.read, "docs.jsonl", '{"doc_id": "d", "text": []}\n')
file("an id in JSON Lines is empty", Corpus.read, "docs.jsonl", '{"doc_id": "", "text": "x"}\n')
file(
    "a document is twice in JSON Lines",
    Corpus.read,
    "docs.jsonl",
    '{"doc_id": "d", "text": ""}\n\n{"doc_id": "d", "text": ""}\n',
)
case("chunks are not a table", lambda: Chunks.of(["c"]))
case(
    "chunks are read in an unknown format",
    lambda: Chunks.read(written("c.csv", "x\n"), format="docx"),
)
file("a table of chunks has no ids", Chunks.read, "chunks.csv", "doc,start,end\nd,0,1\n")
file(
    "a chunk ends before it starts",
    Chunks.read,
    "chunks.csv",
    "item_id,doc_id,start,end\nc,d,5,1\n",
)

# Files of queries

case("there are no queries", lambda: read_queries({}))
case("the id of a query is a float", lambda: read_queries({0.5: "pay by card"}))
case("the text of a query is a number", lambda: read_queries({"q1": "pay by card", "q2": 7}))
case("a query has neither an id nor a text", lambda: read_queries([{"category": "billing"}]))
case("a query has no id", lambda: read_queries([{"text": "pay by card"}]))
case("two queries have the same id as text", lambda: read_queries({1: "pay", "1": "pay"}))
case("a text of a query has a lone surrogate", lambda: read_queries({"q1": "\ud800"}))
file("a query in a file has no id", read_queries, "queries.jsonl", '{"text": "pay by card"}\n')
file(
    "a line of a file with tabs has no tab",
    read_queries,
    "queries.tsv",
    f"q1\tpay\nq2\t{'long ' * 20_000}\nq3 pay\n",
)
file("a query is twice in a file with tabs", read_queries, "queries.tsv", "q1\tpay\nq1\tpay\n")
case(
    "a table of queries has the same id twice",
    lambda: Gold.of({"q1": ["a"]}).with_queries(pl.DataFrame({"query_id": ["q1", "q1"]})),
)

file(
    "a CSV file has a lone carriage return",
    Run.read,
    "run.csv",
    "query_id,item_id,score\rq1,a,1.0\r\n",
)
