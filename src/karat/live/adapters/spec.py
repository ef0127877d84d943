"""Which retriever is meant: a name in a Python module, an address, a command, or an object."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
import traceback
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from karat.errors import InputError
from karat.live.adapters.fields import Fields
from karat.live.exchange import Retriever, Search

_ADDRESS = ("http://", "https://")
_COMMAND = "cmd:"
_SPELLINGS = "write package.module:name, http://…, or cmd:./program"


def retriever_of(
    given: str | object,
    search: Search,
    *,
    fields: Fields,
    headers: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
) -> Retriever:
    """Make ready what was named or given; `headers` and `body` are for addresses alone."""
    if isinstance(given, str) and given.lower().startswith(_ADDRESS):
        from karat.live.adapters.http import HttpRetriever

        return HttpRetriever(given, search, fields, headers or {}, body or {})
    if headers or body:
        raise InputError(
            "only a retriever behind HTTP takes headers and a body",
            field="header" if headers else "body",
            hint="leave them out, or give an address: http://…",
        )
    if isinstance(given, str) and given.startswith(_COMMAND):
        from karat.live.adapters.command import CommandRetriever

        return CommandRetriever(given.removeprefix(_COMMAND), search, fields)
    if isinstance(given, Retriever):
        return given
    from karat.live.adapters.python import PythonRetriever

    if isinstance(given, str):
        made = named(given)
        source = source_hash(sys.modules[given.partition(":")[0]], made)
        return PythonRetriever(made, search, fields, name=given, source=source)
    return PythonRetriever(given, search, fields)


def source_hash(module: ModuleType, retriever: Any) -> str | None:
    """Return a hash of the files that define a module and a retriever in it, if they have any."""
    defined_in = sys.modules.get(getattr(retriever, "__module__", None) or module.__name__)
    files = {
        file
        for each in (module, defined_in)
        if (file := getattr(each, "__file__", None)) and os.path.isfile(file)
    }
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest() if files else None


def named(spec: str, role: str = "retriever") -> Any:
    """Import what `package.module:name` names; the current folder is looked in too.

    `role` says what it is meant for, should there be no such thing.
    """
    try:
        return _named(spec)
    except InputError as error:
        error.field = role
        raise


def _named(spec: str) -> Any:
    module, colon, path = spec.partition(":")
    names = [*module.split("."), *path.split(".")]
    if not colon or not all(map(str.isidentifier, names)) or module.endswith(".py"):
        raise InputError(f"{spec!r} names nothing in Python", hint=_spelling(spec) or _SPELLINGS)
    found: Any = _imported(module)
    for name in path.split("."):
        if not hasattr(found, name):
            raise _nothing_called(name, found, module)
        found = getattr(found, name)
    return found


def _spelling(spec: str) -> str | None:
    """Tell how something near a spec is written."""
    file, _, name = spec.partition(":")
    if file.endswith(".py"):
        module = ".".join(Path(file.removesuffix(".py")).parts)
        return f"name the module and not its file: {module}:{name or 'NAME'}"
    if re.match(r"[\w.-]+:\d+(/|$)", spec):
        return f"an address begins so: http://{spec}"
    if os.path.exists(spec.split(maxsplit=1)[0] if spec.strip() else spec):
        return f"a program is named so: cmd:{spec}"
    module, dot, name = spec.rpartition(".")
    if dot and spec.replace(".", "").isidentifier():
        return f"a colon stands before the name: {module}:{name}"
    return None


def _imported(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:  # as for `python -m`; it stays, for what is imported later
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _failed(name, error) from error
        raise InputError(
            f"there is no module {error.name!r}",
            hint=f"it is looked for in {folder} and among what is installed",
        ) from error
    except (Exception, SystemExit) as error:
        raise _failed(name, error) from error


def _failed(module: str, error: BaseException) -> InputError:
    """Say where in the user's own code an import failed, and why."""
    if isinstance(error, SyntaxError):
        path: str | None = error.filename
        line = error.lineno
    else:
        _, *frames = (  # the first is the import here
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if "importlib" not in frame.filename
        )
        own = [frame for frame in frames if Path(frame.filename).is_relative_to(Path.cwd())]
        last = (own or frames)[-1:]
        path = next((frame.filename for frame in last), None)
        line = next((frame.lineno for frame in last), None)
    reason = f"{type(error).__name__}: {error}".removesuffix(": ")
    return InputError(
        f"importing {module} failed: {reason}",
        path=path,
        line=line,
        hint="let what runs at once stand under if __name__ == '__main__'"
        if isinstance(error, SystemExit)
        else f"see that this works: python -c 'import {module}'",
    )


def _nothing_called(name: str, found: Any, module: str) -> InputError:
    names = [one for one in dir(found) if not one.startswith("_")]
    near = get_close_matches(name, names, n=1)
    where = f"module {module}" if isinstance(found, ModuleType) else type(found).__name__
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return InputError(
        f"there is no {name!r} in {where}",
        hint=f"did you mean {near[0]}?" if near else f"it has {shown or 'nothing'}",
    )
