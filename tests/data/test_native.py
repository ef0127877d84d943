"""karat's own JSON Lines: everything a query holds is read, and written again."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from karat.data import Gold, Run
from karat.errors import InputError, KaratWarning
from support.errors import refused


def put(folder: Path, *lines: object, name: str = "support.jsonl") -> Path:
    """Write lines as JSON; text is written unchanged."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path = folder / name
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def gold(folder: Path, *lines: object) -> Gold:
    return Gold.read(put(folder, *lines))


def run(folder: Path, *lines: object) -> Run:
    return Run.read(put(folder, *lines))


def again(value: Gold | Run, folder: Path) -> Gold | Run:
    """Write a value and read it."""
    value.write(folder / "again.jsonl")
    return type(value).read(folder / "again.jsonl")


def error_of(folder: Path, kind: type[Gold] | type[Run], *lines: object) -> InputError:
    """Return the error that reading these lines raises, which must name the file."""
    path = put(folder, *lines)
    with refused(path=path) as caught:
        kind.read(path)
    return caught.value


# The header


def test_a_header_names_the_gold(tmp_path):
    header = {"karat": 1, "kind": "gold", "name": "support-faq"}
    assert gold(tmp_path, header, {"query_id": "q1", "relevant": ["a"]}).name == "support-faq"


def test_a_header_carries_the_settings_of_a_run(tmp_path):
    header = {"karat": 1, "kind": "run", "name": "hybrid", "settings": {"top_k": 20}}
    assert run(tmp_path, header, {"query_id": "q1", "results": []}).settings == {"top_k": 20}


def test_the_keys_of_a_header_may_have_any_order(tmp_path):
    header = '{"name": "support-faq", "kind": "gold", "karat": 1}'
    assert gold(tmp_path, header, {"query_id": "q1", "relevant": ["a"]}).name == "support-faq"


def test_without_a_header_a_run_is_named_after_its_file(tmp_path):
    path = put(tmp_path, {"query_id": "q1", "results": ["a"]}, name="hybrid.jsonl")
    assert Run.read(path).name == "hybrid"


def test_a_header_of_a_newer_version_is_refused(tmp_path):
    error = error_of(tmp_path, Gold, {"karat": 2, "kind": "gold"}, {"query_id": "q1"})
    assert (error.line, error.field) == (1, "karat")


def test_offsets_other_than_code_points_keep_their_unit(tmp_path):
    header = {"karat": 1, "kind": "gold", "offsets": "utf16"}
    line = {"query_id": "q1", "spans": [{"doc_id": "d", "start": 1, "end": 2}]}
    path = put(tmp_path, header, line)
    try:
        Gold.read(path).write(tmp_path / "again.jsonl")
    except InputError as error:
        assert error.field == "offsets"  # noqa: PT017  refusing is correct as well
    else:
        assert '"utf16"' in (tmp_path / "again.jsonl").read_text(encoding="utf-8")


# Gold


def test_relevant_is_a_dict_of_grades(tmp_path):
    loaded = gold(tmp_path, {"query_id": "q1", "relevant": {"a": 2, "b": 0, "c": -1}})
    assert loaded.judgments.rows() == [("q1", "a", 2), ("q1", "b", 0), ("q1", "c", -1)]


def test_relevant_may_be_a_list_of_ids(tmp_path):
    loaded = gold(tmp_path, {"query_id": "q1", "relevant": ["a", "b"]})
    assert loaded.judgments.rows() == [("q1", "a", 1), ("q1", "b", 1)]


@pytest.mark.parametrize("relevant", [[], {}])
def test_a_query_with_nothing_relevant_is_still_judged(tmp_path, relevant):
    loaded = gold(tmp_path, {"query_id": "q1", "relevant": relevant})
    assert loaded.query_ids_judged.to_list() == ["q1"]


def test_a_query_without_judgments_is_not_judged(tmp_path):
    loaded = gold(tmp_path, {"query_id": "q1", "evidence": ["text"]})
    assert loaded.query_ids_judged.to_list() == []


def test_further_keys_are_fields_of_the_query(tmp_path):
    line = {"query_id": "q1", "query": "how?", "category": "billing", "relevant": ["a"], "size": 3}
    loaded = gold(tmp_path, line)
    assert loaded.queries.to_dicts() == [
        {"query_id": "q1", "text": "how?", "category": "billing", "size": 3}
    ]


def test_a_field_of_mixed_types_becomes_text(tmp_path):
    loaded = gold(
        tmp_path,
        {"query_id": "q1", "relevant": ["a"], "level": 1},
        {"query_id": "q2", "relevant": ["a"], "level": "hard"},
        {"query_id": "q3", "relevant": ["a"]},
    )
    assert loaded.queries["level"].to_list() == ["1", "hard", None]


def test_a_field_called_text_does_not_replace_the_query(tmp_path):
    loaded = gold(tmp_path, {"query_id": "q1", "query": "how?", "text": "other", "relevant": ["a"]})
    assert "how?" in loaded.queries.row(0)


def test_a_field_called_title_stays_a_field(tmp_path):
    loaded = gold(tmp_path, {"query_id": "q1", "title": "Refunds", "relevant": ["a"]})
    assert loaded.fields == ["title"]


def test_integer_ids_become_decimal_text(tmp_path):
    loaded = gold(tmp_path, {"query_id": 7, "relevant": [12, "x"]})
    assert loaded.judgments.rows() == [("7", "12", 1), ("7", "x", 1)]


@pytest.mark.parametrize(
    "line",
    [
        {
            "query_id": "q1",
            "query": "how long does a refund take? äöü 文",
            "category": "billing",
            "tags": ["a", "b"],
            "relevant": {"chunk-3": 2, "chunk-9": 1},
        },
        {
            "query_id": "q1",
            "spans": [
                {"doc_id": "d1", "start": 120, "end": 310, "text": "paid", "grade": 2},
                {"doc_id": "d2", "start": 0, "end": 0, "grade": 1},
            ],
        },
        {"query_id": "q1", "evidence": ["the refund is paid within 14 days", ""]},
        {"query_id": "q1", "relevant": {}},
    ],
    ids=["fields and judgments", "spans", "evidence", "nothing relevant"],
)
def test_gold_is_written_as_it_was_read(tmp_path, line):
    again(gold(tmp_path, line), tmp_path)
    written = (tmp_path / "again.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    assert [_with_default_grades(json.loads(text)) for text in written] == [line]


def _with_default_grades(line: dict) -> dict:
    for span in line.get("spans", ()):
        span.setdefault("grade", 1)
    return line


def test_the_name_and_settings_of_gold_are_written_and_read(tmp_path):
    header = {"karat": 1, "kind": "gold", "name": "faq", "settings": {"judge": {"model": "x"}}}
    loaded = again(gold(tmp_path, header, {"query_id": "q1", "relevant": ["a"]}), tmp_path)
    assert (loaded.name, loaded.settings) == ("faq", {"judge": {"model": "x"}})


# Runs


def test_the_order_listed_is_the_ranking(tmp_path):
    loaded = run(tmp_path, {"query_id": "q1", "results": [{"id": "b"}, {"id": "a"}, {"id": "c"}]})
    assert loaded.results["item_id"].to_list() == ["b", "a", "c"]


def test_results_may_be_plain_ids(tmp_path):
    loaded = run(tmp_path, {"query_id": "q1", "results": ["b", 7]})
    assert loaded.results["item_id"].to_list() == ["b", "7"]


def test_scores_that_contradict_the_order_are_counted_in_a_warning(tmp_path):
    results = [{"id": "a", "score": 1}, {"id": "b", "score": 3}, {"id": "c", "score": 4}]
    path = put(tmp_path, {"query_id": "q1", "results": results})
    with pytest.warns(KaratWarning, match=r"\b2\b"):
        Run.read(path)


def test_scores_that_contradict_the_order_do_not_change_it(tmp_path):
    results = [{"id": "a", "score": 1}, {"id": "b", "score": 3}]
    path = put(tmp_path, {"query_id": "q1", "results": results})
    with pytest.warns(KaratWarning):
        loaded = Run.read(path)
    assert loaded.results["item_id"].to_list() == ["a", "b"]


def test_equal_scores_do_not_contradict_the_order(tmp_path):
    results = [{"id": "a", "score": 1}, {"id": "b", "score": 1}]
    loaded = run(tmp_path, {"query_id": "q1", "results": results})
    assert loaded.results["item_id"].to_list() == ["a", "b"]


def test_scores_of_one_query_are_not_compared_with_those_of_the_next(tmp_path):
    loaded = run(
        tmp_path,
        {"query_id": "q1", "results": [{"id": "a", "score": 1}]},
        {"query_id": "q2", "results": [{"id": "b", "score": 9}]},
    )
    assert loaded.results["score"].to_list() == [1.0, 9.0]


def test_a_document_without_a_start_is_the_item(tmp_path):
    loaded = run(tmp_path, {"query_id": "q1", "results": [{"doc_id": "d1"}]})
    assert loaded.results["item_id"].to_list() == ["d1"]


def test_a_document_with_a_start_is_a_place_and_not_an_item(tmp_path):
    results = [{"doc_id": "d1", "start": 0, "end": 5}]
    loaded = run(tmp_path, {"query_id": "q1", "results": results})
    assert loaded.results.to_dicts() == [{"query_id": "q1", "doc_id": "d1", "start": 0, "end": 5}]


def test_a_failed_query_has_retrieved_nothing(tmp_path):
    line = {"query_id": "q1", "error": {"type": "Timeout"}, "results": [{"id": "a"}]}
    loaded = run(tmp_path, line)
    assert (loaded.empty, loaded.results.height) == (("q1",), 0)


def test_failed_queries_are_counted(tmp_path):
    loaded = run(
        tmp_path,
        {"query_id": "q1", "results": ["a"]},
        {"query_id": "q2", "results": []},
        {"query_id": "q3", "error": {"type": "Timeout", "message": "30 s", "attempts": 3}},
    )
    assert loaded.failed == 1


def test_a_query_that_retrieved_nothing_is_kept(tmp_path):
    loaded = run(tmp_path, {"query_id": "q1", "results": []}, {"query_id": "q2", "results": ["a"]})
    assert sorted(loaded.query_ids) == ["q1", "q2"]


@pytest.mark.parametrize(
    "line",
    [
        {
            "query_id": "q1",
            "results": [
                {"id": "c3", "score": 0.82, "doc_id": "d1", "start": 0, "end": 500, "text": "…"},
                {"id": "c5", "tokens": 128},
                {"id": "c4", "score": 0.1, "doc_id": "d2"},
                {"doc_id": "d3", "start": 4, "end": 9, "score": 0.05},
            ],
        },
        {
            "query_id": "q1",
            "results": [{"id": "c3"}],
            "latency_ms": {"total": 123.4, "retrieval": 80.1, "rerank": 43.0},
        },
        {
            "query_id": "q1",
            "results": [{"id": "c3"}],
            "calls": [
                {"stage": "embed", "model": "e", "prompt_tokens": 9, "price_per_1k": 0.1},
                {"stage": "generation", "prompt_tokens": 812, "completion_tokens": 64},
            ],
        },
        {
            "query_id": "q1",
            "results": [],
            "error": {"type": "Timeout", "message": "30 s", "attempts": 3},
            "latency_ms": {"total": 30000.0},
        },
        {"query_id": "q1", "results": [{"id": "c3"}], "attempts": 2, "varied": True},
        {"query_id": "q1", "results": []},
        {
            "query_id": "q1",
            "results": [{"id": "c3", "score": 0.9}],
            "candidates": [
                {"id": "c5", "score": 0.2, "text": "…", "tokens": 4},
                {"id": "c3", "doc_id": "d1", "start": 0, "end": 5},
            ],
        },
        {"query_id": "q1", "results": [{"id": "c3"}], "candidates": []},
    ],
    ids=[
        "results",
        "latency",
        "calls",
        "error",
        "attempts",
        "nothing retrieved",
        "candidates",
        "no candidates",
    ],
)
def test_a_run_is_written_as_it_was_read(tmp_path, line):
    again(run(tmp_path, line), tmp_path)
    written = (tmp_path / "again.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    assert [json.loads(text) for text in written] == [line]


RERANKED = [
    {
        "query_id": "q1",
        "results": ["a"],
        "candidates": [{"item_id": "b"}, {"item_id": "a", "score": 2}],
    },
    {"query_id": "q2", "results": ["a"]},
    {"query_id": "q3", "results": [], "candidates": []},
    {"query_id": "q4", "results": [], "candidates": ["a"], "error": {"type": "Timeout"}},
]


def test_candidates_are_a_run_of_the_queries_that_have_them(tmp_path):
    for made in (Run.of(RERANKED), run(tmp_path, *RERANKED), again(Run.of(RERANKED), tmp_path)):
        assert made.candidates.results.rows() == [("q1", "b", None), ("q1", "a", 2.0)]
        assert made.candidates.query_ids.to_list() == ["q1", "q3"]
        assert made.only(["q3", "q2"]).candidates.query_ids.to_list() == ["q3"]
    assert Run.of(RERANKED[1:2]).candidates is None


def test_candidates_of_returned_objects_are_kept():
    returned = {"results": [("a", 2.0)], "candidates": [("b", 0.5), {"chunk_id": "a"}]}
    made = Run.of({"q1": returned, "q2": ["a"]})
    assert made.candidates.results.rows() == [("q1", "b", 0.5), ("q1", "a", None)]


def test_candidates_of_several_files_are_combined(tmp_path):
    put(tmp_path, RERANKED[0], name="part-1.jsonl")
    put(tmp_path, *RERANKED[1:3], name="part-2.jsonl")
    combined = Run.read(f"{tmp_path}/part-*.jsonl").candidates
    assert combined.query_ids.to_list() == ["q1", "q3"]


def test_offsets_of_candidates_are_converted_with_those_of_the_results():
    item = {"doc_id": "d", "start": 2, "end": 3}
    made = Run.of([{"query_id": "q", "results": [item], "candidates": [item, item]}])
    converted = made.counted_in("utf16").in_code_points({"d": "😀bc"}).candidates
    assert (converted.results["start"].to_list(), converted.offsets) == ([1, 1], "codepoint")
    first = {"doc_id": "d", "start": 0, "end": 2}
    made = Run.of([{"query_id": "q", "results": [first], "candidates": [item]}])
    with refused(field="candidates"):
        made.counted_in("utf16").in_code_points({"d": "😀"})


def test_formats_that_cannot_store_candidates_state_it(tmp_path):
    for name in ("run.run", "run.csv", "run.parquet", "run.json"):
        with pytest.warns(KaratWarning, match="candidates"):
            Run.of(RERANKED[:2]).write(tmp_path / name)


@pytest.mark.parametrize(
    ("candidates", "field"),
    [
        ("3", "candidates"),
        ("{}", "candidates"),
        ("[null]", "candidates[0]"),
        ('["a", {"score": 1}]', "candidates[1]"),
        ('[{"id": "a", "score": "high"}]', "candidates[0].score"),
        ('[{"id": "a", "start": 4, "end": 2}]', "candidates[0]"),
        ('[{"id": "a", "start": -1, "end": 2}]', "candidates[0].start"),
        ('["a\\u0000"]', "candidates"),
        ('[{"id": "a\\u0000"}]', "id"),
        ('[{"chunk_id": 1.5}]', "candidates[0].chunk_id"),
        ('[{"id": "a", "score": NaN}]', "candidates[0].score"),
        ('[{"id": "\\ud800"}]', "candidates[0].id"),
    ],
)
def test_damaged_candidates_are_refused_by_line_and_field(tmp_path, candidates, field):
    damaged = f'{{"query_id": "q2", "results": ["a"], "candidates": {candidates}}}'
    error = error_of(tmp_path, Run, RERANKED[0], damaged)
    assert (error.line, error.field) == (2, field)


@pytest.mark.parametrize("field", ["candidates[1]", "results[1]"])
def test_damaged_returned_objects_are_refused_by_field(field):
    returned = {"results": ["a", "b"], "candidates": ["a", "b"]}
    returned[field.removesuffix("[1]")] = ["a", {"nothing": 1}]
    with refused(field=field):
        Run.of({"q1": returned})


def test_a_response_is_kept_and_written(tmp_path):
    lines = [
        {"query_id": "q1", "results": ["a"], "response": "Two weeks."},
        {"query_id": "q2", "results": ["b"], "answer": "By card."},
        {"query_id": "q3", "results": ["c"], "response": ["not a text"]},
    ]
    run = Run.of(lines)
    assert run.responses.rows() == [("q1", "Two weeks."), ("q2", "By card.")]
    run.write(tmp_path / "run.jsonl")
    assert Run.read(tmp_path / "run.jsonl").responses.equals(run.responses)
    assert run.only(["q2"]).responses.rows() == [("q2", "By card.")]


def test_a_call_belongs_to_the_query_of_its_line(tmp_path):
    line = {"query_id": "q1", "results": [], "calls": [{"stage": "embed", "query_id": "other"}]}
    calls = run(tmp_path, line).calls
    assert calls["query_id"].to_list() == ["q1"]


def test_calls_of_different_shape_are_read_or_refused_by_line(tmp_path):
    calls = [{"stage": "a", "model": {"name": "x"}}, {"stage": "b", "model": ["x"]}]
    path = put(tmp_path, {"query_id": "q1", "results": [], "calls": calls})
    try:
        assert Run.read(path).calls.height == 2
    except InputError as error:
        assert error.line == 1  # noqa: PT017  refusing is correct as well


# What is refused


def test_the_same_query_twice_is_refused(tmp_path):
    line = {"query_id": "q1", "relevant": ["a"]}
    error = error_of(tmp_path, Gold, line, {"query_id": "q2", "relevant": ["a"]}, line)
    assert (error.line, error.field) == (3, "query_id")


def test_the_same_query_as_number_and_as_text_is_refused(tmp_path):
    error = error_of(
        tmp_path, Run, {"query_id": 1, "results": []}, {"query_id": "1", "results": []}
    )
    assert (error.line, error.field) == (2, "query_id")


@pytest.mark.parametrize("value", [1.5, 1.0, True, None, ["q"], ""])
def test_a_query_id_that_is_neither_text_nor_integer_is_refused(tmp_path, value):
    error = error_of(tmp_path, Gold, {"query_id": value, "relevant": ["a"]})
    assert (error.line, error.field) == (1, "query_id")


@pytest.mark.parametrize("value", [1.5, True, ["q"], ""])
def test_a_result_id_that_is_neither_text_nor_integer_is_refused(tmp_path, value):
    error = error_of(tmp_path, Run, {"query_id": "q1", "results": [{"id": "a"}, {"id": value}]})
    assert (error.line, error.field) == (1, "results[1].id")


@pytest.mark.parametrize(
    ("relevant", "field"),
    [
        (["a", ""], "relevant[1]"),
        (["a", 1.5], "relevant[1]"),
        (["a", True], "relevant[1]"),
        ({"a": 1, "": 1}, "relevant"),
    ],
)
def test_a_relevant_id_that_is_neither_text_nor_integer_is_refused(tmp_path, relevant, field):
    error = error_of(tmp_path, Gold, {"query_id": "q1", "relevant": relevant})
    assert (error.line, error.field) == (1, field)


def test_a_line_without_a_query_id_is_refused(tmp_path):
    error = error_of(tmp_path, Gold, {"query_id": "q1", "relevant": ["a"]}, {"relevant": ["a"]})
    assert (error.line, error.field) == (2, "query_id")


def test_a_first_line_without_a_query_id_is_refused(tmp_path):
    error = error_of(
        tmp_path, Gold, {"name": "q1", "relevant": ["a"]}, {"name": "q2", "relevant": []}
    )
    assert (error.line, error.field) == (1, "query_id")


@pytest.mark.parametrize("line", ["[1]", "5", '"q1"', "null"])
def test_a_line_that_is_not_an_object_is_refused(tmp_path, line):
    assert error_of(tmp_path, Gold, {"query_id": "q1", "relevant": ["a"]}, line).line == 2


def test_a_result_with_nothing_in_it_is_refused(tmp_path):
    error = error_of(tmp_path, Run, {"query_id": "q1", "results": [{"id": "a"}, {"score": 1}]})
    assert (error.line, error.field) == (1, "results[1]")


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (5, 4), (-3, -2)])
def test_a_span_with_impossible_offsets_is_refused(tmp_path, start, end):
    span = {"doc_id": "d1", "start": start, "end": end}
    error = error_of(tmp_path, Gold, {"query_id": "q1", "spans": [span]})
    assert (error.line, error.field) == (1, "spans[0]")
    assert f"[{start}, {end})" in error.problem


@pytest.mark.parametrize(
    ("start", "end", "field"), [(-1, 3, "results[0].start"), (5, 4, "results[0]")]
)
def test_a_result_with_impossible_offsets_is_refused(tmp_path, start, end, field):
    result = {"doc_id": "d1", "start": start, "end": end}
    error = error_of(tmp_path, Run, {"query_id": "q1", "results": [result]})
    assert (error.line, error.field) == (1, field)


@pytest.mark.parametrize(
    ("kind", "content", "field"),
    [
        (Gold, {"relevant": {"b": 1, "a": 2**70}}, 'relevant["a"]'),
        (Gold, {"spans": [{"doc_id": "d", "start": 0, "end": 2**70}]}, "spans[0]"),
        (Run, {"results": [{"doc_id": "d", "start": 0, "end": 2**70}]}, "results[0].end"),
        (Run, {"results": [{"id": "a", "score": 10**400}]}, "results[0].score"),
    ],
    ids=["grade", "span", "result", "score"],
)
def test_a_number_that_is_too_large_is_refused(tmp_path, kind, content, field):
    error = error_of(tmp_path, kind, {"query_id": "q1", **content})
    assert (error.line, error.field) == (1, field)


NOT_JSON = {
    "a bare NaN": (b'"results":[{"id":"a","score":NaN}]', "results[0].score"),
    "a bare Infinity": (b'"results":[{"id":"a","score":-Infinity}]', "results[0].score"),
    "a number past floats": (b'"results":[{"id":"a","score":1e999}]', "results[0].score"),
    "a lone high surrogate": (b'"results":[{"id":"a\\ud800"}]', "results[0].id"),
    "a lone low surrogate": (b'"results":[{"id":"a\\udfff"}]', "results[0].id"),
    "a byte that is not UTF-8": (b'"results":[{"id":"a\xff"}]', "encoding"),
    "such a byte in an unknown field": (b'"results":[],"note":"\xff"', "encoding"),
}


@pytest.mark.parametrize(("content", "field"), NOT_JSON.values(), ids=NOT_JSON.keys())
def test_invalid_json_is_refused_by_line_and_field(tmp_path, content, field):
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"query_id":"q1","results":["a"]}\n{"query_id":"q2",' + content + b"}\n")
    with refused(path=path, line=2, field=field):
        Run.read(path)


def test_a_lone_surrogate_is_not_reported_as_a_torn_line(tmp_path):
    error = error_of(tmp_path, Gold, '{"query_id":"q1","relevant":["a\\ud800"]}')
    assert (error.line, error.field) == (1, "relevant[0]")
    assert r"'a\ud800'" in error.problem


@pytest.mark.parametrize("cut", [1, 9, 20, 33])
def test_a_torn_line_is_refused_by_line(tmp_path, cut):
    whole = '{"query_id":"q1","relevant":["a"]}'
    second = whole.replace("q1", "q2")[:cut]
    assert error_of(tmp_path, Gold, whole, second).line == 2


@pytest.mark.parametrize("cut", [1, 9, 20, 33])
def test_a_first_line_that_is_torn_is_refused_by_line(tmp_path, cut):
    assert error_of(tmp_path, Gold, '{"query_id":"q1","relevant":["a"]}'[:cut]).line == 1


# White space


@pytest.mark.parametrize(
    "content",
    [
        b'\xef\xbb\xbf{"query_id":"q1","relevant":["a"]}\n',
        b'{"query_id":"q1","relevant":["a"]}\r\n\r\n',
        b'\n\n  {"query_id":"q1","relevant":["a"]}  \n\n',
        b'{"query_id":"q1","relevant":["a"]}',
        b'{ "relevant" : [ "a" ] , "query_id" : "q1" }\n',
    ],
    ids=["byte order mark", "CRLF", "blank lines", "no newline at the end", "inner spaces"],
)
def test_white_space_around_the_lines_does_not_matter(tmp_path, content):
    path = tmp_path / "gold.jsonl"
    path.write_bytes(content)
    assert Gold.read(path).judgments.rows() == [("q1", "a", 1)]


def test_a_long_first_line_is_recognised_by_the_ending_of_the_file(tmp_path):
    line = {"evidence": ["x" * 100_000], "query_id": "q1", "relevant": ["a"]}
    assert gold(tmp_path, line).judgments.rows() == [("q1", "a", 1)]


def test_native_content_is_detected_under_any_ending(tmp_path):
    path = put(tmp_path, {"query_id": "q1", "relevant": ["a"]}, name="gold.txt")
    assert Gold.read(path).judgments.rows() == [("q1", "a", 1)]


def test_the_results_of_a_run_have_no_empty_columns(tmp_path):
    loaded = run(tmp_path, {"query_id": "q1", "results": ["a"]})
    assert loaded.results.schema == {"query_id": pl.String, "item_id": pl.String}


def test_a_repeated_key_of_an_object_is_refused(tmp_path):
    line = '{"query_id":"q2","relevant":{"a":1,"a":3}}'
    error = error_of(tmp_path, Gold, {"query_id": "q1", "relevant": {"a": 1}}, line)
    assert error.line == 2
    assert "'a'" in error.problem


def test_a_latency_that_is_not_a_number_is_refused():
    with refused(field="latency_ms.total") as caught:
        Run.of([{"query_id": "q1", "results": ["a"], "latency_ms": {"total": float("nan")}}])
    assert "record 1" in caught.value.problem
    assert "nan" in caught.value.problem


@pytest.mark.parametrize("name", ["spans", "qid", "question", "expected", "reference_contexts"])
def test_field_with_a_name_that_would_be_read_as_something_else_is_not_written(tmp_path, name):
    row = {"query_id": "q1", "query": "x", "item_id": "a", "grade": 1, name: "y"}
    with refused(field=name):
        Gold.of(pl.DataFrame([row])).write(tmp_path / "gold.jsonl")


def test_answers_of_a_run_are_kept(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(
        '{"query_id":"q1","results":["a"],"response":"in 14 days"}\n'
        '{"query_id":"q2","results":["a"],"answer":"never"}\n'
        '{"query_id":"q3","results":["a"],"response":{"not":"a text"}}\n'
    )
    run = Run.read(path)
    assert run.responses.rows() == [("q1", "in 14 days"), ("q2", "never")]
    run.write(tmp_path / "again.jsonl")
    assert Run.read(tmp_path / "again.jsonl").responses.equals(run.responses)
    assert run.only(["q2"]).responses.rows() == [("q2", "never")]
    with pytest.warns(KaratWarning, match="responses"):
        run.write(tmp_path / "run.trec")
