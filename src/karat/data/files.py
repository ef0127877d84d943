"""Files as karat reads and writes them: compression taken off, failures named, never half."""

from __future__ import annotations

import glob
import gzip
import io
import os
import secrets
import stat
import sys
import zlib
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from karat.checks import did_you_mean
from karat.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMPRESSIONS = {".gz": b"\x1f\x8b\x08", ".zst": b"\x28\xb5\x2f\xfd"}
ENDINGS = (
    ".jsonl",
    ".ndjson",
    ".json",
    ".csv",
    ".tsv",
    ".parquet",
    ".arrow",
    ".feather",
    ".ipc",
    ".txt",
    ".run",
    ".trec",
    ".qrels",
)
HEAD_BYTES = 1 << 16
BLOCK_BYTES = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_TORN = (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError)


@dataclass(frozen=True)
class Unopened:
    """A path or a glob, and its format if that was said: for an engine to open."""

    path: str | os.PathLike[str]
    format: str | None = None


def path_of(source: Any) -> str | None:
    """Return the path that a source was given by, if it was."""
    path = source.path if isinstance(source, Unopened) else source
    return os.fspath(path) if isinstance(path, (str, os.PathLike)) else None


def flows(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path leads to a pipe or the like, which can be read only once."""
    found = Path(path)
    return _is(Path.exists, found) and not _is(Path.is_file, found) and not _is(Path.is_dir, found)


class Source:
    """One input file: its name, and its content with compression taken off."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if _is(Path.is_dir, self.path):
            raise InputError(
                "this is a directory where a file is meant", path=path, hint=_inside(self.path)
            )
        if not _is(Path.exists, self.path):
            raise InputError("there is no such file", path=path, hint=_neighbour(self.path))

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

    @property
    def name(self) -> str:
        """The file's name without folder and endings: what a run is called if nobody says."""
        return plain_name(self.path)

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
                yield stack.enter_context(_expanded(stack.enter_context(raw), self.compression))
        except _TORN as error:
            raise self.error(
                "the compressed data is damaged or cut off",
                hint=f"copy or compress the file again ({error})",
            ) from error
        except PermissionError as error:
            raise self.error("it may not be read", hint="check its permissions") from error


def plain_name(path: str | os.PathLike[str]) -> str:
    """Return a file's name without its folder and the endings that say how it is written."""
    bare = without_compression(Path(path))
    return bare.stem if bare.suffix.lower() in ENDINGS else bare.name


def without_compression(path: Path) -> Path:
    """Return a path without the ending that says how the file is compressed."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def _expanded(raw: IO[bytes], compression: str | None) -> AbstractContextManager[IO[bytes]]:
    """Take the compression off a file that is read."""
    if compression == ".gz":
        return cast("AbstractContextManager[IO[bytes]]", gzip.GzipFile(fileobj=raw, mode="rb"))
    if compression == ".zst":
        return cast("AbstractContextManager[IO[bytes]]", zstd.ZstdFile(raw, "rb"))
    return nullcontext(raw)


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


def expand(path: str | os.PathLike[str]) -> list[Source]:
    """Return the files that a path or a glob names, sorted by name."""
    text = os.fspath(path)
    if glob.has_magic(text) and not _is(Path.exists, Path(text)):
        names = sorted(glob.glob(text, recursive=True))
        if not names:
            raise InputError("no file matches this pattern", path=text, hint="check the folder")
        return [Source(name) for name in names]
    return [Source(text)]


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file beside its place and rename it when it is whole; a failure leaves nothing.

    A link keeps pointing to its file, a file keeps its permissions, and what is no plain file,
    such as a pipe, is written into as it is.
    """
    check_writable(path)
    target = Path(path).resolve()
    plain = _is(Path.is_file, target) or not _is(Path.exists, target)
    beside = target.with_name(f".{secrets.token_hex(6)}{target.suffix}") if plain else target
    try:
        with _compressing(beside) as file:
            yield file
        if plain:
            if _is(Path.exists, target):
                beside.chmod(stat.S_IMODE(target.stat().st_mode))
            beside.replace(target)
    except OSError as error:
        raise InputError(f"it cannot be written ({error.strerror})", path=path) from error
    finally:
        if plain:
            with suppress(OSError):
                beside.unlink()


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that nothing can be written to, before anything is done for it."""
    if _is(Path.is_dir, Path(path)):
        raise InputError(
            "this is a directory where a file is meant", path=path, hint="name a file in it"
        )
    check_parent(path)


def check_parent(path: str | os.PathLike[str]) -> None:
    """Refuse a path in a folder that does not exist or may not be written into."""
    parent = Path(path).parent
    if not _is(Path.is_dir, parent):
        raise InputError(
            "the folder to write into does not exist", path=path, hint=f"create {parent} first"
        )
    if not os.access(parent, os.W_OK):
        raise InputError(
            "the folder may not be written into", path=path, hint="check its permissions"
        )


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


def _is(question: Callable[[Path], bool], path: Path) -> bool:
    """Ask something of a path; one that the system cannot even look up is nothing."""
    try:
        return question(path)
    except (OSError, ValueError):
        return False


def _inside(folder: Path) -> str:
    names = sorted(p.name for p in folder.iterdir() if p.is_file())[:3]
    return f"name one of its files, such as {', '.join(names)}" if names else "it holds no file"


def _neighbour(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder} either"
    names = [neighbour.name for neighbour in folder.iterdir()]
    similar = did_you_mean(path.name, names, show=lambda name: str(folder / name))
    return similar or "check the path"
