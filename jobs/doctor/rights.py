"""The least that Finale needs of each server for this configuration, as lines to be run there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from config.settings import Settings
from leaderboard.board import Board
from leaderboard.keys import SHARD, hashed_part, with_shard
from ledger.rights import grants
from live.inspection import FORMS, OPTIONAL, STREAM_FORMS

USER = "finale"
_FIELD = re.compile(r"<[^<>]*>")
_SPECIAL = re.compile(r"([*?\[\]\\])")
_CLUSTER = ("+cluster|slots", "+command")
_STARTING = ("+hello", "+auth", "+select", "+client|setname")


@dataclass(frozen=True, slots=True)
class Rights:
    """``redis``: one line of ACL SETUSER; ``postgres``: statements; ``store``: a policy as JSON, or words."""

    redis: str
    postgres: list[str]
    store: str


def least(settings: Settings, boards: Iterable[Board]) -> Rights:
    """Return the rights that a season of ``boards`` needs, from its opening until it is cleaned."""
    boards = list(boards)
    return Rights(_redis(settings, boards), _postgres(settings), _store(settings.store))


def _redis(settings: Settings, boards: list[Board]) -> str:
    streams = any(board.deliver.to == "stream" for board in boards)
    forms = [*FORMS, *(STREAM_FORMS if streams else ()), OPTIONAL]
    commands = dict.fromkeys(_right(form) for form in forms)
    keys = dict.fromkeys(f"~{pattern}" for board in boards for pattern in patterns(board))
    extra = _CLUSTER if settings.servers.cluster else ()
    words = ["ACL SETUSER", USER, "reset", "on", ">PASSWORD", *keys, "-@all", *_STARTING, *extra, *commands]
    return " ".join(_quoted(word) for word in words)


def _right(form: tuple[str, ...]) -> str:
    name = form[0].lower()
    return f"+{name}|{form[1].lower()}" if name in ("client", "config") else f"+{name}"


def patterns(board: Board) -> list[str]:
    """Return the globs that fit a board's live keys, all that stands beside them, its current key and its stream."""
    template = board.key.replace("<board>", board.name)
    key = with_shard(template) if board.shards.number > 1 else template
    tagged = key if hashed_part(key) != key else f"{{{key}}}"
    found = [key]
    if board.current_key is not None:
        found.append(board.current_key.replace("<board>", board.name))
    if board.deliver.to == "stream":
        found.append(board.deliver.stream_key(board.name, "<season>"))
    first, *rest = map(_glob, found)
    return [first, f"{_glob(tagged)}:finale:*", *rest]


def _glob(name: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", name).replace(SHARD, "*")
    return _FIELD.sub("*", escaped)


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word and not word.startswith("ACL") else word


def _postgres(settings: Settings) -> list[str]:
    url = settings.servers.postgres.get_secret_value() if settings.servers.postgres else ""
    database = unquote(urlsplit(url).path.strip("/")) or "finale"
    return [f"create role {USER} login password 'PASSWORD';", *grants(USER, database)]


def _store(url: str) -> str:
    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    where = f"{prefix}/" if prefix else ""
    if parts.scheme == "s3":
        return json.dumps(policy(parts.netloc, where), indent=2)
    if parts.scheme == "gs":
        return (
            f"on bucket {parts.netloc}, for objects below {where or 'it'}: storage.objects.create, .get, .list, "
            "and .delete below staging/ and facts/ (finale archive sweep removes what no seal names)"
        )
    if parts.scheme == "az":
        return f"on container {parts.netloc}: read, create, list, and delete (Storage Blob Data Contributor)"
    return f"the user that runs Finale reads and writes {unquote(parts.path)}"


def policy(bucket: str, prefix: str) -> dict[str, object]:
    """Return a policy of IAM for S3: list, read and put below ``prefix`` (with its last slash), delete to sweep."""
    arn = f"arn:aws:s3:::{bucket}"
    return {
        "Version": "2012-10-17",
        "Statement": [
            # Without a condition: one on s3:prefix makes S3 answer 403 instead of 404 where there is no object.
            {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": arn},
            {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": f"{arn}/{prefix}*"},
            {
                "Effect": "Allow",
                "Action": "s3:DeleteObject",
                "Resource": [f"{arn}/{prefix}staging/*", f"{arn}/{prefix}facts/*"],
            },
        ],
    }
