"""`karat`: the commands, and how errors and warnings reach a person."""

from __future__ import annotations

import errno
import functools
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NoReturn

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
from karat.errors import KaratError, KaratWarning, printable
from karat.markup import brief
from karat.version import __version__

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

app = typer.Typer(
    name="karat",
    help="Tells how good a retriever is, and shows why the number can be trusted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@contextmanager
def _outcome() -> Iterator[None]:
    """End the process with one line and the documented exit code, whatever happens.

    0 yes, 1 no, 2 no answer, 130 interrupted, 141 the reader of the output has closed the pipe.
    """
    try:
        yield
    except KaratError as error:
        if "--debug" in sys.argv:
            raise
        _end(2, f"error: {error}")
    except KeyboardInterrupt:
        _end(130, "interrupted")
    except BrokenPipeError:
        _end(141)  # as if SIGPIPE had ended the process: `karat … | head` is not an error
    except Exception as error:
        if "--debug" in sys.argv or _is_usage(error):
            raise
        _end(2, f"error: {_unexpected(error)}")


def _end(code: int, message: str | None = None) -> NoReturn:
    with suppress(OSError):
        if message is not None:
            print(message, file=sys.stderr)
    _drop_unwritable()
    raise SystemExit(code) from None


def _drop_unwritable() -> None:
    """Drop what cannot be written.

    Python would try again while it shuts down, print an error and change the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _is_usage(error: Exception) -> bool:
    """Tell whether Typer shows this itself: an exit code or a wrong option."""
    return hasattr(error, "exit_code")


def _unexpected(error: Exception) -> str:
    # Files are written with errors of their own: here the disk behind standard output is full.
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        return f"standard output: it cannot be written ({error.strerror or error})"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this input"
    name, text = type(error).__name__, printable(brief(str(error), 300))
    return f"unexpected {name}: {text} (karat --debug … shows the traceback)"


def _answering(command: Callable[..., None]) -> Callable[..., None]:
    """Apply `_outcome` within Typer too, which has its own exit code for an interrupt."""

    @functools.wraps(command)
    def answer(*arguments: Any, **options: Any) -> None:
        with _outcome():
            command(*arguments, **options)
            sys.stdout.flush()

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
    output = sys.stdout
    with _outcome():
        try:
            app()
        except SystemExit as stop:
            if sys.stdout is not output:  # Typer found a closed pipe while it printed the help
                raise BrokenPipeError from None
            if stop.code in (0, None):
                output.flush()
            _drop_unwritable()
            raise


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    if issubclass(category, KaratWarning):
        print(f"warning: {message}", file=sys.stderr)
