"""Remember and forget single facts on request: in the text of facts, and in the memories."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal
from weakref import WeakValueDictionary

from aforesaid.domain.checks import Category, moment, now, to_zone
from aforesaid.domain.memory import FORGOTTEN, INSTRUCTION, Facts, MemoryDraft, MemoryRecord, Superseded
from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelError, SourcesChanged, quoted
from aforesaid.facts.admission import reads_like_an_order, sensitive, states, suspicion, tampered
from aforesaid.facts.candidate import DATED, event_in
from aforesaid.facts.describing import asked_for
from aforesaid.facts.people import Person, folded_name, is_about, people_in, person_called, subject_of
from aforesaid.facts.statement import contradicts, says_the_same
from aforesaid.facts.timeline import zone_of
from aforesaid.facts.timing import timing
from aforesaid.facts.values import names as names_value
from aforesaid.models.offline import (
    Spoken,
    begins_with_verb,
    extract,
    forget_fact,
    merge_fact,
    standing_request,
    topic_of,
)
from aforesaid.models.offline.memories.keys import claim_of
from aforesaid.models.prompts import load_prompt, strip_invisible
from aforesaid.profiles import Profile
from aforesaid.store import Store
from aforesaid.store.memories import (
    AddMemory,
    ChangeMemory,
    Forget,
    Memories,
    MemoriesOfSubject,
    NewestFacts,
    PutFacts,
)
from aforesaid.store.messages import Messages
from aforesaid.store.operations import Change
from aforesaid.store.searches import SearchMemories
from aforesaid.text.languages import guess_language, query_words
from aforesaid.text.sentences import split_sentences
from aforesaid.text.words import fold, words_of

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat

_log: Final = logging.getLogger("aforesaid.facts")

_STATED_IMPORTANCE: Final = 8
"""Importance of what a user explicitly asks to remember."""
_MOST_ALIKE: Final = 20
"""Memories, those that share most words with what is to be remembered, that may say it already."""
_COMPOUND: Final = 6
"""Letters from which a word may stand for a compound that begins with it."""
_TRIES: Final = 10
"""Attempts when others change the same facts at the same time."""


@dataclass(frozen=True, slots=True)
class RememberResult:
    """The result of `remember`."""

    outcome: Literal["stored", "known", "quarantined"]
    """Stored, already known, or quarantined until a person approves it."""
    facts: str
    """The text of facts after the call."""
    memory: MemoryRecord | None
    """The memory that was created or found."""
    reason: str = ""
    """Why it was quarantined."""

    @property
    def stored(self) -> bool:
        """Whether it is active now."""
        return self.outcome != "quarantined"


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """The result of `forget`."""

    found: bool
    """Whether anything matched."""
    facts: str
    """The text of facts after the call."""
    memories: tuple[MemoryRecord, ...]
    """The memories that were deactivated."""
    sentences: tuple[str, ...] = ()
    """What was removed from the text of facts: sentences, or the words of the request for a part of one."""

    def __bool__(self) -> bool:
        return self.found


class FactEditor:
    """Edits the facts about users: remembers and forgets what they ask for."""

    def __init__(self, store: Store, profile: Profile, chat: Chat | None) -> None:
        self._store = store
        self._profile = profile
        self._chat = chat
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def remember(
        self, scope: Scope, words: str, *, by: str | None, name: str | None, actor: str, about: str | None = None
    ) -> RememberResult:
        """Merge a fact into the facts about a user, replacing what it contradicts. `by`: who says it, if not the user.

        `about` names a person who is no user: then a memory about them is stored, and the text of facts is unchanged.
        """
        async with self._lock(scope):
            for attempt in range(_TRIES):
                try:
                    if about is not None:
                        return await self._remember_about(scope, words, about, actor)
                    return await self._remember(scope, words, by, name, actor)
                except SourcesChanged:
                    await _pause(attempt)
            raise SourcesChanged(f"others keep changing the facts about {quoted(scope.user)}; try again in a moment")

    async def forget(self, scope: Scope, words: str, *, name: str | None, actor: str) -> ForgetResult:
        """Remove a fact, and store a tombstone so that it is not extracted again from older messages."""
        async with self._lock(scope):
            for attempt in range(_TRIES):
                try:
                    return await self._forget(scope, " ".join(words.split()), name, actor)
                except SourcesChanged:
                    await _pause(attempt)
            raise SourcesChanged(f"others keep changing the facts about {quoted(scope.user)}; try again in a moment")

    def _lock(self, scope: Scope) -> asyncio.Lock:
        """Return the lock under which one user's facts are changed in this process."""
        key = scope.space, scope.user
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    async def _remember(self, scope: Scope, words: str, by: str | None, name: str | None, actor: str) -> RememberResult:
        person = await self.person(scope, name)
        if by in (None, scope.user) and standing_request(words) and tampered(words) is None:
            return await self._remember_request(scope, words, person, actor)
        reason = suspicion(words)
        words = complete(words, person)
        facts = await self._store.read(NewestFacts(scope))
        before = "" if facts is None else facts.text
        if reason is None and by not in (None, scope.user) and sensitive(words):
            reason = "somebody else said something sensitive"
        draft = await self._draft(scope, words, by, person, reason)
        if reason is not None:
            waiting = _first(await self._store.read(Memories(scope, active=None)), draft, person, "quarantined")
            if waiting is None:
                waiting = (await self._store.apply([AddMemory(draft, actor)])).memory
            return RememberResult("quarantined", before, waiting, reason)
        text = await self._merged(scope, before, words, person)
        changes: list[Change] = []
        if text != before:
            changes.append(PutFacts(scope, text, words, actor, instead_of=0 if facts is None else facts.version))
        # What says the same shares words, or the subject: others of perhaps thousands are not read.
        known = await self._store.read(MemoriesOfSubject(scope, draft.subject, draft.text))
        alike = await self._store.read(SearchMemories(scope, draft.text, (), _MOST_ALIKE))
        same = _first([*known, *(memory for memory, _ in alike)], draft, person, "active")
        if same is None:
            old = [memory for memory in known if _is_superseded(memory, draft, person)]
            changes.append(AddMemory(draft, actor, tuple(Superseded(memory.id, memory.revision) for memory in old)))
        if changes:
            receipt = await self._store.apply(changes)
            same = same or receipt.memory
        return RememberResult("stored" if changes else "known", text, same)

    async def _remember_request(self, scope: Scope, words: str, person: Person, actor: str) -> RememberResult:
        """Store a standing request to the assistant as a memory; the text of facts is unchanged."""
        facts = await self._store.read(NewestFacts(scope))
        known = [memory for memory in await self._store.read(Memories(scope)) if memory.kind == INSTRUCTION]
        topic = topic_of(words)
        draft = MemoryDraft(
            scope,
            "preference",
            f'{person.name} asks: "{words}"',
            importance=_STATED_IMPORTANCE + 1,
            speaker=scope.user,
            subject=f"request {topic}" if topic else None,
            valid_from=moment(now()),
            trust="stated",
            kind=INSTRUCTION,
            language=guess_language(words),
            confidence=1.0,
        )
        same = next((memory for memory in known if memory.text == draft.text), None)
        if same is None:
            old = [memory for memory in known if topic is not None and memory.subject == draft.subject]
            replaced = tuple(Superseded(memory.id, memory.revision) for memory in old)
            stored = (await self._store.apply([AddMemory(draft, actor, replaced)])).memory
            return RememberResult("stored", "" if facts is None else facts.text, stored)
        return RememberResult("known", "" if facts is None else facts.text, same)

    async def _remember_about(self, scope: Scope, words: str, about: str, actor: str) -> RememberResult:
        facts = await self._store.read(NewestFacts(scope))
        text, reason = "" if facts is None else facts.text, suspicion(words)
        stranger = person_called(about, about)
        if reason is None and sensitive(words):
            reason = "somebody else said something sensitive"
        draft = await self._draft(scope, words, scope.user, stranger, reason)
        subject = None if draft.subject is None else f"about {folded_name(about)}: {draft.subject}"
        draft = replace(draft, subject=subject, about=" ".join(about.split()))
        stored = await self._store.read(Memories(scope, active=None))
        known = [memory for memory in stored if is_about(memory, about)]
        same = _first(known, draft, stranger, draft.state)
        if same is None:
            old = [memory for memory in known if memory.state == "active" and _is_superseded(memory, draft, stranger)]
            supersedes = () if reason else tuple(Superseded(memory.id, memory.revision) for memory in old)
            same = (await self._store.apply([AddMemory(draft, actor, supersedes)])).memory
            return RememberResult("stored" if reason is None else "quarantined", text, same, reason or "")
        return RememberResult("known" if reason is None else "quarantined", text, same, reason or "")

    async def _forget(self, scope: Scope, words: str, name: str | None, actor: str) -> ForgetResult:
        person = await self.person(scope, name)
        facts = await self._store.read(NewestFacts(scope))
        before = "" if facts is None else facts.text
        text = await self._without(scope, before, words, person)
        left, known_before = split_sentences(text), split_sentences(before)
        gone = [each for each in known_before if each not in left]
        wanted = (words, *gone)
        at = moment(now())
        changes: list[Change] = []
        if text != before:
            version = 0 if facts is None else facts.version
            changes.append(PutFacts(scope, text, f"forget: {words}", actor, instead_of=version))
        known = await self._store.read(Memories(scope, active=None))
        believed = [each for each in known if each.state in {"active", "quarantined", "superseded", "expired"}]
        meant = [each for each in believed if any(states(each.text, one, person.names) for one in wanted)]
        for memory in meant or _named_in(words, believed) or _of_matter(words, believed):
            away = replace(memory, state="deactivated", active=False, valid_to=memory.valid_to or at, reason=FORGOTTEN)
            changes.append(ChangeMemory(away, "forget", actor))
        newest = max((memory.id for memory in known), default=0)
        changes.append(Forget(scope, wanted, actor, newest))
        receipt = await self._store.apply(changes)
        put_away = tuple(result for result in receipt.results if isinstance(result, MemoryRecord))
        whole = all(each in known_before for each in left)
        sentences = tuple(gone) if whole else (words,)
        return ForgetResult(bool(sentences or put_away), text, put_away, sentences)

    async def person(self, scope: Scope, name: str | None = None) -> Person:
        """Return the user with the given name, or else with their last display name."""
        if name is not None:
            return person_called(scope.user, name)
        return people_in(await self._store.read(Messages(scope, limit=50)), scope.user)[scope.user]

    async def _draft(self, scope: Scope, words: str, by: str | None, person: Person, reason: str | None) -> MemoryDraft:
        at = moment(now())
        zone = await zone_of(self._store, self._profile, scope)
        category, importance = _kind_of(words, person)
        event = event_in(words, to_zone(at, zone), category) if category in DATED else None
        times = timing(category, at, event, self._profile.keep_days, zone)
        text = merge_fact("", words, person.name) or words
        return MemoryDraft(
            scope,
            category,
            text,
            importance=max(importance, _STATED_IMPORTANCE),
            state="active" if reason is None else "quarantined",
            speaker=by or scope.user,
            subject=subject_of(words, person, person),
            event=event,
            remind_at=times.remind_at,
            expires_at=times.expires_at,
            valid_from=at,
            trust="stated",
            reason=reason or "",
            language=guess_language(words, names=person.names),
            confidence=1.0,
        )

    async def _merged(self, scope: Scope, facts: str, words: str, person: Person) -> str:
        """Return the text of facts with a new fact merged in, by a model or else by rules."""
        chat = self._chat
        if chat is not None and chat.has("merge"):
            from aforesaid.models.prompts.shapes import RememberReply as Written  # noqa: PLC0415 - brings pydantic

            prompt = load_prompt("remember")
            rendered = prompt.render(name=person.name, facts=facts, fact=words)
            try:
                text = (await chat.structure(prompt.operation, rendered, Written, scope=scope)).value.facts
            except ModelError as error:
                _log.warning("a fact is merged by rules, because the model did not do it: %s", error)
            else:
                new = _content_terms(words)
                written = not new or not new.isdisjoint(_content_terms(text))
                if written and trustworthy(text, (facts, words)) and keeps(text, facts, words):
                    return strip_invisible(text).strip()
                _log.warning("a fact is merged by rules, because the model wrote an instruction or dropped facts")
        # In a thread: each sentence of a text that is read for the first time takes a fraction of a millisecond.
        return await asyncio.to_thread(merge_fact, facts, words, person.name)

    async def _without(self, scope: Scope, facts: str, words: str, person: Person) -> str:
        """Return the text of facts without a fact.

        A model may overlook a fact, or say that it removed one and leave it: rules look for it then.
        """
        chat = self._chat
        if facts and chat is not None and chat.has("merge"):
            from aforesaid.models.prompts.shapes import ForgetReply as Written  # noqa: PLC0415

            prompt = load_prompt("forget")
            rendered = prompt.render(name=person.name, facts=facts, fact=words)
            try:
                reply = (await chat.structure(prompt.operation, rendered, Written, scope=scope)).value
            except ModelError as error:
                _log.warning("a fact is forgotten by rules, because the model did not do it: %s", error)
            else:
                left = strip_invisible(reply.facts).strip()
                if reply.found and trustworthy(left, (facts,)) and keeps(left, facts, words):
                    return forget_fact(left, words, person.names).text
                if reply.found:
                    _log.warning("a fact is forgotten by rules, because the model dropped or added others")
        return forget_fact(facts, words, person.names).text


def _named_in(words: str, believed: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the memories whose value a request names. What is known of somebody needs their name too, and goes first.

    A memory has the words of its language for what it is: "Allergia: arachidi" for "sono allergica alle arachidi".
    """
    claim = claim_of(words, ())
    named = [
        each
        for each in believed
        if each.value is not None
        and (names_value(words, each.value, each.language or guess_language(words)) or _begins_with(each.value, words))
        if claim is None or claim.liked is None or each.matter in {None, "like" if claim.liked else "dislike"}
    ]
    about = [each for each in named if each.about is not None and fold(each.about) in fold(words)]
    return about or [each for each in named if each.about is None]


def _of_matter(words: str, believed: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return what is known of the matter of oneself that a request names as a question does: "where I live"."""
    matter = asked_for(words)
    return [] if matter is None else [each for each in believed if each.matter == matter and each.about is None]


def _begins_with(value: str, words: str) -> bool:
    """Return whether a value of one word is a compound that a word begins: "laktose" means "Laktoseintoleranz"."""
    whole = fold(value)
    return " " not in whole and any(len(word) >= _COMPOUND and whole.startswith(word) for word in words_of(fold(words)))


def keeps(text: str, facts: str, words: str) -> bool:
    """Return whether a model's new text keeps every old sentence, except those that share a word with the request.

    A text with more unknown words than known ones is refused too.
    """
    said, there = _content_terms(words), _content_terms(text)
    if len(there & (said | _content_terms(facts))) < len(there) / 2:
        return False
    return all(
        _content_terms(sentence) <= there or not said.isdisjoint(_content_terms(sentence))
        for sentence in split_sentences(facts)
    )


def _content_terms(text: str) -> set[str]:
    return {term for _, terms in query_words(text) for term in terms}


async def _pause(attempt: int) -> None:
    """Wait before the next attempt: with exponential backoff and jitter."""
    await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - no secret


def complete(words: str, person: Person) -> str:
    """Return a fact as a sentence about the person: "prefers tea" as "Ann prefers tea"."""
    plain = " ".join(words.split())
    return f"{person.name} {plain}" if begins_with_verb(plain) else plain


def trustworthy(text: str, sources: Sequence[str]) -> bool:
    """Return whether a model's text contains no instruction that is not in its sources."""
    said = " ".join(sources)
    return all(sentence in said or not reads_like_an_order(sentence) for sentence in split_sentences(text))


def _kind_of(words: str, person: Person) -> tuple[Category, int]:
    """Return the category and the importance of a fact, by rules."""
    found = extract([Spoken(person.name, words, moment(now()))])
    if found:
        return found[0].category, found[0].importance
    # "likes tea" and "Ann likes tea" say the same as "I like tea".
    subject = subject_of(words, person, person)
    taste = subject is not None and subject.rpartition(": ")[2].split(" ")[0] in {"taste", "choice", "favourite"}
    return ("preference" if taste else "fact"), _STATED_IMPORTANCE


def _first(known: Sequence[MemoryRecord], draft: MemoryDraft, person: Person, state: str) -> MemoryRecord | None:
    for memory in known:
        about_the_same = memory.subject == draft.subject or None in (memory.subject, draft.subject)
        if memory.state == state and about_the_same and says_the_same(memory.text, draft.text, person.names):
            return memory
    return None


def _is_superseded(memory: MemoryRecord, draft: MemoryDraft, person: Person) -> bool:
    if draft.subject is None or memory.subject != draft.subject:
        return False
    return contradicts(draft.text, memory.text, person.names)


__all__ = ["FactEditor", "Facts", "ForgetResult", "RememberResult", "trustworthy"]
