"""What the proxy remembers and recalls of a request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from cachetools import LRUCache

from aforesaid.background import begin
from aforesaid.context import Context
from aforesaid.context.context import sections_of_items
from aforesaid.domain.checks import MESSAGE_BYTES, moment, now
from aforesaid.domain.context_receipt import REQUEST, ContextReceipt, SentSection, new_receipt_id
from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound, quoted
from aforesaid.memory import Memory
from aforesaid.models.tokens import TokenCounter, counter_for
from aforesaid.profiles.recipe import LEAST_BUDGET
from aforesaid.recall import QueueTimeout
from aforesaid.server.auth import Credential
from aforesaid.server.proxy.caller import Caller
from aforesaid.server.proxy.conversations import (
    REPLY_ID,
    Conversation,
    Conversations,
    Turn,
    chain,
    text_of,
    turns_of,
)
from aforesaid.server.proxy.insertion import NO_TEXT, NOT_ADDED, ClientHas, MemoryText, empty, write
from aforesaid.server.proxy.reply import TOOLS, Reply, ToolStep, tool_steps
from aforesaid.settings import Serving
from aforesaid.store.erasing import SetAside
from aforesaid.store.messages import AddMessage, ResponseOwner
from aforesaid.store.people import AuditAccess
from aforesaid.telemetry import OWN, PROXY_RECALL, PROXY_SEARCH, PROXY_STORE, kind_of, unmeasured

Person: TypeAlias = tuple[str, str]


class StoreOrder:
    """Makes requests and replies wait for those that must be stored before them.

    Those of one conversation are stored one after the other. A request also waits for all replies that its person got
    before it: the app may go on from any of them. Requests of different conversations are stored side by side, so that
    one commit serves many of them.
    """

    def __init__(self) -> None:
        self._conversations: WeakValueDictionary[tuple[Person, str], asyncio.Lock] = WeakValueDictionary()
        self._replies: dict[Person, set[asyncio.Event]] = {}
        """One event for each reply that is being stored, set when it is stored or could not be."""

    def conversation(self, person: Person, begin: str) -> asyncio.Lock:
        """Return the lock of a conversation, by its thread, the reply that it goes on from, or its first message."""
        lock = self._conversations.get((person, begin))
        if lock is None:
            lock = self._conversations[person, begin] = asyncio.Lock()
        return lock

    @contextmanager
    def reply(self, person: Person) -> Iterator[None]:
        """Announce a reply that is stored in the block: later requests of the person wait for the end of the block."""
        ended = asyncio.Event()
        waited_for = self._replies.setdefault(person, set())
        waited_for.add(ended)
        try:
            yield
        finally:
            ended.set()
            waited_for.discard(ended)
            if not waited_for and self._replies.get(person) is waited_for:
                del self._replies[person]

    async def replies_before(self, person: Person) -> None:
        """Return when the replies that are being stored now are stored, or could not be."""
        for ended in list(self._replies.get(person, ())):
            await ended.wait()


QUEUE_SECONDS: Final = 20.0
"""Maximum time that a request waits for its turn to search. People wait that long for models that think first."""
RECALL_SECONDS: Final = 5.0
"""Maximum time of a context with a search, from the start of its work."""
UNSEARCHED_SECONDS: Final = 5.0
"""Maximum time of a context without a search: a few reads of the store."""
_SEARCH: Final = "snippets"
"""The section that needs a search."""


@dataclass(slots=True)
class RequestReceipt:
    """What is noted while a request is answered."""

    model: str | None
    request_tokens: int
    """Tokens of what the client itself sent."""
    budget: int = 0
    text: MemoryText = NO_TEXT
    limited: str | None = None
    """Why something may be missing; None if all sources were searched."""
    created: int = field(default_factory=now)
    id: str = ""
    milliseconds: dict[str, int] = field(default_factory=dict)
    _began: float = field(default_factory=perf_counter)

    def __post_init__(self) -> None:
        """Make the id, which the client gets before the receipt is stored."""
        self.id = new_receipt_id(self.created)

    def restart_clock(self) -> None:
        self._began = perf_counter()

    def note(self, what: str) -> None:
        """Note how long something took since the clock was started, unless it was noted before."""
        self.milliseconds.setdefault(what, round((perf_counter() - self._began) * 1_000))

    def receipt(
        self, scope: Scope, thread: str, caller: str, profile: str, *, reply: int | None, answer: Reply | None
    ) -> ContextReceipt:
        """Return the receipt. `reply` is the number of the stored reply, `answer` what the provider sent."""
        counter = counter_for(self.model)
        # Each item once: one that is in the stable text can be offered again.
        items = list({(item.section, item.key): item for item in self.text.items}.values())
        known = sections_of_items(items, self.text.tokens, lambda name: counter.count(empty(name)))
        sections = (*known, SentSection(REQUEST, self.request_tokens))
        return ContextReceipt(
            id=self.id,
            space=scope.space,
            user=scope.user,
            thread=thread,
            at=moment(self.created),
            caller=caller,
            profile=profile,
            budget=self.budget,
            tokens=sum(section.tokens for section in sections),
            sections=sections,
            model=self.model,
            reply=reply,
            input_tokens=None if answer is None else answer.input_tokens,
            output_tokens=None if answer is None else answer.output_tokens,
            milliseconds=dict(self.milliseconds),
            limited=self.limited,
        )


_log: Final = logging.getLogger("aforesaid.server.proxy")

RECOGNISE_SECONDS: Final = 5.0
"""Maximum time that a finished context waits until the conversation is known. Without it, the request may get messages
that the client has itself."""
STORE_SECONDS: Final = 10.0
"""Maximum time that a reply waits for the question to be stored. Storing itself goes on after it."""
_REPLY_TOKENS: Final = 1_024
"""Tokens left free for the reply if the client does not limit it."""
_AT_ONCE: Final = 500
"""Turns of a client's history that are stored in one transaction."""
_CONVERSATIONS: Final = 10_000
"""Conversations of which the text that was written for the last request is held in memory."""
_RESPONSES: Final = 100_000
"""Responses of which the owner is held in memory. Others are looked up in the store."""
_CACHE_SECONDS: Final = 600.0
"""After this silence a text is written anew: by then providers have dropped the prompt from their caches."""

Work: TypeAlias = Coroutine[Any, Any, None]


class TokenLimits(NamedTuple):
    """Limits that a request sets itself, in tokens. None: the request sets none."""

    reply: int | None = None
    window: int | None = None
    """Of the request and the reply together."""


NO_LIMITS: Final = TokenLimits()


@dataclass(slots=True)
class MemoryOutcome:
    """What the memory did for one request."""

    caller: Caller
    turns: Sequence[Turn] = ()
    asks: bool = True
    """Whether the last message of the request is a question, not the result of a tool."""
    previous: str | None = None
    """The id of the reply that the request goes on from, if the provider has the history."""
    tools: Sequence[ToolStep] = ()
    failures: dict[str, str] = field(default_factory=dict)
    """What failed, by operation."""
    limited: str | None = None
    """Why the text may miss something; None if all sources were searched."""
    text: MemoryText | None = None
    receipt: RequestReceipt | None = None
    """What is noted for the receipt; None if none is stored."""
    conversation: Conversation | None = None
    recognised: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the conversation is known, or could not be found out."""
    stored: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all that is new in the request is stored, or could not be."""

    @property
    def state(self) -> str:
        """`on`, `partial` if something may be missing, or `failed` if there is no memory, or storing failed."""
        return "failed" if self.failures else "on" if self.limited is None else "partial"

    @property
    def reason(self) -> str:
        """What failed and what may be missing; empty if nothing is."""
        return "; ".join([*self.failures.values(), *([] if self.limited is None else [self.limited])])

    @property
    def person(self) -> Person:
        scope = self.caller.reads.scope
        return scope.space, scope.user

    @property
    def begin(self) -> str:
        """What names the conversation before it is recognised: requests with the same go one after the other."""
        first = self.turns[0].words if self.turns else ""
        return self.caller.thread or self.previous or first


class _Written(NamedTuple):
    text: MemoryText
    question: str
    at: float


async def warm_up(memory: Memory) -> None:
    """Load the embedder and the token counter, which takes seconds, before somebody waits for them. Raises nothing."""
    try:
        with unmeasured():
            await memory.user("nobody").context("hello", sent=False)
            # From now on alerts are raised, also if nothing is stored.
            await memory.health()
    except Exception as error:  # an embedder of the operator's own may raise anything
        _log.warning("the first context failed: %s", error)


class ProxyMemory:
    """Stores and recalls for the requests of one server, or of the clients that are wrapped with one memory."""

    def __init__(self, memory: Memory, serving: Serving) -> None:
        self.memory = memory
        self._window = serving.window
        self._most_tokens = serving.budget
        self._conversations = Conversations(memory)
        self._order = StoreOrder()
        self._tools_before: LRUCache[tuple[str, str, str], Sequence[ToolStep]] = LRUCache(_CONVERSATIONS)
        """The tools that were used until a reply that calls tools, by space, user and id of the reply."""
        self._owners: LRUCache[str, Person] = LRUCache(_RESPONSES)
        """Whose a response is, by its id; also one without words, which is not stored."""
        self._written_last: LRUCache[tuple[str, str, str], _Written] = LRUCache(_CONVERSATIONS)

    async def before(
        self,
        caller: Caller,
        messages: Sequence[object],
        model: str | None,
        finish: Callable[[Work], None],
        *,
        limits: TokenLimits = NO_LIMITS,
        previous: str | None = None,
    ) -> MemoryOutcome:
        """Find what should be known to answer a request, and begin to store what is new in it.

        `messages` are those of Chat Completions. `previous` is the id of the reply that the request goes on from.
        Storing is work that `finish` sees to the end, whatever becomes of the request. Recall that fails, or that has
        to leave something out for lack of time, is noted in the outcome and raises nothing.
        """
        last = messages[-1] if messages else None
        asks = isinstance(last, dict) and last.get("role") == "user"
        # The tools that were used since the last question, also in replies that the provider has.
        scope = caller.reads.scope
        earlier = () if previous is None else self._tools_before.get((scope.space, scope.user, previous), ())
        tools = tool_steps(messages, earlier)
        outcome = MemoryOutcome(caller, turns_of(messages, MESSAGE_BYTES), asks, previous, tools)
        question = next((turn.text for turn in reversed(outcome.turns) if turn.role == "user"), "")
        counter = counter_for(model)
        window = self._window if limits.window is None else min(self._window, limits.window)
        texts = [text_of(message.get("content")) for message in messages if isinstance(message, dict)]
        size = counter.count_messages([{"role": "user", "content": text} for text in texts])
        if self.memory.receipt_keeper.on:
            outcome.receipt = RequestReceipt(model, size)
        room = window - size - (_REPLY_TOKENS if limits.reply is None else limits.reply)
        if not question or room < LEAST_BUDGET:
            _log.debug("no question, or no room for memory, beside %d messages", len(messages))
            finish(self._store_request(outcome, audit_read=False))
            return outcome
        # Recall takes longest, so it begins first.
        recall = begin(self._context(caller, question, model))
        finish(self._store_request(outcome, audit_read=True))
        began = time.perf_counter()
        try:
            context = await recall
            with suppress(TimeoutError):
                async with asyncio.timeout(RECOGNISE_SECONDS):
                    await outcome.recognised.wait()
            outcome.text = self._written(outcome, context, question, counter, room)
            outcome.limited = context.limited
            if outcome.receipt is not None:
                outcome.receipt.text = outcome.text
                outcome.receipt.budget = min(room, context.budget)
                outcome.receipt.limited = context.limited
                outcome.receipt.note("context")
        except Exception as error:
            # Whatever it is, somebody waits for a reply and gets one without memory.
            self._note(PROXY_RECALL, outcome, began, error)
        else:
            self._note(PROXY_RECALL, outcome, began)
        finally:
            recall.cancel()
        return outcome

    async def _context(self, caller: Caller, question: str, model: str | None) -> Context:
        """Return the fullest context that time allows; `limited` says why one may miss something.

        Raises TimeoutError or what the store raised, if even a context without a search cannot be built.
        """

        async def ask(seconds: float, *without: str) -> Context:
            async with asyncio.timeout(seconds):
                return await caller.reads.context(
                    question, model=model, most=self._most_tokens, without=without, sent=False
                )

        began = time.perf_counter()
        try:
            async with self.memory.recall_queue.turn(QUEUE_SECONDS):
                began = time.perf_counter()
                made = await ask(RECALL_SECONDS, *NOT_ADDED)
        except Exception as error:
            # Whatever it is, the other parts of the memory may still answer. They need no embedder and no turn.
            self._note_search(caller, time.perf_counter() - began, error)
            made = await ask(UNSEARCHED_SECONDS, *NOT_ADDED, _SEARCH)
            if isinstance(error, QueueTimeout):
                why = str(error)
            else:
                timed_out = isinstance(error, TimeoutError)
                why = f"the search took over {RECALL_SECONDS:g} s" if timed_out else "the search failed"
            return replace(made, limited=f"{why}, so there are only memories, summaries and recent messages")
        self._note_search(caller, time.perf_counter() - began)
        return made

    def _note_search(self, caller: Caller, seconds: float, error: Exception | None = None) -> None:
        failure = None if error is None else kind_of(error)
        self.memory.metrics.called(PROXY_SEARCH, OWN, seconds, failure=failure)
        if error is not None:
            trace = None if isinstance(error, TimeoutError) else error
            _log.error("a request of %s goes on without a search: %s", caller.credential.actor, failure, exc_info=trace)

    async def check_response(self, credential: Credential, response: object) -> None:
        """Raise NotFound for a response that is known to be of somebody whom the credential may not reach."""
        # What is not printable is no id that a store could look for.
        if credential.everywhere or not isinstance(response, str) or not response.isprintable():
            return
        owner = self._owners.get(response)
        if owner is None:
            owner = await self.memory.store.read(ResponseOwner(response))
        if owner is None:
            return
        self._owners[response] = owner
        space, user = owner
        if credential.space not in (None, space) or credential.user not in (None, user):
            raise NotFound(f"there is no response {quoted(response)} for this key")

    async def wait_until_stored(self, outcome: MemoryOutcome) -> None:
        """Return when the request is stored, or could not be, or it takes too long: nobody hears a reply before."""
        try:
            async with asyncio.timeout(STORE_SECONDS):
                await outcome.stored.wait()
        except TimeoutError:
            outcome.failures[PROXY_STORE] = f"not stored within {STORE_SECONDS:g} s"

    async def after(self, outcome: MemoryOutcome, answer: Reply) -> None:
        """Store what the assistant said; and before it what was asked, if that failed. Raises nothing.

        Several replies are choices for one turn: they are versions of it, and the first one counts. One that was broken
        off has the metadata `{"partial": true}`. The tools that led to a reply are stored with it. The receipt follows,
        without anybody waiting for it.
        """
        said, reply = [{"role": "assistant", "content": text} for text in answer.texts()], answer.id
        metadata: dict[str, object] = {"partial": True} if answer.partial else {}
        if reply is not None:
            metadata[REPLY_ID] = reply
            self._owners.setdefault(reply, outcome.person)
        if outcome.tools:
            metadata[TOOLS] = list(outcome.tools)
        if reply is not None and answer.calls:
            scope = outcome.caller.reads.scope
            self._tools_before[scope.space, scope.user, reply] = (*outcome.tools, *answer.calls)
        with self._order.reply(outcome.person):
            stored = await self._store_reply(outcome, turns_of(said, MESSAGE_BYTES), reply, metadata)
        self.keep_receipt(outcome, answer, stored)

    async def _store_reply(
        self, outcome: MemoryOutcome, said: Sequence[Turn], reply: str | None, metadata: Mapping[str, object]
    ) -> int | None:
        """Store the versions of a reply; return the number of the first one, which counts. Raises nothing."""
        stored: int | None = None
        await outcome.stored.wait()
        began = time.perf_counter()
        try:
            async with self._order.conversation(outcome.person, outcome.begin):
                if outcome.conversation is None:
                    await self._store_turns(outcome, audit_read=False)
                if (there := outcome.conversation) is not None:
                    stored = await self._add_answers(outcome.caller, there, said, metadata)
                    if reply is not None:
                        scope = outcome.caller.person(there.thread).scope
                        node = chain(there.node, said[:1])[0].node if said else there.node
                        self._conversations.note_reply(scope, reply, there.thread, node)
        except Exception as error:
            self._note(PROXY_STORE, outcome, began, error)
        else:
            self._note(PROXY_STORE, outcome, began)
        return stored

    async def _add_answers(
        self, caller: Caller, there: Conversation, said: Sequence[Turn], metadata: Mapping[str, object]
    ) -> int | None:
        """Store an answer and further choices for it; the choices, and the older answers, are set aside.

        An answer that was given before, word for word, gets a further row: it counts again, and the number of rows says
        how many chats may have it. Older answers are set aside after the new one is stored: after a crash in between
        both are shown, until the next request of the chat.
        """
        person = caller.person(there.thread)
        kept, aside = None, list(there.answers)
        for turn in reversed(list(dict.fromkeys(said))):
            (link,) = chain(there.node, [turn])
            receipt = await person.add("assistant", turn.text, id=link.id, metadata=metadata)
            if receipt.duplicate and (receipt.message.replaced or caller.thread is None):
                name = f"{link.id}:{there.newest}"
                receipt = await person.add("assistant", turn.text, id=name, replaces=link.id, metadata=metadata)
            kept = receipt.message.seq
            aside.append(kept)
        await self._set_aside(caller, there.thread, (seq for seq in aside if kept is not None and seq != kept))
        return kept

    async def _set_aside(self, caller: Caller, thread: str, seqs: Iterable[int]) -> None:
        if gone := tuple(seqs):
            await self.memory.store.apply([SetAside(caller.person(thread).scope, gone)])

    def keep_receipt(self, outcome: MemoryOutcome, answer: Reply | None = None, reply: int | None = None) -> None:
        """Store the receipt of a request in the background. `reply` is the number of the stored reply."""
        if outcome.receipt is None:
            return
        keeper, caller, there = self.memory.receipt_keeper, outcome.caller, outcome.conversation
        scope = caller.person(caller.thread).scope
        thread = scope.thread if there is None else there.thread
        actor = caller.credential.actor
        made = outcome.receipt.receipt(scope, thread, actor, keeper.profile, reply=reply, answer=answer)
        keeper.keep_later(made)

    async def _store_request(self, outcome: MemoryOutcome, *, audit_read: bool) -> None:
        """Store what is new in a request. `audit_read`: also record a read in the audit log."""
        began = time.perf_counter()
        try:
            await self._order.replies_before(outcome.person)
            async with self._order.conversation(outcome.person, outcome.begin):
                await self._store_turns(outcome, audit_read=audit_read)
        except Exception as error:
            outcome.conversation = None  # what is missing is stored with the reply
            self._note(PROXY_STORE, outcome, began, error)
        else:
            self._note(PROXY_STORE, outcome, began)
        finally:
            outcome.recognised.set()
            outcome.stored.set()

    async def _store_turns(self, outcome: MemoryOutcome, *, audit_read: bool) -> None:
        caller, turns = outcome.caller, outcome.turns
        there = await self._conversations.find(caller, turns, asks=outcome.asks, previous=outcome.previous)
        outcome.conversation = there
        outcome.recognised.set()
        # Beside one another, so that the store commits both at once.
        work: list[Awaitable[object]] = [self._add_all(caller, there)]
        if audit_read:
            read = AuditAccess(caller.reads.scope, caller.credential.actor, "context.read", "context")
            work.append(self.memory.store.apply([read]))
        for result in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def _add_all(self, caller: Caller, there: Conversation) -> None:
        """Store all that is new. A history, which may have a thousand turns, is stored in few transactions."""
        person = caller.person(there.thread)
        for first in range(0, len(there.new) - 1, _AT_ONCE):
            # One transaction. The turns belong to the session of the turn before them.
            drafts = []
            for (role, text), name, replaces, metadata in there.new[first : min(first + _AT_ONCE, len(there.new) - 1)]:
                said_by = caller.name if role == "user" else None
                parts = (person.scope, role, text)
                drafts.append(draft(*parts, id=name, name=said_by, replaces=replaces, metadata=metadata))
            await self.memory.store.apply([AddMessage(each) for each in drafts])
        # The last one alone: that wakes the work in the background.
        for (role, text), name, replaces, metadata in there.new[-1:]:
            said_by = caller.name if role == "user" else None
            await person.add(role, text, id=name, name=said_by, replaces=replaces, metadata=metadata)
        await self._set_aside(caller, there.thread, there.aside)

    def _written(
        self, outcome: MemoryOutcome, context: Context, question: str, counter: TokenCounter, room: int
    ) -> MemoryText:
        there = outcome.conversation
        words = Turn("user", question).words
        client = ClientHas(question=words) if there is None else ClientHas(there.known, there.here, words)
        scope = outcome.caller.reads.scope
        key = scope.space, scope.user, "" if there is None else there.thread
        last = self._written_last.get(key)
        now = time.monotonic()
        if last is not None and now - last.at > _CACHE_SECONDS:
            last = None
        repeated = last is not None and there is not None and last.question == words and not outcome.asks
        if last is not None and repeated and last.text.tokens <= room:
            text = last.text  # results of tools for the same question: the provider has cached this prompt
        else:
            front = None if last is None else last.text.front
            text = write(context, client, counter, min(room, context.budget), front)
        self._written_last[key] = _Written(text, words, now)
        return text

    def _note(self, operation: str, outcome: MemoryOutcome, began: float, error: Exception | None = None) -> None:
        """Count how an operation ended. What failed is logged, and goes into the outcome."""
        kind = None if error is None else kind_of(error)
        self.memory.metrics.called(operation, OWN, time.perf_counter() - began, failure=kind)
        if error is None:
            return
        actor = outcome.caller.credential.actor
        if operation == PROXY_RECALL:
            outcome.failures[PROXY_RECALL] = (
                "recall took too long" if isinstance(error, TimeoutError) else "recall failed"
            )
            _log.error("a request of %s goes on without memory", actor, exc_info=error)
        else:
            outcome.failures[PROXY_STORE] = "not stored"
            _log.error("a request of %s was passed on and could not be stored", actor, exc_info=error)
