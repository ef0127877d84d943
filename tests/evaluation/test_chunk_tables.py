"""Tables of chunks: one for all runs, or one for each, which must contain the run's items."""

import polars as pl
import pytest

import karat
from karat.errors import InputError

GOLD = [{"query_id": "q", "query": "?", "spans": [{"doc_id": "d", "start": 0, "end": 4}]}]
RUN = {"q": ["a"]}
MEASURES = ["span.precision_omega", "span.recall"]


def table(end, **more):
    return pl.DataFrame({"id": ["a"], "doc_id": ["d"], "start": [0], "end": [end]} | more)


def test_every_run_is_scored_with_its_own_table():
    comparison = karat.compare(
        GOLD, {"small": RUN, "big": RUN}, MEASURES, chunks={"small": table(4), "big": table(8)}
    )
    assert [scores["span.precision_omega"] for scores in comparison.scores] == [1.0, 0.5]
    alone = karat.evaluate(GOLD, RUN, MEASURES, chunks=table(8))
    assert alone["span.precision_omega"] == 0.5


def test_the_command_takes_one_table_per_run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    for name, end in (("small", 4), ("big", 8)):
        karat.Run.of(RUN, name=name).write(f"{name}.jsonl")
        table(end).write_parquet(f"{name}.parquet")
    words = ["eval", "gold.jsonl", "small.jsonl", "big.jsonl", "-m", ",".join(MEASURES)]
    tables = ["--chunks", "small=small.parquet", "--chunks", "big=big.parquet"]
    code, out, _ = command(*words, *tables, "--no-intervals")
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["span.precision_omega", "1.000", "0.500", "1"] in rows
    code, out, err = command(*words, "--chunks", "small=small.parquet")
    assert (code, out) == (2, "")
    assert "'big'" in err


@pytest.mark.parametrize(
    ("run", "chunks"),
    [
        ({"q": ["a", "b"]}, table(4)),
        ([{"query_id": "q", "results": [{"doc_id": "d", "start": 1, "end": 4}]}], table(4)),
    ],
    ids=["by id", "by offsets"],
)
def test_a_table_without_an_item_of_the_run_is_refused(run, chunks):
    with pytest.raises(InputError) as error:
        karat.evaluate(GOLD, run, "span.recall", chunks=chunks)
    assert error.value.field == "chunks"


def test_items_without_ids_are_found_by_their_offsets():
    run = [{"query_id": "q", "results": [{"doc_id": "d", "start": 0, "end": 4}]}]
    assert karat.evaluate(GOLD, run, MEASURES, chunks=table(4))["span.precision_omega"] == 1.0


def test_a_run_without_its_own_table_is_refused():
    with pytest.raises(InputError) as error:
        karat.compare(GOLD, {"a": RUN, "b": RUN}, MEASURES, chunks={"a": table(4)})
    assert error.value.field == "chunks"


def test_explain_uses_the_table_of_each_run():
    explained = karat.explain(
        "span.precision_omega",
        gold=GOLD,
        run=karat.Run.of(RUN, name="small"),
        other=karat.Run.of(RUN, name="big"),
        query="q",
        chunks={"small": table(4), "big": table(8)},
    )
    assert [calculation.value for calculation in explained.calculations] == [1.0, 0.5]


def test_documents_of_the_run_are_matched_by_suffix_next_to_a_table():
    run = [{"query_id": "q", "results": [{"doc_id": "docs/d", "start": 0, "end": 4}]}]
    scores = karat.evaluate(GOLD, run, MEASURES, chunks=table(4))
    assert dict(scores) == {"span.precision_omega": 1.0, "span.recall": 1.0}
    prefixed = table(4).with_columns(doc_id=pl.lit("docs/d"))
    assert karat.evaluate(GOLD, run, MEASURES, chunks=prefixed)["span.precision_omega"] == 1.0
