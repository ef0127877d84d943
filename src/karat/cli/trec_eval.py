"""`karat trec_eval`: print the same output as trec_eval 10.0, byte for byte."""

from __future__ import annotations

import io
import sys

import click

from karat.cli.parameters import command


# All flags are passed on to trec_eval, including -h: none may be read as an option of karat.
@command(
    "trec_eval",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def trec_eval_command() -> None:
    """Print the same output as trec_eval 10.0; -h lists its flags."""
    from karat.compat.trec_eval import trec_eval

    if isinstance(sys.stdout, io.TextIOWrapper):  # write ids with the same bytes as in the input
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    trec_eval(click.get_current_context().args, sys.stdout)
