"""Where everything lies in the store: paths from checked names, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass

from leaderboard.errors import ConfigError, InputError
from leaderboard.names import check_name

Kind = str  #: "standings", "grants", or "correction-0001" and so on
KINDS: tuple[Kind, ...] = ("standings", "grants")
PLACES = (*KINDS, "corrections")  #: the folders that readers glob

_ATTEMPT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_PART = re.compile(r"part-(\d{5})\.parquet")
_PUBLISHED = re.compile(r"(standings|grants)/board=([^/]+)/season=([^/]+)/([^/]+)")
_CORRECTED = re.compile(r"corrections/board=([^/]+)/season=([^/]+)/n=(\d{4,9})/([^/]+)")
_STAGED = re.compile(r"staging/([^/]+)/([^/]+)/([^/]+)/([^/]+)")
_CORRECTION = re.compile(r"correction-(\d{4,9})")
_SEAL = re.compile(rf"seals/([^/]+)/([^/]+)/(standings|grants|{_CORRECTION.pattern})\.json")
_REPORT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\.(json|parquet)")
_FACTS = re.compile(r"facts/board=([^/]+)/season=([^/]+)/([a-z][a-z_]{0,30}-[0-9a-f]{16}\.parquet)")
_RESULTS_SEAL = re.compile(r"seals/([^/]+)/([^/]+)/results\.json")
_RESULTS = re.compile(r"results/board=([^/]+)/season=([^/]+)/([^/]+)")
_MOST_PARTS = 100_000


@dataclass(frozen=True, slots=True)
class PartPlace:
    """A part's path taken apart: published under ``kind``, or staged by ``attempt`` (then ``kind`` is None)."""

    board: str
    season: str
    number: int
    kind: Kind | None = None
    attempt: str | None = None


@dataclass(frozen=True, slots=True)
class FactsPlace:
    """The path of a file of facts taken apart."""

    board: str
    season: str
    name: str


@dataclass(frozen=True, slots=True)
class SealPlace:
    """A seal's path taken apart."""

    board: str
    season: str
    kind: Kind


def part_name(number: int) -> str:
    """Return the file name of the part ``number``, counted from 0."""
    if not 0 <= number < _MOST_PARTS:
        raise InputError(f"part {number:,}: a season can have {_MOST_PARTS:,} parts", hint="write larger parts")
    return f"part-{number:05d}.parquet"


def part_number(name: str) -> int | None:
    """Return the number in a part's file name; None for any other name."""
    match = _PART.fullmatch(name)
    return int(match.group(1)) if match else None


def check_attempt(attempt: str) -> str:
    """Return ``attempt`` if it may name a staging folder; raise InputError otherwise."""
    if not _ATTEMPT.fullmatch(attempt):
        raise InputError(f"{attempt!r} cannot name an attempt", hint="use up to 63 of a-z, 0-9 and -")
    return attempt


def correction_kind(number: int) -> Kind:
    """Return the kind of a season's correction ``number``, counted from 1."""
    if number < 1:
        raise InputError(f"there is no correction {number}", hint="they are counted from 1")
    return f"correction-{number:04d}"


def correction_number(kind: Kind) -> int | None:
    """Return the number of a correction's kind; None for any other."""
    match = _CORRECTION.fullmatch(kind)
    number = int(match.group(1)) if match else 0
    return number if number and correction_kind(number) == kind else None


def kind_order(kind: Kind) -> int:
    """Return where a kind stands among a season's: standings, grants, corrections by number."""
    return KINDS.index(kind) if kind in KINDS else len(KINDS) + (correction_number(kind) or 0)


def published_dir(board: str, season: str, kind: Kind) -> str:
    """Return the folder that readers glob for one season's ``kind``."""
    if number := correction_number(kind):
        return f"{published_dir(board, season, 'corrections')}/n={number:04d}"
    return f"{kind}/board={check_name(board, 'board')}/season={check_name(season, 'season')}"


def facts_dir(board: str, season: str) -> str:
    """Return the folder of the outside facts that a season's grants were computed with."""
    return f"facts/board={check_name(board, 'board')}/season={check_name(season, 'season')}"


def seal_path(board: str, season: str, kind: Kind) -> str:
    """Return the path of the seal, the commit point of a season's standings or grants."""
    return f"{seals_dir(board)}/{check_name(season, 'season')}/{kind}.json"


def seals_dir(board: str) -> str:
    """Return the folder of all seals of a board."""
    return f"seals/{check_name(board, 'board')}"


def staging_dir(board: str, season: str, attempt: str) -> str:
    """Return the folder of one attempt's staged parts, which no reader globs."""
    return f"{season_staging_dir(board, season)}/{check_attempt(attempt)}"


def season_staging_dir(board: str, season: str) -> str:
    """Return the folder of all staged parts of a season."""
    return f"staging/{check_name(board, 'board')}/{check_name(season, 'season')}"


def report_path(board: str, season: str, name: str) -> str:
    """Return the path of a report about a season; ``name`` is a file name such as ``drift-f3.json``."""
    if not _REPORT.fullmatch(name):
        raise InputError(f"{name!r} cannot name a report")
    return f"reports/{check_name(board, 'board')}/{check_name(season, 'season')}/{name}"


def parse_part(path: str) -> PartPlace | None:
    """Return what ``path`` names if it is a published or staged part; None for anything else."""
    if match := _PUBLISHED.fullmatch(path):
        kind, board, season, name = match.groups()
        place = PartPlace(board, season, _number(name), kind=kind)
    elif match := _CORRECTED.fullmatch(path):
        board, season, number, name = match.groups()
        place = PartPlace(board, season, _number(name), kind=f"correction-{number}")
        if correction_number(place.kind or "") is None:
            return None
    elif match := _STAGED.fullmatch(path):
        board, season, attempt, name = match.groups()
        place = PartPlace(board, season, _number(name), attempt=attempt)
        if not _ATTEMPT.fullmatch(attempt):
            return None
    else:
        return None
    return place if place.number >= 0 and _named(board, season) else None


def parse_facts(path: str) -> FactsPlace | None:
    """Return what ``path`` names if it is a file of facts; None for anything else."""
    match = _FACTS.fullmatch(path)
    return FactsPlace(*match.groups()) if match and _named(match.group(1), match.group(2)) else None


def parse_seal(path: str) -> SealPlace | None:
    """Return what ``path`` names if it is the path of a seal; None for anything else."""
    match = _SEAL.fullmatch(path)
    if not match or not _named(match.group(1), match.group(2)):
        return None
    kind = match.group(3)
    if kind not in KINDS and correction_number(kind) is None:
        return None
    return SealPlace(match.group(1), match.group(2), kind)


def parse_results(path: str) -> tuple[str, str] | None:
    """Return board and season of a seal of results, or of a part of them; None for any other path."""
    match = _RESULTS_SEAL.fullmatch(path)
    if match is None and (match := _RESULTS.fullmatch(path)) and part_number(match.group(3)) is None:
        return None
    return (match.group(1), match.group(2)) if match and _named(match.group(1), match.group(2)) else None


def _number(name: str) -> int:
    number = part_number(name)
    return -1 if number is None else number


def _named(board: str, season: str) -> bool:
    try:
        check_name(board, "board")
        check_name(season, "season")
    except ConfigError:
        return False
    return True
