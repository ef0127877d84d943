"""`karat`: the list of commands, exit codes, and how errors and warnings are printed."""

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

from karat.cli.cache import cache_command
from karat.cli.compare import compare_command
from karat.cli.completion import VARIABLE, complete, completion_command
from karat.cli.convert import convert_command
from karat.cli.demo import demo_command
from karat.cli.docs import docs_command
from karat.cli.evaluate import evaluate_command
from karat.cli.explain import explain_command
from karat.cli.fuse import fuse_command
from karat.cli.gate import gate_command
from karat.cli.history import history_command
from karat.cli.init import init_command
from karat.cli.locate import locate_command
from karat.cli.measures import measures_command
from karat.cli.parameters import CONTEXT, CommandGroup
from karat.cli.progress import step_bars
from karat.cli.run import run_command
from karat.cli.schema import schema_command
from karat.cli.start import start_page
from karat.cli.trec_eval import trec_eval_command
from karat.cli.validate import validate_command
from karat.errors import InputError, KaratError, KaratWarning, printable, readable
from karat.markup import brief
from karat.version import __version__

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _show_version(context: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given:
        print(f"karat {__version__}")
        context.exit()


app = CommandGroup(
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
            help="Show the version and exit.",
        ),
        # `_exit_codes` looks for this option in sys.argv.
        click.Option(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            help="Show the full traceback of an error.",
        ),
    ],
)
for _command in (
    evaluate_command,
    compare_command,
    explain_command,
    gate_command,
    history_command,
    run_command,
    validate_command,
    convert_command,
    fuse_command,
    locate_command,
    measures_command,
    schema_command,
    trec_eval_command,
    cache_command,
    demo_command,
    docs_command,
    init_command,
    completion_command,
):
    app.add_command(_command)


@contextmanager
def _exit_codes() -> Iterator[None]:
    """Turn every exception into a message and an exit code.

    0: success, 1: negative result (a gate failed), 2: error, 130: interrupted, 141: the reader of
    the output has closed the pipe.
    """
    try:
        yield
    except KaratError as error:
        if "--debug" in sys.argv:
            raise
        _exit(2, f"error: {_with_line(error)}")
    except click.ClickException as error:
        _exit(2, _usage_problem(error))
    except KeyboardInterrupt:
        _exit(130, "interrupted")
    except BrokenPipeError:
        _exit(141)  # the exit code of SIGPIPE: `karat … | head` is not an error
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        _exit(2, f"error: {_unexpected(error)}")


def _with_line(error: KaratError) -> str:
    """Return the message, with the line of the file that it is about."""
    if not isinstance(error, InputError):
        return str(error)
    from karat.cli.excerpt import with_excerpt

    return with_excerpt(error)


def _exit(code: int, message: str | None = None) -> NoReturn:
    with suppress(OSError):
        if message is not None:
            print(message, file=sys.stderr)
    _drop_unwritable()
    raise SystemExit(code) from None


def _drop_unwritable() -> None:
    """Discard output that cannot be written.

    Otherwise Python tries again during shutdown, prints an error and changes the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _usage_problem(error: click.ClickException) -> str:
    """Return the message for a wrong command line; without arguments, the help page."""
    message = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return message
    context = getattr(error, "ctx", None)
    command = "karat" if context is None else context.command_path
    problem = readable(message[:1].lower() + message[1:].removesuffix("."))
    return f"error: {problem}\n  hint: see {command} --help"


def _unexpected(error: Exception) -> str:
    # Errors while writing files are reported elsewhere; here, standard output cannot be written.
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        return f"standard output cannot be written ({error.strerror or error})"
    if isinstance(error, MemoryError):
        return f"not enough memory for this input; {_memory_hint()}"
    name, text = type(error).__name__, printable(brief(str(error), 300))
    return f"unexpected {name}: {text} (run karat --debug … to see the traceback)"


def _memory_hint() -> str:
    command = app.commands.get("".join(sys.argv[1:2]))
    if command is not None and any(parameter.name == "memory" for parameter in command.params):
        return "try a lower --memory"
    return "use a smaller input or a machine with more memory"


def main() -> None:
    """Run the command line."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    warnings.simplefilter("always", KaratWarning)
    # Exit by an exception when a signal ends the process, so that no temporary file is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # `nohup` lets a process ignore that its terminal was closed.
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) == signal.SIG_DFL:
        signal.signal(hangup, lambda *_: sys.exit(129))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals that cannot show all characters
    with _exit_codes():
        code = 0
        if VARIABLE in os.environ:
            _exit(complete(app))
        if not sys.argv[1:]:
            from karat.config import Config

            print(start_page(app, Config.find().path))
            _exit(0)
        try:
            with app.make_context("karat", sys.argv[1:]) as context, step_bars():
                app.invoke(context)
        except click.exceptions.Exit as stop:
            code = stop.exit_code
        except SystemExit:
            _drop_unwritable()
            raise
        if not code:
            sys.stdout.flush()
        _exit(code)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    if issubclass(category, KaratWarning):
        print(f"warning: {message}", file=sys.stderr)
