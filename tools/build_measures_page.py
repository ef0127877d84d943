"""Writes docs/measures.md from the declarations; a test holds the two together."""

from __future__ import annotations

from pathlib import Path

from karat.report.catalogue import catalogue

PAGE = Path(__file__).parents[1] / "docs" / "measures.md"

INTRODUCTION = """\
# Measures

Names are `Name(param=value, …)@cutoff`, read without regard to case; `_` and `-` may be left out.
trec_eval's way of writing a cutoff (`ndcg_cut_10`, `P.5,10`) is read too. *k* is the cutoff,
relevant means a grade of `rel` or higher, and rank counts from 1. This page is made from the
declarations in `src/karat/measures/` by `tools/build_measures_page.py`.
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
