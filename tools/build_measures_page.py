"""Write docs/measures.md from the declarations.

A test checks that the page is up to date; KARAT_UPDATE=1 (`make messages`) rewrites it.
"""

from __future__ import annotations

from pathlib import Path

from karat.measures import REGISTRY
from karat.report.catalogue import HEADINGS, catalogue

PAGE = Path(__file__).parents[1] / "docs" / "measures.md"

INTRODUCTION = """\
# Measures

A name is `Name(param=value, …)@cutoff`. Case is ignored, and `_` and `-` are optional. Several
names are separated by commas or spaces: `-m "nDCG@10 P@5 RR"`. *k* is the cutoff, relevant means
a grade of `rel` or higher, and ranks count from 1. This page is generated from the declarations in
`src/karat/measures/` by `tools/build_measures_page.py`; `karat explain NAME` shows the same texts
with a worked example. [Choosing a measure](handbook/choosing-a-measure.md) helps to find the right
one, and you can declare [measures of your own](own_measures.md).

Cutoffs in the style of trec_eval (`ndcg_cut_10`, `P.5,10`) and the parameters of ir_measures are
accepted too. Output uses the names of karat, and the values are those of ir_measures:

| ir_measures | karat |
| --- | --- |
| `nDCG(dcg='exp-log2')@10` | `nDCG(gain=exp2)@10` |
| `nDCG(gains={1: 5, 2: 10})@10` | `nDCG(gain={1: 5, 2: 10})@10` |
| `SetF(beta=2)` | `SetF(weight=2)`; the `beta` of ir_measures is also β² |
| `SetP(relative=True)` | `R_cap` |
| `NumRet(rel=2)` | `NumRelRet(rel=2)` |
| `P(cutoff=5)`, `IPrec(recall=0.1)` | `P@5`, `IPrec@0.1` |
| `P(judged_only=True)@5` | not supported; use `--unjudged skip` for all measures of a command |
| `F(beta=2)` | not supported; `SetF(weight=4)` is the F measure of the whole list with β = 2 |
"""

CUTOFF = {
    "none": "takes no cutoff",
    "optional": "cutoff is optional; default: the whole list",
    "budget": "cutoff is optional: a rank, or a budget of characters such as `@2000c`; "
    "default: the whole list",
    "share": "requires a recall level, such as `@0.1`",
}


def pages() -> dict[Path, str]:
    """Return the path and the text of the page."""
    parts = [INTRODUCTION]
    family = None
    for measure in catalogue():
        declaration = REGISTRY[measure["name"]]
        if declaration.family != family:
            family = declaration.family
            parts.append(f"## {HEADINGS[family]}\n")
        lines = [f"### {declaration.name}", "", f"{measure['title']}.", ""]
        lines += [f"> {measure['formula']}"]
        lines += ["", f"- {CUTOFF[measure['cutoff']]}; {measure['over_queries']} over queries"]
        if not measure["higher_is_better"]:
            lines[-1] += "; lower is better"
        if measure["unit"]:
            lines[-1] += f"; in {measure['unit']}"
        if measure["aliases"]:
            lines.append(f"- also: {', '.join(f'`{alias}`' for alias in measure['aliases'])}")
        lines += [f"- edge cases: {declaration.edges}"] * bool(declaration.edges)
        lines += [f"- other tools: {declaration.differs}"] * bool(declaration.differs)
        lines += [f"- defined in: {publication}" for publication in measure["cites"]]
        for name, param in measure["parameters"].items():
            default = "" if param["default"] is None else f" (default `{param['default']}`)"
            lines.append(f"- `{name}`{default}: {param['help']}")
        parts.append("\n".join(lines) + "\n")
    return {PAGE: "\n".join(parts)}


if __name__ == "__main__":
    PAGE.write_text(pages()[PAGE], encoding="utf-8")
