"""The command `karat trec_eval`: from the command line to the printed lines."""

from __future__ import annotations

import textwrap
from typing import IO

from karat.checks import did_you_mean
from karat.compat.trec_eval.catalogue import BY_NAME, ENTRIES, NICKNAMES, Entry, ParsedMeasure
from karat.compat.trec_eval.flags import TrecEvalOptions, parse_flags
from karat.compat.trec_eval.inputs import read_zscores
from karat.compat.trec_eval.load import open_run, open_topics
from karat.compat.trec_eval.output import print_table
from karat.data.formats.trec import last_tag
from karat.errors import InputError, MeasureError, warn
from karat.measures import REGISTRY
from karat.version import __version__

FLAGS = """\
karat trec_eval [flags] QRELS RUN
Print the same output as trec_eval 10.0, byte for byte.
Use - as RUN to read the run from standard input.

  -q              also print the values for each topic
  -n              do not print the summary
  -m NAME[.PARAM,…]
                  add a measure, with its parameters after a dot; can be repeated
  -c              average over all topics of QRELS; a topic that is not in RUN
                  is scored as if nothing was retrieved
  -l LEVEL        the lowest grade that counts as relevant (default: 1)
  -M COUNT        use only the first COUNT items of each topic
  -J              drop unjudged items
  -N COUNT        the number of documents in the collection (used only by -m utility)
  -R FORMAT       the format of QRELS: qrels, prefs, qrels_prefs or qrels_jg
  -Z FILE         print z-scores: lines of FILE are topic, measure, mean, deviation
  -T FORMAT       the format of RUN, which must be trec_results
  -o              ignored, as in trec_eval
  -h              print this help, and explain the measures named by -m
  -v              print the version

Measures: -m official (the default), all_trec, set, prefs, all_prefs or qrels_jg,
or by name:
"""


def help_text(entries: list[Entry]) -> str:
    """Return the help text, with a description of these measures."""
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
            f"See also: karat explain {entry.about}.",
        ]
    else:
        lines.append(entry.about)
    if isinstance(entry.default, tuple) and entry.default:
        defaults = ",".join(f"{value:g}" for value in entry.default)
        lines.append(f"Default parameters: {entry.name}.{defaults}")
    wrapped = [
        textwrap.fill(line, 80, initial_indent="  ", subsequent_indent="    ") for line in lines
    ]
    return "\n".join([entry.name, *wrapped]) + "\n"


def trec_eval(arguments: list[str], out: IO[str]) -> None:
    """Write what trec_eval 10.0 prints for these arguments.

    Parameters
    ----------
    arguments : list of str
        The command line, such as `["-m", "map", "qrels.txt", "run.txt"]`.
    out : text file
        The file to write to.
    """
    options = parse_flags(arguments)
    if options.version:
        out.write(f"trec_eval 10.0 as karat {__version__} does it\n")
        return
    measures = _parse_measures(options)
    if options.help:
        out.write(help_text([measure.entry for measure in measures] if options.measures else []))
        return
    zscores = None if options.zscores is None else read_zscores(options.zscores)
    source, run = open_run(options.files[1])
    topics, missing_topic = open_topics(options, run)
    summary = options.summary and missing_topic is None
    print_table(out, topics, measures, options, zscores, last_tag(source), summary=summary)
    if missing_topic is not None:
        raise InputError(
            f"topic {missing_topic!r} of the qrels is not in the run",
            path=options.files[1],
            hint="trec_eval 10.0 stops here, too; with -c, such topics are scored as if nothing "
            "was retrieved",
        )


def _parse_measures(options: TrecEvalOptions) -> list[ParsedMeasure]:
    """Return the measures in the order of trec_eval; the first parameters of a measure count."""
    parameters: dict[str, str] = {}
    names: set[str] = set()
    for name, measure_parameters in options.measures or [("official", None)]:
        if measure_parameters is not None:
            parameters.setdefault(name, measure_parameters)
        if name in NICKNAMES:
            names.update(NICKNAMES[name].split())
        elif name in BY_NAME:
            names.add(name)
        else:
            raise _unknown(name)
    entries = [entry for entry in ENTRIES if entry.name in names]
    if not options.help:
        for entry in entries:
            _check_judgments(entry, options.judgments)
    return [_parse_measure(entry, parameters.get(entry.name)) for entry in entries]


def _check_judgments(entry: Entry, judgments: str) -> None:
    if entry.judgments and judgments not in entry.judgments:
        raise MeasureError(
            f"{entry.name} cannot be computed from {judgments}",
            field="-m",
            hint=f"use -R {entry.judgments[0]} with a file in this format",
        )


def _parse_measure(entry: Entry, parameters: str | None) -> ParsedMeasure:
    if parameters is not None and entry.read is None:
        warn(f"{entry.name} takes no parameters; {parameters} is ignored", stacklevel=2)
        parameters = None
    try:
        return ParsedMeasure(entry, parameters)
    except MeasureError as error:
        raise MeasureError(
            f"{entry.name}.{parameters}: {error.problem}", field="-m", hint=error.hint
        ) from None


def _unknown(name: str) -> MeasureError:
    base, _, number = name.rpartition("_")
    if base in BY_NAME:
        hint = f"write parameters after a dot: {base}.{number}"
    else:
        similar = did_you_mean(name, [*NICKNAMES, *BY_NAME], count=3, show=str)
        hint = similar or "karat trec_eval -h lists the measures"
    return MeasureError(f"measure {name!r} not found in trec_eval", field="-m", hint=hint)
