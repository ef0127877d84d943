"""`karat trec_eval`: what trec_eval 10.0 prints, byte for byte."""

from __future__ import annotations

import io
import sys

import click

from karat.cli.parameters import command


# trec_eval's flags are its own: nothing here may take one for karat's.
@command(
    "trec_eval",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def trec_eval_command() -> None:
    """Print what trec_eval 10.0 prints; -h lists its flags."""
    from karat.compat.trec_eval import trec_eval

    if isinstance(sys.stdout, io.TextIOWrapper):  # ids come out as the bytes that went in
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    trec_eval(click.get_current_context().args, sys.stdout)
