"""Random lives of a store, with erasures among them: what was erased is in no row and no file, and stays away.

Messages are added, edited, taken back, summarised, rolled back and learned from, by one or two opened memories, and
erasures run beside the upkeep of the other. Each message has a word of its own, so that every byte can be searched for
it. With `--torture`, 500 sequences for each store.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from typing import Final

import psycopg
import pytest

from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import purged_by
from aforesaid.errors import NotFound, SourcesChanged, WrongState
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.chat import Answer, Reply, Said
from aforesaid.settings import Operation, Settings
from digesting import Scribe, Shape, remembering
from making import minutes
from pg import clean_database
from torture.support import Figures, Size

USERS: Final = ("ann", "bob", "cem")
THREADS: Final = (None, "general")
PROFILES: Final = ("archive", "session", "community", "account")
STATEMENTS: Final = (
    "I live in {} now.",
    "My sister is called {}.",
    "I am allergic to {}.",
    "Please always answer with {}.",
    "{} is what we talked about at the office.",
    "Remember that the code of my door is {}.",
)
LOST_RACES: Final = (NotFound, SourcesChanged, WrongState)
"""What a request may raise when somebody else was faster. Upkeep, erasures and purges raise none of them."""
_WORD: Final = re.compile(r"zq[bdfgkmptvz]{7}")


class Echo(Scribe):
    """A model whose summaries hold every word that it was shown."""

    async def text(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        characters: int | None = None,
    ) -> Reply:
        del operation, scope, characters
        shown = " ".join(message.content for message in messages)
        return Reply(" ".join(dict.fromkeys(_WORD.findall(shown))) or "Nothing.", "test:echo", 10, 5)

    async def structure(
        self, operation: Operation, messages: Sequence[Said], shape: type[Shape], *, scope: Scope | None = None
    ) -> Answer[Shape]:
        said = (await self.text(operation, messages, scope=scope)).text
        history = {"summary": said, "topics": said.split()[:10], "preferences": [], "style": "", "items": []}
        return Answer(shape.model_validate(history), "test:echo", 10, 5)

    def has(self, operation: Operation) -> bool:
        return operation == "summarize"


class Life:
    """One sequence of operations on a store, and what must be gone at its end."""

    def __init__(self, chance: Random, memories: Sequence[Memory], folder: Path | None) -> None:
        """Use memories of one store; backups go into a folder, if there is one."""
        self.chance = chance
        self.memories = memories
        self.folder = folder
        self.said: dict[str, Message] = {}
        """The words of messages, each with the message."""
        self.erased: set[str] = set()
        self.purged: set[str] = set()
        self.erasures = self.backups = 0

    @property
    def memory(self) -> Memory:
        return self.chance.choice(self.memories)

    def someone(self) -> UserMemory:
        return self.memory.user(self.chance.choice(USERS), thread=self.chance.choice(THREADS))

    def word(self) -> str:
        number, letters = len(self.said), ""
        for _ in range(7):
            number, letter = divmod(number, 10)
            letters += "bdfgkmptvz"[letter]
        return f"zq{letters}"

    async def step(self) -> None:
        """Do something; what is lost to the other memory is no failure."""
        operation = self.chance.choices(
            (self.add, self.edit, self.take_back, self.summarise, self.roll_back, self.correct, self.look, self.upkeep)
            + (self.back_up, self.erase, self.purge),
            (30, 6, 4, 8, 8, 3, 5, 8, 1, 8, 3),
        )[0]
        with suppress(*LOST_RACES):
            await operation()

    async def add(self) -> None:
        someone, word = self.someone(), self.word()
        # In a direct chat, what the other one says belongs to the user, too.
        author = self.chance.choice((None, None, *USERS))
        text = self.chance.choice(STATEMENTS).format(word)
        parts = [{"type": "file", "name": "a.txt", "data": word.encode()}] if self.chance.random() < 0.1 else []
        self.said[word] = (
            await someone.add("user", text, author=author, at=minutes(7 * len(self.said)), parts=parts)
        ).message
        self.purged -= {someone.scope.user}

    def some_message(self) -> Message:
        known = [message for word, message in self.said.items() if word not in self.erased]
        if not known:
            raise NotFound("nothing was said")
        return self.chance.choice(known)

    async def edit(self) -> None:
        before, word = self.some_message(), self.word()
        text = self.chance.choice(STATEMENTS).format(word)
        self.said[word] = (await self.memory.user(before.user).edit(before.seq, text)).message

    async def take_back(self) -> None:
        message = self.some_message()
        await self.memory.user(message.user).take_back(message.seq)

    async def summarise(self) -> None:
        await self.someone().summarize()

    async def some_summary(self, *, active: bool | None = True) -> tuple[UserMemory, int, str]:
        someone = self.someone()
        found = await someone.summaries(active=active, every_thread=True)
        if not found:
            raise NotFound("there is no summary")
        summary = self.chance.choice(found)
        return someone, summary.id, summary.text

    async def roll_back(self) -> None:
        someone, number, _ = await self.some_summary()
        await someone.roll_back(number)

    async def correct(self) -> None:
        someone, number, text = await self.some_summary()
        await someone.edit_summary(number, f"{text} As corrected.")

    async def look(self) -> None:
        someone = self.someone()
        await someone.preferences()
        await someone.context("What is my code?", budget=500)
        await someone.portrait()

    async def upkeep(self) -> None:
        assert (await self.memory.upkeep()).error is None

    async def back_up(self) -> None:
        if self.folder is not None:
            self.backups += 1
            await self.memory.backup(self.folder / f"backup-{self.backups}")

    async def erase(self) -> None:
        message = self.some_message()
        versions = {word for word, each in self.said.items() if self.root(each) == self.root(message)}
        await self.beside_upkeep(self.memory.user(message.user).erase(message.seq))
        self.erased |= versions
        self.erasures += 1

    async def purge(self) -> None:
        user = self.chance.choice(USERS)
        await self.beside_upkeep(self.memory.purge(user))
        gone = {word for word, each in self.said.items() if purged_by(user, each.user, each.author, each.role)}
        self.erased |= gone
        self.purged.add(user)
        self.erasures += 1

    def root(self, message: Message) -> int:
        """Return the number of the first version of a message."""
        by_seq = {each.seq: each for each in self.said.values()}
        while message.replaces in by_seq:
            message = by_seq[message.replaces]
        return message.seq

    async def beside_upkeep(self, erasing: object) -> None:
        """Erase while other work runs. No part of it may fail."""
        work = [self.memory.upkeep()] if self.chance.random() < 0.7 else []
        look = [self.look()] if self.chance.random() < 0.3 else []
        done = await asyncio.gather(erasing, *work, *look, return_exceptions=True)  # type: ignore[call-overload]
        for result in done[1 : 1 + len(work)]:
            assert not isinstance(result, BaseException), repr(result)
            assert result.error is None
        if isinstance(done[0], BaseException):
            raise done[0]


def found_in_files(folder: Path, words: set[str]) -> list[str]:
    return [
        f"{word} in {path.relative_to(folder)}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for word in words.intersection(_WORD.findall(path.read_bytes().decode("latin-1").lower()))
    ]


def found_in_tables(dsn: str, words: set[str]) -> list[str]:
    found = []
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT set_config('aforesaid.reach', 'all', false)")
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        for (table,) in connection.execute(query).fetchall():
            for (row,) in connection.execute(f"SELECT t::text FROM {table} t"):
                found += [f"{word} in {table}: {row}" for word in words.intersection(_WORD.findall(row.lower()))]
    return found


async def live(kind: str, place: str, home: Path, chance: Random, figures: Figures) -> None:
    """Open a store, live through a sequence, and check what is left, also after more upkeep and a reopening."""
    profile, settings = chance.choice(PROFILES), Settings(background=False)
    shared = kind in ("sqlite", "postgres")

    def left(life: Life) -> list[str]:
        return found_in_tables(place, life.erased) if kind == "postgres" else found_in_files(home, life.erased)

    async with AsyncExitStack() as stack:
        memories = [
            await stack.enter_async_context(remembering(place, profile, chat=chat, settings=settings))
            for chat in ([None, Echo()] if shared else [chance.choice((None, Echo()))])
        ]
        life = Life(chance, memories, None if kind == "postgres" else home.parent)
        for _ in range(chance.randint(15, 40)):
            await life.step()
        assert left(life) == []
        for memory in memories:
            await life.upkeep()
            found = await memory.verify()
            assert found.ok, found
        assert left(life) == []
    assert left(life) == []
    async with remembering(place, profile, chat=None, settings=settings) as memory:
        await memory.upkeep()
        assert (await memory.verify()).ok
        assert left(life) == []
        assert life.purged.isdisjoint(user.id for user in await memory.users())
    assert left(life) == []
    figures.add("sequences")
    figures.add("messages", len(life.said))
    figures.add("erasures", life.erasures)
    figures.add("erased words", len(life.erased))


@pytest.mark.timeout(14_400)
@pytest.mark.defect("W1", "W3")
@pytest.mark.req("G17")
@pytest.mark.parametrize("kind", ["sqlite", "json", "files", "postgres"])
async def test_nothing_of_what_was_erased_is_left_or_returns(kind: str, arena: Path, size: Size) -> None:
    figures = Figures(f"erasures in random lives under {kind}", "sequences", "messages", "erasures", "erased words")
    for seed in range(size.of(small=3, full=500)):
        home = arena / f"{seed}" / "home"
        home.mkdir(parents=True)
        place = clean_database() if kind == "postgres" else f"{kind}:{home / 'memory'}"
        try:
            await live(kind, place, home, Random(f"{kind} {seed}"), figures)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(home.parent)
    figures.show()
