"""Kill a process that writes a journal at each of its system calls, one after the other.

This is a script that test_kill starts, since Python can fork safely only without other threads. For
each moment it forks a child that kills itself there, then finishes the run and checks the file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from karat.data.formats.json_lines import Header
from karat.data.formats.native_run import Failure, ResultRow
from karat.errors import InputError
from karat.live import journal as module
from karat.live.journal import Journal
from karat.live.protocol import JournalLine

QUERIES = [f"q{at}" for at in range(4)]
CALLS = ("open", "write", "fsync", "ftruncate", "replace", "unlink", "close")
module.SYNC_SECONDS = 600  # otherwise the order of the calls would change from run to run
os.fsync = lambda _: None  # a killed process loses nothing that the system has taken


def header(**settings: Any) -> Header:
    usual = {"top_k": 20, "jobs": 8, "queries": {"count": len(QUERIES)}}
    return Header(1, "run", "mine", settings=usual | settings)


def line(query: str) -> JournalLine:
    return JournalLine(query, [ResultRow(f"item of {query}", 0.5, text="x" * 50)], {"total": 1.5})


def bytes_of(*lines: JournalLine, **settings: Any) -> bytes:
    records = [header(**settings), *lines]
    return b"".join(module.msgspec.json.encode(record) + b"\n" for record in records)


FAILED = JournalLine("q1", [], error=Failure("Timeout"))
SCENARIOS: dict[str, tuple[bytes | None, Header, dict[str, bool]]] = {
    "new": (None, header(), {}),
    "torn": (bytes_of(line("q0"), line("q1"))[:-30], header(), {}),
    "no end": (bytes_of(line("q0"))[:-1], header(), {}),
    "torn header": (bytes_of()[:-10], header(), {}),
    "failed": (bytes_of(line("q0"), FAILED), header(), {}),
    "other jobs": (bytes_of(line("q0"), line("q1")), header(jobs=2), {}),
    "overwritten": (bytes_of(line("q0"), top_k=5), header(), {"overwrite": True}),
}


def write_all(
    path: Path, header: Header, options: dict[str, bool], finished: Callable[[str], None]
) -> None:
    """Write the line of each query that has none, and report it as finished."""
    with Journal.open(path, header, **options) as journal:
        for query in QUERIES:
            if query not in journal.done:
                journal.write(line(query))
                finished(query)


def die_at(at: int, moment: str) -> None:
    """Let this process kill itself before, within or after its n-th call."""
    count = 0

    def deadly(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += moment != "within" or name == "write"
            if count == at:
                if moment == "after":
                    with suppress(OSError):
                        call(*arguments, **options)
                elif moment == "within":
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return called

    for name in CALLS:
        setattr(os, name, deadly(getattr(os, name), name))


def in_child(work: Callable[[Callable[[str], None]], None]) -> tuple[bool, list[str]]:
    """Return whether a child was not killed, and the queries that it reported as finished."""
    reading, writing = os.pipe()
    write = os.write
    child = os.fork()
    if not child:
        try:
            work(lambda query: write(writing, query.encode() + b"\n") and None)
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    os.close(writing)
    with open(reading) as reports:
        finished = reports.read().split()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status == 0, finished


def query_ids(path: Path) -> list[str]:
    content = path.read_bytes()
    assert content.endswith(b"\n"), content
    first, *rest = map(json.loads, content.splitlines())
    assert first["kind"] == "run"
    assert all(record.get("results") or record["error"] for record in rest)
    return [record["query_id"] for record in rest]


def killed_at(path: Path, scenario: str, at: int, moment: str) -> bool:
    """Kill a child at a moment and finish its run; return whether it was killed at all."""
    content, header, options = SCENARIOS[scenario]
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)

    def begin(finished: Callable[[str], None]) -> None:
        die_at(at, moment)
        write_all(path, header, options, finished)

    ended, first = in_child(begin)
    second: list[str] = []
    try:
        write_all(path, header, {}, second.append)
    except InputError:
        # Either the run is complete, or the one that was to be overwritten is still there.
        if sorted(query_ids(path)) != QUERIES:
            assert scenario == "overwritten"
            assert path.read_bytes() == content
            write_all(path, header, options, second.append)
    assert set(first).isdisjoint(second), (first, second)
    assert sorted(query_ids(path)) == QUERIES, (first, second)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return not ended


def main(path: Path) -> None:
    for scenario in SCENARIOS:
        for moment in ("before", "within", "after"):
            at = 1
            while killed_at(path, scenario, at, moment):
                at += 1
            print(scenario, moment, at - 1, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
