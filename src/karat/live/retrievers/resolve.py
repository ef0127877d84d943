"""Turn the `retriever` argument into a `Retriever`.

It may be a URL, a command (`cmd:…`), a built-in retriever (`bm25:CORPUS`), a search
engine (`qdrant:…`), the name of a Python object (`package.module:name`, `path/to/file.py:name`, or
`python:bm25:name` if the module has one of the names above), or an object.
`import_object` is also used for tokenizers, chunkers, embedders, rerankers and measures.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from karat.checks import did_you_mean
from karat.errors import InputError, warn
from karat.live.protocol import Retriever, Search
from karat.live.redaction import safe_text
from karat.live.retrievers.answers import Fields

if TYPE_CHECKING:
    from karat.live.retrievers.embedders import EmbeddingFunction

_URL_SCHEMES = ("http://", "https://")
_COMMAND = "cmd:"
_PYTHON = "python:"  # before a module with the name of a built-in retriever or a search engine
# A scheme with or without its colon, a user before an @, or parameters after a question mark.
_LIKE_URL = re.compile(r"^\s*(https?\b|[a-z][a-z0-9+.-]*:?//)|[@?]", re.IGNORECASE)
_OBJECT_FORMS = "write package.module:name or file.py:name"
_FORMS = {
    "retriever": "write package.module:name, file.py:name, http://…, cmd:./program, bm25:CORPUS, "
    "or qdrant:http://…",
    "embedder": "write wordllama, package.module:name, file.py:name, or the URL of a server: "
    "https://host/v1",
    "reranker": "write package.module:name, file.py:name, or the URL of a server: "
    "https://host/v1/rerank",
}
"""How to name what may also be a server; everything else is a Python object."""
_MAX_NAMES = 12  # names that a message lists


def resolve_retriever(
    target: str | object,
    search: Search,
    *,
    fields: Fields,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    embedder: str | EmbeddingFunction | None = None,
    embedding_model: str | None = None,
    embedding_key_env: str | None = None,
    options: Iterable[str] | Mapping[str, Any] = (),
) -> Retriever:
    """Create a retriever.

    `method` and `body` are only allowed for URLs, `headers` for URLs and search engines,
    `options` for the name of a search engine, and `embedder`, `embedding_model` and
    `embedding_key_env` for the name of a search engine or a built-in retriever.
    """
    from karat.live.retrievers.built_in import BuiltIn, create_built_in, is_built_in
    from karat.live.retrievers.search_engines.engine import (
        SearchEngine,
        engine_from_spec,
        engine_of,
    )

    embedding = _set_options(
        embedder=embedder, embedding_model=embedding_model, embedding_key_env=embedding_key_env
    )
    if isinstance(target, str) and engine_of(target) is not None:
        target = engine_from_spec(target, options, embedding)
    else:
        _refuse_options(target, {} if is_built_in(target) else embedding, options)
    if isinstance(target, SearchEngine):
        _refuse_http_options({"body": body, "method": method != "POST"})
        return target.bind(search, fields, headers or {})
    if isinstance(target, str) and target.lower().startswith(_URL_SCHEMES):
        from karat.live.retrievers.http import HttpRetriever

        return HttpRetriever(target, search, fields, headers or {}, body or {}, method)
    _refuse_http_options({"header": headers, "body": body, "method": method != "POST"})
    if isinstance(target, str) and target.startswith(_COMMAND):
        from karat.live.retrievers.command import CommandRetriever

        return CommandRetriever(target.removeprefix(_COMMAND), search, fields)
    if isinstance(target, Retriever):
        return target
    from karat.live.retrievers.python import PythonRetriever

    if is_built_in(target):
        target = create_built_in(str(target), embedding)
    if isinstance(target, BuiltIn):
        return PythonRetriever(target, search, fields, name=target.name, settings=target.settings)
    if isinstance(target, str):
        spec = _without_prefix(target)
        imported = import_object(spec)
        source = source_hash(module_of(spec), imported)
        return PythonRetriever(imported, search, fields, name=target, source=source)
    return PythonRetriever(target, search, fields)


def _without_prefix(target: str) -> str:
    """Return `bm25:search` for `python:bm25:search`; `python:search` is in the module `python`."""
    spec = target.removeprefix(_PYTHON)
    return spec if ":" in spec else target


def _refuse_http_options(options: Mapping[str, Any]) -> None:
    for name, is_set in options.items():
        if is_set:
            raise InputError(
                "only HTTP retrievers have a method, headers and a body",
                field=name,
                hint="remove this option, or use a URL as the retriever: http://…",
            )


def _set_options(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _refuse_options(target: Any, embedding: Mapping[str, Any], options: Any) -> None:
    """Raise an error for options that only the names of some retrievers have."""
    if embedding:
        problem = "only the name of a dense retriever or a search engine takes an embedder"
        example = "dense:CORPUS"
    elif options:
        problem = "only the name of a search engine takes options"
        example = "qdrant:http://…"
    else:
        return
    field = next(iter(embedding), "retriever option")
    hint = f"remove this option, or use another retriever: {example}"
    if not isinstance(target, str):
        hint = "pass it to the class of the retriever: Qdrant(…, embedder=…)"
    raise InputError(problem, field=field, hint=hint)


def module_of(spec: str) -> ModuleType:
    """Return the module of an object that `import_object` has imported."""
    return sys.modules[_module_name(spec.partition(":")[0])]


def source_hash(module: ModuleType, retriever: Any) -> str | None:
    """Return a hash of the source files of a module and of a retriever, or None without files."""
    definition = sys.modules.get(getattr(retriever, "__module__", None) or module.__name__)
    files = {
        file
        for source in (module, definition)
        if (file := getattr(source, "__file__", None)) and os.path.isfile(file)
    }
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest() if files else None


def import_object(spec: str, role: str = "retriever") -> Any:
    """Import `package.module:name` or `file.py:name`; errors name the `role`.

    Modules are also searched for in the current folder.
    """
    try:
        return _import_object(spec, role)
    except InputError as error:
        error.field = role
        raise


def _import_object(spec: str, role: str) -> Any:
    module, colon, path = spec.partition(":")
    is_file = module.endswith(".py")
    names = [*([] if is_file else module.split(".")), *path.split(".")]
    if not colon or not all(map(str.isidentifier, names)):
        raise _not_a_name(spec, role)
    target: Any = _import_file(module) if is_file else _import_module(module)
    for name in path.split("."):
        if not hasattr(target, name):
            raise _unknown_name(name, target, module)
        target = getattr(target, name)
    if local_file := _shadowed_file(module):
        warn(
            f"{module} was imported from {_origin(module)}, not from {local_file} in the "
            "current folder; rename the file, or set PYTHONPATH=. to use it",
            stacklevel=2,
        )
    return target


def _not_a_name(spec: str, role: str) -> InputError:
    """Return the error for a string that is not `package.module:name`.

    It may be a mistyped URL with a password, so only its safe part is shown.
    """
    safe_spec = safe_text(spec)
    if _LIKE_URL.search(spec):
        problem = f"{safe_spec!r} looks like a mistyped URL"
        default_hint = "write it as http://host:port/path or https://host/path, without spaces"
    else:
        problem = f"{safe_spec!r} is not the name of a Python object"
        default_hint = _FORMS.get(role, _OBJECT_FORMS)
    return InputError(problem, hint=_suggest_form(spec, safe_spec, role) or default_hint)


def _suggest_form(spec: str, safe_spec: str, role: str) -> str | None:
    """Return how to write a name like this one; `safe_spec` is `spec` without secrets."""
    file = spec.partition(":")[0]
    if file.endswith(".py") and not _LIKE_URL.search(spec):
        return f"write the name of an object in the file after a colon: {safe_text(file)}:NAME"
    if role in _FORMS and re.match(r"[\w.-]+:\d+(/|$)", spec):
        return f"start a URL with http:// or https://: http://{safe_spec}"
    program = spec.split(maxsplit=1)[0] if spec.strip() else spec
    if os.path.exists(program):
        return f"write cmd: before a program: cmd:{safe_spec}" if role == "retriever" else None
    module, dot, name = spec.rpartition(".")
    if dot and spec.replace(".", "").isidentifier():
        return f"write a colon before the name: {module}:{name}"
    return None


def _import_file(file: str) -> ModuleType:
    """Import a file, once; it can import its neighbours, as if it was run with `python file`."""
    path, name = Path(file), _module_name(file)
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise InputError(
            f"file {safe_text(file)!r} was not found", hint=f"the current folder is {Path.cwd()}"
        )
    _add_to_path(str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _import_failed(file, error) from error
    return module


def _module_name(module: str) -> str:
    """Return the key in `sys.modules`: the path of a file, which no installed module can have."""
    return str(Path(module).resolve()) if module.endswith(".py") else module


def _add_to_path(folder: str) -> None:
    """Let modules in a folder be imported.

    The folder is added at the end, so that no file in it shadows an installed package that karat or
    the retriever imports. It stays there, since a retriever may import its own modules later.
    """
    if folder not in sys.path:
        sys.path.append(folder)


def _import_module(name: str) -> ModuleType:
    folder = str(Path.cwd())
    _add_to_path(folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _import_failed(name, error) from error
        raise InputError(
            f"module {error.name!r} was not found",
            hint=f"it must be in {folder} or installed",
        ) from error
    except (Exception, SystemExit) as error:
        raise _import_failed(name, error) from error


def _import_failed(module: str, error: BaseException) -> InputError:
    """Return the error for a failed import, with the line in the user's code if there is one."""
    if isinstance(error, SyntaxError):
        path: str | None = error.filename
        line = error.lineno
    else:
        _, *frames = (  # the first frame is the import in this file
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if "importlib" not in frame.filename
        )
        local_frames = [f for f in frames if Path(f.filename).is_relative_to(Path.cwd())]
        last = (local_frames or frames)[-1:]
        path = next((frame.filename for frame in last), None)
        line = next((frame.lineno for frame in last), None)
    reason = f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, SystemExit):
        hint = "put code that exits under if __name__ == '__main__'"
    else:
        command = f"python {module}" if module.endswith(".py") else f"python -c 'import {module}'"
        hint = f"make sure that this works: {command}"
    return InputError(f"importing {module} failed: {reason}", path=path, line=line, hint=hint)


def _unknown_name(name: str, parent: Any, module: str) -> InputError:
    names = [attribute for attribute in dir(parent) if not attribute.startswith("_")]
    if local_file := _shadowed_file(module):
        return InputError(
            f"{name!r} was not found in {module}, which was imported from {_origin(module)}, not "
            f"from {local_file} in the current folder",
            hint=f"rename {local_file}, or set PYTHONPATH=. to use it",
        )
    kind = "file" if module.endswith(".py") else "module"
    where = f"{kind} {module}" if isinstance(parent, ModuleType) else type(parent).__name__
    listed = ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")
    return InputError(
        f"{name!r} was not found in {where}",
        hint=did_you_mean(name, names) or f"available names: {listed or 'none'}",
    )


def _shadowed_file(module: str) -> str | None:
    """Return the file in the current folder that an installed module of the same name shadows."""
    if module.endswith(".py"):
        return None
    top = module.partition(".")[0]
    origin = _origin(top)
    for local_file in (Path(top, "__init__.py"), Path(f"{top}.py")):
        if local_file.is_file() and not (os.path.isfile(origin) and local_file.samefile(origin)):
            return str(local_file)
    return None


def _origin(module: str) -> str:
    return getattr(sys.modules.get(module), "__file__", None) or "Python itself"
