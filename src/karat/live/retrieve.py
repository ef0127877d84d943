"""Run a retriever for every query, and return the run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat.data.data_file import path_of
from karat.data.formats.json_lines import Header
from karat.data.formats.native_run import run_of_lines
from karat.data.run import Run
from karat.errors import InputError, KaratWarning, RetrieverError
from karat.live import prices
from karat.live.failures import MAX_FAILED, stopped_early, too_many_failed
from karat.live.journal import Journal
from karat.live.loop_thread import run_all_queries
from karat.live.protocol import Line, Query, Retriever, Search
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.callables import shown
from karat.live.retrievers.resolve import named, retriever_of
from karat.live.run_options import RunOptions
from karat.live.runner import Progress, RepeatedFailureError
from karat.live.selection import digest, select_queries
from karat.live.tokens import Counting, Tokenizer
from karat.version import __version__

TRIED = 5


@dataclass(frozen=True)
class RunRequest:
    """A retriever made ready, the questions for it, and how they are asked."""

    retriever: Retriever
    questions: Sequence[Query]
    options: RunOptions
    header: Header
    path: str | None
    """Where the questions were read from, if that was a file."""

    @classmethod
    def of(cls, retriever: Any, queries: Any, options: RunOptions) -> RunRequest:
        """Open the retriever and the queries."""
        search = options.search()
        mapped = Fields.of(options.fields)
        asked = select_queries(queries, options)
        made = retriever_of(
            retriever,
            search,
            fields=mapped,
            method=options.method,
            headers=options.headers,
            body=options.body,
        )
        _say_what_is_not_taken(made, search)
        _say_what_is_overridden(made, search)
        if options.tokenizer is not None:
            made = _counting(made, options.tokenizer)
        settings = {
            "retriever": made.name,
            **search.as_dict(),
            "handed": sorted(made.takes),
            **made.settings,
            "queries": {"count": len(asked), "sha256": digest(asked)},
            **options.as_settings(),
            "prices": prices.version(),
            "karat": __version__,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        told = {key: value for key, value in settings.items() if value is not None}
        header = Header(1, "run", options.name or made.name, options.offsets, told)
        return cls(made, asked, options, header, path_of(queries))

    def tried(self) -> list[Line]:
        """Ask the first few questions alone, once each, to tell from them what all would take."""
        lines: list[Line] = []
        options = replace(self.options, warmup=0, repeat=1, stop_after_failures=0)
        self._ask(self.questions[:TRIED], options, lines.append)
        return lines

    def run(
        self,
        output: str | os.PathLike[str] | None = None,
        *,
        overwrite: bool = False,
        watch: Progress | None = None,
    ) -> Run:
        """Run the queries; with `output`, write each answer to this file at once."""
        try:
            return self._run(output, overwrite=overwrite, watch=watch)
        except RepeatedFailureError as error:
            problem = stopped_early(error.failure, error.count, self.header.settings, output)
            raise RetrieverError(problem) from None

    def _run(
        self, output: str | os.PathLike[str] | None, *, overwrite: bool, watch: Progress | None
    ) -> Run:
        if output is None:
            lines: list[Line] = []
            if watch is not None:
                watch.begun(len(self.questions), 0, 0)
            self._ask(self.questions, self.options, lines.append, watch)
            place = {question.query_id: at for at, question in enumerate(self.questions)}
            lines.sort(key=lambda line: place[str(line.query_id)])
            return run_of_lines(lines, self.header)
        self._refuse_own_source(output)
        with Journal.open(output, self.header, overwrite=overwrite) as journal:
            if watch is not None:
                watch.begun(len(self.questions), len(journal.done), 0)
            rest = [asked for asked in self.questions if asked.query_id not in journal.done]
            self._ask(rest, self.options, journal.write, watch)
        return Run.read(output)

    def _refuse_own_source(self, output: str | os.PathLike[str]) -> None:
        """Refuse to write over the queries, also where somebody says to begin anew."""
        target = Path(output)
        if (
            self.path
            and target.exists()
            and Path(self.path).exists()
            and target.samefile(self.path)
        ):
            raise InputError(
                "this is the file of the queries", path=output, hint="name another file with -o"
            )

    def _ask(
        self,
        questions: Sequence[Query],
        options: RunOptions,
        done: Callable[[Line], None],
        watch: Progress | None = None,
    ) -> None:
        if questions:
            prices.load()
        price = prices.priced
        run_all_queries(self.retriever, questions, options, done, price=price, watch=watch)


def _counting(retriever: Retriever, tokenizer: str | Tokenizer) -> Retriever:
    given = named(tokenizer, "tokenizer") if isinstance(tokenizer, str) else tokenizer
    if not callable(given):
        raise InputError(
            f"a {type(given).__name__} is no tokenizer",
            field="tokenizer",
            hint="name a function that takes a text and returns its tokens",
        )
    return Counting(retriever, given, tokenizer if isinstance(tokenizer, str) else shown(given))


def _say_what_is_not_taken(retriever: Retriever, search: Search) -> None:
    for name in sorted(search.given - retriever.takes - {"top_k", "score_threshold"}):
        warnings.warn(
            KaratWarning(f"{retriever.name} takes no {name}: it is not handed over"), stacklevel=4
        )


def _say_what_is_overridden(retriever: Retriever, search: Search) -> None:
    own = retriever.settings.get("own_top_k")
    if own is not None and own != search.top_k:
        warnings.warn(
            KaratWarning(
                f"{retriever.name} is set to return {own} results; karat asks for "
                f"{search.top_k} instead (top_k)"
            ),
            stacklevel=4,
        )


def retrieve(
    retriever: Any,
    gold: Any,
    *,
    top_k: int = 20,
    score_threshold: float | None = None,
    prefetch_limit: int | None = None,
    rerank_top_n: int | None = None,
    jobs: int = 8,
    timeout: float | None = 60.0,
    retries: int = 2,
    rate: float | None = None,
    warmup: int = 0,
    repeat: int = 1,
    stop_after_failures: int | None = None,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    filters: Sequence[str] = (),
    fields: Sequence[str] = (),
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    tokenizer: str | Tokenizer | None = None,
    offsets: str = "codepoint",
    name: str | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    fail_on_error: float = MAX_FAILED,
    watch: Progress | None = None,
) -> Run:
    """Run a retriever for every query, and return the run.

    Each query is timed separately; waiting in karat's queue is not included. A query that fails is
    in the run as failed.

    Parameters
    ----------
    retriever : callable, object or str
        A function `(query, top_k)`, plain or async; an object of LangChain, LlamaIndex, Haystack or
        LanceDB; any object with a method `retrieve` or `search`; or a string:
        `package.module:name`, `http://…`, `https://…`, `cmd:./program`. It returns ids,
        (id, score) pairs, dicts as in a native run file, or objects with those attributes.
    gold : Gold, path, dict, list or frame
        Gold, or anything else with the ids and texts of queries: `{"q1": "how do I pay?"}`.
    top_k : int, default 20
        Number of items to retrieve for each query. Longer lists are cut.
    score_threshold : float, optional
        Lowest score of an item. Passed to a retriever that has such a parameter; otherwise karat
        removes the items below it.
    prefetch_limit : int, optional
        Number of items that each part of a hybrid search fetches, for retrievers that have such a
        parameter. They get 100 if it is not set; servers and programs get it only if it is set.
    rerank_top_n : int, optional
        Number of items to rerank, for retrievers that have such a parameter. They get 20 if it is
        not set; servers and programs get it only if it is set.
    jobs : int, default 8
        Number of queries that run at a time.
    timeout : float or None, default 60.0
        Seconds after which an attempt fails. None waits forever.
    retries : int, default 2
        How many times a failed query is tried again, with increasing pauses.
    rate : float, optional
        Maximum number of attempts that start per second. Default: no limit.
    warmup : int, default 0
        Number of queries to run first, without recording their answers.
    repeat : int, default 1
        How many times each query runs. The latency is the median, the list that of the first time.
    stop_after_failures : int, optional
        Stop with a RetrieverError after this many failures of the same kind in a row; 0 never
        stops. Default: 10, or 0 if `fail_on_error` is 1.
    limit : int, optional
        Run only the first queries, in the order of their ids.
    sample : int, optional
        Run only this many queries, drawn at random.
    seed : int, default 0
        Seed for the random number generator of `sample`.
    filters : sequence of str, optional
        Run only queries with these fields: `["category=billing", "difficulty=easy"]`. Values of one
        field are alternatives; all fields must match.
    fields : sequence of str, optional
        Names that the retriever uses for karat's fields, with dots between keys:
        `["query=question", "id=metadata.chunk_id"]`.
    method : {"POST", "GET"}, default "POST"
        How an HTTP retriever gets the query: in a JSON body, or in the parameters of the address.
    headers : mapping of str to str, optional
        HTTP headers. A value `env:NAME` or `Bearer env:NAME` is read from this environment
        variable. Values are never stored in the run.
    body : mapping, optional
        Fields that are added to each HTTP request.
    tokenizer : callable or str, optional
        A function that takes a text and returns its tokens or their number, or its name
        `package.module:name`. Counts the tokens of the returned texts, for `context.tokens@k`.
    offsets : {"codepoint", "utf16", "utf8"}, default "codepoint"
        Unit in which the retriever counts `start` and `end`.
    name : str, optional
        Name of the run. Default: the name of the retriever.
    output : path, optional
        A .jsonl file to which every answer is written immediately. If the file has an unfinished
        run with the same settings, only its missing and failed queries run. A finished run is
        refused.
    overwrite : bool, default False
        Run all queries again and replace the file.
    fail_on_error : float, default 0.05
        Raise a RetrieverError if more than this share of the queries failed; 1 allows all to fail.
    watch : object, optional
        Gets the progress: `begun(total, done, failed)` is called at the start, `finished(line)`
        after each query, and `retried(question, error)` before another attempt.

    Returns
    -------
    Run
        The results, latencies, model calls and errors of all queries.

    Raises
    ------
    RetrieverError
        If too many queries failed. With `output`, the file keeps all answers.
    InputError
        If an option, the queries or the retriever are invalid.

    Examples
    --------
    >>> def search(query, top_k):
    ...     return ["faq-1", "faq-2"][:top_k]
    >>> run = retrieve(search, {"q1": "how do I get a refund?"}, top_k=1)
    >>> run.results["item_id"].to_list()
    ['faq-1']
    """
    options = RunOptions(
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
        stop_after_failures=stop_after_failures,
        limit=limit,
        sample=sample,
        seed=seed,
        filters=filters,
        fields=fields,
        method=method,
        headers=headers,
        body=body,
        tokenizer=tokenizer,
        offsets=offsets,
        name=name,
        fail_on_error=fail_on_error,
    )
    run = RunRequest.of(retriever, gold, options).run(output, overwrite=overwrite, watch=watch)
    if problem := too_many_failed(run, fail_on_error):
        raise RetrieverError(problem)
    return run
