"""The world around a bot on Telegram: people who talk, a model that fails, and a bot that is started and killed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aforesaid
from aforesaid.bots.bot_session import MOST_WAITING
from aforesaid.bots.sending import PendingReply
from aforesaid.domain.scope import direct_thread
from aforesaid.store import open_store
from aforesaid.store.memories import MemoriesOfSpace
from aforesaid.store.people import Marks
from aforesaid.testing import Request, ScriptedModel, faults
from aforesaid.testing.telegram import FakeTelegram, Person
from torture import soak
from torture.support import Figures
from torture.zygote import Zygote

_HOUR = 3600.0
_AHEAD = 100
"""Maximum messages that wait for their answers at a time."""
_TOLD = (
    "(The language model could not answer",
    "(The language model wrote nothing",
    "(My memory cannot be reached",
    "(I was stopped before",
    # What a model says that is slow, but comes to an end.
    "Struck by a fault",
)


class BotWorld:
    """People, their chats, the model, and what they said and heard."""

    def __init__(self, telegram: FakeTelegram, model: ScriptedModel, zygote: Zygote, store: Path, people: int) -> None:
        self.telegram, self.model, self.store = telegram, model, store
        self.figures = Figures("bots", "messages", "commands", "kills", "stops", "faults", "answers", "told", "doubled")
        self.said: dict[tuple[int, int], list[str]] = {}
        """What each person said in each chat, in order."""
        self.allowed: set[str] = set()
        """Answers that were taken in the moment of a kill, and may therefore come twice."""
        self.reminders = 0
        self._people = [Person(10_000 + number, f"P{number}") for number in range(people)]
        self._chance = random.Random(4711)
        self._number = 0
        self._unanswered: Counter[int] = Counter()
        self._answers: set[str] = set()
        self._read = 0
        """How many of the messages that the bot sent are counted."""
        self._zygote = zygote
        self._child = self.pid = 0
        self._options: dict[str, Any] = {}

    def begin(self, seconds: float) -> None:
        """Begin an hour that lasts so many seconds."""
        self._options = {
            "at": time.time(),
            "began": time.time(),
            "speed": _HOUR / seconds,
            "store": str(self.store),
            "url": self.telegram.base_url,
            "token": self.telegram.token,
            "model": self.model.base_url,
            "patience": 10.0,
        }
        self.telegram.clock = soak.clock(self._options)

    async def start(self) -> None:
        """Start the bot."""
        self._child = self._zygote.start("live", **self._options)
        self.pid = (await asyncio.to_thread(self._zygote.expect, self._child, "born"))[2]
        await asyncio.to_thread(self._zygote.expect, self._child, "ready")

    async def stop(self, how: signal.Signals) -> None:
        """Kill the bot, or tell it to end."""
        os.kill(self.pid, how)
        ended = await asyncio.to_thread(self._zygote.expect, self._child, "ended")
        if how == signal.SIGTERM:
            assert ended[2] == 0
            self.figures.add("stops")
            return
        self.figures.add("kills")
        async with aforesaid.connect(self.store, embedder="none") as memory:
            marks = (await memory.store.read(Marks())).items()
            owed = [
                PendingReply(**json.loads(value))
                for name, value in marks
                if name.startswith("bot ") and "done" not in value
            ]
            taken = {sent.text for sent in self.telegram.sent}
            for each in owed:
                space, user, thread = each.address
                if each.command is None:
                    there = memory.user(user, space=space, thread=thread)
                    reply = [m.text for m in await there.history(200, within="thread") if m.id == f"re:{each.id}"]
                    self.allowed.update(text for text in reply if text in taken)
            for reminder in await memory.memories("reminder", space="telegram", limit=500):
                # Sent, but nobody came to say so.
                self.allowed.update({f"⏰ Reminder: {reminder.text}"} & taken)

    async def say(self) -> None:
        """Let somebody say something somewhere, when not too much waits."""
        person = self._chance.choice(self._people)
        self._number += 1
        command = self._number % 100 == 0
        group = -500_000 - person.id % 20 if not command and self._chance.random() < 0.4 else None
        chat = group or person.id
        # A bot does not answer more than it can in one chat: what waits there is counted too.
        await self.telegram.wait_for(lambda: self._waiting().total() < _AHEAD and self._waiting()[chat] < MOST_WAITING)
        self._unanswered[chat] += 1
        if command:
            self.telegram.say(person, f"/remind water plant #{self._number} in 10 minutes")
            self.figures.add("commands")
            return
        text = f"bot, number #{self._number}"
        self.said.setdefault((group or person.id, person.id), []).append(text)
        self.telegram.say(person, text, group=group)
        self.figures.add("messages")
        if self._chance.random() < 0.02:
            self.telegram.replay()

    def trouble(self) -> None:
        """Let the model fail in one of its ways, or recover."""
        kinds = (faults.ServerError(), faults.TooManyRequests(), faults.Garbage(), faults.Resets(), faults.Slow(0.02))
        self.model.fail(self._chance.choice(kinds), times=self._chance.randrange(1, 12))
        self.figures.add("faults")

    async def settle(self) -> None:
        """Wait until everything is answered."""
        self.model.heal()
        await self.telegram.confirmed()
        store = await open_store(self.store)
        while any(
            name.startswith("bot ") and "done" not in value for name, value in (await store.read(Marks())).items()
        ):
            await asyncio.sleep(0.05)
        await store.close()

    def rss(self) -> int:
        """Return how much memory the bot takes."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8"))
        assert found is not None
        return int(found[1]) * 1024

    def _waiting(self) -> Counter[int]:
        """Return how many messages wait for an answer in each chat."""
        for sent in self.telegram.sent[self._read :]:
            if not sent.text.startswith("⏰") and sent.text not in self._answers:
                self._unanswered[sent.chat] -= 1
                self._answers.update({sent.text} if sent.text.startswith("ok #") else ())
        self._read = len(self.telegram.sent)
        return self._unanswered

    async def check(self) -> None:
        """Look at every message and every answer."""
        async with aforesaid.connect(self.store, embedder="none") as memory:
            assert (await memory.verify()).ok
            for (chat, person), said in self.said.items():
                space = "telegram" if chat > 0 else f"telegram:{chat}"
                thread = direct_thread(str(person)) if chat > 0 else str(chat)
                log = await memory.user(person, space=space).history(100_000)
                here = [message for message in log if message.thread == thread]
                assert [message.text for message in here if message.role == "user"] == said
                # What a model that was slow answered is the same each time.
                answered = [message.text for message in here if message.text.startswith("ok #")]
                replies = Counter(answered)
                assert all(number == 1 for number in replies.values())
            reminders = await memory.memories("reminder", space="telegram", active=None, limit=500)
            assert all(each.reason == "delivered" for each in reminders)
            self.reminders = len(reminders)
        self._check_what_was_sent({f"⏰ Reminder: {each.text}" for each in reminders})

    def _check_what_was_sent(self, reminders: set[str]) -> None:
        copies = Counter(sent.text for sent in self.telegram.sent if sent.text.startswith(("ok #", "⏰")))
        doubled = {text for text, number in copies.items() if number > 1}
        assert doubled <= self.allowed
        assert {text for text in copies if text.startswith("⏰")} == reminders
        self.figures.add("doubled", len(doubled))
        for chat in {chat for chat, _ in self.said}:
            here = [sent.text for sent in self.telegram.sent if sent.chat == chat]
            answers = list(dict.fromkeys(int(text[4:]) for text in here if text.startswith("ok #")))
            assert answers == sorted(answers), "they come in the order of the questions"
            told = sum(text.startswith(_TOLD) for text in here)
            asked = sum(len(said) for (where, _), said in self.said.items() if where == chat)
            others = [text for text in here if not text.startswith(("ok #", "⏰", *_TOLD))]
            assert len(answers) + told >= asked, f"everybody gets an answer, or is told that there is none: {others}"
            self.figures.add("answers", len(answers))
            self.figures.add("told", told)


def answer(request: Request) -> str:
    """Answer with the number of the message."""
    return f"ok {re.findall(r'#[0-9]+', request.asked)[-1]}"


async def all_reminded(world: BotWorld) -> None:
    """Wait until every reminder was sent."""
    store = await open_store(world.store)
    while await store.read(MemoriesOfSpace("telegram", category="reminder", active=True)):
        await asyncio.sleep(0.1)
    await store.close()
