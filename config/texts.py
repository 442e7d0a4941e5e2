"""Text files that people write: read as UTF-8, and why one cannot be read, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from leaderboard.encoding import SAVE_AS_UTF_8, is_utf_16
from leaderboard.errors import ConfigError, InputError
from leaderboard.files import check_file
from leaderboard.wording import listed

_NAMED = 5  # files of a folder
LOOK = "look at the path, and at who may read it"  #: the remedy that is always right


def read_text(path: Path, otherwise: str = LOOK) -> str:
    """Return the text of a file, a byte order mark taken away; raise InputError with the reason and a remedy.

    ``otherwise`` is the remedy where the reason names none.
    """
    try:
        text = check_file(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason, remedy = unreadable(path, error)
        raise InputError(f"{path} cannot be read: {reason}", hint=remedy or otherwise) from None
    if "\0" in text:  # UTF-16 without a mark
        raise InputError(f"{path} cannot be read: it holds null bytes, as UTF-16 does", hint=SAVE_AS_UTF_8)
    return text


def read_secret(what: str, file: str) -> str:
    """Return what stands in a file that ``what``, a variable or key, names; raise ConfigError if that is nothing."""
    try:
        value = read_text(Path(file)).strip()
    except InputError as error:
        raise ConfigError(f"{what} = {error.message}", detail=error.detail, hint=error.hint) from None
    if not value:
        raise ConfigError(f"{what} = {file} is an empty file", hint="write the value into it, or name another file")
    return value


def read_lines(path: Path, otherwise: str = LOOK) -> Iterator[str]:
    """Yield the lines of a file as they stand, ends included; raise InputError with the reason, also if it is empty.

    For files that may be large; ``csv`` takes the lines. ``otherwise`` as for ``read_text``.
    """
    try:
        with check_file(path).open(encoding="utf-8-sig", newline="") as file:
            empty = True
            for line in file:
                empty = False
                yield line
    except (OSError, ValueError) as error:
        reason, remedy = unreadable(path, error)
        raise InputError(f"{path} cannot be read: {reason}", hint=remedy or otherwise) from None
    if empty:
        raise InputError(f"{path} is an empty file", hint=otherwise)


def unreadable(path: Path, error: OSError | ValueError) -> tuple[str, str]:
    """Return why a text file could not be read and what to do about it, nothing where the reason says it.

    A ValueError is of a path that cannot be one, or of bytes that are no UTF-8.
    """
    if isinstance(error, UnicodeDecodeError):
        if is_utf_16(error.object):
            return "it is UTF-16, not UTF-8", SAVE_AS_UTF_8
        return f"byte {error.start + 1} is no UTF-8", SAVE_AS_UTF_8
    if isinstance(error, IsADirectoryError):
        inside = sorted(one.name for one in path.glob("*.toml"))
        return "it is a folder", f"name a file in it: {listed(inside, _NAMED)}" if inside else "name a file"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__, ""
    return str(error), ""
