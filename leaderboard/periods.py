"""Periods: days, weeks, months, quarters and years, or several of one, as numbered runs of local dates.

Dates only; a time zone has no part in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, get_args

Unit = Literal["day", "week", "month", "quarter", "year"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_EVERY = re.compile(r"(?:([1-9][0-9]{0,2})\s+)?(day|week|month|quarter|year)s?")
_A_MONDAY = date(1970, 1, 5)
_A_NEW_YEAR = date(1970, 1, 1)
_IDS = {
    "day": re.compile(r"s([0-9]{4})([0-9]{2})([0-9]{2})"),
    "week": re.compile(r"s([0-9]{4})w([0-9]{2})"),
    "month": re.compile(r"s([0-9]{4})m([0-9]{2})"),
    "quarter": re.compile(r"s([0-9]{4})q([1-4])"),
    "year": re.compile(r"s([0-9]{4})"),
}


@dataclass(frozen=True, slots=True)
class Period:
    """``count`` units on end, repeated before and after ``anchor``, the first date of number 0."""

    unit: Unit
    count: int
    anchor: date

    def number(self, day: date) -> int:
        """Return the number of the repetition in which ``day`` lies."""
        if self.unit in _DAYS:
            return (day - self.anchor).days // (_DAYS[self.unit] * self.count)
        return (_months(day) - _months(self.anchor)) // (_MONTHS[self.unit] * self.count)

    def first_day(self, number: int) -> date:
        """Return the first date of a repetition. Raises OverflowError outside the years 1 to 9999."""
        if self.unit in _DAYS:
            return self.anchor + timedelta(days=number * _DAYS[self.unit] * self.count)
        year, month = divmod(_months(self.anchor) + number * _MONTHS[self.unit] * self.count, 12)
        if not date.min.year <= year <= date.max.year:
            raise OverflowError(f"the year {year} is outside the calendar")
        return date(year, month + 1, 1)

    def id(self, number: int) -> str:
        """Return the season id of a repetition, named after its first date: ``s2026``, ``s2026w49`` (ISO week) …"""
        day = self.first_day(number)
        match self.unit:
            case "day":
                return f"s{day.year:04}{day.month:02}{day.day:02}"
            case "week":
                year, week, _ = day.isocalendar()
                return f"s{year:04}w{week:02}"
            case "month":
                return f"s{day.year:04}m{day.month:02}"
            case "quarter":
                return f"s{day.year:04}q{(day.month + 2) // 3}"
            case "year":
                return f"s{day.year:04}"

    def find(self, season: str) -> int | None:
        """Return the number of the repetition that has the id ``season``; None if none has it."""
        match = _IDS[self.unit].fullmatch(season)
        if match is None:
            return None
        try:
            number = self.number(self._date(*map(int, match.groups())))
            return number if self.id(number) == season else None
        except (ValueError, OverflowError):
            return None

    def _date(self, year: int, second: int = 1, day: int = 1) -> date:
        if self.unit == "week":
            return date.fromisocalendar(year, second, self.anchor.isoweekday())
        return date(year, second * 3 - 2 if self.unit == "quarter" else second, day)


def parse_every(text: str) -> tuple[int, Unit]:
    """Return how many of which unit ``[N ]day|week|month|quarter|year`` says; raise ValueError otherwise."""
    match = _EVERY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no period; write day, week, month, quarter or year, or several: 3 weeks")
    unit: Unit = match.group(2)  # type: ignore[assignment]  # the pattern lets nothing else through
    return int(match.group(1) or 1), unit


def repeated(every: str, anchor: date | None, starts_on: Weekday | None) -> Period:
    """Return the period that ``every`` says, begun at ``anchor``; raise ValueError where the three do not agree.

    Without an anchor single weeks start on ``starts_on`` (Monday by default), and with one on its weekday.
    """
    count, unit = parse_every(every)
    if starts_on is not None and unit != "week":
        raise ValueError(f'starts_on = "{starts_on}" is for weeks, not for every = "{every}"')
    if anchor is None:
        if count > 1:
            raise ValueError(f'every = "{every}" needs an anchor: a local date on which a season starts')
        return Period(unit, count, _first(unit, starts_on))
    if starts_on is not None and WEEKDAYS[anchor.weekday()] != starts_on:
        raise ValueError(f'anchor = {anchor} is a {WEEKDAYS[anchor.weekday()]}, but starts_on = "{starts_on}"')
    if unit in _MONTHS and (anchor.day != 1 or (anchor.month - 1) % _MONTHS[unit]):
        raise ValueError(f"anchor = {anchor} is not the first day of a {unit}")
    return Period(unit, count, anchor)


def _first(unit: Unit, starts_on: Weekday | None) -> date:
    if unit == "week":
        return _A_MONDAY + timedelta(days=WEEKDAYS.index(starts_on or "monday"))
    return _A_NEW_YEAR


def _months(day: date) -> int:
    return day.year * 12 + day.month - 1
