"""Requests through obstore; of a folder its system calls (sync, link, unlink, read, walk), for crashes between them."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import GenericError

from tests.harness.calls import Calls
from tests.harness.plan import Deed

_ATTEMPT = re.compile(r"(staging/[^/]+/[^/]+)/[^/]+")
_TEMPORARY = re.compile(r"(\.incoming)/.+")


def install(calls: Calls, store: str) -> None:
    """Count every request to the store at this URL."""
    parts = urlsplit(store)
    if parts.scheme == "file":
        _hook_folder(calls, Path(unquote(parts.path)))
    else:
        _hook_obstore(calls)


def _hook_folder(calls: Calls, root: Path) -> None:
    def place(path: Any) -> str | None:
        """Return how to call a path of the store, the same in every run; None for any other path."""
        path = Path(path)
        if not path.is_relative_to(root):
            return None
        return _same_in_every_run(path.relative_to(root).as_posix())

    def error(lost: Deed) -> OSError:
        number = errno.ETIMEDOUT if lost == "timeout" else errno.EIO
        return OSError(number, os.strerror(number))

    def hook(owner: Any, name: str, told: str, path_of: Callable[..., Any], eager: Any = None) -> None:
        original = getattr(owner, name)

        def hooked(*args: Any, **options: Any) -> Any:
            where = place(path_of(*args))
            if where is None:
                return original(*args, **options)

            def make() -> Any:
                answer = original(*args, **options)
                return eager(answer) if eager else answer

            return calls.passed("store", f"{told} {where}", make, error)

        setattr(owner, name, hooked)

    hook(Path, "read_bytes", "read", lambda path: path)
    hook(Path, "hardlink_to", "link", lambda path, _: path)
    hook(Path, "unlink", "unlink", lambda path: path)
    hook(os, "fsync", "sync", lambda descriptor: Path(f"/proc/self/fd/{descriptor}").readlink())
    hook(os, "walk", "list", lambda top: top, eager=list)


def _same_in_every_run(path: str) -> str:
    return _TEMPORARY.sub(r"\1/*", _ATTEMPT.sub(r"\1/*", path))


def _hook_obstore(calls: Calls) -> None:
    def error(lost: Deed) -> Exception:
        return GenericError(f"Generic S3 error: planned {lost}: error sending request")

    def hook(name: str, eager: Any = None) -> None:
        original = getattr(obstore, name)

        def hooked(store: Any, path: Any = None, *args: Any, **options: Any) -> Any:
            def make() -> Any:
                answer = original(store, path, *args, **options)
                return eager(answer) if eager else answer

            return calls.passed("store", f"{name} {_same_in_every_run(str(path))}", make, error)

        setattr(obstore, name, hooked)

    hook("put")
    hook("get")
    hook("delete")
    hook("list", eager=list)
