"""Measures that users declare: what they may look like, where they work, and what is refused."""

import json
import sys

import numpy as np
import pytest

import karat
from karat import MeasureError
from karat.measures import REGISTRY, parse
from karat.measures.registry import unregister

GOLD = {"q1": {"a": 1, "b": 3, "c": 0}, "q2": {"d": 2}}
RUN = {"q1": ["a", "x", "b", "a"], "q2": ["x", "d"]}
MODULE = """
import karat

@karat.measure("FromModule", higher_is_better=False)
def found(hits, k, rel=1):
    return hits.relevant(rel).within(k).count > 0

@karat.measure("Raising")
def raising(hits):
    raise RuntimeError("no luck")

not_declared = len
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_measures.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield "own_measures"
    sys.modules.pop("own_measures", None)


def declared(function, name="Own", **facts):
    return karat.measure(name, **facts)(function)


def value(returned, **facts):
    """Evaluate a measure that returns this for the two queries."""
    own = declared(lambda hits: returned, **facts)
    return karat.evaluate(GOLD, RUN, own)["Own"]


def test_declared_function_can_be_called_as_before():
    def own(hits, k):
        return hits

    assert declared(own) is own


def test_function_and_name_mean_the_same_measure():
    own = declared(lambda hits, k: [0.5] * hits.n_queries, aliases=["also_own"])
    assert parse(own) == parse("OWN") == parse("alsoown")
    scores = karat.evaluate(GOLD, RUN, ["P@1", own, "Own@3"])
    assert list(scores) == ["P@1", "Own", "Own@3"]
    assert scores[own] == 0.5


def test_defaults_come_from_the_function():
    def own(hits, k, rel=2, scale=1.5, word="x", strict=False):
        """Something good.

        And more.
        """

    declaration = parse(declared(own)).declaration
    assert (declaration.title, declaration.formula) == ("Own", "Something good.")
    measure = parse("Own(rel=3, scale=2, word=y, strict=true)@5")
    assert measure.params == {"rel": 3, "scale": 2.0, "word": "y", "strict": True}
    assert measure.name == "Own(rel=3, scale=2, word=y, strict=True)@5"
    assert parse(measure.name) == measure


def test_function_without_k_takes_no_cutoff():
    declared(lambda hits: hits.length)
    with pytest.raises(MeasureError):
        parse("Own@3")


def test_hits_hold_grades_in_rank_order():
    seen = {}

    def own(hits, k):
        seen["all"] = [grades.tolist() for grades in hits.grades()]
        seen["top"] = [grades.tolist() for grades in hits.grades(2, unjudged=-1)]
        seen["gold"] = [grades.tolist() for grades in hits.gold_grades()]
        return np.zeros(hits.n_queries)

    karat.evaluate(GOLD, RUN, declared(own))
    assert seen["all"] == [[1, 0, 3, 0], [0, 2]]
    assert seen["top"] == [[1, -1], [-1, 2]]
    assert seen["gold"] == [[3, 1, 0], [2]]


def test_hits_of_empty_lists_and_unjudged_queries_have_no_grades():
    seen = []
    own = declared(lambda hits: seen.append(hits.grades()) or hits.length * 0)
    karat.evaluate({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": [], "q2": ["b"]}, own)
    assert [grades.tolist() for grades in seen[0]] == [[], [1]]


def test_function_cannot_change_what_other_measures_read():
    def own(hits):
        hits.relevant(1)
        hits.found.grade[:] = 0

    with pytest.raises(MeasureError, match="read-only"):
        karat.evaluate(GOLD, RUN, ["P@1", declared(own)])


def test_own_measure_equals_the_measure_of_karat_that_it_repeats():
    def own(hits, k, rel=1):
        return [
            next((1 / rank for rank, grade in enumerate(grades, 1) if grade >= rel), 0)
            for grades in hits.grades(k)
        ]

    scores = karat.evaluate(GOLD, RUN, [declared(own), "RR", "Own(rel=2)@2", "RR(rel=2)@2"])
    assert scores.per_query["Own"].equals(scores.per_query["RR"].alias("Own"))
    assert scores["Own(rel=2)@2"] == scores["RR(rel=2)@2"]


@pytest.mark.parametrize(("how", "expected"), [("mean", 2.0), ("sum", 4.0), ("max", 3.0)])
def test_values_are_combined_as_declared(how, expected):
    assert value([1, 3], over_queries=how, bounded=False) == expected


@pytest.mark.parametrize("returned", [[1, 0], (True, False), np.array([1.0, 0.0], np.float32)])
def test_any_sequence_of_numbers_will_do(returned):
    assert value(returned) == 0.5


@pytest.mark.parametrize(
    "returned",
    [
        [0.5],
        [[0.5, 0.5]],
        0.5,
        None,
        ["a", "b"],
        [None, 1.0],
        [1, [2]],
        [1j, 0],
        [np.nan, 1],
        [np.inf, 1],
        [1.5, 0],
        [-0.5, 0],
    ],
)
def test_other_values_are_an_error_that_names_measure_and_place(returned):
    with pytest.raises(MeasureError) as caught:
        value(returned)
    assert caught.value.field == "Own"
    assert caught.value.path == __file__


def test_values_of_a_binary_measure_are_0_or_1():
    with pytest.raises(MeasureError):
        value([0.5, 1], binary=True)


def test_value_of_a_query_that_does_not_count_may_be_anything():
    gold = [{"query_id": "q1", "relevant": ["a"]}, {"query_id": "q2", "evidence": ["text"]}]
    own = declared(lambda hits: hits.relevant(1).count / np.where(hits.n_relevant(1), 1, np.nan))
    scores = karat.evaluate(gold, {"q1": ["a"], "q2": []}, own)
    assert scores.per_query["Own"].to_list() == [1.0, None]


def test_convention_decides_where_nothing_is_relevant():
    own = declared(lambda hits: np.where(hits.n_relevant(1), 1.0, np.nan))
    gold, run = {"q1": {"a": 1}, "q2": {"a": 0}}, {"q1": ["a"], "q2": ["a"]}
    with pytest.raises(MeasureError):
        karat.evaluate(gold, run, own)
    assert karat.evaluate(gold, run, own, conventions={"no_gold": "zero"})["Own"] == 0.5


def test_exception_becomes_an_error_with_its_text_and_line():
    def own(hits):
        raise RuntimeError("no luck")

    with pytest.raises(MeasureError, match="RuntimeError: no luck") as caught:
        karat.evaluate(GOLD, RUN, declared(own))
    assert caught.value.field == "Own"
    assert caught.value.line == own.__code__.co_firstlineno + 1
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    "name",
    [
        *("", "two words", "nDCG", "mrr", "span.own", "Own@3", "Own_10", "own_at_k_3"),
        *("own_in_top_3", "query_id", "Run", "EvidenceRecall", "größe", "a:b", "-own", "own_", 7),
    ],
)
def test_name_is_refused(name):
    with pytest.raises(MeasureError):
        declared(lambda hits: hits.length, name)
    assert name not in REGISTRY or REGISTRY[name].function is None


def test_alias_of_another_measure_is_refused():
    with pytest.raises(MeasureError):
        declared(lambda hits: hits.length, aliases=["recall"])
    assert "Own" not in REGISTRY


def test_two_functions_cannot_have_one_name():
    def one(hits):
        return hits.length

    def other(hits):
        return hits.length

    declared(one)
    with pytest.raises(MeasureError):
        declared(other)
    with pytest.raises(MeasureError):
        declared(other, "Another", aliases=["own"])
    with pytest.raises(MeasureError):
        declared(lambda hits: hits.length)


def test_closures_of_one_function_cannot_have_one_name():
    def make(number):
        return declared(lambda hits: [number] * hits.n_queries)

    make(0)
    with pytest.raises(MeasureError):
        make(1)


def test_function_that_is_defined_again_replaces_itself():
    cell = "@karat.measure('Own', aliases={aliases})\ndef own(hits): return [{value}] * 2"
    notebook = {"karat": karat, "__name__": "__main__"}
    exec(cell.format(value=0, aliases=["old_name"]), notebook)
    exec(cell.format(value=1, aliases=["new_name"]), notebook)
    assert karat.evaluate(GOLD, RUN, "new_name")["Own"] == 1.0
    with pytest.raises(MeasureError):
        parse("old_name")


@pytest.mark.parametrize(
    "function",
    [
        7,
        lambda: None,
        lambda hits, k, rel: [],
        lambda hits, *others: [],
        lambda hits, **others: [],
        lambda hits, Rel=1: [],
        lambda hits, cutoff=1: [],
        lambda hits, grades=(): [],
        lambda *, hits: [],
    ],
)
def test_function_with_other_parameters_is_refused(function):
    with pytest.raises(MeasureError):
        declared(function)


def test_function_that_is_not_declared_is_refused():
    with pytest.raises(MeasureError, match=r"@karat\.measure"):
        karat.evaluate(GOLD, RUN, len)


def test_explain_shows_the_list_and_the_value():
    own = declared(lambda hits, k: hits.relevant(1).within(k).count / 4, formula="found / 4")
    told = karat.explain(own, gold=GOLD, run=RUN, query="q1")
    assert told.calculations[0].value == 0.5
    assert [row["item"] for row in told.calculations[0].rows] == RUN["q1"]
    assert "found / 4" in str(karat.explain("Own@3"))


def test_compare_and_gate_take_own_measures():
    own = declared(lambda hits, k: hits.length, higher_is_better=False, bounded=False)
    comparison = karat.compare(GOLD, {"a": RUN, "b": {"q1": ["a"], "q2": ["d"]}}, [own])
    assert comparison.pairs["wins"].to_list() == [2]
    assert not karat.gate(GOLD, RUN, {"Own": {"max": 2}}).passed


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_saved_scores_are_read_when_the_measure_is_declared(ending, tmp_path):
    own = declared(lambda hits: [-1.5, 2], bounded=False)
    path = tmp_path / f"scores.{ending}"
    karat.evaluate(GOLD, RUN, own).write(path)
    assert karat.Scores.read(path)["Own"] == 0.25
    unregister(REGISTRY["Own"])
    with pytest.raises(karat.InputError) as caught:
        karat.Scores.read(path)
    assert caught.value.path == str(path)
    assert "import" in caught.value.hint


def test_what_saved_scores_name_is_never_imported(tmp_path, module):
    path = tmp_path / "scores.json"
    karat.evaluate(GOLD, RUN, "RR").write(path)
    path.write_text(path.read_text().replace('"RR"', f'"{module}:found"'))
    with pytest.raises(karat.InputError):
        karat.Scores.read(path)
    assert module not in sys.modules


def test_measure_is_imported_by_its_path(module):
    measures = f"P@1 {module}:found(rel=2)@1, {module}:found"
    scores = karat.evaluate(GOLD, RUN, measures)
    assert list(scores) == ["P@1", "FromModule(rel=2)@1", "FromModule"]
    assert scores["FromModule"] == 1.0
    assert parse("FromModule@3").command_name == f"{module}:found@3"


@pytest.mark.parametrize("name", ["not_declared", "absent", "karat"])
def test_path_must_lead_to_a_measure(module, name):
    with pytest.raises(karat.InputError):
        parse(f"{module}:{name}")


def files(tmp_path):
    gold, run = tmp_path / "gold.qrels", tmp_path / "run.run"
    gold.write_text("q1 0 a 1\nq2 0 b 1\n")
    run.write_text("q1 Q0 a 1 2 t\nq2 Q0 x 1 2 t\n")
    return str(gold), str(run)


def test_command_line_takes_a_path(command, module, tmp_path):
    gold, run = files(tmp_path)
    code, out, err = command("eval", gold, run, "-m", f"{module}:found@1")
    assert code == 0
    assert "FromModule@1" in out
    assert f"next: karat explain {module}:found@1" in err
    assert command("explain", f"{module}:found@1")[0] == 0
    assert "\nFromModule[@k]  FromModule\n" in command("measures", f"{module}:found")[1]
    (row,) = json.loads(command("measures", f"{module}:found", "--json")[1])
    assert list(row["parameters"]) == ["rel"]
    assert command("gate", gold, run, "--require", f"{module}:found <= 0.1")[0] == 1


def test_failing_measure_ends_with_2(command, module, tmp_path):
    code, _, err = command("eval", *files(tmp_path), "-m", f"{module}:raising")
    assert code == 2
    assert "Raising" in err
    assert "no luck" in err


def test_compare_reads_saved_scores_with_a_measure_that_it_imports(command, module, tmp_path):
    gold, run = files(tmp_path)
    assert command("eval", gold, run, "-m", f"{module}:found", "-o", "a.parquet")[0] == 0
    for name in ("FromModule", "Raising"):
        unregister(REGISTRY[name])
    sys.modules.pop(module)
    other = tmp_path / "other.run"
    other.write_text("q1 Q0 a 1 2 t\nq2 Q0 b 1 2 t\n")
    assert command("compare", gold, "a.parquet", other)[0] == 2
    assert command("compare", gold, "a.parquet", other, "-m", f"{module}:found")[0] == 0
