"""File locks that the kernel releases by itself when their last holder is gone, however it went."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def open_lock_file(path: Path) -> int:
    """Return a descriptor of the lock file, made if it is missing."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_exclusive(path: Path) -> int | None:
    """Return a descriptor that holds the file exclusively, or None if anybody else holds it."""
    descriptor = open_lock_file(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_held(path: Path) -> bool:
    """Return whether anybody holds the file, shared or exclusively."""
    if not path.exists():
        return False
    descriptor = try_exclusive(path)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def holders(path: Path) -> list[int]:
    """Return the processes that are known to hold the file: on Linux, from /proc/locks; elsewhere none."""
    try:
        status = path.stat()
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        rows = [line.split() for line in Path("/proc/locks").read_text("ascii").splitlines()]
    except (OSError, UnicodeDecodeError):
        return []
    # Number, kind, mandatory or not, read or write, process, device and inode; one that waits has "->" as its kind.
    return sorted({int(row[4]) for row in rows if row[1:2] == ["FLOCK"] and row[5] == place and int(row[4]) > 0})


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the file exclusively, waiting for it."""
    descriptor = open_lock_file(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def take_shared(path: Path) -> int:
    """Return a descriptor that holds the file together with others; closing it lets go."""
    descriptor = open_lock_file(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
