"""What a person configures, validated and frozen: servers, runner, boards."""

from __future__ import annotations

from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, field_validator, model_validator

from config import segments
from config.urls import check_postgres, check_redis, check_store
from leaderboard.board import Board
from leaderboard.errors import UnknownNameError
from leaderboard.fields import Duration, Strict
from rewards.table import RewardTable


def _a_second(value: timedelta) -> timedelta:
    if value < timedelta(seconds=1):
        raise ValueError("must be at least 1s")
    return value


def _a_page(value: timedelta) -> timedelta:
    if not timedelta(milliseconds=1) <= value <= timedelta(seconds=1):
        raise ValueError("must be from 1ms to 1s")
    return value


Timeout = Annotated[Duration, AfterValidator(_a_second)]
Budget = Annotated[Duration, AfterValidator(_a_page)]


class Servers(Strict):
    """Where Redis, PostgreSQL and the archive are. What is left out is embedded: the two servers together or neither.

    ``replica`` is one that follows ``redis``, for what all players see alike. The URLs of the servers are secrets, so
    no repr or dump shows them.
    """

    redis: SecretStr | None = None
    replica: SecretStr | None = None
    postgres: SecretStr | None = None
    store: str | None = None

    @field_validator("redis", "replica", "postgres")
    @classmethod
    def _spoken(cls, value: SecretStr | None, info: Any) -> SecretStr | None:
        if value is not None:
            (check_postgres if info.field_name == "postgres" else check_redis)(value.get_secret_value())
        return value

    @field_validator("store")
    @classmethod
    def _stored(cls, value: str | None) -> str | None:
        return None if value is None else check_store(value)

    @model_validator(mode="after")
    def _together(self) -> Servers:
        if (self.redis is None) != (self.postgres is None):
            missing = "redis" if self.redis is None else "postgres"
            raise ValueError(
                f"redis and postgres are given together or not at all; write servers.{missing}, "
                f"or set FINALE_{missing.upper()}"
            )
        if self.replica is not None and self.redis is None:
            raise ValueError("a replica follows a Redis that is named too; write servers.redis, or set FINALE_REDIS")
        return self

    @property
    def cluster(self) -> bool:
        """Whether Redis is a cluster."""
        return self.redis is not None and self.redis.get_secret_value().partition(":")[0].endswith("+cluster")

    @property
    def embedded(self) -> bool:
        """Whether Finale runs its own Redis and PostgreSQL."""
        return self.redis is None


class Runner(Strict):
    """How a runner works: how long it may be silent, and in which portions it reads and writes."""

    lease: Timeout = timedelta(seconds=30)
    workers: int = Field(default=4, ge=1, le=64)
    interval: Timeout = timedelta(seconds=10)
    stop_within: Timeout = timedelta(seconds=25)
    max_skew: Timeout = timedelta(seconds=5)
    page_budget: Budget = timedelta(milliseconds=2)
    page_rows: int = Field(default=10_000, ge=10, le=1_000_000)
    part_rows: int = Field(default=1_200_000, ge=1_000, le=100_000_000)
    batch_rows: int = Field(default=50_000, ge=100, le=10_000_000)
    snapshot_tries: int = Field(default=5, ge=1, le=1_000)
    redis_timeout: Timeout = timedelta(seconds=10)
    postgres_connect_timeout: Timeout = timedelta(seconds=10)
    statement_timeout: Timeout = timedelta(minutes=10)
    store_timeout: Timeout = timedelta(minutes=2)


def _with_names(boards: Any) -> Any:
    """Return the tables ``[board.<name>]``, each with the name that its header gives."""
    if not isinstance(boards, dict):
        return boards
    for name, board in boards.items():
        if isinstance(board, dict) and "name" in board:
            raise ValueError(f"board.{name}.name is an unknown key; a board is called what its header says, {name}")
    boards = segments.expanded(boards)
    return {name: {**board, "name": name} if isinstance(board, dict) else board for name, board in boards.items()}


class File(Strict):
    """The shape of ``finale.toml``."""

    servers: Servers = Servers()
    runner: Runner = Runner()
    board: Annotated[dict[str, Board], BeforeValidator(_with_names)] = Field(default_factory=dict)


class Settings(Strict):
    """All that was configured, handed down from here as plain values.

    ``tables`` holds a reward table for exactly the boards that name one; ``path`` is the file it came from.
    ``segments`` are the names of the boards that one table with segments stands for.
    """

    servers: Servers = Servers()
    runner: Runner = Runner()
    boards: dict[str, Board] = Field(default_factory=dict)
    tables: dict[str, RewardTable] = Field(default_factory=dict)
    segments: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    home: Path
    path: Path | None = None

    @model_validator(mode="after")
    def _every_table_is_there(self) -> Settings:
        named = {name for name, board in self.boards.items() if board.rewards is not None}
        if named != self.tables.keys():
            raise ValueError(f"reward tables of {sorted(self.tables)} were read, but {sorted(named)} name one")
        return self

    @property
    def store(self) -> str:
        """The archive's URL: as configured, or the folder ``archive`` in ``home``."""
        return self.servers.store or (self.home / "archive").absolute().as_uri()

    def board(self, name: str) -> Board:
        """Return the board called ``name``; raise UnknownNameError that lists the known ones otherwise."""
        if name in self.boards:
            return self.boards[name]
        known = sorted(self.boards)
        close = get_close_matches(name, known, n=1)
        if name in self.segments:
            raise UnknownNameError(
                f"board {name} is a name for its segments", hint=f"name one of {', '.join(self.segments[name])}"
            )
        raise UnknownNameError(
            f"there is no board {name!r}",
            detail=f"boards: {', '.join(known) or 'none'}",
            hint=f"did you mean {close[0]}?" if close else "a board is a table [board.<name>] in finale.toml",
        )

    def reward_table(self, name: str) -> RewardTable | None:
        """Return the reward table of the board called ``name``, None if it has none. Raises what ``board`` raises."""
        return self.tables.get(self.board(name).name)
