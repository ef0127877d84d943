"""Find the queries with the lowest scores, and see how the worst score is calculated.

python examples/worst_queries.py
"""

from importlib.resources import files

import karat

FAQ = files("karat") / "docs" / "faq"
GOLD, RUN = str(FAQ / "support-faq.jsonl"), str(FAQ / "bm25.run")
MEASURE = "nDCG@10"

gold = karat.Gold.read(GOLD)
scores = karat.evaluate(gold, RUN, MEASURE)
texts = gold.queries.select("query_id", "text", "category")
worst = scores.per_query.join(texts, on="query_id").sort(MEASURE).head(3)
for row in worst.iter_rows(named=True):
    print(f"{row[MEASURE]:.3f}  {row['query_id']}  {row['category']}: {row['text']}")
print()
print(karat.explain(MEASURE, gold=gold, run=RUN, query=worst["query_id"][0]))
