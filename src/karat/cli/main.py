"""`karat`: the commands, and how errors and warnings reach a person."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer

from karat.cli import demo, evaluate, measures
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
app.command("eval", no_args_is_help=True)(evaluate.evaluate_command)
app.command("measures")(measures.measures_command)
app.command("demo")(demo.demo_command)


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
    """Options of all commands; `main` reads --debug itself, since it outlives the commands."""


def main() -> None:
    """Run the command line; exit 0: yes, 1: the answer is no, 2: no answer, 130: interrupted."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    warnings.simplefilter("always", KaratWarning)
    try:
        app()
    except KaratError as error:
        if "--debug" in sys.argv:
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`karat … | head`); there is nobody left to tell.
        sys.stderr.close()
        sys.exit(0)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    if issubclass(category, KaratWarning):
        print(f"warning: {message}", file=sys.stderr)
