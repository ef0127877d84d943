"""Full@k, groups of interchangeable items, and the scale of ERR."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.errors import InputError, MeasureError

ITEMS = ["a", "b", "c", "d", "e"]
grades = st.dictionaries(st.sampled_from(ITEMS), st.integers(-1, 2), min_size=1)
lists = st.lists(st.sampled_from([*ITEMS, "x", "y"]), max_size=8)


@st.composite
def golds(draw):
    relevant = draw(grades)
    groups = st.lists(st.sampled_from(sorted(relevant)), min_size=1, max_size=3)
    return {"relevant": relevant, "any_of": draw(st.lists(groups, max_size=3))}


def full_slowly(gold, retrieved, k, rel):
    """Return 1 if every item that is needed is in the top k, by sets."""
    wanted = {item for item, grade in gold["relevant"].items() if grade >= rel}
    groups = [set(group) & wanted for group in gold["any_of"]]
    alone = wanted - set().union(*groups) if groups else wanted
    needed = [{item} for item in alone] + [group for group in groups if group]
    top = set(retrieved[:k])
    return float(bool(needed) and all(top & group for group in needed))


@pytest.mark.filterwarnings("ignore:.* ids?")
@given(
    st.lists(golds(), min_size=1, max_size=4),
    st.lists(lists, min_size=4, max_size=4),
    st.sampled_from([None, 1, 2, 3, 5]),
    st.sampled_from([1, 2]),
    st.sampled_from([{}, {"unjudged": "skip"}, {"duplicates": "set"}]),
)
def test_full_is_1_if_one_of_each_group_and_every_other_item_is_found(
    gold, runs, k, rel, conventions
):
    name = f"Full(rel={rel})" + ("" if k is None else f"@{k}")
    records = [{"query_id": f"q{n}", **one} for n, one in enumerate(gold)]
    run = {f"q{n}": runs[n] for n in range(len(gold))}
    values = karat.evaluate(records, run, name, conventions=conventions).per_query.to_series(1)
    wanted = []
    for one, retrieved in zip(gold, runs, strict=False):
        if conventions.get("unjudged") == "skip":
            judged = {item for item, grade in one["relevant"].items() if grade >= 0}
            retrieved = [item for item in retrieved if item in judged]
        if conventions.get("duplicates") == "set":
            retrieved = list(dict.fromkeys(retrieved))
        wanted.append(full_slowly(one, retrieved, k, rel))
    assert values.to_list() == wanted


@pytest.mark.filterwarnings("ignore:.* ids?")
@given(st.dictionaries(st.sampled_from("qr"), grades, min_size=1), lists)
def test_without_groups_full_is_1_where_recall_is(gold, retrieved):
    scores = karat.evaluate(gold, dict.fromkeys(gold, retrieved), ["Full@3", "R@3"]).per_query
    assert (scores["Full@3"] == 1).to_list() == (scores["R@3"] == 1).to_list()


def test_groups_are_written_and_read_again(tmp_path):
    record = {"query_id": "q", "relevant": {"a": 1, "b": 1, "c": 2}, "any_of": [["a", "b"], ["c"]]}
    karat.Gold.of([record]).write(tmp_path / "gold.jsonl")
    again = karat.Gold.read(tmp_path / "gold.jsonl")
    assert again.any_of.rows() == [("q", 0, "a"), ("q", 0, "b"), ("q", 1, "c")]
    assert karat.evaluate(again, {"q": ["b", "c"]}, "Full@2")["Full@2"] == 1.0
    with pytest.warns(karat.KaratWarning, match="any_of"):
        again.write(tmp_path / "gold.qrels", format="trec")


@pytest.mark.parametrize("any_of", [[["a", "z"]], [[]], [["a"], []]])
def test_a_group_that_is_empty_or_not_in_relevant_is_refused(any_of):
    with pytest.raises(InputError) as error:
        karat.Gold.of([{"query_id": "q", "relevant": ["a"], "any_of": any_of}])
    assert error.value.field.startswith("any_of[")


def test_any_is_another_name_of_success():
    assert karat.evaluate({"q": ["a"]}, {"q": ["x", "a"]}, "Any@2").keys() == ["Success@2"]


# The scale of ERR and RBP.


def test_err_does_not_depend_on_other_queries_where_max_grade_is_given():
    run = {"q1": ["a", "b"], "q2": ["c"]}
    small = {"q1": {"a": 1, "b": 1}}
    large = small | {"q2": {"c": 4}}
    for name in ("ERR(max_grade=4)@5", "nERR(max_grade=4)", "RBP(gain=linear, max_grade=4)"):
        one, other = (karat.evaluate(gold, run, name).per_query.row(0) for gold in (small, large))
        assert one == other
    assert karat.evaluate(small, run, "ERR(max_grade=4)@5")["ERR(max_grade=4)@5"] == (
        1 / 16 + (1 - 1 / 16) * (1 / 16) / 2  # gdeval's: grades are scaled by 2^4
    )


def test_the_largest_grade_is_stated_where_it_is_the_scale():
    scores = karat.evaluate({"q": {"a": 3}}, {"q": ["a"]}, ["ERR@5", "RR"])
    assert len(scores.notes) == 1
    assert "ERR(max_grade=3)@5" in scores.notes[0]
    assert karat.evaluate({"q": {"a": 3}}, {"q": ["a"]}, "ERR(max_grade=4)").notes == ()


def test_a_grade_above_max_grade_is_refused():
    with pytest.raises(MeasureError) as error:
        karat.evaluate({"q": {"a": 5}}, {"q": ["a"]}, "ERR(max_grade=4)")
    assert error.value.field == "max_grade"
