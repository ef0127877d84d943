"""`karat fuse`: combine the ranked lists of several runs into one run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from karat.cli.options import (
    COLUMNS,
    FILE,
    GOLD_FORMAT,
    JSON,
    RUN_FORMAT,
    RUNS,
)
from karat.cli.parameters import Option, command

TUNING = (
    Option(
        "measure",
        "-m",
        "--measure",
        panel="Tuning",
        metavar="NAME",
        default="nDCG@10",
        help="Tune for this measure.",
    ),
    Option(
        "--folds",
        panel="Tuning",
        metavar="N",
        type=int,
        default=5,
        help="Divide the queries into N folds for the cross-validation.",
    ),
    Option(
        "--seed",
        panel="Tuning",
        metavar="N",
        type=int,
        default=0,
        help="Set the seed that assigns queries to folds.",
    ),
    Option(
        "--fail-on-error",
        panel="Tuning",
        metavar="SHARE",
        type=float,
        default=0.05,
        help="Stop with exit code 2 if more than this share of the queries of a run failed.",
    ),
)
"""Options that have an effect only together with --tune."""


@command(
    "fuse",
    RUNS,
    Option(
        "--method",
        panel="Fusion",
        metavar="NAME",
        default="rrf",
        help="Choose how the lists are combined: by ranks (rrf, isr, log_isr, logn_isr, borda, "
        "condorcet, rbc) or by scores (combsum, combmnz, combanz, combmed, combmin, combmax, "
        "combgmnz, weighted, wmnz, mixed).",
    ),
    Option(
        "--normalization",
        panel="Fusion",
        metavar="min-max|max|z-score|sum|rank|borda|none",
        show_default="min-max, for methods that use scores",
        help="Choose how the scores of each list are made comparable.",
    ),
    Option(
        "--weights",
        panel="Fusion",
        metavar="LIST",
        help="Give each run a weight, in the order of the runs, such as 0.7,0.3. Needed by "
        "weighted, wmnz and mixed; optional for rrf, borda, condorcet and rbc.",
    ),
    Option(
        "--k",
        panel="Fusion",
        metavar="X",
        type=float,
        default=60,
        help="Set the constant of rrf. A larger value gives less weight to the first ranks.",
    ),
    Option(
        "--sigma",
        panel="Fusion",
        metavar="X",
        type=float,
        default=0.01,
        help="Set the constant of logn_isr.",
    ),
    Option(
        "--phi",
        panel="Fusion",
        metavar="X",
        type=float,
        default=0.9,
        help="Set the persistence of rbc, above 0 and below 1.",
    ),
    Option(
        "--gamma",
        panel="Fusion",
        metavar="X",
        type=float,
        default=2,
        help="Set the exponent of combgmnz.",
    ),
    Option(
        "--depth",
        panel="Fusion",
        metavar="N",
        type=int,
        show_default="all",
        help="Keep only the first N items per query.",
    ),
    Option(
        "--name",
        panel="Fusion",
        metavar="NAME",
        show_default="from the method and the runs",
        help="Set the name of the fused run.",
    ),
    Option(
        "--tune",
        panel="Tuning",
        metavar="GOLD",
        help="Choose the parameters that are best for this gold, and show their cross-validated "
        "value.",
    ),
    *TUNING,
    GOLD_FORMAT,
    RUN_FORMAT,
    COLUMNS,
    Option(
        "-o",
        "--output",
        panel="Output",
        metavar="FILE",
        type=FILE,
        multiple=True,
        help="Write the fused run; the extension decides the format, such as .jsonl or .run. "
        "Repeat for more files.",
    ),
    Option(
        "target_format",
        "--to",
        panel="Output",
        metavar="NAME",
        help="Write this format instead of the format of the extension.",
    ),
    JSON,
)
def fuse_command(
    runs: tuple[str, ...],
    method: str,
    normalization: str | None,
    weights: str | None,
    depth: int | None,
    name: str | None,
    tune: str | None,
    measure: str,
    folds: int,
    seed: int,
    fail_on_error: float,
    gold_format: str | None,
    run_format: str | None,
    columns: tuple[str, ...],
    output: tuple[Path, ...],
    target_format: str | None,
    json: bool,
    **parameters: float,
) -> None:
    """Combine the ranked lists of several runs into one run, such as BM25 and dense retrieval."""
    from karat.config import Config
    from karat.data.columns import Columns
    from karat.data.convert import check_run_targets
    from karat.data.data_file import PathSource
    from karat.data.fusion import fuse, named_runs
    from karat.errors import InputError
    from karat.evaluation.fusion_tuning import refuse_fixed_parameters, tune_fusion
    from karat.format import to_json
    from karat.report import document
    from karat.report.documents.fusion import fusion_counts, fusion_document
    from karat.report.renderers import terminal
    from karat.version import __version__

    if not output and tune is None:
        raise InputError("no file to write", field="--output", hint="add -o fused.jsonl")
    if tune is None:
        _refuse_tuning_options()
    check_run_targets(output, target_format, runs)
    mapping = Columns.of(columns)
    summary: dict[str, Any] = {"karat": __version__}
    with mapping.checked():
        named = named_runs(PathSource(path, run_format, mapping) for path in runs)
        if tune is None:
            fused = fuse(
                named,
                method,
                normalization=normalization,
                weights=_parse_weights(weights),
                depth=depth,
                name=name,
                **parameters,
            )
            shown = fusion_document(named, fused)
        else:
            refuse_fixed_parameters(parameters, weights)
            config = Config.find()
            if config.conventions:
                print(f"using the conventions in {config.path}", file=sys.stderr)
            tuning = tune_fusion(
                PathSource(tune, gold_format, mapping),
                named,
                measure,
                method=method,
                normalization=normalization,
                folds=folds,
                seed=seed,
                depth=depth,
                name=name,
                conventions=dict(config.conventions),
                fail_on_error=fail_on_error,
            )
            fused, shown = tuning.run, document(tuning)
            summary["tuning"] = tuning.as_dict()
    for path in output:
        fused.write(path, format=target_format)
    if json:
        print(to_json(summary | fusion_counts(named, fused)))
    else:
        terminal.show(shown)
    for path in output:
        print(f"wrote {path}", file=sys.stderr)


def _refuse_tuning_options() -> None:
    """Raise an error for options that have an effect only together with --tune."""
    from karat.errors import InputError

    context = click.get_current_context()
    for option in (*TUNING, GOLD_FORMAT):
        if context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
            raise InputError(
                "only tuning uses this option",
                field=option.opts[-1],
                hint="remove the option, or add --tune GOLD",
            )


def _parse_weights(text: str | None) -> list[float] | None:
    """Return the numbers of a list such as 0.7,0.3."""
    from karat.errors import InputError

    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"expected numbers separated by commas, got {text!r}",
            field="--weights",
            hint="write --weights 0.7,0.3",
        ) from None
