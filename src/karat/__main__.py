"""The entry point of `karat` and `python -m karat`.

Nothing is imported before an interrupt is handled: imports take long enough to be interrupted.
"""

import gc
import os
import signal
import sys
from contextlib import suppress

_GARBAGE_THRESHOLD = 100_000
"""New objects before garbage is collected. Imports alone make more than 50,000, all kept."""


def main() -> None:
    """Run the command line in a process of its own."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    _open_standard_streams()
    ends_on_interrupt = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ends_on_interrupt:
        signal.signal(signal.SIGINT, _exit_at_once)
    from karat.cli.main import main as run

    if ends_on_interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    finally:
        if ends_on_interrupt:  # while Python shuts down, nothing would catch the interrupt
            signal.signal(signal.SIGINT, _exit_at_once)
        gc.freeze()  # otherwise Python searches every module for garbage before it ends


def _open_standard_streams() -> None:
    """Open streams that the caller has closed (`>&-`), so that no other file takes their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def _exit_at_once(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


def _search_current_folder_last() -> None:
    """Move the current folder, which `python -m` puts first, to the end of the module path.

    Otherwise a file called aiohttp.py, say, would replace the installed package. `karat` adds the
    current folder last for --retriever.
    """
    with suppress(FileNotFoundError):  # the current folder may have been removed
        if sys.path and sys.path[0] == os.getcwd():
            sys.path.append(sys.path.pop(0))


if __name__ == "__main__":
    _search_current_folder_last()
    main()
