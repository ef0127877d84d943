"""How much of a context a run fills."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.match.usage_table import UsageTable, tokens_of
from karat.measures.declare import measure
from karat.measures.families import CONTEXT
from karat.measures.workings import is_heard, note_places


@measure(
    "context.tokens",
    title="Context tokens delivered",
    formula="Σ of the tokens of the items in the top k",
    family=CONTEXT.name,
    cutoff="optional",
    whole=True,
    higher_is_better=False,
    no_gold=False,
    edges="0 for a query of the run that retrieved nothing; a query with an item in the top k of "
    "unknown tokens is left out, and counted; an item that stands again counts again",
    differs="tokens are those in the run, by whatever tokenizer counted them; none is guessed from "
    "characters",
)
def context_tokens(results: UsageTable, k: int | None) -> Floats:
    tokens = tokens_of(results)
    kept = results.places.rank <= (tokens.size if k is None else k)
    delivered = results.places.where(kept)
    if is_heard():
        whole = results.table["tokens"].filter(kept).to_list()
        note_places(delivered, tokens=np.array(whole, object))
    return np.where(results.present, delivered.total(tokens[kept]), np.nan)
