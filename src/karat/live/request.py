"""A run to be asked for: of whom, what, and how."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat.data.files import path_of
from karat.data.native_lines import Header
from karat.data.native_run import run_of_lines
from karat.data.offsets import unit_named
from karat.data.run import Run
from karat.errors import InputError, KaratWarning, RetrieverError
from karat.live import prices
from karat.live.adapters.calling import shown
from karat.live.adapters.fields import Fields
from karat.live.adapters.spec import named, retriever_of
from karat.live.asking import RepeatedFailureError, Watch, ask_all
from karat.live.exchange import Line, Pace, Question, Retriever, Search
from karat.live.failures import stopped_early
from karat.live.file import Journal
from karat.live.selection import digest, questions
from karat.live.tokens import Counting, Tokenizer
from karat.version import __version__

TRIED = 5


@dataclass(frozen=True)
class Request:
    """A retriever made ready, the questions for it, and how they are asked."""

    retriever: Retriever
    questions: Sequence[Question]
    search: Search
    pace: Pace
    header: Header
    path: str | None
    """Where the questions were read from, if that was a file."""

    @classmethod
    def of(
        cls,
        retriever: Any,
        queries: Any,
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
        stop_after_failures: int = 10,
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
    ) -> Request:
        """Check all that is given, and open the retriever and the queries."""
        pace = Pace(jobs, timeout, retries, rate, warmup, repeat, stop_after_failures)
        search = _search(top_k, score_threshold, prefetch_limit, rerank_top_n)
        mapped = Fields.of(fields)
        asked = questions(queries, limit=limit, sample=sample, seed=seed, filters=filters)
        made = retriever_of(
            retriever, search, fields=mapped, method=method, headers=headers, body=body
        )
        _say_what_is_not_taken(made, search)
        _say_what_is_overridden(made, search)
        if tokenizer is not None:
            made = _counting(made, tokenizer)
        settings = {
            "retriever": made.name,
            **search.as_dict(),
            "handed": sorted(made.takes),
            **made.settings,
            "queries": {"count": len(asked), "sha256": digest(asked)},
            "limit": limit,
            "sample": sample,
            "seed": None if sample is None else seed,
            "filter": list(filters) or None,
            "jobs": jobs,
            "timeout": timeout,
            "retries": retries,
            "rate": rate,
            "warmup": warmup or None,
            "repeat": repeat if repeat > 1 else None,
            "prices": prices.version(),
            "karat": __version__,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        told = {key: value for key, value in settings.items() if value is not None}
        header = Header(1, "run", name or made.name, unit_named(offsets), told)
        return cls(made, asked, search, pace, header, path_of(queries))

    def tried(self) -> list[Line]:
        """Ask the first few questions alone, once each, to tell from them what all would take."""
        lines: list[Line] = []
        pace = replace(self.pace, warmup=0, repeat=1, stop_after_failures=0)
        self._ask(self.questions[:TRIED], pace, lines.append)
        return lines

    def run(
        self,
        output: str | os.PathLike[str] | None = None,
        *,
        overwrite: bool = False,
        watch: Watch | None = None,
    ) -> Run:
        """Run the queries; with `output`, write each answer to this file at once."""
        try:
            return self._run(output, overwrite=overwrite, watch=watch)
        except RepeatedFailureError as error:
            problem = stopped_early(error.failure, error.count, self.header.settings, output)
            raise RetrieverError(problem) from None

    def _run(
        self, output: str | os.PathLike[str] | None, *, overwrite: bool, watch: Watch | None
    ) -> Run:
        if output is None:
            lines: list[Line] = []
            if watch is not None:
                watch.begun(len(self.questions), 0, 0)
            self._ask(self.questions, self.pace, lines.append, watch)
            place = {question.query_id: at for at, question in enumerate(self.questions)}
            lines.sort(key=lambda line: place[str(line.query_id)])
            return run_of_lines(lines, self.header)
        self._refuse_own_source(output)
        with Journal.open(output, self.header, overwrite=overwrite) as journal:
            if watch is not None:
                watch.begun(len(self.questions), len(journal.done), 0)
            rest = [asked for asked in self.questions if asked.query_id not in journal.done]
            self._ask(rest, self.pace, journal.write, watch)
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
        questions: Sequence[Question],
        pace: Pace,
        done: Callable[[Line], None],
        watch: Watch | None = None,
    ) -> None:
        if questions:
            prices.load()
        price = prices.priced
        ask_all(self.retriever, questions, self.search, pace, done, price=price, watch=watch)


def _search(
    top_k: int,
    score_threshold: float | None,
    prefetch_limit: int | None,
    rerank_top_n: int | None,
) -> Search:
    """Return how to search; None leaves a setting at its default, and unsaid to servers."""
    given = {
        "score_threshold": score_threshold,
        "prefetch_limit": prefetch_limit,
        "rerank_top_n": rerank_top_n,
    }
    told = {name: value for name, value in given.items() if value is not None}
    return Search(top_k=top_k, **told, given=frozenset({"top_k", *told}))  # type: ignore[arg-type]


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
