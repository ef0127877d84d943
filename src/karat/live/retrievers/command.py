"""Command retrievers: programs that read one JSON line per query and print one JSON line.

What is in this file:

- `CommandRetriever` keeps one process per concurrent query alive, and parses the answers.
- `Process` is one running program: it sends a line, waits for the line that comes back, and ends
  the program with everything that it started.
"""

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
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search, TimedResponse
from karat.live.redaction import safe_command
from karat.live.retrievers.answers import Fields, first_line, parse_answer, settings_to_send

MAX_BYTES = 64 * 2**20
# How long the first process is observed: long enough for a program to refuse a mistyped option.
_STARTUP_SECONDS = 0.2
_EXIT_SECONDS = 0.7  # twice this must be less than loop_thread.STOP_TIMEOUT
_POLL_SECONDS = 0.005
_ID_VARIABLE = "KARAT_COMMAND_ID"
_KILL_ROUNDS = 3  # a process may start another one while its group is being killed
_ERROR_LINES = 3
_MAX_TEXT_LENGTH = 300


class CommandRetriever(Retriever):
    """A command, with as many processes as there are concurrent queries.

    An answer must never be attributed to another query. So each answer repeats the query_id, a
    process that failed in any way is ended, and `retrieve` parses the answer before the process
    gets another query.
    The latency is the time from the line that is sent to the line that comes back.
    """

    is_async = True

    def __init__(self, command: str, search: Search, fields: Fields) -> None:
        self._words = _parse_command(command)
        self.name = f"cmd:{shlex.join(safe_command(self._words))}"
        self._fields = fields
        self._search = settings_to_send(search, fields)
        self.accepts = frozenset(self._search)
        self.settings = {"fields": fields.as_dict()} if fields.as_dict() else {}
        # Raise the error for invalid paths of fields now, before the first query.
        fields.request({"query": "", **self._search}, {})
        self._idle: list[Process] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._has_left_processes = False

    async def open(self, jobs: int) -> None:  # noqa: ARG002
        """Start one process, to check that it starts; others are started when they are needed."""
        process = await self._start()
        if await process.wait_for_exit(_STARTUP_SECONDS):
            error = await process.exit_error()
            await process.finish()
            raise self._error(
                f"the command ended before the first query: {error.message}",
                "the program must read queries from its standard input until the input ends",
            )
        self._idle.append(process)

    async def close(self) -> None:
        """End all processes."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*map(self._finish, idle), *self._ending)
        if self._has_left_processes:
            raise AttemptError(
                "ProcessLeft",
                "a process that the command started is still running; find it with ps and end it",
            )

    async def retrieve(self, query: Query) -> TimedResponse:
        """Send a query to an idle process, and return its answer."""
        process = self._idle_process() or await self._start()
        values = {"query": query.text, **self._search}
        request = {"query_id": query.query_id, **self._fields.request(values, {})}
        try:
            reply = await process.exchange(msgspec.json.encode(request) + b"\n")
            answer = self._parse_line(reply.response, query)
        except BaseException:
            self._discard(process)
            raise
        self._idle.append(process)
        return replace(reply, response=answer)

    def parse(self, response: Any) -> Answer:
        """Return the answer, which `retrieve` has already parsed."""
        answer = response.response
        assert isinstance(answer, Answer)
        return answer

    def _parse_line(self, line: bytes, query: Query) -> Answer:
        try:
            content = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise AttemptError(
                "BadAnswer",
                f"the line is not JSON: {_quote_line(line)}; print only answers to the standard "
                "output",
            ) from error
        except RecursionError as error:
            problem = f"the answer is nested too deeply: {_quote_line(line)}"
            raise AttemptError("BadAnswer", problem, retryable=False) from error
        query_id = content.get("query_id") if isinstance(content, dict) else None
        if query_id is None:
            example = f'{{"query_id": {json.dumps(query.query_id)}, "results": […]}}'
            raise AttemptError(
                "BadAnswer",
                f"the answer has no query_id: {_quote_line(line)}; print one line per query, such "
                f"as {example}",
                retryable=False,
            )
        if str(query_id) != query.query_id:
            raise AttemptError(
                "BadAnswer",
                f"expected the answer to query {query.query_id!r}, got the answer to {query_id!r}",
            )
        try:
            return parse_answer(content, self._fields)
        except AttemptError as error:
            problem = f"{first_line(error.message)}; the answer was {_quote_line(line)}"
            raise AttemptError(
                first_line(error.kind), problem, retryable=error.retryable
            ) from error

    def _idle_process(self) -> Process | None:
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
        self._has_left_processes |= process.has_left_processes

    async def _start(self) -> Process:
        try:
            return await Process.start(self._words)
        except OSError as error:
            raise self._error(
                f"the command cannot be started: {error.strerror or error}",
                "a script must begin with #! and the path of its interpreter",
            ) from error

    def _error(self, problem: str, hint: str) -> InputError:
        return InputError(problem, field=self.name, hint=hint)


def _quote_line(line: bytes) -> str:
    return repr(first_line(line[:4000].decode(errors="replace")))


def _parse_command(command: str) -> list[str]:
    """Split a command into words; raise an error if its program is not found or executable."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(
            f"the command cannot be parsed: {str(error).lower()}",
            field="cmd:",
            hint="close all quotes; write a backslash before a quote that is part of a word",
        ) from error
    if not words:
        raise InputError("the command is empty", field="cmd:", hint="write cmd:./retrieve")
    program = words[0]
    if shutil.which(program) is not None:
        return words
    path = Path(program)
    if not path.is_file():
        problem, hint = "the command was not found", "check its spelling and PATH"
    elif path.parent == Path() and "/" not in program:
        problem, hint = "the command was not found in PATH", f"write cmd:./{program}"
    else:
        problem, hint = "the file is not executable", f"chmod +x {shlex.quote(program)}"
    raise InputError(problem, field=f"cmd:{program}", hint=hint)


class Process:
    """A running program that answers each line with one line.

    It has its own process group, so that everything it starts can be ended with it, and so that
    Ctrl-C only reaches karat, which then ends it in order. On Linux, processes that leave the group
    (setsid) are found by an environment variable that they inherit.
    """

    @classmethod
    async def start(cls, words: Sequence[str]) -> Process:
        """Start a program; raises OSError if that fails."""
        pipe = asyncio.subprocess.PIPE
        mark = secrets.token_hex(8)
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
            # Without PYTHONUNBUFFERED, Python would hold back answers until it has 8 KB.
            env={"PYTHONUNBUFFERED": "1", **os.environ, _ID_VARIABLE: mark},
        )
        return cls(process, mark)

    def __init__(self, process: asyncio.subprocess.Process, mark: str) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process = process
        self._mark = mark
        self.has_left_processes = False
        """Whether a process that it started is still running after `finish`."""
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._received = bytearray()
        self._has_line_or_ended = asyncio.Event()
        self._error_lines: deque[bytes] = deque(maxlen=_ERROR_LINES)
        # Both outputs are read all the time, because a full pipe would block the process.
        self._stdout_task = asyncio.create_task(self._read_stdout())
        self._stderr_task = asyncio.create_task(self._read_stderr())

    @property
    def is_ready(self) -> bool:
        """Whether it is running and has printed nothing since the last answer."""
        return self._process.returncode is None and not self._received

    async def exchange(self, line: bytes) -> TimedResponse:
        """Send a line and return the line that comes back."""
        start_ns = perf_counter_ns()
        with suppress(BrokenPipeError, ConnectionResetError):  # reported by exit_error below
            self._stdin.write(line)
            await self._stdin.drain()
        await self._has_line_or_ended.wait()
        end_ns = perf_counter_ns()
        answer, newline, rest = bytes(self._received).partition(b"\n")
        if len(answer) > MAX_BYTES:
            problem = f"the answer is larger than {MAX_BYTES // 2**20} MB"
            raise AttemptError("BadAnswer", problem, retryable=False)
        if not newline:
            raise await self.exit_error()
        if rest:
            first = repr(answer[:_MAX_TEXT_LENGTH].decode(errors="replace"))
            raise AttemptError(
                "BadAnswer",
                f"expected one line of JSON per query, got more than one line; the first is "
                f"{first}",
            )
        self._received.clear()
        self._has_line_or_ended.clear()
        return TimedResponse(answer, start_ns, end_ns)

    async def exit_error(self) -> AttemptError:
        """Return how the process ended, with the last lines of its standard error."""
        await self.wait_for_exit(_EXIT_SECONDS)
        await asyncio.wait([self._stderr_task], timeout=_EXIT_SECONDS)
        code = self._process.returncode
        if code is None:
            problem = "the process closed its output"
        elif code < 0:
            problem = f"the process was ended by {signal.Signals(-code).name}"
        else:
            problem = f"the process exited with code {code}"
        last_errors = self._format_errors()
        if last_errors:
            problem += f": {last_errors}"
        elif code == 0:
            problem += "; it must keep running and answer each line until its input ends"
        return AttemptError("ProcessEnded", problem)

    async def wait_for_exit(self, seconds: float) -> bool:
        """Wait for the end of the process, and return whether it has ended.

        `asyncio.subprocess.Process.wait` would also wait for every process that it started and
        that still has its output open.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._process.returncode is None:
                    await asyncio.sleep(_POLL_SECONDS)
        return self._process.returncode is not None

    def kill(self) -> None:
        """Kill the process and its group."""
        self._signal("SIGKILL")

    async def finish(self) -> None:
        """Close its input, then terminate it, then kill it, until it has ended."""
        try:
            self._stdin.close()
            if not await self.wait_for_exit(_EXIT_SECONDS):
                self._signal("SIGTERM")
                await self.wait_for_exit(_EXIT_SECONDS)
        finally:
            self.kill()
            await self.wait_for_exit(_EXIT_SECONDS)
            await asyncio.to_thread(_kill_marked, self._mark)
            # The output ends when no process has it open any more.
            await asyncio.wait([self._stdout_task], timeout=_EXIT_SECONDS / 10)
            self.has_left_processes = not self._stdout_task.done()
            for task in (self._stdout_task, self._stderr_task):
                task.cancel()
            # Only this closes pipes that a process outside the group still has open.
            self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001

    async def _read_stdout(self) -> None:
        while len(self._received) <= MAX_BYTES and (part := await self._stdout.read(2**16)):
            self._received += part
            if b"\n" in part:
                self._has_line_or_ended.set()
        self._has_line_or_ended.set()

    async def _read_stderr(self) -> None:
        rest = b""
        while part := await self._stderr.read(2**16):
            *lines, rest = (rest + part).split(b"\n")
            self._error_lines.extend(line for line in lines if line.strip())
            rest = rest[-_MAX_TEXT_LENGTH * 4 :]
        if rest.strip():
            self._error_lines.append(rest)

    def _format_errors(self) -> str:
        lines = (line.decode(errors="replace").strip() for line in self._error_lines)
        text = " | ".join(printable(line) for line in lines)
        return text if len(text) <= _MAX_TEXT_LENGTH else f"…{text[-_MAX_TEXT_LENGTH:]}"

    def _signal(self, name: str) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, getattr(signal, name))
            else:
                self._process.kill()


def _kill_marked(mark: str) -> None:
    """Kill the processes that have a mark in their environment."""
    for _ in range(_KILL_ROUNDS):
        process_ids = list(_processes_with_mark(mark))
        if not process_ids:
            return
        for process_id in process_ids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _processes_with_mark(mark: str) -> Iterator[int]:
    """Yield the ids of processes that have a mark in their environment; works only on Linux."""
    variable = f"{_ID_VARIABLE}={mark}".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        # A process may end at any time, and those of other users cannot be read.
        with suppress(OSError):
            if variable in environment.read_bytes().split(b"\0"):
                yield int(environment.parent.name)
