"""Run the retriever if one is named, then the gate, and write the files of the report.

Inputs of the action are environment variables: GOLD, RUN, RETRIEVER and so on. Without a run and a
retriever, the retriever of karat.toml is run. The step itself does not fail; its output `exit-code`
is that of karat, so that the steps after it can report.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from github_api import set_output

from karat.config import Config
from karat.errors import KaratError

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


def read_config() -> Config:
    """Return the settings of the project; if they are invalid, karat reports it when it starts."""
    path = os.environ.get("CONFIG", "")
    try:
        return Config.read(path) if path else Config.find()
    except KaratError:
        return Config()


def option(name: str, value: str) -> list[str]:
    """Return an option and its value as arguments, or nothing if the value is empty."""
    return [name, value] if value else []


def retriever_words(gold: str, retriever: str, run: str) -> list[str]:
    """Return the arguments that run a retriever; without a name, that of karat.toml."""
    words = ["run", *filter(None, [gold]), *option("--retriever", retriever)]
    words += ["-o", run, "--overwrite", *option("--config", os.environ.get("CONFIG", ""))]
    return [*words, *shlex.split(os.environ.get("RUN_ARGUMENTS", ""))]


def gate_words(gold: str, run: str, baseline: str, folder: Path) -> list[str]:
    """Return the arguments of the gate, with the files of the report."""
    words = ["gate", *filter(None, [gold, run])]
    for line in os.environ.get("THRESHOLDS", "").splitlines():
        words += ["--require", line.strip()] if line.strip() else []
    words += option("--baseline", baseline)
    words += option("--config", os.environ.get("CONFIG", ""))
    for name in ("gate.md", "gate.json", "gate.xml"):
        words += ["-o", str(folder / name)]
    if os.environ.get("REPORT") != "false":
        words += ["-o", str(folder / "report.html")]
    return [*words, *shlex.split(os.environ.get("ARGUMENTS", ""))]


def choose_baseline(run: str, folder: Path, config: Config) -> str:
    """Return the baseline; nothing if karat.toml names it, or names the run.

    Without any baseline, a threshold such as `max_drop 0.02` would end with an error, and a project
    could never get its first one. The run is then its own baseline.
    """
    if given := os.environ.get("BASELINE", ""):
        return given
    if not run:
        return ""
    if os.environ.get("BASELINE_RUN"):  # the artifact was found; fetching it may have failed
        stored = sorted(path for path in (folder.parent / "baseline").glob("*") if path.is_file())
        if stored:
            return str(stored[0])
    setting = config.settings.get("baseline")
    is_in_project = isinstance(setting, str) and Path(config.located(setting)).exists()
    return "" if is_in_project else run


def note_on_baseline(folder: Path) -> str:
    """Return a note for a run that was its own baseline, if a threshold compared with it."""
    verdict = json.loads((folder / "gate.json").read_text(encoding="utf-8"))
    if not any(gate.get("baseline") for gate in verdict["gates"]):
        return ""
    return (
        f"⚠️ No baseline of branch {os.environ.get('BASE_BRANCH', '')} was found, so thresholds "
        "with max_drop and max_rise compared this run with itself and could not fail."
    )


def main() -> None:
    """Run karat and set the outputs `exit-code`, `folder` and `run`."""
    folder = Path(os.environ["FOLDER"])
    shutil.rmtree(folder, ignore_errors=True)  # files of an earlier step of this job
    folder.mkdir(parents=True)
    gold, run, retriever = (os.environ.get(name, "") for name in ("GOLD", "RUN", "RETRIEVER"))
    config = read_config()
    code = 0
    if retriever or (not run and "spec" in config.settings.get("retriever", {})):
        run = run or str(folder / "run.jsonl")
        code = karat(retriever_words(gold, retriever, run), folder)
    if code == 0:
        baseline = choose_baseline(run, folder, config)
        code = karat(gate_words(gold, run, baseline, folder), folder)
        if baseline and baseline == run and code in (0, 1):
            (folder / "note.md").write_text(note_on_baseline(folder), encoding="utf-8")
    set_output("exit-code", str(code))
    set_output("run", str(Path(run).resolve()) if run else "")


if __name__ == "__main__":
    main()
