"""From the two files to topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Flags
from karat.compat.trec_eval.flags import Request
from karat.compat.trec_eval.inputs import Preference, read_groups, read_preferences
from karat.compat.trec_eval.preferences import judge, measured
from karat.compat.trec_eval.topics import Topics
from karat.conventions import Conventions
from karat.data.data_file import DataFile
from karat.data.formats import trec
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError
from karat.match.gold_index import PreparedGold
from karat.match.hits import Hits, judged_only
from karat.match.ids import match_ids


def open_run(path: str) -> tuple[DataFile, Run]:
    """Open a run file; `-` is standard input."""
    source = DataFile("/dev/stdin" if path == "-" else path)
    return source, trec.read_run(source)


def open_topics(request: Request, run: Run) -> tuple[Topics | None, str | None]:
    """Return the topics to evaluate, and the first one that the run lacks.

    Without -c, evaluation ends where a topic is missing, so only those before it are left.
    """
    path, wanted = request.files[0], request.judgments
    judged: Any
    build: Callable[[Any, list[str], Run, Request], Topics]
    if wanted == "qrels":
        judged, build = trec.read_gold(DataFile(path)), _of_qrels
        named = judged.query_ids
    elif wanted == "qrels_jg":
        judged, build = read_groups(path), _of_groups
        named = {topic for topic, _ in judged}
    else:
        judged, build = read_preferences(path, from_qrels=wanted == "qrels_prefs"), _of_preferences
        named = judged
    ids, lacking = _until_missing(sorted(named), run, request)
    return build(judged, ids, run, request) if ids else None, lacking


def _until_missing(ids: list[str], run: Run, request: Request) -> tuple[list[str], str | None]:
    if request.complete:
        return ids, None
    asked = set(run.query_ids)
    for at, topic in enumerate(ids):
        if topic not in asked:
            return ids[:at], topic
    return ids, None


def _of_qrels(gold: Gold, ids: list[str], run: Run, request: Request) -> Topics:
    judgments = gold.judgments.filter(pl.col("query_id").is_in(ids))
    twice = judgments.filter(pl.struct("query_id", "item_id").is_duplicated())
    if twice.height:
        query, item = twice.select("query_id", "item_id").row(0)
        raise InputError(
            f"topic {query!r} judges {item!r} twice",
            path=request.files[0],
            field="item",
            hint="drop one of the two lines; karat eval takes the higher grade",
        )
    hits, missing = _matched(Gold(judgments), run, request, ids)
    return Topics(ids, missing, request.level, request.documents, hits)


def _of_groups(
    groups: dict[tuple[str, str], dict[str, int]], ids: list[str], run: Run, request: Request
) -> Topics:
    """Make every judgment group a topic of its own, with the topic's list to itself."""
    place = {query: at for at, query in enumerate(ids)}
    keys = sorted(key for key in groups if key[0] in place)
    names = [f"{at:012}" for at in range(len(keys))]
    topics = [query for query, _ in keys]
    owners = pl.DataFrame({"query_id": topics, "name": names})
    results = owners.join(run.results, on="query_id", maintain_order="left_right").select(
        pl.col("name").alias("query_id"), "item_id", "score"
    )
    gold = Gold.of({name: groups[key] for name, key in zip(names, keys, strict=True)})
    hits, missing = _matched(gold, Run(results), request, topics)
    owner = np.array([place[topic] for topic in topics])
    n_groups = np.bincount(owner, minlength=len(ids))
    first = np.cumsum(n_groups) - n_groups
    return Topics(ids, missing[first], request.level, request.documents, hits, n_groups)


def _of_preferences(
    preferences: dict[str, list[Preference]], ids: list[str], run: Run, request: Request
) -> Topics:
    by_query = run.results.sort("item_id").sort("score", descending=True, maintain_order=True)
    listed = dict(by_query.group_by("query_id").agg("item_id").iter_rows())
    values = []
    for topic in ids:
        items = listed.get(topic, [])[: request.most_retrieved]
        if len(set(items)) < len(items):
            raise _again(request, topic)
        # One topic at a time: of each, only the values are kept, not who prefers what.
        values.append(measured(judge(topic, preferences[topic], items, request.files[0])))
    missing = np.array([topic not in listed for topic in ids])
    return Topics(ids, missing, request.level, request.documents, preferences=values)


def _matched(gold: Gold, run: Run, request: Request, topics: list[str]) -> tuple[Hits, Flags]:
    """Match as trec_eval reads the lists; `topics` names the topic of each query of gold."""
    match = match_ids(PreparedGold(gold), run, Conventions())
    hits = replace(match.hits, length=np.where(match.present, match.hits.length, 1))
    hits = hits.within(request.most_retrieved)
    if hits.repeats.query.size:
        raise _again(request, topics[int(hits.repeats.query[0])])
    return judged_only(hits) if request.judged_only else hits, ~match.present


def _again(request: Request, topic: str) -> InputError:
    return InputError(
        f"the run has an item twice for topic {topic!r}",
        path=request.files[1],
        field="item",
        hint="drop one of the two lines; karat eval --duplicates says what else can be done",
    )
