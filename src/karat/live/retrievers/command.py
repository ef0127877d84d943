"""A process that is kept alive and answers line by line."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shlex
import shutil
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import msgspec

from karat.errors import InputError, printable
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search, Timed
from karat.live.redaction import safe_words
from karat.live.retrievers.answers import Fields, answer_of, handed, said

MOST_BYTES = 64 * 2**20
_PATIENCE = 0.7  # twice this is less than a run that is interrupted waits for its end
_GLANCE = 0.005
_MARK = "KARAT_COMMAND_ID"
_ROUNDS = 3  # of looking for processes, which may start others meanwhile
_WORDS = 3
_LONGEST = 300


class Process:
    """A running command: a line in, a line out.

    It has a process group of its own, so that what it starts ends with it, and so that Ctrl-C is
    for karat alone, which then ends it in order. Processes that leave the group (setsid) are found
    by their environment, on Linux.
    """

    @classmethod
    async def start(cls, words: Sequence[str]) -> Process:
        """Start a command; OSError where that cannot be done."""
        pipe = asyncio.subprocess.PIPE
        mark = secrets.token_hex(8)
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
            # Python would keep an answer back until there are 8 KB of them.
            # The processes that it starts inherit the mark, by which they are found.
            env={"PYTHONUNBUFFERED": "1", **os.environ, _MARK: mark},
        )
        return cls(process, mark)

    def __init__(self, process: asyncio.subprocess.Process, mark: str) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process = process
        self._mark = mark
        self.has_left_others = False
        """Whether a process that it started still runs after `finish`, as far as can be seen."""
        self._in, self._out, self._errors = process.stdin, process.stdout, process.stderr
        self._heard = bytearray()
        self._news = asyncio.Event()
        self._last_words: deque[bytes] = deque(maxlen=_WORDS)
        # Both outputs are read all the time, or a full pipe would hold the process up.
        self._listening = asyncio.create_task(self._listen())
        self._overhearing = asyncio.create_task(self._overhear())

    @property
    def is_ready(self) -> bool:
        """Whether it still runs, and has said nothing that was not asked for."""
        return self._process.returncode is None and not self._heard

    async def exchange(self, line: bytes) -> Timed:
        """Say a line and return the one that comes back."""
        began = perf_counter_ns()
        with suppress(BrokenPipeError, ConnectionResetError):  # its end is told of below
            self._in.write(line)
            await self._in.drain()
        await self._news.wait()
        ended = perf_counter_ns()
        answer, newline, rest = bytes(self._heard).partition(b"\n")
        if len(answer) > MOST_BYTES:
            limit = f"the answer has more than {MOST_BYTES // 2**20} MB"
            raise AttemptError("BadAnswer", limit, again=False)
        if not newline:
            raise await self.ended()
        if rest:
            first = repr(answer[:_LONGEST].decode(errors="replace"))
            raise AttemptError(
                "BadAnswer",
                f"more than one line came back, first {first}; one JSON line a question is meant",
            )
        self._heard.clear()
        self._news.clear()
        return Timed(answer, began, ended)

    async def ended(self) -> AttemptError:
        """Say how it ended, with its last words."""
        await self.is_gone(_PATIENCE)
        await asyncio.wait([self._overhearing], timeout=_PATIENCE)
        code = self._process.returncode
        if code is None:
            how = "the process closed its output"
        elif code < 0:
            how = f"the process was ended by {signal.Signals(-code).name}"
        else:
            how = f"the process ended with code {code}"
        words = self._words()
        if words:
            how += f": {words}"
        elif code == 0:
            how += "; it is to answer line after line until its input ends"
        return AttemptError("ProcessEnded", how)

    async def is_gone(self, within: float) -> bool:
        """Wait so many seconds for its end.

        asyncio's own wait would go on for as long as anything that it started holds its output.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self._process.returncode is None:
                    await asyncio.sleep(_GLANCE)
        return self._process.returncode is not None

    def kill(self) -> None:
        """End it and all that it started, at once."""
        self._signal("SIGKILL")

    async def finish(self) -> None:
        """Let it end by itself, tell it to, and make it, in this order."""
        try:
            self._in.close()
            if not await self.is_gone(_PATIENCE):
                self._signal("SIGTERM")
                await self.is_gone(_PATIENCE)
        finally:
            self.kill()
            await self.is_gone(_PATIENCE)
            await asyncio.to_thread(_end_marked, self._mark)
            # Its output ends when nobody holds it open any more.
            await asyncio.wait([self._listening], timeout=_PATIENCE / 10)
            self.has_left_others = not self._listening.done()
            for task in (self._listening, self._overhearing):
                task.cancel()
            # Pipes that a process outside of the group holds open are let go by nothing else.
            self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001

    async def _listen(self) -> None:
        while len(self._heard) <= MOST_BYTES and (piece := await self._out.read(2**16)):
            self._heard += piece
            if b"\n" in piece:
                self._news.set()
        self._news.set()

    async def _overhear(self) -> None:
        rest = b""
        while piece := await self._errors.read(2**16):
            *lines, rest = (rest + piece).split(b"\n")
            self._last_words.extend(line for line in lines if line.strip())
            rest = rest[-_LONGEST * 4 :]
        if rest.strip():
            self._last_words.append(rest)

    def _words(self) -> str:
        lines = (line.decode(errors="replace").strip() for line in self._last_words)
        text = " | ".join(printable(line) for line in lines)
        return text if len(text) <= _LONGEST else f"…{text[-_LONGEST:]}"

    def _signal(self, name: str) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, getattr(signal, name))
            else:
                self._process.kill()


def _end_marked(mark: str) -> None:
    """End the processes that have a mark in their environment."""
    for _ in range(_ROUNDS):
        marked = list(_marked(mark))
        if not marked:
            return
        for process_id in marked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(_GLANCE)


def _marked(mark: str) -> Iterator[int]:
    """Yield the processes that have a mark in their environment, which only Linux shows."""
    variable = f"{_MARK}={mark}".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        # A process may end at any time, and those of other users cannot be read.
        with suppress(OSError):
            if variable in environment.read_bytes().split(b"\0"):
                yield int(environment.parent.name)


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

    async def ask(self, question: Query) -> Timed:
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

    def _answer(self, line: bytes, question: Query) -> Answer:
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
