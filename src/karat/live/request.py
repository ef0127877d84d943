"""A run to be asked for: of whom, what, and how."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat.data.files import path_of
from karat.data.native_lines import Header
from karat.data.native_run import run_of_lines
from karat.data.run import Run
from karat.errors import InputError, KaratWarning, RetrieverError
from karat.live import prices
from karat.live.adapters.calling import shown
from karat.live.adapters.fields import Fields
from karat.live.adapters.spec import named, retriever_of
from karat.live.asking import RepeatedFailureError, Watch, ask_all
from karat.live.exchange import Line, Question, Retriever, Search
from karat.live.failures import stopped_early
from karat.live.file import Journal
from karat.live.options import RunOptions
from karat.live.selection import digest, questions
from karat.live.tokens import Counting, Tokenizer
from karat.version import __version__

TRIED = 5


@dataclass(frozen=True)
class Request:
    """A retriever made ready, the questions for it, and how they are asked."""

    retriever: Retriever
    questions: Sequence[Question]
    options: RunOptions
    header: Header
    path: str | None
    """Where the questions were read from, if that was a file."""

    @classmethod
    def of(cls, retriever: Any, queries: Any, options: RunOptions) -> Request:
        """Open the retriever and the queries."""
        search = options.search()
        mapped = Fields.of(options.fields)
        asked = questions(queries, options)
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
        questions: Sequence[Question],
        options: RunOptions,
        done: Callable[[Line], None],
        watch: Watch | None = None,
    ) -> None:
        if questions:
            prices.load()
        price = prices.priced
        ask_all(self.retriever, questions, options, done, price=price, watch=watch)


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
