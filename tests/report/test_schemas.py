"""Everything that is written as JSON keeps to the schema that karat prints for it."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import karat
from karat.conventions import CHOICES
from karat.evaluation.spending import spending
from karat.measures.declare import REGISTRY
from karat.report.document import encoded
from karat.report.schemas import DOCUMENTS, schema
from karat.report.sheet import WORDS
from karat.stats.comparison import PAIRS, TESTS
from karat.stats.corrections import CORRECTIONS
from karat.stats.intervals import METHODS

TEXT = "Refunds are paid within 14 days, to the card you paid with."
GOLD = [
    {"query_id": f"q{at}", "kind": "odd" if at % 2 else "even", "size": at // 3}
    | {"relevant": {"a": 2, "b": 1}, "spans": [{"doc_id": "d", "start": 0, "end": 30}]}
    | {"evidence": ["Refunds are paid within 14 days"]}
    for at in range(6)
] + [{"query_id": "none", "relevant": {"a": 0}}]


def run(rank):
    """Return lists in which what is wanted has a rank, one of them failed, one unknown to gold."""
    result = {"doc_id": "d", "start": 5, "end": 59, "text": TEXT, "score": 0.5, "tokens": 9}
    other = {"doc_id": "e", "start": 0, "end": 9, "text": "Hello you", "score": 0.6}
    lists = [
        {"query_id": f"q{at}", "latency_ms": {"total": 3.0 + at + rank}}
        | {"calls": [{"stage": "retrieval", "model": "m", "price_per_call": 0.1}]}
        | {"results": [*([other | {"id": "x"}] * (rank > at % 3)), result | {"id": "a"}]}
        for at in range(4)
    ]
    failed = {"query_id": "q4", "results": [], "error": {"type": "Timeout", "message": "slow"}}
    return [*lists, failed, {"query_id": "q99", "results": [result | {"id": "a"}]}]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    for name, rank in (("old", 3), ("new", 1), ("mixed", 2)):
        made = karat.Run.of(run(rank), name=name)
        made.settings.update(jobs=rank)
        made.write(f"{name}.jsonl")
    return tmp_path


def check(document, told):
    jsonschema.Draft202012Validator(schema(document)).validate(told)


def took(path):
    """Return what a run took, as it is written."""
    spent = spending(karat.Run.read(path), path=path)
    settings = {"jobs": [8, 4], "prices": "a list"}
    return json.loads(encoded(replace(spent, settings=settings).as_dict()))


MEASURES = ["nDCG@10,P@1,R@2", "RR,span.iou@5,evidence.recall@3,latency.p99,cost.sum,Hits@2"]
OPTIONS = [
    [],
    ["--by", "kind"],
    ["--by", "kind", "--by", "size", "--missing", "skip", "--no-gold", "skip"],
    ["--top-k", "2", "--score-threshold", "0.1", "--duplicates", "count", "--unjudged", "skip"],
]


@pytest.mark.parametrize("measures", MEASURES)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("further", [[], ["--per-query"], ["--no-intervals", "--per-query"]])
def test_scores_keep_to_their_schema(command, files, measures, options, further):
    words = ["eval", "gold.jsonl", "old.jsonl", "new.jsonl", "-m", measures, *options, *further]
    code, out, _ = command(*words, "--json", "-o", "s.json")
    assert code == 0
    check("scores", json.loads(out))
    assert Path("s.json").read_text() == out


def test_every_measure_keeps_to_the_schema(files):
    names = [f"{name}@0.5" if name == "IPrec" else name for name in REGISTRY]
    names.remove("span.precision_omega")  # which reads the table of all chunks
    karat.evaluate("gold.jsonl", "old.jsonl", names).write("s.json")
    check("scores", json.loads(Path("s.json").read_text()))
    karat.compare("gold.jsonl", ["old.jsonl", "new.jsonl"], names).write("c.json")
    check("comparison", json.loads(Path("c.json").read_text()))


def test_settings_of_the_environment_keep_to_the_schema(command, files, monkeypatch):
    monkeypatch.setenv("RAG_TOP_K", "1")
    _, out, _ = command("eval", "gold.jsonl", "old.jsonl", "--preset", "coverage", "--json")
    told = json.loads(out)
    assert told["settings"]["origin"] == {"top_k": "RAG_TOP_K"}
    check("scores", told)


@pytest.mark.parametrize("measures", MEASURES)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    "further",
    [
        ["--moved", "0", "--correction", "bh", "--test", "t"],
        ["--baseline", "old", "--correction", "none", "--test", "wilcoxon"],
        ["--difference", "0.1", "--correction", "bonferroni"],
    ],
)
def test_comparisons_keep_to_their_schema(command, files, measures, options, further):
    runs = ["old.jsonl", "new.jsonl", "mixed.jsonl"]
    words = ["compare", "gold.jsonl", *runs, "-m", measures, *options, *further]
    code, out, _ = command(*words, "--json", "-o", "c.json")
    assert code == 0
    check("comparison", json.loads(out))
    assert Path("c.json").read_text() == out


def test_comparisons_of_saved_scores_keep_to_their_schema(command, files):
    karat.evaluate("gold.jsonl", "old.jsonl", "RR").write("old.json")
    _, out, _ = command("compare", "gold.jsonl", "old.json", "new.jsonl", "-m", "RR", "--json")
    told = json.loads(out)
    assert told["moved"][0]["changes"] is None
    check("comparison", told)
    _, out, _ = command(
        *("compare", "gold.jsonl", "old.jsonl", "new.jsonl", "--correction", "tukey", "--json")
    )
    check("comparison", json.loads(out))


RULES = [
    ["RR >= 0.1"],
    ["RR >= 0.9", "latency.p99 <= 1"],
    ["RR max_drop 0.1 confidence 0.9 strict", "RR >= 0.2", "latency.mean max_rise 0.0"],
    ["RR max_drop 0.9", "evidence.recall@3 max_drop 0.9"],
]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("options", [[], ["--top-k", "1", "--missing", "skip"]])
@pytest.mark.parametrize(("run", "baseline"), [("old", "new"), ("new", "old")])
def test_verdicts_keep_to_their_schema(command, files, rules, options, run, baseline):
    words = [word for rule in rules for word in ("--require", rule)]
    code, out, _ = command(
        *("gate", "gold.jsonl", f"{run}.jsonl", "--baseline", f"{baseline}.jsonl", *words),
        *(*options, "--json", "-o", "v.json"),
    )
    assert code in (0, 1)
    check("verdict", json.loads(out))
    assert Path("v.json").read_text() == out


def test_a_verdict_of_groups_and_one_that_could_not_be_made_keep_to_it(command, files):
    Path("karat.toml").write_text('[gate.by.kind."odd"]\n"RR" = ">= 0.99"\n')
    code, out, _ = command("gate", "gold.jsonl", "old.jsonl", "--json")
    told = json.loads(out)
    assert (code, told["gates"][0]["checks"][0]["by"]) == (1, {"kind": "odd"})
    check("verdict", told)
    code, _, _ = command("gate", "gold.jsonl", "nowhere.jsonl", "-o", "v.json")
    told = json.loads(Path("v.json").read_text())
    assert (code, told["passed"]) == (2, None)
    check("verdict", told)


def parts(told, path=()):
    """Yield the path of every object in a document."""
    if isinstance(told, dict):
        yield path
    items = told.items() if isinstance(told, dict) else enumerate(told)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from parts(value, (*path, key))


def reached(told, path):
    for key in path:
        told = told[key]
    return told


OPEN = {"measures", "per_query", "weights", "holes", "queries", "by", "origin"}
"""Objects whose keys are names that the data or the person chose."""
OPEN_OF_RUN = {"settings", "failed", "stages"}


def written(command):
    base = ["gold.jsonl", "old.jsonl", "new.jsonl"]
    words = ["-m", "RR,nDCG@10,evidence.recall@3", "--by", "kind", "--top-k", "2"]
    yield "scores", json.loads(command("eval", *base, *words, "--per-query", "--json")[1])
    yield "comparison", json.loads(command("compare", *base, *words, "--json")[1])
    gate = ["gold.jsonl", "old.jsonl", "--baseline", "new.jsonl", "--require", "RR >= 0.99"]
    yield "verdict", json.loads(command("gate", *gate, "--json")[1])
    yield "run", took("old.jsonl")


def test_a_key_that_no_schema_knows_fails_wherever_it_stands(command, files):
    for document, told in written(command):
        check(document, told)
        open_here = OPEN_OF_RUN if document == "run" else OPEN
        paths = [
            path
            for path in parts(told)
            if not open_here & set(path[-1:]) and path[-2:-1] not in [("per_query",), ("queries",)]
        ]
        assert len(paths) >= 5
        for path in paths:
            reached(told, path)["new_key"] = 1
            with pytest.raises(jsonschema.ValidationError):
                check(document, told)
            del reached(told, path)["new_key"]


@pytest.mark.parametrize(
    ("document", "path", "wrong"),
    [
        ("scores", ("runs",), []),
        ("scores", ("runs", 0, "measures", "RR", "value"), "0.5"),
        ("scores", ("runs", 0, "measures", "RR", "method"), "guess"),
        ("scores", ("runs", 0, "per_query", 0, "RR"), "one"),
        ("scores", ("conventions", "missing"), "ones"),
        ("comparison", ("pairs", 0, "n"), 1.5),
        ("comparison", ("test",), None),
        ("verdict", ("gates", 0, "checks", 0, "passed"), None),
        ("verdict", ("gates", 0, "checks", 0, "passed"), True),
        ("verdict", ("gates", 0, "conventions"), {}),
        ("run", ("run", "answered"), -1),
        ("run", ("latency", "stages", "total", "p99"), None),
        ("run", ("cost", "stages", 0, "usd"), "0.1"),
    ],
)
def test_a_wrong_value_fails(command, files, document, path, wrong):
    told = dict(written(command))[document]
    *to, last = path
    reached(told, to)[last] = wrong
    with pytest.raises(jsonschema.ValidationError):
        check(document, told)


def test_a_key_that_is_missing_fails(command, files):
    for document, told in written(command):
        for key in schema(document)["required"]:
            with pytest.raises(jsonschema.ValidationError, match="required"):
                check(document, {name: value for name, value in told.items() if name != key})


def test_schemas_know_the_words_that_the_package_knows():
    defs = schema("scores")["$defs"]
    words = {name: tuple(part["enum"]) for name, part in defs["conventions"]["properties"].items()}
    assert words == {name: tuple(choices) for name, choices in CHOICES.items()}
    assert set(defs["counts"]["properties"]) == set(WORDS)
    assert defs["measure"]["properties"]["method"]["enum"] == [*METHODS, None]
    told = schema("comparison")
    assert list(told["$defs"]["pair"]["properties"]) == list(PAIRS)
    assert set(told["properties"]["test"]["enum"]) == set(TESTS)
    assert set(told["properties"]["correction"]["enum"]) == set(CORRECTIONS)


def described(part):
    """Yield every property of a schema."""
    if isinstance(part, dict):
        # In a condition, keys are named again, not declared.
        yield from part.get("properties", {}).items() if "type" in part else ()
        part = list(part.values())
    if isinstance(part, list):
        yield from itertools.chain.from_iterable(map(described, part))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_key_is_described(document):
    whole = schema(document)
    jsonschema.Draft202012Validator.check_schema(whole)
    known = list(described(whole))
    assert len(known) > 20
    for name, part in known:
        target = whole["$defs"][part["$ref"].split("/")[-1]] if "$ref" in part else {}
        assert part.get("description") or target["description"], name


def test_schemas_are_printed(command):
    for document in DOCUMENTS:
        code, out, _ = command("schema", document)
        assert code == 0
        assert json.loads(out) == schema(document)
    code, _, err = command("schema", "score")
    assert code == 2
    assert "choose one of scores, comparison, verdict, run" in err
