"""BM25 over a corpus: scores, order, words, chunks, and the command line."""

import json
import re
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.errors import InputError
from karat.live.retrievers import BM25
from karat.live.retrievers.words import Words
from oracles import retrieval as oracle
from support.retrieval import FAQ, QUERIES

WORDS = st.sampled_from(["ant", "bee", "cat", "dog", "emu", "fox"])
TEXTS = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
CORPORA = st.dictionaries(st.text("abxyÄ", min_size=1, max_size=3), TEXTS, min_size=1, max_size=8)
PLAIN = {"stemmer": "none", "stop_words": "none", "cache": False}


@pytest.fixture(autouse=True)
def cache_home(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home


def ids(results):
    return [result["id"] for result in results]


@given(CORPORA, TEXTS, st.floats(0, 3), st.floats(0, 1), st.integers(1, 10))
def test_scores_are_those_of_the_formula(corpus, query, k1, b, top_k):
    results = BM25(corpus, k1=k1, b=b, **PLAIN).search(query, top_k)
    documents = {name: text.split() for name, text in corpus.items()}
    expected = oracle.bm25(query.split(), documents, k1, b)
    for result in results:
        assert result["score"] == pytest.approx(expected[result["id"]], rel=1e-5)
    assert len(results) == min(top_k, len(expected))
    scores = [result["score"] for result in results]
    assert scores == sorted(scores, reverse=True)
    left_out = [score for name, score in expected.items() if name not in ids(results)]
    assert all(score <= scores[-1] * (1 + 1e-5) for score in left_out)


@given(CORPORA, TEXTS, st.randoms())
def test_results_do_not_depend_on_the_order_of_the_corpus(corpus, query, random):
    names = list(corpus)
    random.shuffle(names)
    shuffled = {name: corpus[name] for name in names}
    assert BM25(corpus, **PLAIN).search(query) == BM25(shuffled, **PLAIN).search(query)


def test_equal_scores_are_ordered_by_id_as_in_trec_eval():
    corpus = dict.fromkeys(("a", "B", "ä", "b", "10", "9"), "one two")
    assert ids(BM25(corpus, **PLAIN).search("one")) == ["ä", "b", "a", "B", "9", "10"]
    assert ids(BM25(corpus, **PLAIN).search("one", 2)) == ["ä", "b"]


def test_order_is_that_of_the_same_list_as_a_trec_run(tmp_path):
    corpus = {f"d{n}": "one two" if n % 2 else "one" for n in range(20)}
    run = karat.retrieve(BM25(corpus, cache=False), {"q": "one two"})
    with pytest.warns(karat.KaratWarning):
        run.write(tmp_path / "x.run")
    again = karat.Run.read(tmp_path / "x.run").results
    assert again["item_id"].to_list() == run.results["item_id"].to_list()


def test_words_are_normalised_stopped_and_stemmed():
    english = Words("english", "english")
    assert english("The patients' IL-6, non-coding") == ["patient", "il", "6", "non", "code"]
    assert Words("none", "none")("ﬁne ÄRGER a\u0301") == ["fine", "ärger", "á"]
    assert Words("german", "german")("Die Häuser und das Haus") == ["haus", "haus"]


def test_marks_stay_in_their_word_and_chinese_characters_are_words():
    words = Words("none", "none")
    assert words("हिन्दी में 北京 カタカナ") == ["हिन्दी", "में", "北", "京", "カタカナ"]


@given(st.text())
def test_words_of_ascii_texts_are_those_of_a_plain_pattern(text):
    text = text.encode("ascii", "ignore").decode()
    assert Words("none", "none")(text) == re.findall(r"\w+", text.lower())


def test_query_without_known_words_finds_nothing():
    retriever = BM25(FAQ, cache=False)
    assert retriever.search("zebra") == []
    assert retriever.search("the") == []
    assert retriever.search("") == []


def test_corpus_of_stop_words_finds_nothing():
    assert BM25({"a": "the", "b": "of"}, cache=True).search("the") == []
    assert BM25({"a": "the", "b": "of"}, cache=True).search("the") == []


def test_documents_are_items_with_their_text():
    (first, *_) = BM25(FAQ, cache=False).search("refund")
    assert first == {
        "id": "refund",
        "doc_id": "refund",
        "text": FAQ["refund"],
        "score": first["score"],
    }


def test_title_is_indexed_and_not_returned():
    table = pl.DataFrame({"doc_id": ["a", "b"], "title": ["Zebra", None], "text": ["x y", "z"]})
    (item,) = BM25(karat.Corpus.of(table), cache=False).search("zebra")
    assert (item["id"], item["text"]) == ("a", "x y")


@pytest.mark.parametrize("chunker", ["fixed", "recursive", "sentences", "markdown"])
def test_chunks_are_parts_of_their_documents(chunker):
    retriever = BM25(FAQ, chunker=chunker, chunk_size=25, cache=False)
    results = retriever.search("days", 50)
    assert results
    for item in results:
        assert FAQ[item["doc_id"]][item["start"] : item["end"]] == item["text"]
        assert item["id"] == f"{item['doc_id']}#{item['start']}-{item['end']}"


def test_chunks_overlap():
    retriever = BM25(
        {"a": "one two three"}, chunker="fixed", chunk_size=7, chunk_overlap=3, cache=False
    )
    assert {item["text"] for item in retriever.search("two")} == {"one two", "two thr"}


def test_splitter_of_another_library_makes_chunks():
    retriever = BM25({"a": "one. two"}, chunker=lambda text: text.split(". "), cache=False)
    assert [item["id"] for item in retriever.search("two")] == ["a#5-8"]


def write_corpus(folder, form):
    rows = [{"_id": name, "title": "", "text": text} for name, text in FAQ.items()]
    if form == "folder":
        for name, text in FAQ.items():
            (folder / name).with_suffix(".txt").write_text(text)
        return folder
    if form == "beir":
        (folder / "qrels").mkdir()
        form, path, target = "jsonl", folder / "corpus.jsonl", folder
    else:
        path = target = folder / f"docs.{form}"
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pl.DataFrame(rows).write_parquet(path)
    return target


@pytest.mark.parametrize("form", ["folder", "beir", "jsonl", "parquet"])
def test_command_runs_over_every_form_of_a_corpus(form, tmp_path, command):
    (tmp_path / "corpus").mkdir()
    corpus = write_corpus(tmp_path / "corpus", form)
    queries = tmp_path / "queries.jsonl"
    queries.write_text(
        "".join(json.dumps({"query_id": q, "query": text}) + "\n" for q, text in QUERIES.items())
    )
    output = tmp_path / "run.jsonl"
    code, _, err = command(
        "run", queries, "-r", f"bm25:{corpus}", "--top-k", "1", "-o", output, "--no-progress"
    )
    assert code == 0, err
    run = karat.Run.read(output)
    found = dict(run.results.select("query_id", "item_id").rows())
    ending = ".txt" if form == "folder" else ""
    assert found == {"q1": f"refund{ending}", "q2": f"pay{ending}", "q3": f"account{ending}"}
    assert run.settings["retriever"] == f"bm25:{corpus}"
    assert run.settings["corpus"]["items"] == 4
    assert run.settings["stemmer"] == "english"


@pytest.mark.parametrize(
    "expected",
    [
        {"chunk_size": 20, "chunk_overlap": 5, "k1": 1.2, "b": 0.75},
        {"chunk_size": 20, "chunk_overlap": 0, "k1": 0, "b": 0},
    ],
    ids=["numbers", "zeros"],
)
def test_command_passes_options(tmp_path, command, expected):
    corpus = write_corpus(tmp_path, "jsonl")
    queries = tmp_path / "queries.tsv"
    queries.write_text("q1\tdays\n")
    output = tmp_path / "run.jsonl"
    expected |= {"chunker": "fixed", "stemmer": "porter", "stop_words": "none"}
    words = [w for name, value in expected.items() for w in (f"--{name.replace('_', '-')}", value)]
    code, _, err = command(
        "run", queries, "-r", f"bm25:{corpus}", "-o", output, "--no-progress", *words
    )
    assert code == 0, err
    settings = karat.Run.read(output).settings
    assert {name: settings[name] for name in expected} == expected


def test_command_maps_the_columns_of_a_corpus(tmp_path, command):
    corpus = tmp_path / "docs.jsonl"
    corpus.write_text('{"doc_id":"a","body":"one two"}\n')
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"query_id":"q1","query":"one"}\n')
    output = tmp_path / "run.jsonl"
    code, _, err = command(
        "run", queries, "-r", f"bm25:{corpus}", "-o", output, "--column", "text=body",
        "--no-progress",
    )  # fmt: skip
    assert code == 0, err
    assert karat.Run.read(output).results["item_id"].to_list() == ["a"]


@pytest.mark.parametrize("jobs", [1, 3, 16])
def test_lists_and_scores_do_not_depend_on_the_number_of_workers(jobs):
    corpus = {f"d{n}": " ".join(f"w{n * k % 7}" for k in range(1, 9)) for n in range(200)}
    queries = {f"q{n}": f"w{n % 7} w{n % 5} w{n % 3}" for n in range(60)}
    expected = karat.retrieve(BM25(corpus, cache=False), queries, jobs=2).results
    assert karat.retrieve(BM25(corpus, cache=False), queries, jobs=jobs).results.equals(expected)


def test_string_names_a_built_in_retriever_in_python(tmp_path):
    corpus = write_corpus(tmp_path, "jsonl")
    run = karat.retrieve(f"bm25:{corpus}", QUERIES, top_k=1)
    assert run.results["item_id"].to_list() == ["refund", "pay", "account"]
    assert run.timings["stage"].unique().sort().to_list() == ["retrieval", "total"]


@pytest.mark.parametrize("module", ["hybrid", "qdrant"])
def test_module_with_the_name_of_a_retriever_is_reached_by_a_prefix(
    module, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, module, raising=False)
    (tmp_path / f"{module}.py").write_text("def search(query): return ['a']\n")
    (tmp_path / "q.tsv").write_text("q1\tone\n")
    words = ("run", "q.tsv", "-o", "run.jsonl", "--no-progress", "-r")
    code, _, err = command(*words, f"python:{module}:search")
    assert code == 0, err
    run = karat.Run.read("run.jsonl")
    assert run.results["item_id"].to_list() == ["a"]
    assert run.settings["retriever"] == f"python:{module}:search"
    code, _, err = command(*words, f"{module}:search", "--overwrite")
    assert (code, err.count("error: ")) == (2, 1)
    monkeypatch.delitem(sys.modules, module, raising=False)


def test_error_for_a_module_with_the_name_of_a_retriever_names_the_prefix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bm25.py").write_text("def search(query): return ['a']\n")
    with pytest.raises(InputError) as caught:
        karat.retrieve("bm25:search", QUERIES)
    assert caught.value.field == "retriever"
    assert "python:bm25:search" in caught.value.hint


def test_unknown_attribute_of_the_package_is_an_error():
    with pytest.raises(AttributeError):
        karat.live.retrievers.BM26  # noqa: B018


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"chunk_size": 5}, "chunk_size"),
        ({"chunker": "recursive", "chunk_overlap": 5}, "chunk_overlap"),
        ({"chunker": "recursiv"}, "chunker"),
        ({"k1": -1}, "k1"),
        ({"b": 2}, "b"),
        ({"stemmer": "germn"}, "stemmer"),
        ({"stop_words": "klingon"}, "stop_words"),
    ],
)
def test_invalid_options_are_errors(options, field):
    with pytest.raises(InputError) as caught:
        BM25(FAQ, **options)
    assert caught.value.field == field
