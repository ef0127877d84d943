"""What the workers of Spark do with batches of rows, without Spark."""

import pickle
from types import SimpleNamespace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat import Gold
from karat.engines import spark_tasks
from karat.engines.parts import Part
from karat.match.gold_index import GoldParts, PreparedGold

pa = pytest.importorskip("pyarrow")
LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=12)


def table_of(lengths):
    """Return a table with the rows of each query next to each other."""
    rows = [
        (f"q{query}", f"d{item}", -item) for query, n in enumerate(lengths) for item in range(n)
    ]
    return pl.DataFrame(rows, ["query_id", "item_id", "score"], orient="row")


def batches_of(table, size):
    arrow = table.to_arrow(compat_level=pl.CompatLevel.oldest())
    return arrow.combine_chunks().to_batches(max_chunksize=size)


def rows_of(part: Part):
    """A function of a part: its queries with the number of their results, and those of gold."""
    return part.run.results["query_id"].to_list(), part.gold.query_ids.to_list()


def results_of(batches, *, whole=False):
    gold = SimpleNamespace(value=GoldParts(PreparedGold(Gold.of({"q0": ["d0"], "q1": ["d1"]}))))
    piece = spark_tasks.PieceScorer(pickle.dumps(rows_of), "query_id", None)
    scorer = spark_tasks.PartitionScorer(piece, gold, whole)
    return [pickle.loads(batch.column(0)[0].as_py()) for batch in scorer(batches)]


@given(LENGTHS, st.integers(1, 7), st.integers(1, 20))
def test_pieces_end_where_a_query_ends(lengths, batch_size, piece_size):
    table = table_of(lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_tasks, "ROWS_PER_PIECE", piece_size)
        pieces = list(
            spark_tasks._pieces_of_whole_queries(batches_of(table, batch_size), "query_id")
        )
    assert pl.concat([rows for rows, _ in pieces]).equals(table)
    ids = [query for rows, _ in pieces for query in rows["query_id"].unique()]
    assert len(ids) == len(set(ids))
    assert [is_last for _, is_last in pieces] == [False] * (len(pieces) - 1) + [True]
    assert pieces[-1][0]["query_id"].n_unique() == 1


def test_first_and_last_query_of_a_partition_are_its_border():
    outcome, border = results_of(batches_of(table_of([3, 2, 1, 4]), 2))
    assert outcome.result == (["q1", "q1", "q2"], ["q1"])
    assert (outcome.n_rows, outcome.n_queries, outcome.in_gold.tolist()) == (3, 2, [1])
    assert len(outcome.unknown) == 1
    assert sorted(border.query_ids) == ["q0", "q3"]
    assert border.rows["query_id"].to_list() == ["q0"] * 3 + ["q3"] * 4


def test_rows_of_a_long_border_stay_on_the_cluster(monkeypatch):
    monkeypatch.setattr(spark_tasks, "BYTES_PER_BORDER", 10)
    (border,) = results_of(batches_of(table_of([9]), 2))
    assert (border.query_ids, border.rows) == (["q0"], None)


def test_interleaved_rows_are_not_scored():
    table = pl.concat([table_of([2, 2, 2]), table_of([1, 1, 0, 1])])
    assert results_of(batches_of(table, 3)) == [spark_tasks.Interleaved()]


def test_a_shuffled_partition_is_scored_at_once():
    table = pl.concat([table_of([2, 2, 2]), table_of([1]).with_columns(item_id=pl.lit("x"))])
    (outcome,) = results_of(batches_of(table, 3), whole=True)
    assert sorted(outcome.result[0]) == ["q0"] * 3 + ["q1"] * 2 + ["q2"] * 2
    assert outcome.in_gold.tolist() == [0, 1]


def test_a_missing_query_id_is_an_error_of_the_partition():
    table = table_of([2, 2]).with_columns(
        query_id=pl.when(pl.int_range(4) < 3).then(pl.col("query_id"))
    )
    errors = [result.error for result in results_of(batches_of(table, 2)) if result.error]
    assert [error.field for error in errors] == ["query_id"]
