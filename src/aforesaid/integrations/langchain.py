"""LangChain: a chat history, a retriever and a middleware for agents.

    history = AforesaidChatMessageHistory(memory.user("ann").chat("chat-1"))
    retriever = AforesaidRetriever(user=memory.user("ann"), k=5)
    agent = create_agent(model, tools, middleware=[AforesaidMiddleware(memory.user("ann"))])

Messages with tool calls, content blocks and metadata come back as they were added.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Final

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)
from langchain_core.retrievers import BaseRetriever
from langgraph.runtime import Runtime
from pydantic import PrivateAttr

from aforesaid.domain.details import ToolCall
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.errors import InvalidInput
from aforesaid.integrations import shared
from aforesaid.integrations.shared import AnyUser, Calls
from aforesaid.memory import UserMemory

_FRAMEWORK: Final = "langchain"
"""The key in the metadata of a message under which LangChain's message is stored."""
_ROLES: Final = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
}
_RECALL_TOKENS: Final = 2_000


class AforesaidChatMessageHistory(BaseChatMessageHistory):
    """A chat history: the messages that a user has in a thread.

    Its sync methods need a memory from `aforesaid.open`.
    """

    def __init__(self, user: AnyUser) -> None:
        super().__init__()
        self._calls = Calls(user, UserMemory)

    @property
    def messages(self) -> list[BaseMessage]:
        """All messages, oldest first."""
        return [_as_langchain(each) for each in self._calls.run(shared.own_messages)]

    @messages.setter
    def messages(self, messages: Sequence[BaseMessage]) -> None:
        """Take back all messages that these do not begin with, and store the others."""
        self._calls.run(lambda user: shared.replace_all(user, messages, _as_langchain, _as_message))

    async def aget_messages(self) -> list[BaseMessage]:
        """Return all messages, oldest first."""
        return [_as_langchain(each) for each in await self._calls.wait(shared.own_messages)]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages, all of them or none."""
        new = [_as_message(each) for each in messages]
        self._calls.run(lambda user: shared.add_all(user, new))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages, all of them or none."""
        new = [_as_message(each) for each in messages]
        await self._calls.wait(lambda user: shared.add_all(user, new))

    def clear(self) -> None:
        """Take back all messages."""
        self._calls.run(shared.clear)

    async def aclear(self) -> None:
        """Take back all messages."""
        await self._calls.wait(shared.clear)


class AforesaidRetriever(BaseRetriever):
    """A retriever over what a user's memory contains: messages, memories and summaries.

    `k` is the maximum number of results, and `min_score` the lowest score, as in `search`.
    """

    user: Any
    k: int = 10
    min_score: float | None = None
    _calls: Calls[UserMemory] = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - pydantic's
        """Check the memory."""
        super().model_post_init(context)
        self._calls = Calls(self.user, UserMemory)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return [_as_document(hit) for hit in self._calls.run(lambda user: self._search(user, query, k))]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return [_as_document(hit) for hit in await self._calls.wait(lambda user: self._search(user, query, k))]

    async def _search(self, user: UserMemory, query: str, k: int | None) -> list[Hit]:
        return await user.search(query, k or self.k, min_score=self.min_score)


class AforesaidState(AgentState[Any]):
    """The state of an agent with the middleware."""

    aforesaid_first: Annotated[str | None, PrivateStateAttr]
    """The id of the message that the run began with."""


class AforesaidMiddleware(AgentMiddleware[AforesaidState, Any]):
    """Gives an agent long-term memory: recalls before each call of the model, and stores what was said after the run.

    `user` is the memory of a user, or a function of the runtime that returns it, for an agent with many users.
    What is remembered goes to the end of the system prompt, in at most `tokens` tokens.
    """

    state_schema = AforesaidState

    def __init__(self, user: AnyUser | Callable[[Runtime[Any]], AnyUser], *, tokens: int = _RECALL_TOKENS) -> None:
        super().__init__()
        self._user = user
        self._tokens = tokens

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Add what is remembered to the request."""
        question = _question(request.messages)
        found = self._of(request.runtime).run(lambda user: shared.recalled(user, question, self._tokens))
        return handler(_with_memory(request, found))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Add what is remembered to the request."""
        question = _question(request.messages)
        found = await self._of(request.runtime).wait(lambda user: shared.recalled(user, question, self._tokens))
        return await handler(_with_memory(request, found))

    def before_agent(self, state: AforesaidState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Note what the run begins with: middleware and tools may add further messages of people while it goes on."""
        del runtime
        messages = state["messages"]
        return {"aforesaid_first": messages[_question_at(messages)].id} if messages else None

    def after_agent(self, state: AforesaidState, runtime: Runtime[Any]) -> None:
        """Store the messages of this run."""
        new = _of_this_run(state["messages"], state.get("aforesaid_first"))
        self._of(runtime).run(lambda user: shared.add_all(user, new))

    async def aafter_agent(self, state: AforesaidState, runtime: Runtime[Any]) -> None:
        """Store the messages of this run."""
        new = _of_this_run(state["messages"], state.get("aforesaid_first"))
        await self._of(runtime).wait(lambda user: shared.add_all(user, new))

    def _of(self, runtime: Runtime[Any]) -> Calls[UserMemory]:
        return Calls(self._user(runtime) if callable(self._user) else self._user, UserMemory)


def _with_memory(request: ModelRequest, found: str) -> ModelRequest:
    if not found:
        return request
    prompt = "\n\n".join(filter(None, [request.system_prompt, found]))
    return request.override(system_message=SystemMessage(content=prompt))


def _question(messages: Sequence[BaseMessage]) -> str:
    return next((str(each.text) for each in reversed(messages) if isinstance(each, HumanMessage)), "")


def _of_this_run(messages: Sequence[BaseMessage], first: str | None) -> list[dict[str, Any]]:
    """Return the messages from the one with the id `first` on: earlier ones were stored after earlier runs.

    Without that message (other middleware may have removed it), they begin with the question. LangGraph gives every
    message an id, so that one which was stored before is recognised.
    """
    known = [at for at, each in enumerate(messages) if each.id == first] if first is not None else []
    begin = known[0] if known else _question_at(messages)
    return [{**_as_message(each), "id": each.id} for each in messages[begin:]]


def _question_at(messages: Sequence[BaseMessage]) -> int:
    """Return the place of the first message after the last answer that the last message of a person follows.

    A message that calls tools is no answer, and what an earlier run left without one belongs to the question.
    """
    at = max((at for at, each in enumerate(messages) if isinstance(each, HumanMessage)), default=0)
    while at:
        before = messages[at - 1]
        if isinstance(before, SystemMessage) or (isinstance(before, AIMessage) and not before.tool_calls):
            break
        at -= 1
    return at


def _as_document(hit: Hit) -> Document:
    metadata = {"kind": hit.kind, "score": hit.score, "at": hit.at.isoformat(), "sources": list(hit.sources)}
    if hit.message is not None:
        metadata |= {"role": hit.message.role, "author": hit.message.author, "thread": hit.message.thread}
    return Document(page_content=hit.text, id=hit.id, metadata=metadata)


def _as_message(message: BaseMessage) -> dict[str, Any]:
    """Return a message as the arguments of `add`. Whatever they cannot express is in the metadata."""
    role = message.role if isinstance(message, ChatMessage) else _ROLES.get(message.type)
    if role not in {"user", "assistant", "system", "tool"}:
        raise InvalidInput(f"a message of type {message.type!r} cannot be stored", "messages")
    new: dict[str, Any] = {"role": role, "text": str(message.text)}
    if isinstance(message, AIMessage):
        new["tool_calls"] = [
            ToolCall(call["id"] or f"call-{at}", call["name"], json.dumps(call["args"], ensure_ascii=False))
            for at, call in enumerate(message.tool_calls)
        ]
    if isinstance(message, ToolMessage):
        new["tool_call_id"] = message.tool_call_id
    whole = message.model_dump(mode="json", exclude_defaults=True)
    if not new["text"] or whole != {"content": new["text"]} or message.type not in {"human", "ai", "system"}:
        return shared.with_original(new, _FRAMEWORK, message.type, {"type": message.type, "data": whole})
    return new


def _as_langchain(message: Message) -> BaseMessage:
    """Return the message that was stored; for messages from elsewhere, and edited ones, the one they make."""
    whole = shared.original(message, _FRAMEWORK)
    if isinstance(whole, Mapping):
        (stored,) = messages_from_dict([dict(whole)])
        if str(stored.text) == message.text:
            return stored
    if message.tool_call_id is not None:
        return ToolMessage(content=message.text, tool_call_id=message.tool_call_id)
    if message.role == "assistant":
        calls = [{"id": call.id, "name": call.name, "args": shared.arguments_of(call)} for call in message.tool_calls]
        return AIMessage(content=message.text, tool_calls=calls)
    if message.role == "tool":
        return ChatMessage(role="tool", content=message.text)
    return (SystemMessage if message.role == "system" else HumanMessage)(content=message.text)
