"""Files that an operator names: looked at before they are opened, since whoever opens a pipe waits for its writer."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def check_file(path: Path) -> Path:
    """Return ``path``, which is opened next; raise OSError for what is neither a file nor a folder, or not there.

    A folder is left to whoever opens it, who says what was wanted of it.
    """
    if kind := _KINDS.get(stat.S_IFMT(path.stat().st_mode)):
        raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))
    return path
