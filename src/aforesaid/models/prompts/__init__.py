"""Prompts, loaded from files, and the words of others inside of them.

Texts of others are fenced: escaped, without invisible characters, under the names of their speakers.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from itertools import count
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from aforesaid.domain.caches import holds_texts
from aforesaid.domain.checks import Role
from aforesaid.domain.message import Message
from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re
from aforesaid.settings import OPERATIONS, Operation
from aforesaid.text.times.time_words import SHORT_MONTHS, SHORT_WEEKDAYS

# What Unicode calls default ignorable: zero-width and bidirectional controls, fillers, variation selectors, tags. The
# list is written out, so that the same text gives the same prompt with every version of Python. Signs that are drawn,
# such as the Arabic sign of a number, are not in it.
_IGNORABLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_CONTROLS: Final = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_LAST_OF_PLANES: Final = "".join(
    chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)
)
_NONCHARACTERS: Final = "\ufdd0-\ufdef" + _LAST_OF_PLANES

_EMOJI: Final = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
_JOINING: Final = (
    "\u0620-\u06ff\u0710-\u077f\u08a0-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17d3\u1820-\u18aa"
    "\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
)
"""Arabic, Syriac, the scripts of India, Burmese, Khmer, Mongolian: here joiners change what is read."""

_NEEDED: Final = re.compile(
    f"(?<=[{_EMOJI}])[\ufe0e\ufe0f]"  # a symbol drawn as text or in colour
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"  # a key
    f"|(?:(?<=[{_EMOJI}])|(?<=[{_EMOJI}]\ufe0f))\u200d(?=[{_EMOJI}])"  # several symbols drawn as one
    f"|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
)
_INVISIBLE: Final = re.compile(f"[{_IGNORABLE}{_CONTROLS}{_NONCHARACTERS}]")
_LINE_ENDS: Final = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PLAIN_SPACES: Final = {ord("\n"): " ", ord("\t"): " "}
"""What stays although Python does not count it as printable."""


def strip_invisible(text: str) -> str:
    """Return a text without what cannot be seen. What can be seen stays as it is.

    Zero-width characters, marks that turn the direction of writing, tag characters, fillers, variation selectors and
    control characters go: instructions can be hidden in them. Tabs stay, line ends become newlines. Half of a surrogate
    pair becomes U+FFFD. Kept are the joiners and selectors without which something else would be seen: inside of emoji,
    and between two letters of scripts that need them. Flags of regions (England, Texas) are spelled in tag characters
    and become plain flags.
    """
    if text.isascii() and (text.isprintable() or text.translate(_PLAIN_SPACES).isprintable()):
        return text
    text = _SURROGATE.sub("\ufffd", _LINE_ENDS.sub("\n", text))
    return _INVISIBLE.sub(_kept, text)


def _kept(found: re.Match[str]) -> str:
    return found[0] if _NEEDED.match(found.string, found.start()) else ""


_TO_THE_MINUTE: Final = len("2026-03-01 09:30")
_PAUSE: Final = timedelta(hours=1)
"""Time between two messages of a transcript after which the time is written again."""


class Fenced(str):
    """A text that can be inserted into a prompt: it was escaped, or its author may give instructions."""

    __slots__ = ()


class Line(NamedTuple):
    """A message as a model receives it."""

    speaker: str
    """The speaker's display name. Ids are never sent."""
    text: str
    at: datetime | None = None
    role: Role = "user"
    label: str | None = None
    """What tells apart two people of one name, where the model has to say whom it means."""


def quote(text: str) -> Fenced:
    """Return a text with markup escaped and invisible characters removed."""
    return Fenced(strip_invisible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def one_line(text: str) -> str:
    """Return a text in one line, without what is invisible, for names and other short things."""
    return " ".join(strip_invisible(text).split())


def fence(lines: Iterable[Line]) -> Fenced:
    """Return messages as `<message at="Sun 2026-03-01 09:30" from="Ann">text</message>`, inside of `<messages>`.

    What was not said by a person has its role, so that nobody can pose as the assistant by their name.
    """
    return enclosed("messages", map(fence_line, lines))


def fence_line(line: Line) -> Fenced:
    at = "" if line.at is None else f' at="{moment(line.at)}"'
    role = "" if line.role == "user" else _attribute("role", line.role)
    return Fenced(f"<message{at}{_attribute('from', line.speaker)}{role}>{quote(line.text)}</message>")


def transcript(lines: Sequence[Line], numbers: Sequence[int | None]) -> Fenced:
    """Return messages in few tokens, each on one line: `[1] Ann: text`, inside of `<messages>`.

    `numbers` are those by which a model names messages as sources. Messages without one begin with `-`. A line
    `# Sun 2026-03-01 09:30` comes before the first message of a day, and after a pause. No text can begin a line, since
    line ends become spaces. What was not said by a person has its role.
    """
    rows: list[str] = []
    before: datetime | None = None
    for line, number in zip(lines, numbers, strict=True):
        if line.at is not None and (before is None or line.at.date() != before.date() or line.at - before > _PAUSE):
            rows.append(f"# {moment(line.at)}")
        before = line.at or before
        speaker = quote(one_line(line.speaker.replace(":", " ")))
        role = "" if line.role == "user" else f" ({line.role})"
        rows.append(f"{'-' if number is None else f'[{number}]'} {speaker}{role}: {quote(one_line(line.text))}")
    return enclosed("messages", rows)


def numbered(tag: str, texts: Sequence[str]) -> Fenced:
    """Return texts as lines `1. text`, inside of a tag."""
    return enclosed(tag, (f"{number}. {quote(one_line(text))}" for number, text in enumerate(texts, 1)))


def fence_labelled(lines: Iterable[Line]) -> Fenced:
    """Return messages of many people in full, each with the label of who wrote it.

    As `<message><timestamp/><author_id/><author/><content/></message>`, inside of `<messages>`.
    """
    messages = "\n".join(
        "<message>"
        f"<timestamp>{'' if line.at is None else moment(line.at)}</timestamp>"
        f"<author_id>{quote(one_line(line.label or ''))}</author_id>"
        f"<author>{quote(one_line(line.speaker))}</author>"
        f"<content>{quote(line.text)}</content>"
        "</message>"
        for line in lines
    )
    return Fenced(f"<messages>\n{messages}\n</messages>")


def enclose(outer: str, inner: str, items: Iterable[tuple[Mapping[str, str | None], str]]) -> Fenced:
    """Return texts, each in a tag with its attributes, all of them in another. Attributes of None are left out."""
    rows = (
        f"<{inner}{''.join(_attribute(*each) for each in attributes.items())}>{quote(text)}</{inner}>"
        for attributes, text in items
    )
    return enclosed(outer, rows)


def enclosed(outer: str, rows: Iterable[str]) -> Fenced:
    """Return what is tagged already, all of it in another tag."""
    return Fenced("\n".join([f"<{outer}>", *rows, f"</{outer}>"]))


def listed(items: Iterable[tuple[str, str]]) -> Fenced:
    """Return remembered things as `[CATEGORY] text`, one in each line, whatever line ends are in them."""
    return Fenced("\n".join(f"[{quote(one_line(kind)).upper()}] {quote(one_line(text))}" for kind, text in items))


def moment(at: datetime) -> str:
    """Write a moment as it is in its time zone, to the minute, with the weekday that people reckon by."""
    return f"{SHORT_WEEKDAYS[at.weekday()]} {at.isoformat(' ', 'minutes')[:_TO_THE_MINUTE]}"


def written_day(day: date) -> str:
    """Write a day in few tokens, such as `Sun 1 Mar 2026`."""
    return f"{SHORT_WEEKDAYS[day.weekday()]} {day.day} {SHORT_MONTHS[day.month - 1]} {day.year}"


@holds_texts
@lru_cache(1_024)
def _attribute(name: str, value: str | None) -> str:
    if value is None:
        return ""
    return f' {name}="{quote(one_line(value)).replace(chr(34), "&quot;")}"'


NAMELESS: Final = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
"""The names of speakers without a display name."""
SOMEBODY: Final = "somebody"

_MENTION: Final = re.compile(r"<@!?([^<>\s]{1,255})>")


def name_speakers(messages: Iterable[Message], names: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what each author is called: the name in `names`, the last one they showed, or what they are.

    Two authors are never called the same: the second Ann is "Ann (2)".
    """
    called: dict[str, str] = {}
    for message in messages:
        name = one_line((names or {}).get(message.author) or message.name or "")
        if name or message.author not in called:
            called[message.author] = name or NAMELESS[message.role]
    taken: set[str] = set()
    for author, name in called.items():
        different = (name if number == 1 else f"{name} ({number})" for number in count(1))
        called[author] = next(label for label in different if label not in taken)
        taken.add(called[author])
    return called


def lines_of(messages: Sequence[Message], names: Mapping[str, str] | None = None) -> list[Line]:
    """Return messages as a model is shown them: names for ids, in the text too.

    `names` has the display names by author, where the caller knows them better than the messages do.
    """
    called = {**(names or {}), **name_speakers(messages, names)}
    return [
        Line(called[message.author], name_mentions(message.shown_text, called), message.at, message.role)
        for message in messages
    ]


def name_mentions(text: str, names: Mapping[str, str]) -> str:
    """Replace mentions as Discord writes them (`<@123>`) by names."""
    return _MENTION.sub(lambda found: f"@{one_line(names.get(found[1], SOMEBODY))}", text)


class Said(NamedTuple):
    """One message of a request to a model."""

    role: Literal["system", "user", "assistant"]
    content: str
    name: str | None = None
    """Sent along where the API takes it: letters, digits, `_` and `-`. Prompts that need a name say it in the text."""


Part: TypeAlias = "str | int | date"
"""What can be put into a prompt. A text that is not `Fenced` is escaped on its way in."""

NAMES: Final = (
    "summarize",
    "fold",
    "roll",
    "day",
    "week",
    "history",
    "extract",
    "remember",
    "forget",
    "portrait",
    "route",
    "chat",
)

_HEADER: Final = re.compile(r"version: ([1-9][0-9]*)\noperation: ([a-z]+)\n")
_SECTION: Final = re.compile(r"^=== ([a-z]+) ===\n", re.MULTILINE)
_PLACE: Final = re.compile(r"\$\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, in sections. Most have two: the instructions (`system`) and the input (`user`)."""

    name: str
    number: int
    operation: Operation
    """Which of the configured models it is for."""
    sections: Mapping[str, str]

    @property
    def version(self) -> str:
        """Name and number, as it is stored with what the prompt produced. The number grows with every change."""
        return f"{self.name}/{self.number}"

    def places(self) -> set[str]:
        """Return the names of all places that have to be filled, in the instructions and the input if it has these."""
        whole = [self.sections[name] for name in ("system", "user") if name in self.sections]
        return {name for text in whole or self.sections.values() for name in _PLACE.findall(text)}

    def render(self, **parts: Part) -> list[Said]:
        """Return what to send to the model. A place that is not filled, or a part without a place, is an error."""
        if not {"system", "user"} <= set(self.sections):
            raise InvalidInput(f"the prompt {self.name} is rendered section by section; it has {_names(self.sections)}")
        self._check(self.places(), parts)
        return [
            Said("system", _fill(self.sections["system"], parts)),
            Said("user", _fill(self.sections["user"], parts)),
        ]

    def section(self, name: str, /, **parts: Part) -> str:
        if name not in self.sections:
            raise InvalidInput(f"the prompt {self.name} has no section {quoted(name)}; it has {_names(self.sections)}")
        text = self.sections[name]
        self._check(set(_PLACE.findall(text)), parts)
        return _fill(text, parts)

    def _check(self, places: set[str], parts: Mapping[str, Part]) -> None:
        if missing := places - set(parts):
            raise InvalidInput(f"the prompt {self.version} needs {_names(missing)}")
        if unknown := set(parts) - places:
            raise InvalidInput(f"the prompt {self.version} has no place for {_names(unknown)}")


@cache
def load_prompt(name: str) -> Prompt:
    if name not in NAMES:
        raise InvalidInput(f"there is no prompt {quoted(name)}; use one of {', '.join(NAMES)}")
    return read_prompt(name, (files("aforesaid.models.prompts") / "texts" / f"{name}.md").read_text(encoding="utf-8"))


@cache
def _examples() -> Mapping[str, Mapping[str, str]]:
    """Return the examples of notes, by language."""
    return tomllib.loads((files("aforesaid.models.prompts") / "examples.toml").read_text(encoding="utf-8"))


def ask_for_notes(language: str, most: int, *, name: str, known: Fenced | None, messages: Fenced) -> list[Said]:
    """Return the prompt for notes, with an example in a language, or in English. `known` is what they may change."""
    prompt = load_prompt("extract")
    words = _examples().get(language) or _examples()["english"]
    if known is None:
        example = prompt.section("example", said=words["said"], note=words["note"])
    else:
        example = prompt.section("changed", **words)
    return prompt.render(most=most, example=Fenced(example), name=name, known=known or Fenced(), messages=messages)


def read_prompt(name: str, text: str) -> Prompt:
    """Read a prompt: `version: N` and `operation: NAME` in the first lines, then sections under `=== name ===`."""
    header = _HEADER.match(text)
    if header is None or header[2] not in OPERATIONS:
        raise InvalidInput(f"the prompt {name} must begin with 'version: 1' and 'operation: …', {_names(OPERATIONS)}")
    before, *rest = _SECTION.split(text[header.end() :])
    if before.strip() or not rest:
        raise InvalidInput(f"the prompt {name} must have its text in sections, each below a line '=== name ==='")
    sections = {title: body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}
    return Prompt(name, int(header[1]), cast("Operation", header[2]), sections)


def _fill(text: str, parts: Mapping[str, Part]) -> str:
    # In one pass: what looks like a place in a part stays what it is.
    return _PLACE.sub(lambda found: _write(parts[found[1]]), text)


def _write(part: Part) -> str:
    if isinstance(part, Fenced):
        return part
    if isinstance(part, str):
        return quote(part)
    return part.isoformat() if isinstance(part, date) else str(part)


def _names(names: Mapping[str, object] | set[str] | tuple[str, ...]) -> str:
    return ", ".join(sorted(names))
