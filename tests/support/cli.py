"""The command line in this process, against real servers, and a picture of everything it could have changed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from config.load import load
from jobs import cli
from jobs.scheduler.upcoming import create_ahead
from jobs.wiring import Outside, outside
from ledger import seasons

REPOSITORY = Path(__file__).parents[2]
MAIN = "from jobs.cli import main; main()"
INSTALLED = Path(sys.executable).with_name("finale")
HEADER = "match_id,player_id,points,played_at"


@dataclass(frozen=True)
class Answer:
    """What one command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def ok(self) -> Answer:
        """Return itself; fail the test unless the command ended well."""
        assert self.code == 0, f"exit code {self.code}\n{self.out}\n{self.err}"
        return self

    def refused(self, code: int, *words: str) -> Answer:
        """Return itself; fail the test unless it ended with ``code``, told ``words``, and showed no traceback."""
        assert self.code == code, f"exit code {self.code} instead of {code}\n{self.out}\n{self.err}"
        for word in words:
            assert word in self.err, f"{word!r} is not in\n{self.err}"
        assert "error:" in self.err
        assert "Traceback" not in self.err + self.out
        assert "should not have happened" not in self.err
        return self


def finale(*arguments: str) -> Answer:
    """Run ``finale`` with these arguments in this process; the environment says which servers."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["finale", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    code = ended.value.code
    assert code is None or isinstance(code, int)
    return Answer(code or 0, _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def started(*arguments: str, code: str = MAIN, pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start ``finale`` with these arguments as a process of its own; ``code`` runs instead of the command."""
    return _started([sys.executable, "-c", code, *arguments], pass_fds)


def shell(line: str) -> subprocess.Popen[bytes]:
    """Start a line of bash in which ``finale`` is the command."""
    define = f'finale() {{ {shlex.quote(sys.executable)} -c {shlex.quote(MAIN)} "$@"; }}\n'
    return _started(["bash", "-c", define + line])


def _started(command: Sequence[str], pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    # Unbuffered, Python takes a write of which a pipe took a part for one that was done.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=REPOSITORY, env=environ, pass_fds=pass_fds, stdout=pipe, stderr=pipe)


@dataclass(frozen=True)
class World:
    """A configuration, an empty Redis, a ledger without rows and an empty store; commands run in it."""

    folder: Path
    redis: redis.Redis
    postgres_url: str
    store: Path

    @property
    def config(self) -> Path:
        return self.folder / "finale.toml"

    def configure(self, text: str, **tables: str) -> None:
        """Write ``finale.toml`` and reward tables, each into its file ``<name>.toml``."""
        self.config.write_text(text)
        for name, table in tables.items():
            (self.folder / f"{name}.toml").write_text(table)

    def results(self, *rows: str, name: str = "results.csv") -> Path:
        """Write a file of results, each a line of CSV, and return its path."""
        path = self.folder / name
        path.write_text("\n".join((HEADER, *rows, "")))
        return path

    def played(self, board: str, *rows: str) -> None:
        """Import results for a board."""
        finale("results", "import", str(self.results(*rows)), "--board", board).ok()

    def seen(self, board: str, at: datetime) -> list[str]:
        """Create the board's seasons as a scheduler that ran at that time would have; return their ids."""
        with self.outside() as wired:
            return create_ahead(wired, wired.boards[board], at, who="scheduler")

    @contextmanager
    def outside(self) -> Iterator[Outside]:
        with outside(load(self.config, os.environ), os.environ) as wired:
            yield wired

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement on the ledger and return its rows, if it has any."""
        with psycopg.connect(self.postgres_url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def state(self, board: str, season: str) -> str:
        with self.outside() as wired:
            return str(seasons.find(wired.database, board, season).state)

    def journal(self, board: str, season: str) -> list[tuple[str, str, dict[str, Any]]]:
        """Return the season's journal: event, who, detail."""
        return self.sql(
            "select event, who, detail from finale.journal join finale.season using (season_id)"
            " where board = %s and season = %s order by journal_id",
            board,
            season,
        )

    def files(self, under: str = "") -> list[str]:
        """Return the paths of all files in the store, hidden ones too."""
        return sorted(str(path.relative_to(self.store)) for path in (self.store / under).rglob("*") if path.is_file())

    def picture(self, *but: str) -> dict[str, Any]:
        """Return every row of the ledger, key of Redis and file of the store, but the tables ``but``."""
        tables = [row[0] for row in self.sql("select tablename from pg_tables where schemaname = 'finale' order by 1")]
        seen: dict[str, Any] = {
            f"table {name}": self.sql(f"select t::text from finale.{name} t order by 1")
            for name in tables
            if name not in but
        }
        seen |= {f"key {key!r}": (self.redis.dump(key), self.redis.ttl(key) >= 0) for key in sorted(self.redis.keys())}
        for path in self.files():
            seen[f"file {path}"] = hashlib.sha256((self.store / path).read_bytes()).hexdigest()
        return seen


def differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the names of what is not the same in two pictures."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
