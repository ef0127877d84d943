"""Gold larger than the memory limit: parts give the scores of the whole gold, and leave no files.

Parts are made tiny, so that small files are read in many of them.
"""

from __future__ import annotations

import gc
import gzip
import io
import json
import os
import subprocess
import sys
import warnings

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat import files
from karat.data import gold_source, run_source, spill
from karat.data.formats import table_files
from karat.data.gold_source import PartitionedGold, open_gold
from karat.engines import scoring_options
from karat.errors import InputError, KaratError
from karat.files import zstd
from karat.report.page.build import build_page
from karat.report.page.pack import pack_queries
from karat.report.page.queries import query_sample
from support.batches import (
    GOLD_WRITERS,
    JUDGMENTS,
    MEASURES,
    ROWS,
    WRITERS,
    evaluated_with,
    qrels,
    with_fields,
)
from support.batches import command as command_of
from support.effort import examples
from support.random_records import (
    DOCUMENTS,
    ITEMS,
    QUERIES,
    TEXTS,
    by_query,
    described,
    options,
    records,
    run_lines,
    spans,
)
from support.random_records import MEASURES as ALL_MEASURES

pytestmark = pytest.mark.usefixtures("spill_parent")


def assert_same_with(gold, run, **options):
    *parts, queries, messages = evaluated_with(gold, run, memory=1, **options)
    *whole, whole_queries, whole_messages = evaluated_with(gold, run, **options)
    assert parts == whole
    assert queries.equals(whole_queries)
    assert messages == whole_messages
    assert isinstance(open_gold(gold, 1)[0], PartitionedGold)


@pytest.mark.parametrize("ending", GOLD_WRITERS)
@pytest.mark.parametrize("is_shuffled", [False, True], ids=["grouped", "shuffled"])
@pytest.mark.usefixtures("tiny_batches")
def test_gold_in_parts_gives_the_scores_of_the_whole_gold(
    tmp_path, spill_parent, ending, is_shuffled
):
    table = pl.concat([JUDGMENTS, JUDGMENTS.head(3)]) if ending != "jsonl" else JUDGMENTS
    if is_shuffled:
        table = table.sample(fraction=1.0, shuffle=True, seed=3)
    gold, run = tmp_path / f"gold.{ending}", tmp_path / "bm25.run"
    GOLD_WRITERS[ending](table, gold)
    WRITERS["run"](ROWS, run)
    assert_same_with(gold, run)
    gc.collect()
    assert not spill_parent.exists()


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.usefixtures("tiny_batches")
def test_run_of_any_format_is_scored_with_gold_in_parts(tmp_path, ending):
    gold, run = tmp_path / "gold.qrels", tmp_path / f"bm25.{ending}"
    GOLD_WRITERS["qrels"](JUDGMENTS, gold)
    WRITERS[ending](ROWS, run)
    assert_same_with(gold, run)


@pytest.mark.usefixtures("tiny_batches")
def test_ids_that_are_not_in_the_run_are_found_with_gold_in_parts(tmp_path):
    gold, run = tmp_path / "gold.qrels", tmp_path / "bm25.run"
    GOLD_WRITERS["qrels"](JUDGMENTS.with_columns(item_id="x" + pl.col("item_id")), gold)
    WRITERS["run"](ROWS, run)
    assert_same_with(gold, run)
    assert "relevant ids of gold" in evaluated_with(gold, run, memory=1)[-1][-1]


@pytest.mark.usefixtures("tiny_batches")
def test_gold_in_several_files_is_read_in_parts(tmp_path):
    folder = tmp_path / "gold"
    folder.mkdir()
    GOLD_WRITERS["qrels"](JUDGMENTS.head(100), folder / "a.qrels")
    GOLD_WRITERS["csv"](JUDGMENTS.tail(-100), folder / "b.csv")
    WRITERS["run"](ROWS, tmp_path / "bm25.run")
    assert_same_with(folder / "*.*", tmp_path / "bm25.run")


@pytest.mark.usefixtures("tiny_batches")
def test_run_in_memory_is_scored_with_gold_in_parts(tmp_path):
    gold = tmp_path / "gold.qrels"
    GOLD_WRITERS["qrels"](JUDGMENTS, gold)
    assert_same_with(gold, {"q2": {"d1": 1.0, "d2": 0.5}, "q40": {"d1": 1.0}, "q3": {}})


WIDE = {name: f"{name} 😀 pays é by card, {name} is refunded within 14 days" for name in DOCUMENTS}
"""Documents in which a character takes one, two or four bytes."""
CHUNKS = pl.DataFrame(
    {
        "item_id": ITEMS,
        "doc_id": [f"./{name}" for name in DOCUMENTS],
        "start": [0, 5, 0, 9],
        "end": [9, 30, 8, 12],
        "text": TEXTS[:4],
    }
)
KINDS = ["judgments", "spans", "evidence"]
FIELDS = {"query": ["how to pay?", "who pays?"], "topic": ["a", "b"], "level": [0, 1]}
MIXED = ["a", 1, 2.5, True, None, [1], ["x"], {"x": 1}, 2**60]
"""Values of a field that has several types."""
HEADERS = [[], [], [{"karat": 1, "kind": "gold", "name": "mine", "offsets": "utf16"}]]
COMPRESSIONS = [("jsonl", bytes), ("jsonl.gz", gzip.compress), ("jsonl.zst", zstd.compress)]


@st.composite
def gold_lines(draw, kinds):
    """A line of gold with most of these kinds, and with fields of the query."""
    has = [draw(st.sampled_from([True, True, True, False])) for _ in range(6)]
    line = {name: draw(st.sampled_from(values)) for name, values in FIELDS.items() if draw(maybe)}
    if "judgments" in kinds and has[0]:
        line["relevant"] = draw(st.dictionaries(st.sampled_from(ITEMS), st.integers(0, 3)))
        if line["relevant"] and has[1]:
            items = st.sampled_from(sorted(line["relevant"]))
            groups = st.lists(st.lists(items, min_size=1, max_size=3), min_size=1, max_size=2)
            line["any_of"] = draw(groups)
    if "spans" in kinds and has[2]:
        line["spans"] = [span | draw(extras(span)) for span in draw(st.lists(spans, max_size=3))]
    if "evidence" in kinds and has[3]:
        line["evidence"] = draw(st.lists(st.sampled_from(TEXTS), max_size=3))
    if not has[4] and not has[5]:
        line["answerable"] = draw(st.booleans())
    return line


maybe = st.booleans()


def extras(span):
    """The text of a span, which is wrong in rare cases, or its grade."""
    right = {"text": WIDE[span["doc_id"]][span["start"] : span["end"]]}
    return st.sampled_from([{}, {}, right, right, right, {"grade": 0}, {"text": "pay"}])


@st.composite
def gold_files(draw, kinds):
    """The content of one or two files of gold in JSON Lines, by name."""
    lines = records(draw(by_query(gold_lines(kinds), least=4)))
    ending, compress = draw(st.sampled_from(COMPRESSIONS))
    header = draw(st.sampled_from(HEADERS))
    half = draw(st.integers(0, len(lines)))
    parts = [lines[:half], lines[half:]] if 0 < half < len(lines) else [lines]
    if len(parts) == 1 and draw(maybe):
        for line in lines:
            line["mixed"] = draw(st.sampled_from(MIXED))
    elif draw(maybe):
        parts[-1].append(parts[0][0] | {"topic": "c"})  # a query may be in several files
    return {
        f"{number}.{ending}": compress(
            b"".join(json.dumps(line).encode() + b"\n" for line in [*header, *part])
        )
        for number, part in enumerate(parts)
    }


@st.composite
def complete_lines(draw):
    """A line of a run that can be matched with gold of every kind."""
    items = draw(st.lists(st.tuples(st.sampled_from(ITEMS), spans, st.sampled_from(TEXTS))))
    return {
        "results": [
            {"id": item, **span, "text": text, "score": 1.0 - rank, "tokens": len(text)}
            for rank, (item, span, text) in enumerate(items)
        ],
        "latency_ms": {"total": float(len(items)), "rerank": 1.0},
    }


@st.composite
def cases(draw):
    """Files of gold, a run, measures and options."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, unique=True))
    measured = draw(st.sampled_from([[], kinds, kinds[:1], [*kinds, "usage"], KINDS]))
    is_simple = draw(st.sampled_from([True, True, False]))
    others = {
        "corpus": WIDE,
        "chunks": CHUNKS,
        "level": "doc",
        "cluster": "topic",
        "matching": karat.Matching(fuzzy_threshold=0.5, casefold=True),
    }
    names = draw(st.lists(st.sampled_from(sorted(others)), max_size=2, unique=True))
    return (
        draw(gold_files(kinds)),
        draw(by_query(complete_lines() if is_simple else run_lines, least=3)),
        [name for kind in measured for name in ALL_MEASURES[kind]] or None,
        ({} if is_simple else draw(options)) | {name: others[name] for name in names},
    )


def outcome(gold, run, measures, **options):
    """Everything that a user sees, with every bit of every value."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            scores = karat.evaluate(gold, run, measures, **options)
            seen = [*described(scores), scores.queries.to_dicts(), scores.queries.schema]
            if "level" in scores.queries.columns:
                seen.append(scores.by("level").rows())
        except KaratError as error:
            seen = [type(error), str(error)]
    return seen, sorted(str(warning.message) for warning in caught)


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("parts")


def in_parts(folder, sizes, gold, run, measures, **options):
    """Return the outcome of gold in parts of these sizes."""
    part, block, rows = sizes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "_parent", lambda: folder / "spill")
        patch.setattr(scoring_options, "LEAST_MEMORY", 1)
        patch.setattr(run_source, "_SMALLEST_BATCH", part)
        patch.setattr(gold_source, "_SMALLEST_PART", part)
        patch.setattr(files.Source.whole_lines, "__defaults__", (block,))
        patch.setattr(table_files, "_MOST_ROWS", rows)
        result = outcome(gold, run, measures, memory=1, **options)
        gc.collect()
        assert not (folder / "spill").exists()
    return result


sizes = st.tuples(st.integers(500, 8000), st.integers(20, 800), st.integers(1, 8))
"""The sizes of parts and blocks in bytes, and the number of rows in a block of a binary table."""


@given(case=cases(), is_in_memory=maybe, sizes=sizes)
@examples(40, 5000)
def test_gold_of_all_kinds_in_parts_gives_the_same_scores_notes_warnings_and_errors(
    shared_folder, case, is_in_memory, sizes
):
    gold, run_of_case, measures, choices = case
    folder = written(shared_folder / "gold", gold)
    path = folder / "*.*" if len(gold) > 1 else folder / next(iter(gold))
    run = shared_folder / "run.jsonl"
    run.write_text("".join(json.dumps(record) + "\n" for record in records(run_of_case)))
    if is_in_memory:
        run = quietly(karat.Run.read, run)
    expected = outcome(path, run, measures, **choices)
    assert in_parts(shared_folder, sizes, path, run, measures, **choices) == expected


def written(folder, contents):
    """Write files into an empty folder."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def quietly(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


TABLE_WRITERS = {
    "csv": lambda table, path: table.write_csv(path),
    "tsv": lambda table, path: table.write_csv(path, separator="\t"),
    "parquet": lambda table, path: table.write_parquet(path),
    "arrow": lambda table, path: table.write_ipc(path),
}
ids = {"query_id": st.sampled_from(QUERIES)}
topics = {"topic": st.sampled_from(["a", "b"]), "question": st.sampled_from(["who pays?"])}
answers = {"answerable": st.sampled_from([True, None])}
ROW_KINDS = {
    "judgments": ids | {"item_id": st.sampled_from(ITEMS), "grade": st.integers(0, 3)},
    "spans": ids
    | {"doc_id": st.sampled_from(DOCUMENTS), "start": st.integers(0, 9), "end": st.integers(9, 20)}
    | {"text": st.sampled_from([None, "pay", "wie é pays"])},
    "evidence": ids | {"evidence": st.sampled_from(TEXTS)},
    "evidence with ids": ids
    | {"evidence": st.sampled_from(TEXTS), "relevant": st.sampled_from(["a;b", "c", None])},
}
"""The columns of tables with one row per piece of gold."""


@given(
    kind=st.sampled_from(sorted(ROW_KINDS)),
    ending=st.sampled_from(sorted(TABLE_WRITERS)),
    run=by_query(complete_lines(), least=3),
    has_fields=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    sizes=sizes,
    data=st.data(),
)
@examples(30, 3000)
def test_gold_of_rows_in_parts_gives_the_same_scores_notes_warnings_and_errors(
    shared_folder, kind, ending, run, has_fields, sizes, data
):
    has_topics, has_answers, has_no_ids = has_fields
    columns = ROW_KINDS[kind] | (topics if has_topics else {}) | (answers if has_answers else {})
    rows = data.draw(st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=20))
    if has_answers:
        rows.append(dict.fromkeys(columns) | {"query_id": "q9", "answerable": False})
        rows[-1] |= {"question": "no answer?"} if has_topics else {}
    if has_topics and has_no_ids:
        rows = [{key: value for key, value in row.items() if key != "query_id"} for row in rows]
    folder = written(shared_folder / "gold", {})
    gold = folder / f"gold.{ending}"
    TABLE_WRITERS[ending](pl.DataFrame(rows, infer_schema_length=None), gold)
    expected = outcome(gold, records(run), None)
    assert in_parts(shared_folder, sizes, gold, records(run), None) == expected


lists_of_gold = st.fixed_dictionaries(
    {"relevant": st.lists(st.sampled_from(ITEMS), max_size=3, unique=True)},
    optional={
        "evidence": st.lists(st.sampled_from(TEXTS), max_size=2),
        "spans": st.lists(
            st.sampled_from([{"doc_id": name, "start": 0, "end": 9} for name in DOCUMENTS])
        ),
        "any_of": st.sampled_from([[], [], [["a"]]]),
        "question": st.sampled_from(["who pays?", "how?"]),
        "level": st.integers(0, 1),
    },
)


@given(
    lines=by_query(lists_of_gold),
    ending=st.sampled_from(["parquet", "arrow"]),
    run=by_query(complete_lines(), least=3),
    sizes=sizes,
)
@examples(25, 2000)
def test_gold_of_lists_in_parts_gives_the_same_scores_notes_warnings_and_errors(
    shared_folder, lines, ending, run, sizes
):
    gold = written(shared_folder / "gold", {}) / f"gold.{ending}"
    TABLE_WRITERS[ending](pl.DataFrame(records(lines), infer_schema_length=None), gold)
    expected = outcome(gold, records(run), None)
    larger = 10 * sizes[0], *sizes[1:]  # lists are estimated to take many times as much
    assert in_parts(shared_folder, larger, gold, records(run), None) == expected


QUERY_IDS = [f"q{number:02}" for number in range(40)]
SPAN_ROWS = "query_id,doc_id,start,end\n" + "".join(f"{query},d,0,9\n" for query in QUERY_IDS)
TEXT_ROWS = "query_id,evidence\n" + "".join(f"{query},pay by card\n" for query in QUERY_IDS)
LIST_ROWS = "query_id,query,relevant\n" + "".join(f"{query},why?,a;b\n" for query in QUERY_IDS)
SPAN_LINES = "".join(
    json.dumps({"query_id": query, "spans": [{"doc_id": "d", "start": 0, "end": 9}]}) + "\n"
    for query in QUERY_IDS
)


@pytest.mark.parametrize(
    ("name", "content", "field"),
    [
        ("gold.qrels", qrels(JUDGMENTS) + "q9 0 x y\n", "grade"),
        ("judgments.csv", with_fields(JUDGMENTS).write_csv() + "q9,x,y,t,q,1\n", "grade"),
        ("spans.csv", SPAN_ROWS + "q99,d,9,0\n", "start"),
        ("evidence.csv", TEXT_ROWS + "q99,\n", "evidence"),
        ("lists.csv", LIST_ROWS + "q99,why?,[a\n", "relevant"),
        ("twice.csv", LIST_ROWS + "q01,why?,a\n", "query_id"),
        ("id.jsonl", SPAN_LINES + '{"query_id": 1.5}\n', "query_id"),
        ("twice.jsonl", SPAN_LINES + '{"query_id": "q01"}\n', "query_id"),
        (
            "spans.jsonl",
            SPAN_LINES + '{"query_id": "q99", "spans": [{"doc_id": "d", "start": 9, "end": 0}]}\n',
            "spans[0]",
        ),
        (
            "any_of.jsonl",
            SPAN_LINES + '{"query_id": "q99", "relevant": ["a"], "any_of": [["b"]]}\n',
            "any_of[0]",
        ),
    ],
)
@pytest.mark.usefixtures("tiny_batches")
def test_bad_row_in_the_last_part_of_gold_has_its_line(
    tmp_path, spill_parent, name, content, field
):
    gold = tmp_path / name
    gold.write_text(content)
    errors = []
    for memory in (None, 1):
        with pytest.raises(InputError) as error:
            karat.evaluate(gold, {"q2": ["d1"]}, MEASURES, memory=memory)
        errors.append((error.value.path, error.value.line, error.value.field, str(error.value)))
    assert errors[0] == errors[1]
    assert errors[1][:3] == (str(gold), content.count("\n"), field)
    assert not spill_parent.exists()


@pytest.mark.usefixtures("tiny_batches")
def test_bad_span_in_the_last_part_ends_the_command_and_leaves_no_files(
    tmp_path, spill_parent, command
):
    gold, run = tmp_path / "gold.jsonl", tmp_path / "run.jsonl"
    gold.write_text(SPAN_LINES + '{"query_id": 1.5}\n')
    run.write_text('{"query_id": "q01", "results": []}\n')
    code, _, err = command("eval", gold, run, "--memory", "1")
    assert (code, f"{gold}:41: query_id" in err) == (2, True)
    assert not spill_parent.exists()


@pytest.mark.usefixtures("tiny_batches")
@pytest.mark.parametrize(("unit", "width"), [("codepoint", 1), ("utf16", 2), ("utf8", 4)])
def test_offsets_of_gold_in_parts_are_converted_with_the_documents(tmp_path, unit, width):
    gold = tmp_path / "gold.jsonl"
    header = {"karat": 1, "kind": "gold", "offsets": unit}
    span = {"doc_id": "d", "start": width, "end": width + 3, "text": "pay"}
    lines = [header, *({"query_id": query, "spans": [span]} for query in QUERY_IDS)]
    gold.write_text("".join(json.dumps(line) + "\n" for line in lines))
    item = {"id": "a", "doc_id": "d", "start": 1, "end": 4}
    run = karat.Run.of([{"query_id": query, "results": [item]} for query in QUERY_IDS])
    scores = karat.evaluate(gold, run, "span.iou", corpus={"d": "😀pay by card"}, memory=1)
    assert not scores.scored_run.session.has_whole_gold
    assert scores["span.iou"] == 1.0


@pytest.mark.usefixtures("tiny_batches")
def test_span_outside_of_its_document_is_reported_for_the_first_query_by_id(tmp_path, spill_parent):
    gold = tmp_path / "gold.jsonl"
    gold.write_text("".join(reversed(SPAN_LINES.splitlines(keepends=True))))
    run = karat.Run.of([{"query_id": "q01", "results": []}])
    with pytest.raises(InputError) as error:
        karat.evaluate(gold, run, corpus={"d": "pay"}, memory=1)
    assert (error.value.path, error.value.query) == (str(gold), "q00")
    assert not spill_parent.exists()


@pytest.fixture
def gold_and_run(tmp_path):
    """Gold with spans, evidence texts and judgments, and a run that finds some of them."""
    text = "the refund is paid within 14 days; pay by card"
    with (tmp_path / "gold.jsonl").open("w") as gold, (tmp_path / "run.jsonl").open("w") as run:
        for number, query in enumerate(QUERY_IDS):
            start, end = number % 7, number % 7 + 9
            line = {
                "query_id": query,
                "topic": "ab"[number % 2],
                "relevant": {"a": 1 + number % 2, "b": 1},
                "any_of": [["a", "b"]],
                "spans": [{"doc_id": "d", "start": start, "end": end, "text": text[start:end]}],
                "evidence": ["pay by card", "refund"],
            }
            items = [
                {
                    "id": item,
                    "doc_id": "faq/d",
                    "start": at,
                    "end": at + 5,
                    "text": text[at : at + 30],
                }
                for item, at in zip("xab"[number % 3 :], (0, 8, 20), strict=False)
            ]
            gold.write(json.dumps(line) + "\n")
            run.write(json.dumps({"query_id": query, "results": items}) + "\n")
    return tmp_path / "gold.jsonl", tmp_path / "run.jsonl"


EVERY_KIND = ["Full@2", "nDCG@2", "span.recall@2", "span.iou@10c", "evidence.recall@2"]


@pytest.mark.usefixtures("tiny_batches")
@pytest.mark.parametrize("is_in_memory", [False, True])
def test_report_of_a_sample_shows_the_lists_and_the_gold_of_the_sample(
    gold_and_run, monkeypatch, is_in_memory
):
    monkeypatch.setattr(query_sample, "_SMALLEST_SAMPLE", 12)
    gold, path = gold_and_run
    pages = []
    for source in (gold, karat.Gold.read(gold)):
        run = karat.Run.read(path) if is_in_memory and source is gold else path
        scores = karat.evaluate(source, run, EVERY_KIND, memory=1)
        with pytest.warns(karat.KaratWarning, match="the report lists 12 of 40 queries"):
            pages.append(build_page([scores]))
    parts, whole = pages
    assert not pages[0].sheets[0].scores.scored_run.session.has_whole_gold
    assert parts.queries.ids.equals(whole.queries.ids)
    assert pack_queries(parts).blocks == pack_queries(whole).blocks


@pytest.mark.usefixtures("tiny_batches")
def test_gold_in_parts_is_compared_part_by_part(gold_and_run):
    gold, run = gold_and_run
    scores = [karat.evaluate(gold, run, EVERY_KIND, memory=1) for _ in range(2)]
    different = gold.with_name("different.jsonl")
    different.write_text(gold.read_text().replace('["pay by card"', '["pay in cash"'))
    scores.append(karat.evaluate(different, run, EVERY_KIND, memory=1))
    one, same, other = (score.scored_run.session.prepared for score in scores)
    assert one.equals(same)
    assert not one.equals(other)


@pytest.mark.usefixtures("tiny_batches")
def test_chart_with_gold_in_parts_is_drawn_from_a_sample(gold_and_run):
    gold, run = gold_and_run
    scores = karat.evaluate(gold, karat.Run.read(run), EVERY_KIND, memory=1)
    with pytest.warns(karat.KaratWarning, match="the chart shows .* chosen at random"):
        assert scores.plot("curves") is not None


@pytest.mark.usefixtures("tiny_batches")
def test_comparison_and_gate_with_gold_in_parts_are_those_with_the_whole_gold(
    gold_and_run, tmp_path
):
    gold, run = gold_and_run
    other = tmp_path / "other.jsonl"
    lines = [json.loads(line) for line in run.read_text().splitlines()]
    other.write_text(
        "".join(json.dumps(line | {"results": line["results"][1:]}) + "\n" for line in lines)
    )
    whole, parts = (
        karat.compare(gold, [run, other], EVERY_KIND, by="topic", memory=memory)
        for memory in (None, 1)
    )
    assert parts.pairs.equals(whole.pairs)
    assert parts.groups.equals(whole.groups)
    assert [scores.notes for scores in parts.scores] == [scores.notes for scores in whole.scores]
    limits = {"span.recall@2": ">= 0.1", "evidence.recall@2": ">= 0.9"}
    whole_verdict, verdict = (
        karat.gate(gold, run, thresholds=limits, baseline=other, memory=memory)
        for memory in (None, 1)
    )
    assert (verdict.passed, verdict.checks) == (whole_verdict.passed, whole_verdict.checks)


@pytest.mark.usefixtures("tiny_batches")
@pytest.mark.parametrize("measure", ["nDCG@2", "span.nDCG@2", "evidence.nDCG@2"])
def test_reranking_with_gold_in_parts_is_that_with_the_whole_gold(gold_and_run, measure):
    gold, run = gold_and_run
    lines = [json.loads(line) for line in run.read_text().splitlines()]
    for line in lines:
        line["candidates"] = line["results"][::-1]
    run.write_text("".join(json.dumps(line) + "\n" for line in lines))
    whole, parts = (
        karat.evaluate(gold, run, measure, memory=memory).reranking() for memory in (None, 1)
    )
    assert parts.per_query.equals(whole.per_query)
    assert parts.items.equals(whole.items)
    assert parts.notes == whole.notes


@pytest.mark.usefixtures("tiny_batches")
def test_warnings_about_gold_in_parts_are_shown_once_for_several_runs(gold_and_run):
    gold, run = gold_and_run
    with gold.open("a") as file:
        for query in ("z1", "z2"):
            span = {"doc_id": "d", "start": 0, "end": 9, "text": "pay"}
            line = {"query_id": query, "relevant": [{"id": "a"}, {"id": "a", "grade": 2}]}
            line |= {"spans": [span], "evidence": ["\u200b", " "], "answerable": False}
            file.write(json.dumps(line) + "\n")
    messages = []
    for memory in (None, 1):
        with pytest.warns(karat.KaratWarning) as caught:
            karat.compare(gold, {"a": run, "b": run}, EVERY_KIND, memory=memory)
        messages.append([str(warning.message) for warning in caught])
    assert messages[0] == messages[1]
    assert len(messages[0]) == len({message[:20] for message in messages[0]}) == 4


@pytest.mark.usefixtures("tiny_batches")
def test_files_of_gold_use_one_unit_of_offsets(tmp_path):
    for number, unit in enumerate(["utf8", "codepoint"]):
        header = json.dumps({"karat": 1, "kind": "gold", "offsets": unit}) + "\n"
        (tmp_path / f"{number}.jsonl").write_text(header + SPAN_LINES)
    errors = []
    for memory in (None, 1):
        with pytest.raises(InputError) as error:
            karat.evaluate(tmp_path / "*.jsonl", {"q01": ["a"]}, memory=memory)
        errors.append(str(error.value))
    assert "different units of offsets" in errors[0]
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("gold.json", lambda path: path.write_text('{"q1": {"a": 1}}')),
        ("ragas.jsonl", lambda path: path.write_text(RAGAS_LINE)),
        (
            "ragas.csv",
            lambda path: path.write_text('user_input,reference_contexts\nwhy?,"[""a""]"\n'),
        ),
        ("gold.parquet.gz", lambda path: compress_table(path, "write_parquet")),
        ("gold.arrow", lambda path: JUDGMENTS.write_ipc_stream(path)),
    ],
)
@pytest.mark.usefixtures("tiny_batches")
@pytest.mark.filterwarnings("ignore:.*have no id")
def test_gold_in_other_formats_is_held_in_memory_with_a_warning(
    tmp_path, spill_parent, name, write
):
    write(tmp_path / name)
    with pytest.warns(karat.KaratWarning, match="cannot be read in parts"):
        gold, _ = open_gold(tmp_path / name, 1)
    assert isinstance(gold, karat.Gold)
    gc.collect()
    assert not spill_parent.exists()


RAGAS_LINE = '{"user_input": "why?", "reference_contexts": ["pay by card"]}\n'


def compress_table(path, write):
    buffer = io.BytesIO()
    getattr(JUDGMENTS, write)(buffer)
    path.write_bytes(gzip.compress(buffer.getvalue()))


@pytest.fixture(scope="module")
def large_gold(tmp_path_factory):
    """A folder with gold of 50 and 80 MB, and a run with one query."""
    folder = tmp_path_factory.mktemp("large-gold")
    row = pl.int_range(2_500_000)
    pl.select(
        query_id="q" + (row // 25).cast(pl.String),
        zero=pl.lit("0"),
        item_id="document" + (row * 7919 % 100_003).cast(pl.String),
        grade=row % 3,
    ).write_csv(folder / "gold.qrels", separator=" ", include_header=False)
    text = "the refund is paid within 14 days, by card or in cash " * 5
    span = {"doc_id": "faq.md", "start": 10, "end": 10 + len(text), "text": text}
    with (folder / "gold.jsonl").open("w") as file:
        for number in range(120_000):
            file.write(
                json.dumps({"query_id": f"q{number}", "spans": [span], "evidence": [text]}) + "\n"
            )
    item = {"id": "document1", "doc_id": "faq.md", "start": 0, "end": 50, "text": "by card"}
    (folder / "run.jsonl").write_text(json.dumps({"query_id": "q1", "results": [item]}) + "\n")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
@pytest.mark.parametrize(
    ("name", "measure"),
    [("gold.qrels", "RR"), ("gold.jsonl", "span.recall@5"), ("gold.jsonl", "evidence.recall@5")],
)
def test_gold_in_parts_takes_less_memory_than_the_whole_gold(large_gold, tmp_path, name, measure):
    environment = os.environ | {
        "TMPDIR": str(tmp_path),
        "POLARS_MAX_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "1",
    }
    peaks = {}
    for memory in ("256M", "20G"):
        words = command_of(tmp_path, large_gold / name, large_gold / "run.jsonl")[:-1]
        words += [memory, "-m", measure, "--no-intervals"]
        peaks[memory] = _peak(words, environment)
    assert peaks["256M"] < 0.75 * peaks["20G"]


def _peak(words, environment):
    """Return the largest resident size of a command in bytes."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(ran.stdout) << 10
