"""Which queries are asked: read from anything with ids and texts, filtered, sampled, cut."""

from __future__ import annotations

import gzip
import hashlib
import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.data import Gold
from karat.data.queries import read_queries
from karat.errors import InputError
from karat.live.exchange import Question
from karat.live.selection import digest, questions
from support.paths import SHARED_DATA

BOTH = [Question("q1", "pay by card"), Question("q2", 'lost "parcel", äöü')]
RECORDS = [
    {"query_id": "q2", "query": BOTH[1].text, "category": "post", "level": 2, "new": True},
    {"query_id": "q1", "query": BOTH[0].text, "category": "billing", "level": 1, "new": False},
]


def lines(records: list[dict]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def renamed(**names: str) -> list[dict]:
    return [{names.get(key, key): value for key, value in r.items()} for r in RECORDS]


def problem(source: object, **how: object) -> InputError:
    with pytest.raises(InputError) as caught:
        questions(source, **how)
    return caught.value


# Where queries come from


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
def test_a_file_of_any_shape_with_ids_and_texts_can_be_asked(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, newline="")
    assert questions(path) == BOTH
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(content.encode()))
    assert questions(str(packed)) == BOTH


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
def test_what_python_holds_can_be_asked(source):
    assert questions(source) == BOTH


def test_ids_that_are_numbers_become_text():
    assert questions({7: "seven"}) == questions([{"id": 7, "text": "seven"}])
    assert questions({7: "seven"}) == [Question("7", "seven")]


def test_a_table_in_columns_can_be_asked(tmp_path):
    pl.DataFrame(RECORDS).write_parquet(tmp_path / "queries.parquet")
    assert questions(tmp_path / "queries.parquet") == BOTH


@pytest.mark.parametrize("judged", [True, False])
def test_a_beir_folder_gives_its_test_queries_or_all_if_none_are_judged(tmp_path, judged):
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
    asked = [question.query_id for question in questions(tmp_path)]
    assert asked == (["q1"] if judged else ["q1", "q3"])
    assert questions(tmp_path, filters=["category=billing"]) == [BOTH[0]]


def test_queries_stand_in_the_order_of_their_ids_as_bytes():
    given = dict.fromkeys(("b", "ä", "10", "2", "B"), "text")
    assert [q.query_id for q in questions(given)] == ["10", "2", "B", "b", "ä"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ({"q1": ["a"], "q2": ["b"]}, "2 queries of 2 without a text: q1, q2"),
        ([{"query_id": "q1", "query": "x"}, {"query_id": "q2"}], "1 query of 2 without a text: q2"),
        ([{"query_id": "q1", "query": " "}], "1 query of 1 without a text: q1"),
        ({f"q{at:02}": ["a"] for at in range(30)}, "30 queries of 30 without a text: q00, q01"),
    ],
)
def test_queries_without_a_text_are_named(source, names):
    error = problem(source)
    assert error.problem.startswith(names)
    assert "query_id and query" in error.hint


def test_a_file_of_queries_without_a_text_is_named(tmp_path):
    path = tmp_path / "gold.qrels"
    path.write_text("q1 0 a 1\n")
    assert str(problem(path)).startswith(f"{path}: query: 1 query of 1 without a text: q1")


def test_queries_without_a_text_do_no_harm_where_they_are_not_chosen():
    source = [*RECORDS, {"query_id": "q3", "category": "none"}]
    assert questions(source, filters=["category=post"]) == [BOTH[1]]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("twice.jsonl", lines(renamed(query_id="id") + renamed(query_id="id")), 3),
        ("twice.tsv", "q1\tone\nq2\ttwo\nq1\tone\n", 3),
        ("twice.csv", "id,text\nq1,one\nq2,two\nq1,one\n", 4),
        ("wide.tsv", "".join(f"q{at}\tone\n" for at in range(9_000)) + "q\ta\tb\n", 9_001),
        ("nameless.jsonl", '{"text":"one"}\n', 1),
        ("number.jsonl", '{"id":"q1","text":1}\n', 1),
        ("float.jsonl", '{"id":1.5,"text":"one"}\n', 1),
    ],
)
def test_a_line_that_is_no_query_of_its_own_is_named(tmp_path, name, content, line):
    (tmp_path / name).write_text(content)
    assert problem(tmp_path / name).line == line


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({}, "no query"),
        ([], "no query"),
        ({"q1": "one", "q2": 2}, "query 'q2' has 2 for its text"),
        ({"q1": "one", 1.5: "two"}, "1.5 is no id"),
        ({1: "one", "1": "two"}, "query '1' stands there twice"),
        (["a text alone"], "record 1: Expected object"),
        ({"q1": "\ud800"}, "lone surrogate"),
        (7, "no gold"),
        (pl.DataFrame({"text": ["one"]}), "no column for the query's id"),
    ],
)
def test_what_holds_no_queries_is_refused(source, said):
    assert said in problem(source).problem


# Which of them


def test_filters_of_one_field_are_alternatives_and_fields_must_all_hold():
    records = [
        {"query_id": f"{category}-{level}", "query": "x", "category": category, "level": level}
        for category in ("a", "b", "c")
        for level in (1, 2)
    ]
    asked = questions(records, filters=["category=a", "category=b", "level=2"])
    assert [q.query_id for q in asked] == ["a-2", "b-2"]
    assert questions(records, filters={"category": "a", "level": "2"}) == asked[:1]


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
    assert [q.query_id for q in questions(records, filters=[written])] == ["q1"]


def test_a_date_is_compared_as_it_is_written():
    table = pl.DataFrame({"query_id": ["q1", "q2"], "text": "x", "day": ["2026-01-02", None]})
    table = table.with_columns(pl.col("day").str.to_date())
    assert len(questions(table, filters=["day=2026-01-02"])) == 1


@pytest.mark.parametrize(
    ("filters", "said", "hint"),
    [
        (["colour=red"], "no query has a field 'colour'", "query_id, category, level, new"),
        (["text=x"], "no query has a field 'text'", "category"),
        (["category=red"], "no query has category=red", "there are billing, post"),
        (["category=post", "level=1"], "no query has category=post and level=1", "less"),
        (["category"], "'category' is no filter", "category=billing"),
        (["=x"], "'' is no filter", "category=billing"),
    ],
)
def test_a_filter_that_nothing_passes_is_refused_with_what_there_is(filters, said, hint):
    error = problem(RECORDS, filters=filters)
    assert (error.problem, hint in error.hint) == (said, True)


QUERIES = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3),
    st.sampled_from(["one", "two", "three"]),
    min_size=1,
    max_size=12,
)


@given(texts=QUERIES, data=st.data(), seed=st.integers(0, 9))
def test_a_sample_is_drawn_from_the_queries_in_whatever_order_they_come(texts, data, seed):
    shuffled = dict(data.draw(st.permutations(list(texts.items()))))
    count = data.draw(st.integers(1, 14))
    everything = [Question(q, texts[q]) for q in sorted(texts, key=str.encode)]
    drawn = questions(texts, sample=count, seed=seed)
    assert drawn == questions(shuffled, sample=count, seed=seed)
    assert len(drawn) == min(count, len(texts))
    assert drawn == [each for each in everything if each in drawn]
    assert set(drawn) <= set(questions(texts, sample=count + 1, seed=seed))
    assert questions(texts, sample=count, seed=seed, limit=2) == drawn[:2]
    assert questions(texts, limit=count) == everything[:count]


def test_every_query_is_drawn_by_some_seed_and_not_by_all():
    texts = {f"q{at}": "x" for at in range(10)}
    drawn = [{q.query_id for q in questions(texts, sample=3, seed=seed)} for seed in range(40)]
    assert set().union(*drawn) == set(texts)
    assert len({frozenset(each) for each in drawn}) > 20


@pytest.mark.parametrize(
    "how", [{"limit": 0}, {"sample": 0}, {"sample": 1.5}, {"limit": True}, {"seed": -1}]
)
def test_a_number_that_counts_nothing_is_refused(how):
    assert problem({"q1": "x"}, **how).field == next(iter(how))


# The digest


def obvious_digest(asked: list[Question]) -> str:
    lines = [
        json.dumps([q.query_id, q.text], ensure_ascii=False, separators=(",", ":")).encode()
        for q in asked
    ]
    return hashlib.sha256(b"\n".join(sorted(lines))).hexdigest()


PLAIN = st.text(
    st.characters(min_codepoint=32, exclude_characters="\x7f", exclude_categories=["Cs"])
)


@given(texts=st.dictionaries(PLAIN, PLAIN, max_size=5), data=st.data())
def test_the_digest_is_that_of_ids_and_texts_in_any_order(texts, data):
    asked = [Question(*each) for each in texts.items()]
    shuffled = data.draw(st.permutations(asked))
    assert digest(shuffled) == digest(asked) == obvious_digest(asked)


def test_the_digest_tells_where_an_id_ends():
    assert digest([Question("a", "bc")]) != digest([Question("ab", "c")])
    assert digest([Question("a", "b")]) != digest([Question("a", "b "), Question("c", "")])


# Real data


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="the shared data is not here")
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
def test_topics_as_they_are_published_can_be_asked(name, count):
    path = SHARED_DATA / name
    content = path.read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    expected = dict(line.split("\t") for line in text.split("\n") if line)
    asked = {question.query_id: question.text for question in questions(path)}
    assert asked == expected
    assert count in (None, len(asked))


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="the shared data is not here")
def test_judgments_alone_cannot_be_asked():
    assert (
        "300 queries of 300 without a text"
        in problem(SHARED_DATA / "scifact" / "qrels.txt").problem
    )


def test_fields_are_carried_along():
    table = read_queries(RECORDS)
    assert table.columns == ["query_id", "text", "category", "level", "new"]
