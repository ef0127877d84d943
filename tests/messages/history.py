"""Messages about saved scores that are shown as a history."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import karat
from karat.evaluation.history import check_folder, save
from karat.evaluation.provenance import Provenance
from karat.evaluation.scores_json import document
from karat.format import to_json
from messages.cases import Section, written

SECTION = Section("history")
case = SECTION.case

SCORES = replace(
    karat.evaluate({"q1": ["a"]}, {"q1": ["a"]}, "RR"),
    saved=Provenance(datetime(2026, 3, 1, tzinfo=UTC)),
)


def show(sources=SCORES, *words, **options):
    return lambda: karat.history(sources, *words, **options)


def without_time():
    written("scores.json", to_json(document([SCORES], per_query=True)))
    karat.history("scores.json")


def not_scores():
    karat.history(written("run.jsonl", '{"query_id": "q1", "results": ["a"]}\n'))


def empty_folder():
    Path("scores").mkdir()
    karat.history("scores")


case("a folder of scores is empty", empty_folder)
case("a file is not of saved scores", not_scores)
case("saved scores have no time", without_time)
case("no saved scores contain a measure", show(SCORES, "AP"))
case("no saved scores are of a run", show(SCORES, runs="other"))
case("an order of saved scores is unknown", show(SCORES, by="day"))
case("no saved scores belong to a commit", show(SCORES, by="commit"))
case("the number of saved scores is too small", show(SCORES, last=0))
case("a folder for scores is a file", lambda: check_folder(written("scores", "")))
case(
    "a folder for scores cannot be created",
    lambda: save([SCORES], Path(written("taken", "")) / "scores"),
)
