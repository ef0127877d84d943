"""Writes docs/measures.md from the declarations; a test holds the two together."""

from __future__ import annotations

from pathlib import Path

from karat.report.catalogue import catalogue

PAGE = Path(__file__).parents[1] / "docs" / "measures.md"

INTRODUCTION = """\
# Measures

Names are `Name(param=value, …)@cutoff`, read without regard to case; `_` and `-` may be left out.
Several names are separated by commas or spaces: `-m "nDCG@10 P@5 RR"`. *k* is the cutoff,
relevant means a grade of `rel` or higher, and rank counts from 1. This page is made from the
declarations in `src/karat/measures/` by `tools/build_measures_page.py`. You can also declare
[measures of your own](own_measures.md).

trec_eval's way of writing a cutoff (`ndcg_cut_10`, `P.5,10`) is read too, and so are the
parameters of ir_measures. They are printed in karat's spelling, and the values are those of
ir_measures:

| ir_measures | karat |
| --- | --- |
| `nDCG(dcg='exp-log2')@10` | `nDCG(gain=exp2)@10` |
| `nDCG(gains={1: 5, 2: 10})@10` | `nDCG(gain={1: 5, 2: 10})@10` |
| `SetF(beta=2)` | `SetF(weight=2)`: ir_measures too uses its `beta` as the weight, which is β² |
| `SetP(relative=True)` | `R_cap` |
| `NumRet(rel=2)` | `NumRelRet(rel=2)` |
| `P(cutoff=5)`, `IPrec(recall=0.1)` | `P@5`, `IPrec@0.1` |
| `P(judged_only=True)@5` | refused: `--unjudged skip` applies to all measures of a command |
| `F(beta=2)` | refused: F1 has a fixed β of 1; `SetF(weight=4)` is F with β = 2 of the whole list |
"""

CUTOFF = {
    "none": "takes no cutoff",
    "optional": "cutoff may be left out: the whole list",
    "budget": "cutoff may be a rank, a budget of characters such as `@2000c`, or left out",
    "share": "needs a point of recall, such as `@0.1`",
}


def page() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION]
    for measure in catalogue():
        lines = [f"## {measure['name']}", "", f"{measure['title']}.", "", f"> {measure['formula']}"]
        lines += ["", f"- {CUTOFF[measure['cutoff']]}; {measure['over_queries']} over queries"]
        if not measure["higher_is_better"]:
            lines[-1] += "; lower is better"
        if measure["unit"]:
            lines[-1] += f"; in {measure['unit']}"
        if measure["aliases"]:
            lines.append(f"- also: {', '.join(f'`{alias}`' for alias in measure['aliases'])}")
        lines += [f"- defined in: {publication}" for publication in measure["cites"]]
        for name, param in measure["parameters"].items():
            default = "" if param["default"] is None else f" (default `{param['default']}`)"
            lines.append(f"- `{name}`{default}: {param['help']}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
