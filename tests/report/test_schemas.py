"""Every JSON document that karat writes matches the schema that karat prints for it."""

import io
import itertools
import json
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import pytest

import karat
from karat.cli.main import main
from karat.conventions import CHOICES
from karat.data.fusion import METHODS as FUSION_METHODS
from karat.data.fusion import NORMALIZATIONS
from karat.evaluation.usage import usage
from karat.format import to_json
from karat.live.retrievers import BM25
from karat.measures.families import REASONS
from karat.measures.registry import REGISTRY
from karat.report.schemas import DOCUMENTS, schema
from karat.stats.corrections import CORRECTIONS
from karat.stats.intervals import METHODS
from karat.stats.pairwise import CLUSTERS, PAIRS, TESTS
from support.commands import check_refused

TEXT = "Refunds are paid within 14 days, to the card you paid with."
GOLD = [
    {"query_id": f"q{at}", "kind": "odd" if at % 2 else "even", "size": at // 3}
    | {"relevant": {"a": 2, "b": 1}, "spans": [{"doc_id": "d", "start": 0, "end": 30}]}
    | {"evidence": ["Refunds are paid within 14 days"]}
    for at in range(12)
] + [{"query_id": "none", "relevant": {"a": 0}}]


def run(rank):
    """Return a run that has the relevant item at a rank; one query failed, one is not in gold."""
    result = {"doc_id": "d", "start": 5, "end": 59, "text": TEXT, "score": 0.5, "tokens": 9}
    other = {"doc_id": "e", "start": 0, "end": 9, "text": "Hello you", "score": 0.6}
    lists = [
        {"query_id": f"q{at}", "latency_ms": {"total": 3.0 + at + rank}}
        | {"calls": [{"stage": "retrieval", "model": "m", "price_per_call": 0.1}]}
        | {"results": [*([other | {"id": "x"}] * (rank > at % 3)), result | {"id": "a"}]}
        | {"candidates": [other | {"id": "y"}, result | {"id": "a"}][: at % 3]}
        for at in range(10)
    ]
    failed = {"query_id": "q10", "results": [], "error": {"type": "Timeout", "message": "slow"}}
    return [*lists, failed, {"query_id": "q99", "results": [result | {"id": "a"}]}]


def write_files():
    """Write gold and three runs into the current folder."""
    karat.Gold.of(GOLD).write("gold.jsonl")
    for name, rank in (("old", 3), ("new", 1), ("mixed", 2)):
        made = karat.Run.of(run(rank), name=name)
        made.settings.update(jobs=rank)
        made.write(f"{name}.jsonl")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files()
    return tmp_path


@cache
def validator(document):
    return jsonschema.Draft202012Validator(schema(document))


def check(document, content):
    validator(document).validate(content)


def usage_document(path):
    """Return the document about the time and cost of a run."""
    spent = usage(karat.Run.read(path), path=path)
    settings = {"jobs": [8, 4], "prices": "a list"}
    return json.loads(to_json(replace(spent, settings=settings).as_dict()))


def combinations(*choices):
    """Return every combination of choices; those beyond a covering sample are marked as slow.

    The sample has each combination of all choices but the last, and each of the last.
    """
    sampled = []
    for positions in itertools.product(*(range(len(values)) for values in choices)):
        *others, last = positions
        covers = last == sum(others) % len(choices[-1])
        values = [values[at] for values, at in zip(choices, positions, strict=True)]
        sampled.append(pytest.param(*values, marks=[] if covers else pytest.mark.slow))
    return sampled


FAILURES = ["--fail-on-error", "0.5"]
"""One query of each run failed, which is more than the share that is allowed by default."""
MEASURES = ["nDCG@10,P@1,R@2", "RR,span.iou@5,evidence.recall@3,latency.p99,cost.sum,Hits@2"]
OPTIONS = [
    [],
    ["--by", "kind"],
    ["--by", "kind", "--by", "size", "--missing", "skip", "--no-gold", "skip"],
    ["--top-k", "2", "--score-threshold", "0.1", "--duplicates", "count", "--unjudged", "skip"],
    ["--cluster", "size", "--by", "kind"],
]


@pytest.mark.parametrize(
    ("measures", "options", "further"),
    combinations(MEASURES, OPTIONS, [[], ["--per-query"], ["--no-intervals", "--per-query"]]),
)
def test_scores_match_their_schema(command, files, measures, options, further):
    words = ["eval", "gold.jsonl", "old.jsonl", "new.jsonl", "-m", measures, *options, *further]
    code, out, _ = command(*words, *FAILURES, "--json", "-o", "s.json")
    assert code == 0
    document = json.loads(out)
    check("scores", document)
    saved = json.loads(Path("s.json").read_text())
    check("scores", saved)
    assert saved.pop("provenance")["saved"]
    assert saved == document


def test_every_measure_matches_the_schema(files):
    names = [f"{name}@0.5" if name == "IPrec" else name for name in REGISTRY]
    names.remove("span.precision_omega")  # it needs a table of all chunks
    karat.evaluate("gold.jsonl", "old.jsonl", names, fail_on_error=0.5).write("s.json")
    check("scores", json.loads(Path("s.json").read_text()))
    runs = ["old.jsonl", "new.jsonl"]
    karat.compare("gold.jsonl", runs, names, fail_on_error=0.5).write("c.json")
    check("comparison", json.loads(Path("c.json").read_text()))


def test_settings_from_the_environment_match_the_schema(command, files, monkeypatch):
    monkeypatch.setenv("RAG_TOP_K", "1")
    words = ("eval", "gold.jsonl", "old.jsonl", "--preset", "coverage", *FAILURES, "--json")
    _, out, _ = command(*words)
    document = json.loads(out)
    assert document["settings"]["origin"] == {"top_k": "RAG_TOP_K"}
    check("scores", document)


COMPARING = [
    ["--moved", "0", "--correction", "bh", "--test", "t"],
    ["--baseline", "old", "--correction", "none", "--test", "wilcoxon"],
    ["--difference", "0.1", "--correction", "bonferroni"],
]


@pytest.mark.parametrize(
    ("measures", "options", "further"), combinations(MEASURES, OPTIONS, COMPARING)
)
def test_comparisons_match_their_schema(command, files, measures, options, further):
    runs = ["old.jsonl", "new.jsonl", "mixed.jsonl"]
    words = ["compare", "gold.jsonl", *runs, "-m", measures, *options, *further]
    code, out, _ = command(*words, *FAILURES, "--json", "-o", "c.json")
    assert code == 0
    check("comparison", json.loads(out))
    assert Path("c.json").read_text() == out


def test_comparisons_of_saved_scores_match_their_schema(command, files):
    karat.evaluate("gold.jsonl", "old.jsonl", "RR", fail_on_error=0.5).write("old.json")
    words = ("compare", "gold.jsonl", *FAILURES, "--json", "new.jsonl")
    _, out, _ = command(*words, "old.json", "-m", "RR")
    document = json.loads(out)
    assert document["moved"][0]["changes"] is None
    check("comparison", document)
    _, out, _ = command(*words, "old.jsonl", "--correction", "tukey")
    check("comparison", json.loads(out))


FUSIONS = [
    [],
    ["--method", "weighted", "--weights", "0.7,0.3", "--normalization", "z-score", "--depth", "2"],
    ["--tune", "gold.jsonl", "-m", "RR", "--folds", "2"],
    ["--tune", "gold.jsonl", "-m", "RR", "--folds", "3", "--seed", "4", "--method", "rbc"],
    ["--tune", "gold.jsonl", "-m", "RR", "--method", "weighted"],
    ["--tune", "gold.jsonl", "-m", "RR", "--method", "logn_isr"],
    ["--tune", "gold.jsonl", "-m", "RR", "--method", "combgmnz"],
]


@pytest.mark.parametrize("options", FUSIONS)
def test_fusions_match_their_schema(command, files, options):
    if "--tune" in options:
        options = [*options, *FAILURES]
    code, out, err = command(
        "fuse", "old.jsonl", "new.jsonl", *options, "--json", "-o", "fused.jsonl"
    )
    assert code == 0, err
    document = json.loads(out)
    assert ("tuning" in document) == ("--tune" in options)
    check("fusion", document)


@pytest.mark.parametrize("action", [[], ["clear"]])
def test_cache_matches_its_schema(command, tmp_path, monkeypatch, action):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    BM25({"a": "one"})
    (tmp_path / "karat" / "vega-1.js").write_text("x")
    code, out, _ = command("cache", *action, "--json")
    document = json.loads(out)
    assert (code, len(document["removed" if action else "entries"])) == (0, 2)
    check("cache", document)


@pytest.mark.parametrize("options", [[], ["-m", "RR,P@1", "--last", "2"], ["--by", "commit"]])
def test_histories_match_their_schema(command, files, options, monkeypatch):
    for number, run in enumerate(["old", "new", "old"]):
        monkeypatch.setenv("GITHUB_SHA", str(number) * 40)
        words = ("eval", "gold.jsonl", f"{run}.jsonl", "-m", "RR,P@1,latency.p99", *FAILURES)
        assert command(*words, "--history", "scores")[0] == 0
    code, out, _ = command("history", "scores", *options, "--json", "-o", "h.json")
    assert code == 0
    check("history", json.loads(out))
    assert Path("h.json").read_text() == out


RULES = [
    ["RR >= 0.1"],
    ["RR >= 0.9", "latency.p99 <= 1"],
    ["RR max_drop 0.1 confidence 0.9 strict", "RR >= 0.2", "latency.mean max_rise 0.0"],
    ["RR max_drop 0.9", "evidence.recall@3 max_drop 0.9"],
]


@pytest.mark.parametrize(
    ("rules", "runs", "options"),
    combinations(
        RULES,
        [("old", "new"), ("new", "old")],
        [[], ["--top-k", "1", "--missing", "skip"]],
    ),
)
def test_verdicts_match_their_schema(command, files, rules, runs, options):
    run, baseline = runs
    words = [word for rule in rules for word in ("--require", rule)]
    code, out, _ = command(
        *("gate", "gold.jsonl", f"{run}.jsonl", "--baseline", f"{baseline}.jsonl", *words),
        *(*options, *FAILURES, "--json", "-o", "v.json"),
    )
    assert code in (0, 1)
    check("verdict", json.loads(out))
    assert Path("v.json").read_text() == out


def test_verdicts_about_groups_and_failed_gates_match_their_schema(command, files):
    Path("karat.toml").write_text('[gate.by.kind."odd"]\n"RR" = ">= 0.99"\n')
    code, out, _ = command("gate", "gold.jsonl", "old.jsonl", *FAILURES, "--json")
    document = json.loads(out)
    assert (code, document["gates"][0]["checks"][0]["by"]) == (1, {"kind": "odd"})
    check("verdict", document)
    code, _, _ = command("gate", "gold.jsonl", "nowhere.jsonl", "-o", "v.json")
    document = json.loads(Path("v.json").read_text())
    assert (code, document["passed"]) == (2, None)
    check("verdict", document)


def objects(part, path=()):
    """Yield the path of every object in a document."""
    if isinstance(part, dict):
        yield path
    items = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from objects(value, (*path, key))


def part_at(content, path):
    for key in path:
        content = content[key]
    return content


OPEN = {
    *("measures", "per_query", "weights", "holes", "queries", "by", "origin", "delivered"),
    "single",
}
"""Objects whose keys are names chosen by the data or the user."""
OPEN_OF_RUN = {"settings", "failed", "stages"}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Return the text of one document of each kind, as karat writes it."""
    base = ["gold.jsonl", "old.jsonl", "new.jsonl"]
    words = ["-m", "RR,nDCG@10,evidence.recall@3", "--by", "kind", "--top-k", "2"]
    gate = ["gold.jsonl", "old.jsonl", "--baseline", "new.jsonl"]
    gate += ["--require", "RR >= 0.99", "--require", "P@1 max_drop 0.1"]
    commands = {
        "scores": ["eval", *base, *words, "--per-query"],
        "comparison": ["compare", *base, *words],
        "verdict": ["gate", *gate],
    }
    fuse = ["old.jsonl", "new.jsonl", "--tune", "gold.jsonl", "-m", "RR", "--method", "weighted"]
    printing = {
        "fusion": ["fuse", *fuse, *FAILURES, "--json"],
        "cache": ["cache", "--json"],
        "history": ["history", "scores.json", "--json"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("documents"))
        write_files()
        for document, command in commands.items():
            patch.setattr(sys, "argv", ["karat", *command, *FAILURES, "-o", f"{document}.json"])
            printed = io.StringIO()
            with redirect_stdout(printed), redirect_stderr(printed), suppress(SystemExit):
                main()
        written = {document: Path(f"{document}.json").read_text() for document in commands}
        patch.setenv("XDG_CACHE_HOME", str(Path.cwd()))
        BM25({"a": "one"})
        for document, command in printing.items():
            patch.setattr(sys, "argv", ["karat", *command])
            printed = io.StringIO()
            with redirect_stdout(printed), redirect_stderr(io.StringIO()), suppress(SystemExit):
                main()
            written[document] = printed.getvalue()
        return written | {"run": json.dumps(usage_document("old.jsonl"))}


@pytest.fixture
def documents(texts):
    """Return one document of each kind, which a test may change."""
    return {document: json.loads(text) for document, text in texts.items()}


def test_unknown_key_fails_in_every_object(documents):
    for document, content in documents.items():
        check(document, content)
        open_here = OPEN_OF_RUN if document == "run" else OPEN
        paths = [
            path
            for path in objects(content)
            if not open_here & set(path[-1:]) and path[-2:-1] not in [("per_query",), ("queries",)]
        ]
        assert len(paths) >= (2 if document in ("cache", "history") else 5)
        for path in paths:
            part_at(content, path)["new_key"] = 1
            with pytest.raises(jsonschema.ValidationError):
                check(document, content)
            del part_at(content, path)["new_key"]


@pytest.mark.parametrize(
    ("document", "path", "wrong"),
    [
        ("scores", ("runs",), []),
        ("scores", ("runs", 0, "measures", "RR", "value"), "0.5"),
        ("scores", ("runs", 0, "measures", "RR", "method"), "guess"),
        ("scores", ("runs", 0, "per_query", 0, "RR"), "one"),
        ("scores", ("runs", 0, "delivered", "evidence.recall@3"), -1),
        ("scores", ("conventions", "missing"), "ones"),
        ("comparison", ("pairs", 0, "n"), 1.5),
        ("comparison", ("test",), None),
        ("verdict", ("gates", 0, "checks", 0, "passed"), None),
        ("verdict", ("gates", 0, "checks", 0, "passed"), True),
        ("verdict", ("gates", 0, "conventions"), {}),
        ("verdict", ("gates", 0, "checks", 1, "p"), 1.5),
        ("verdict", ("gates", 0, "checks", 1, "differing"), None),
        ("verdict", ("gates", 0, "checks", 1, "method"), "guess"),
        ("run", ("run", "answered"), -1),
        ("run", ("latency", "stages", "total", "p99"), None),
        ("run", ("cost", "stages", 0, "usd"), "0.1"),
        ("fusion", ("tuning", "cross_validated", "value"), None),
        ("fusion", ("tuning", "grid", 0, "weights"), [0.5]),
        ("fusion", ("settings", "method"), "guess"),
        ("fusion", ("runs",), []),
        ("cache", ("entries", 0, "bytes"), -1),
        ("cache", ("removed",), []),
        ("history", ("history", 0, "n"), None),
        ("history", ("by",), "day"),
    ],
)
def test_wrong_value_fails(documents, document, path, wrong):
    *parents, last = path
    content = documents[document]
    check(document, content)
    part_at(content, parents)[last] = wrong
    with pytest.raises(jsonschema.ValidationError):
        check(document, content)


def test_missing_key_fails(documents):
    for document, content in documents.items():
        for key in schema(document)["required"]:
            with pytest.raises(jsonschema.ValidationError) as caught:
                check(document, {name: value for name, value in content.items() if name != key})
            assert caught.value.validator == "required"


def test_schemas_list_the_same_words_as_the_package():
    defs = schema("scores")["$defs"]
    words = {name: tuple(part["enum"]) for name, part in defs["conventions"]["properties"].items()}
    assert words == {name: tuple(choices) for name, choices in CHOICES.items()}
    assert set(defs["counts"]["properties"]) == set(REASONS)
    assert defs["method"]["enum"] == [*METHODS, None]
    comparison = schema("comparison")
    assert list(comparison["$defs"]["pair"]["properties"]) == [*PAIRS, *CLUSTERS]
    assert set(comparison["properties"]["test"]["enum"]) == set(TESTS)
    assert set(comparison["properties"]["correction"]["enum"]) == set(CORRECTIONS)
    settings = schema("fusion")["$defs"]["fusion_settings"]["properties"]
    assert set(settings["method"]["enum"]) == set(FUSION_METHODS)
    assert set(settings["normalization"]["enum"]) == set(NORMALIZATIONS)


def described(part):
    """Yield every property of a schema."""
    if isinstance(part, dict):
        # A condition repeats keys without declaring them.
        yield from part.get("properties", {}).items() if "type" in part else ()
        part = list(part.values())
    if isinstance(part, list):
        yield from itertools.chain.from_iterable(map(described, part))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_key_is_described(document):
    whole = schema(document)
    jsonschema.Draft202012Validator.check_schema(whole)
    properties = list(described(whole))
    assert len(properties) >= (9 if document == "cache" else 20)
    for name, part in properties:
        target = whole["$defs"][part["$ref"].split("/")[-1]] if "$ref" in part else {}
        assert part.get("description") or target["description"], name


def test_schemas_are_printed(command):
    for document in DOCUMENTS:
        code, out, _ = command("schema", document)
        assert code == 0
        assert json.loads(out) == schema(document)
    check_refused(command("schema", "score"), None, "'score'", *DOCUMENTS)
