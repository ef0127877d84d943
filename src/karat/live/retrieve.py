"""`karat.retrieve`: run a retriever for every query, in memory or into a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat.data.data_file import path_of
from karat.data.formats.json_lines import Header
from karat.data.formats.native_run import run_of_lines
from karat.data.run import Run
from karat.errors import InputError, RetrieverError, warn
from karat.live import prices
from karat.live.failures import MAX_FAILED, stopped_early, too_many_failed
from karat.live.journal import Journal
from karat.live.loop_thread import run_all_queries
from karat.live.protocol import JournalLine, Query, Retriever, Search, StopRunError
from karat.live.reranker import (
    Reranker,
    RerankingRetriever,
    create_reranker,
    search_before_reranking,
)
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.callables import qualified_name
from karat.live.retrievers.embedders import EmbeddingFunction
from karat.live.retrievers.resolve import import_object, resolve_retriever
from karat.live.run_options import RunOptions
from karat.live.runner import Progress, RepeatedFailureError
from karat.live.selection import queries_digest, select_queries
from karat.live.tokens import TokenCountingRetriever, Tokenizer
from karat.version import __version__

DRY_RUN_QUERIES = 5
"""How many queries `--dry-run` runs."""


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
    embedder: str | EmbeddingFunction | None = None,
    embedding_model: str | None = None,
    embedding_key_env: str | None = None,
    retriever_options: Sequence[str] | Mapping[str, Any] = (),
    tokenizer: str | Tokenizer | None = None,
    reranker: str | Reranker | None = None,
    reranker_model: str | None = None,
    reranker_key_env: str | None = None,
    offsets: str = "codepoint",
    name: str | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    fail_on_error: float = MAX_FAILED,
    watch: Progress | None = None,
) -> Run:
    """Run a retriever for every query, and return the run.

    Each query is timed separately, without the time that it waits for a free worker. A failed query
    is part of the run, with its error.

    Parameters
    ----------
    retriever : callable, object or str
        A function `(query, top_k)`, plain or async; an object of LangChain, LlamaIndex, Haystack or
        LanceDB; any object with a method `retrieve` or `search`; or a string:
        `package.module:name`, `path/to/file.py:name`, `http://…`, `https://…`, `cmd:./program`. It
        returns ids, (id, score) pairs, dicts as in a native run file, or objects with those
        attributes.
        Built-in retrievers need no code: `bm25:CORPUS`, `dense:CORPUS`, `hybrid:CORPUS`. Neither do
        search engines: `elasticsearch:http://…/INDEX`, `opensearch:http://…/INDEX`,
        `qdrant:http://…/COLLECTION`, `pgvector:postgresql://…?table=TABLE`. Both may also be
        objects of `karat.live.retrievers`, such as `Dense(…)` or `Qdrant(…)`.
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
        Number of items to rerank, for `reranker` and for retrievers that have such a parameter.
        They get 20 if it is not set; servers and programs get it only if it is set.
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
        How many times each query runs. The run has the results of the first repetition and the
        median latency of all.
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
        How an HTTP retriever gets the query: in a JSON body, or in the parameters of the URL.
    headers : mapping of str to str, optional
        HTTP headers. A value `env:NAME` or `Bearer env:NAME` is read from this environment
        variable. Values are never stored in the run.
    body : mapping, optional
        Fields that are added to each HTTP request.
    embedder : callable or str, optional
        Embeds texts for `dense:` and `hybrid:`, and queries for a search engine: a function that
        takes a list of texts and returns an array with one row per text; its name,
        `package.module:name`; the URL of an OpenAI-compatible server, `https://host/v1`; or
        `"wordllama"`, the default of `dense:` and `hybrid:`.
    embedding_model : str, optional
        The name of the model, for an embedder on a server.
    embedding_key_env : str, optional
        The environment variable with the key of this server. The key is never stored.
    retriever_options : mapping or sequence of str, optional
        Options of a search engine: `{"vector": "embedding"}` or `["vector=embedding"]`.
    tokenizer : callable or str, optional
        A function that takes a text and returns a list of tokens or the token count, or the name
        of such a function, `package.module:name`. Counts the tokens of the returned texts, for
        `context.tokens@k`.
    reranker : callable or str, optional
        A function that takes a query and a list of texts and returns one score per text, higher is
        better; the name of such a function, `package.module:name`; or the URL of a server with the
        API of Cohere, Jina and vLLM, `https://host/v1/rerank`. It reranks the first
        `rerank_top_n` items. The others follow in their order, without a score. `score_threshold`
        then applies to the scores of the reranker. The run stores the list before reranking as
        `candidates`.
    reranker_model : str, optional
        The name of the model, for a reranker on a server.
    reranker_key_env : str, optional
        The environment variable with the key of the server. The key is never stored.
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
        after each query, and `retried(query, error)` before another attempt.

    Returns
    -------
    Run
        The results, latencies, model calls and errors of all queries.

    Raises
    ------
    RetrieverError
        If too many queries failed. With `output`, the file keeps all answers.
    InputError
        If an option, the queries or the retriever are invalid, or if an embedder changes the
        dimension of its vectors during the run. A file that this run started is then removed.

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
        embedder=embedder,
        embedding_model=embedding_model,
        embedding_key_env=embedding_key_env,
        retriever_options=retriever_options,
        tokenizer=tokenizer,
        reranker=reranker,
        reranker_model=reranker_model,
        reranker_key_env=reranker_key_env,
        offsets=offsets,
        name=name,
        fail_on_error=fail_on_error,
    )
    run = RunRequest.of(retriever, gold, options).run(output, overwrite=overwrite, watch=watch)
    if problem := too_many_failed(run, fail_on_error):
        raise RetrieverError(problem)
    return run


@dataclass(frozen=True)
class RunRequest:
    """A retriever that is ready to run, with its queries and options."""

    retriever: Retriever
    queries: Sequence[Query]
    options: RunOptions
    header: Header
    path: str | None
    """The file of queries, if the queries were read from a file."""

    @classmethod
    def of(cls, retriever: Any, queries: Any, options: RunOptions) -> RunRequest:
        """Create the retriever and select the queries."""
        search = options.search()
        fields = Fields.of(options.fields)
        selected = select_queries(queries, options)
        reranker = _reranker(options)
        resolved = resolve_retriever(
            retriever,
            search if reranker is None else search_before_reranking(search),
            fields=fields,
            method=options.method,
            headers=options.headers,
            body=options.body,
            embedder=options.embedder,
            embedding_model=options.embedding_model,
            embedding_key_env=options.embedding_key_env,
            options=options.retriever_options,
        )
        if reranker is not None:
            resolved = RerankingRetriever(resolved, *reranker, search)
        _warn_about_ignored_settings(resolved, search)
        _warn_about_replaced_top_k(resolved, search)
        if options.tokenizer is not None:
            resolved = _with_token_counts(resolved, options.tokenizer)
        header = _build_header(resolved, search, selected, options)
        return cls(resolved, selected, options, header, path_of(queries))

    def run_first_queries(self) -> list[JournalLine]:
        """Run the first few queries once, for an estimate of the whole run (`--dry-run`)."""
        lines: list[JournalLine] = []
        options = replace(self.options, warmup=0, repeat=1, stop_after_failures=0)
        self._run_queries(self.queries[:DRY_RUN_QUERIES], options, lines.append)
        return lines

    def run(
        self,
        output: str | os.PathLike[str] | None = None,
        *,
        overwrite: bool = False,
        watch: Progress | None = None,
    ) -> Run:
        """Run all queries; with `output`, write each line to this file immediately."""
        try:
            if output is None:
                return self._run_in_memory(watch)
            return self._run_to_file(output, overwrite=overwrite, watch=watch)
        except RepeatedFailureError as error:
            problem = stopped_early(error.failure, error.count, self.header.settings, output)
            raise RetrieverError(problem) from None

    def _run_in_memory(self, watch: Progress | None) -> Run:
        lines: list[JournalLine] = []
        if watch is not None:
            watch.begun(len(self.queries), 0, 0)
        self._run_queries(self.queries, self.options, lines.append, watch)
        positions = {query.query_id: position for position, query in enumerate(self.queries)}
        lines.sort(key=lambda line: positions[str(line.query_id)])
        return run_of_lines(lines, self.header)

    def _run_to_file(
        self, output: str | os.PathLike[str], *, overwrite: bool, watch: Progress | None
    ) -> Run:
        self._refuse_query_file(output)
        journal = Journal.open(output, self.header, overwrite=overwrite)
        try:
            with journal:
                if watch is not None:
                    watch.begun(len(self.queries), len(journal.done), 0)
                remaining = [query for query in self.queries if query.query_id not in journal.done]
                self._run_queries(remaining, self.options, journal.write, watch)
        except StopRunError:
            if not journal.done:  # nothing in the file is older than this run
                Path(output).resolve().unlink(missing_ok=True)
            raise
        return Run.read(output)

    def _refuse_query_file(self, output: str | os.PathLike[str]) -> None:
        """Raise an error if the output is the file of queries, even with `overwrite`."""
        target = Path(output)
        if (
            self.path
            and target.exists()
            and Path(self.path).exists()
            and target.samefile(self.path)
        ):
            raise InputError(
                "the output file is the same as the file of queries",
                path=output,
                hint="choose another file with -o (output=)",
            )

    def _run_queries(
        self,
        queries: Sequence[Query],
        options: RunOptions,
        done: Callable[[JournalLine], None],
        watch: Progress | None = None,
    ) -> None:
        if queries:
            prices.load()
        price = prices.with_prices
        run_all_queries(self.retriever, queries, options, done, price=price, watch=watch)


def _build_header(
    retriever: Retriever, search: Search, queries: Sequence[Query], options: RunOptions
) -> Header:
    settings = {
        "retriever": retriever.name,
        **search.as_dict(),
        "handed": sorted(retriever.accepts),
        **retriever.settings,
        "queries": {"count": len(queries), "sha256": queries_digest(queries)},
        **options.as_settings(),
        "prices": prices.version(),
        "karat": __version__,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    return Header(1, "run", options.name or retriever.name, options.offsets, settings)


def _reranker(options: RunOptions) -> tuple[Reranker, dict[str, Any]] | None:
    if options.reranker is not None:
        return create_reranker(options.reranker, options.reranker_model, options.reranker_key_env)
    for name in ("reranker_model", "reranker_key_env"):
        if getattr(options, name) is not None:
            raise InputError(
                "this option needs a reranker",
                field=name,
                hint="remove the option, or set the reranker to a URL: https://host/v1/rerank",
            )
    return None


def _with_token_counts(retriever: Retriever, tokenizer: str | Tokenizer) -> Retriever:
    if isinstance(tokenizer, str):
        function, name = import_object(tokenizer, "tokenizer"), tokenizer
    else:
        function, name = tokenizer, qualified_name(tokenizer)
    if not callable(function):
        raise InputError(
            f"the tokenizer must be callable, got an object of type {type(function).__name__}",
            field="tokenizer",
            hint="pass a function that takes a string and returns a list of tokens or the token "
            "count",
        )
    return TokenCountingRetriever(retriever, function, name)


def _warn_about_ignored_settings(retriever: Retriever, search: Search) -> None:
    for name in sorted(search.explicit - retriever.accepts - {"top_k", "score_threshold"}):
        remedy = "; add --reranker SPEC (reranker=)" if name == "rerank_top_n" else ""
        warn(f"{name} is ignored: {retriever.name} has no such parameter{remedy}", stacklevel=4)


def _warn_about_replaced_top_k(retriever: Retriever, search: Search) -> None:
    own_top_k = retriever.settings.get("own_top_k")
    if own_top_k is not None and own_top_k != search.top_k:
        warn(
            f"{retriever.name} is configured to return {own_top_k} results; karat requests "
            f"{search.top_k} instead (top_k)",
            stacklevel=4,
        )
