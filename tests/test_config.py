"""Settings in karat.toml and pyproject.toml: which file is used, and what it may contain."""

from pathlib import Path

import pytest

import karat
from karat.config import Config
from karat.errors import ConventionError, InputError
from support.errors import refused

PYPROJECT = "pyproject.toml"


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    return tmp_path


def write_convention(file, word, section=""):
    Path(file).write_text(f'[{section}conventions]\nmissing = "{word}"\n')


def test_settings_are_empty_without_a_file(here):
    config = Config.find()
    assert (config.path, config.conventions, config.gate) == (None, {}, {})


def test_karat_toml_takes_precedence_over_pyproject_toml_of_the_same_folder(here):
    write_convention("pyproject.toml", "error", "tool.karat.")
    assert Config.find().conventions == {"missing": "error"}
    write_convention("karat.toml", "skip")
    assert Config.find() == Config("karat.toml", {"missing": "skip"})


def test_only_the_nearest_folder_counts(here):
    write_convention(here / "karat.toml", "skip")
    assert Config.find() == Config(str(here / "karat.toml"), {"missing": "skip"})
    Path("pyproject.toml").write_text('[tool.karat.conventions]\nunjudged = "skip"\n')
    assert Config.find().conventions == {"unjudged": "skip"}


@pytest.mark.parametrize("text", ["[tool.other]\nx = 1\n", "this is [[ no TOML", "", "tool = 3"])
def test_pyproject_toml_without_karat_is_ignored(here, text):
    write_convention(here / "karat.toml", "skip")
    Path("pyproject.toml").write_text(text)
    assert Config.find().path == str(here / "karat.toml")


def test_empty_karat_toml_counts_as_the_nearest_file(here):
    write_convention(here / "karat.toml", "skip")
    Path("karat.toml").write_text("")
    assert Config.find() == Config("karat.toml")


@pytest.mark.parametrize(
    ("name", "text", "kind", "line", "field", "value"),
    [
        ("karat.toml", "[gates]\n", InputError, None, "gates", "[gate]"),
        ("karat.toml", "[x]\n", InputError, None, "x", "[conventions]"),
        ("karat.toml", "gate = 3\n", InputError, None, "gate", "3"),
        ("karat.toml", "\n[gate]\nR@10 = 1\n", InputError, 3, None, "'='"),
        ("karat.toml", "[gate", InputError, 1, None, "']'"),
        (
            "karat.toml",
            "[conventions]\nmising = 'skip'",
            ConventionError,
            None,
            "conventions",
            "'missing'",
        ),
        (
            "karat.toml",
            "[conventions]\nmissing = 'x'",
            ConventionError,
            None,
            "conventions.missing",
            "'x'",
        ),
        (
            "karat.toml",
            "[conventions]\nmissing = 3",
            ConventionError,
            None,
            "conventions.missing",
            "3",
        ),
        (PYPROJECT, "[tool.karat.gates]\n", InputError, None, "tool.karat.gates", "karat.gate]"),
        (PYPROJECT, "[tool]\nkarat = 1\n", InputError, None, "tool.karat", "1"),
        (PYPROJECT, "tool = 'karat'\n", InputError, None, "tool", "'karat'"),
        (
            PYPROJECT,
            "[tool.karat.conventions]\nmissing = 'x'",
            ConventionError,
            None,
            "tool.karat.conventions.missing",
            "'x'",
        ),
    ],
)
def test_mistake_is_reported_with_file_line_and_key(here, name, text, kind, line, field, value):
    Path(name).write_text(text)
    with refused(kind, path=name, line=line, field=field) as error:
        Config.find()
    assert value in str(error.value)
    assert error.value.hint


def test_named_file_must_exist_and_configure_karat(here):
    with refused(path="ci.toml", line=None, field=None):
        Config.read("ci.toml")
    Path(PYPROJECT).write_text("[project]\nname = 'karat-less'\n")
    with refused(path=PYPROJECT, line=None, field=None):
        Config.read(PYPROJECT)
    Path("latin.toml").write_bytes(b"# caf\xe9\n")
    with refused(path="latin.toml", line=1, field="encoding") as error:
        Config.read("latin.toml")
    assert "0xe9" in str(error.value)


@pytest.fixture
def inputs(here):
    Path("gold.jsonl").write_text(
        '{"query_id": "q1", "relevant": ["a"]}\n{"query_id": "q2", "relevant": ["b"]}\n'
    )
    Path("one.run").write_text("q1 Q0 a 1 0.9 t\n")


def test_commands_that_score_use_conventions_of_the_file_and_name_it(command, inputs):
    write_convention("karat.toml", "skip")
    notice = "using the conventions in karat.toml: missing=skip\n"
    code, out, err = command("eval", "gold.jsonl", "one.run", "-m", "RR", "--json")
    assert (code, err) == (0, notice)
    assert '"missing": "skip"' in out
    code, out, err = command(
        "explain", "RR", "--gold", "gold.jsonl", "--run", "one.run", "--query", "q1"
    )
    assert (code, err) == (0, notice)
    assert "missing=skip" in out
    code, out, err = command("gate", "gold.jsonl", "one.run", "--require", "NumQ >= 1")
    assert code == 2  # one query is too few, since the other is skipped
    assert err.startswith(notice)


def test_flag_takes_precedence_over_the_file(command, inputs):
    write_convention("karat.toml", "error")
    code, out, err = command("eval", "gold.jsonl", "one.run", "-m", "RR", "--missing", "zero")
    assert code == 0
    assert "conventions" not in err
    assert "conventions" not in out


def test_file_takes_precedence_over_a_preset(command, inputs):
    Path("karat.toml").write_text('[conventions]\nduplicates = "first"\n')
    _, out, err = command("eval", "gold.jsonl", "one.run", "--preset", "benchmark")
    assert "duplicates" not in out
    assert err.startswith("using the conventions in karat.toml: duplicates=first\n")


def test_option_c_names_another_file(command, inputs):
    write_convention("karat.toml", "error")
    write_convention("other.toml", "skip")
    code, out, _ = command("eval", "gold.jsonl", "one.run", "-m", "RR", "-c", "other.toml")
    assert code == 0
    assert "conventions: missing=skip" in out


def test_evaluate_in_python_reads_no_configuration(inputs):
    write_convention("karat.toml", "error")
    assert karat.evaluate("gold.jsonl", "one.run", "RR")["RR"] == 0.5
