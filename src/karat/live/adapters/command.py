"""A retriever behind a command: a JSON line in, a JSON line out."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from karat.errors import InputError
from karat.live.adapters.fields import Fields
from karat.live.adapters.process import Process
from karat.live.adapters.results import answer_of
from karat.live.adapters.secrecy import safe_words
from karat.live.adapters.sending import handed, said
from karat.live.exchange import Answer, AttemptError, Question, Retriever, Search, Timed

# How long the first process is watched: long enough to see a mistyped option refused.
_GRACE = 0.2


class CommandRetriever(Retriever):
    """A command, of which as many processes are kept alive as questions are under way.

    An answer out of step must never be given to another query. So every answer repeats the
    query_id, a process that failed in any way is ended, and an answer is read within `ask`, before
    its process gets another query.
    The time is that of the program: from the line it is sent to the line it sends.
    """

    is_async = True

    def __init__(self, command: str, search: Search, fields: Fields) -> None:
        self._words = _checked(command)
        self.name = f"cmd:{shlex.join(safe_words(self._words))}"
        self._fields = fields
        self._search = handed(search, fields)
        self.takes = frozenset(self._search)
        self.settings = {"fields": fields.as_dict()} if fields.as_dict() else {}
        # Shows before anything is asked whether the paths of the fields can be filled.
        fields.request({"query": "", **self._search}, {})
        self._idle: list[Process] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._has_left_others = False

    async def open(self, jobs: int) -> None:  # noqa: ARG002
        """Start one process, to see that it can be; others follow as they are needed."""
        process = await self._start()
        if await process.is_gone(_GRACE):
            error = await process.ended()
            await process.finish()
            raise self._error(
                f"it ended before it was asked anything: {error.message}",
                "a retriever reads questions from its standard input until that ends",
            )
        self._idle.append(process)

    async def close(self) -> None:
        """End all processes."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*map(self._finish, idle), *self._ending)
        if self._has_left_others:
            raise AttemptError(
                "ProcessLeft",
                "a process that the command started still runs: look for it with ps, and end it",
            )

    async def ask(self, question: Question) -> Timed:
        """Put a question to a process that has nothing else to do."""
        process = self._free() or await self._start()
        values = {"query": question.text, **self._search}
        request = {"query_id": question.query_id, **self._fields.request(values, {})}
        try:
            heard = await process.exchange(msgspec.json.encode(request) + b"\n")
            answer = self._answer(heard.returned, question)
        except BaseException:
            self._discard(process)
            raise
        self._idle.append(process)
        return replace(heard, returned=answer)

    def read(self, returned: Any) -> Answer:
        """Return the answer, which was read already."""
        answer = returned.returned
        assert isinstance(answer, Answer)
        return answer

    def _answer(self, line: bytes, question: Question) -> Answer:
        try:
            held = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise AttemptError(
                "BadAnswer",
                f"{_shown(line)} came back, which is no JSON; only answers belong on the "
                "standard output",
            ) from error
        except RecursionError as error:
            problem = f"the answer is nested too deeply: {_shown(line)}"
            raise AttemptError("BadAnswer", problem, again=False) from error
        answered = held.get("query_id") if isinstance(held, dict) else None
        if answered is None:
            example = f'{{"query_id": {json.dumps(question.query_id)}, "results": […]}}'
            raise AttemptError(
                "BadAnswer",
                f"the answer has no query_id: {_shown(line)}; print one line per query, such as "
                f"{example}",
                again=False,
            )
        if str(answered) != question.query_id:
            raise AttemptError("BadAnswer", f"an answer to query {answered!r} came back")
        try:
            return answer_of(held, self._fields)
        except AttemptError as error:
            problem = f"{said(error.message)}; {_shown(line)} came back"
            raise AttemptError(said(error.kind), problem, again=error.again) from error

    def _free(self) -> Process | None:
        while self._idle:
            process = self._idle.pop()
            if process.is_ready:
                return process
            self._discard(process)
        return None

    def _discard(self, process: Process) -> None:
        process.kill()
        ending = asyncio.create_task(self._finish(process))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _finish(self, process: Process) -> None:
        await process.finish()
        self._has_left_others |= process.has_left_others

    async def _start(self) -> Process:
        try:
            return await Process.start(self._words)
        except OSError as error:
            hint = "does it begin with #! and the program that runs it?"
            raise self._error(f"it cannot be started: {error.strerror or error}", hint) from error

    def _error(self, problem: str, hint: str) -> InputError:
        return InputError(problem, field=self.name, hint=hint)


def _shown(line: bytes) -> str:
    return repr(said(line[:4000].decode(errors="replace")))


def _checked(command: str) -> list[str]:
    """Return the words of a command that can be found and run."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(
            f"the command cannot be read: {str(error).lower()}",
            field="cmd:",
            hint="close what is quoted; a quote that is meant as such stands after a backslash",
        ) from error
    if not words:
        raise InputError(
            "there is no command", field="cmd:", hint="write cmd:./retrieve, for example"
        )
    program = words[0]
    if shutil.which(program) is None:
        path = Path(program)
        if path.is_file() and path.parent == Path() and "/" not in program:
            problem, hint = "there is no such command", f"write cmd:./{program}"
        elif path.is_file():
            problem, hint = "the file may not be executed", f"chmod +x {shlex.quote(program)}"
        else:
            problem, hint = "there is no such command", "is it spelled right, and in PATH?"
        raise InputError(problem, field=f"cmd:{program}", hint=hint)
    return words
