"""Completion of commands, options and their values; `karat` without a command."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from karat.cli.completion import (
    FORMATS,
    MEASURES,
    PRESETS,
    RETRIEVERS,
    SHELLS,
    VARIABLE,
    completions,
)
from karat.data.formats.registry import NAMES
from karat.live.retrievers.built_in import CLASSES
from karat.live.retrievers.search_engines.engine import FORMS
from karat.measures import REGISTRY, parse
from karat.measures.presets import PRESETS as DECLARED_PRESETS


def test_completed_values_are_those_that_exist():
    measures = [parse(name) for name in MEASURES.split()]
    assert {measure.declaration.name for measure in measures} == set(REGISTRY)
    names = [name.partition("@")[0] for name in MEASURES.split()]
    assert [measure.declaration.name for measure in measures] == names
    assert set(FORMATS) == set(NAMES)
    assert set(PRESETS) == set(DECLARED_PRESETS)
    names = {value.partition(":")[0] for value in RETRIEVERS}
    assert names == {*CLASSES, *FORMS, "http", "https", "cmd"}


@pytest.mark.parametrize(
    ("name", "metavar", "incomplete", "values"),
    [
        ("measures", "NAME", "judg", ["Judged@10"]),
        ("measures", "NAME", "RR, P@5,bpr", ["RR, P@5,Bpref"]),
        ("measure", "MEASURE", "bpr", ["Bpref"]),
        ("preset", "NAME", "co", ["coverage"]),
        ("run_format", "NAME", "p", ["parquet"]),
        ("matcher", "ratio|partial|tokens", "", ["ratio", "partial", "tokens"]),
        ("retriever", "SPEC", "de", ["dense:"]),
        ("topic", "TOPIC", "handbook/nd", ["handbook/ndcg"]),
        ("topic", "TOPIC", "exit", ["exit_codes"]),
        ("by", "FIELD", "", []),
        ("chunk_size", "N", "", []),
    ],
)
def test_values_that_begin_as_typed(name, metavar, incomplete, values):
    assert [item.value for item in completions(name, metavar, incomplete)] == values


@pytest.mark.parametrize(
    ("name", "metavar", "incomplete"),
    [
        ("gold", "GOLD", ""),
        ("runs", "RUN", "ru"),
        ("source", "A", ""),
        ("chunks", "FILE|RUN=FILE", ""),
        ("corpus", "DIR|FILE", ""),
        ("retriever", "SPEC", "bm25:do"),
    ],
)
def test_files_are_left_to_the_shell(name, metavar, incomplete):
    assert [item.type for item in completions(name, metavar, incomplete)] == ["file"]


COMPLETED_BY_BASH = {
    "karat expl": "explain",
    "karat eval gold.jsonl ": "compopt -o default",
    # bash replaces only what follows the last @ or =.
    "karat eval g r -m nDCG@10,jud": "10,Judged@10",
    "karat eval --direction=ei": "either",
    "karat run g -r bm2": "compopt -o nospace bm25:",
}
BASH = """
set -e
eval "$({python} -m karat completion bash)"
compopt() {{ echo "compopt $*"; }}
complete_line() {{
    COMP_LINE=$1 COMP_POINT=${{#1}} COMPREPLY=()
    _karat_completion {karat}
    echo "${{COMPREPLY[*]}}|"
}}
"""


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_completes(tmp_path):
    karat = tmp_path / "karat"
    karat.write_text(f'#!/bin/sh\nexec {sys.executable} -m karat "$@"\n')
    karat.chmod(0o700)
    script = BASH.format(python=sys.executable, karat=karat)
    script += "".join(f"complete_line '{line}'\n" for line in COMPLETED_BY_BASH)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    shown = [" ".join(part.split()) for part in done.stdout.split("|")[:-1]]
    assert dict(zip(COMPLETED_BY_BASH, shown, strict=True)) == COMPLETED_BY_BASH


def test_completion_does_not_import_what_is_slow():
    script = (
        "import sys; from karat.cli.main import main\ntry: main()\nfinally: print(*sys.modules)"
    )
    env = os.environ | {VARIABLE: "bash_complete", "COMP_LINE": "karat eval g r -m n"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
    assert "plain,nDCG@10" in done.stdout
    imported = done.stdout.split()
    assert all(find_spec(name) for name in ("numpy", "polars", "msgspec", "rich"))
    assert not {"numpy", "polars", "msgspec", "rich"} & set(imported)


@pytest.mark.parametrize("shell", SHELLS)
def test_script_of_each_shell_names_the_command(command, shell):
    code, out, _ = command("completion", shell)
    assert code == 0
    assert f"{VARIABLE}={shell}_complete" in out
    assert "karat" in out


def test_karat_alone_shows_what_to_do_next(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = command()
    assert (code, err) == (0, "")
    first, commands = out.split("Commands:\n")
    assert "karat demo" in first
    assert "karat eval GOLD RUN" in first
    assert "  compare " in commands


def test_karat_alone_shows_the_commands_of_a_project(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "karat.toml").write_text('gold = "gold.jsonl"\n')
    code, out, err = command()
    assert (code, err) == (0, "")
    first, _ = out.split("Commands:\n")
    assert "In this project (karat.toml)" in first
    assert "karat gate " in first
    assert "karat demo" not in first
