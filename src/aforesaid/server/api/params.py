"""Parameters of the routes, checks of requests, idempotency keys and ETags."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

from fastapi import Depends, Header, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from aforesaid.domain.checks import IDENTIFIER_CHARACTERS, LARGEST, Role, Within, json_object
from aforesaid.domain.details import MOST_PARTS, PartType
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, SourcesChanged, quoted
from aforesaid.memory import UserMemory
from aforesaid.server.auth import Credential
from aforesaid.server.authentication import App, MemoryDep, Reader
from aforesaid.server.form_errors import UNKNOWN
from aforesaid.store.memories import DerivedText, PutDerived

if TYPE_CHECKING:
    from fastapi._compat import ModelField
    from fastapi.dependencies.models import Dependant


PAGE: Final = 50
MOST_ON_A_PAGE: Final = 500

_PRINTABLE: Final = r"^[^\u0000-\u001f\u007f-\u009f]+$"
Identifier = Annotated[
    str,
    StringConstraints(min_length=1, max_length=IDENTIFIER_CHARACTERS),
    # For the description only: `checks.identifier` refuses control characters and names them.
    Field(json_schema_extra={"pattern": _PRINTABLE}),
]
NAMES: Final[JsonDict] = {"minLength": 1, "maxLength": IDENTIFIER_CHARACTERS, "pattern": _PRINTABLE}
"""The description of names of settings, which are keys of an object."""
Text = Annotated[
    str,
    # For the description only: `checks.storable` refuses NUL characters and says where they are.
    Field(json_schema_extra={"pattern": r"^[^\u0000]*$"}),
]
Moment = AwareDatetime

SpaceQuery = Annotated[
    Identifier | None,
    Query(description="The space. Only for keys for all spaces; other keys have their own.", examples=["default"]),
]
UserQuery = Annotated[
    Identifier | None, Query(description="The user. Not needed with a key for one user.", examples=["ann"])
]
ThreadQuery = Annotated[
    Identifier | None, Query(description="A channel that users share. Default: the direct chat.", examples=["general"])
]
ChatQuery = Annotated[
    Identifier | None,
    Query(description="One of the user's private chats. Default: the direct chat.", examples=["chat-1"]),
]
SessionQuery = Annotated[Identifier | None, Query(description="A session by name.", examples=["s-1"])]
Limit = Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE, description="Maximum number of results.")]
Cursor = Annotated[
    str | None,
    Query(
        max_length=2_000,
        description="`next` of the page before; without it, the first page.",
        json_schema_extra={"pattern": "^[A-Za-z0-9_-]+$"},
    ),
]
WithinQuery = Annotated[Within, Query(description="The user's own messages, the whole thread, or one session.")]
Number = Annotated[int, Path(ge=1, le=LARGEST, description="The id.", examples=[1])]


class Body(BaseModel):
    """A request body. Unknown fields are an error."""

    model_config = ConfigDict(extra="forbid")


class OfUser(Body):
    """A request body about one user. The space is the credential's."""

    user: Identifier | None = Field(
        default=None, description="The user. Not needed with a key for one user.", examples=["ann"]
    )
    thread: Identifier | None = Field(
        default=None, description="A channel that users share. Default: the direct chat.", examples=["general"]
    )
    chat: Identifier | None = Field(
        default=None, description="One of the user's private chats. Default: the direct chat.", examples=["chat-1"]
    )


def named(who: Credential, user: str | None) -> str:
    """Return the user that a request names, or the one that its key is for."""
    found = who.user_of(user)
    if found is None:
        raise InvalidInput("the request does not say whose memory it is about: name the user", "user")
    return found


class Asker:
    """Who asks, where the body of a request names the user: the memory of this user, if the credential allows it."""

    def __init__(self, who: Reader, memory: MemoryDep, space: SpaceQuery = None) -> None:
        self.who = who
        self._memory = memory
        self._space = space

    def user(self, user: str | None) -> UserMemory:
        return self.who.person(self._memory, named(self.who, user), space=self._space)

    def user_of(self, body: OfUser, session: str | None = None) -> UserMemory:
        """Return the memory of the user and the thread that a body names."""
        user, thread, chat = named(self.who, body.user), body.thread, body.chat
        return self.who.person(self._memory, user, space=self._space, thread=thread, chat=chat, session=session)


class _Writer(Asker):
    def __init__(self, who: App, memory: MemoryDep, space: SpaceQuery = None) -> None:
        super().__init__(who, memory, space)


Writer = Annotated[Asker, Depends(_Writer)]


def _person(
    who: Reader,
    memory: MemoryDep,
    user: UserQuery = None,
    space: SpaceQuery = None,
    thread: ThreadQuery = None,
    chat: ChatQuery = None,
    session: SessionQuery = None,
) -> UserMemory:
    return who.person(memory, named(who, user), space=space, thread=thread, chat=chat, session=session)


Person = Annotated[UserMemory, Depends(_person)]
"""The user named in the query string, for reading."""


def cursor_of(value: str | int) -> str:
    return base64.urlsafe_b64encode(str(value).encode()).decode().rstrip("=")


def text_of(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        return base64.urlsafe_b64decode(cursor.encode() + b"==").decode()
    except (ValueError, binascii.Error):
        raise unknown_cursor() from None


def number_of(cursor: str | None) -> int | None:
    text = text_of(cursor)
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= LARGEST:
        raise unknown_cursor()
    return int(text)


def unknown_cursor() -> InvalidInput:
    """Return the error for a cursor that no page ended with."""
    return InvalidInput("the cursor is not from this server; use `next` of the page before", "cursor")


IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=100,
        description="The ETag of the version you read. If the memory has changed since, the response is 412.",
        examples=['"1"'],
    ),
]


def etag(number: int) -> str:
    """Return the ETag of a revision."""
    return f'"{number}"'


def expected(match: str | None) -> int | None:
    """Return the revision that a request expects; None when it expects nothing."""
    if match is None or match.strip() == "*":
        return None
    text = match.strip().removeprefix("W/").strip('"')
    if not text.isascii() or not text.isdecimal() or len(text) > 18:  # noqa: PLR2004 - the digits of a revision
        raise InvalidInput(f"If-Match must be an ETag of this resource or *, not {quoted(match)}", "If-Match")
    return int(text)


@contextmanager
def unchanged(match: str | None) -> Iterator[None]:
    """Return 412 if the current revision is not the expected one."""
    try:
        yield
    except SourcesChanged as error:
        if expected(match) is None:
            raise
        raise HTTPException(412, str(error)) from error


_PLACES: Final = 64
_TRIES: Final = 5
_DEAD_AFTER: Final = timedelta(seconds=60)
"""A request that has not finished after this time counts as failed, and may be repeated."""

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="A request repeated with the same key is not processed again.",
        examples=["6f1c2a"],
    ),
]

M = TypeVar("M", bound=BaseModel)


class Once:
    """Carries requests out once for each idempotency key of a credential and a user."""

    def __init__(self, who: App, memory: MemoryDep, response: Response, key: IdempotencyKey = None) -> None:
        self._who = who
        self._store = memory.store
        self._response = response
        self._key = key

    async def carry_out(self, scope: Scope, body: BaseModel, shape: type[M], act: Callable[[], Awaitable[M]]) -> M:
        """Process a request about a user, or return the stored response of an earlier one with the same key."""
        if self._key is None:
            return await act()
        key, sent = _digest(self._who.id, self._key), _digest(type(body).__name__, body.model_dump_json())
        kind = f"once/{int(key[:8], 16) % _PLACES}"

        async def keep(value: str, *, instead_of: str, under: str = key) -> None:
            await self._store.apply([PutDerived(scope, kind, under, value, instead_of=instead_of)])

        for _ in range(_TRIES):
            kept = await self._store.read(DerivedText(scope, kind))
            if kept is not None and kept.key == key:
                record = json.loads(kept.value)
                if record["body"] != sent:
                    raise InvalidInput(
                        "this Idempotency-Key was used for another request; take a new one", "Idempotency-Key"
                    )
                if record["answer"] is not None:
                    self._response.headers["Idempotency-Replayed"] = "true"
                    return shape.model_validate_json(record["answer"])
                if datetime.now(UTC) - kept.at < _DEAD_AFTER:
                    raise SourcesChanged("this very request is being carried out; ask again in a moment")
            with suppress(SourcesChanged):  # another request took the place first
                await keep(json.dumps({"body": sent, "answer": None}), instead_of="" if kept is None else kept.key)
                break
        else:
            raise SourcesChanged("too many requests with keys at once; try again in a moment")
        try:
            made = await act()
        except BaseException:
            # A failed request may be retried with the same key.
            await keep("", under="", instead_of=key)
            raise
        await keep(json.dumps({"body": sent, "answer": made.model_dump_json()}), instead_of=key)
        return made


Idempotent = Annotated[Once, Depends()]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


_EMPTY_BODIES: Final = frozenset({b"", b"{}", b"null"})
"""Bodies that say nothing: some clients send one with every POST."""


async def check_request(request: Request) -> None:
    """Refuse parameters and bodies that the route of a request does not take, which it would ignore.

    Raises RequestValidationError (422), or HTTPException (415) for a body that is not declared as JSON.
    """
    route = request.scope["route"]
    assert isinstance(route, APIRoute)  # noqa: S101 - a dependency of such routes alone

    def takes_list(parameter: ModelField) -> bool:
        annotation = parameter.field_info.annotation
        return any(get_origin(each) is list for each in (annotation, *get_args(annotation)))

    given = Counter(name for name, _ in request.query_params.multi_items())
    known = {field.alias: field for field in _parameters(route.dependant)} if given else {}
    wrong = [_error(UNKNOWN, "Unknown parameter", "query", name) for name in given if name not in known]
    wrong += [
        _error("repeated", "Send this parameter only once", "query", name)
        for name, count in given.items()
        if count > 1 and name in known and not takes_list(known[name])
    ]
    if wrong:
        raise RequestValidationError(wrong)
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    if has_body and "requestBody" not in (route.openapi_extra or {}):  # a route that reads the body itself describes it
        body = (await request.body()).strip()
        if route.body_field is None and body not in _EMPTY_BODIES:
            text = "This route takes no body; send parameters in the query string"
            raise RequestValidationError([_error("no_body", text, "body")])
        sent = request.headers.get("content-type", "")
        # As the framework decides what to read as JSON.
        main, _, subtype = sent.partition(";")[0].strip().lower().partition("/")
        is_json = main == "application" and (subtype == "json" or subtype.endswith("+json"))
        if body and route.body_field is not None and not is_json:
            instead = f", not `{sent}`" if sent else ""
            raise HTTPException(
                415, f"The body must be JSON with the header `Content-Type: application/json`{instead}."
            )


def _parameters(dependant: Dependant) -> Iterator[ModelField]:
    yield from dependant.query_params
    for each in dependant.dependencies:
        yield from _parameters(each)


def _error(kind: str, text: str, *place: str) -> dict[str, Any]:
    return {"type": kind, "loc": place, "msg": text, "input": None}


HASH: Final = "^[0-9a-f]{64}$"


class PartBody(Body):
    """A part of a message: a text, or an image, a sound or a file, with its bytes or by where it is."""

    type: PartType = Field(examples=["image"])
    text: Text | None = Field(default=None, description="The text; or the caption or transcript.")
    url: Text | None = Field(default=None, description="Where it is.", examples=["https://example.org/cat.png"])
    media_type: Text | None = Field(default=None, examples=["image/png"])
    name: Text | None = Field(default=None, description="The file's name.")
    hash: str | None = Field(
        default=None, pattern=HASH, description="The SHA-256 of its bytes. Needs `data`, or the `url` where they are."
    )
    size: int | None = Field(default=None, ge=0, description="Number of bytes.")
    data: str | None = Field(default=None, description="Its bytes in base64. They are stored; not in a batch.")

    @property
    def is_hash_alone(self) -> bool:
        """Whether it names bytes that must be stored already."""
        return self.hash is not None and self.data is None and self.url is None

    def argument(self, known: Collection[str | None] = ()) -> dict[str, Any]:
        """Return the part as an argument of `add`. Raises InvalidInput.

        A hash alone is accepted only if it is `known`: it would give access to bytes that another user stored.
        """
        found = self.model_dump(exclude_none=True, exclude={"data"})
        if self.data is not None:
            if self.url is not None:
                raise InvalidInput("a part has either data or a url, not both", "parts")
            try:
                found["data"] = base64.b64decode(self.data, validate=True)
            except (binascii.Error, ValueError):
                raise InvalidInput("the data of a part must be base64", "parts") from None
        elif self.is_hash_alone and self.hash not in known:
            raise InvalidInput("a part with a hash needs its data, or the url where the bytes are", "parts")
        return found


class ToolCallBody(Body):
    """A tool that the model asked for."""

    id: Identifier = Field(examples=["call_1"])
    name: Identifier = Field(examples=["get_weather"])
    arguments: Text = Field(description="As the model wrote them.", examples=['{"city": "Berlin"}'])

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, given: Any) -> Any:  # noqa: ANN401
        """Accept the form of OpenAI's API: `{"id": …, "type": "function", "function": {"name": …, "arguments": …}}`."""
        if isinstance(given, dict) and isinstance(given.get("function"), dict):
            return {
                **{name: value for name, value in given.items() if name not in ("type", "function")},
                **given["function"],
            }
        return given


class ContentText(Body):
    """A text in the content of a message."""

    type: Literal["text"]
    text: Text = Field(min_length=1, examples=["What is this?"])


class ImageAddress(Body):
    """Where an image is."""

    url: Text = Field(min_length=1, examples=["https://example.org/cat.png"])
    detail: Text | None = Field(default=None, description="Ignored.")


class ContentImage(Body):
    """An image in the content of a message."""

    type: Literal["image_url"]
    image_url: ImageAddress


class DetailsBody(Body):
    """What a message has beside its text."""

    parts: list[PartBody] = Field(default=[], max_length=MOST_PARTS, description="Texts, images, sounds and files.")
    tool_calls: list[ToolCallBody] = Field(default=[], max_length=MOST_PARTS, description="Tools that it asks for.")
    tool_call_id: Identifier | None = Field(default=None, description="The call that this is the result of.")
    metadata: dict[str, Any] | None = Field(default=None, description="Any JSON object.", examples=[{"topic": "home"}])
    reply_to: Identifier | None = Field(default=None, description="The id of the message that it replies to.")
    kind: Identifier | None = Field(default=None, description="The platform's kind of message.", examples=["voice"])
    language: Identifier | None = Field(default=None, description="Its language.", examples=["en"])

    def details(self) -> dict[str, Any]:
        """Return the details that are set, as arguments of `add`."""
        found = self.model_dump(include=DetailsBody.model_fields.keys() - {"parts"})
        found["parts"] = [part.argument() for part in self.parts]
        return {name: value for name, value in found.items() if value}


class MessageBody(DetailsBody):
    """A message to store."""

    role: Role = Field(examples=["user"])
    text: Text = Field(
        default="",
        description="May be empty if there are parts or tool calls, or for the result of one.",
        examples=["I moved to Berlin last week."],
    )
    content: Text | list[Annotated[ContentText | ContentImage, Field(discriminator="type")]] | None = Field(
        default=None,
        description="The text, or its parts, as OpenAI-style programs have it. Instead of `text`.",
        examples=["I moved to Berlin last week."],
    )
    at: Moment | None = Field(default=None, description="When it was said. Default: now.")
    id: Identifier | None = Field(
        default=None,
        description="The platform's message id. An id that the thread already has is not stored again.",
    )
    author: Identifier | None = Field(default=None, description="The speaker, if it is not the user or the assistant.")
    name: Text | None = Field(default=None, max_length=255, description="The speaker's display name.")
    replaces: Identifier | None = Field(
        default=None, description="The id of the message in the thread that this is a new version of."
    )

    def arguments(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("role", "text", "at", "id", "author", "name", "replaces")}
        if self.content is not None:
            content = self.content if isinstance(self.content, str) else [part.model_dump() for part in self.content]
            plain["content"] = content
        return {**plain, **self.details()}


def _filter(
    role: Annotated[Role | None, Query(description="Only messages of this role.")] = None,
    author: Annotated[Identifier | None, Query(description="Only messages that this id wrote.")] = None,
    since: Annotated[Moment | None, Query(description="Only messages said at this time or later.")] = None,
    until: Annotated[Moment | None, Query(description="Only messages said before this time.")] = None,
    metadata: Annotated[
        str | None,
        Query(
            max_length=10_000,
            description="Only messages whose metadata has these keys with equal values: a JSON object.",
            examples=['{"topic": "home"}'],
        ),
    ] = None,
) -> dict[str, Any]:
    found = None if metadata is None else json_object(metadata)
    if metadata is not None and found is None:
        raise InvalidInput('metadata must be a JSON object, such as {"topic": "home"}', "metadata")
    return {"role": role, "author": author, "since": since, "until": until, "metadata": found}


MessageFilter = Annotated[dict[str, Any], Depends(_filter)]
"""Arguments of `history`, `search` and `count`: conditions on messages, as the query string has them."""
