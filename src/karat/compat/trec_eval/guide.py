"""What -h prints: the flags, and what is known of the measures asked for."""

from __future__ import annotations

import textwrap

from karat.compat.trec_eval.catalogue import ENTRIES, Entry
from karat.measures import REGISTRY

FLAGS = """\
karat trec_eval [flags] QRELS RUN: what trec_eval 10.0 prints, byte for byte.
RUN may be - for standard input.

  -q              also print each topic
  -n              do not print the summary
  -m NAME[.PARAM,…]
                  add a measure, with its parameters behind a dot; repeat it for more
  -c              average over all topics of QRELS; one that RUN lacks counts as
                  nothing found
  -l LEVEL        the lowest grade that counts as relevant (1)
  -M COUNT        look at the first COUNT items of a topic only
  -J              drop items that are not judged
  -N COUNT        how many documents there are, for utility
  -R FORMAT       what QRELS holds: qrels, prefs, qrels_prefs or qrels_jg
  -Z FILE         print z-scores: lines of FILE are topic, measure, mean, deviation
  -T FORMAT       what RUN holds: trec_results, and nothing else
  -o              passed over, as trec_eval does
  -h              print this, with what -m names explained
  -v              print the version

Measures: -m official (the default), all_trec, set, prefs, all_prefs or qrels_jg,
or by name:
"""


def guide(entries: list[Entry]) -> str:
    """Return the help text."""
    names = textwrap.wrap(
        " ".join(entry.name for entry in ENTRIES), 78, initial_indent="  ", subsequent_indent="  "
    )
    return "\n".join([FLAGS + "\n".join(names) + "\n", *map(_about, entries)])


def _about(entry: Entry) -> str:
    lines = []
    if entry.about in REGISTRY:
        declaration = REGISTRY[entry.about]
        lines += [
            f"{declaration.title}: {declaration.formula}.",
            f"{declaration.edges}.",
            f"karat explain {entry.about} says more.",
        ]
    else:
        lines.append(entry.about)
    if isinstance(entry.default, tuple) and entry.default:
        shown = ",".join(f"{value:g}" for value in entry.default)
        lines.append(f"Without parameters: {entry.name}.{shown}")
    wrapped = [
        textwrap.fill(line, 80, initial_indent="  ", subsequent_indent="    ") for line in lines
    ]
    return "\n".join([entry.name, *wrapped]) + "\n"
