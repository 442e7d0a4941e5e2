"""Text files in another encoding than UTF-8: how they are recognised, and what a person can do."""

from __future__ import annotations

SAVE_AS_UTF_8 = "save it as UTF-8: in Notepad or Excel, Save As offers it as the encoding"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def is_utf_16(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` says that it is UTF-16."""
    return head[:2] in _UTF_16


def wrong_encoding(head: bytes) -> str:
    """Return why a file that begins with ``head`` is no UTF-8 text, in words; nothing if it may be."""
    if is_utf_16(head):
        return "it is UTF-16, not UTF-8"
    return "it holds null bytes, as UTF-16 and files that are no text do" if b"\0" in head else ""
