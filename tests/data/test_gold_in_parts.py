"""Gold larger than the memory limit: parts give the scores of the whole gold, and leave no files.

Parts are made tiny, so that small files are read in many of them.
"""

from __future__ import annotations

import gc
import gzip
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
from support.batches import (
    GOLD_WRITERS,
    JUDGMENTS,
    MEASURES,
    ROWS,
    WRITERS,
    command,
    evaluated_with,
)
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
    assert isinstance(open_gold(gold, 1), PartitionedGold)


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
        if line["relevant"] and not has[1]:
            group = st.lists(st.sampled_from(sorted(line["relevant"])), min_size=1, max_size=2)
            line["any_of"] = draw(st.lists(group, max_size=2))
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
@examples(150, 5000)
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
@examples(100, 3000)
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
@examples(60, 2000)
def test_gold_of_lists_in_parts_gives_the_same_scores_notes_warnings_and_errors(
    shared_folder, lines, ending, run, sizes
):
    gold = written(shared_folder / "gold", {}) / f"gold.{ending}"
    TABLE_WRITERS[ending](pl.DataFrame(records(lines), infer_schema_length=None), gold)
    expected = outcome(gold, records(run), None)
    larger = 10 * sizes[0], *sizes[1:]  # lists are estimated to take many times as much
    assert in_parts(shared_folder, larger, gold, records(run), None) == expected


@pytest.mark.parametrize("ending", ["qrels", "csv", "jsonl"])
@pytest.mark.usefixtures("tiny_batches")
def test_bad_row_in_the_last_part_of_gold_has_its_line(tmp_path, spill_parent, ending):
    bad = {"qrels": "q9 0 x y\n", "csv": "q9,x,y,t,q,1\n", "jsonl": '{"query_id": 1.5}\n'}
    gold = tmp_path / f"gold.{ending}"
    GOLD_WRITERS[ending](JUDGMENTS, gold)
    with gold.open("a") as file:
        file.write(bad[ending])
    errors = []
    for memory in (None, 1):
        with pytest.raises(InputError) as error:
            karat.evaluate(gold, {"q2": ["d1"]}, MEASURES, memory=memory)
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    assert not spill_parent.exists()


@pytest.fixture(scope="module")
def large_gold(tmp_path_factory):
    """Gold of 50 MB, for a run with one query."""
    folder = tmp_path_factory.mktemp("large-gold")
    row = pl.int_range(2_500_000)
    pl.select(
        query_id="q" + (row // 25).cast(pl.String),
        zero=pl.lit("0"),
        item_id="document" + (row * 7919 % 100_003).cast(pl.String),
        grade=row % 3,
    ).write_csv(folder / "gold.qrels", separator=" ", include_header=False)
    (folder / "a.run").write_text("q1 Q0 document1 1 1.0 t\n")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_gold_in_parts_takes_less_memory_than_the_whole_gold(large_gold, tmp_path):
    environment = os.environ | {
        "TMPDIR": str(tmp_path),
        "POLARS_MAX_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "1",
    }
    peaks = {}
    for memory in ("256M", "20G"):
        words = [*command(tmp_path, large_gold / "gold.qrels", large_gold / "a.run")[:-1], memory]
        words += ["-m", "RR", "--no-intervals"]
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
