"""The bot on a real server, by voice: flite speaks, pocketsphinx hears, on both sides."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import aforesaid
from aforesaid.bots.mumble.messages import UserState
from aforesaid.models.speech import RoutedSpeech, speech_health
from aforesaid.testing import ScriptedModel
from mumble.botting import bot, remembering, session_of, speech
from mumble.mumbling import PASSWORD, SUPERUSER, MumbleServer, Someone, needs_server, someone, until
from mumble.speaking import SpeechServices, needs_flite

pytestmark = [needs_server, needs_flite]


@pytest.fixture
def ears() -> Iterator[SpeechServices]:
    services = SpeechServices()
    yield services
    services.close()


@pytest.fixture
def voice() -> Iterator[SpeechServices]:
    services = SpeechServices()
    yield services
    services.close()


def health(speaking: RoutedSpeech) -> list[str]:
    return [part.status for part in speech_health(speaking)]


async def all_said(memory: aforesaid.Memory, server: MumbleServer) -> list[str]:
    """Return what was said by ann, and to her, in the channel."""
    place = f"127.0.0.1:{server.port}"
    history = await memory.user(f"name-ann@{place}", space=f"mumble:{place}", thread="0").history()
    return [message.text for message in history]


async def ready(person: Someone) -> None:
    await until(lambda: session_of(person, "Robbie"))


@pytest.mark.req("D15")
async def test_what_is_said_is_understood_kept_and_answered_aloud(
    mumble: MumbleServer, ears: SpeechServices, voice: SpeechServices, tmp_path: Path
) -> None:
    with ScriptedModel(["Your brother plays the piano."]) as model:
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble, speech=speech(ears, voice)),
            someone(mumble.address, "ann") as ann,
        ):
            await ready(ann)
            await ann.say("My brother plays the piano.")
            assert await ann.hears() == "your brother plays the piano"
            assert await all_said(memory, mumble) == ["my brother plays the piano", "Your brother plays the piano."]
            # Spoken, and therefore not written.
            assert not ann.seen


@pytest.mark.defect("B12")
async def test_what_was_spoken_is_marked_as_voice_in_the_documented_table(
    mumble: MumbleServer, ears: SpeechServices, voice: SpeechServices, tmp_path: Path
) -> None:
    with ScriptedModel(["I will remember that.", "Yes."]) as model:
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble, speech=speech(ears, voice)),
            someone(mumble.address, "ann") as ann,
        ):
            await ready(ann)
            await ann.say("My brother plays the piano.")
            await ann.hears()
            await ann.link.write("Robbie, does he play the piano?", channel=0)
            assert await ann.told() == "Yes."
    with closing(sqlite3.connect(tmp_path / "memory.db")) as database:
        types = database.execute("SELECT role, message_type FROM conversation_history ORDER BY id").fetchall()
    assert types == [("user", "voice"), ("assistant", "voice"), ("user", "text"), ("assistant", "text")]


@pytest.mark.req("D11", "D15")
async def test_a_bot_that_cannot_hear_says_so_once_goes_on_in_text_and_hears_again(
    mumble: MumbleServer, ears: SpeechServices, voice: SpeechServices, tmp_path: Path
) -> None:
    with ScriptedModel(["I can read.", "I can hear."]) as model:
        speaking = speech(ears, voice)
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble, speech=speaking) as robbie,
            someone(mumble.address, "ann") as ann,
        ):
            await ready(ann)
            ears.down = True
            await ann.say("Hello there.")
            assert "cannot understand speech at the moment, so please write" in await ann.told()
            assert health(speaking) == ["failing", "active"]
            assert robbie.session.health().status == "failing"
            assert robbie.session.health().issues[0].startswith("speech-to-text: ears:sphinx")
            await ann.link.write("Can you read?", channel=0)
            assert await ann.told() == "I can read."
            failed = len(ears.asked)
            await ann.say("Hello again.")
            await until(lambda: len(ears.asked) > failed or speaking.states("hear")["ears:sphinx"].failures > 1)
            ears.down = False
            await until(lambda: (speaking.states("hear")["ears:sphinx"].retry_in or 0) <= 0)
            await ann.say("I like green tea.")
            # The bot says once that it cannot hear, then that it can again, and then it speaks the answer.
            assert await ann.told() == "(I can understand speech again.)"
            await ann.spoken_to()
            assert voice.spoken == ["I can hear."]
            assert health(speaking) == ["active", "active"]
            assert robbie.session.health().status == "active"
            assert await all_said(memory, mumble) == ["Can you read?", "I can read.", "i like green tea", "I can hear."]


@pytest.mark.req("D11", "D15")
async def test_a_bot_that_cannot_speak_writes_instead_and_speaks_again(
    mumble: MumbleServer, ears: SpeechServices, voice: SpeechServices, tmp_path: Path
) -> None:
    with ScriptedModel(["The first answer.", "The second answer.", "I like green tea."]) as model:
        speaking = speech(ears, voice)
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble, speech=speaking),
            someone(mumble.address, "ann") as ann,
        ):
            await ready(ann)
            voice.down = True
            await ann.say("Hello there.")
            assert "cannot speak at the moment, so I write" in await ann.told()
            assert await ann.told() == "The first answer."
            assert health(speaking) == ["active", "failing"]
            await ann.say("Hello again.")
            assert await ann.told() == "The second answer.", "that it cannot speak is told once"
            voice.down = False
            await until(lambda: (speaking.states("speak")["voice:flite"].retry_in or 0) <= 0)
            await ann.say("Hello there.")
            assert await ann.hears() == "i like green tea"
            assert health(speaking) == ["active", "active"]


async def test_a_bot_that_may_not_speak_writes(
    mumble: MumbleServer, ears: SpeechServices, voice: SpeechServices, tmp_path: Path
) -> None:
    with ScriptedModel(["Written."]) as model:
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble, speech=speech(ears, voice), answers_always=True),
            someone(mumble.address, SUPERUSER, PASSWORD) as root,
            someone(mumble.address, "ann") as ann,
        ):
            await ready(root)
            robbie = session_of(root, "Robbie")
            assert robbie is not None
            await root.link.change(UserState(session=robbie, mute=True))
            await until(lambda: ann.link.people.persons[robbie].silenced)
            await ann.say("Hello there.")
            assert "not allowed to speak here" in await ann.told()
            assert await ann.told() == "Written."
            assert not voice.spoken


async def test_a_whisper_is_private_and_answered_with_a_whisper(
    mumble: MumbleServer, ears: SpeechServices, voice: SpeechServices, tmp_path: Path
) -> None:
    with ScriptedModel(["Between you and me."]) as model:
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble, speech=speech(ears, voice)),
            someone(mumble.address, "ann") as ann,
            someone(mumble.address, "bob") as bob,
        ):
            await ready(ann)
            await ann.say("I like green tea.", whisper_to=session_of(ann, "Robbie"))
            await ann.spoken_to()
            assert voice.spoken == ["Between you and me."]
            assert not bob.seen
            private = await memory.user(f"name-ann@127.0.0.1:{mumble.port}", space="mumble").history()
            assert [message.text for message in private] == ["i like green tea", "Between you and me."]


async def test_a_long_answer_is_begun_aloud_and_written_whole(
    mumble: MumbleServer, ears: SpeechServices, voice: SpeechServices, tmp_path: Path
) -> None:
    answer = "Here it is.\n```\nprint(1)\n```"
    with ScriptedModel([answer]) as model:
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble, speech=speech(ears, voice)),
            someone(mumble.address, "ann") as ann,
        ):
            await ready(ann)
            await ann.say("Hello there.")
            await ann.spoken_to()
            assert voice.spoken == ["Here it is. The rest is written."], ears.heard
            assert await ann.told() == "Here it is.<pre>print(1)</pre>"
