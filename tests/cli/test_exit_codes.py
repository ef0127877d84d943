"""How a process ends: the exit code and what is on standard error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KARAT = [sys.executable, "-m", "karat"]
EVALUATION = ["eval", "gold.jsonl", "a.run", "--per-query"]
UNBUFFERED = {"buffered": [], "unbuffered": ["-u"]}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    queries = [f"q{number}" for number in range(9)]
    gold = "".join(f'{{"query_id": "{query}", "relevant": ["A"]}}\n' for query in queries)
    Path("gold.jsonl").write_text(gold)
    Path("a.run").write_text("".join(f"{query} Q0 A 1 0.9 t\n" for query in queries))
    Path("a.qrels").write_text("".join(f"{query} 0 A 1\n" for query in queries))


def finished(script: str) -> tuple[int, str]:
    """Run a script in Python; return its exit code and standard error."""
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=-1)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("error", [RuntimeError("a\x1b[2Jb" + "c" * 9_999), MemoryError()])
def test_unexpected_error_is_one_line_and_exit_code_2(command, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("karat.evaluation.evaluator.Evaluator", fail)
    code, out, err = command(*EVALUATION)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert len(err) < 500
    assert err[:-1].isprintable()
    with pytest.raises(type(error)):
        command("--debug", *EVALUATION)


@pytest.mark.parametrize(
    ("words", "has_option"), [(EVALUATION, True), (["fuse", "a.run", "a.run"], False)]
)
def test_option_to_use_less_memory_is_named_if_the_command_has_it(
    command, monkeypatch, words, has_option
):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("karat.cli.main.app.invoke", fail)
    code, _, err = command(*words)
    assert code == 2
    assert ("--memory" in err) == has_option


@pytest.mark.parametrize("flags", UNBUFFERED.values(), ids=UNBUFFERED)
@pytest.mark.parametrize("words", [EVALUATION, ["trec_eval", "a.qrels", "a.run"], ["--version"]])
def test_full_standard_output_is_exit_code_2(words, flags):
    with open("/dev/full", "w") as full:
        command = [sys.executable, *flags, "-m", "karat", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard output cannot be written (")
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


def test_closed_standard_output_changes_nothing_else():
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", *KARAT, *EVALUATION, "-o", "x.json"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("wrote x.json\n")
    assert Path("x.json").read_text().startswith("{")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (EVALUATION, 141),
        (["--help"], 141),
        (["trec_eval", "-h"], 141),
        (["gate", "gold.jsonl", "a.run", "--require", "P@5 >= 0.9"], 1),
    ],
)
def test_closed_pipe_is_silent(words, code):
    # Unbuffered, gate would meet the closed pipe before it has a result.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen([*KARAT, *words], stdout=-1, stderr=-1, env=env)
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, b"")


INTERRUPTED_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupt:
    def find_spec(self, name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["karat", *{words!r}]
from karat.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["click", "karat.cli.convert", "polars", "msgspec"])
def test_interrupted_import_is_exit_code_130(name):
    script = INTERRUPTED_IMPORT.format(name=name, words=EVALUATION)
    assert finished(script) == (130, "interrupted\n")


def test_interrupt_while_python_shuts_down_is_exit_code_130():
    script = INTERRUPTED_IMPORT.format(name=None, words=["--version"])
    stop = "import atexit\natexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
    assert finished(script.replace("class", stop + "class", 1)) == (130, "interrupted\n")
