"""The results of a run, one question in a line of a file. A run that was stopped goes on from there."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Literal, NamedTuple, Self

from pydantic import TypeAdapter, ValidationError

from aforesaid.errors import InvalidInput, quoted

VerdictName = Literal["correct", "wrong", "declined", "claimed"]


class Key(NamedTuple):
    """What identifies a question."""

    format: str
    conversation: str
    number: int
    """The place of the question in its conversation."""
    question: str


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What the results of a file have in common: the first line of the file."""

    model: str
    judge: str
    budget: int
    profile: str
    prompts: str
    """The versions of the prompts."""
    file: Literal["aforesaid eval answers, version 1"] = "aforesaid eval answers, version 1"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one question."""

    format: str
    conversation: str
    number: int
    question: str
    category: str
    language: str
    kind: str
    """The kind of chat."""
    never_said: bool
    expected: str
    evidence: float | None
    """The share of the evidence inside the context. None if no turns are labelled."""
    context_tokens: int
    answer: str | None
    """None if the model failed."""
    verdict: VerdictName | None
    """None if the model or the judge failed."""
    reason: str
    """The reason of the judge."""
    prompt_tokens: int
    reply_tokens: int
    judge_prompt_tokens: int
    judge_reply_tokens: int
    error: str | None
    """Why there is no verdict."""

    @property
    def key(self) -> Key:
        """What identifies the question."""
        return Key(self.format, self.conversation, self.number, self.question)

    @property
    def right(self) -> bool:
        """Whether the answer is right: as expected, or declined where nothing was said."""
        return self.verdict == ("declined" if self.never_said else "correct")


_HEADER: Final = TypeAdapter(RunHeader)
_RESULT: Final = TypeAdapter(Result)


class ResultsFile:
    """A file of results. Use it with `with`: reads what is there, and appends."""

    def __init__(self, path: Path, header: RunHeader) -> None:
        self.path = path
        self.results: dict[Key, Result] = {}
        """The last result of each question."""
        self._header = header
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Open the file, or create it. Raises InvalidInput if it is something else or belongs to another run."""
        try:
            self._file = self.path.open("r+b" if self.path.exists() else "w+b")
            content = self._file.read()
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be opened: {error.strerror or error}") from None
        # A process that is killed leaves a part of a line behind.
        complete = content[: content.rfind(b"\n") + 1]
        try:
            self._read(complete.splitlines())
            self._file.truncate(len(complete))
            self._file.seek(len(complete))
            if not complete:
                self._write(asdict(self._header))
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def append(self, result: Result) -> None:
        """Write a result. It is on the disk when this returns."""
        self._write(asdict(result))
        self.results[result.key] = result

    def _read(self, lines: list[bytes]) -> None:
        if not lines:
            return
        try:
            header = _HEADER.validate_json(lines[0], strict=True)
        except ValidationError:
            raise InvalidInput(
                f"{self.path} is not a file of results: line 1 is not their header; name another file with --results"
            ) from None
        for field in fields(header):
            there, here = getattr(header, field.name), getattr(self._header, field.name)
            if there != here:
                raise InvalidInput(
                    f"{self.path} has the results of another run: its {field.name} is {quoted(there)}, not "
                    f"{quoted(here)}; name another file with --results, or delete this one"
                )
        for number, line in enumerate(lines[1:], 2):
            try:
                result = _RESULT.validate_json(line, strict=True)
            except ValidationError as error:
                problem = error.errors()[0]["msg"]
                raise InvalidInput(
                    f"{self.path} is damaged: line {number} is not a result ({problem}); delete the line"
                ) from None
            self.results[result.key] = result

    def _write(self, value: dict[str, object]) -> None:
        if self._file is None:
            raise InvalidInput(f"{self.path} is not open")
        try:
            self._file.write(json.dumps(value, ensure_ascii=False).encode(errors="replace") + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be written: {error.strerror or error}") from None
