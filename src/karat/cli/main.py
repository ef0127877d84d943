"""`karat`: the commands, and how errors and warnings reach a person."""

from __future__ import annotations

import functools
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from karat.cli import (
    compare,
    convert,
    demo,
    evaluate,
    explain,
    gate,
    locate,
    measures,
    run,
    schema,
    trec_eval,
    validate,
)
from karat.errors import KaratError, KaratWarning
from karat.version import __version__

app = typer.Typer(
    name="karat",
    help="Tells how good a retriever is, and shows why the number can be trusted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _answering(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command end as the contract says: 0 yes, 1 no, 2 no answer, 130 interrupted."""

    @functools.wraps(command)
    def answer(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except KaratError as error:
            if "--debug" in sys.argv:
                raise
            print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # The reader of our output has gone (`karat … | head`): nobody is left to tell, and
            # Python must not try to flush what remains.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None

    return answer


app.command("eval", no_args_is_help=True)(_answering(evaluate.evaluate_command))
app.command("compare", no_args_is_help=True)(_answering(compare.compare_command))
app.command("explain", no_args_is_help=True)(_answering(explain.explain_command))
app.command("gate", no_args_is_help=True)(_answering(gate.gate_command))
app.command("run", no_args_is_help=True)(_answering(run.run_command))
app.command("validate", no_args_is_help=True)(_answering(validate.validate_command))
app.command("convert", no_args_is_help=True)(_answering(convert.convert_command))
app.command("locate", no_args_is_help=True)(_answering(locate.locate_command))
app.command("measures")(_answering(measures.measures_command))
app.command("schema", no_args_is_help=True)(_answering(schema.schema_command))
# trec_eval's flags are its own: nothing here may take one for karat's.
app.command(
    "trec_eval",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)(_answering(trec_eval.trec_eval_command))
app.command("demo")(_answering(demo.demo_command))


def _version(wanted: bool) -> None:
    if wanted:
        print(f"karat {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error arose.")] = False,
) -> None:
    """Options of all commands; --debug is looked up where it is needed."""


def main() -> None:
    """Run the command line."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    warnings.simplefilter("always", KaratWarning)
    # A process that is asked to end leaves nothing half-written behind, as one interrupted does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a dash
    app()


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    if issubclass(category, KaratWarning):
        print(f"warning: {message}", file=sys.stderr)
