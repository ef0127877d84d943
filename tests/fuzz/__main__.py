"""Run many inputs in worker processes, and count what happens to them.

    PYTHONPATH=src:tests python -m fuzz --count 1000 --seed 0
    PYTHONPATH=src:tests python -m fuzz --format csv --seed 17 --count 1     # one input, in full

Every input has a seed of its own: `--seed S --count N` are the seeds S to S+N-1 of each format.
A worker notes the input that it is about to read, so that the input that ends it is known.

The counts are: inputs tried, accepted and refused; numbers and tables checked; commands run;
and the faults: traceback, wrong (a table or a number), exit code, message (control characters, or
longer than 2,000 characters), warning (not one of karat's), noise (text on stderr that karat did
not write), abort, hang (20 seconds), memory (4 GB). Where only one of karat and the plain reader
accepts an input, it is counted as a disagreement, to be looked at by hand (lines with ~).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fuzz.checks import check, tally
from fuzz.inputs import FORMATS, build

HANG = 20.0
MEMORY = 4 << 30
COLUMNS = (
    *("tried", "accepted", "refused", "checked", "commands", "traceback", "wrong", "exit code"),
    *("message", "warning", "noise", "abort", "hang", "memory"),
    *("karat reads, plain refuses", "plain reads, karat refuses", "karat reads, PyArrow refuses"),
)


def main() -> int:
    options = parsed()
    formats = options.format or list(FORMATS)
    if options.worker is not None:
        work(formats[0], options.seed, options.count, Path(options.worker))
        return 0
    found = Path(options.found)
    found.mkdir(parents=True, exist_ok=True)
    if options.count == 1:
        return sum(show(name, options.seed, found) for name in formats)
    started = time.monotonic()
    counts: dict[str, Counter[str]] = {}
    failures: dict[str, list[Any]] = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        supervised = pool.map(lambda n: supervise(n, options.seed, options.count, found), formats)
        for name, (counts[name], rows) in zip(formats, supervised, strict=True):
            for row in rows:
                failures.setdefault(f"{name}: {row['kind']}: {row['what']}", []).append(row)
            print(summary(name, counts[name]), flush=True)
    seconds = time.monotonic() - started
    total = sum(counts.values(), Counter())
    print(summary("all", total), f"| {total['tried'] / seconds:.0f} inputs per second")
    report(failures, found, options.examples)
    return 1 if any(not key.split(": ")[1].startswith("~") for key in failures) else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--format", action="append", choices=FORMATS, help="repeat for several")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="inputs per format")
    parser.add_argument("--jobs", type=int, default=1, help="formats at the same time")
    parser.add_argument("--found", default="fuzz-found", help="folder for inputs that fail")
    parser.add_argument("--examples", type=int, default=1, help="failing inputs shown per kind")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def summary(name: str, counts: Counter[str]) -> str:
    return f"{name}: " + ", ".join(f"{counts[c]} {c}" for c in COLUMNS if counts[c])


def supervise(
    name: str, seed: int, count: int, found: Path
) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Run inputs in a worker; start another one where one aborts or hangs."""
    counts: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    at = seed
    while at < seed + count:
        with TemporaryDirectory() as folder:
            ended = watch(name, at, seed + count - at, Path(folder))
            note = json.loads((Path(folder) / "note").read_text() or "{}")
            rows += map(json.loads, (Path(folder) / "rows").read_text().splitlines())
            held = (Path(folder) / "counts").read_text().splitlines()
            counts += Counter(json.loads(held[-1])) if held else Counter()
        if ended is None:
            break
        if "seed" not in note:
            raise RuntimeError("the worker did not start")
        kind = "~oracle" if note.get("stage") == "plain" else ended
        counts[ended] += kind == ended
        counts["tried"] += 1
        rows.append(
            {"kind": kind, "what": note.get("stage"), "seed": note["seed"], "detail": ended}
        )
        save(name, note["seed"], found, ended)
        at = note["seed"] + 1
    return counts, rows


def watch(name: str, seed: int, count: int, folder: Path) -> str | None:
    """Run a worker to its end; return None, or how it was lost."""
    for file in ("note", "rows", "counts"):
        (folder / file).touch()
    words = [sys.executable, "-m", "fuzz", "--worker", str(folder), "--format", name]
    words += ["--seed", str(seed), "--count", str(count)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    worker = subprocess.Popen(words, cwd=folder, env=environment)
    while worker.poll() is None:
        time.sleep(0.1)
        if time.time() - (folder / "note").stat().st_mtime > HANG:
            worker.kill()
            worker.wait()
            return "hang"
    return None if worker.returncode == 0 else "abort"


def work(name: str, seed: int, count: int, folder: Path) -> None:
    """Read inputs one after the other, in a worker process."""
    import_module("scipy.special")  # which the limit could keep from being loaded later
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    noise = (folder / "noise").open("wb")
    os.dup2(noise.fileno(), 2)
    counts: Counter[str] = Counter()
    with (
        (folder / "note").open("w") as note,
        (folder / "rows").open("a", buffering=1) as rows,
        (folder / "counts").open("w", buffering=1) as tallies,
    ):
        for number in range(seed, seed + count):

            def stage(text: str, number: int = number) -> None:
                note.seek(0)
                note.truncate()
                note.write(json.dumps({"seed": number, "stage": text}))
                note.flush()

            stage("build")
            made = build(name, number)
            files = folder / "files"
            files.mkdir()
            outcome = check(made, files, stage)
            written = os.fstat(2).st_size
            if written:
                text = (folder / "noise").read_text("utf-8", "replace")[:500]
                outcome.fault("noise", "something else wrote to stderr", text)
                noise.truncate(0)
                os.lseek(2, 0, os.SEEK_SET)
            outcome.faults = [
                ("memory" if "MemoryError" in what else kind, what, detail)
                for kind, what, detail in outcome.faults
            ]
            tally(counts, outcome)
            tallies.seek(0)
            tallies.write(json.dumps(counts) + "\n")
            for kind, what, detail in outcome.faults:
                row = {"kind": kind, "what": what, "seed": number, "detail": detail}
                rows.write(json.dumps(row) + "\n")
            if outcome.disagreement is not None:
                kind, why = outcome.disagreement
                row = {"kind": f"~{kind}", "what": why, "seed": number, "detail": made.changes}
                rows.write(json.dumps(row) + "\n")
            shutil.rmtree(files)


def save(name: str, seed: int, found: Path, detail: str) -> Path:
    """Keep an input that fails, with what is wrong."""
    folder = found / f"{name}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    made = build(name, seed)
    made.write(folder)
    (folder / "WHY.txt").write_text(
        f"format {name}, seed {seed}, kind {made.kind}, read {made.main} as {made.named}\n"
        f"changes: {', '.join(made.changes)}\n{detail}\n"
    )
    return folder


def show(name: str, seed: int, found: Path) -> int:
    """Read one input in this process and print all about it."""
    made = build(name, seed)
    print(f"{name} {seed}: {made.kind}, {made.main} as {made.named}; {', '.join(made.changes)}")
    for file, content in made.files.items():
        print(f"--- {file}, {len(content)} bytes\n{content[:1500]!r}")
    with TemporaryDirectory() as folder:
        outcome = check(made, Path(folder))
    print(f"accepted: {outcome.accepted}, {outcome.checked} checked, {outcome.disagreement}")
    for kind, what, detail in outcome.faults:
        print(f"*** {kind}: {what}\n{detail}")
        save(name, seed, found, f"{kind}: {what}\n{detail}")
    return bool(outcome.faults)


def report(failures: dict[str, list[Any]], found: Path, examples: int) -> None:
    """Print every kind of failure with examples, and save these."""
    for key, rows in sorted(failures.items(), key=lambda pair: (": ~" in pair[0], -len(pair[1]))):
        seeds = ", ".join(str(row["seed"]) for row in rows[: max(examples, 3)])
        print(f"{len(rows):6} × {key} (seeds {seeds})")
        for row in rows[:examples]:
            if not row["kind"].startswith("~"):
                save(key.partition(":")[0], row["seed"], found, f"{key}\n{row['detail']}")


if __name__ == "__main__":
    sys.exit(main())
