"""A configured project: karat.toml supplies the arguments and options that were not given."""

import json
from pathlib import Path

import pytest

import karat
from karat.cli import project
from karat.cli.main import app
from karat.config import Config
from support.errors import refused

GOLD = [{"query_id": f"q{n}", "query": f"word {n}", "relevant": [f"d{n}"]} for n in range(6)]
RETRIEVER = """\
def search(query, top_k):
    return [f"d{query.split()[1]}", "x"][:top_k]
"""


def run(rank):
    """Return a run with the relevant item at a rank."""
    return {f"q{n}": [*(f"x{at}" for at in range(1, rank)), f"d{n}"] for n in range(6)}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    karat.Gold.of(GOLD).write("gold.jsonl")
    karat.Run.of(run(1), name="best").write("best.jsonl")
    karat.Run.of(run(2), name="second").write("second.jsonl")
    return tmp_path


def configure(text, path="karat.toml"):
    Path(path).write_text(text)


def used(err):
    """Return the settings that a command took from the file, as one text."""
    first = err.splitlines()[0]
    assert first.startswith("using the settings in ")
    return first.partition(": ")[2]


def measures_of(out):
    return {run["name"]: list(run["measures"]) for run in json.loads(out)["runs"]}


TWO_RUNS = 'gold = "gold.jsonl"\nruns = ["best.jsonl", "second.jsonl"]\nmeasures = ["RR", "P@1"]\n'
ONE_RUN = 'gold = "gold.jsonl"\nruns = "second.jsonl"\nmeasures = "RR"\n'


def test_eval_and_compare_without_arguments_use_the_project(command, here):
    configure(TWO_RUNS)
    code, out, err = command("eval", "--json")
    assert code == 0
    assert measures_of(out) == {"best": ["RR", "P@1"], "second": ["RR", "P@1"]}
    assert used(err) == "gold=gold.jsonl, runs=best.jsonl,second.jsonl, measures=RR,P@1"
    code, out, _ = command("compare", "--json")
    assert code == 0
    assert [run["name"] for run in json.loads(out)["runs"]] == ["best", "second"]


def test_gate_without_arguments_uses_the_project(command, here):
    configure(ONE_RUN + '[gate]\nRR = ">= 0.4"\n')
    code, out, err = command("gate", "--json")
    assert code == 0
    assert json.loads(out)["gates"][0]["run"] == "second"
    assert "gold=gold.jsonl, runs=second.jsonl" in used(err)
    configure(ONE_RUN + '[gate]\nRR = ">= 0.6"\n')
    assert command("gate")[0] == 1


def test_run_without_arguments_uses_the_project_and_makes_the_run_of_the_others(command, here):
    (here / "project_search.py").write_text(RETRIEVER)
    configure(
        'gold = "gold.jsonl"\n[retriever]\nspec = "project_search:search"\ntop_k = 1\n'
        'output = "run.jsonl"\n[gate]\n"RR" = ">= 1"\n'
    )
    code, _, err = command("run", "--no-progress")
    assert code == 0
    assert used(err) == "gold=gold.jsonl, spec=project_search:search, top_k=1, output=run.jsonl"
    assert err.splitlines()[-1] == "next: karat eval"
    code, out, _ = command("eval", "-m", "RR,NumRet", "--json")
    measures = json.loads(out)["runs"][0]["measures"]
    assert (measures["RR"]["value"], measures["NumRet"]["value"]) == (1.0, 6.0)
    assert command("gate")[0] == 0


def test_zero_in_the_file_is_used_and_shown(command, here):
    rows = ["short", f"short {'filler ' * 50}"]
    lines = [json.dumps({"doc_id": f"d{n}", "text": text}) for n, text in enumerate(rows)]
    (here / "docs.jsonl").write_text("\n".join(lines))
    configure('[retriever]\nspec = "bm25:docs.jsonl"\noutput = "run.jsonl"\nb = 0\n')
    code, _, err = command("run", "gold.jsonl", "--no-progress")
    assert code == 0, err
    assert used(err) == "spec=bm25:docs.jsonl, b=0.0, output=run.jsonl"
    assert karat.Run.read("run.jsonl").settings["b"] == 0


def test_command_line_takes_precedence_over_the_file(command, here):
    configure(TWO_RUNS + "top_k = 1\n")
    code, out, err = command("eval", "second.jsonl", "-m", "RR", "--top-k", "2", "--json")
    assert code == 0
    document = json.loads(out)
    assert measures_of(out) == {"second": ["RR"]}
    assert document["runs"][0]["measures"]["RR"]["value"] == 0.5
    assert used(err) == "gold=gold.jsonl"


def test_karat_toml_takes_precedence_over_pyproject_toml(command, here):
    configure('[tool.karat]\ngold = "gold.jsonl"\nruns = "best.jsonl"\n', "pyproject.toml")
    _, out, err = command("eval", "-m", "RR", "--json")
    assert list(measures_of(out)) == ["best"]
    assert err.startswith("using the settings in pyproject.toml: ")
    configure(ONE_RUN)
    _, out, _ = command("eval", "--json")
    assert list(measures_of(out)) == ["second"]


def test_paths_are_relative_to_the_file(command, here, monkeypatch):
    configure(ONE_RUN + "[gate]\nRR = '>= 0.4'\n")
    (here / "inner").mkdir()
    monkeypatch.chdir(here / "inner")
    code, _, err = command("gate")
    assert code == 0
    assert str(here / "gold.jsonl") in err
    code, _, err = command("eval", "../best.jsonl", "-m", "RR")
    assert code == 0


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["best.jsonl"], ["best"]),
        (["gold.jsonl"], ["best", "second"]),
        (["gold.jsonl", "best.jsonl"], ["best"]),
        (["second.jsonl", "best.jsonl"], ["second", "best"]),
        (["other.qrels"], ["best", "second"]),
        (["best.run"], ["best"]),
    ],
)
def test_first_file_is_gold_only_if_it_contains_gold(command, here, words, names):
    configure(TWO_RUNS)
    Path("other.qrels").write_text("q1 0 d1 1\n")
    Path("best.run").write_text("q1 Q0 d1 1 1.0 best\n")
    code, out, _ = command("eval", *words, "--json")
    assert code == 0
    assert list(measures_of(out)) == names


def test_compare_adds_the_baseline_of_the_project(command, here):
    configure(ONE_RUN + 'baseline = "main.parquet"\n')
    karat.evaluate("gold.jsonl", karat.Run.of(run(1), name="second"), "RR").write("main.parquet")
    code, out, _ = command("compare", "--json")
    document = json.loads(out)
    assert code == 0
    assert [run["name"] for run in document["runs"]] == ["second (main)", "second"]
    assert document["baseline"] == "second (main)"
    code, out, _ = command("compare", "best.jsonl", "--json")
    assert [run["name"] for run in json.loads(out)["runs"]] == ["second", "best"]
    code, out, err = command("compare", "best.jsonl", "second.jsonl", "--json")
    assert [run["name"] for run in json.loads(out)["runs"]] == ["best", "second"]
    assert "baseline" not in used(err)


def test_explain_validate_and_locate_use_the_project(command, here):
    configure(ONE_RUN + 'corpus = "docs"\n')
    (here / "docs").mkdir()
    (here / "docs" / "d.md").write_text("Some text about refunds.")
    _, out, err = command("explain", "RR", "--query", "q1")
    assert "RR of query q1 = 0.5000" in out
    assert used(err) == "gold=gold.jsonl, runs=second.jsonl, corpus=docs"
    code, _, err = command("explain", "RR")
    assert (code, "gold=" in err) == (0, False)
    _, _, err = command("validate")
    assert "gold=gold.jsonl" in used(err)
    assert "runs=second.jsonl" in used(err)
    Path("second.jsonl").unlink()
    assert "runs" not in used(command("validate")[2])
    karat.Gold.of([{"query_id": "q1", "evidence": ["about refunds"]}]).write("gold.jsonl")
    code, out, _ = command("locate")
    assert code == 0


def test_suggested_commands_leave_out_what_the_project_sets(command, here):
    configure(TWO_RUNS)
    assert command("eval")[2].splitlines()[-1] == "next: karat compare"
    last = command("compare")[2].splitlines()[-1]
    assert last == "next: karat explain RR --run best.jsonl --other second.jsonl --query q0"
    assert command(*last.split()[2:])[0] == 0
    configure(ONE_RUN + "[gate]\nRR = '>= 0.9'\n", "own.toml")
    for words in (["eval", "-c", "own.toml"], ["gate", "-c", "own.toml"]):
        last = command(*words)[2].splitlines()[-1]
        assert last == "next: karat explain RR --query q0 --config own.toml"
        assert command(*last.split()[2:])[0] == 0
    last = command("eval", "second.jsonl", "-m", "RR")[2].splitlines()[-1]
    assert last == "next: karat explain RR --run second.jsonl --query q0"


def test_option_equal_to_the_default_is_repeated_if_the_project_sets_another(command, here):
    configure(ONE_RUN + 'level = "doc"\n')
    last = command("eval", "--level", "item")[2].splitlines()[-1]
    assert last == "next: karat explain RR --query q0 --level item"


def test_tables_of_pairs_and_json_become_options(command, here):
    configure(
        'gold = "gold.jsonl"\n[columns]\nquery = "question"\n[retriever]\n'
        'spec = "http://127.0.0.1:9/search"\noutput = "run.jsonl"\nretries = 0\ntimeout = 2\n'
        'fields = { query = "q", results = "hits" }\nbody = { index = "faq" }\n'
        '[retriever.headers]\nAuthorization = "env:ABSENT_KEY"\nX-Team = "secret-team"\n'
    )
    code, _, err = command("run", "--no-progress")
    assert code == 2
    first = err.splitlines()[0]
    assert "columns=query" in first
    assert "fields=query,results" in first
    assert "headers=Authorization,X-Team" in first
    assert "body=…" in first
    assert "secret-team" not in err
    assert "ABSENT_KEY" in err  # the variable is not set


def test_retriever_is_imported_from_the_folder_of_the_file(command, tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    karat.Gold.of(GOLD).write(tmp_path / "gold.jsonl")
    (tmp_path / "outer_search.py").write_text(RETRIEVER)
    (tmp_path / "karat.toml").write_text(
        'gold = "gold.jsonl"\n[retriever]\nspec = "outer_search:search"\noutput = "run.jsonl"\n'
    )
    monkeypatch.chdir(tmp_path / "inner")
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    assert command("run", "--no-progress")[0] == 0
    assert (tmp_path / "run.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "field", "hint"),
    [
        ('gol = "gold.jsonl"\n', "gol", "'gold'"),
        ('measure = "RR"\n', "measure", "'measures'"),
        ("jobs = 4\n", "jobs", "[retriever]"),
        ('[retriever]\nspecc = "a:b"\n', "retriever.specc", "'spec'"),
        ('[retriever]\ngold = "g"\n', "retriever.gold", None),
        ("[retrievr]\n", "retrievr", "[retriever]"),
        ("gold = 3\n", "gold", None),
        ("runs = [1]\n", "runs", None),
        ("top_k = '5'\n", "top_k", None),
        ("top_k = true\n", "top_k", None),
        ("score_threshold = 'x'\n", "score_threshold", None),
        ("casefold = 1\n", "casefold", None),
        ("retriever = 'a:b'\n", "retriever", "[retriever]"),
        ("[retriever]\nheaders = 5\n", "retriever.headers", None),
        ("[retriever]\nheaders = { A = ['secret'] }\n", "retriever.headers", None),
        ("[columns]\nquery = []\n", "columns", None),
    ],
)
@pytest.mark.parametrize("section", ["", "tool.karat"])
def test_wrong_setting_is_an_error_that_names_file_and_field(
    here, text, field, hint, section, monkeypatch
):
    path = "karat.toml"
    if section:
        path = "pyproject.toml"
        text = text.replace("[retriev", "[tool.karat.retriev").replace("[col", "[tool.karat.col")
        text = text if text.startswith("[") else f"[tool.karat]\n{text}"
        field = f"tool.karat.{field}"
    configure(text, path)
    with refused(path=path, line=None, field=field) as error:
        app.main(["eval"], standalone_mode=False)
    assert "secret" not in str(error.value)
    if hint:
        assert hint.replace("[retriever]", "retriever]") in error.value.hint


RETRIEVER_TABLE = '[retriever]\nspec = "project_search:search"\noutput = "run.jsonl"\n'


@pytest.mark.parametrize(
    ("name", "text", "field", "line", "marked"),
    [
        ("compare", 'measures = ["RR", "nDGC@10"]', "measures", 3, "nDGC@10"),
        ("eval", 'measures = [\n  "RR",\n  "R@0",\n]', "measures", 5, "0"),
        ("compare", 'preset = "coverge"', "preset", 3, "coverge"),
        ("gate", 'preset = "coverge"', "preset", 3, "coverge"),
        ("eval", 'by = "tpe"', "by", 3, "tpe"),
        ("eval", "top_k = 0", "top_k", 3, "0"),
        ("eval", 'run_format = "jsonl"\ngold_format = "trek"', "gold_format", 4, "trek"),
        ("eval", 'run_format = "trek"\ngold_format = "jsonl"', "run_format", 3, "trek"),
        ("eval", 'columns = { query = "topic text" }', "columns.query", 3, "topic text"),
        ("eval", '[columns]\nquery = "topic text"', "columns.query", 4, "topic text"),
        ("run", RETRIEVER_TABLE + "jobs = 0", "retriever.jobs", 6, "0"),
        ("run", RETRIEVER_TABLE + 'fields = { idd = "x" }', "retriever.fields.idd", 6, "idd"),
    ],
)
@pytest.mark.parametrize("section", ["", "tool.karat"])
def test_wrong_value_of_a_setting_is_shown_in_the_file(
    command, here, name, text, field, line, marked, section
):
    (here / "project_search.py").write_text(RETRIEVER)
    runs = "second.jsonl" if name == "gate" else ["best.jsonl", "second.jsonl"]
    text = f'gold = "gold.jsonl"\nruns = {json.dumps(runs)}\n{text}\n'
    text += "" if section or name != "gate" else "[gate]\nRR = '>= 0.4'\n"
    path = "karat.toml"
    if section:
        path, line, field = "pyproject.toml", line + 1, f"tool.karat.{field}"
        tables = text.replace("[retriev", "[tool.karat.retriev").replace("[col", "[tool.karat.col")
        text = f"[tool.karat]\n{tables}"
    configure(text, path)
    code, _, err = command(name)
    shown = [each for each in err.splitlines() if not each.startswith("using ")]
    assert code == 2
    assert shown[0].startswith(f"error: {path}: {field}: ")
    assert shown[1].startswith(f"  {line} | ")
    assert [m for c, m in zip(shown[2], shown[1], strict=False) if c == "^"] == list(marked)


def test_wrong_value_of_the_command_line_is_not_blamed_on_the_file(command, here):
    configure(ONE_RUN + 'run_format = "jsonl"\ntop_k = 3\n')
    for words in (["-m", "nDGC"], ["--top-k", "0"], ["--gold-format", "trek"]):
        code, _, err = command("eval", *words)
        assert (code, "error: karat.toml" in err) == (2, False)


@pytest.mark.parametrize("name", ["eval", "gate", "explain RR --query q1"])
def test_missing_output_of_the_retriever_is_an_error_that_names_karat_run(command, here, name):
    configure(f"gold = 'gold.jsonl'\n{RETRIEVER_TABLE}[gate]\nRR = '>= 1'\n", "own.toml")
    code, _, err = command(*name.split(), "-c", "own.toml")
    assert code == 2
    assert "error: run.jsonl: file not found" in err
    assert err.endswith("\n  hint: run `karat run --config own.toml` to write it\n")
    _, _, err = command("eval", "second.jsom", "-c", "own.toml")
    assert err.endswith("\n  hint: did you mean second.jsonl?\n")


def test_error_report_of_a_gate_names_karat_run_too(command, here):
    configure(f"gold = 'gold.jsonl'\n{RETRIEVER_TABLE}[gate]\nRR = '>= 1'\n")
    command("gate", "-o", "gate.md")
    assert "run `karat run` to write it" in Path("gate.md").read_text()


def test_compare_with_a_single_run_shows_where_to_add_another(command, here):
    configure(ONE_RUN)
    code, _, err = command("compare")
    assert code == 2
    assert '2 | runs = "second.jsonl"' in err
    assert "--update-baseline" not in err
    configure(ONE_RUN + "baseline = 'main.parquet'\n")
    assert "karat gate --update-baseline" in command("compare")[2]


def test_baseline_that_was_not_written_yet_is_not_mentioned(command, here):
    configure(ONE_RUN + "baseline = 'main.parquet'\n[gate]\nRR = '>= 0.4'\n")
    assert "baseline was not used" not in command("gate")[1]
    assert "baseline was not used" in command("gate", "--baseline", "mine.parquet")[1]
    assert command("gate", "--update-baseline")[0] == 0
    assert "baseline was not used" in command("gate")[1]


@pytest.mark.parametrize("name", ["eval", "compare", "gate", "run"])
def test_missing_arguments_without_a_project_are_an_error_that_names_init(
    command, tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    code, out, err = command(name)
    assert (code, out) == (2, "")
    assert "karat init" in err
    assert f"karat {name} --help" in err


def test_several_runs_need_a_choice_where_only_one_is_possible(command, here):
    configure(TWO_RUNS + "[gate]\nRR = '>= 0.4'\n")
    code, _, err = command("gate")
    assert code == 2
    assert "best.jsonl, second.jsonl" in err
    assert command("gate", "second.jsonl")[0] == 0
    configure(TWO_RUNS + '[retriever]\noutput = "second.jsonl"\n[gate]\nRR = ">= 0.4"\n')
    code, out, _ = command("gate", "--json")
    assert json.loads(out)["gates"][0]["run"] == "second"


def test_every_setting_belongs_to_a_parameter_and_every_default_parses():
    settings = project.known_settings()
    names = {setting.key for setting in settings}
    assert {"gold", "runs", "measures", "by", "baseline", "corpus", "columns"} <= names
    assert {"retriever.spec", "retriever.headers", "retriever.top_k", "retriever.jobs"} <= names
    for setting, parameter in settings.items():
        assert setting.name in parameter.settings
    assert {"cluster", "engine", "master"} <= names
    assert not {"json", "output", "config", "require", "title"} & names


def test_clusters_and_engine_are_settings(command, here):
    Path("gold.jsonl").write_text(
        "".join(
            json.dumps({"query_id": f"q{at}", "relevant": ["d1"], "user": f"u{at % 3}"}) + "\n"
            for at in range(6)
        )
    )
    configure(ONE_RUN + 'cluster = "user"\nengine = "local"\nmaster = "local[2]"\n')
    code, out, err = command("eval", "--json")
    assert (code, json.loads(out)["cluster"]["clusters"]) == (0, 3)
    assert "cluster=user" in used(err)
    configure(ONE_RUN + 'engine = "sparc"\n')
    code, _, err = command("eval")
    assert (code, "unknown engine 'sparc'" in err) == (2, True)


def test_addresses_are_not_relative_to_the_file():
    config = Config("project/karat.toml")
    assert config.located("s3a://logs/run") == "s3a://logs/run"
    assert config.located("table:logs.run") == "table:logs.run"


def test_settings_are_not_read_by_python(here):
    configure(ONE_RUN + "top_k = 1\n")
    assert Config.find().settings["top_k"] == 1
    assert karat.evaluate("gold.jsonl", "second.jsonl", "RR")["RR"] == 0.5
