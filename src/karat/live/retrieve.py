"""Run a retriever for every query, and return the run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from karat.data.run import Run
from karat.errors import RetrieverError
from karat.live.asking import Watch
from karat.live.failures import MAX_FAILED, too_many_failed
from karat.live.options import RunOptions
from karat.live.request import Request
from karat.live.tokens import Tokenizer


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
    watch: Watch | None = None,
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
    run = Request.of(retriever, gold, options).run(output, overwrite=overwrite, watch=watch)
    if problem := too_many_failed(run, fail_on_error):
        raise RetrieverError(problem)
    return run
