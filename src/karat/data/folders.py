"""Folders that are written whole or not at all, for formats of several files."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from karat.errors import InputError
from karat.files import check_parent, system_reason


@contextmanager
def writing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Fill a folder beside its place and rename it when it is whole; a failure leaves nothing."""
    check_writable_folder(path)
    target = Path(path)
    beside = target.with_name(f".{secrets.token_hex(4)}-{target.name}")
    try:
        beside.mkdir()
        yield beside
        if target.is_dir():  # an empty one, which not every system lets a folder take the place of
            target.rmdir()
        beside.replace(target)
    except Exception as error:
        reason = system_reason(error)
        if reason is None:
            raise
        raise InputError(f"it cannot be written ({reason})", path=path) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def check_writable_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a path where no new folder can be put; nothing that lies there is overwritten."""
    target = Path(path)
    if target.name in ("", ".."):
        raise InputError("this names no new folder", path=path, hint="give the folder a name")
    if target.exists() and not target.is_dir():
        raise InputError("this is a file where a folder is meant", path=path)
    if target.is_dir() and any(target.iterdir()):
        raise InputError(
            "the folder is not empty", path=path, hint="name a new folder, or empty this one first"
        )
    check_parent(path)
