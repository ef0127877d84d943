"""Which retriever is meant: a name in a Python module, an address, a command, or an object."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from karat.checks import did_you_mean
from karat.errors import InputError, KaratWarning
from karat.live.protocol import Retriever, Search
from karat.live.redaction import safe_text
from karat.live.retrievers.answers import Fields

_ADDRESS = ("http://", "https://")
_COMMAND = "cmd:"
# A scheme with or without its colon, a user before an @, or parameters after a question mark.
_LIKE_ADDRESS = re.compile(r"^\s*(https?\b|[a-z][a-z0-9+.-]*:?//)|[@?]", re.IGNORECASE)
_SPELLINGS = "write package.module:name, http://…, or cmd:./program"


def retriever_of(
    given: str | object,
    search: Search,
    *,
    fields: Fields,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
) -> Retriever:
    """Open a retriever; `method`, `headers` and `body` are for addresses only."""
    if isinstance(given, str) and given.lower().startswith(_ADDRESS):
        from karat.live.retrievers.http import HttpRetriever

        return HttpRetriever(given, search, fields, headers or {}, body or {}, method)
    http_only = {"header": headers, "body": body, "method": method != "POST"}
    for name, is_given in http_only.items():
        if is_given:
            raise InputError(
                "only retrievers behind HTTP have a method, headers and a body",
                field=name,
                hint="remove this option, or give an address: http://…",
            )
    if isinstance(given, str) and given.startswith(_COMMAND):
        from karat.live.retrievers.command import CommandRetriever

        return CommandRetriever(given.removeprefix(_COMMAND), search, fields)
    if isinstance(given, Retriever):
        return given
    from karat.live.retrievers.python import PythonRetriever

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
        raise _not_a_name(spec)
    found: Any = _imported(module)
    for name in path.split("."):
        if not hasattr(found, name):
            raise _nothing_called(name, found, module)
        found = getattr(found, name)
    if own_file := _hidden_file(module):
        warnings.warn(
            KaratWarning(
                f"{module} was imported from {_origin(module)}, not from {own_file} in the "
                "current folder; rename the file, or set PYTHONPATH=. to use it"
            ),
            stacklevel=2,
        )
    return found


def _not_a_name(spec: str) -> InputError:
    """Refuse what is not `package.module:name`; it may be an address with a password in it."""
    shown = safe_text(spec)
    if _LIKE_ADDRESS.search(spec):
        problem = f"{shown!r} looks like a mistyped address"
        usual = "write it as http://host:port/path or https://host/path, without spaces"
    else:
        problem = f"{shown!r} is not the name of a Python object"
        usual = _SPELLINGS
    return InputError(problem, hint=_spelling(spec, shown) or usual)


def _spelling(spec: str, shown: str) -> str | None:
    """Return how a retriever like this one is written; `shown` is the part without secrets."""
    file, _, name = spec.partition(":")
    if file.endswith(".py"):
        module = ".".join(Path(file.removesuffix(".py")).parts)
        return f"name the module and not its file: {module}:{name or 'NAME'}"
    if re.match(r"[\w.-]+:\d+(/|$)", spec):
        return f"write an address with http:// or https://: http://{shown}"
    if os.path.exists(spec.split(maxsplit=1)[0] if spec.strip() else spec):
        return f"write a program with cmd: before it: cmd:{shown}"
    module, dot, name = spec.rpartition(".")
    if dot and spec.replace(".", "").isidentifier():
        return f"write a colon before the name: {module}:{name}"
    return None


def _imported(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        # Last, so that no file there takes the place of an installed package that karat or the
        # retriever imports; for good, since a retriever may import its own modules later.
        sys.path.append(folder)
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
    if own_file := _hidden_file(module):
        return InputError(
            f"there is no {name!r} in {module}, which was imported from {_origin(module)}, not "
            f"from {own_file} in the current folder",
            hint=f"rename {own_file}, or set PYTHONPATH=. to use it",
        )
    where = f"module {module}" if isinstance(found, ModuleType) else type(found).__name__
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return InputError(
        f"there is no {name!r} in {where}",
        hint=did_you_mean(name, names) or f"it has {shown or 'nothing'}",
    )


def _hidden_file(name: str) -> str | None:
    """Return the file in the current folder that another module of its name hides."""
    top = name.partition(".")[0]
    origin = _origin(top)
    for own in (Path(top, "__init__.py"), Path(f"{top}.py")):
        if own.is_file() and not (os.path.isfile(origin) and own.samefile(origin)):
            return str(own)
    return None


def _origin(name: str) -> str:
    return getattr(sys.modules.get(name), "__file__", None) or "Python itself"
