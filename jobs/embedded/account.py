"""Which user runs the embedded servers: PostgreSQL refuses to run as root, so there it is an unprivileged one."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from leaderboard.errors import EmbeddedError

PREFERRED = ("postgres", "nobody")


class Switch(TypedDict, total=False):
    """The arguments of ``subprocess`` that change the user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """The user that runs the servers; ``switch`` is false where that is who runs this program."""

    name: str
    uid: int
    gid: int
    switch: bool

    def arguments(self) -> Switch:
        """Return the subprocess arguments that run a program as this user."""
        return Switch(user=self.uid, group=self.gid, extra_groups=[]) if self.switch else Switch()

    def give(self, path: Path) -> None:
        """Make this user the owner of the path."""
        if self.switch:
            os.chown(path, self.uid, self.gid)

    def unreachable(self, path: Path) -> Path | None:
        """Return the first folder on the way to ``path``, itself included, that this user cannot enter, or None."""
        if not self.switch:
            return None
        for folder in [*reversed(path.absolute().parents), path.absolute()]:
            if not self._may_enter(folder.stat()):
                return folder
        return None

    def _may_enter(self, status: os.stat_result) -> bool:
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)


def server_account(chosen: str = "", owner: int | None = None) -> Account:
    """Return the user that runs the servers.

    Without root rights it is the present user. For root it is ``chosen`` (FINALE_EMBEDDED_USER), else ``owner``, the
    uid that the home's data already belongs to, else the first of ``PREFERRED`` that exists.
    Raises EmbeddedError if there is no such user, it is root, or the data belong to another one.
    """
    if os.geteuid() != 0:
        return _present_user()
    hint = "set FINALE_EMBEDDED_USER to an existing unprivileged user"
    if owner == 0:
        owner = None
    if chosen:
        entry = _by_name(chosen)
        if entry is None:
            raise EmbeddedError(f"FINALE_EMBEDDED_USER names {chosen!r}, which is no user of this machine", hint=hint)
        if owner is not None and owner != entry.pw_uid:
            raise EmbeddedError(
                f"FINALE_EMBEDDED_USER is {chosen!r}, but the servers' data belong to {_name(owner)!r}",
                hint=f"set FINALE_EMBEDDED_USER={_name(owner)}, or another FINALE_HOME",
            )
    elif owner is not None:
        entry = _by_uid(owner)
    else:
        entry = next((found for name in PREFERRED if (found := _by_name(name))), None)
    if entry is None:
        raise EmbeddedError("PostgreSQL refuses to run as root, and no unprivileged user was found", hint=hint)
    if entry.pw_uid == 0:
        raise EmbeddedError("PostgreSQL refuses to run as root", hint=hint)
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, switch=True)


def _present_user() -> Account:
    uid = os.geteuid()
    return Account(_name(uid), uid, os.getegid(), switch=False)


def _name(uid: int) -> str:
    entry = _by_uid(uid)
    return entry.pw_name if entry else str(uid)


def _by_uid(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None


def _by_name(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
