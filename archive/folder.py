"""A store in a folder: atomic, durable and never overwriting, on any POSIX file system with hard links."""

from __future__ import annotations

import errno
import io
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from archive.objects import ObjectExistsError, ObjectMissingError, StoredObject, check_path, check_range
from leaderboard.errors import AccessError, FinaleError, OutcomeUnknownError, UnavailableError

INCOMING = ".incoming"
LITTER_AGE = timedelta(days=1)
_TRIES = 3

_NO_SUCH_OBJECT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_HINTS = {
    errno.ENOSPC: "free some space on this disk",
    errno.EDQUOT: "raise the quota, or free some space",
    errno.EROFS: "mount it writable, or choose another store",
    errno.EACCES: "give this user the right to read and write there",
    errno.EPERM: "give this user the right to write there; the file system must have hard links",
    errno.EOPNOTSUPP: "choose a file system with hard links",
    errno.EXDEV: "the whole store must lie on one file system",
    errno.ENOTDIR: "a file stands where a folder must be: move it away",
    errno.EEXIST: "a file stands where a folder must be: move it away",
    errno.ENAMETOOLONG: "choose a shorter path for the store",
}
_NAMED_BY = "look at FINALE_STORE, or store in [servers]; the first seal makes the folder"
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETIMEDOUT)


class FolderStore:
    """Objects as files below ``root``, which is made with the first object.

    A file is written under a name of its own in ``.incoming``, synced, and linked to its place: link refuses a place
    that is taken. What a killed writer leaves in ``.incoming`` is removed after ``litter_age``.
    """

    def __init__(self, root: Path, litter_age: timedelta = LITTER_AGE) -> None:
        self.root = root.absolute()
        self._incoming = self.root / INCOMING
        self._litter_age = litter_age
        self._swept = False

    @property
    def url(self) -> str:
        return self.root.as_uri()

    def check_exists(self, hint: str = _NAMED_BY) -> None:
        """Raise AccessError if there is no such folder: nothing was ever written there, or the name is mistyped."""
        if not self.root.exists():
            raise AccessError(
                f"the store {self.url} does not exist",
                detail=f"there is no folder {self.root}",
                hint=hint,
            )

    def put_new(self, path: str, data: bytes) -> None:
        final = self.root / check_path(path)
        try:
            made = [folder for folder in final.parents if not folder.exists()]
            self._incoming.mkdir(parents=True, exist_ok=True)
            self._sweep_once()
            temporary = self._incoming / f"{os.getpid()}-{secrets.token_hex(8)}"
            try:
                _write_synced(temporary, data)
                taken = not _place(temporary, final)
            finally:
                with suppress(OSError):
                    temporary.unlink()
        except OSError as error:
            raise _translated(error, final, "could not be written") from None
        try:
            # Also when the place was taken: its writer may have died before this.
            self._sync_folders(final.parent, made)
        except OSError as error:
            raise OutcomeUnknownError(f"{final} could not be made durable", detail=_text(error)) from None
        if taken:
            raise ObjectExistsError(f"{final} exists already")

    def get(self, path: str) -> bytes:
        file = self.root / check_path(path)
        try:
            return file.read_bytes()
        except _NO_SUCH_OBJECT:
            raise ObjectMissingError(f"{file} does not exist") from None
        except OSError as error:
            raise _translated(error, file, "could not be read") from None

    def get_range(self, path: str, start: int, length: int) -> bytes:
        file = self.root / check_path(path)
        try:
            with file.open("rb", buffering=0) as raw:
                raw.seek(start)
                return check_range(self, path, start, length, _read_whole(raw, length))
        except _NO_SUCH_OBJECT:
            raise ObjectMissingError(f"{file} does not exist") from None
        except OSError as error:
            raise _translated(error, file, "could not be read") from None

    def list(self, prefix: str) -> Iterator[StoredObject]:
        top = self.root / check_path(prefix.rstrip("/")) if prefix else self.root
        found = []
        try:
            if self.root.exists() and not self.root.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            for folder, _, names in os.walk(top, onerror=_raise_unless_missing):
                if Path(folder) != self._incoming:
                    found += [Path(folder) / name for name in names]
        except OSError as error:
            raise _translated(error, top, "could not be listed") from None
        yield from sorted(stored for file in found if (stored := self._stored(file)))

    def delete(self, path: str) -> None:
        file = self.root / check_path(path)
        try:
            file.unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as error:
            raise _translated(error, file, "could not be removed") from None
        self._remove_empty(file.parent)

    def _stored(self, file: Path) -> StoredObject | None:
        try:
            status = file.lstat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _translated(error, file, "could not be listed") from None
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
        return StoredObject(file.relative_to(self.root).as_posix(), status.st_size, modified)

    def _remove_empty(self, folder: Path) -> None:
        """Remove ``folder`` and those above it as far as they are empty: a folder is there for what it holds."""
        with suppress(OSError):
            while folder != self.root:
                folder.rmdir()
                folder = folder.parent

    def _sweep_once(self) -> None:
        if self._swept:
            return
        oldest = time.time() - self._litter_age.total_seconds()
        for file in self._incoming.iterdir():
            with suppress(FileNotFoundError):
                if file.lstat().st_mtime < oldest:
                    file.unlink()
        self._swept = True

    def _sync_folders(self, folder: Path, made: Sequence[Path]) -> None:
        within = [each for each in (folder, *folder.parents) if each.is_relative_to(self.root)]
        for each in dict.fromkeys([*within, *(new.parent for new in made)]):
            _sync(each)


def _write_synced(file: Path, data: bytes) -> None:
    with file.open("xb", buffering=0) as raw:
        rest = memoryview(data)
        while rest:
            rest = rest[raw.write(rest) :]
        os.fsync(raw.fileno())


def _read_whole(raw: io.FileIO, length: int) -> bytes:
    """Return the next ``length`` bytes, fewer only at the end of the file."""
    read = bytearray()
    while len(read) < length and (more := raw.read(length - len(read))):
        read += more
    return bytes(read)


def _place(source: Path, target: Path) -> bool:
    """Link ``source`` to ``target``, making its folder; return whether the place was free."""
    for remaining in reversed(range(_TRIES)):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            return _link(source, target)
        except FileNotFoundError:
            # Somebody has just removed the last object beside this one, and so the folder.
            if not remaining:
                raise
    raise AssertionError("the last try returns or raises")


def _link(source: Path, target: Path) -> bool:
    try:
        target.hardlink_to(source)
    except FileExistsError:
        return False
    return True


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _translated(error: OSError, path: Path, what: str) -> FinaleError:
    kind = UnavailableError if error.errno in _PASSING else AccessError
    hint = _HINTS.get(error.errno or 0, "look at this path and its file system")
    return kind(f"{path} {what}", detail=_text(error), hint=hint)


def _text(error: OSError) -> str:
    return error.strerror or type(error).__name__
