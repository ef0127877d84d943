"""The entry point of `karat` and `python -m karat`.

The interrupt handler is set before karat is imported, because the imports take long enough to be
interrupted.
"""

import gc
import os
import signal
import sys
from contextlib import suppress

_GARBAGE_THRESHOLD = 300_000
"""The number of new objects that triggers a garbage collection.

Imports and a small command create about 100,000 objects, and almost none of them is garbage.
"""


def main() -> None:
    """Run the command line as the main program of the process."""
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
        if ends_on_interrupt:  # nothing catches KeyboardInterrupt while Python shuts down
            signal.signal(signal.SIGINT, _exit_at_once)
        gc.freeze()  # skips a garbage collection over all modules at exit


def _open_standard_streams() -> None:
    """Open streams that the caller closed (`>&-`), so that no other file gets their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def _exit_at_once(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


def _search_current_folder_last() -> None:
    """Move the current folder, which `python -m` puts first, to the end of the module path.

    Otherwise a local file such as aiohttp.py would replace an installed package. The command
    `karat` also adds the current folder at the end, for --retriever.
    """
    with suppress(FileNotFoundError):  # the current folder may have been removed
        if sys.path and sys.path[0] == os.getcwd():
            sys.path.append(sys.path.pop(0))


if __name__ == "__main__":
    _search_current_folder_last()
    main()
