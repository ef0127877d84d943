"""Run the retriever if one is named, then the gate, and write the files of the report.

Inputs of the action are environment variables: GOLD, RUN, RETRIEVER and so on. The step itself
does not fail; its output `exit-code` is that of karat, so that the steps after it can report.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from github_api import set_output

KARAT = [sys.executable, "-m", "karat"]
LAST_LINES = 30


def karat(words: list[str], folder: Path) -> int:
    """Run a command of karat. Its standard error is printed, and kept for the report."""
    print("$", shlex.join(["karat", *words]), flush=True)
    done = subprocess.run([*KARAT, *words], stderr=subprocess.PIPE, check=False)  # noqa: S603
    text = done.stderr.decode(errors="replace")
    print(text, end="", file=sys.stderr, flush=True)
    gate = folder / "gate.md"
    if done.returncode not in (0, 1) and not gate.exists():
        gate.write_text(failure(words, done.returncode, text), encoding="utf-8")
    return done.returncode


def failure(words: list[str], code: int, text: str) -> str:
    """Return a report in Markdown of a command that ended without a result."""
    lines = "\n".join(text.replace("\r", "\n").splitlines()[-LAST_LINES:])
    fence = "```"
    while fence in lines:
        fence += "`"
    title = f"**❌ karat {words[0]} ended with exit code {code}, so there is no result**"
    return f"{title}\n\n{fence}\n{lines}\n{fence}\n"


def retriever_words(gold: str, retriever: str, run: str) -> list[str]:
    """Return the arguments that run a retriever."""
    words = ["run", *([gold] if gold else []), "--retriever", retriever, "-o", run, "--overwrite"]
    return [*words, *shlex.split(os.environ.get("RUN_ARGUMENTS", ""))]


def gate_words(gold: str, run: str, baseline: str, folder: Path) -> list[str]:
    """Return the arguments of the gate, with the files of the report."""
    words = ["gate", *filter(None, [gold, run])]
    for line in os.environ.get("THRESHOLDS", "").splitlines():
        words += ["--require", line.strip()] if line.strip() else []
    words += ["--baseline", baseline] if baseline else []
    words += ["--config", os.environ["CONFIG"]] if os.environ.get("CONFIG") else []
    for name in ("gate.md", "gate.json", "gate.xml"):
        words += ["-o", str(folder / name)]
    if os.environ.get("REPORT") != "false":
        words += ["-o", str(folder / "report.html")]
    return [*words, *shlex.split(os.environ.get("ARGUMENTS", ""))]


def choose_baseline(run: str, folder: Path) -> tuple[str, str]:
    """Return the baseline, and a note for the report if it is not that of the base branch.

    Without any baseline, a threshold such as `max_drop 0.02` would end with an error, and a project
    could never get its first one. The run is then its own baseline.
    """
    if given := os.environ.get("BASELINE", ""):
        return given, ""
    if not run:
        return "", ""
    if os.environ.get("BASELINE_RUN"):  # the artifact was found; fetching it may have failed
        stored = sorted(path for path in (folder.parent / "baseline").glob("*") if path.is_file())
        if stored:
            return str(stored[0]), ""
    note = (
        f"⚠️ No baseline of branch {os.environ.get('BASE_BRANCH', '')} was found, so thresholds "
        "with max_drop and max_rise compared this run with itself and could not fail."
    )
    return run, note


def main() -> None:
    """Run karat and set the outputs `exit-code`, `folder` and `run`."""
    folder = Path(os.environ["FOLDER"])
    shutil.rmtree(folder, ignore_errors=True)  # files of an earlier step of this job
    folder.mkdir(parents=True)
    gold, run = os.environ.get("GOLD", ""), os.environ.get("RUN", "")
    code = 0
    if retriever := os.environ.get("RETRIEVER", ""):
        run = run or str(folder / "run.jsonl")
        code = karat(retriever_words(gold, retriever, run), folder)
    if code == 0:
        baseline, note = choose_baseline(run, folder)
        code = karat(gate_words(gold, run, baseline, folder), folder)
        (folder / "note.md").write_text(note, encoding="utf-8")
    set_output("exit-code", str(code))
    set_output("run", str(Path(run).resolve()) if run else "")


if __name__ == "__main__":
    main()
