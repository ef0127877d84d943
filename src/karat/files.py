"""Files: content with compression removed, decoding, paths; and files that are written atomically.

Errors name the file. A file that is written appears whole or not at all.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import re
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, cast

from karat.checks import did_you_mean
from karat.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSIONS = {".gz": b"\x1f\x8b\x08", ".zst": b"\x28\xb5\x2f\xfd"}
HEAD_BYTES = 1 << 16
BLOCK_BYTES = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

EXPANDED_LIMIT = "KARAT_MAX_EXPANDED"
"""The environment variable that replaces the limit of `Source.expanded_limit`."""
DEEPEST = 32
"""How deep lists and objects may be nested in a field: the work for it grows with the cube."""
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]')
_LONG_NUMBER = re.compile("[0-9]{1000}")
_DECOMPRESSION_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError)
_SYSTEM_ERROR = re.compile(r"([^:\s][^:]*) \(os error \d+\)")


def is_pipe(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path leads to a pipe or the like, which can be read only once."""
    found = Path(path)
    return (
        path_is(Path.exists, found)
        and not path_is(Path.is_file, found)
        and not path_is(Path.is_dir, found)
    )


class Source:
    """One input file: its name, and its content with compression taken off."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if path_is(Path.is_dir, self.path):
            raise InputError(
                "this is a directory where a file is meant", path=path, hint=_folder_hint(self.path)
            )
        if not path_is(Path.exists, self.path):
            raise InputError("there is no such file", path=path, hint=_similar_path_hint(self.path))

    @property
    def compression(self) -> str | None:
        """How the file is compressed, if it is: as its ending says, or its first bytes."""
        ending = self.path.suffix.lower()
        if ending in COMPRESSIONS:
            return ending
        first = self._first_bytes
        return next((name for name, magic in COMPRESSIONS.items() if first.startswith(magic)), None)

    @cached_property
    def _first_bytes(self) -> bytes:
        if self._piped is not None:
            return self._piped[:4]
        with suppress(OSError), self.path.open("rb") as file:
            return file.read(4)
        return b""

    @property
    def on_disk(self) -> bool:
        """Whether the content lies on the disk as it is, for others to read."""
        return self.compression is None and self._piped is None

    @property
    def ending(self) -> str:
        """The ending that says what the file holds, without the compression's."""
        return without_compression(self.path).suffix.lower()

    def read(self) -> bytes:
        """Return the whole content."""
        return self._read(-1)

    @cached_property
    def head(self) -> bytes:
        """The first bytes of the content, enough to tell what it is."""
        return self._read(HEAD_BYTES)

    def whole_lines(self) -> Iterator[bytes]:
        """Yield the content in blocks of whole lines, without a byte order mark."""
        with self._open() as file:
            mark = BYTE_ORDER_MARK
            while block := file.read(BLOCK_BYTES):
                if not block.endswith(b"\n"):
                    block += file.readline()
                yield block.removeprefix(mark)
                mark = b""

    def error(
        self,
        problem: str,
        *,
        line: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> InputError:
        """Make the error that says this file is at fault."""
        return InputError(problem, path=self.path, line=line, field=field, hint=hint)

    @property
    def expanded_limit(self) -> int:
        """How many bytes the content may take when compression and dictionaries are undone."""
        size = self.path.stat().st_size if self._piped is None else len(self._piped)
        limit = os.environ.get(EXPANDED_LIMIT)
        return max(1 << 30, 200 * size) if limit is None else _parse_byte_count(limit)

    def too_expanded(self, limit: int) -> InputError:
        """Make the error for content that is far larger than the file."""
        return self.error(
            f"its content takes more than {limit / (1 << 20):,.0f} MiB in memory",
            hint="if you trust the file, raise the limit with the environment variable "
            f"{EXPANDED_LIMIT}=20G",
        )

    def _read(self, size: int) -> bytes:
        with self._open() as file:
            return file.read(size)

    @cached_property
    def _piped(self) -> bytes | None:
        """What came through a pipe, kept since it can be read only once."""
        return None if self.path.is_file() else self.path.read_bytes()

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        try:
            with ExitStack() as stack:
                piped = self._piped
                raw = self.path.open("rb") if piped is None else io.BytesIO(piped)
                file = stack.enter_context(
                    _decompressed(stack.enter_context(raw), self.compression)
                )
                yield (
                    file
                    if self.compression is None
                    else cast("IO[bytes]", _SizeLimitedFile(file, self))
                )
        except _DECOMPRESSION_ERRORS as error:
            raise self.error(
                "the compressed data is damaged or cut off",
                hint=f"copy or compress the file again ({error})",
            ) from error
        except PermissionError as error:
            raise self.error("it may not be read", hint="check its permissions") from error


class _SizeLimitedFile:
    """A compressed file that is read until its content is too large."""

    def __init__(self, file: IO[bytes], source: Source) -> None:
        self._file = file
        self._source = source
        self._limit = self._left = source.expanded_limit

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or all."""
        if size >= 0:
            return self._counted(self._file.read(size))
        blocks = iter(lambda: self._counted(self._file.read(BLOCK_BYTES)), b"")
        return b"".join(blocks)

    def readline(self) -> bytes:
        """Read up to the end of the line."""
        return self._counted(self._file.readline(self._left + 1))

    def _counted(self, block: bytes) -> bytes:
        self._left -= len(block)
        if self._left < 0:
            raise self._source.too_expanded(self._limit)
        return block


def _parse_byte_count(text: str) -> int:
    """Return a number of bytes, such as 500M or 20G."""
    found = re.fullmatch(r"(\d{1,12})([KMGT]?)", text.strip().upper())
    if found is None:
        raise InputError(
            f"{text!r} is not a number of bytes", field=EXPANDED_LIMIT, hint="such as 500M or 20G"
        )
    return int(found[1]) << (10 * " KMGT".index(found[2] or " "))


def without_compression(path: Path) -> Path:
    """Return a path without the ending that says how the file is compressed."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def _decompressed(raw: IO[bytes], compression: str | None) -> AbstractContextManager[IO[bytes]]:
    """Take the compression off a file that is read."""
    if compression == ".gz":
        return cast("AbstractContextManager[IO[bytes]]", gzip.GzipFile(fileobj=raw, mode="rb"))
    if compression == ".zst":
        return cast("AbstractContextManager[IO[bytes]]", zstd.ZstdFile(raw, "rb"))
    return nullcontext(raw)


def expand(path: str | os.PathLike[str]) -> list[str]:
    """Return the path, or the files that it matches if it is a glob pattern, sorted by name."""
    text = os.fspath(path)
    if glob.has_magic(text) and not path_is(Path.exists, Path(text)):
        names = sorted(glob.glob(text, recursive=True))
        if not names:
            raise InputError("no file matches this pattern", path=text, hint="check the folder")
        return names
    return [text]


def decode(content: bytes, source: Source) -> str:
    """Return UTF-8 content as text, or say which line is not UTF-8."""
    refuse_unreadable(content, source)
    try:
        return content.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(source, content.count(b"\n", 0, error.start) + 1, error) from error


def not_utf8(source: Source, line: int, error: UnicodeDecodeError) -> InputError:
    """Make the error for bytes that are not UTF-8."""
    return source.error(
        f"byte 0x{error.object[error.start]:02x} is not valid UTF-8",
        line=line,
        field="encoding",
        hint="save the file as UTF-8, for example: iconv -f latin1 -t utf-8 FILE",
    )


def too_large(
    source: Source, text: str, error: ValueError | RecursionError, line: int | None = None
) -> InputError:
    """Make the error for values that Python cannot parse: long integers and deep nesting."""
    if isinstance(error, RecursionError):
        return source.error(
            "values are nested too deep",
            line=line or _line_of_nesting(text),
            hint=f"nest at most {DEEPEST} lists or objects",
        )
    number = _LONG_NUMBER.search(text)
    return source.error(
        "a number has too many digits",
        line=line or (text.count("\n", 0, number.start()) + 1 if number else None),
        hint="shorten it, or write it as text in quotes",
    )


def _line_of_nesting(text: str) -> int | None:
    """Return the line on which brackets outside of strings are first nested too deep."""
    depth = 0
    for token in _BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEEPEST:
            return text.count("\n", 0, token.start()) + 1
    return None


def refuse_unreadable(content: bytes, source: Source) -> None:
    """Refuse UTF-16 and empty content, which no reader of text here can use."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise source.error(
            "the file is UTF-16",
            line=1,
            field="encoding",
            hint="save the file as UTF-8, for example: iconv -f utf-16 -t utf-8 FILE",
        )
    if content[:400].count(0) * 4 > len(content[:400]):
        raise source.error(
            "the file is no text: it is full of zero bytes",
            line=1,
            field="encoding",
            hint="if it is UTF-16: iconv -f utf-16 -t utf-8 FILE",
        )
    if not content.removeprefix(BYTE_ORDER_MARK).strip(b" \t\r\n\v\f"):
        raise source.error("the file is empty", hint="check the command that wrote it")


def _folder_hint(folder: Path) -> str:
    names = sorted(p.name for p in folder.iterdir() if p.is_file())[:3]
    return f"name one of its files, such as {', '.join(names)}" if names else "it holds no file"


def _similar_path_hint(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder} either"
    names = [neighbour.name for neighbour in folder.iterdir()]
    similar = did_you_mean(path.name, names, show=lambda name: str(folder / name))
    return similar or "check the path"


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file beside its place and rename it when it is whole; a failure leaves nothing.

    A link keeps pointing to its file, a file keeps its permissions, and what is not a plain
    file, such as a pipe, is written into directly.
    """
    check_writable(path)
    target = Path(path).resolve()
    plain = path_is(Path.is_file, target) or not path_is(Path.exists, target)
    beside = target.with_name(f".{secrets.token_hex(6)}{target.suffix}") if plain else target
    try:
        with _compressing(beside) as file:
            yield file
        if plain:
            if path_is(Path.exists, target):
                beside.chmod(stat.S_IMODE(target.stat().st_mode))
            beside.replace(target)
    except Exception as error:
        reason = system_reason(error)
        if reason is None:
            raise
        raise InputError(f"it cannot be written ({reason})", path=path) from error
    finally:
        if plain:
            with suppress(OSError):
                beside.unlink()


def system_reason(error: Exception) -> str | None:
    """Return the operating system's reason for a failure, None if the cause is another.

    Polars has it at the end of a text only, whatever the type of its error.

    >>> system_reason(OSError("No space left on device (os error 28)"))
    'No space left on device'
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    found = _SYSTEM_ERROR.search(str(error))
    if found:
        return found[1]
    return str(error) if isinstance(error, OSError) else None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that nothing can be written to, before anything is done for it."""
    if path_is(Path.is_dir, Path(path)):
        raise InputError(
            "this is a directory where a file is meant", path=path, hint="name a file in it"
        )
    check_parent(path)


def check_parent(path: str | os.PathLike[str]) -> None:
    """Refuse a path in a folder that does not exist or may not be written into."""
    parent = Path(path).parent
    if not path_is(Path.is_dir, parent):
        raise InputError(
            "the folder to write into does not exist", path=path, hint=f"create {parent} first"
        )
    if not os.access(parent, os.W_OK):
        raise InputError(
            "the folder may not be written into", path=path, hint="check its permissions"
        )


@contextmanager
def _compressing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to be written, with the compression that its ending names."""
    with path.open("wb") as raw:
        if path.suffix.lower() == ".gz":
            # No name and no time in the header: same input, same bytes.
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
                yield cast("IO[bytes]", file)
        elif path.suffix.lower() == ".zst":
            with zstd.ZstdFile(raw, "wb") as file:
                yield cast("IO[bytes]", file)
        else:
            yield cast("IO[bytes]", raw)


def path_is(question: Callable[[Path], bool], path: Path) -> bool:
    """Ask something of a path; a path that the system cannot look up is nothing."""
    try:
        return question(path)
    except (OSError, ValueError):
        return False


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
