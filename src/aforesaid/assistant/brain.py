"""Stores a message, answers it with a context, and stores the reply, on any platform."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Final

from aforesaid.assistant.commands import Answer, Names, with_names
from aforesaid.assistant.modelless import Modelless, Turn
from aforesaid.assistant.router import FreeForm, Router
from aforesaid.domain.scope import is_direct
from aforesaid.errors import ModelError

if TYPE_CHECKING:
    from aforesaid.context import Context
    from aforesaid.domain.message import Message
    from aforesaid.memory import Memory, UserMemory
    from aforesaid.models.chat import Reply as ModelReply

SYSTEM: Final = "You are a helpful assistant with a long memory. Answer briefly."
NOT_DURABLE: Final = "this is kept in memory only, and will be lost when the program ends"


@dataclass(slots=True)
class SentContext:
    """What a model was sent for one answer, and what it reported."""

    context: Context | None = None
    """None until a model is asked."""
    answered: ModelReply | None = None
    """The model and the tokens that it reported."""
    milliseconds: dict[str, int] = field(default_factory=dict)
    _began: float = 0.0

    def start(self, context: Context) -> None:
        self.context, self._began = context, perf_counter()

    def note(self, what: str) -> None:
        """Note how long something took since then, unless it was noted before."""
        self.milliseconds.setdefault(what, round((perf_counter() - self._began) * 1_000))

    def end(self, answered: ModelReply) -> None:
        self.answered = answered


class Assistant:
    def __init__(self, memory: Memory, *, system: str = SYSTEM) -> None:
        self._memory = memory
        self._system = system
        self._free_form = FreeForm(memory)
        self._modelless = Modelless()
        self.router = Router(memory)

    @property
    def speaks(self) -> bool:
        """Whether a model answers. Replies without a model are not part of the conversation and not stored."""
        return self._memory.models is not None and self._memory.models.has("chat")

    async def command(self, user: UserMemory, text: str, *, name: str | None = None) -> Answer | None:
        """Answer a command or a free-form request; return None for anything else. Requests are stored as messages."""
        answer = await self.router.answer(user, text)
        if answer is not None or not text.strip():
            return answer
        turn = Turn(user, text, name=name)
        request = await self._free_form.recognise(turn)
        if request is None:
            return None
        # Stored first, so that forgetting applies to this message too.
        receipt = await user.add("user", text, name=name)
        answer = await self._free_form.carry_out(Turn(user, text, receipt.message, name), request)
        await user.add("assistant", answer.text)
        return answer

    async def reply(self, user: UserMemory, text: str, *, name: str | None = None) -> AsyncGenerator[str, None]:
        """Store a message, and yield the reply piece by piece. Notices that are not the model's are in brackets."""
        receipt = await user.add("user", text, name=name)
        for notice in (*(() if receipt.durable else (NOT_DURABLE,)), *receipt.notices):
            yield f"({notice})\n"
        turn, sent = Turn(user, text, receipt.message, name), SentContext()
        pieces: list[str] = []
        reply: Message | None = None
        try:
            try:
                async with aclosing(self.answer(turn, sent)) as answer:
                    async for piece in answer:
                        pieces.append(piece)
                        yield piece
            except ModelError as error:
                yield f"(the model could not answer: {error}; what you said is stored)"
            if pieces and self.speaks:
                reply = (await user.add("assistant", "".join(pieces))).message
        finally:  # also if nobody waits for the rest of the answer: the model was sent it all the same
            self.keep_receipt(turn, sent, reply)

    async def requested(self, turn: Turn) -> Answer | None:
        """Carry out the free-form request of a stored message; return None if it is none."""
        request = await self._free_form.recognise(turn)
        return None if request is None else await self._free_form.carry_out(turn, request)

    def keep_receipt(self, turn: Turn, sent: SentContext, reply: Message | None) -> None:
        """Store in the background what a model was sent to answer a turn, and the stored reply; nothing without one."""
        if sent.context is None:
            return
        keeper, answered = self._memory.receipt_keeper, sent.answered
        receipt = keeper.receipt_of(turn.user.scope, turn.user.actor, sent.context)
        keeper.keep_later(
            replace(
                receipt,
                reply=None if reply is None else reply.seq,
                model=None if answered is None else answered.model,
                # Zero if the provider reports none.
                input_tokens=None if answered is None else answered.prompt_tokens or None,
                output_tokens=None if answered is None else answered.reply_tokens or None,
                milliseconds={**receipt.milliseconds, **sent.milliseconds},
            )
        )

    async def answer(self, turn: Turn, sent: SentContext | None = None) -> AsyncGenerator[str, None]:
        """Yield the answer to a stored message piece by piece. Nothing is stored here.

        `sent` is filled with what was sent to the model, for `keep_receipt`. Raises ModelError when the model fails,
        perhaps after some pieces. Without a model it says what it remembers.
        """
        chat = self._memory.models
        if chat is None or not self.speaks:
            yield await self._modelless.answer(turn)
            return
        from aforesaid.models.chat import Said  # noqa: PLC0415 - brings the libraries of models

        sent = SentContext() if sent is None else sent
        # Without the stored message, a context knows what is asked by its text alone.
        asked = turn.text if turn.message is None else turn.asked
        context = await turn.user.context(asked, system=self._system, answers=turn.message, tools=False, sent=False)
        sent.start(context)
        mentions = any("@" in message["content"] for message in context.messages)
        direct = is_direct(turn.user.scope.thread)
        known = {} if direct or not mentions else await self._memory.names(turn.user.scope.space)
        names = Names.around(turn, known)
        said = [
            Said(message["role"], with_names(message["content"], names), message.get("name"))
            for message in context.messages
        ]
        async with aclosing(chat.stream("chat", said, scope=turn.user.scope, ended=sent.end)) as stream:
            async for piece in stream:
                sent.note("first_byte")
                yield piece
        sent.note("reply")
