"""Programs that are written to a folder for shell commands: karat of this process, and stubs."""

import sys


def write_program(path, script):
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def write_karat(folder):
    """Write a program `karat` that runs the package under test."""
    write_program(folder / "karat", f'exec "{sys.executable}" -m karat "$@"')
