"""The client against a real server from Debian."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from aforesaid.bots.mumble import messages
from aforesaid.bots.mumble.link import (
    Address,
    Denied,
    Event,
    PersonLeft,
    RateLimit,
    TextReceived,
    VoiceReceived,
)
from aforesaid.bots.mumble.messages import ChannelState, UserRemove, UserState
from aforesaid.errors import PlatformRefused, PlatformUnavailable
from mumble.mumbling import (
    PASSWORD,
    SUPERUSER,
    MumbleServer,
    connect,
    make_certificate,
    needs_openssl,
    needs_server,
    someone,
    until,
)

pytestmark = needs_server


async def test_people_see_one_another_and_write_to_the_channel_and_in_private(mumble: MumbleServer) -> None:
    async with someone(mumble.address, "ann") as ann, someone(mumble.address, "bob") as bob:
        await until(lambda: len(ann.link.people.persons) == 2)
        assert ann.link.me.name == "ann"
        assert {person.name for person in bob.link.people.persons.values()} == {"ann", "bob"}
        await ann.link.write("hello all <b>of you</b> \N{GRINNING FACE} مرحبا", channel=0)
        public = await bob.wait(lambda event: isinstance(event, TextReceived))
        assert isinstance(public, TextReceived)
        assert (public.person.name, public.channel) == ("ann", 0)
        assert public.html == "hello all <b>of you</b> \N{GRINNING FACE} مرحبا"
        await bob.link.write("just you", session=ann.link.session)
        private = await ann.wait(lambda event: isinstance(event, TextReceived))
        assert private == TextReceived(ann.link.people.persons[bob.link.session], None, "just you")
    assert not bob.seen


async def test_somebody_who_leaves_is_noticed(mumble: MumbleServer) -> None:
    async with someone(mumble.address, "ann") as ann:
        async with someone(mumble.address, "bob"):
            await until(lambda: len(ann.link.people.persons) == 2)
        left = await ann.wait(lambda event: isinstance(event, PersonLeft))
        assert isinstance(left, PersonLeft)
        assert left.person.name == "bob"
        assert len(ann.link.people.persons) == 1


async def test_voice_goes_through_the_tunnel(mumble: MumbleServer) -> None:
    async with someone(mumble.address, "ann") as ann, someone(mumble.address, "bob") as bob:
        await until(lambda: len(bob.link.people.persons) == 2)
        # The server drops what exceeds 9,000 bytes a second, counted from the moment that the speaker came.
        await asyncio.sleep(0.2)
        for number in range(5):
            await ann.link.send_voice(messages.encode_packet(bytes([number]) * 50, number * 2, last=number == 4))
        for number in range(5):
            event = await bob.wait(lambda event: isinstance(event, VoiceReceived))
            assert isinstance(event, VoiceReceived)
            assert event.person.name == "ann"
            assert event.packet == messages.VoicePacket(
                ann.link.session, messages.TALK, number * 2, bytes([number]) * 50, number == 4
            )


async def test_channels_are_known_and_entered(mumble: MumbleServer) -> None:
    async with someone(mumble.address, SUPERUSER, PASSWORD) as root, someone(mumble.address, "ann") as ann:
        await root.link.send(ChannelState(parent=0, name="Games", temporary=False))
        await until(lambda: ann.link.people.find_channel("games"))
        games = ann.link.people.find_channel("Games")
        assert games is not None
        await root.link.send(ChannelState(parent=games.id, name="Chess"))
        await until(lambda: ann.link.people.find_channel("games/CHESS"))
        assert ann.link.people.find_channel("Root/Games/Chess") == ann.link.people.find_channel("chess")
        assert ann.link.people.find_channel("Chess/Games") is None
        assert ann.link.people.find_channel("") is None
        await ann.link.change(UserState(session=ann.link.session, channel_id=games.id))
        await until(lambda: ann.link.me.channel == games.id)
        await root.link.change(UserState(session=ann.link.session, mute=True))
        await until(lambda: ann.link.me.silenced)
        await root.link.change(UserState(session=ann.link.session, mute=False))
        await until(lambda: not ann.link.me.silenced)


async def test_what_is_not_allowed_is_told(mumble: MumbleServer) -> None:
    async with someone(mumble.address, "ann") as ann:
        await ann.link.send(ChannelState(parent=0, name="of my own"))
        denied = await ann.wait(lambda event: isinstance(event, Denied))
        assert isinstance(denied, Denied)
        assert denied.why
        await ann.link.write("x" * (ann.link.message_length + 1), channel=0)
        await ann.wait(lambda event: isinstance(event, Denied))


async def test_somebody_who_is_kicked_learns_it(mumble: MumbleServer) -> None:
    async with someone(mumble.address, SUPERUSER, PASSWORD) as root, someone(mumble.address, "ann") as ann:
        await root.link.send(UserRemove(session=ann.link.session, reason="too loud"))
        await until(lambda: ann.ended)
        assert isinstance(ann.ended, PlatformRefused)
        assert "kicked" in str(ann.ended)
        assert "too loud" in str(ann.ended)


@needs_openssl
async def test_the_same_certificate_is_the_same_person_whatever_they_call_themselves(
    mumble: MumbleServer, tmp_path: Path
) -> None:
    own = make_certificate(tmp_path, "ann")
    async with someone(mumble.address, "watcher") as watcher:
        seen = []
        for name in ("ann", "anna"):
            async with someone(mumble.address._replace(certificate=own), name) as ann:
                session = ann.link.session
                await until(partial(watcher.link.people.persons.get, session))
                seen.append(watcher.link.people.persons[session])
        assert [person.name for person in seen] == ["ann", "anna"]
        assert seen[0].id == seen[1].id
        assert watcher.link.me.id == "name-watcher"


async def test_a_wrong_password_is_told_and_a_name_in_use_may_be_free_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = MumbleServer(tmp_path, serverpassword="sesame")
    server.start()
    try:
        with pytest.raises(PlatformRefused, match="password of the server is wrong"):
            await enter(server.address, "ann", None)
        with pytest.raises(PlatformRefused, match="does not allow this name"):
            await enter(server.address, "\N{GRINNING FACE}", "sesame")
        async with someone(server.address, "ann", "sesame"):
            # From the same address, the server would take it for the same client and let it in.
            elsewhere = partial(asyncio.open_connection, local_addr=("127.0.0.2", 0))
            monkeypatch.setattr("aforesaid.bots.mumble.link.asyncio.open_connection", elsewhere)
            with pytest.raises(PlatformUnavailable, match="there already"):
                await enter(server.address, "ann", "sesame")
    finally:
        server.stop()


async def enter(address: Address, name: str, password: str | None) -> None:
    async with connect(address, name, password):
        pytest.fail("was let in")


async def test_a_server_that_dies_or_is_not_there(tmp_path: Path) -> None:
    server = MumbleServer(tmp_path)
    with pytest.raises(PlatformUnavailable, match=f"no Mumble server can be reached at 127.0.0.1:{server.port}"):
        await enter(server.address, "ann", None)
    server.start()
    async with someone(server.address, "ann") as ann:
        await asyncio.to_thread(server.kill)
        await until(lambda: ann.ended)
        assert isinstance(ann.ended, PlatformUnavailable)
        assert "broke" in str(ann.ended)


async def test_something_else_that_listens_there_is_no_mumble_server() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 this is a mail server\r\n")
        writer.close()

    other = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with other:
        with pytest.raises(PlatformUnavailable):
            await enter(Address("127.0.0.1", other.sockets[0].getsockname()[1]), "ann", None)


async def test_a_server_is_known_by_its_fingerprint(mumble: MumbleServer, monkeypatch: pytest.MonkeyPatch) -> None:
    # As from another machine, where somebody could stand in between.
    monkeypatch.setattr("aforesaid.bots.mumble.link._is_here", lambda _: False)
    with pytest.raises(PlatformRefused, match="is not trusted") as unknown:
        await enter(mumble.address, "ann", None)
    shown = str(unknown.value).split('fingerprint = "')[1].rstrip('"')
    with_colons = ":".join(shown[at : at + 2].upper() for at in range(0, 64, 2))
    async with connect(mumble.address._replace(fingerprint=with_colons), "ann") as link:
        assert link.session
    with pytest.raises(PlatformRefused, match="has the fingerprint"):
        await enter(mumble.address._replace(fingerprint="0" * 64), "ann", None)
    with pytest.raises(PlatformRefused, match="is not a fingerprint"):
        await enter(mumble.address._replace(fingerprint="sesame"), "ann", None)


async def test_a_certificate_that_is_none_is_told(mumble: MumbleServer, tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("none", encoding="utf-8")
    for path in (tmp_path / "none.pem", tmp_path / "missing.pem"):
        with pytest.raises(PlatformRefused, match="own certificate"):
            await enter(mumble.address._replace(certificate=path), "ann", None)


async def test_a_server_that_limits_messages_gets_all_of_them_when_one_keeps_the_pace(tmp_path: Path) -> None:
    server = MumbleServer(tmp_path, messageburst=3, messagelimit=20)
    server.start()
    try:
        async with (
            someone(server.address, "bob") as bob,
            connect(server.address, "ann", rate_limit=RateLimit(2, 15)) as ann,
        ):
            for number in range(12):
                await ann.write(f"{number}", channel=0)
            await bob.wait(lambda event: isinstance(event, TextReceived) and event.html == "11")
    finally:
        server.stop()


async def test_a_whole_outburst_arrives_in_order(mumble: MumbleServer) -> None:
    async with someone(mumble.address, "ann") as ann, someone(mumble.address, "bob") as bob:
        await until(lambda: len(bob.link.people.persons) == 2)
        await asyncio.gather(*(ann.link.write(str(number), channel=0) for number in range(200)))
        heard: list[Event] = [await bob.wait(lambda event: isinstance(event, TextReceived)) for _ in range(200)]
        assert [event.html for event in heard if isinstance(event, TextReceived)] == [
            str(number) for number in range(200)
        ]
