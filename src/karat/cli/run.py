"""`karat run`: ask a retriever, and write what it found."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from karat.cli.advice import advise, after_run
from karat.cli.progress import progress
from karat.errors import InputError, RetrieverError, counted

if TYPE_CHECKING:
    from karat.data.run import Run
    from karat.evaluation.estimate import Estimate
    from karat.evaluation.usage import Usage
    from karat.live.request import Request


def run_command(
    queries: Annotated[
        str, typer.Argument(metavar="QUERIES", help="Gold, or any file with ids and texts.")
    ],
    retriever: Annotated[
        str,
        typer.Option(
            "-r",
            "--retriever",
            metavar="SPEC",
            help="package.module:name, http://…, https://… or cmd:./program.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The run to write, .jsonl."),
    ] = None,
    top_k: Annotated[
        int, typer.Option(metavar="N", envvar="RAG_TOP_K", help="How many items to ask for.")
    ] = 20,
    score_threshold: Annotated[
        float | None,
        typer.Option(metavar="X", envvar="RAG_SCORE_THRESHOLD", help="The least score of an item."),
    ] = None,
    prefetch_limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            envvar="HYBRID_PREFETCH_LIMIT",
            help="How many items each part of a hybrid search fetches.",
            show_default="100",
        ),
    ] = None,
    rerank_top_n: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            envvar="RERANK_TOP_N",
            help="How many items are reranked.",
            show_default="20",
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", metavar="N", help="How many queries at a time.")
    ] = 8,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long an attempt may take.")
    ] = 60.0,
    retries: Annotated[
        int, typer.Option(metavar="N", help="How often a failed query is asked again.")
    ] = 2,
    rate: Annotated[
        float | None, typer.Option(metavar="N", help="At most so many attempts a second.")
    ] = None,
    warmup: Annotated[
        int, typer.Option(metavar="N", help="Ask N queries first and forget the answers.")
    ] = 0,
    repeat: Annotated[
        int, typer.Option(metavar="N", help="Ask each query N times, for its median latency.")
    ] = 1,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Ask only the first N queries.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", help="Ask only N queries, drawn at random.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Draw others.")] = 0,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter", metavar="FIELD=VALUE", help="Ask only queries of this kind; repeat."
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            metavar="OURS=THEIRS",
            help="What the retriever calls query, top_k, results, id, score, text, …; repeat.",
        ),
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="'NAME: VALUE'", help="A header of HTTP; repeat."),
    ] = None,
    body: Annotated[
        str | None, typer.Option(metavar="JSON", help="What else stands in each request.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC", help="package.module:name of what counts the tokens of texts."
        ),
    ] = None,
    offsets: Annotated[
        str,
        typer.Option(metavar="codepoint|utf16|utf8", help="In what it counts start and end."),
    ] = "codepoint",
    queries_format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="The format of QUERIES, if it is not told."),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Run all queries again. Without it, an unfinished file is continued (failed and "
            "missing queries only) and a finished one is refused.",
        ),
    ] = False,
    fail_on_error: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Exit with code 2 if more than this share of the queries failed."
        ),
    ] = 0.05,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask 5 queries and tell what all would take.")
    ] = False,
    shown: Annotated[
        bool, typer.Option("--progress/--no-progress", help="Show how far it is.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Ask a retriever about every query, and write the run as it goes; nothing is lost."""
    from karat.data.files import Unopened, plain_name
    from karat.data.native_run import run_of_lines
    from karat.evaluation.estimate import estimate
    from karat.evaluation.usage import usage
    from karat.live.failures import checked_share, too_many_failed
    from karat.live.request import Request

    checked_share(fail_on_error)
    if output is None and not dry_run:
        raise InputError("there is no file to write to", field="--output", hint="-o run.jsonl")
    # What a retriever prints is no part of what we answer, which may be JSON for a program.
    with redirect_stdout(sys.stderr):
        request = Request.of(
            retriever,
            Unopened(queries, queries_format),
            top_k=top_k,
            score_threshold=score_threshold,
            prefetch_limit=prefetch_limit,
            rerank_top_n=rerank_top_n,
            jobs=jobs,
            timeout=timeout,
            retries=retries,
            rate=rate,
            warmup=warmup,
            repeat=repeat,
            limit=limit,
            sample=sample,
            seed=seed,
            filters=filters or (),
            fields=fields or (),
            headers=_headers(headers or ()),
            body=_body(body),
            tokenizer=tokenizer,
            offsets=offsets,
            name=None if output is None else plain_name(output),
        )
        lines = request.tried() if dry_run else []
    if dry_run:
        _show(estimate(lines, len(request.questions), request.pace), json)
        if problem := too_many_failed(run_of_lines(lines), fail_on_error):
            raise RetrieverError(problem)
        return
    assert output is not None
    run = _run(request, output, overwrite=overwrite, shown=shown)
    _show(usage(run, path=str(output)), json)
    print(f"wrote {output}", file=sys.stderr)
    if problem := too_many_failed(run, fail_on_error):
        raise RetrieverError(problem)
    if not json:
        is_part = bool(limit or sample or filters)
        advise(after_run(queries, queries_format, str(output), is_part=is_part))


def _run(request: Request, output: Path, *, overwrite: bool, shown: bool) -> Run:
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


def _headers(given: Sequence[str]) -> dict[str, str]:
    """Return headers by their names; a value may be a secret and is never shown."""
    headers = {}
    for at, header in enumerate(given, 1):
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise InputError(
                f"header {at} has no colon",
                field="--header",
                hint="--header 'Authorization: Bearer …'",
            )
        headers[name.strip()] = value.strip()
    return headers


def _body(given: str | None) -> dict[str, Any]:
    """Return what else stands in each request."""
    try:
        told = json_module.loads(given or "{}")
    except ValueError as error:
        raise InputError(
            f"this is no JSON: {error}", field="--body", hint="""--body '{"collection": "faq"}'"""
        ) from error
    if not isinstance(told, dict):
        raise InputError(
            "this is no JSON object", field="--body", hint="""--body '{"collection": "faq"}'"""
        )
    return told
