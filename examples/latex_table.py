"""Write the table of a paper: two runs, significance letters, and the LaTeX source.

    python examples/latex_table.py

Replace the paths by TREC qrels and run files.
"""

from importlib.resources import files
from pathlib import Path

import karat

FAQ = files("karat") / "docs" / "faq"
comparison = karat.compare(
    str(FAQ / "support-faq.jsonl"),
    {"BM25": str(FAQ / "bm25.run"), "Hybrid": str(FAQ / "hybrid.jsonl")},
    ["nDCG@10", "AP", "RR@10"],
)
comparison.write("table.tex")
print(Path("table.tex").read_text(encoding="utf-8"))
