"""The details of single queries on a page: texts, calculations, matches, highlights."""

import csv
import json
from collections import Counter

import msgspec
import polars as pl
import pytest

import karat
from karat.evaluation import calculation
from karat.evaluation.loaded_run import LoadedRun
from karat.report.page.data import EvidenceMatch
from karat.report.page.queries.query_table import load_queries
from support.errors import refused
from support.paths import SHARED_DATA

CHUNKING = SHARED_DATA / "chunking-evaluation"


def queries_of(gold, runs, measures, **words):
    scores = karat.Evaluator(gold, measures, **words).all(runs)
    return load_queries(scores, [LoadedRun.of(score) for score in scores])


def details_of(gold, runs, measures, **words):
    """Return the details as the scripts of the page read them, with texts in place of numbers."""
    queries = queries_of(gold, runs, measures, **words)
    details = json.loads(msgspec.json.encode(queries.details))
    for known in details.values():
        for run in known["runs"]:
            for result in run["results"]:
                if result["text"] is not None:
                    result["text"] = queries.chunks[result["text"]]
        for document in known["documents"]:
            for piece in document["pieces"]:
                if isinstance(piece["text"], list):
                    number, start = piece["text"]
                    length = piece["end"] - piece["start"]
                    piece["text"] = queries.chunks[number][start : start + length]
    return {int(number): known for number, known in details.items()}


def place(document, start, end):
    return {"doc_id": document, "start": start, "end": end}


def test_comparison_and_its_page_trace_each_query_once(monkeypatch, tmp_path):
    traced, scored = Counter(), calculation.score_inputs

    def counting(gold, run, plan, readings, traces):
        traced.update((run.name, query, m.name) for query in gold.query_ids for m in plan.measures)
        return scored(gold, run, plan, readings, traces)

    monkeypatch.setattr(calculation, "score_inputs", counting)
    gold = {f"q{n}": {"a": 2, "b": 1} for n in range(12)}
    first = karat.Run.of({q: ["x"] * (n % 4) + ["a"] for n, q in enumerate(gold)}, name="first")
    second = karat.Run.of({q: ["y"] * (n % 3) + ["b"] for n, q in enumerate(gold)}, name="second")
    comparison = karat.compare(gold, [first, second], ["nDCG@5", "RR"])
    assert "nDCG@5" in str(comparison)
    assert 0 < len(traced) < 2 * len(gold)
    comparison.report(tmp_path / "report.html")
    assert len(traced) == 2 * 2 * len(gold)
    assert set(traced.values()) == {1}


@pytest.mark.parametrize("duplicates", ["first", "set"])
def test_page_shows_ids_as_they_were_matched_for_the_scores(duplicates, monkeypatch):
    conventions = {"duplicates": duplicates}
    scores = karat.evaluate({"q": ["b"]}, {"q": ["a", "a", "b"]}, "RR", conventions=conventions)
    loaded = LoadedRun.of(scores)
    monkeypatch.delattr("karat.measures.families.match_ids")
    assert loaded.readings["rank"].data.found.rank.tolist() == [3 if duplicates == "first" else 2]


def test_calculations_equal_those_of_explain():
    gold = [
        {"query_id": "q1", "relevant": {"a": 2, "b": 1}, "evidence": ["by post"]},
        {"query_id": "q2", "relevant": {"x": 1}, "evidence": ["by card"]},
    ]
    results = [{"id": "x", "text": "by cart"}, {"id": "a", "text": "by post or by card"}]
    runs = {
        "one": [{"query_id": "q1", "results": results}],
        "two": [{"query_id": "q2", "results": results}, {"query_id": "q1", "results": []}],
    }
    measures = ["nDCG@10", "R@1", "evidence.recall@1", "Unjudged@2"]
    details = details_of(gold, runs, measures)
    for number, query in enumerate(["q1", "q2"]):
        for at, run in enumerate(runs.values()):
            shown = details[number]["runs"][at]
            for measure in measures:
                explained = karat.explain(measure, gold=gold, run=run, query=query).calculations[0]
                known = shown["calculations"][measure]
                for name in ("value", "columns", "rows", "counted", "ideal", "missed", "remarks"):
                    assert known[name] == getattr(explained, name)
                assert known["numbers"] == explained.numbers


def test_long_lists_keep_only_what_counts():
    items = [f"d{n}" for n in range(300)]
    gold = {"q": dict.fromkeys(items[25:] + [f"x{n}" for n in range(100)], 1)}
    known = details_of(gold, {"run": {"q": items}}, ["AP", "Judged"])[0]["runs"][0]
    average = known["calculations"]["AP"]
    ranks = [row["rank"] for row in average["rows"]]
    assert ranks == [*range(1, 21), *range(26, 66)]
    assert average["counted"] == [*range(26, 66)]
    assert len(average["missed"]) == 50
    assert average["n_missed"] == 100
    assert [result["rank"] for result in known["results"]] == ranks


def test_timings_and_costs_of_a_run_are_shown():
    calls = [
        {"stage": "rerank", "model": "m", "prompt_tokens": 2000, "price_in": 0.5},
        {"stage": "embed", "model": "e", "prompt_tokens": 10},
    ]
    run = [
        {"query_id": "q1", "results": ["a"], "latency_ms": {"total": 12.5}, "calls": calls},
        {"query_id": "q2", "results": ["a"]},
    ]
    details = details_of({"q1": ["a"], "q2": ["a"]}, {"run": run}, "RR")
    complete, silent = (details[number]["runs"][0] for number in (0, 1))
    assert complete["timings"] == {"total": 12.5}
    nothing = {"completion_tokens": None}
    assert complete["calls"] == [
        {"stage": "rerank", "model": "m", "prompt_tokens": 2000, "usd": 1.0} | nothing,
        {"stage": "embed", "model": "e", "prompt_tokens": 10, "usd": None} | nothing,
    ]
    assert (silent["timings"], silent["calls"], silent["error"]) == (None, None, None)


def test_texts_and_positions_of_ids_come_from_the_table_of_chunks():
    chunks = pl.DataFrame(
        {
            "id": ["z", "a", "c", "b", "silent"],
            "doc_id": ["e", "d", "c", "d", "f"],
            "start": [0, 0, 0, 5, 0],
            "end": [5, 5, 5, 3005, 5],
        }
    ).with_columns(text=pl.Series(["other", "abcde", "other", "x" * 3000, None]))
    gold = [{"query_id": "q", "relevant": ["a"], "spans": [place("d", 3, 7)]}]
    run = {"q": {"b": 0.5, "a": 0.25, "silent": 0.125}}
    (known,) = details_of(gold, {"run": run}, "RR", chunks=chunks).values()
    first, second, third = known["runs"][0]["results"]
    assert first == {
        "rank": 1,
        "score": 0.5,
        **place("d", 5, 3005),
        "text": "x" * 2000,
        "length": 3000,
        "gold": [[0, 2]],
    }
    assert second["gold"] == [[3, 5]]
    assert (second["text"], second["length"], second["start"]) == ("abcde", 5, 0)
    assert (third["text"], third["length"], third["doc_id"]) == (None, None, "f")
    (document,) = known["documents"]
    assert (document["doc_id"], document["length"]) == ("d", None)
    shown = [(piece["gold"], piece["ranks"], piece["text"][:3]) for piece in document["pieces"]]
    assert shown == [
        (False, [[2]], "abc"),
        (True, [[2]], "de"),
        (True, [[1]], "xx"),
        (False, [[1]], "xxx"),
    ]


def test_texts_come_from_the_corpus_with_any_unit_of_offsets():
    corpus = {"d": "a😀b refunds take 14 days", "e": "all of it"}
    gold = karat.Gold.of(
        [{"query_id": "q", "spans": [place("d", 5, 12)], "relevant": ["e"]}], offsets="utf16"
    )
    results = [place("d", 0, 7), {"id": "e"}]
    run = karat.Run.of(
        [{"query_id": "q", "results": [{"id": "c", **results[0]}, results[1]]}], offsets="utf16"
    )
    (known,) = details_of(gold, {"run": run}, "RR", corpus=corpus).values()
    first, second = known["runs"][0]["results"]
    assert (first["start"], first["end"], first["text"]) == (0, 6, "a😀b re")
    assert second["text"] == "all of it"
    assert (first["gold"], second["gold"]) == ([[4, 6]], [])
    (document,) = known["documents"]
    assert document["length"] == len(corpus["d"])
    assert [(piece["gold"], piece["ranks"], piece["text"]) for piece in document["pieces"]] == [
        (False, [[1]], "a😀b "),
        (True, [[1]], "re"),
        (True, [[]], "funds"),
        (False, [[]], " take 14 days"),
    ]


def test_positions_in_other_units_are_not_shown_without_the_documents():
    gold = karat.Gold.of(
        [{"query_id": "q", "spans": [place("d", 5, 12)], "relevant": ["e"]}], offsets="utf16"
    )
    (known,) = details_of(gold, {"run": {"q": ["e"]}}, "RR").values()
    assert known["documents"] == []


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")  # no document of gold is found
def test_only_documents_with_gold_are_shown():
    gold = [{"query_id": "q", "spans": [place("g2", 0, 5), place("g1", 0, 5)]}]
    listed = [
        {"query_id": "q", "results": [place(f"d{n}", 0, 9) for n in order]}
        for order in ([9, 8, 7, 6, 5, 4, 3], [1, 2, 9])
    ]
    runs = {"one": listed[:1], "two": listed[1:]}
    (known,) = details_of(gold, runs, "span.recall").values()
    assert [document["doc_id"] for document in known["documents"]] == ["g1", "g2"]
    many = [{"query_id": "q", "spans": [place(f"g{n:02}", 0, 5) for n in range(12)]}]
    (known,) = details_of(many, runs, "span.recall").values()
    assert [document["doc_id"] for document in known["documents"]] == [
        f"g{n:02}" for n in range(10)
    ]


def test_without_documents_only_texts_of_items_and_spans_are_shown():
    gold = [{"query_id": "q", "spans": [place("d", 10, 14) | {"text": "days"}]}]
    results = [place("d", 0, 5) | {"text": "takes"}, place("d", 5, 8) | {"text": "not its length"}]
    run = [{"query_id": "q", "results": results}]
    (known,) = details_of(gold, {"run": run}, "span.recall").values()
    (document,) = known["documents"]
    assert [(piece["start"], piece["end"], piece["text"]) for piece in document["pieces"]] == [
        (0, 5, "takes"),
        (5, 8, None),
        (8, 10, None),
        (10, 14, "days"),
    ]


def test_evidence_is_shown_with_its_match_or_the_nearest_text():
    gold = [{"query_id": "q", "evidence": ["paid within 14 days", "nothing like it at all"]}]
    before, after = "b" * 400, "a" * 400
    text = f"{before} PAID\nwithin 14 days. {after}"
    run = [{"query_id": "q", "results": [{"text": "by post"}, {"text": text}]}]
    queries = queries_of(gold, {"run": run}, ["evidence.RR", "evidence.recall"])
    known = queries.details[0]
    assert known.evidence == ["nothing like it at all", "paid within 14 days"]
    missed, covered = known.runs[0].matches
    stretch = covered.stretch
    assert covered == EvidenceMatch(1, True, "substring", 2, f"{before} "[:60], None, stretch)
    assert queries.chunks[stretch.text] == text
    assert text[stretch.start : stretch.end] == "PAID\nwithin 14 days"
    assert known.runs[0].results[1].gold == [(stretch.start, stretch.end)]
    assert (missed.evidence, missed.covered, missed.how) == (0, False, "missed")
    assert (missed.rank, missed.item) == (1, "by post")
    assert 0 < missed.ratio < 0.7
    assert (queries.chunks[missed.stretch.text], missed.stretch.end) == ("by post", 0)
    assert known.runs[0].results[0].gold == []
    rows = known.runs[0].calculations["evidence.RR"].rows
    assert [row["item"] for row in rows] == ["by post", f"{before} "[:60]]


def test_match_far_down_a_long_text_is_kept_with_its_context():
    text = "x" * 5000 + "paid within 14 days" + "y" * 5000
    gold = [{"query_id": "q", "evidence": ["paid within 14 days"]}]
    run = [{"query_id": "q", "results": [{"text": text}]}]
    queries = queries_of(gold, {"run": run}, "evidence.recall")
    (known,) = queries.details[0].runs
    (match,) = known.matches
    part = queries.chunks[match.stretch.text]
    assert part == text[4700:6700]
    assert part[match.stretch.start : match.stretch.end] == "paid within 14 days"
    (result,) = known.results
    assert (queries.chunks[result.text], result.gold) == ("x" * 2000, [])


def test_each_text_is_stored_once_over_runs_and_queries():
    document = "Refunds take 14 days. " * 20
    corpus = {"d": document}
    chunks = [place("d", start, start + 44) for start in (0, 44, 88)]
    gold = [{"query_id": f"q{n}", "spans": [place("d", 10, 60)]} for n in range(3)]
    run = [{"query_id": query["query_id"], "results": chunks} for query in gold]
    queries = queries_of(gold, {"one": run, "two": run}, "span.recall", corpus=corpus)
    assert queries.chunks == [document[:44]]  # the three chunks have the same text
    shown = details_of(gold, {"one": run, "two": run}, "span.recall", corpus=corpus)
    for known in shown.values():
        (highlighted,) = known["documents"]
        for piece in highlighted["pieces"]:
            if piece["text"] is not None:
                assert piece["text"] == document[piece["start"] : piece["end"]]
        golds = [result["gold"] for result in known["runs"][1]["results"]]
        assert golds == [[[10, 44]], [[0, 16]], []]


def test_gold_spans_that_overlap_are_one_stretch_of_an_item():
    spans = [place("d", 0, 6), place("d", 4, 9), place("d", 9, 9), place("e", 0, 3)]
    gold = [{"query_id": "q", "spans": spans}]
    run = [{"query_id": "q", "results": [place("d", 2, 20)]}]
    corpus = {"d": "Refunds take 14 days.", "e": "abc"}
    (known,) = details_of(gold, {"run": run}, "span.recall", corpus=corpus).values()
    assert known["runs"][0]["results"][0]["gold"] == [[0, 7]]


def test_answers_of_gold_are_kept_apart_from_its_fields():
    gold = [
        {"query_id": "q1", "relevant": ["a"], "reference": "Two weeks.", "topic": "refunds"},
        {"query_id": "q2", "relevant": ["a"], "topic": "cards"},
    ]
    first, second = details_of(gold, {"run": {"q1": ["a"], "q2": ["a"]}}, "RR").values()
    assert (first["answers"], first["fields"]) == (
        {"reference": "Two weeks."},
        {"topic": "refunds"},
    )
    assert (second["answers"], second["fields"]) == ({}, {"topic": "cards"})


def test_responses_of_a_run_are_shown():
    gold = {"q1": ["a"], "q2": ["a"], "q3": ["a"]}
    run = [
        {"query_id": "q1", "results": ["a"], "response": "Two weeks."},
        {"query_id": "q2", "results": ["a"], "answer": "By card."},
        {"query_id": "q3", "results": ["a"], "response": {"text": "not a text"}},
    ]
    details = details_of(gold, {"run": run}, "RR").values()
    responses = [known["runs"][0]["response"] for known in details]
    assert responses == ["Two weeks.", "By card.", None]


def test_documents_at_document_level_show_their_first_chunk():
    gold = {"q": ["d1"]}
    results = [
        {"id": "c1", **place("d2", 0, 3), "text": "one"},
        {"id": "c2", **place("d2", 3, 6), "text": "two"},
        {"id": "c3", **place("d1", 0, 5), "text": "three"},
    ]
    run = [{"query_id": "q", "results": results}]
    (known,) = details_of(gold, {"run": run}, "RR", level="doc").values()
    shown = [(r["rank"], r["text"]) for r in known["runs"][0]["results"]]
    assert shown == [(1, "one"), (2, "three")]
    assert [row["item"] for row in known["runs"][0]["calculations"]["RR"]["rows"]] == ["d2", "d1"]


def test_run_that_changed_after_scoring_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("karat.data.run_source.CACHE_BYTES", 0)  # as if it were too large to keep
    path = tmp_path / "run.jsonl"
    karat.Run.of({"q": ["a", "b"]}).write(path)
    scores = karat.evaluate({"q": ["b"]}, path, "RR")
    karat.Run.of({"q": ["b", "a"]}).write(path)
    with refused(path=None, field="runs") as error:
        load_queries([scores], [LoadedRun.of(scores)])
    assert "'run'" in str(error.value)


def test_nearest_of_long_texts_is_named_without_its_ratio():
    # Hardly a character in common, so that explain, which always has the ratio, is quick.
    evidence, text = (
        "".join(chr(first + at) for at in range(4200)) + " paid" for first in (0x4E00, 0xAC00)
    )
    gold = [{"query_id": "q", "evidence": [evidence]}]
    run = [{"query_id": "q", "results": [{"id": "a", "text": text}]}]
    (known,) = details_of(gold, {"run": run}, "evidence.recall").values()
    (missed,) = known["runs"][0]["matches"]
    assert (missed["item"], missed["ratio"]) == ("a", None)
    explained = karat.explain("evidence.recall", gold=gold, run=run, query="q")
    assert 0 < explained.calculations[0].matches[0]["nearest_ratio"] < 0.1


@pytest.mark.skipif(not CHUNKING.exists(), reason="needs ../shared/data/chunking-evaluation")
def test_pieces_of_real_documents_have_their_text():
    corpus = {path.stem: path.read_bytes().decode() for path in (CHUNKING / "corpora").glob("*.md")}
    gold, run = [], []
    with (CHUNKING / "questions_df.csv").open(encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file)):
            query, document = {"query_id": f"q{number}"}, row["corpus_id"]
            spans = [
                place(document, reference["start_index"], reference["end_index"])
                for reference in json.loads(row["references"])
            ]
            gold.append(query | {"spans": spans})
            starts = range(0, len(corpus[document]), len(corpus[document]) // 15)
            results = [place(document, at, min(at + 500, len(corpus[document]))) for at in starts]
            run.append(query | {"results": results})
    measured = ["span.recall@5", "span.iou@5"]
    details = details_of(gold[::9], {"run": run[::9]}, measured, corpus=corpus)
    assert len(details) == len(gold[::9])
    for known in details.values():
        (document,) = known["documents"]
        text, pieces = corpus[document["doc_id"]], document["pieces"]
        assert [piece["start"] for piece in pieces] == [0, *(piece["end"] for piece in pieces[:-1])]
        assert pieces[-1]["end"] == document["length"] == len(text)
        for piece in pieces:
            expected = text[piece["start"] : piece["end"]]
            assert piece["text"] == expected or not (piece["gold"] or any(piece["ranks"]))
