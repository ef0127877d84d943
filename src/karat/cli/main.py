"""`karat`: the commands, and how errors and warnings reach a person."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import click

from karat.cli.compare import compare_command
from karat.cli.convert import convert_command
from karat.cli.demo import demo_command
from karat.cli.evaluate import evaluate_command
from karat.cli.explain import explain_command
from karat.cli.gate import gate_command
from karat.cli.locate import locate_command
from karat.cli.measures import measures_command
from karat.cli.parameters import CONTEXT, Group
from karat.cli.run import run_command
from karat.cli.schema import schema_command
from karat.cli.trec_eval import trec_eval_command
from karat.cli.validate import validate_command
from karat.errors import KaratError, KaratWarning, printable, readable
from karat.markup import brief
from karat.version import __version__

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _show_version(context: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given:
        print(f"karat {__version__}")
        context.exit()


app = Group(
    "karat",
    help="Measure how good a retriever is, and show why the number can be trusted.",
    no_args_is_help=True,
    context_settings=CONTEXT,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version.",
        ),
        # `_outcome` looks this one up where it is needed.
        click.Option(
            ["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error."
        ),
    ],
)
for _command in (
    evaluate_command,
    compare_command,
    explain_command,
    gate_command,
    run_command,
    validate_command,
    convert_command,
    locate_command,
    measures_command,
    schema_command,
    trec_eval_command,
    demo_command,
):
    app.add_command(_command)


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
    except click.ClickException as error:
        _end(2, _usage_problem(error))
    except KeyboardInterrupt:
        _end(130, "interrupted")
    except BrokenPipeError:
        _end(141)  # as if SIGPIPE had ended the process: `karat … | head` is not an error
    except Exception as error:
        if "--debug" in sys.argv:
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


def _usage_problem(error: click.ClickException) -> str:
    """Return the message for a wrong command line; without any words, that is the help page."""
    message = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return message
    context = getattr(error, "ctx", None)
    command = "karat" if context is None else context.command_path
    problem = readable(message[:1].lower() + message[1:].removesuffix("."))
    return f"error: {problem}\n  hint: see {command} --help"


def _unexpected(error: Exception) -> str:
    # Files are written with errors of their own: here the disk behind standard output is full.
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        return f"standard output: it cannot be written ({error.strerror or error})"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this input"
    name, text = type(error).__name__, printable(brief(str(error), 300))
    return f"unexpected {name}: {text} (karat --debug … shows the traceback)"


def main() -> None:
    """Run the command line."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    warnings.simplefilter("always", KaratWarning)
    # A process that is asked to end leaves nothing half-written behind, as one interrupted does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a dash
    with _outcome():
        code = 0
        try:
            with app.make_context("karat", sys.argv[1:]) as context:
                app.invoke(context)
        except click.exceptions.Exit as stop:
            code = stop.exit_code
        except SystemExit:
            _drop_unwritable()
            raise
        if not code:
            sys.stdout.flush()
        _end(code)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    if issubclass(category, KaratWarning):
        print(f"warning: {message}", file=sys.stderr)
