"""Stop runs that hang by a signal, each in a process of its own.

This is a script that test_runner_stops starts. It gets cases as JSON, forks one process per case,
sends it the signal once its first query is finished, and prints exit code, further output and error
output of each. Forking is much faster than starting Python and importing karat for each case.
"""

import asyncio
import gc
import json
import os
import signal
import sys
import time
import warnings
from contextlib import suppress

from karat.live import loop_thread, workers
from support.fake_retrievers import run_queries

HANGING = 60  # seconds after which a process that hangs is killed


def in_thread(text):
    if text != "a":
        time.sleep(3600)
    return [text]


async def in_task(text):
    if text != "a":
        await asyncio.sleep(3600)
    return [text]


async def blocking(text):
    return in_thread(text)


async def deaf(text):
    while text != "a":
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
    return [text]


RETRIEVERS = {"in_thread": in_thread, "in_task": in_task, "blocking": blocking, "deaf": deaf}


def run(kind):
    jobs = 1 if kind == "blocking" else 3  # with more jobs it would block the first query too
    if kind == "blocking":
        loop_thread.STOP_TIMEOUT = 0.5  # nothing can end while the loop is blocked
    if kind == "deaf":
        workers.CANCEL_TIMEOUT = 0.2
    run_queries(
        RETRIEVERS[kind],
        "abcdef",
        jobs=jobs,
        done=lambda line: print(line.query_id, flush=True),
    )


async def run_within_a_loop(kind):
    run(kind)


def fork():
    """Fork; return id, output and error output of the child, and None within the child."""
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libraries may have started threads that do nothing
        child = os.fork()
    if child:
        os.close(out_end)
        os.close(err_end)
        return child, open(out), open(err)
    os.dup2(out_end, 1)
    os.dup2(err_end, 2)
    for descriptor in (out, out_end, err, err_end):
        os.close(descriptor)
    return None


def stop(process, number):
    """Send the signal after the first line; return exit code, further output and error output."""
    child, out, err = process
    with out, err:
        if out.readline() == "q-a\n":
            os.kill(child, number)
        rest, errors = out.read(), err.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), rest, errors


def main(cases):
    gc.freeze()  # what was imported need not be collected at the end of each process
    results = []
    for kind, number, is_looped in cases:
        process = fork()
        if process is not None:
            results.append(stop(process, number))
            continue
        signal.alarm(HANGING)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have ignored it
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        if is_looped:
            asyncio.run(run_within_a_loop(kind))
        else:
            run(kind)
        return
    print(json.dumps(results))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
