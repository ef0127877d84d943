"""Settings in karat.toml and pyproject.toml: which file counts, what it may say, who obeys it."""

from pathlib import Path

import pytest

import karat
from karat.config import Config
from karat.errors import InputError


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    return tmp_path


def words(file, word, section=""):
    Path(file).write_text(f'[{section}conventions]\nmissing = "{word}"\n')


def test_without_a_file_nothing_is_said(here):
    found = Config.find()
    assert (found.path, found.conventions, found.gate) == (None, {}, {})


def test_karat_toml_goes_before_pyproject_toml_of_the_same_folder(here):
    words("pyproject.toml", "error", "tool.karat.")
    assert Config.find().conventions == {"missing": "error"}
    words("karat.toml", "skip")
    assert Config.find() == Config("karat.toml", {"missing": "skip"})


def test_the_nearest_folder_counts_and_others_are_not_mixed_in(here):
    words(here / "karat.toml", "skip")
    assert Config.find() == Config(str(here / "karat.toml"), {"missing": "skip"})
    Path("pyproject.toml").write_text('[tool.karat.conventions]\nunjudged = "skip"\n')
    assert Config.find().conventions == {"unjudged": "skip"}


@pytest.mark.parametrize("text", ["[tool.other]\nx = 1\n", "this is [[ no TOML", "", "tool = 3"])
def test_a_pyproject_that_does_not_speak_of_karat_is_passed_over(here, text):
    words(here / "karat.toml", "skip")
    Path("pyproject.toml").write_text(text)
    assert Config.find().path == str(here / "karat.toml")


def test_an_empty_karat_toml_is_the_nearest_file_all_the_same(here):
    words(here / "karat.toml", "skip")
    Path("karat.toml").write_text("")
    assert Config.find() == Config("karat.toml")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("karat.toml", "[gates]\n", "karat.toml: gates: karat has no such setting"),
        ("karat.toml", "[gates]\n", "did you mean [gate]?"),
        ("karat.toml", "[x]\n", "there are [conventions] and [gate]"),
        ("karat.toml", "gate = 3\n", "karat.toml: gate: 3 is no table\n  hint: write [gate]"),
        ("karat.toml", "\n[gate]\nR@10 = 1\n", "karat.toml:3: this is no TOML: expected '='"),
        ("karat.toml", "[gate]\nR@10 = 1\n", 'hint: names of measures stand in quotes: "nDCG@10"'),
        ("karat.toml", "[gate", "karat.toml:1: this is no TOML"),
        ("karat.toml", '[conventions]\nmising = "skip"', "karat.toml: conventions: there is no"),
        ("karat.toml", '[conventions]\nmising = "skip"', "did you mean 'missing'?"),
        ("karat.toml", '[conventions]\nmissing = "x"', "karat.toml: conventions.missing: 'x' is"),
        ("karat.toml", "[conventions]\nmissing = 3", "conventions.missing: 3 is not a convention"),
        ("pyproject.toml", "[tool.karat.gates]\n", "did you mean [tool.karat.gate]?"),
        ("pyproject.toml", "[tool]\nkarat = 1\n", "pyproject.toml: tool.karat: 1 is no table"),
        ("pyproject.toml", "tool = 'karat'\n", "pyproject.toml: tool: 'karat' is no table"),
        (
            "pyproject.toml",
            "[tool.karat.conventions]\nmissing = 'x'",
            "pyproject.toml: tool.karat.conventions.missing: 'x' is not a convention",
        ),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(here, name, text, said):
    Path(name).write_text(text)
    with pytest.raises(InputError) as error:
        Config.find()
    assert said in str(error.value)


def test_a_file_that_is_named_must_be_there_and_speak_of_karat(here):
    with pytest.raises(InputError, match=r"ci.toml: there is no such file"):
        Config.read("ci.toml")
    Path("pyproject.toml").write_text("[project]\nname = 'karat-less'\n")
    with pytest.raises(InputError, match=r"pyproject.toml: there is no \[tool.karat\] in it"):
        Config.read("pyproject.toml")
    Path("latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(InputError, match=r"latin.toml:1: encoding: byte 0xe9"):
        Config.read("latin.toml")


@pytest.fixture
def inputs(here):
    Path("gold.jsonl").write_text(
        '{"query_id": "q1", "relevant": ["a"]}\n{"query_id": "q2", "relevant": ["b"]}\n'
    )
    Path("one.run").write_text("q1 Q0 a 1 0.9 t\n")


def test_every_command_that_scores_obeys_conventions_and_says_where_they_are_from(command, inputs):
    words("karat.toml", "skip")
    said = "conventions of karat.toml: missing=skip\n"
    code, out, err = command("eval", "gold.jsonl", "one.run", "-m", "RR", "--json")
    assert (code, err) == (0, said)
    assert '"missing": "skip"' in out
    code, out, err = command(
        "explain", "RR", "--gold", "gold.jsonl", "--run", "one.run", "--query", "q1"
    )
    assert (code, err) == (0, said)
    assert "missing=skip" in out
    code, out, err = command("gate", "gold.jsonl", "one.run", "--require", "NumQ >= 1")
    assert code == 2  # one query is too few, since the other is skipped
    assert err.startswith(said)


def test_a_flag_goes_before_the_file(command, inputs):
    words("karat.toml", "error")
    code, out, err = command("eval", "gold.jsonl", "one.run", "-m", "RR", "--missing", "zero")
    assert code == 0
    assert "conventions" not in err
    assert "conventions" not in out


def test_a_word_of_the_file_goes_before_that_of_a_preset(command, inputs):
    Path("karat.toml").write_text('[conventions]\nduplicates = "first"\n')
    _, out, err = command("eval", "gold.jsonl", "one.run", "--preset", "benchmark")
    assert "duplicates" not in out
    assert err.startswith("conventions of karat.toml: duplicates=first\n")


def test_c_names_another_file(command, inputs):
    words("karat.toml", "error")
    words("other.toml", "skip")
    code, out, _ = command("eval", "gold.jsonl", "one.run", "-m", "RR", "-c", "other.toml")
    assert code == 0
    assert "conventions: missing=skip" in out


def test_python_reads_no_file_to_evaluate(inputs):
    words("karat.toml", "error")
    assert karat.evaluate("gold.jsonl", "one.run", "RR")["RR"] == 0.5
