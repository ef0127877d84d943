"""Load the two files, and match them into topics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from karat.arrays import Flags
from karat.compat.trec_eval.flags import TrecEvalOptions
from karat.compat.trec_eval.inputs import Preference, read_groups, read_preferences
from karat.compat.trec_eval.preferences import judge, preference_values
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
    """Read a run file; `-` is standard input."""
    source = DataFile("/dev/stdin" if path == "-" else path)
    return source, trec.read_run(source)


def open_topics(options: TrecEvalOptions, run: Run) -> tuple[Topics | None, str | None]:
    """Return the topics to evaluate, and the first topic that is not in the run.

    Without -c, evaluation stops at that topic, so only the topics before it are returned.
    """
    path = options.files[0]
    if options.judgments == "qrels":
        gold = trec.read_gold(DataFile(path))
        ids, missing_topic = _until_missing(gold.query_ids, run, options)
        build = partial(_of_qrels, gold)
    elif options.judgments == "qrels_jg":
        groups = read_groups(path)
        ids, missing_topic = _until_missing({topic for topic, _ in groups}, run, options)
        build = partial(_of_groups, groups)
    else:
        preferences = read_preferences(path, from_qrels=options.judgments == "qrels_prefs")
        ids, missing_topic = _until_missing(preferences, run, options)
        build = partial(_of_preferences, preferences)
    return build(ids, run, options) if ids else None, missing_topic


def _until_missing(
    topics: Iterable[str], run: Run, options: TrecEvalOptions
) -> tuple[list[str], str | None]:
    ids = sorted(topics)
    if options.complete:
        return ids, None
    in_run = set(run.query_ids)
    for at, topic in enumerate(ids):
        if topic not in in_run:
            return ids[:at], topic
    return ids, None


def _of_qrels(gold: Gold, ids: list[str], run: Run, options: TrecEvalOptions) -> Topics:
    judgments = gold.judgments.filter(pl.col("query_id").is_in(ids))
    repeated = judgments.filter(pl.struct("query_id", "item_id").is_duplicated())
    if repeated.height:
        query, item = repeated.select("query_id", "item_id").row(0)
        raise InputError(
            f"{item!r} is judged twice for topic {query!r}",
            path=options.files[0],
            field="item",
            hint="remove one of the two lines; `karat eval` would use the higher grade",
        )
    hits, missing = _matched(Gold(judgments), run, options, ids)
    return Topics(ids, missing, options.level, options.documents, hits)


def _of_groups(
    groups: dict[tuple[str, str], dict[str, int]],
    ids: list[str],
    run: Run,
    options: TrecEvalOptions,
) -> Topics:
    """Return topics where every judgment group is matched with a copy of its topic's list."""
    place = {query: at for at, query in enumerate(ids)}
    keys = sorted(key for key in groups if key[0] in place)
    names = [f"{at:012}" for at in range(len(keys))]
    topics = [query for query, _ in keys]
    owners = pl.DataFrame({"query_id": topics, "name": names})
    results = owners.join(run.results, on="query_id", maintain_order="left_right").select(
        pl.col("name").alias("query_id"), "item_id", "score"
    )
    gold = Gold.of({name: groups[key] for name, key in zip(names, keys, strict=True)})
    hits, missing = _matched(gold, Run(results), options, topics)
    owner = np.array([place[topic] for topic in topics])
    n_groups = np.bincount(owner, minlength=len(ids))
    first = np.cumsum(n_groups) - n_groups
    return Topics(ids, missing[first], options.level, options.documents, hits, n_groups)


def _of_preferences(
    preferences: dict[str, list[Preference]], ids: list[str], run: Run, options: TrecEvalOptions
) -> Topics:
    by_query = run.results.sort("item_id").sort("score", descending=True, maintain_order=True)
    listed = dict(by_query.group_by("query_id").agg("item_id").iter_rows())
    values = []
    for topic in ids:
        items = listed.get(topic, [])[: options.most_retrieved]
        if len(set(items)) < len(items):
            raise _listed_twice(options, topic)
        # One topic at a time, so that the matrices of only one topic are in memory.
        values.append(preference_values(judge(topic, preferences[topic], items, options.files[0])))
    missing = np.array([topic not in listed for topic in ids])
    return Topics(ids, missing, options.level, options.documents, preferences=values)


def _matched(
    gold: Gold, run: Run, options: TrecEvalOptions, topics: list[str]
) -> tuple[Hits, Flags]:
    """Match gold and run as trec_eval does; `topics` has the topic of each query of gold."""
    match = match_ids(PreparedGold(gold), run, Conventions())
    hits = replace(match.hits, length=np.where(match.present, match.hits.length, 1))
    hits = hits.within(options.most_retrieved)
    if hits.repeats.query.size:
        raise _listed_twice(options, topics[int(hits.repeats.query[0])])
    return judged_only(hits) if options.judged_only else hits, ~match.present


def _listed_twice(options: TrecEvalOptions, topic: str) -> InputError:
    return InputError(
        f"an item is listed twice for topic {topic!r}",
        path=options.files[1],
        field="item",
        hint="remove one of the two lines, or use `karat eval` with --duplicates",
    )
