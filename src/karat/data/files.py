"""Files as karat reads and writes them: compression taken off, failures named, never half."""

from __future__ import annotations

import glob
import gzip
import io
import os
import secrets
import sys
import zlib
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, cast

from karat.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMPRESSIONS = (".gz", ".zst")
ENDINGS = (
    ".jsonl",
    ".ndjson",
    ".json",
    ".csv",
    ".tsv",
    ".parquet",
    ".txt",
    ".run",
    ".trec",
    ".qrels",
)
HEAD_BYTES = 1 << 16
BLOCK_BYTES = 1 << 20  # fits the cache: scanning such blocks is five times as fast
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_TORN = (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError)


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
        """The ending that says how the file is compressed, if it is."""
        ending = self.path.suffix.lower()
        return ending if ending in COMPRESSIONS else None

    @property
    def on_disk(self) -> bool:
        """Whether the content lies on the disk as it is, for others to read."""
        return self.compression is None and self._piped is None

    @property
    def ending(self) -> str:
        """The ending that says what the file holds, without the compression's."""
        bare = self.path.with_suffix("") if self.compression else self.path
        return bare.suffix.lower()

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

    def blocks(self) -> Iterator[bytes]:
        """Yield the content piece by piece, so that memory stays flat."""
        with self._open() as file:
            while block := file.read(BLOCK_BYTES):
                yield block

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
            if self._piped is not None:
                yield io.BytesIO(self._piped)
                return
            with open_bytes(self.path, "rb") as file:
                yield file
        except _TORN as error:
            raise self.error(
                "the compressed data is damaged or cut off",
                hint=f"copy or compress the file again ({error})",
            ) from error
        except PermissionError as error:
            raise self.error("it may not be read", hint="check its permissions") from error


def plain_name(path: str | os.PathLike[str]) -> str:
    """Return a file's name without its folder and the endings that say how it is written."""
    bare = Path(path)
    for endings in (COMPRESSIONS, ENDINGS):
        bare = bare.with_suffix("") if bare.suffix.lower() in endings else bare
    return bare.name


@contextmanager
def open_bytes(path: Path, mode: Literal["rb", "wb"]) -> Iterator[IO[bytes]]:
    """Open a file for bytes, with the compression that its ending names."""
    with path.open(mode) as raw:
        ending = path.suffix.lower()
        if ending == ".gz":
            # No name and no time in the header: same input, same bytes.
            with gzip.GzipFile("", mode, 6, raw, mtime=0) as file:
                yield cast("IO[bytes]", file)
        elif ending == ".zst":
            with zstd.ZstdFile(raw, cast("Any", mode)) as file:
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
    """Write a file beside its place and rename it when it is whole; a failure leaves nothing."""
    target = Path(path)
    if target.is_dir():
        raise InputError("this is a directory where a file is meant", path=path)
    if not target.parent.is_dir():
        raise InputError(
            "the folder to write into does not exist",
            path=path,
            hint=f"create {target.parent} first",
        )
    beside = target.with_name(f".{secrets.token_hex(4)}-{target.name}")
    try:
        with open_bytes(beside, "wb") as file:
            yield file
        beside.replace(target)
    except PermissionError as error:
        raise InputError("it may not be written", path=path) from error
    finally:
        with suppress(FileNotFoundError, PermissionError):
            beside.unlink()


def decode(content: bytes, source: Source) -> str:
    """Return UTF-8 content as text, or say which line is not UTF-8."""
    refuse_foreign_encoding(content, source)
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


def refuse_foreign_encoding(content: bytes, source: Source) -> None:
    """Refuse UTF-16 and empty content, which no text reader here can use."""
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
    near = get_close_matches(path.name, [p.name for p in folder.iterdir()], n=1)
    return f"did you mean {folder / near[0]}?" if near else "check the path"
