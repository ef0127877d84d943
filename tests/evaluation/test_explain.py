"""`karat explain`: every measure in words, and step by step to the value that `eval` gives."""

import json
import math
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len as cell_width

import karat
from karat.errors import ConventionError, KaratWarning
from karat.format import amount
from karat.measures import REGISTRY, parse
from support.effort import examples
from support.errors import refused

NAMES = [f"{name}@0.5" if d.cutoff == "share" else name for name, d in REGISTRY.items()]
CUT = [f"{name}@3" for name, d in REGISTRY.items() if d.cutoff in ("optional", "budget")]
CUT += [f"{name}@100c" for name, d in REGISTRY.items() if d.cutoff == "budget"]
RANKED = [name for name in [*NAMES, *CUT] if parse(name).declaration.family == "rank"]
EVIDENCE = [name for name in [*NAMES, *CUT] if parse(name).declaration.family == "evidence"]
SPANS = [name for name in [*NAMES, *CUT] if parse(name).declaration.family == "span"]
OF_THE_RUN = [name for name in NAMES if not parse(name).declaration.reads_gold]
ITEMS = [f"d{number}" for number in range(8)]


def placed(document, start, end):
    return {"doc_id": document, "start": start, "end": end}


golds = st.dictionaries(
    st.sampled_from(["q1", "q2"]),
    st.dictionaries(st.sampled_from(ITEMS), st.integers(-1, 3), min_size=1),
    min_size=1,
)
lists = st.lists(st.sampled_from([*ITEMS, "x", "y"]), max_size=12)
places = st.builds(
    lambda document, start, length: placed(document, start, start + length),
    st.sampled_from(["d1", "d2"]),
    st.integers(0, 90),
    st.sampled_from([0, 7, 60]),
)
place_lists = st.lists(places, max_size=6)
span_golds = st.dictionaries(
    st.sampled_from(["q1", "q2"]), st.lists(places, max_size=4), min_size=1
).map(lambda gold: [{"query_id": query, "spans": spans} for query, spans in gold.items()])
conventions = st.sampled_from([{}, {"unjudged": "skip"}, {"duplicates": "count", "no_gold": "one"}])


# In words


@cache
def values_of_the_example():
    """Return the scores of all measures for the example that explanations in words end with."""
    relevant = {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1}
    spans = [placed("d1", 120, 310), placed("d2", 0, 50)]
    starts = {"b": ("d1", 0), "x": ("d3", 0), "a": ("d1", 150), "d": ("d2", 0), "c": ("d1", 300)}
    texts = (
        "Orders may be returned within 30 days.",
        "We ship to all of Europe.",
        "Refunds are paid within fourteen days.",
        "Money goes back to the card you paid with.",
        "Refunds are paid within 14 days, to the card you paid with.",
        "We pay in euros.",
    )
    listed = {**starts, "y": ("d3", 150)}.items()
    results = [
        {"id": item, **placed(document, start, start + 200), "text": text}
        | {"tokens": len(text.split())}
        for (item, (document, start)), text in zip(listed, texts, strict=True)
    ]
    evidence = ["Refunds are paid within 14 days", "to the card you paid with", "in euros"]
    gold = [{"query_id": "q", "relevant": relevant, "spans": spans, "evidence": evidence}]
    calls = [
        {"stage": "retrieval", "model": "embedder", "prompt_tokens": 12, "price_in": 0.00002},
        {"stage": "rerank", "model": "reranker", "price_per_call": 0.002},
    ]
    usage = {"latency_ms": {"total": 123.4, "retrieval": 80.1, "rerank": 43.0}, "calls": calls}
    run = [{"query_id": "q", "results": results, **usage}]
    return dict(karat.evaluate(gold, run, [*NAMES, *CUT], chunks=pl.DataFrame(results)))


def rows_of(explanation):
    return [line.split() for line in str(explanation).splitlines()]


def shown(value):
    if value is None:
        return "excluded"
    if 0 < value < 1e-9:
        return f"{value:.2e}"
    return amount(value) if 0 < value < 0.001 else f"{value:.4f}"


@pytest.mark.parametrize("name", [*NAMES, *CUT])
def test_every_measure_is_explained_in_words_with_an_example(name):
    text = str(karat.explain(name))
    canonical = str(parse(name))
    assert text.startswith(f"{canonical}: {parse(name).declaration.title}\n")
    for label in ("Formula", "Cutoff", "Over queries", "Edge cases", "Other tools", "Example"):
        assert f"\n{label}" in text
    assert max(map(len, text.splitlines())) <= 80
    value = values_of_the_example()[canonical]
    assert text.endswith(f"\n{canonical} = {shown(value)}")


# With data


def in_batches(names):
    """Spread names over tests, so that they are explained with different data."""
    batches = [names[at : at + 8] for at in range(0, len(names), 8)]
    return pytest.mark.parametrize("names", batches, ids=lambda batch: f"{batch[0]}..{batch[-1]}")


def assert_calculated_as_evaluated(names, gold, query, runs, **options):
    """Explain each measure for one run and for two; return the explanations of two."""
    gold, runs = karat.Gold.of(gold), [karat.Run.of(run) for run in runs]
    rows = [
        karat.evaluate(gold, run, names, **options).per_query.row(
            by_predicate=pl.col("query_id") == query, named=True
        )
        for run in runs
    ]
    explanations = []
    for name in names:
        values = [row[str(parse(name))] for row in rows]
        both = karat.explain(name, gold=gold, run=runs[0], other=runs[1], query=query, **options)
        assert [calculation.value for calculation in both.calculations] == values
        if None not in values:
            assert both.difference == values[1] - values[0]
        json.dumps(both.as_dict())
        assert max(map(cell_width, str(both).splitlines())) <= 80
        alone = replace(both, calculations=both.calculations[:1])
        assert str(alone).splitlines()[-1].endswith(f"= {shown(values[0])}")
        explanations.append(both)
    # One run by itself has the same calculation; explaining is slow, so one measure is enough.
    alone = karat.explain(names[0], gold=gold, run=runs[0], query=query, **options)
    assert alone.calculations == explanations[0].calculations[:1]
    return explanations


def chunks_with(ids, places=()):
    """Return a table of chunks with these ids, and others at these places."""
    rows = [{"id": item, **placed("d1", 0, 50)} for item in ids]
    rows += [{"id": f"chunk {at}", **place} for at, place in enumerate(places)]
    return karat.Chunks.of(pl.DataFrame(rows))


CHUNKS = chunks_with([*ITEMS, "x", "y", "first", "a", "b", "c"], [placed("d2", 20, 99)])


@in_batches(RANKED)
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@examples(6, 60)
@given(golds, lists, lists, conventions)
def test_rank_measures_are_calculated_to_the_digits_of_eval(names, gold, one, other, words):
    query = min(gold)
    runs = [{query: one}, {query: other}]
    assert_calculated_as_evaluated(names, gold, query, runs, conventions=words, chunks=CHUNKS)


@in_batches(SPANS)
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@examples(6, 60)
@given(span_golds, place_lists, place_lists, conventions)
def test_span_measures_are_calculated_to_the_digits_of_eval(names, gold, one, other, words):
    query = min(record["query_id"] for record in gold)
    runs = [[{"query_id": query, "results": results}] for results in (one, other)]
    chunks = chunks_with("ab", [*one, *other, placed("d2", 20, 99)])
    assert_calculated_as_evaluated(names, gold, query, runs, conventions=words, chunks=chunks)


PHRASES = ["paid within 14 days", "Paid within 41 days", "by post", "to the card", "a", ""]
texts = st.lists(st.sampled_from(PHRASES), max_size=3).map(", ".join)


@in_batches(EVIDENCE)
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@examples(6, 60)
@given(
    st.lists(texts, max_size=4),
    st.lists(texts, max_size=5),
    st.lists(texts, max_size=5),
    st.sampled_from([{}, {"no_gold": "one"}]),
)
def test_evidence_measures_are_calculated_to_the_digits_of_eval(names, evidence, one, other, words):
    gold = [{"query_id": "q", "evidence": evidence}, {"query_id": "p", "evidence": ["by post"]}]
    runs = [
        [{"query_id": "q", "results": [{"text": text} for text in chunks]}]
        for chunks in (one, other)
    ]
    distinct = {" ".join(text.split()).lower() for text in evidence} - {""}
    for both in assert_calculated_as_evaluated(names, gold, "q", runs, conventions=words):
        assert {len(calculation.matches) for calculation in both.calculations} == {len(distinct)}


def test_missed_evidence_is_shown_with_the_nearest_chunk():
    gold = [{"query_id": "q", "evidence": ["paid within 14 days", "nothing like it at all"]}]
    results = [{"id": "a", "text": "by post"}, {"id": "b", "text": "It is PAID\nwithin 14 days."}]
    run = [{"query_id": "q", "results": results}]
    explained = karat.explain("evidence.recall@2", gold=gold, run=run, query="q")
    missed, covered = explained.calculations[0].matches
    assert (covered["rank"], covered["item_id"], covered["how"]) == (2, "b", "substring")
    assert results[1]["text"][covered["start"] : covered["end"]] == "PAID\nwithin 14 days"
    assert (missed["how"], missed["nearest_rank"], missed["nearest_item_id"]) == ("missed", 2, "b")
    assert 0 < missed["nearest_ratio"] <= missed["nearest_indel"] < 0.7
    text = str(explained)
    assert "\nEvidence\nevidence " in text
    assert "Covered  a substring of the chunk, or SequenceMatcher's ratio ≥ 0.7" in text


def test_given_matching_rule_is_the_one_explained():
    rule = karat.Matching(matcher="tokens", fuzzy_threshold=0.9)
    text = str(karat.explain("evidence.recall@4", matching=rule))
    assert "Covered       a substring of the chunk, or the share of its tokens" in text
    assert text.endswith("\nevidence.recall@4 = 0.3333")  # fourteen is not 14
    gold = [{"query_id": "q", "evidence": ["a"]}]
    run = [{"query_id": "q", "results": [{"text": "a"}]}]
    for data in ({}, {"gold": gold, "run": run, "query": "q"}):
        with refused(field="matching") as error:
            karat.explain("evidence.recall", matching="tokens", **data)
        assert "'tokens'" in str(error.value)


def test_texts_without_an_id_are_shown_on_one_line_as_items():
    gold = [{"query_id": "q", "evidence": ["paid\nwithin 14 days"]}]
    run = [{"query_id": "q", "results": [{"text": "It is paid\n within 14 days."}]}]
    lines = str(karat.explain("evidence.recall", gold=gold, run=run, query="q")).splitlines()
    rows = [" ".join(line.split()) for line in lines]
    assert "1 It is paid within 14 days. 1" in rows
    assert any(
        row.startswith("paid within") and row.endswith("1 substring – – – –") for row in rows
    )


used = st.fixed_dictionaries(
    {
        "results": st.lists(
            st.fixed_dictionaries(
                {"id": st.sampled_from("abc")}, optional={"tokens": st.integers(0, 9)}
            ),
            max_size=5,
        ).map(lambda listed: [{"id": "first", "tokens": 3}, *listed]),
        "latency_ms": st.fixed_dictionaries({"total": st.floats(0, 1e6), "rerank": st.just(0.1)}),
        "calls": st.lists(
            st.fixed_dictionaries(
                {"stage": st.just("rerank")},
                optional={"prompt_tokens": st.just(7), "price_in": st.sampled_from([0.0, 0.1])},
            ),
            min_size=1,
            max_size=30,
        ),
    }
)


@in_batches(OF_THE_RUN)
@examples(10, 60)
@given(used, used, conventions)
def test_measures_of_the_run_are_calculated_to_the_digits_of_eval(names, one, other, words):
    runs = [[{"query_id": "q1", **usage}] for usage in (one, other)]
    assert_calculated_as_evaluated(
        names, {"q1": ["a"]}, "q1", runs, conventions=words, chunks=CHUNKS
    )


@examples(15, 150)
@given(span_golds, place_lists)
def test_characters_added_by_items_add_up_to_those_of_the_query(gold, results):
    query = min(record["query_id"] for record in gold)
    data = {
        "gold": karat.Gold.of(gold),
        "run": karat.Run.of([{"query_id": query, "results": results}]),
        "query": query,
    }
    totals = {"characters": "retrieved", "new": "each once", "new gold": "of gold"}
    for name in ("span.recall", "span.precision@3", "span.iou@2", "span.f1@70c"):
        (calculation,) = karat.explain(name, **data).calculations
        for column, number in totals.items():
            total = sum(row.get(column) or 0 for row in calculation.rows)
            assert total == calculation.numbers[number]


def test_items_of_a_span_measure_are_named_by_their_place():
    gold = [{"query_id": "q", "spans": [placed("d", 0, 100)]}]
    run = [{"query_id": "q", "results": [placed("d", 0, 50), placed("d", 30, 80)]}]
    (calculation,) = karat.explain("span.recall@1", gold=gold, run=run, query="q").calculations
    assert [row["item"] for row in calculation.rows] == ["d[0:50]"]
    text = str(karat.explain("span.recall@2", gold=gold, run=run, query="q"))
    assert "\n   2  d[30:80]" in text
    assert text.endswith("span.recall@2 = 0.8000")


def test_query_without_spans_is_left_out_of_span_measures_with_a_remark():
    gold = [
        {"query_id": "q", "spans": [placed("d", 0, 9)]},
        {"query_id": "r", "relevant": ["a"]},
        {"query_id": "s", "spans": []},
    ]
    run = [{"query_id": query, "results": [placed("d", 0, 9)]} for query in "qrs"]
    text = str(karat.explain("span.iou", gold=gold, run=run, query="r"))
    assert text.endswith("span.iou = excluded")
    assert "gold has no spans for this query" in text
    text = str(karat.explain("span.recall", gold=gold, run=run, query="s"))
    assert text.endswith("span.recall = 1.0000")
    assert "no_gold=family" in text


TOTALS = {
    "nDCG@4": ("contribution", "DCG"),
    "AP": ("precision", "sum of precisions"),
    "G": ("contribution", "sum of contributions"),
    "binG": ("contribution", "sum of contributions"),
    "RBP(p=0.9, gain=query)": ("contribution", "sum of contributions"),
    "nDCGrel": ("nDCG", "sum at found"),
}


@examples(25, 250)
@given(golds, lists)
def test_contributions_of_items_add_up_to_the_number_of_the_query(gold, items):
    query = min(gold)
    data = {"gold": karat.Gold.of(gold), "run": karat.Run.of({query: items}), "query": query}
    for name, (column, number) in TOTALS.items():
        (calculation,) = karat.explain(name, **data).calculations
        total = math.fsum(row.get(column, 0.0) for row in calculation.rows)
        assert math.isclose(total, calculation.numbers[number], rel_tol=1e-12, abs_tol=1e-15)


def test_bpref_shows_how_many_irrelevant_items_are_above():
    gold = {"q": {"a": 1, "b": 0, "c": 1, "d": 0}}
    explanation = karat.explain("Bpref", gold=gold, run={"q": ["b", "x", "a", "c"]}, query="q")
    rows = {row["item"]: row for row in explanation.calculations[0].rows}
    assert rows["a"]["irrelevant above"] == 1
    assert rows["c"]["irrelevant above"] == 1
    assert "irrelevant above" not in rows["x"]
    assert explanation.calculations[0].numbers == {"judged irrelevant": 2, "all relevant": 2}


def test_long_list_is_cut_off():
    gold = {"q": {f"d{n}": n % 2 for n in range(300)}}
    run = {"q": [f"d{n}" for n in range(300)]}
    text = str(karat.explain("AP", gold=gold, run=run, query="q"))
    assert len(text.splitlines()) < 75
    assert "\n  22  d21" in text
    assert "\n  23  d22" not in text
    both = str(karat.explain("nDCG", gold=gold, run=run, other={"q": ["d1"]}, query="q"))
    assert "and 240 more" in both


def test_conventions_that_decide_are_named():
    gold = {"q1": {"a": 1}, "q2": {"a": 0}}
    lacking = karat.explain("RR", gold=gold, run={"q2": ["a"]}, query="q1")
    assert "the run lacks this query: missing=zero" in str(lacking)
    skipped = karat.explain(
        "RR", gold=gold, run={"q2": ["a"]}, query="q1", conventions={"missing": "skip"}
    )
    assert str(skipped).endswith("RR = excluded")
    assert "Conventions  missing=skip" in str(skipped)
    nothing = karat.explain("RR", gold=gold, run={"q2": ["a", "a"]}, query="q2")
    assert "gold has nothing relevant for this query: no_gold=family" in str(nothing)
    assert "an item is repeated in the list: duplicates=first" in str(nothing)


def test_documents_are_calculated_as_documents():
    gold = {"q": {"doc": 1}}
    run = [
        {
            "query_id": "q",
            "results": [
                {"id": "c1", "doc_id": "other"},
                {"id": "c2", "doc_id": "other"},
                {"id": "c3", "doc_id": "doc"},
            ],
        }
    ]
    explanation = karat.explain("RR", gold=gold, run=run, query="q", level="doc")
    assert explanation.calculations[0].value == 0.5
    assert [row["item"] for row in explanation.calculations[0].rows] == ["other", "doc"]


def test_an_item_judged_twice_has_the_grade_that_counts():
    table = {"query_id": ["q", "q"], "item_id": ["a", "a"], "grade": [2, 1]}
    with pytest.warns(KaratWarning):
        explanation = karat.explain("DCG", gold=pl.DataFrame(table), run={"q": ["a"]}, query="q")
    assert explanation.calculations[0].rows[0]["grade"] == 2


def test_contribution_of_a_repeated_item_includes_every_counted_rank():
    gold, one, other = {"q": {"a": 1}}, {"q": ["a", "a", "x", "a"]}, {"q": ["x", "a"]}
    words = {"conventions": {"duplicates": "count"}}
    both = karat.explain("P@4", gold=gold, run=one, other=other, query="q", **words)
    assert ["a", "1", "1", "2", "3.0000", "1.0000", "-2.0000"] in rows_of(both)
    assert both.difference == -0.5
    first = karat.explain("AP", gold=gold, run=one, other=other, query="q")
    assert ["a", "1", "1", "2", "1.0000", "0.5000", "-0.5000"] in rows_of(first)


@pytest.mark.parametrize("name", ["Unjudged@3", "RBPresid"])
def test_measures_of_unjudged_items_count_the_unjudged_ranks(name):
    gold, one, other = {"q": {"a": 1, "b": 0}}, {"q": ["x", "a", "b", "x"]}, {"q": ["a", "b"]}
    both = karat.explain(name, gold=gold, run=one, other=other, query="q")
    assert both.calculations[0].counted == [1]
    assert both.calculations[1].counted == []
    assert any(row[:4] == ["x", "–", "1", "–"] for row in rows_of(both))


def test_items_not_there_are_those_the_measure_would_have_rewarded():
    gold = {"q": {"a": 1, "b": 2, "c": 3, "d": 0}}
    run = {"q": ["x", "y", "c"]}
    rows = rows_of(karat.explain("AP(rel=2)@2", gold=gold, run=run, query="q"))
    at = rows.index(["relevant,", "but", "not", "counted", "grade", "rank"])
    assert rows[at + 1 : at + 4] == [["c", "3", "3"], ["b", "2", "not", "in", "the", "list"], []]
    nothing = karat.explain("NumNonrelRet", gold=gold, run=run, query="q")
    assert "not counted" not in str(nothing)
    rows = rows_of(karat.explain("nDCG(gain={1: 0, 0: 2})", gold=gold, run=run, query="q"))
    at = rows.index(["relevant,", "but", "not", "counted", "grade", "rank"])
    assert rows[at + 1 : at + 4] == [
        ["b", "2", "not", "in", "the", "list"],
        ["d", "0", "not", "in", "the", "list"],
        [],
    ]


def test_odd_names_keep_the_width():
    wide, query = "価値" * 30, "q" * 200
    gold, run = {query: {wide: 1, "e\u0301" * 60: 1}}, {query: [wide, "x\x1b[31m"]}
    for other in (None, run):
        text = str(karat.explain("AP", gold=gold, run=run, other=other, query=query))
        assert max(map(cell_width, text.splitlines())) <= 80
        assert "\x1b" not in text


def test_query_may_be_a_number():
    assert karat.explain("RR", gold={1: {"a": 1}}, run={1: ["a"]}, query=1).query == "1"


def test_recall_point_is_optional_without_data():
    assert str(karat.explain("IPrec")).startswith("IPrec@0.5: ")


def test_run_that_breaks_a_convention_is_refused_as_in_evaluate():
    gold, run = {"q": {"a": 1}}, {"q": ["a"], "other": ["a"]}
    with refused(ConventionError, field="unknown"):
        karat.explain("RR", gold=gold, run=run, query="q", conventions={"unknown": "error"})


def test_the_example_follows_the_conventions():
    text = str(karat.explain("RR", conventions={"unjudged": "skip"}))
    assert "2  a         3" in text
    assert "Convention    unjudged=skip" in text
    with refused(field="level"):
        karat.explain("RR", level="doc")


@pytest.fixture
def command(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("gold.qrels").write_text("q1 0 a 2\nq1 0 b 1\n")
    Path("one.run").write_text("q1 Q0 x 1 0.9 t\nq1 Q0 a 2 0.8 t\n")
    Path("two.run").write_text("q1 Q0 b 1 0.9 t\nq1 Q0 a 2 0.8 t\n")
    return partial(command, "explain")


DATA = ("--gold", "gold.qrels", "--run", "one.run", "--query", "q1")


def test_the_command_prints_the_calculation(command):
    code, out, err = command("RR", *DATA)
    assert (code, err) == (0, "")
    assert out == (
        "RR of query q1 = 0.5000\n"
        "\n"
        "Measure  Reciprocal rank\n"
        "Formula  1 / rank of the first relevant item, 0 if there is none\n"
        "\n"
        "one\n"
        "rank  item  grade  reciprocal\n"
        "   1  x         –           –\n"
        "   2  a         2      0.5000\n"
        "\n"
        "relevant, but not counted  grade             rank\n"
        "b                              1  not in the list\n"
        "\n"
        "first relevant rank or zero = 2\n"
        "RR = 0.5000\n"
    )


def test_the_command_shows_two_runs_side_by_side(command):
    code, out, _ = command("nDCG@10", *DATA, "--other", "two.run")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "nDCG@10 of query q1: one 0.4796, two 0.8597 (difference +0.3801)"
    assert lines[5:8] == [
        "contribution of each item",
        "item  grade  one rank  two rank     one     two  difference",
        "b         1         –         1  0.0000  1.0000     +1.0000",
    ]


def test_the_command_prints_json(command):
    code, out, _ = command("P@2", *DATA, "--json", "--unjudged", "skip")
    document = json.loads(out)
    assert code == 0
    assert document["measure"] == "P@2"
    assert document["calculations"][0]["value"] == 0.5
    assert document["calculations"][0]["list"] == [{"rank": 1, "item": "a", "grade": 2}]
    assert document["conventions"]["unjudged"] == "skip"


@pytest.mark.parametrize(
    ("words", "place", "value"),
    [
        (("nDGC@10",), "", "'nDGC@10'"),
        (("RR", "--gold", "gold.qrels"), "", "run and query"),
        (("RR", *DATA[:4]), "", "query"),
        (("RR", *DATA[:4], "--query", "q9"), "query: ", "'q9'"),
        (("RR", *DATA, "--missing", "never"), "missing: ", "'never'"),
        (("RR", *DATA, "--other", "three.run"), "three.run: ", ""),
    ],
)
def test_mistakes_are_reported_with_a_hint_and_exit_code_2(command, words, place, value):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    problem, hint = err.splitlines()
    assert problem.startswith(f"error: {place}")
    assert value in problem
    assert hint.startswith("  hint: ")


def test_preset_gives_names_conventions_and_settings_of_the_environment(monkeypatch):
    gold = [{"query_id": "q1", "query": "pay", "evidence": ["refund"]}]
    run = {"query_id": "q1", "results": [{"id": "x", "text": "no"}, {"id": "a", "text": "refund"}]}
    data = {"gold": gold, "run": [run], "query": "q1"}
    explained = karat.explain("HitRate@10", **data, preset="coverage")
    assert explained.as_dict()["measure"] == "evidence.Success@10"
    assert "evidence.Success@10 = 1.0000" in str(explained)
    monkeypatch.setenv("RAG_TOP_K", "1")
    shortened = karat.explain("HitRate@10", **data, preset="coverage")
    assert "evidence.Success@10 = 0.0000" in str(shortened)
    assert "RAG_TOP_K" not in str(karat.explain("HitRate@10", preset="coverage"))


def test_query_may_be_named_by_its_text_which_is_shown():
    gold = [
        {"query_id": "q1", "query": "How do I pay?", "relevant": ["a"]},
        {"query_id": "q2", "query": "Where is my order?", "relevant": ["b"]},
    ]
    explanation = karat.explain(
        "RR", gold=gold, run={"q1": ["a"], "q2": ["b"]}, query="How do I pay?"
    )
    assert (explanation.query, explanation.text) == ("q1", "How do I pay?")
    assert "How do I pay?" in str(explanation)
    with refused(field="query"):
        karat.explain("RR", gold=gold, run={"q1": ["a"]}, query="How")


def test_relevant_items_below_the_cutoff_are_shown_with_their_rank():
    gold = {"q1": {"a": 2, "b": 1, "z": 3}}
    one, other = {"q1": ["x", "y", "b", "a"]}, {"q1": ["a", "b", "x"]}
    text = str(karat.explain("nDCG@2", gold=gold, run=one, other=other, query="q1"))
    rows = [line.split() for line in text.splitlines()]
    assert next(row[1:4] for row in rows if row[:1] == ["a"]) == ["2", "4", "1"]
    missed = [row[0] for row in rows if row[:1] and row[0] in "abz" and len(row) in (3, 6)]
    assert missed[:3] == ["b", "a", "z"]  # first those in the list, by rank
