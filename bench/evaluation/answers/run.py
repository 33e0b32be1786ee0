"""Ask a model every question with a context of Aforesaid, and have another model judge the answers."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from aforesaid.errors import ModelError, ModelGarbled
from aforesaid.memory import Memory, connect
from aforesaid.models.chat import RoutedChat, Said
from aforesaid.store import Progress
from evaluation.answers.models import (
    PROMPTS,
    ChosenModel,
    instructions,
    judge,
    prompt,
)
from evaluation.answers.results import Key, Result, ResultsFile, RunHeader
from evaluation.contexts.measure import newest_only, turns_in
from evaluation.conversation import Conversation, Dataset, Question
from evaluation.filling import REPEATABLE, SPACE, Filling, rounds_of
from evaluation.question_sample import evenly

MOST_FAILURES: Final = 3
"""Questions in a row that a model may fail before the run is stopped: it is down, or the key is wrong."""
MOST_UNREADABLE: Final = 20
"""Verdicts in a row that may be unreadable before the run is stopped: each costs an answer of the other model."""
_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Data sets contain a few very long turns."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is made."""

    budget: int = 4_000
    """Tokens of a context."""
    profile: str = "default"
    newest_only: bool = False
    """Whether contexts contain the newest messages and nothing else, for comparison."""
    parallel: int = 4
    """Questions asked at the same time."""
    timeout: float = 120.0
    """Seconds for one call of a model, including retries."""
    max_tokens: int = 1_024
    """Maximum tokens of an answer or a verdict."""


class Asked(NamedTuple):
    """A question of a data set."""

    format: str
    conversation: Conversation
    number: int
    question: Question

    @property
    def key(self) -> Key:
        """What identifies the question in a file of results."""
        return Key(self.format, self.conversation.id, self.number, self.question.text)


def questions_of(dataset: Dataset, limit: int | None = None) -> list[Asked]:
    """Return the questions that can be judged: those with an expected answer, and those about what was never said.

    With a limit, always the same ones, spread evenly over all conversations.
    """
    asked = [
        Asked(dataset.format, conversation, number, question)
        for conversation in dataset.conversations
        for number, question in enumerate(
            (*conversation.questions, *conversation.unanswerable, *conversation.unlabelled)
        )
        if question.answer or question.never_said
    ]
    return asked if limit is None else evenly(asked, limit)


def header_of(model: ChosenModel, judge: ChosenModel, options: RunOptions) -> RunHeader:
    """Return what all results of a run have in common."""
    prompts = ", ".join(prompt(name).version for name in PROMPTS)
    profile = f"{options.profile}, newest messages only" if options.newest_only else options.profile
    return RunHeader(model.label, judge.label, options.budget, profile, prompts)


def profile_of(options: RunOptions) -> dict[str, object]:
    """Return the profile that builds the contexts of a run."""
    newest = newest_only(("system", "recent", "date", "current"), options.budget) if options.newest_only else {}
    return {"extends": options.profile, "message_bytes": _MESSAGE_BYTES, **newest}


async def answer_questions(
    datasets: Sequence[Dataset],
    asked: Sequence[Asked],
    models: tuple[ChosenModel, ChosenModel],
    options: RunOptions,
    file: ResultsFile,
    progress: Progress,
) -> list[Result]:
    """Ask and judge every question that has no verdict yet; return the results of all of them.

    `models` are the one that answers and the judge. Every result is in the file before the next question is asked.
    Raises ModelError if a model fails too many questions in a row; what was done is kept.
    """
    todo = [each for each in asked if (known := file.results.get(each.key)) is None or known.verdict is None]
    answering, judging = (
        each.open(parallel=options.parallel, timeout=options.timeout, max_tokens=options.max_tokens) for each in models
    )
    try:
        run = _Run(answering, judging, options, file, progress, len(todo))
        for dataset in datasets:
            await run.ask(dataset, [each for each in todo if each.format == dataset.format and _has(dataset, each)])
    finally:
        await answering.close()
        await judging.close()
    return [file.results[each.key] for each in asked if each.key in file.results]


def _has(dataset: Dataset, asked: Asked) -> bool:
    return any(conversation is asked.conversation for conversation in dataset.conversations)


class _Run:
    """A run in progress."""

    def __init__(
        self,
        answering: RoutedChat,
        judging: RoutedChat,
        options: RunOptions,
        file: ResultsFile,
        progress: Progress,
        total: int,
    ) -> None:
        self._answering = answering
        self._judging = judging
        self._options = options
        self._file = file
        self._progress = progress
        self._total = total
        self._done = 0
        self._unanswered = self._unjudged = self._unreadable = 0
        """Questions in a row without an answer, without a verdict, and with a verdict that cannot be read."""

    async def ask(self, dataset: Dataset, todo: Sequence[Asked]) -> None:
        """Store the conversations of some questions in a temporary memory, and ask them."""
        if not todo:
            return
        wanted = {each.conversation.id for each in todo}
        stored = tuple(each for each in dataset.conversations if each.id in wanted)
        with tempfile.TemporaryDirectory(prefix="aforesaid-eval-") as folder:
            place, profile = Path(folder) / "memory.db", profile_of(self._options)
            async with connect(place, profile=profile, settings=REPEATABLE) as memory:
                filling = Filling(memory, replace(dataset, conversations=stored), self._progress)
                asked = {id(each.question): each for each in todo}
                for known, together in rounds_of((each.conversation, each.question) for each in todo):
                    await filling.up_to(known)
                    await self._ask_all(memory, [asked[id(question)] for _, question in together])

    async def _ask_all(self, memory: Memory, todo: Sequence[Asked]) -> None:
        waiting = iter(todo)

        async def work() -> None:
            for each in waiting:
                await self._ask_one(memory, each)

        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(min(self._options.parallel, len(todo))):
                    tasks.start_soon(work)
        except ExceptionGroup as group:
            raise group.exceptions[0] from None  # the error that stopped the others

    async def _ask_one(self, memory: Memory, asked: Asked) -> None:
        result = self._file.results.get(asked.key)
        if result is None or result.answer is None:
            result = await self._answered(memory, asked)
        if result.answer is not None:
            result = await self._judged(result, result.answer)
        self._file.append(result)
        self._done += 1
        self._progress("asking", self._done, self._total)
        self._stop_if_hopeless(result)

    async def _answered(self, memory: Memory, asked: Asked) -> Result:
        question = asked.question
        user = memory.user(asked.conversation.id, space=SPACE)
        context = await user.context(
            question.text, self._options.budget, system=instructions(), at=question.asked_at, tools=False
        )
        inside = turns_in(context)
        blank = Result(
            *asked.key,
            question.category,
            asked.conversation.language,
            asked.conversation.kind,
            question.never_said,
            question.answer,
            sum(turn in inside for turn in question.turns) / len(question.turns) if question.turns else None,
            context.tokens,
            answer=None,
            verdict=None,
            reason="",
            prompt_tokens=0,
            reply_tokens=0,
            judge_prompt_tokens=0,
            judge_reply_tokens=0,
            error=None,
        )
        messages = [Said(each["role"], str(each["content"])) for each in context.messages]
        try:
            reply = await self._answering.text("chat", messages)
        except ModelError as error:
            self._unanswered += 1
            return replace(blank, error=f"the model failed: {error}")
        self._unanswered = 0
        return replace(
            blank, answer=reply.text.strip(), prompt_tokens=reply.prompt_tokens, reply_tokens=reply.reply_tokens
        )

    async def _judged(self, result: Result, answer: str) -> Result:
        try:
            verdict = await judge(
                self._judging, result.question, None if result.never_said else result.expected, answer
            )
        except ModelGarbled as error:
            self._unreadable += 1
            return replace(result, error=f"the verdict cannot be read: {error}")
        except ModelError as error:
            self._unjudged += 1
            return replace(result, error=f"the judge failed: {error}")
        self._unjudged = self._unreadable = 0
        return replace(
            result,
            verdict=verdict.value.verdict,
            reason=verdict.value.reason,
            judge_prompt_tokens=verdict.prompt_tokens,
            judge_reply_tokens=verdict.reply_tokens,
            error=None,
        )

    def _stop_if_hopeless(self, last: Result) -> None:
        failed = max(self._unanswered, self._unjudged) >= MOST_FAILURES
        if last.error is not None and (failed or self._unreadable >= MOST_UNREADABLE):
            raise ModelError(
                f"stopped, because too many questions in a row have no verdict; the last one: {last.error}. What was "
                f"done is kept in {self._file.path}: run the same command again to go on"
            )
