"""The data of a page about its queries, packed and unpacked again."""

from __future__ import annotations

import base64
import gzip
import json
import math
import struct
from dataclasses import replace

import msgspec
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.report.comparison import ComparisonSheet
from karat.report.page.pack import pack_queries
from karat.report.sheet import Sheet
from support.errors import refused
from support.pages import IDS, TEXTS, a_list, a_page, chunks, some_queries


def embedded(done):
    """Return the data as the scripts read it."""
    return as_json(done.data)


def unpacked(done, block):
    return gzip.decompress(base64.b64decode(done.blocks[block]))


def from_json(done, block):
    return json.loads(unpacked(done, block))


def as_json(value):
    return json.loads(msgspec.json.encode(value))


def numbers(done, block, kind):
    data = unpacked(done, block)
    return list(struct.unpack(f"<{len(data) // struct.calcsize(kind)}{kind}", data))


def with_queries(**changes):
    return pack_queries(a_page(replace(some_queries(), **changes)))


def test_ids_and_texts_are_unpacked_unchanged():
    done = pack_queries(a_page())
    assert embedded(done)["n"] == len(IDS)
    assert from_json(done, embedded(done)["ids"]) == IDS
    assert from_json(done, embedded(done)["texts"]) == [text[:200] for text in TEXTS]


def test_values_are_exact_and_missing_values_are_nan():
    page = a_page()
    first = page.sheets[0].scores.per_query
    holes = first.with_columns(
        pl.when(pl.col("query_id") == "q3").then(None).otherwise(pl.col("RR")).alias("RR")
    )
    scores = page.sheets[0].scores
    with_holes = Sheet(replace(scores, table=replace(scores.table, frame=holes)))
    done = pack_queries(replace(page, sheets=[with_holes, page.sheets[1]]))
    for run, frame in enumerate((holes, page.sheets[1].scores.per_query)):
        for at, measure in enumerate(("nDCG@10", "RR")):
            values = numbers(done, embedded(done)["values"][run][at], "d")
            assert [None if math.isnan(v) else v for v in values] == frame[measure].to_list()
    assert math.isnan(numbers(done, embedded(done)["values"][0][1], "d")[3])


@given(st.lists(st.none() | st.text(max_size=3), min_size=len(IDS), max_size=len(IDS)))
def test_fields_are_unpacked_from_codes_in_sorted_order(values):
    fields = pl.DataFrame({"field": pl.Series(values, dtype=pl.String)})
    done = with_queries(fields=fields, texts=None, lists=[], details={})
    (field,) = embedded(done)["fields"]
    codes = numbers(done, field["codes"], "i")
    assert [None if code < 0 else field["words"][code] for code in codes] == values
    assert field["words"] == sorted({value for value in values if value is not None})


def test_field_with_very_many_values_is_packed_as_texts(monkeypatch):
    monkeypatch.setattr("karat.report.page.pack.MAX_DISTINCT_VALUES", 9)
    several = pl.DataFrame({"few": ["a"] * 9 + ["b"], "many": [f"v{i}" for i in range(10)]})
    done = with_queries(fields=several)
    few, many = embedded(done)["fields"]
    assert few["words"] == ["a", "b"]
    assert from_json(done, many["texts"]) == [f"v{i}" for i in range(10)]
    assert many["words"] is None


def test_outcomes_are_columns_of_numbers():
    done = pack_queries(a_page())
    one, other = embedded(done)["outcomes"]
    assert numbers(done, one["found"], "i") == [0] + [2] * 9
    assert numbers(done, other["status"], "B") == [0] * 8 + [2, 1]
    assert numbers(done, other["first"], "i") == [3] * 8 + [0, 0]
    assert numbers(done, embedded(done)["wanted"], "i") == [2] * 10


def test_lists_are_in_blocks_by_the_number_of_their_query(monkeypatch):
    monkeypatch.setattr("karat.report.page.pack.LISTS_PER_BLOCK", 4)
    done = pack_queries(a_page())
    size, blocks = embedded(done)["lists"]["size"], embedded(done)["lists"]["blocks"]
    assert len(blocks) == 3
    for row in range(len(IDS)):
        assert from_json(done, blocks[row // size])[row % size] == as_json(a_list(row))


def test_details_have_one_block_per_query():
    queries = some_queries()
    done = pack_queries(a_page(queries))
    assert list(embedded(done)["details"]) == [str(row) for row in range(9)]
    for row, block in embedded(done)["details"].items():
        assert from_json(done, block) == as_json(queries.details[int(row)])


def test_texts_of_items_are_in_blocks_by_their_number(monkeypatch):
    monkeypatch.setattr("karat.report.page.pack.CHUNKS_PER_BLOCK", 4)
    done = pack_queries(a_page())
    size, blocks = embedded(done)["chunks"]["size"], embedded(done)["chunks"]["blocks"]
    for number, text in enumerate(chunks()):
        assert from_json(done, blocks[number // size])[number % size] == text


def test_missing_data_of_saved_scores_is_absent():
    done = with_queries(texts=None, outcomes=[], lists=[], details={}, fields=pl.DataFrame())
    assert embedded(done)["texts"] is None
    assert (
        embedded(done)["outcomes"]
        == embedded(done)["fields"]
        == embedded(done)["lists"]["blocks"]
        == []
    )
    assert embedded(done)["details"] == {}


def test_measures_describe_how_to_read_their_values():
    page = a_page(measures=("nDCG@10", "NumRet", "RR"))
    first, count, plain = embedded(pack_queries(page))["measures"]
    assert plain["rel"] == 1
    assert first == {
        "name": "nDCG@10",
        "label": "nDCG@10",
        "title": "Normalised discounted cumulative gain",
        "higher": True,
        "unit": None,
        "whole": False,
        "bounded": True,
        "cutoff": 10,
        "budget": None,
        "family": "rank",
        "rel": None,
    }
    assert count["whole"]
    assert plain["cutoff"] is None


def test_selected_runs_are_the_first_compared_pair():
    page = a_page()
    assert embedded(pack_queries(page))["pair"] == [1, 0]  # the best run is compared with the other
    queries = replace(page.queries, outcomes=page.queries.outcomes[:1])
    assert (
        embedded(pack_queries(replace(page, sheets=page.sheets[:1], queries=queries)))["pair"]
        is None
    )
    gold = {query: {"d": 1} for query in IDS}
    runs = {name: {query: ["d"] for query in IDS} for name in ("a", "b", "c")}
    compared = ComparisonSheet(karat.compare(gold, runs, ["RR"], baseline="c"))
    page = replace(page, sheets=compared.runs, comparison=compared)
    assert embedded(pack_queries(page))["pair"] == [2, 0]


def test_same_page_is_packed_as_the_same_bytes_at_any_time(monkeypatch):
    now = pack_queries(a_page())
    monkeypatch.setattr("time.time", lambda: 1_000_000_000.0)
    assert pack_queries(a_page()) == now


def test_runs_with_other_queries_are_refused():
    queries = some_queries()
    with refused(path=None, field=None) as error:
        pack_queries(a_page(replace(queries, ids=queries.ids.reverse())))
    assert "run 'a' " in error.value.problem  # the first run


def test_measures_state_whether_higher_values_are_better():
    page = a_page(measures=("nDCG@10", "RBPresid"))
    assert [measure["higher"] for measure in embedded(pack_queries(page))["measures"]] == [
        True,
        False,
    ]
