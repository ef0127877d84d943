"""`karat run`: ask a retriever, and write what it found."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.cli.next_step import advise, after_run
from karat.cli.options import COLUMNS, FILE, JSON
from karat.cli.parameters import Argument, Option, command
from karat.cli.progress import progress
from karat.errors import InputError, RetrieverError, counted, printable

if TYPE_CHECKING:
    from karat.data.run import Run
    from karat.evaluation.estimate import Estimate
    from karat.evaluation.usage import Usage
    from karat.live.retrieve import RunRequest
    from karat.live.run_options import RunOptions


@command(
    "run",
    Argument("queries", metavar="QUERIES", text="Gold, or any file with ids and texts."),
    Option(
        "-r",
        "--retriever",
        panel="Retriever",
        metavar="SPEC",
        required=True,
        help="Run this retriever: package.module:name, http://…, https://… or cmd:./program.",
    ),
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
        "fields",
        "--field",
        panel="Retriever",
        metavar="OURS=THEIRS",
        multiple=True,
        help="Map a name that the retriever uses for query, top_k, results, id, score, text, …. "
        "Repeat for more.",
    ),
    Option(
        "--tokenizer",
        panel="Retriever",
        metavar="SPEC",
        help="Count the tokens of texts with this function: package.module:name.",
    ),
    Option(
        "--offsets",
        panel="Retriever",
        metavar="codepoint|utf16|utf8",
        default="codepoint",
        help="Read the start and end of items in this unit.",
    ),
    Option(
        "--limit",
        panel="Queries",
        metavar="N",
        type=int,
        help="Run only the first N queries.",
    ),
    Option(
        "--sample",
        panel="Queries",
        metavar="N",
        type=int,
        help="Run only N queries, chosen at random.",
    ),
    Option(
        "--seed",
        panel="Queries",
        metavar="N",
        type=int,
        default=0,
        help="Seed for the random number generator of --sample.",
    ),
    Option(
        "filters",
        "--filter",
        panel="Queries",
        metavar="FIELD=VALUE",
        multiple=True,
        help="Run only queries with this value. Repeat for more conditions.",
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
        multiple=True,
        help="Send this HTTP header; env:VARIABLE as the value reads an environment variable. "
        "Repeat for more headers.",
    ),
    Option(
        "--header-file",
        panel="HTTP",
        metavar="FILE",
        type=FILE,
        help="Send the HTTP headers in this file, one 'NAME: VALUE' per line.",
    ),
    Option(
        "--body",
        panel="HTTP",
        metavar="JSON",
        help="Add these fields to each HTTP request, with GET as URL parameters.",
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
        help="Stop an attempt after this time.",
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
        help="Make at most N attempts per second.",
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
        help="Run each query N times and take the median latency.",
    ),
    Option(
        "--stop-after-failures",
        panel="Speed and failures",
        metavar="N",
        type=int,
        show_default="10; 0 with --fail-on-error 1",
        help="Stop after N failures of the same kind in a row; 0 never stops.",
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
        help="Write the run to this .jsonl file.",
    ),
    Option(
        "--overwrite",
        panel="Output",
        is_flag=True,
        help="Run all queries again. Without it, an unfinished file is continued (failed and "
        "missing queries only) and a finished one is refused.",
    ),
    Option(
        "--dry-run",
        panel="Output",
        is_flag=True,
        help="Run 5 queries and estimate the time and cost of all.",
    ),
    Option(
        "shown",
        "--progress/--no-progress",
        panel="Output",
        default=True,
        help="Show the progress.",
    ),
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
    shown: bool,
    json: bool,
    **flags: Any,
) -> None:
    """Run a retriever on all queries and write the results to a file.

    Each result is written as soon as it arrives; after an interruption, the same command continues.
    """
    from karat.data.columns import Columns
    from karat.data.data_file import PathSource
    from karat.data.formats.native_run import run_of_lines
    from karat.evaluation.estimate import estimate
    from karat.evaluation.usage import usage
    from karat.live.failures import too_many_failed
    from karat.live.retrieve import RunRequest

    if output is None and not dry_run:
        raise InputError("there is no file to write to", field="--output", hint="-o run.jsonl")
    mapping = Columns.of(columns)
    options = _options(flags, output)
    # The output of a retriever is not part of ours, which may be JSON for a program.
    with redirect_stdout(sys.stderr):
        with mapping.checked():
            request = RunRequest.of(
                retriever, PathSource(queries, queries_format, mapping), options
            )
        lines = request.run_first_queries() if dry_run else []
    if dry_run:
        _show(estimate(lines, len(request.queries), options), json)
        if problem := too_many_failed(run_of_lines(lines), options.fail_on_error):
            raise RetrieverError(problem)
        return
    assert output is not None
    run = _run(request, output, overwrite=overwrite, shown=shown)
    _show(usage(run, path=str(output)), json)
    print(f"wrote {output}", file=sys.stderr)
    if problem := too_many_failed(run, options.fail_on_error):
        raise RetrieverError(problem)
    if not json:
        is_part = bool(options.limit or options.sample or options.filters)
        asked = PathSource(queries, queries_format, mapping)
        advise(after_run(asked, str(output), is_part=is_part))


def _options(flags: Mapping[str, Any], output: Path | None) -> RunOptions:
    """Return the options of a run from the flags of the same names."""
    from dataclasses import fields

    from karat.data.data_file import plain_name
    from karat.live.run_options import RunOptions

    values = {
        **flags,
        "headers": _headers(flags["headers"], flags["header_file"]),
        "body": _body(flags["body"]),
        "name": None if output is None else plain_name(output),
    }
    given = {option.name: values[option.name] for option in fields(RunOptions)}
    return RunOptions(**{name: value for name, value in given.items() if value is not None})


def _run(request: RunRequest, output: Path, *, overwrite: bool, shown: bool) -> Run:
    """Run all queries; after an interruption, show how to continue."""
    with redirect_stdout(sys.stderr), progress(shown) as watch:
        try:
            return request.run(output, overwrite=overwrite, watch=watch)
        except (KeyboardInterrupt, SystemExit) as error:
            for note in getattr(error, "__notes__", ()):
                print(f"{type(error).__name__}: {note}", file=sys.stderr)
            print(
                f"{watch.done:,} of {counted(watch.total, 'query')} are in {output}; "
                "the same command continues",
                file=sys.stderr,
            )
            raise


def _show(told: Usage | Estimate, as_json: bool) -> None:
    from karat.format import to_json

    print(to_json(told.as_dict()) if as_json else told)


def _headers(options: Sequence[str], file: Path | None) -> dict[str, str]:
    """Return headers by their names; a value may be a secret and is never shown."""
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
            f"{which} is not 'NAME: VALUE'", hint="write 'Authorization: Bearer …'", **place
        )
    if name.lower() in {known.lower() for known in headers}:
        raise InputError(
            f"{which} repeats the header {printable(name)}", hint="give each header once", **place
        )
    headers[name] = value


def _lines_of(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        return file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(
            f"the file cannot be read ({reason})",
            path=file,
            field="--header-file",
            hint="name a text file with one 'Name: value' per line",
        ) from error


def _body(given: str | None) -> dict[str, Any]:
    """Return the fields that are added to each request."""
    hint = """--body '{"collection": "faq"}'"""
    try:
        fields = json_module.loads(given or "{}")
    except json_module.JSONDecodeError as error:
        raise InputError(f"this is not JSON: {error}", field="--body", hint=hint) from error
    except ValueError as error:  # Python refuses integers of more than 4,300 digits
        raise InputError("a number has too many digits", field="--body", hint=hint) from error
    except RecursionError as error:
        raise InputError("it is nested too deeply", field="--body", hint=hint) from error
    if not isinstance(fields, dict):
        raise InputError("this is not a JSON object", field="--body", hint=hint)
    return fields
