"""The fixed texts of bots and commands in each language, and which language somebody is answered in.

Each language has a file here, with the same keys and placeholders as `en.toml`. A list holds one text for each plural
form, and is chosen by the value `count`.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Self

from cachetools import LRUCache

from aforesaid.assistant.wishes import greeting_languages
from aforesaid.domain.checks import Within
from aforesaid.domain.scope import is_direct
from aforesaid.errors import StoreError
from aforesaid.text.languages import CODES, language_told
from aforesaid.text.plurals import PLURALS
from aforesaid.text.words import fold

if TYPE_CHECKING:
    from aforesaid.memory import UserMemory

_log: Final = logging.getLogger("aforesaid.assistant")
ENGLISH: Final = "en"
LANGUAGE: Final = "language"


class Phrases:
    """The texts of a language: `phrases("reminder.due", what="call mum")`."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.language = next(name for name, known in CODES.items() if known == code)
        path = files("aforesaid.assistant") / "phrases" / f"{code}.toml"
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        self._thousands: str = data["thousands"]
        self._form = PLURALS[data["plural"]][1]
        self.dates: Mapping[str, Any] = data["dates"]
        self.texts: dict[str, str | list[str]] = dict(_flat(data))

    @classmethod
    @cache
    def of(cls, code: str) -> Self:
        return cls(code)

    def __contains__(self, key: str) -> bool:
        return key in self.texts

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its placeholders filled in. Whole numbers get separators between thousands."""
        text = self.texts[key]
        if isinstance(text, list):
            text = text[self._form(int(str(values["count"])))]
        return text.format(**{name: self._written(value) for name, value in values.items()})

    def day(self, at: date) -> str:
        """Write a day, as in "5 March 2026"."""
        return self._dated("date", at)

    def moment(self, at: datetime) -> str:
        """Write a moment, as in "Thursday, 5 March 2026 at 09:00"."""
        return self._dated("moment", at)

    def moment_in_list(self, at: datetime) -> str:
        """Write a moment shorter, as in "Thu 5 Mar 2026, 09:00"."""
        return self._dated("short", at)

    def weekday_and_time(self, at: datetime) -> str:
        return self._dated("weekday_time", at)

    def weekday(self, at: date) -> str:
        return str(self.dates["weekdays"][at.weekday()])

    def _dated(self, form: str, at: date) -> str:
        return str(
            self.dates[form].format(
                weekday=self.dates["weekdays"][at.weekday()],
                day=at.day,
                month=self.dates["months"][at.month - 1],
                number=at.month,
                year=at.year,
                time=f"{at:%H:%M}",
            )
        )

    def _written(self, value: object) -> object:
        return f"{value:,}".replace(",", self._thousands) if isinstance(value, int) else value


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str | list[str]]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            if key != "dates":
                yield from _flat(value, f"{before}{key}.")
        elif before or key not in {"plural", "thousands"}:
            yield f"{before}{key}", value


@cache
def offered() -> tuple[str, ...]:
    """Return the codes of all languages that have a file."""
    folder = files("aforesaid.assistant") / "phrases"
    return tuple(sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".toml")))


@cache
def accepted_words(key: str) -> frozenset[str]:
    """Return what somebody may type for one of the texts with alternatives, in any language, folded."""
    return frozenset(fold(word) for code in offered() for word in str(Phrases.of(code).texts[key]).split("|"))


_MOST_CHATS: Final = 10_000
_LOOKED_AT: Final = 20
"""Number of earlier messages that may tell the language of a person or a chat."""


class ChatLanguages:
    """Knows the language of each person in each chat.

    It is that of what they say. Where a message is too short to tell, it is what they wrote before, else what others
    wrote in the chat, else that of their greeting ("Ciao"), else of their app, else the setting `language`, else
    English.
    """

    def __init__(self) -> None:
        self._known: LRUCache[tuple[str, str, str], str | None] = LRUCache(_MOST_CHATS)
        """Languages by space, thread and person. None: nothing that was said there tells it."""
        self._apps: LRUCache[tuple[str, str], str] = LRUCache(_MOST_CHATS)
        """Codes of the languages of people's apps, by space and person."""
        self._greeted: LRUCache[tuple[str, str], str] = LRUCache(_MOST_CHATS)
        """Codes of the languages in which people greeted."""

    def hear(self, user: UserMemory, text: str, app: str | None = None) -> None:
        """Note the language of what a person said, and of their app: a tag such as `pt-BR`."""
        scope = user.scope
        person = scope.space, scope.user
        code = (app or "").partition("-")[0].lower()
        if code in offered():
            self._apps[person] = code
        greeted = [CODES[language] for language in greeting_languages(text)]
        # "Hi" and "ok" are said in many languages.
        if greeted and ENGLISH not in greeted:
            self._greeted[person] = self._apps[person] if self._apps.get(person) in greeted else greeted[0]
        for who in (scope.user, ""):
            place = (scope.space, scope.thread, who)
            if (told := language_told(text, self._known.get(place))) is not None:
                self._known[place] = told

    async def of(self, user: UserMemory, text: str = "") -> Phrases:
        """Return the texts in the language of a person in their chat, who just said `text`.

        While the store cannot be read, what is known without it counts.
        """
        self.hear(user, text)
        scope = user.scope
        try:
            found = await self._said(user, scope.user, "user")
            if found is None and not is_direct(scope.thread):
                found = await self._said(user, "", "thread")
            code = None if found is None else CODES[found]
            person = scope.space, scope.user
            code = code or self._greeted.get(person) or self._apps.get(person)
            code = code or str((await user.settings()).get(LANGUAGE) or ENGLISH)
        except StoreError as error:
            _log.debug("the language of a chat cannot be read: %s", error)
            code = self._apps.get((scope.space, scope.user), ENGLISH)
        return Phrases.of(code if code in offered() else ENGLISH)

    async def _said(self, user: UserMemory, who: str, within: Within) -> str | None:
        """Return the language of what a person said, or everybody in a thread; None if that does not tell it."""
        place = (user.scope.space, user.scope.thread, who)
        if place not in self._known:
            told: str | None = None
            for message in await user.history(_LOOKED_AT, role="user", within=within):
                told = language_told(message.text, told) or told
            self._known[place] = told
        return self._known[place]
