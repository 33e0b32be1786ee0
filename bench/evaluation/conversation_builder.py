"""Build a conversation turn by turn: the part that the loaders of all formats share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from aforesaid.domain.checks import Role
from aforesaid.errors import quoted
from evaluation.conversation import Conversation, Question, Tallies, Turn
from evaluation.json_files import Node

_DAY = timedelta(days=1)


class ConversationBuilder:
    """Builds a conversation. Add all turns first, then the questions about them."""

    def __init__(self, conversation: str, tallies: Tallies, *, language: str = "", kind: str = "") -> None:
        """Start an empty conversation. Skipped turns and evidence are counted in `tallies`."""
        self._language = language
        self._kind = kind
        self._id = conversation
        self._tallies = tallies
        self._turns: dict[str, Turn] = {}
        self._questions: list[Question] = []
        self._unanswerable: list[Question] = []
        self._unlabelled: list[Question] = []

    def say(
        self,
        place: Node,
        turn: str,
        text: str,
        *,
        session: str,
        at: datetime,
        role: Role = "user",
        speaker: str | None = None,
    ) -> None:
        """Add a turn; skip it if it has no text. Raises if its id is already used."""
        if not text.strip():
            self._tallies.left_out["turns without text"] += 1
            return
        if turn in self._turns:
            raise place.damaged(f"has the id of an earlier turn of {quoted(self._id)}: {quoted(turn)}")
        self._turns[turn] = Turn(turn, session, role, speaker, text, at)

    def ask(
        self,
        text: str,
        category: str,
        evidence: Collection[str],
        *,
        sessions: Iterable[str] = (),
        at: datetime | None = None,
        apart: bool = False,
        answer: str = "",
    ) -> None:
        """Add a question. It is asked a day after the last turn, unless the data set says when.

        Evidence that is not in the conversation is dropped; a question that keeps none leaves the denominator.
        The sessions of evidence turns are evidence too; `sessions` names more, where only they are labelled.
        The answer to a question that counts `apart` is not in the conversation.
        """
        wanted = set(evidence)
        turns = tuple(turn for turn in self._turns if turn in wanted)
        labelled = {*sessions, *(self._turns[turn].session for turn in turns)}
        found = tuple(dict.fromkeys(turn.session for turn in self._turns.values() if turn.session in labelled))
        self._tallies.mended["evidence ids that name no turn, dropped"] += len(wanted) - len(turns)
        if not text.strip():
            self._tallies.left_out["questions without text"] += 1
        elif not (wanted or labelled):
            self._tallies.left_out["questions without evidence"] += 1
        elif not (turns or found):
            self._tallies.left_out["questions whose evidence does not exist"] += 1
        else:
            asked_at = self._last() + _DAY if at is None else at
            self._questions.append(Question(text, category, asked_at, turns, found, apart, answer, apart))

    def ask_unanswerable(
        self,
        text: str,
        category: str,
        *,
        at: datetime | None = None,
        answer: str = "",
        reason: str = "questions without evidence",
    ) -> None:
        """Add a question about what was never said. Recall leaves it out, for a `reason` that the report names."""
        if not text.strip():
            self._tallies.left_out["questions without text"] += 1
            return
        self._tallies.left_out[reason] += 1
        if not self._turns:
            return
        asked_at = self._last() + _DAY if at is None else at
        self._unanswerable.append(Question(text, category, asked_at, (), (), answer=answer, never_said=True))

    def ask_unlabelled(self, text: str, category: str, answer: str) -> None:
        """Add a question whose answer is known, but not where it was said. Recall leaves it out."""
        if not text.strip() or not answer.strip():
            self._tallies.left_out["questions without text or answer"] += 1
            return
        self._tallies.left_out["questions without evidence"] += 1
        if self._turns:
            self._unlabelled.append(Question(text, category, self._last() + _DAY, (), (), answer=answer))

    def conversation(self) -> Conversation:
        """Return the finished conversation."""
        return Conversation(
            self._id,
            tuple(self._turns.values()),
            tuple(self._questions),
            tuple(self._unanswerable),
            tuple(self._unlabelled),
            self._language,
            self._kind,
        )

    def _last(self) -> datetime:
        return max(turn.at for turn in self._turns.values())
