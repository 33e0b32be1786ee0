"""Days in Chinese and Japanese, whose words are not spaced."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from aforesaid.text.times.days import (
    Days,
    Direction,
    Which,
    day_of_month,
    month_named,
    shifted,
    step,
    weekday,
)
from aforesaid.text.times.number_words import CHINESE_NUMBER, east_asian_number
from aforesaid.text.times.time_words import (
    CHINESE_WEEKDAYS,
    EAST_ASIAN_DAYS,
    JAPANESE_WEEKDAYS,
)
from aforesaid.text.times.western import Resolve, Rules

_NUMBER: Final = rf"\d{{1,3}}|{CHINESE_NUMBER}"
_WHICH: Final[dict[str, Which]] = {
    "下": "next", "上": "last", "这": "this", "本": "this", "来": "next", "先": "last", "今": "this",
    "明": "next", "去": "last", "昨": "last",
}  # fmt: skip
_DAYS: Final = EAST_ASIAN_DAYS["chinese"] | EAST_ASIAN_DAYS["japanese"]
_UNITS: Final = {
    "天": "day", "日": "day", "周": "week", "星期": "week", "週間": "week", "个月": "month", "か月": "month",
    "ヶ月": "month", "年": "year",
}  # fmt: skip


def _full(match: re.Match[str], today: date, towards: Direction) -> Days | None:
    year = int(match["year"]) if match["year"] else None
    month = east_asian_number(match["month"])
    if match["day"]:
        return day_of_month(today, month, east_asian_number(match["day"]), year, towards)
    return month_named(today, month, year, "any", towards)


def _counted(match: re.Match[str], today: date, _towards: Direction) -> Days | None:
    return shifted(today, _DAYS[match[0]], "day")


def _amounts(match: re.Match[str], today: date, _towards: Direction) -> Days | None:
    sign = -1 if match["side"] == "前" else 1
    return shifted(today, sign * east_asian_number(match["number"]), _UNITS[match["unit"]])


def _weekdays(names: str) -> Resolve:
    def resolve(match: re.Match[str], today: date, towards: Direction) -> Days | None:
        which: Which = _WHICH[match["which"]] if match["which"] else "any"
        return weekday(today, names.index(match["weekday"].replace("天", "日")), which, towards)

    return resolve


def _whole(match: re.Match[str], today: date, _towards: Direction) -> Days | None:
    which = _WHICH[match["which"]]
    unit = "month" if match["unit"].endswith("月") else "year" if match["unit"] == "年" else "week"
    days = shifted(today, step(which), "weekend" if match["end"] else unit)
    return None if days is None else days._replace(exact=None)


_FULL: Final = re.compile(
    rf"(?:(?P<year>\d{{4}})年)?(?P<month>\d{{1,2}}|{CHINESE_NUMBER})月(?:(?P<day>{_NUMBER})[日号號])?"
)
_ISO: Final = re.compile(r"(?<!\d)(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)")
EAST_ASIAN: Final[Rules] = (
    (_ISO, _full),
    (re.compile(rf"(?P<number>{_NUMBER})个?(?P<unit>{'|'.join(_UNITS)})(?:之|以)?(?P<side>前|后|後)"), _amounts),
    (
        re.compile(r"(?:(?P<which>[上下这本])个?)?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])"),
        _weekdays(CHINESE_WEEKDAYS),
    ),
    (re.compile(r"(?:(?P<which>[来先今])週の?)?(?P<weekday>[月火水木金土日])曜日?"), _weekdays(JAPANESE_WEEKDAYS)),
    (_FULL, _full),
    (re.compile("|".join(_DAYS)), _counted),
    (re.compile(r"(?P<which>[上下这本])个?(?P<unit>周|星期|礼拜|月)(?P<end>末)?"), _whole),
    (re.compile(r"(?P<which>[来先今])(?P<unit>週|月)(?P<end>末)?"), _whole),
    (re.compile(r"(?P<which>[去昨今明来])(?P<unit>年)(?P<end>(?!))?"), _whole),
)
"""Both languages at once: a few characters do not tell which it is, and they do not contradict each other."""
