"""Ask a retriever about every query, and return the run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from karat.data.run import Run
from karat.errors import RetrieverError
from karat.live.asking import Watch
from karat.live.failures import MAX_FAILED, checked_share, max_in_a_row, too_many_failed
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
    """Ask a retriever about every query of gold.

    The retriever is a function `(query, top_k)` (also an async one), an object of LangChain,
    LlamaIndex, Haystack or LanceDB, one with a method `retrieve` or `search`, or a string:
    `package.module:name`, `http://…`, `cmd:./program`. It returns ids, (id, score) pairs, dicts
    as in a native run file, or objects with those attributes. `gold` is anything with the ids and
    texts of queries.

    `method` is "POST" or "GET", for a retriever behind HTTP. A value of `headers` may be
    `env:NAME` or `Bearer env:NAME`: the value of this environment variable.

    `tokenizer` takes a text and returns its tokens, or how many there are: `context.tokens@k`
    then says how much is delivered.

    Each query is timed on its own, whatever waits in karat's queue. A query that fails is in the
    run as failed; if more than the share `fail_on_error` do, a RetrieverError is raised (1 allows
    all to fail). After `stop_after_failures` failures of the same kind in a row (10 by default,
    and never with `fail_on_error=1`; 0 for never) the run stops with a RetrieverError, and the
    answers before stay in `output`. With `output`, every answer is written at once. Calling it
    again continues an unfinished file: only failed and missing queries run. A finished file is
    refused, unless `overwrite` is true.

    >>> def search(query, top_k):
    ...     return ["faq-1", "faq-2"][:top_k]
    >>> run = retrieve(search, {"q1": "how do I get a refund?"}, top_k=1)
    >>> run.results["item_id"].to_list()
    ['faq-1']
    """
    checked_share(fail_on_error)
    request = Request.of(
        retriever,
        gold,
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
        stop_after_failures=max_in_a_row(stop_after_failures, fail_on_error),
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
    )
    run = request.run(output, overwrite=overwrite, watch=watch)
    if problem := too_many_failed(run, fail_on_error):
        raise RetrieverError(problem)
    return run
