"""Text files that people write: read as UTF-8, and why one cannot be read, with what to do about it."""

from __future__ import annotations

from pathlib import Path

from leaderboard.errors import InputError

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NAMED = 5  # files of a folder
_SAVE = "save it as UTF-8: in Notepad or Excel, Save As offers it as the encoding"


def read_text(path: Path) -> str:
    """Return the text of a file, a byte order mark taken away; raise InputError with the reason and a remedy."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason, remedy = unreadable(path, error)
        raise InputError(f"{path} cannot be read", detail=reason, hint=remedy) from None
    if "\0" in text:  # UTF-16 without a mark
        raise InputError(f"{path} cannot be read", detail="it holds null bytes, as UTF-16 does", hint=_SAVE)
    return text


def unreadable(path: Path, error: OSError | ValueError) -> tuple[str, str]:
    """Return why a text file could not be read and what to do about it, nothing where the reason says it.

    A ValueError is of a path that cannot be one, or of bytes that are no UTF-8.
    """
    if isinstance(error, UnicodeDecodeError):
        if error.object[:2] in _UTF_16:
            return "it is UTF-16, not UTF-8", _SAVE
        return f"byte {error.start + 1} is no UTF-8", _SAVE
    if isinstance(error, IsADirectoryError):
        inside = sorted(one.name for one in path.glob("*.toml"))[:_NAMED]
        return "it is a folder", f"name a file in it: {', '.join(inside)}" if inside else "name a file"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__, ""
    return str(error), ""
