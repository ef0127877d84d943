"""`python -m karat` is `karat`."""

from karat.cli.main import main

main()
