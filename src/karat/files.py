"""Reading files, with decompression and decoding, and writing files and folders atomically.

All errors name the file. A written file is either complete or does not exist.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import io
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import IO, cast

from karat.checks import did_you_mean
from karat.errors import InputError, counted

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSIONS = {".gz": b"\x1f\x8b\x08", ".zst": b"\x28\xb5\x2f\xfd"}
HEAD_BYTES = 1 << 16
BLOCK_BYTES = 1 << 24
_SMALLEST_BLOCK = 1 << 20
_BLOCK_SHARE = 1 / 64
"""The largest share of the memory limit for a block of text."""
_MOST_AHEAD = 6
_AHEAD_SHARE = 1 / 3
"""The share of the memory limit for all blocks that are read ahead."""
_BLOCK_EXPANSION = 7
"""Memory for parsing a block, as a multiple of its text."""
_SAMPLED_BYTES, _LARGEST_SAMPLE = 1 << 19, 1 << 26
"""The maximum number of bytes read to estimate the compression ratio: of the compressed file, and
of its content.
"""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

EXPANDED_LIMIT = "KARAT_MAX_EXPANDED"
"""The environment variable that overrides `Source.expanded_limit`."""
DEEPEST = 32
"""The maximum nesting of lists and objects in a field. The cost grows with its cube."""
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]')
_LONG_NUMBER = re.compile("[0-9]{1000}")
_DECOMPRESSION_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError)
_SYSTEM_ERROR = re.compile(r"([^:\s][^:]*) \(os error \d+\)")


def is_pipe(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a pipe or a similar stream, which can be read only once."""
    path = Path(path)
    return (
        path_is(Path.exists, path)
        and not path_is(Path.is_file, path)
        and not path_is(Path.is_dir, path)
    )


class Source:
    """An input file, which is decompressed when it is read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.n_read = 0
        """How many bytes of the file were read, if it is read in blocks."""
        self.n_ahead = _MOST_AHEAD
        """How many blocks are read and parsed ahead of their use, if the format can do that."""
        self.largest_block = BLOCK_BYTES
        """The largest number of bytes that is read at a time, if the file is read in blocks."""
        if path_is(Path.is_dir, self.path):
            raise InputError(
                "expected a file, got a folder", path=path, hint=_folder_hint(self.path)
            )
        if not path_is(Path.exists, self.path):
            raise InputError("file not found", path=path, hint=_similar_path_hint(self.path))

    def limit_memory(self, memory: int) -> None:
        """Limit the size of blocks and the number read ahead.

        They take at most a third of the memory limit, except that at least one block of 1 MiB is
        read ahead.
        """
        self.largest_block = min(max(int(memory * _BLOCK_SHARE), _SMALLEST_BLOCK), BLOCK_BYTES)
        n_fitting = int(memory * _AHEAD_SHARE / (_BLOCK_EXPANSION * self.largest_block))
        self.n_ahead = min(max(n_fitting, 1), _MOST_AHEAD)

    @property
    def compression(self) -> str | None:
        """The compression, ".gz" or ".zst", by the extension or the first bytes; None if plain."""
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
        """Whether other libraries can read the content directly from the path."""
        return self.compression is None and self._piped is None

    @property
    def ending(self) -> str:
        """The file extension of the format, such as ".csv", ignoring that of the compression."""
        return without_compression(self.path).suffix.lower()

    def read(self) -> bytes:
        """Return the whole content."""
        return self._read(-1)

    @cached_property
    def head(self) -> bytes:
        """The first bytes of the content, from which the format is detected."""
        return self._read(HEAD_BYTES)

    def whole_lines(self, size: int = BLOCK_BYTES) -> Generator[bytes, None, None]:
        """Yield the content in blocks of whole lines, without a byte order mark."""
        with self._open_both() as (raw, file):
            mark, size = BYTE_ORDER_MARK, min(size, self.largest_block)
            while block := _read_lines(file, size, can_seek=file is raw):
                self.n_read = raw.tell()
                yield block.removeprefix(mark)
                mark = b""

    def compression_of_start(self) -> float:
        """Return the compression ratio of the start of the file."""
        with self._open_both() as (raw, file):
            n_bytes = 0
            while raw.tell() < _SAMPLED_BYTES and n_bytes < _LARGEST_SAMPLE:
                block = file.read(_SAMPLED_BYTES)
                n_bytes += len(block)
                if not block:
                    break
            return n_bytes / max(raw.tell(), 1)

    def error(
        self,
        problem: str,
        *,
        line: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> InputError:
        """Return an error about this file."""
        return InputError(problem, path=self.path, line=line, field=field, hint=hint)

    @property
    def expanded_limit(self) -> int:
        """The maximum size in bytes of the decompressed and decoded content."""
        size = self.path.stat().st_size if self._piped is None else len(self._piped)
        limit = os.environ.get(EXPANDED_LIMIT)
        return (
            max(1 << 30, 200 * size) if limit is None else parse_byte_count(limit, EXPANDED_LIMIT)
        )

    def too_expanded(self, limit: int) -> InputError:
        """Return the error for content that is larger than the limit."""
        mebibytes = limit / (1 << 20)
        size = f"{mebibytes:,.0f} MiB" if mebibytes >= 1 else counted(limit, "byte")
        return self.error(
            f"the decompressed and decoded content is larger than {size}, the limit for this file",
            hint=f"if you trust the file, set the environment variable {EXPANDED_LIMIT} to a "
            "larger size, for example 20G",
        )

    def _read(self, size: int) -> bytes:
        with self._open() as file:
            return file.read(size)

    @cached_property
    def _piped(self) -> bytes | None:
        """The content of a pipe, which is cached because it can be read only once, or None."""
        return None if self.path.is_file() else self.path.read_bytes()

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with self._open_both() as (_, file):
            yield file

    @contextmanager
    def _open_both(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """Open the file as it is stored, and its decompressed content."""
        try:
            with ExitStack() as stack:
                piped = self._piped
                raw: IO[bytes] = self.path.open("rb") if piped is None else io.BytesIO(piped)
                file = stack.enter_context(
                    _decompressed(stack.enter_context(raw), self.compression)
                )
                if self.compression is not None:
                    file = cast("IO[bytes]", _SizeLimitedFile(file, self))
                yield raw, file
        except _DECOMPRESSION_ERRORS as error:
            raise self.error(
                "the compressed data is damaged or incomplete",
                hint=f"copy or compress the file again ({error})",
            ) from error
        except PermissionError as error:
            raise self.error(
                "permission denied", hint="check the permissions of the file"
            ) from error


def _read_lines(file: IO[bytes], size: int, *, can_seek: bool) -> bytes:
    """Read whole lines with about `size` bytes; nothing at the end of the file."""
    if can_seek:  # then the bytes are copied only once
        start = file.seek(size, os.SEEK_CUR) - size
        file.readline()
        stop = file.tell()
        file.seek(start)
        return file.read(stop - start)
    block = file.read(size)
    return block if block.endswith(b"\n") else block + file.readline()


class _SizeLimitedFile:
    """A compressed file that raises an error if its content is larger than the limit."""

    def __init__(self, file: IO[bytes], source: Source) -> None:
        self._file = file
        self._source = source
        self._limit = self._remaining = source.expanded_limit

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, or everything."""
        if size >= 0:
            return self._counted(self._file.read(size))
        blocks = iter(lambda: self._counted(self._file.read(BLOCK_BYTES)), b"")
        return b"".join(blocks)

    def readline(self) -> bytes:
        """Read one line."""
        return self._counted(self._file.readline(self._remaining + 1))

    def _counted(self, block: bytes) -> bytes:
        self._remaining -= len(block)
        if self._remaining < 0:
            raise self._source.too_expanded(self._limit)
        return block


def parse_byte_count(text: str, field: str, hint: str = "for example 500M or 20G") -> int:
    """Parse a number of bytes such as 500M or 20G."""
    match = re.fullmatch(r"(\d{1,12})([KMGT]?)", text.strip().upper())
    if match is None:
        raise InputError(
            f"expected a number of bytes, got {text!r}",
            field=field,
            hint=hint,
        )
    return int(match[1]) << (10 * " KMGT".index(match[2] or " "))


TABLE_PREFIX = "table:"
"""The prefix of the name of a table in the catalogs of a cluster."""


def is_address(path: str) -> bool:
    """Return whether a path is the name of a table, or an address such as "s3://bucket/run"."""
    return path.startswith(TABLE_PREFIX) or "://" in path


def without_compression(path: Path) -> Path:
    """Return a path without the file extension of the compression."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def _decompressed(raw: IO[bytes], compression: str | None) -> AbstractContextManager[IO[bytes]]:
    if compression == ".gz":
        return cast("AbstractContextManager[IO[bytes]]", gzip.GzipFile(fileobj=raw, mode="rb"))
    if compression == ".zst":
        return cast("AbstractContextManager[IO[bytes]]", zstd.ZstdFile(raw, "rb"))
    return nullcontext(raw)


def expand(path: str | os.PathLike[str]) -> list[str]:
    """Return the files that match a glob pattern, sorted by name, or the path itself."""
    text = os.fspath(path)
    if glob.has_magic(text) and not path_is(Path.exists, Path(text)):
        names = sorted(glob.glob(text, recursive=True))
        if not names:
            raise InputError("no file matches the pattern", path=text, hint="check the path")
        return names
    return [text]


def decode(content: bytes, source: Source, first_line: int = 1) -> str:
    """Return UTF-8 content as text, or raise an error for the first line that is not UTF-8.

    `first_line` is the number of the first line of the content in its file.
    """
    if first_line == 1:
        refuse_unreadable(content, source)
        content = content.removeprefix(BYTE_ORDER_MARK)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + first_line
        raise not_utf8(source, line, error) from error


def not_utf8(source: Source, line: int, error: UnicodeDecodeError) -> InputError:
    """Return the error for bytes that are not UTF-8."""
    return source.error(
        f"byte 0x{error.object[error.start]:02x} is not valid UTF-8",
        line=line,
        field="encoding",
        hint="save the file as UTF-8, for example: iconv -f latin1 -t utf-8 FILE",
    )


def too_large(
    source: Source, text: str, error: ValueError | RecursionError, line: int | None = None
) -> InputError:
    """Return the error for values that Python cannot parse: long integers or deep nesting."""
    if isinstance(error, RecursionError):
        return source.error(
            "values are nested too deeply",
            line=line or _line_of_nesting(text),
            hint=f"use at most {DEEPEST} levels of nested lists and objects",
        )
    number = _LONG_NUMBER.search(text)
    return source.error(
        "a number has too many digits",
        line=line or (text.count("\n", 0, number.start()) + 1 if number else None),
        hint="shorten the number, or write it as a string in quotes",
    )


def _line_of_nesting(text: str) -> int | None:
    """Return the first line on which brackets outside strings are nested too deeply."""
    depth = 0
    for token in _BRACKET.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEEPEST:
            return text.count("\n", 0, token.start()) + 1
    return None


def refuse_unreadable(content: bytes, source: Source) -> None:
    """Raise an error for content that is UTF-16, binary or empty."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise source.error(
            "the file is encoded as UTF-16, expected UTF-8",
            line=1,
            field="encoding",
            hint="save the file as UTF-8, for example: iconv -f utf-16 -t utf-8 FILE",
        )
    if content[:400].count(0) * 4 > len(content[:400]):
        raise source.error(
            "the file is not a text file: it contains too many zero bytes",
            line=1,
            field="encoding",
            hint="if the file is UTF-16, convert it: iconv -f utf-16 -t utf-8 FILE",
        )
    if not content.removeprefix(BYTE_ORDER_MARK).strip(b" \t\r\n\v\f"):
        raise source.error("the file is empty", hint="check the command that wrote the file")


def _folder_hint(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir() if path.is_file())[:3]
    if not names:
        return "the folder contains no files"
    return f"give the path of one of its files, for example {', '.join(names)}"


def _similar_path_hint(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist"
    names = [neighbour.name for neighbour in folder.iterdir()]
    similar = did_you_mean(path.name, names, show=lambda name: str(folder / name))
    return similar or "check the path"


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for atomic writing: a temporary file replaces the target after the last write.

    If an error occurs, the target is not changed. Links are followed, permissions are preserved,
    and a target that is not a regular file, such as a pipe, is written directly. Temporary files
    that killed processes left in the folder are removed.
    """
    check_writable(path)
    target = Path(path).resolve()
    is_regular = path_is(Path.is_file, target) or not path_is(Path.exists, target)
    temporary = target
    if is_regular:
        _remove_leftovers(target.parent)
        temporary = target.with_name(f".{_own_mark()}-{secrets.token_hex(6)}{target.suffix}")
    try:
        with _compressing(temporary) as file:
            yield file
        if is_regular:
            if path_is(Path.exists, target):
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            temporary.replace(target)
    except Exception as error:
        reason = system_reason(error)
        if reason is None:
            raise
        raise InputError(f"writing failed: {reason}", path=path) from error
    finally:
        if is_regular:
            with suppress(OSError):
                temporary.unlink()


@cache
def _host() -> str:
    """Return a hash of the machine, and of the container in which process ids are unique."""
    processes = ""
    with suppress(OSError):  # not on all systems
        processes = str(Path("/proc/self/ns/pid").readlink())
    return hashlib.sha256(f"{platform.node()} {processes}".encode()).hexdigest()[:8]


def _own_mark() -> str:
    """Return the start of the names of temporary files, which identifies this process."""
    return f"karat-{_host()}-{os.getpid()}"


_MARK = re.compile(r"\.karat-([0-9a-f]{8})-([0-9]+)-")


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders of processes of this machine that were killed."""
    with suppress(OSError):
        for entry in folder.iterdir():
            mark = _MARK.match(entry.name)
            if mark is None or mark[1] != _host() or _is_running(int(mark[2])):
                continue
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                with suppress(OSError):
                    entry.unlink()


def _is_running(process: int) -> bool:
    """Return whether there is a process with this id; True if that is not known."""
    if sys.platform == "win32":  # a signal would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def system_reason(error: Exception) -> str | None:
    """Return the operating system's reason for an error, or None if there is no such reason.

    Polars raises errors of various types and states the reason only in their text.

    >>> system_reason(OSError("No space left on device (os error 28)"))
    'No space left on device'
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    match = _SYSTEM_ERROR.search(str(error))
    if match:
        return match[1]
    return str(error) if isinstance(error, OSError) else None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an error if a file cannot be written, to be called before any long work."""
    if path_is(Path.is_dir, Path(path)):
        raise InputError(
            "expected a file, got a folder", path=path, hint="give the path of a file in the folder"
        )
    check_parent(path)


def check_parent(path: str | os.PathLike[str]) -> None:
    """Raise an error if the parent folder does not exist or is not writable."""
    parent = Path(path).parent
    if not path_is(Path.is_dir, parent):
        raise InputError(
            "the parent folder does not exist", path=path, hint=f"create {parent} first"
        )
    if not os.access(parent, os.W_OK):
        raise InputError(
            "the parent folder is not writable",
            path=path,
            hint="check the permissions of the folder",
        )


@contextmanager
def _compressing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing, with the compression that follows from its extension."""
    with path.open("wb") as raw:
        if path.suffix.lower() == ".gz":
            # Without a name and a time in the header, the same input gives the same bytes.
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
                yield cast("IO[bytes]", file)
        elif path.suffix.lower() == ".zst":
            with zstd.ZstdFile(raw, "wb") as file:
                yield cast("IO[bytes]", file)
        else:
            yield cast("IO[bytes]", raw)


def path_is(test: Callable[[Path], bool], path: Path) -> bool:
    """Return the result of a test such as `Path.is_file`; False if the path cannot be accessed."""
    try:
        return test(path)
    except (OSError, ValueError):
        return False


@contextmanager
def writing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Create a folder atomically: a temporary folder is renamed after the last write."""
    check_writable_folder(path)
    target = Path(path)
    _remove_leftovers(target.parent)
    temporary = target.with_name(f".{_own_mark()}-{secrets.token_hex(6)}")
    try:
        temporary.mkdir()
        yield temporary
        if target.is_dir():  # it is empty; not all systems can replace an existing folder
            target.rmdir()
        temporary.replace(target)
    except Exception as error:
        reason = system_reason(error)
        if reason is None:
            raise
        raise InputError(f"writing failed: {reason}", path=path) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_writable_folder(path: str | os.PathLike[str]) -> None:
    """Raise an error if a new folder cannot be created, or if the folder is not empty."""
    target = Path(path)
    if target.name in ("", ".."):
        raise InputError(
            "cannot be used as the name of a new folder", path=path, hint="choose another name"
        )
    if target.exists() and not target.is_dir():
        raise InputError("expected a folder, got a file", path=path)
    if target.is_dir() and any(target.iterdir()):
        raise InputError(
            "the folder is not empty", path=path, hint="choose a new folder, or empty this one"
        )
    check_parent(path)
