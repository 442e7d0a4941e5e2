"""Files on this machine that appear whole or not at all: a temporary name beside the target, then its own."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from leaderboard.errors import AccessError, FinaleError, InputError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def place_of(target: Path, *, force: bool) -> Path:
    """Return the file that is to be written for ``target``: where it is a symbolic link, what that names.

    Raises InputError for a folder that is not there, for what is no regular file, and without ``force`` for one that
    exists; AccessError if the file system does not let it be told.
    """
    try:
        place = target.resolve() if target.is_symlink() else target
        if not place.parent.is_dir():
            raise InputError(f"there is no folder {place.parent}", hint="make it first, or choose another place")
        mode = place.stat().st_mode if place.exists() else None
    except (OSError, RuntimeError) as error:  # Python before 3.13 has RuntimeError for links in a circle
        raise _refused(target, error) from None
    if mode is not None and not stat.S_ISREG(mode):
        raise InputError(
            f"{target} is no regular file",
            detail=f"{place} is {_KINDS.get(stat.S_IFMT(mode), 'something else')}; it was left as it is",
            hint="name a file, which may exist or not",
        )
    if mode is not None and not force:
        raise _exists(target)
    return place


@contextmanager
def appearing(target: Path, force: bool) -> Iterator[BinaryIO]:
    """Yield a file to be written that becomes ``target`` once the block ends well; otherwise nothing is left.

    Raises what ``place_of`` raises, and AccessError if it cannot be written.
    """
    place = place_of(target, force=force)
    temporary = place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if force:
                temporary.replace(place)
            else:
                # A link, unlike a rename, is refused where something has come to stand meanwhile.
                place.hardlink_to(temporary)
        finally:
            with suppress(OSError):
                temporary.unlink()
    except FinaleError:
        raise
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        raise _refused(target, error) from None


def _exists(target: Path) -> InputError:
    return InputError(f"{target} exists already", hint="choose another name, or say --force to replace it")


def _refused(target: Path, error: Exception) -> AccessError:
    return AccessError(
        f"{target} could not be written",
        detail=getattr(error, "strerror", None) or str(error) or type(error).__name__,
        hint="choose another place, with room, where this user may write; without hard links, --force is needed",
    )
