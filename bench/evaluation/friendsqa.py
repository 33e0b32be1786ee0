"""FriendsQA: dialogue between many speakers. An episode is a conversation, and its scenes are the sessions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final

from evaluation.conversation import PAUSE, Conversation, Tallies
from evaluation.conversation_builder import ConversationBuilder
from evaluation.json_files import Node

_UTTERANCES: Final = "utterances:"
"""The key of the utterances; the published files have the colon in it."""
_START: Final = datetime(2000, 1, 1, tzinfo=UTC)
_BETWEEN_SCENES: Final = timedelta(hours=1)
"""The time between two scenes. The data set has no dates; an hour is long enough to separate sessions."""


def fits(root: Node) -> bool:
    """Return whether this is FriendsQA. SQuAD has the same structure, but no utterances."""
    if not isinstance(root.raw, dict) or (data := root.find("data")) is None or not data.starts_with(paragraphs=list):
        return False
    return next(data.items()).field("paragraphs").starts_with(**{_UTTERANCES: list, "qas": list})


def load(root: Node, tallies: Tallies) -> Iterator[Conversation]:
    """Read every episode, with its scenes sorted by title."""
    scenes = sorted(
        (
            (title if number == 0 else f"{title}.{number}", scene)
            for entry in root.field("data").items()
            for title in [entry.field("title").name()]
            for number, scene in enumerate(entry.field("paragraphs").items())
        ),
        key=lambda scene: scene[0],
    )
    for episode, together in groupby(scenes, key=lambda scene: _episode(scene[0])):
        builder = ConversationBuilder(episode, tallies)
        questions: list[tuple[str, Node]] = []
        for number, (title, scene) in enumerate(together):
            _read_scene(title, scene, _START + number * _BETWEEN_SCENES, builder)
            questions += ((title, question) for question in scene.field("qas").items())
        for title, question in questions:
            evidence = {
                f"{title}:{answer.field('utterance_id').name()}" for answer in question.field("answers").items()
            }
            answers = dict.fromkeys(answer.text_of("answer_text") for answer in question.field("answers").items())
            builder.ask(
                question.field("question").text(),
                _category(title, question),
                evidence,
                answer=" / ".join(filter(None, answers)),
            )
        yield builder.conversation()


def _read_scene(title: str, scene: Node, start: datetime, builder: ConversationBuilder) -> None:
    for number, turn in enumerate(scene.field(_UTTERANCES).items()):
        speakers = [speaker.name() for speaker in turn.field("speakers").items()]
        builder.say(
            turn,
            f"{title}:{turn.field('uid').name()}",
            turn.text_of("utterance"),
            session=title,
            at=start + number * PAUSE,
            speaker=", ".join(speakers) or None,
        )


def _episode(title: str) -> str:
    """Return the episode of a title such as `s01_e23_c06`."""
    return title.rpartition("_")[0] or title


def _category(title: str, question: Node) -> str:
    """Return the question word of an id such as `s01_e23_c06_What_Paraphrased`."""
    rest = question.text_of("id").removeprefix(f"{title}_")
    return rest.partition("_")[0].lower() or "other"
