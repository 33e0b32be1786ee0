"""What is read of replies as they come, and of what programs write around a person's words."""

from __future__ import annotations

import json

import pytest

from aforesaid.server.proxy.app_prompts import own_words
from aforesaid.server.proxy.protocols import MessageReply, ResponseReply
from aforesaid.server.proxy.reply import Reply

STREAM = "text/event-stream"


def feed(reply: Reply, *events: object) -> None:
    for event in events:
        reply.feed(f"data: {json.dumps(event)}\n\n".encode())


@pytest.mark.parametrize(
    ("sent", "own"),
    [
        ("Hi <system-reminder>The date is set.</system-reminder>there", "Hi there"),
        ("<system-reminder>a</system-reminder>Hi<system-reminder>b</system-reminder>", "Hi"),
        ("<system-reminder>a</system-reminder>", ""),
        ("What is a <system-reminder>?", "What is a <system-reminder>?"),
    ],
)
def test_reminders_that_a_program_adds_are_no_words_of_the_person(sent: str, own: str) -> None:
    assert own_words(sent) == own


def test_a_message_that_said_why_it_stopped_is_whole_whatever_comes_after() -> None:
    reply = MessageReply(STREAM)
    feed(reply, {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}})
    partial = [reply.partial]
    for reason, tokens in (("end_turn", 1), (None, 2)):
        feed(reply, {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": tokens}})
        partial.append(reply.partial)
    assert partial == [True, False, False]
    assert (reply.texts(), reply.output_tokens) == (["Hello"], 2)


CALL = {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "c1"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}


def completed(*output: object) -> dict[str, object]:
    usage = {"input_tokens": 3, "output_tokens": 2}
    return {"type": "response.completed", "response": {"id": "r1", "output": output, "usage": usage}}


def test_a_response_without_pieces_is_read_from_its_last_event() -> None:
    reply = ResponseReply(STREAM)
    feed(reply, completed(SAID, CALL))
    assert (reply.texts(), len(reply.calls)) == (["Hello"], 1)
    assert (reply.id, reply.input_tokens, reply.output_tokens, reply.ended) == ("r1", 3, 2, True)


def test_a_response_whose_calls_came_before_is_not_read_again() -> None:
    reply = ResponseReply(STREAM)
    feed(reply, {"type": "response.output_item.done", "item": CALL}, completed(CALL))
    assert (reply.texts(), len(reply.calls), reply.input_tokens) == ([], 1, 3)


def test_a_response_that_came_in_pieces_is_not_read_again() -> None:
    reply = ResponseReply(STREAM)
    feed(reply, {"type": "response.output_text.delta", "output_index": 0, "delta": "Hello"}, completed(SAID))
    assert reply.texts() == ["Hello"]
