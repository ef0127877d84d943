"""The ranks of what should be found, among the candidates of a reranker and in its results."""

from __future__ import annotations

import numpy as np
import polars as pl

from karat.arrays import Ints
from karat.data.run import Run
from karat.engines.parts import ListPreparation, RunFacts
from karat.errors import InputError
from karat.match.align import query_and_rank
from karat.match.evidence import EvidenceMatches
from karat.match.gold_index import PreparedGold
from karat.match.spans import Coverage, relevant_spans
from karat.match.targets import Targets
from karat.measures import Measure, Plan
from karat.measures.families import RANK, FamilyInput

_ITEM = ["query", "item"]


def ranks_of_items(gold: PreparedGold, candidates: Run, run: Run, plan: Plan) -> pl.DataFrame:
    """Return one row per judged item: query, item, grade, position, candidate_rank and rank.

    `position` is the rank among all candidates. `candidate_rank` and `rank` are the ranks that are
    scored in both lists, which differ where the plan removes repeated or unjudged items. A rank
    is 0 if the item is not in the list.
    """
    before = _ranks_in(candidates, gold, plan).rename({"rank": "candidate_rank"})
    after = _ranks_in(run, gold, plan).drop("position")
    return (
        gold.table.select("query", pl.col("item_id").alias("item"), "grade")
        .join(before, on=_ITEM, how="left", maintain_order="left")
        .join(after, on=_ITEM, how="left", maintain_order="left")
        .with_columns(pl.col("position", "candidate_rank", "rank").fill_null(0))
    )


def _ranks_in(run: Run, gold: PreparedGold, plan: Plan) -> pl.DataFrame:
    """Return the first position and rank of the judged items in the lists of a run."""
    item = "doc_id" if plan.level == "doc" else "item_id"
    query, position = query_and_rank(gold.query_ids, run)
    items = run.results[item] if run.results.height else pl.Series(dtype=pl.String)
    rows = pl.DataFrame({"query": query, "item": items, "position": position})
    rows = rows.filter(pl.col("query") >= 0).with_columns(rank="position")
    renumbered = pl.int_range(1, pl.len() + 1).over("query").alias("rank")
    if plan.level == "doc" or plan.conventions.duplicates == "set":
        rows = rows.unique(_ITEM, keep="first", maintain_order=True).with_columns(renumbered)
    judged = gold.table.select("query", pl.col("item_id").alias("item"), "grade")
    rows = rows.join(judged, on=_ITEM, maintain_order="left")
    if plan.conventions.unjudged == "skip":
        rows = rows.filter(pl.col("grade") >= 0).with_columns(renumbered)
    return rows.unique(_ITEM, keep="first", maintain_order=True).drop("grade")


def ranks_of_targets(
    gold: PreparedGold, before: FamilyInput, after: FamilyInput, measure: Measure
) -> pl.DataFrame:
    """Return one row per gold span or evidence text: query, item, position and rank.

    The ranks are those of the first items that cover it, 0 if no item does.
    """
    query, item, position = _targets(before, gold, measure)
    _, _, rank = _targets(after, gold, measure)
    return pl.DataFrame({"query": query, "item": item, "position": position, "rank": rank})


def _targets(
    reading: FamilyInput, gold: PreparedGold, measure: Measure
) -> tuple[Ints, pl.Series, Ints]:
    """Return the query, the text and the first rank of each target, in the order of gold."""
    if isinstance(reading.data, Coverage):
        coverage, spans = reading.data, relevant_spans(gold.gold)
        targets = coverage.targets(measure.params["min_overlap"])
        rows = coverage.spans.distinct[1]  # the order of targets depends on the run
        order = np.argsort(rows)
        names = spans.select(pl.format("{}[{}:{}]", "doc_id", "start", "end")).to_series()
        return targets.target_query[order], names[rows[order]], _first_ranks(targets)[order]
    matches = reading.data_as(EvidenceMatches)
    texts = pl.Series(matches.evidence.text, dtype=pl.String)[matches.covering.counted]
    return matches.targets.target_query, texts, _first_ranks(matches.targets)


def _first_ranks(targets: Targets) -> Ints:
    ranks = np.zeros(targets.target_query.size, np.int64)
    found, first = np.unique(targets.target, return_index=True)  # pairs are in rank order
    ranks[found] = targets.rank[first]
    return ranks


def require_columns(
    candidates: RunFacts, lists: ListPreparation, plan: Plan, measure: Measure
) -> None:
    """Raise an error if the candidates lack what is compared with gold."""
    family = measure.declaration.reads
    needed = ("doc_id",) if family is RANK and plan.level == "doc" else family.items
    if not candidates.n_results or (plan.chunks is not None and family is not RANK):
        return
    for name in needed:
        is_made = name == "item_id" and lists.hashes_texts
        if not is_made and not candidates.has_complete(name):
            raise InputError(
                f"some candidates have no {name}, but the comparison with gold needs it",
                field=f"candidates.{name}",
                hint="store the same fields in candidates as in results",
            )
