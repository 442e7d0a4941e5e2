"""Reads ``finale.toml``, its reward tables and the environment, which wins, into Settings or one ConfigError."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config import segments
from config.checks import check_boards
from config.home import default_home
from config.settings import File, Settings
from config.texts import read_secret, read_text
from leaderboard.board import Board
from leaderboard.errors import ConfigError, InputError
from leaderboard.faults import Place, describe, dotted, parse_toml, refuse
from rewards.table import RewardTable, parse_table

FILE_NAME = "finale.toml"
_SERVERS = ("redis", "replica", "postgres", "store")
_MEND = 'mend each where it is named; "finale config check" looks at all of it'
_SCHEMA_HINT = 'run "finale config schema" to see every key'


def load(
    path: Path | None, environ: Mapping[str, str], *, optional: bool = False, servers_only: bool = False
) -> Settings:
    """Return the settings in the file at ``path``, else ``FINALE_CONFIG``, else ``finale.toml`` in this folder.

    ``FINALE_REDIS``, ``FINALE_POSTGRES`` and ``FINALE_STORE`` win over ``[servers]``; each may instead be given as
    ``FINALE_…_FILE``, the name of a file that holds it. ``FINALE_HOME`` is where embedded servers live. An empty
    variable counts as not set. ``optional`` lets that last file be absent: there are then no boards, and no path.
    ``servers_only`` reads nothing but ``[servers]``, so that no fault elsewhere counts.
    Raises ConfigError that tells every fault, and never shows a secret.
    """
    named = path or (Path(environ["FINALE_CONFIG"]) if environ.get("FINALE_CONFIG") else None)
    found = named or Path(FILE_NAME)
    absent = optional and named is None and not found.exists()
    values = {} if absent else parse_toml(_read_config(found), str(found))
    if servers_only:
        values = {name: value for name, value in values.items() if name == "servers"}
    variables = _server_variables(environ)
    if isinstance(values.get("servers", {}), dict):
        values["servers"] = {**values.get("servers", {}), **{name: value for name, (_, value) in variables.items()}}
    parts = segments.of(values.get("board"))
    file = _validated(values, str(found), {name: variable for name, (variable, _) in variables.items()}, parts)
    tables = _checked(file.board, found, cluster=file.servers.cluster)
    return Settings(
        servers=file.servers,
        runner=file.runner,
        boards=file.board,
        tables=tables,
        segments=parts,
        home=default_home(environ),
        path=None if absent else found.absolute(),
    )


def _read_config(path: Path) -> str:
    if not path.exists():
        raise ConfigError(f"there is no configuration at {path}", hint='run "finale init" to write an example')
    try:
        return read_text(path, "")
    except InputError as error:
        another = 'name another with --config or FINALE_CONFIG, or run "finale init" in an empty folder'
        hint = f"{error.hint}; or {another}" if error.hint else another
        raise ConfigError(f"the configuration {error.message}", hint=hint) from None


def _server_variables(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return, for each server that the environment gives, the variable's name and the value."""
    given = {}
    for name in _SERVERS:
        plain, indirect = f"FINALE_{name.upper()}", f"FINALE_{name.upper()}_FILE"
        if environ.get(plain) and environ.get(indirect):
            raise ConfigError(f"{plain} and {indirect} are both set", hint="unset one of them")
        if value := environ.get(plain):
            given[name] = (plain, value)
        elif file := environ.get(indirect):
            given[name] = (indirect, read_secret(indirect, file))
    return given


def _validated(
    values: dict[str, Any], origin: str, variables: Mapping[str, str], parts: Mapping[str, tuple[str, ...]]
) -> File:
    """Return the file's values; a fault of a segment's board is told where a person wrote it, in its table."""
    origins = {board: name for name, boards in parts.items() for board in boards}

    def place(at: Place) -> str:
        if len(at) > 1 and at[0] == "board":
            at = ("board", origins.get(str(at[1]), at[1]), *at[2:])
        if len(at) == 2 and at[0] == "servers" and at[1] in variables:
            return variables[str(at[1])]
        return dotted(at)

    try:
        return File.model_validate(values)
    except ValidationError as error:
        faults = describe(error, File, place=place, hidden=frozenset({"servers"}))
        raise refuse(origin, faults, _SCHEMA_HINT) from None


def _checked(boards: Mapping[str, Board], config: Path, *, cluster: bool) -> dict[str, RewardTable]:
    """Return the reward table of each board that names one; raise one ConfigError for all that is wrong."""
    errors = []
    if faults := check_boards(boards.values(), datetime.now(UTC), cluster=cluster):
        errors.append(refuse(str(config), faults, _MEND))
    tables = {}
    for name, board in boards.items():
        try:
            if board.rewards is not None:
                tables[name] = _reward_table(board.rewards, name, config)
        except ConfigError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ConfigError(f"{config} and its reward tables have faults", detail="\n".join(map(str, errors)), hint=_MEND)
    return tables


def _reward_table(rewards: str, board: str, config: Path) -> RewardTable:
    path = config.parent / rewards
    try:
        text = read_text(path, "name a reward table by its path from the configuration file")
    except InputError as error:
        raise ConfigError(
            f"{config}: board.{board}.rewards = {rewards!r} cannot be read",
            detail=error.message,
            hint=error.hint,
        ) from None
    return parse_table(text, str(path))
