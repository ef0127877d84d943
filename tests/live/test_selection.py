"""Selection of queries: read from anything with ids and texts, filtered, sampled, limited."""

from __future__ import annotations

import gzip
import hashlib
import json
import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.data import Gold
from karat.data.queries import read_queries
from karat.errors import InputError
from karat.live import selection
from karat.live.protocol import Query
from karat.live.run_options import RunOptions
from karat.live.selection import queries_digest
from support.effort import examples
from support.errors import refused
from support.paths import SHARED_DATA

BOTH = [Query("q1", "pay by card"), Query("q2", 'lost "parcel", äöü')]
RECORDS = [
    {"query_id": "q2", "query": BOTH[1].text, "category": "post", "level": 2, "new": True},
    {"query_id": "q1", "query": BOTH[0].text, "category": "billing", "level": 1, "new": False},
]


def lines(records: list[dict]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def renamed(**names: str) -> list[dict]:
    return [{names.get(key, key): value for key, value in r.items()} for r in RECORDS]


def selected(source: object, **options: object) -> list[Query]:
    return selection.select_queries(source, RunOptions(**options))


def problem(source: object, **options: object) -> InputError:
    with refused() as caught:
        selected(source, **options)
    return caught.value


# Sources of queries


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("native.jsonl", lines(RECORDS)),
        ("header.jsonl", '{"karat":1,"kind":"gold"}\n' + lines(RECORDS)),
        ("gold.jsonl", lines([record | {"relevant": ["a"]} for record in RECORDS])),
        ("later.jsonl", lines([RECORDS[0], RECORDS[1] | {"relevant": ["a"]}])),
        ("text.jsonl", lines(renamed(query="text"))),
        ("id.jsonl", lines(renamed(query_id="id", query="question"))),
        ("beir.jsonl", lines(renamed(query_id="_id", query="text"))),
        ("lines.json", lines(RECORDS)),
        ("texts.json", json.dumps({q.query_id: q.text for q in BOTH})),
        ("list.json", json.dumps(renamed(query_id="id"))),
        ("table.csv", 'query_id,text\nq1,pay by card\nq2,"lost ""parcel"", äöü"\n'),
        ("id.csv", '\nid,query\nq1,pay by card\nq2,"lost ""parcel"", äöü"\n'),
        ("table.tsv", 'id\ttext\nq1\tpay by card\nq2\t"lost ""parcel"", äöü"\n'),
        ("pairs.tsv", 'q2\tlost "parcel", äöü\nq1\tpay by card\n'),
        ("pairs.txt", 'q2\tlost "parcel", äöü\r\n\r\nq1\tpay by card'),
        (
            "judged.csv",
            'query_id,text,item_id,grade\nq1,pay by card,a,1\nq1,pay by card,b,0\n'
            'q2,"lost ""parcel"", äöü",c,1\n',
        ),
        (
            "ragas.jsonl",
            lines(
                [
                    {"id": q.query_id, "user_input": q.text, "reference_context_ids": ["x"]}
                    for q in BOTH
                ]
            ),
        ),
    ],
)  # fmt: skip
def test_queries_are_read_from_any_file_with_ids_and_texts(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, newline="")
    assert selected(path) == BOTH
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(content.encode()))
    assert selected(str(packed)) == BOTH


@pytest.mark.parametrize(
    "source",
    [
        {q.query_id: q.text for q in reversed(BOTH)},
        RECORDS,
        renamed(query_id="_id", query="text"),
        Gold.of([record | {"relevant": ["a"]} for record in RECORDS]),
        [record | {"relevant": ["a"]} for record in RECORDS],
        pl.DataFrame(RECORDS),
        pl.DataFrame(RECORDS)
        .rename({"query_id": "id", "query": "user_input"})
        .with_columns(reference_context_ids=pl.lit(["a"])),
        pl.DataFrame(renamed(query_id="id", query="question")).to_pandas(),
    ],
)
def test_queries_are_read_from_python_objects(source):
    assert selected(source) == BOTH


def test_numeric_ids_become_text():
    assert selected({7: "seven"}) == selected([{"id": 7, "text": "seven"}])
    assert selected({7: "seven"}) == [Query("7", "seven")]


def test_queries_are_read_from_parquet(tmp_path):
    pl.DataFrame(RECORDS).write_parquet(tmp_path / "queries.parquet")
    assert selected(tmp_path / "queries.parquet") == BOTH


@pytest.mark.parametrize("judged", [True, False])
def test_beir_folder_has_its_test_queries_or_all_if_none_are_judged(tmp_path, judged):
    (tmp_path / "queries.jsonl").write_text(
        lines(
            [
                {"_id": "q1", "text": "pay by card", "metadata": {"category": "billing"}},
                {"_id": "q3", "text": "of another split", "metadata": {}},
            ]
        )
    )
    if judged:
        (tmp_path / "qrels").mkdir()
        (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    query_ids = [query.query_id for query in selected(tmp_path)]
    assert query_ids == (["q1"] if judged else ["q1", "q3"])
    assert selected(tmp_path, filters=["category=billing"]) == [BOTH[0]]


def test_queries_are_sorted_by_the_bytes_of_their_ids():
    texts = dict.fromkeys(("b", "ä", "10", "2", "B"), "text")
    assert [q.query_id for q in selected(texts)] == ["10", "2", "B", "b", "ä"]


@pytest.mark.parametrize(
    ("source", "count", "total", "names"),
    [
        ({"q1": ["a"], "q2": ["b"]}, 2, 2, "q1, q2"),
        ([{"query_id": "q1", "query": "x"}, {"query_id": "q2"}], 1, 2, "q2"),
        ([{"query_id": "q1", "query": " "}], 1, 1, "q1"),
        ({f"q{at:02}": ["a"] for at in range(30)}, 30, 30, "q00, q01"),
    ],
)
def test_queries_without_a_text_are_refused_with_their_ids(source, count, total, names):
    error = problem(source)
    assert (error.path, error.field) == (None, "query")
    assert re.search(rf"\b{count}\b.*\b{total}\b.*\b{names}", error.problem)
    assert error.hint


def test_file_of_queries_without_a_text_is_refused(tmp_path):
    path = tmp_path / "gold.qrels"
    path.write_text("q1 0 a 1\n")
    with refused(path=path, line=None, field="query") as caught:
        selected(path)
    assert "q1" in caught.value.problem


def test_queries_without_a_text_may_be_filtered_out():
    source = [*RECORDS, {"query_id": "q3", "category": "none"}]
    assert selected(source, filters=["category=post"]) == [BOTH[1]]


@pytest.mark.parametrize(
    ("name", "content", "line", "field"),
    [
        ("twice.jsonl", lines(renamed(query_id="id") + renamed(query_id="id")), 3, "query_id"),
        ("twice.tsv", "q1\tone\nq2\ttwo\nq1\tone\n", 3, "query_id"),
        ("twice.csv", "id,text\nq1,one\nq2,two\nq1,one\n", 4, "id"),
        ("wide.tsv", "".join(f"q{n}\tone\n" for n in range(9_000)) + "q\ta\tb\n", 9_001, None),
        ("nameless.jsonl", '{"topic":"one"}\n', 1, "query_id"),
        ("number.jsonl", '{"id":"q1","text":1}\n', 1, "text"),
        ("float.jsonl", '{"id":1.5,"text":"one"}\n', 1, "id"),
    ],
)
def test_invalid_line_is_refused_with_its_number(tmp_path, name, content, line, field):
    (tmp_path / name).write_text(content)
    with refused(path=tmp_path / name, line=line, field=field):
        selected(tmp_path / name)


@pytest.mark.parametrize(
    ("source", "field", "value"),
    [
        ({}, None, ""),
        ([], None, ""),
        ({"q1": "one", "q2": 2}, "text", "'q2'"),
        ({"q1": "one", 1.5: "two"}, "query_id", "1.5"),
        ({1: "one", "1": "two"}, "query_id", "'1'"),
        (["a text alone"], None, "1: "),
        ({"q1": "\ud800"}, "text", "\\ud800"),
        (7, None, "int"),
        (pl.DataFrame({"text": ["one"]}), "query_id", "text"),
    ],
)
def test_source_without_queries_is_refused(source, field, value):
    error = problem(source)
    assert (error.path, error.line, error.field) == (None, None, field)
    assert value in error.problem


# Filters, samples and limits


def test_filters_of_one_field_are_alternatives_and_all_fields_must_match():
    records = [
        {"query_id": f"{category}-{level}", "query": "x", "category": category, "level": level}
        for category in ("a", "b", "c")
        for level in (1, 2)
    ]
    chosen = selected(records, filters=["category=a", "category=b", "level=2"])
    assert [q.query_id for q in chosen] == ["a-2", "b-2"]
    assert selected(records, filters={"category": "a", "level": "2"}) == chosen[:1]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a=b", "f=a=b"),
        ("", "f="),
        (3, "f=3"),
        (2.5, "f=2.5"),
        (3.0, "f=3.0"),
        (3.0, "f=3"),
        (True, "f=true"),
        (["x", "y"], "f=y"),
    ],
)
def test_values_are_compared_as_json_writes_them(value, written):
    records = [
        {"query_id": "q1", "query": "x", "f": value},
        {"query_id": "q2", "query": "y"},
    ]
    assert [q.query_id for q in selected(records, filters=[written])] == ["q1"]


def test_date_is_compared_as_it_is_written():
    table = pl.DataFrame({"query_id": ["q1", "q2"], "text": "x", "day": ["2026-01-02", None]})
    table = table.with_columns(pl.col("day").str.to_date())
    assert len(selected(table, filters=["day=2026-01-02"])) == 1


@pytest.mark.parametrize(
    ("filters", "values", "hint"),
    [
        (["colour=red"], ["'colour'"], "query_id, category, level, new"),
        (["text=x"], ["'text'"], "category"),
        (["category=red"], ["category=red"], "billing, post"),
        (["category=post", "level=1"], ["category=post", "level=1"], ""),
        (["category"], ["'category'"], ""),
        (["=x"], ["'=x'"], ""),
    ],
)
def test_filter_that_no_query_passes_is_refused_with_the_known_values(filters, values, hint):
    error = problem(RECORDS, filters=filters)
    assert error.field == "filter"
    assert all(value in error.problem for value in values)
    assert error.hint
    assert hint in error.hint


QUERIES = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3),
    st.sampled_from(["one", "two", "three"]),
    min_size=1,
    max_size=12,
)


@examples(40, 400)
@given(texts=QUERIES, data=st.data(), seed=st.integers(0, 9))
def test_sample_does_not_depend_on_the_order_of_the_queries(texts, data, seed):
    shuffled = dict(data.draw(st.permutations(list(texts.items()))))
    count = data.draw(st.integers(1, 14))
    everything = [Query(q, texts[q]) for q in sorted(texts, key=str.encode)]
    drawn = selected(texts, sample=count, seed=seed)
    assert drawn == selected(shuffled, sample=count, seed=seed)
    assert len(drawn) == min(count, len(texts))
    assert drawn == [query for query in everything if query in drawn]
    assert set(drawn) <= set(selected(texts, sample=count + 1, seed=seed))
    assert selected(texts, sample=count, seed=seed, limit=2) == drawn[:2]
    assert selected(texts, limit=count) == everything[:count]


def test_seeds_draw_different_samples_of_all_queries():
    texts = {f"q{at}": "x" for at in range(10)}
    drawn = [{q.query_id for q in selected(texts, sample=3, seed=seed)} for seed in range(40)]
    assert set().union(*drawn) == set(texts)
    assert len(set(map(frozenset, drawn))) > 20


@pytest.mark.parametrize(
    "option", [{"limit": 0}, {"sample": 0}, {"sample": 1.5}, {"limit": True}, {"seed": -1}]
)
def test_invalid_number_is_refused(option):
    ((field, value),) = option.items()
    error = problem({"q1": "x"}, **option)
    assert error.field == field
    assert repr(value) in error.problem


# The digest


def obvious_digest(queries: list[Query]) -> str:
    lines = [
        json.dumps([q.query_id, q.text], ensure_ascii=False, separators=(",", ":")).encode()
        for q in queries
    ]
    return hashlib.sha256(b"\n".join(sorted(lines))).hexdigest()


PLAIN = st.text(
    st.characters(min_codepoint=32, exclude_characters="\x7f", exclude_categories=["Cs"])
)


@examples(40, 400)
@given(texts=st.dictionaries(PLAIN, PLAIN, max_size=5), data=st.data())
def test_digest_depends_on_ids_and_texts_but_not_on_their_order(texts, data):
    queries = [Query(*pair) for pair in texts.items()]
    shuffled = data.draw(st.permutations(queries))
    assert queries_digest(shuffled) == queries_digest(queries) == obvious_digest(queries)


def test_digest_depends_on_where_an_id_ends():
    assert queries_digest([Query("a", "bc")]) != queries_digest([Query("ab", "c")])
    assert queries_digest([Query("a", "b")]) != queries_digest([Query("a", "b "), Query("c", "")])


# Real data


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="the shared data is missing")
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("scifact/topics.tsv", 300),
        ("trec-dl19-passage/topics.tsv", None),
        ("qrels-topics/topics.msmarco-passage.dev-subset.tsv.gz", 6_980),
        ("qrels-topics/topics.beir-v1.0.0-fiqa.test.tsv.gz", 648),
        ("qrels-topics/topics.beir-v1.0.0-nfcorpus.test.tsv.gz", 323),
    ],
)
def test_published_topics_are_read(name, count):
    path = SHARED_DATA / name
    content = path.read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    expected = dict(line.split("\t") for line in text.split("\n") if line)
    texts = {query.query_id: query.text for query in selected(path)}
    assert texts == expected
    assert count in (None, len(texts))


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="the shared data is missing")
def test_judgments_without_texts_are_refused():
    path = SHARED_DATA / "scifact" / "qrels.txt"
    with refused(path=path, line=None, field="query") as caught:
        selected(path)
    assert "300" in caught.value.problem


def test_fields_of_queries_are_kept():
    table = read_queries(RECORDS)
    assert table.columns == ["query_id", "text", "category", "level", "new"]
