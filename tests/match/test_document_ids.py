"""Document ids that differ from gold's only by a path prefix are matched, once per run."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.errors import InputError, KaratWarning
from karat.match.id_overlap import DocumentIds

paths = st.lists(st.sampled_from(["a", "b", "docs", "x.md", "y.md"]), min_size=1, max_size=3).map(
    "/".join
)


def renamed_slowly(gold, run):
    """Return the mapping by comparing every pair, or None where it is ambiguous."""
    exact = gold & run
    mapping = {}
    for run_id in run - exact:
        fits = [g for g in gold if run_id.endswith("/" + g) or g.endswith("/" + run_id)]
        if not [g for g in fits if g not in exact]:
            continue
        if len(fits) > 1:
            return None
        mapping[run_id] = fits[0]
    return None if len(set(mapping.values())) < len(mapping) else mapping


@given(st.sets(paths, min_size=1), st.sets(paths))
def test_ids_are_matched_as_comparing_every_pair_does(gold, run):
    wanted = renamed_slowly(gold, run)
    if wanted is None:
        with pytest.raises(InputError) as error:
            DocumentIds.of(gold).renamed(run)
        assert error.value.field == "doc_id"
    else:
        assert DocumentIds.of(gold).renamed(run) == wanted


def span(doc_id, start=0, end=10):
    return {"doc_id": doc_id, "start": start, "end": end}


def gold(*doc_ids):
    return [
        {"query_id": f"q{n}", "query": "?", "spans": [span(doc_id)]}
        for n, doc_id in enumerate(doc_ids)
    ]


def run(*doc_ids):
    return [{"query_id": f"q{n}", "results": [span(doc_id)]} for n, doc_id in enumerate(doc_ids)]


def test_a_path_prefix_in_the_run_is_matched_and_reported():
    scores = karat.evaluate(gold("alder.md", "b.md"), run("docs/alder.md", "docs/b.md"))
    assert scores["span.recall@2000c"] == 1.0
    assert "'docs/alder.md'" in scores.notes[0]
    assert "'alder.md'" in scores.notes[0]


def test_a_path_prefix_in_gold_is_matched():
    assert karat.evaluate(gold("docs/a.md"), run("a.md"))["span.recall@2000c"] == 1.0


def test_an_exact_match_takes_precedence():
    both = [{"query_id": "q0", "results": [span("docs/a.md"), span("a.md", 5, 10)]}]
    assert karat.evaluate(gold("a.md"), both, "span.recall@1")["span.recall@1"] == 0.0
    assert karat.evaluate(gold("a.md"), both, "span.recall@2")["span.recall@2"] == 0.5


def test_several_fitting_documents_are_an_error():
    with pytest.raises(InputError) as error:
        karat.evaluate(gold("a/x.md", "b/x.md"), run("x.md", "y.md"))
    assert error.value.field == "doc_id"


def test_a_name_that_only_ends_alike_is_another_document():
    with pytest.warns(KaratWarning):
        scores = karat.evaluate(gold("der.md"), run("alder.md"))
    assert scores["span.recall@2000c"] == 0.0


@pytest.mark.parametrize(
    "verb",
    [
        lambda g, r: karat.evaluate(g, r, "span.recall"),
        lambda g, r: karat.compare(g, {"a": r, "b": r}, "span.recall"),
        lambda g, r: karat.gate(g, r, "span.recall >= 0"),
    ],
)
def test_documents_that_never_match_are_a_warning_with_examples_from_both_sides(verb):
    with pytest.warns(KaratWarning) as caught:
        verb(gold("a.md", "b.md"), run("zzz", "yyy"))
    message = str(caught[0].message)
    assert "'a.md'" in message
    assert "'zzz'" in message


def test_explain_matches_documents_too():
    explained = karat.explain("span.recall", gold=gold("a.md"), run=run("docs/a.md"), query="q0")
    assert explained.calculations[0].value == 1.0


def test_a_run_that_finds_most_documents_is_no_reason_to_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        karat.evaluate(gold("a.md", "b.md"), run("a.md", "zzz"), "span.recall")
