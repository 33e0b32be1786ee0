"""From a message to a reply, on any platform: stored, answered with a context, stored again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from recollect.assistant.answer import Answer
from recollect.assistant.router import Router
from recollect.errors import ModelError

if TYPE_CHECKING:
    from recollect.memory import UserMemory
    from recollect.models.chat import Chat

SYSTEM: Final = "You are a helpful assistant with a long memory. Answer briefly."
_WITHOUT: Final = (
    "(no model is configured, so nobody answers; what you said is stored, and /context shows what would be sent; "
    "`recollect config` says how to connect a model)"
)


class Assistant:
    """Answers what users say."""

    def __init__(self, chat: Chat | None, *, system: str = SYSTEM) -> None:
        self._chat = chat
        self._system = system
        self.router = Router()

    async def command(self, user: UserMemory, text: str) -> Answer | None:
        """Answer a command; None if it is none."""
        return await self.router.answer(user, text)

    async def reply(self, user: UserMemory, text: str, *, name: str | None = None) -> AsyncGenerator[str, None]:
        """Store what was said, and yield the reply piece by piece. What is not the model's own stands in brackets."""
        receipt = await user.add("user", text, name=name)
        if not receipt.durable:
            yield "(this is kept in memory only, and will be lost when the program ends)\n"
        for notice in receipt.notices:
            yield f"({notice})\n"
        if self._chat is None or not self._chat.has("chat"):
            yield _WITHOUT
            return
        from recollect.models.chat import Said  # noqa: PLC0415 - brings the libraries of models

        context = await user.context(text, system=self._system)
        said = [
            Said(message["role"], message["content"], message.get("name"))  # type: ignore[arg-type]
            for message in context.messages
        ]
        pieces: list[str] = []
        try:
            async with aclosing(self._chat.stream("chat", said, scope=user.scope)) as stream:
                async for piece in stream:
                    pieces.append(piece)
                    yield piece
        except ModelError as error:
            yield f"(the model could not answer: {error}; what you said is stored)"
        if pieces:
            await user.add("assistant", "".join(pieces))
