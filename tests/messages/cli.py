"""Options of commands that contradict each other or cannot be read."""

import sys
from pathlib import Path
from unittest.mock import patch

from karat.cli.main import app
from karat.demo import build_demo
from karat.starter import write_starter
from messages.cases import Section, written

SECTION = Section("cli")
case = SECTION.case

FILES = {
    "gold.jsonl": '{"query_id": "q1", "query": "pay", "relevant": ["a"], "evidence": ["text"]}\n',
    "run.jsonl": '{"query_id": "q1", "results": ["a"]}\n',
    "other.jsonl": '{"query_id": "q1", "results": ["a"]}\n',
    "notes.txt": "# headers\nsecret\n",
    "evidence.jsonl": '{"query_id": "q1", "query": "pay", "evidence": ["text"]}\n',
    "ids.py": "def find(query):\n    return ['a']\n",
}


def command(name: str, *words: str, volatile: str | None = None) -> None:
    """Add a case of a command line; --debug lets errors through."""

    def run():
        for path, content in FILES.items():
            written(path, content)
        with patch.object(sys, "argv", ["karat", "--debug", *words]):
            app(list(words), standalone_mode=False)

    case(name, run, volatile=volatile)


ASK = ("run", "gold.jsonl", "-r", "http://127.0.0.1/")
command("shares are given without chunks", "convert", "gold.jsonl", "x.csv", "--shares", "0.5")
command("spans are written as CSV", "locate", "gold.jsonl", "--corpus", "docs", "-o", "x.csv")
command("a fused run has no file to write to", "fuse", "run.jsonl", "run.jsonl")
command(
    "the weights of a fusion are not numbers",
    *("fuse", "run.jsonl", "other.jsonl", "-o", "x.jsonl", "--weights", "a,b"),
)
command(
    "an option of tuning is given without tuning",
    *("fuse", "run.jsonl", "other.jsonl", "-o", "x.jsonl", "--seed", "1"),
)
command(
    "a master is named without Spark",
    *("eval", "gold.jsonl", "run.jsonl", "--master", "local[2]"),
)
command("a run has no file to write to", *ASK)
command(
    "a run has ids for gold that has only evidence",
    *("run", "evidence.jsonl", "-r", "ids.py:find", "-o", "ids.jsonl", "--no-progress"),
)
command("a header has no colon", *ASK, "-o", "x.jsonl", "--header", "Authorization")
command("a header is given twice", *ASK, "-o", "x", "--header", "a: 1", "--header", "A: 2")
command("a file of headers cannot be read", *ASK, "-o", "x.jsonl", "--header-file", "absent.txt")
command("a line of headers is not a header", *ASK, "-o", "x.jsonl", "--header-file", "notes.txt")
command("a body is not JSON", *ASK, "-o", "x.jsonl", "--body", "{x", volatile="(?<=not JSON: ).*")
command("a body has a long number", *ASK, "-o", "x.jsonl", "--body", f'{{"a":{"9" * 5000}}}')
command("a body is very deep", *ASK, "-o", "x.jsonl", "--body", "[" * 10**5)
command("a body is not an object", *ASK, "-o", "x.jsonl", "--body", "[]")
case("a file is where the demo is to be written", lambda: build_demo(Path(written("x", ""))))


def unwritable():
    with patch("pathlib.Path.mkdir", side_effect=PermissionError(13, "Permission denied")):
        build_demo(Path("demo"))


def after_demo(change) -> None:
    """Start the demo in a folder with a file that it must not replace."""
    Path("demo").mkdir()
    Path("demo/gold.jsonl").write_text("mine")
    Path("demo/.karat-demo.json").write_text(change)
    build_demo(Path("demo"))


case("the folder of the demo cannot be made", unwritable)
case("a file of somebody else is in the folder of the demo", lambda: after_demo("{}"))
case("a file of the demo was changed", lambda: after_demo('{"gold.jsonl": "0"}'))


command(
    "a table of chunks is given twice for one run",
    *("eval", "gold.jsonl", "run.jsonl", "--chunks", "run=a.csv", "--chunks", "run=b.csv"),
)


def failing(name: str, *words: str) -> None:
    """Add a case of `karat run` with a retriever that fails on every query."""

    def run():
        written("failing_retriever.py", "def search(query):\n    raise RuntimeError('down')\n")
        written("gold.jsonl", FILES["gold.jsonl"])
        try:
            with patch.object(sys, "argv", ["karat", "--debug"]):
                app(
                    ["run", "gold.jsonl", "-r", "failing_retriever:search", *words, *QUICK],
                    standalone_mode=False,
                )
        finally:
            sys.modules.pop("failing_retriever", None)

    case(name, run)


QUICK = ("--retries", "0", "--no-progress")
failing("too many queries failed in a dry run", "--dry-run")
failing("too many queries failed", "-o", "run.jsonl")


def starter(folder: str):
    for path, content in FILES.items():
        written(path, content)
    write_starter(folder)


def starter_over(path: str):
    written(f"new/{path}", "")
    write_starter("new")


def unwritable_starter():
    with patch("pathlib.Path.mkdir", side_effect=PermissionError(13, "Permission denied")):
        write_starter("new")


def project(name: str, toml: str, *words: str) -> None:
    """Add a case of a command in a folder with a karat.toml."""

    def run():
        for path, content in FILES.items():
            written(path, content)
        path = written("karat.toml" if toml else "none.toml", toml)
        try:
            with patch.object(sys, "argv", ["karat", "--debug"]):
                app(list(words), standalone_mode=False)
        finally:
            Path(path).unlink()

    case(name, run)


project("arguments are missing, and nothing is configured", "", "eval")
project("an argument is missing that a file could set", "gold = 'gold.jsonl'\n", "gate")
project("several runs are configured", "runs = ['a', 'b']\n", "gate", "gold.jsonl")
project("a setting is unknown", "nothing = 7\n", "eval")
project("a setting is misspelled", "golden = 'gold.jsonl'\n", "eval")
project("a setting is in the wrong table", "jobs = 8\n", "eval")
project("a setting of the retriever is unknown", "[retriever]\nnothing = 7\n", "eval")
project("a setting is not a text", "gold = 7\n", "eval")
project("a setting is not a whole number", "top_k = 'all'\n", "eval")
project("a setting is not a number", "score_threshold = 'high'\n", "eval")
project("a setting is not true or false", "casefold = 'yes'\n", "eval")
project("a setting is not a list of texts", "measures = [7]\n", "eval")
project("a setting is not a table of texts", "[retriever]\nheaders = [7]\n", "eval")
TWO = "gold = 'gold.jsonl'\nruns = ['run.jsonl', 'run.jsonl']\n"
project("a measure of the project is misspelled", TWO + "measures = ['nDGC@10']\n", "eval")
project("a field of the project is misspelled", TWO + "by = 'tpe'\n", "eval")
ONE = "gold = 'gold.jsonl'\nbaseline = 'main.parquet'\nruns = 'run.jsonl'\n"
project("a project has nothing to compare", ONE, "compare")
OUTPUT = "gold = 'gold.jsonl'\n[retriever]\nspec = 'ids.py:find'\noutput = 'absent.jsonl'\n"
project("the run of a project was not written", OUTPUT, "eval")
command("a topic of the documentation is misspelled", "docs", "gate")
command("no page of the documentation has a word", "docs", "--search", "zyzzyva")
command("a topic and a word are both given", "docs", "gates", "--search", "noise")
case("a file is where a starter project is to be written", lambda: starter("run.jsonl"))
case("a file is where a folder of a starter project must be", lambda: starter_over("corpus"))
case("files of a starter project exist", lambda: starter("."))
case("the folder of a starter project cannot be made", unwritable_starter)
