"""`python -m karat` is `karat`."""

import os
import sys
from contextlib import suppress

# `python -m` puts the current folder first, where a file called aiohttp.py, say, would take the
# place of the installed package. `karat` does not, and adds it last for --retriever.
with suppress(FileNotFoundError):  # the current folder may have been removed
    if sys.path and sys.path[0] == os.getcwd():
        sys.path.append(sys.path.pop(0))

from karat.cli.main import main

main()
