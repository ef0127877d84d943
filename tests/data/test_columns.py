"""An explicit mapping of columns and keys: every reader takes one, and a wrong one is refused."""

import json
import warnings

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data.columns import NAMES, Columns
from karat.data.queries import read_queries
from karat.errors import InputError
from support.commands import check_refused
from support.effort import examples
from support.errors import refused

TABLE = pl.DataFrame({"nr": ["1", "2"], "frage": ["pay?", "where?"], "zitat": ["card", "here"]})
THEIRS = {"query_id": "nr", "query": "frage", "evidence": "zitat"}


def written(path, table: pl.DataFrame):
    writers = {
        ".csv": lambda: table.write_csv(path),
        ".tsv": lambda: table.write_csv(path, separator="\t"),
        ".parquet": lambda: table.write_parquet(path),
        ".arrow": lambda: table.write_ipc(path),
        ".jsonl": lambda: table.write_ndjson(path),
        ".json": lambda: path.write_text(json.dumps(table.to_dicts())),
    }
    writers[path.suffix]()
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".arrow", ".jsonl", ".json"])
def test_gold_is_read_by_a_mapping_from_every_format(tmp_path, ending):
    gold = karat.Gold.read(written(tmp_path / f"gold{ending}", TABLE), columns=THEIRS)
    assert gold.queries.rows() == [("1", "pay?"), ("2", "where?")]
    assert gold.evidence.rows() == [("1", "card"), ("2", "here")]


def test_gold_is_made_by_a_mapping_from_a_table_and_from_records():
    for source in (TABLE, TABLE.to_dicts()):
        gold = karat.Gold.of(source, columns=THEIRS)
        assert gold.evidence.rows() == [("1", "card"), ("2", "here")]


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_runs_are_read_by_a_mapping(tmp_path, ending):
    table = pl.DataFrame({"nr": ["1", "1"], "stelle": ["a", "b"], "wert": [0.1, 0.9]})
    columns = {"query_id": "nr", "item_id": "stelle", "score": "wert"}
    run = karat.Run.read(written(tmp_path / f"run{ending}", table), columns=columns)
    assert run.results.rows() == [("1", "b", 0.9), ("1", "a", 0.1)]
    assert karat.Run.of(table, columns=columns).results.equals(run.results)


def test_keys_of_items_inside_records_are_mapped(tmp_path):
    path = tmp_path / "run.jsonl"
    record = {"nr": 1, "liste": [{"stelle": "a", "wert": 0.5, "inhalt": "x"}], "ms": 3}
    path.write_text(json.dumps(record) + "\n")
    columns = {"query_id": "nr", "results": "liste", "item_id": "stelle", "score": "wert"}
    columns |= {"text": "inhalt", "latency_ms": "ms"}
    for run in (karat.Run.read(path, columns=columns), karat.Run.of([record], columns=columns)):
        assert run.results.rows(named=True) == [
            {"query_id": "1", "item_id": "a", "score": 0.5, "text": "x"}
        ]
        assert run.timings.rows() == [("1", "total", 3.0)]


def test_judgments_inside_records_are_mapped():
    record = {"nr": 1, "treffer": [{"stelle": "a", "note": 2}]}
    columns = {"query_id": "nr", "relevant": "treffer", "item_id": "stelle", "grade": "note"}
    assert karat.Gold.of([record], columns=columns).judgments.rows() == [("1", "a", 2)]


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_queries_chunks_and_corpora_are_read_by_a_mapping(tmp_path, ending):
    queries = written(tmp_path / f"q{ending}", TABLE.select("nr", "frage"))
    assert read_queries(queries, columns={"query_id": "nr", "query": "frage"}).rows() == [
        ("1", "pay?"),
        ("2", "where?"),
    ]
    table = pl.DataFrame({"stelle": ["a"], "datei": ["d"], "von": [0], "bis": [3]})
    columns = {"item_id": "stelle", "doc_id": "datei", "start": "von", "end": "bis"}
    chunks = karat.Chunks.read(written(tmp_path / f"c{ending}", table), columns=columns)
    assert chunks.frame.rows() == [("a", "d", 0, 3)]
    assert karat.Chunks.of(table, columns=columns).frame.rows() == [("a", "d", 0, 3)]
    table = pl.DataFrame({"datei": ["d"], "inhalt": ["text"]})
    columns = {"doc_id": "datei", "text": "inhalt"}
    corpus = karat.Corpus.read(written(tmp_path / f"d{ending}", table), columns=columns)
    assert corpus["d"] == "text"
    assert karat.Corpus.of(table, columns=columns)["d"] == "text"


def test_a_mapped_column_wins_over_one_that_has_the_name_by_chance():
    table = TABLE.with_columns(query=pl.lit("no"), query_id=pl.lit("9"), text=pl.lit("no"))
    gold = karat.Gold.of(table, columns=THEIRS)
    assert gold.queries.select("query_id", "text").rows() == [("1", "pay?"), ("2", "where?")]
    assert gold.queries["query_id_field"].to_list() == ["9", "9"]


def test_two_columns_may_change_their_names():
    table = pl.DataFrame({"query_id": ["1"], "query": ["card"], "evidence": ["pay?"]})
    gold = karat.Gold.of(table, columns={"query": "evidence", "evidence": "query"})
    assert (gold.evidence.rows(), gold.queries["text"].to_list()) == ([("1", "card")], ["pay?"])


@pytest.mark.parametrize(
    "read",
    [
        lambda columns: karat.Gold.of(TABLE.to_dicts(), columns=THEIRS | columns),
        lambda columns: karat.Gold.of(TABLE, columns=THEIRS | columns),
        lambda columns: karat.Run.of(
            TABLE, columns={"item_id": "zitat", "query_id": "nr"} | columns
        ),
        lambda columns: karat.Gold.of({"q1": ["a"]}, columns=columns),
    ],
)
def test_a_column_that_is_not_there_is_refused_with_those_that_are(read):
    with refused(field="column text=zitate") as error:
        read({"text": "zitate"})
    assert "zitat" in str(error.value) or "none" in error.value.problem


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"evidenc": "x"}, "column evidenc=x"),
        ({"evidence": ""}, "column evidence="),
        ({"evidence": "x", "query": "x"}, "column evidence=x"),
    ],
)
def test_a_mapping_that_makes_no_sense_is_refused(columns, field):
    with refused(field=field):
        karat.Gold.of(TABLE, columns=columns)


def test_an_unknown_name_lists_all_and_the_nearest():
    with refused() as error:
        Columns({"evidenc": "x"})
    assert all(name in error.value.hint for name in NAMES)
    assert "did you mean evidence?" in error.value.hint


def test_an_error_names_the_column_that_the_file_has(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("nr,frage,zitat\n1,pay?,card\n2,where?,\n")
    with refused(path=path, line=3, field="zitat"):
        karat.Gold.read(path, columns=THEIRS)


def test_every_command_maps_each_file_by_the_columns_that_it_has(tmp_path, command):
    gold = written(tmp_path / "gold.csv", TABLE)
    run = tmp_path / "run.jsonl"
    run.write_text(
        "".join(
            json.dumps({"qid": nr, "retrieved": [{"stelle": "a", "inhalt": text}]}) + "\n"
            for nr, text in (("1", "by card"), ("2", "no"))
        )
    )
    documents = written(
        tmp_path / "docs.jsonl", pl.DataFrame({"datei": ["d"], "inhalt": ["by card, here"]})
    )
    ours = [f"--column={name}={theirs}" for name, theirs in THEIRS.items()]
    items = ["--column=text=inhalt", "--column=item_id=stelle"]
    both = [gold, run, *ours, *items]
    results = [
        command("eval", *both, "-m", "evidence.recall@1", "--json"),
        command("compare", gold, run, run, *ours, *items, "-m", "evidence.recall@1", "--json"),
        command("gate", *both, "--require", "evidence.recall@1 >= 0.5", "--json"),
        command(
            "explain",
            "evidence.recall@1",
            "--gold",
            gold,
            "--run",
            run,
            "--query",
            "1",
            *ours,
            *items,
        ),
        command("validate", gold, "--run", run, *ours, *items, "--json"),
        command("convert", gold, tmp_path / "gold.jsonl", "--kind", "gold", *ours),
        command(
            "locate",
            gold,
            "--corpus",
            documents,
            *ours,
            "--column=doc_id=datei",
            "--column=text=inhalt",
        ),
    ]
    assert [code for code, _, _ in results] == [0] * len(results), results
    assert json.loads(results[0][1])["runs"][0]["measures"]["evidence.recall@1"]["value"] == 0.5
    recognised = json.loads(results[4][1])["recognised"]
    assert recognised == {"gold": THEIRS, "run run": {"query_id": "qid", "results": "retrieved"}}
    assert karat.Gold.read(tmp_path / "gold.jsonl").evidence.rows() == [
        ("1", "card"),
        ("2", "here"),
    ]


def test_a_command_refuses_a_name_that_none_of_its_files_has(tmp_path, command):
    gold = written(tmp_path / "gold.csv", pl.DataFrame({"qid": ["1"], "docno": ["a"], "rel": [1]}))
    run = written(tmp_path / "run.csv", pl.DataFrame({"qid": ["1"], "docno": ["a"], "rank": [1]}))
    result = command("eval", gold, run, "--column", "text=body")
    check_refused(result, "column text=body", "qid, docno, rel, rank")


def test_validate_shows_what_was_recognised(tmp_path, command):
    gold = tmp_path / "gold.csv"
    gold.write_text("id,question,evidence,topic\n1,pay?,card,billing\n")
    _, out, _ = command("validate", gold)
    assert "query_id from id, query from question, evidence; other fields:\n  topic" in out


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_validate_does_not_show_ids_that_were_generated():
    gold = [{"question": "pay?", "relevant": ["a"]}]
    found = karat.validate(gold, runs=[[{"prompt": "pay?", "retrieved": ["a"]}]])
    assert found.as_dict()["recognised"] == {
        "gold": {"query": "question", "relevant": "relevant"},
        "run run": {"query": "prompt", "results": "retrieved"},
    }


OWN = {
    "query_id": ["1", "1", "2"],
    "query": ["pay?", "pay?", "where?"],
    "item_id": ["a", "b", "a;c"],
    "grade": [1, 0, 2],
    "topic": ["x", "x", "y"],
}


@given(
    st.lists(
        st.sampled_from([*OWN, "id", "question", "docno", "rel", "score", "Frage", "ü b", "x"]),
        min_size=4,
        max_size=4,
        unique=True,
    )
)
@examples(50, 1000)
def test_gold_is_the_same_under_any_names_that_are_mapped(names):
    ours = list(OWN)[:4]
    table = pl.DataFrame(OWN).rename(dict(zip(ours, names, strict=True)) | {"topic": "thema"})
    columns = dict(zip(ours, names, strict=True))
    gold, own = karat.Gold.of(table, columns=columns), karat.Gold.of(pl.DataFrame(OWN))
    assert gold.judgments.equals(own.judgments)
    assert gold.queries.rename({"thema": "topic"}).equals(own.queries)


def test_no_mapping_changes_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Columns()
        record = {"query_id": "1"}
        assert Columns().record(record) is record
    with pytest.raises(InputError):
        Columns.of(["query"])


def test_bytes_of_a_table_are_not_taken_for_ids_and_texts_with_tabs(tmp_path):
    """A length of nine is a tab, and then the file has one tab and no line feed."""
    path = tmp_path / "queries.parquet"
    for size in range(1, 20):
        table = pl.DataFrame({"query_id": ["q1", "q2", "q3"], "query": ["x" * size] * 3})
        table.write_parquet(path, compression="uncompressed", statistics=False)
        assert read_queries(path).rows() == table.rows()
