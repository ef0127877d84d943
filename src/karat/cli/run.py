"""`karat run`: run a retriever on all queries, and write the results to a file."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.cli.next_step import advise, after_run, gold_of_queries
from karat.cli.options import COLUMNS, FILE, JSON
from karat.cli.parameters import Argument, Option
from karat.cli.progress import progress
from karat.cli.project import CONFIG, project_command
from karat.errors import InputError, RetrieverError, counted, printable, warn

if TYPE_CHECKING:
    from karat.data.columns import Columns
    from karat.data.run import Run
    from karat.evaluation.estimate import Estimate
    from karat.evaluation.usage import Usage
    from karat.live.retrieve import RunRequest
    from karat.live.retrievers.built_in import BuiltIn
    from karat.live.run_options import RunOptions

EMBEDDING = (
    Option(
        "--embedder",
        panel="Retriever",
        metavar="SPEC",
        show_default="wordllama for dense: and hybrid:",
        help="Embed texts for dense:, hybrid: and search engines with a function texts -> array "
        "(package.module:name), an OpenAI-compatible server (https://host/v1) or wordllama.",
    ),
    Option(
        "--embedding-model",
        panel="Retriever",
        metavar="NAME",
        help="Request this model from the embedding server.",
    ),
    Option(
        "--embedding-key-env",
        panel="Retriever",
        metavar="VARIABLE",
        help="Read the key of the embedding server from this environment variable.",
    ),
)
BUILT_IN = (
    Option(
        "--chunker",
        panel="Built-in retrievers",
        metavar="NAME",
        show_default="whole documents",
        help="Split the documents: fixed, recursive, sentences, markdown, or package.module:name.",
    ),
    Option(
        "--chunk-size",
        panel="Built-in retrievers",
        metavar="N",
        type=int,
        show_default="800; markdown: one chunk per section, however long",
        help="Split into chunks of at most N characters.",
    ),
    Option(
        "--chunk-overlap",
        panel="Built-in retrievers",
        metavar="N",
        type=int,
        show_default="0",
        help="Let chunks overlap by N characters (with --chunker fixed).",
    ),
    Option(
        "--engine",
        panel="Built-in retrievers",
        metavar="bm25s|tantivy",
        show_default="bm25s",
        help="Choose the engine of BM25: bm25s in memory, or tantivy on disk for large corpora.",
    ),
    Option(
        "--k1",
        panel="Built-in retrievers",
        metavar="X",
        type=float,
        show_default="0.9",
        help="Set how much repeated words count in BM25 (bm25s only).",
    ),
    Option(
        "--b",
        panel="Built-in retrievers",
        metavar="X",
        type=float,
        show_default="0.4",
        help="Set how much BM25 penalises long items, from 0 to 1 (bm25s only).",
    ),
    Option(
        "--stemmer",
        panel="Built-in retrievers",
        metavar="LANGUAGE",
        show_default="english",
        help="Stem the words of BM25 in this language, or none.",
    ),
    Option(
        "--stop-words",
        panel="Built-in retrievers",
        metavar="LANGUAGE",
        show_default="english",
        help="Ignore the stop words of this language in BM25, or none.",
    ),
    Option(
        "--exact-limit",
        panel="Built-in retrievers",
        metavar="N",
        type=int,
        show_default="500000",
        help="Search more than N vectors approximately, with usearch.",
    ),
    Option(
        "--rrf-k",
        panel="Built-in retrievers",
        metavar="N",
        type=int,
        show_default="60",
        help="Set the constant of reciprocal rank fusion in a hybrid search.",
    ),
    Option(
        "--weights",
        panel="Built-in retrievers",
        metavar="BM25,DENSE",
        help="Fuse a hybrid search by weights instead of ranks, for example 0.7,0.3.",
    ),
    Option(
        "--no-cache",
        panel="Built-in retrievers",
        is_flag=True,
        help="Build the index again, and do not store it.",
    ),
)

_WITHOUT_TEXTS = (
    "the results are ids without text, but gold has only evidence texts; return {'text': …} for "
    "each result (a plain string is an id), or pass the texts of all chunks to karat eval with "
    "--chunks FILE"
)


@project_command(
    "run",
    Argument(
        "queries",
        metavar="QUERIES",
        text="The queries: gold, or any file with ids and texts.",
        settings=("queries", "gold"),
    ),
    Option(
        "-r",
        "--retriever",
        panel="Retriever",
        metavar="SPEC",
        setting="spec",
        required=True,
        help="Run this retriever: package.module:name, file.py:name, http://…, https://… or "
        "cmd:./program. "
        "Built-in retrievers: bm25:CORPUS, dense:CORPUS, hybrid:CORPUS; CORPUS is a folder of "
        "documents, a BEIR folder, a JSON Lines or a Parquet file. Search engines: "
        "elasticsearch:http://…/INDEX, opensearch:http://…/INDEX, qdrant:http://…/COLLECTION, "
        "pgvector:postgresql://…?table=TABLE.",
    ),
    Option(
        "retriever_options",
        "--retriever-option",
        panel="Retriever",
        metavar="NAME=VALUE",
        setting="options",
        separator="=",
        multiple=True,
        help="Set an option of a search engine: vector, filter, template (JSON, SQL or @FILE), "
        "search_fields, distance. Repeat for more.",
    ),
    *EMBEDDING,
    Option(
        "--top-k",
        panel="Retriever",
        metavar="N",
        type=int,
        default=20,
        envvar="RAG_TOP_K",
        help="Request N items per query.",
    ),
    Option(
        "--score-threshold",
        panel="Retriever",
        metavar="X",
        type=float,
        envvar="RAG_SCORE_THRESHOLD",
        help="Request only items with a score of at least X.",
    ),
    Option(
        "--prefetch-limit",
        panel="Retriever",
        metavar="N",
        type=int,
        envvar="HYBRID_PREFETCH_LIMIT",
        show_default="100",
        help="Fetch N items in each part of a hybrid search.",
    ),
    Option(
        "--rerank-top-n",
        panel="Retriever",
        metavar="N",
        type=int,
        envvar="RERANK_TOP_N",
        show_default="20",
        help="Rerank N items.",
    ),
    Option(
        "--reranker",
        panel="Retriever",
        metavar="SPEC",
        help="Rerank the first items with this function (query, texts) -> scores: "
        "package.module:name, or with a server: https://host/v1/rerank. The threshold then applies "
        "to its scores.",
    ),
    Option(
        "--reranker-model",
        panel="Retriever",
        metavar="NAME",
        help="Request this model from the reranking server.",
    ),
    Option(
        "--reranker-key-env",
        panel="Retriever",
        metavar="VARIABLE",
        help="Read the key of the reranking server from this environment variable.",
    ),
    Option(
        "fields",
        "--field",
        panel="Retriever",
        metavar="OURS=THEIRS",
        separator="=",
        multiple=True,
        help="Map the karat field OURS (query, top_k, results, id, score, text, …) to the name "
        "THEIRS that the retriever uses, for example query=question. Repeat for more.",
    ),
    Option(
        "--tokenizer",
        panel="Retriever",
        metavar="SPEC",
        help="Count the tokens of retrieved texts with this function: package.module:name.",
    ),
    Option(
        "--offsets",
        panel="Retriever",
        metavar="codepoint|utf16|utf8",
        default="codepoint",
        help="Set the unit of the start and end offsets in the results.",
    ),
    *BUILT_IN,
    Option(
        "--limit",
        panel="Queries",
        metavar="N",
        type=int,
        show_default="all",
        help="Run only the first N queries.",
    ),
    Option(
        "--sample",
        panel="Queries",
        metavar="N",
        type=int,
        show_default="all",
        help="Run only N queries, chosen at random.",
    ),
    Option(
        "--seed",
        panel="Queries",
        metavar="N",
        type=int,
        default=0,
        help="Set the seed of the random number generator for --sample.",
    ),
    Option(
        "filters",
        "--filter",
        panel="Queries",
        metavar="FIELD=VALUE",
        separator="=",
        multiple=True,
        help="Run only queries with this value of a field. Repeat for more conditions.",
    ),
    Option(
        "queries_format",
        "--format",
        panel="Queries",
        metavar="NAME",
        help="Read QUERIES in this format instead of detecting it.",
    ),
    COLUMNS,
    Option(
        "--method",
        panel="HTTP",
        metavar="POST|GET",
        default="POST",
        help="Send each query by HTTP as a JSON body (POST) or as URL parameters (GET).",
    ),
    Option(
        "headers",
        "--header",
        panel="HTTP",
        metavar="'NAME: VALUE'",
        separator=": ",
        multiple=True,
        help="Send this HTTP header. The value env:NAME reads the environment variable NAME. "
        "Repeat for more headers.",
    ),
    Option(
        "--header-file",
        panel="HTTP",
        metavar="FILE",
        is_path=True,
        type=FILE,
        help="Send the HTTP headers in this file, one 'NAME: VALUE' per line.",
    ),
    Option(
        "--body",
        panel="HTTP",
        metavar="JSON",
        help="Add the fields of this JSON object to each HTTP request. With --method GET, they "
        "are sent as URL parameters.",
    ),
    Option(
        "-j",
        "--jobs",
        panel="Speed and failures",
        metavar="N",
        type=int,
        default=8,
        help="Run N queries at a time.",
    ),
    Option(
        "--timeout",
        panel="Speed and failures",
        metavar="SECONDS",
        type=float,
        default=60.0,
        help="Stop an attempt after this many seconds.",
    ),
    Option(
        "--retries",
        panel="Speed and failures",
        metavar="N",
        type=int,
        default=2,
        help="Try a failed query again up to N times.",
    ),
    Option(
        "--rate",
        panel="Speed and failures",
        metavar="N",
        type=float,
        show_default="unlimited",
        help="Start at most N attempts per second.",
    ),
    Option(
        "--warmup",
        panel="Speed and failures",
        metavar="N",
        type=int,
        default=0,
        help="Run N queries first and discard their results.",
    ),
    Option(
        "--repeat",
        panel="Speed and failures",
        metavar="N",
        type=int,
        default=1,
        help="Run each query N times and record the median latency.",
    ),
    Option(
        "--stop-after-failures",
        panel="Speed and failures",
        metavar="N",
        type=int,
        show_default="10; 0 with --fail-on-error 1",
        help="Stop after N failures of the same kind in a row (0: never).",
    ),
    Option(
        "--fail-on-error",
        panel="Speed and failures",
        metavar="SHARE",
        type=float,
        default=0.05,
        help="Exit with code 2 if more than this share of the queries failed.",
    ),
    Option(
        "-o",
        "--output",
        panel="Output",
        metavar="FILE",
        type=FILE,
        setting="output",
        is_path=True,
        help="Write the run to this .jsonl file. Required unless --dry-run is given.",
    ),
    Option(
        "--overwrite",
        panel="Output",
        is_flag=True,
        help="Run all queries again if the file exists. Without this flag, an unfinished file is "
        "continued (only failed and missing queries are run), and a finished file is an error.",
    ),
    Option(
        "--dry-run",
        panel="Output",
        is_flag=True,
        help="Run only 5 queries, and estimate the time and cost of running all queries.",
    ),
    Option(
        "show_progress",
        "--progress/--no-progress",
        panel="Output",
        default=True,
        help="Show the progress of the run.",
    ),
    CONFIG,
    JSON,
)
def run_command(
    queries: str,
    retriever: str,
    queries_format: str | None,
    columns: tuple[str, ...],
    output: Path | None,
    overwrite: bool,
    dry_run: bool,
    show_progress: bool,
    json: bool,
    **flags: Any,
) -> None:
    """Run a retriever on all queries and write the results to a file.

    Each result is written as soon as it arrives. After an interruption, run the same command again
    to continue.
    """
    from karat.data.columns import Columns
    from karat.data.data_file import PathSource
    from karat.data.formats.native_run import run_of_lines
    from karat.evaluation.estimate import estimate
    from karat.evaluation.usage import usage
    from karat.live.failures import too_many_failed
    from karat.live.retrieve import RunRequest
    from karat.match.evidence import lacks_texts

    if output is None and not dry_run:
        raise InputError(
            "an output file is required", field="--output", hint="add -o run.jsonl, or --dry-run"
        )
    mapping = Columns.of(columns)
    options = _options(flags, output, retriever)
    # What the retriever prints must not be mixed with the output of karat, which may be JSON.
    with redirect_stdout(sys.stderr):
        with mapping.checked():
            target = _built_in(retriever, flags, mapping)
            request = RunRequest.of(target, PathSource(queries, queries_format, mapping), options)
        lines = request.run_first_queries() if dry_run else []
    if dry_run:
        _show(estimate(lines, len(request.queries), options), json)
        if problem := too_many_failed(run_of_lines(lines), options.fail_on_error):
            raise RetrieverError(problem)
        return
    assert output is not None
    run = _run(request, output, overwrite=overwrite, show_progress=show_progress)
    _show(usage(run, path=str(output)), json)
    print(f"wrote {output}", file=sys.stderr)
    if problem := too_many_failed(run, options.fail_on_error):
        raise RetrieverError(problem)
    source = PathSource(queries, queries_format, mapping)
    gold = gold_of_queries(source)
    if gold is not None and lacks_texts(gold, run):
        warn(_WITHOUT_TEXTS, stacklevel=1)
    elif not json:
        is_part = bool(options.limit or options.sample or options.filters)
        advise(after_run(source, gold, str(output), is_part=is_part))


def _built_in(retriever: str, flags: Mapping[str, Any], columns: Columns) -> str | BuiltIn:
    """Return the built-in retriever that a text names, or the text itself."""
    from karat.live.retrievers.built_in import create_built_in, is_built_in

    given = _given(BUILT_IN, flags)
    if is_built_in(retriever):
        given |= _given(EMBEDDING, flags)
        if given.pop("no_cache", False):
            given["cache"] = False
        if "weights" in given:
            given["weights"] = _weights(given["weights"])
        return create_built_in(retriever, given, columns)
    if given:
        raise InputError(
            "only built-in retrievers have this option",
            field=f"--{next(iter(given)).replace('_', '-')}",
            hint="remove the option, or use --retriever bm25:CORPUS",
        )
    return retriever


def _given(options: Sequence[Option], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were set. 0 is a value, although it equals False."""
    values = {str(option.name): flags[str(option.name)] for option in options}
    return {
        name: value for name, value in values.items() if value is not None and value is not False
    }


def _weights(text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"expected two numbers, got {text!r}",
            field="--weights",
            hint="write the weights of BM25 and of dense retrieval: --weights 0.7,0.3",
        ) from error


def _options(flags: Mapping[str, Any], output: Path | None, retriever: str) -> RunOptions:
    """Return the options of a run from the flags with the same names."""
    from dataclasses import fields

    from karat.data.data_file import plain_name
    from karat.live.retrievers.built_in import is_built_in
    from karat.live.run_options import RunOptions

    values = {
        **flags,
        "headers": _headers(flags["headers"], flags["header_file"]),
        "body": _body(flags["body"]),
        "name": None if output is None else plain_name(output),
    }
    if is_built_in(retriever):  # it is created with these options
        values |= dict.fromkeys(_given(EMBEDDING, flags))
    options = {option.name: values[option.name] for option in fields(RunOptions)}
    return RunOptions(**{name: value for name, value in options.items() if value is not None})


def _run(request: RunRequest, output: Path, *, overwrite: bool, show_progress: bool) -> Run:
    """Run all queries; after an interruption, print how to continue."""
    with redirect_stdout(sys.stderr), progress(show_progress) as watch:
        try:
            return request.run(output, overwrite=overwrite, watch=watch)
        except (KeyboardInterrupt, SystemExit) as error:
            for note in getattr(error, "__notes__", ()):
                print(f"{type(error).__name__}: {note}", file=sys.stderr)
            print(
                f"{watch.done:,} of {counted(watch.total, 'query')} are in {output}; "
                "run the same command again to continue",
                file=sys.stderr,
            )
            raise


def _show(result: Usage | Estimate, as_json: bool) -> None:
    from karat.format import to_json
    from karat.report import document
    from karat.report.renderers import terminal

    if as_json:
        print(to_json(result.as_dict()))
    else:
        terminal.show(document(result))


def _headers(options: Sequence[str], file: Path | None) -> dict[str, str]:
    """Return headers by name. A value may be a secret, so no message shows it."""
    headers: dict[str, str] = {}
    for number, header in enumerate(options, 1):
        _add_header(headers, header, f"header {number}", field="--header")
    for line, header in enumerate(_lines_of(file), 1):
        if header.strip() and not header.lstrip().startswith("#"):
            _add_header(headers, header, "this line", field="--header-file", path=file, line=line)
    return headers


def _add_header(headers: dict[str, str], header: str, which: str, **place: Any) -> None:
    name, colon, value = (part.strip() for part in header.partition(":"))
    if not colon or not name:
        raise InputError(
            f"{which} must be 'NAME: VALUE'", hint="write 'Authorization: Bearer …'", **place
        )
    if name.lower() in {existing.lower() for existing in headers}:
        raise InputError(
            f"{which} repeats the header {printable(name)}",
            hint="pass each header only once",
            **place,
        )
    headers[name] = value


def _lines_of(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        return file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise InputError(
            f"the file cannot be read ({reason})",
            path=file,
            field="--header-file",
            hint="pass a text file with one 'NAME: VALUE' per line",
        ) from error


def _body(text: str | None) -> dict[str, Any]:
    """Parse the fields to add to each request."""
    if text is None:
        return {}
    hint = """write a JSON object: --body '{"collection": "faq"}'"""
    try:
        fields = json_module.loads(text)
    except json_module.JSONDecodeError as error:
        raise InputError(f"the text is not JSON: {error}", field="--body", hint=hint) from error
    except ValueError as error:  # Python refuses integers of more than 4,300 digits
        raise InputError("a number has too many digits", field="--body", hint=hint) from error
    except RecursionError as error:
        raise InputError("the JSON is nested too deeply", field="--body", hint=hint) from error
    if not isinstance(fields, dict):
        raise InputError("the JSON is not an object", field="--body", hint=hint)
    return fields
