"""Keys never show: not in a log line, not in an error, not in a traceback, wherever they came from."""

from __future__ import annotations

import logging
import traceback
from dataclasses import replace

import pytest

from aforesaid.errors import ModelError
from aforesaid.models.chat import Said, open_chat
from aforesaid.models.client import SecretFilter, hide, plain_address, redact
from aforesaid.models.embed import RemoteEmbedder
from aforesaid.settings import Provider, Resilience, Secret, Settings
from aforesaid.testing import Fault, ScriptedModel, faults

IN_HEADER, IN_URL, IN_USER = "swordfish-4711-header", "opensesame-0815-url", "letmein-1234-password"
QUESTION = [Said("user", "Hi")]


def talkative(model: ScriptedModel) -> Settings:
    """A provider with a secret in every place that can have one."""
    address = model.base_url.replace("://", f"://ann:{IN_USER}@") + f"?key={IN_URL}"
    provider = Provider("scripted", address, Secret(IN_HEADER))
    return replace(model.settings(resilience=Resilience(attempts=1)), providers={"scripted": provider})


ECHO = f"Incorrect API key provided: {IN_HEADER}, key={IN_URL}, password {IN_USER}"


@pytest.mark.parametrize(
    "fault",
    [faults.WrongKey(ECHO), faults.ServerError(500, ECHO), faults.Refuses("model", ECHO), faults.Resets()],
    ids=lambda fault: type(fault).__name__,
)
async def test_no_secret_shows_when_a_server_repeats_it(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ScriptedModel() as model:
        chat = open_chat(talkative(model))
        embedder = RemoteEmbedder("m", provider=talkative(model).providers["scripted"])
        await chat.text("chat", QUESTION)
        model.fail(fault)
        shown = [embedder.name, repr(Secret(IN_HEADER))]
        for asked in (chat.text("chat", QUESTION), embedder.embed(["hi"]), anext(chat.stream("chat", QUESTION))):
            with pytest.raises(ModelError) as raised:
                await asked
            logging.getLogger("aforesaid.models").error("it failed", exc_info=raised.value)
            shown += [str(raised.value), repr(raised.value), "".join(traceback.format_exception(raised.value))]
        shown += [str(chat.states()), caplog.text]
        await chat.close()
        await embedder.close()
    # The secrets did go out, and the libraries did talk about it.
    assert model.requests[0].query == {"key": IN_URL}
    assert any(record.name == "httpx2" for record in caplog.records)
    for secret in (IN_HEADER, IN_URL, IN_USER):
        for text in shown:
            assert secret not in text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc123", "Authorization: Bearer …"),
        ("GET http://ann:pw@host/v1?key=abc&x=1 failed", "GET http://…@host/v1?key=…&x=1 failed"),
        ("provided: sk-proj-abc***wxyz, sorry", "provided: …, sorry"),
        ("AIzaSyA1234567890123456789012345", "…"),
        ("see https://host/v1/models", "see https://host/v1/models"),
        ("a key-value store at risk-free rates", "a key-value store at risk-free rates"),
    ],
)
def test_what_looks_like_a_secret_is_left_out(text: str, clean: str) -> None:
    assert redact(text) == clean


def test_stand_ins_for_a_key_are_no_secrets() -> None:
    hide("none", "ollama", None)
    assert redact("none of ollama's models") == "none of ollama's models"


def test_what_needs_escaping_in_an_address_is_found_there_too() -> None:
    hide("p@ss/word&more")
    assert redact("?x=p%40ss%2Fword%26more") == "?x=…"


def test_an_address_is_shown_without_its_secrets() -> None:
    assert plain_address("https://ann:pw@host:8080/v1?key=abc#x") == "https://host:8080/v1"
    assert plain_address("http://localhost:11434/v1") == "http://localhost:11434/v1"


def test_the_filter_can_be_put_on_any_handler() -> None:
    hide("swordfish-4711-header")
    try:
        raise ValueError(f"no {IN_HEADER}")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("app", logging.INFO, "", 0, "said %s and %d", (IN_HEADER, 5), info)
    assert SecretFilter().filter(record)
    assert record.getMessage() == "said … and 5"
    assert IN_HEADER not in logging.Formatter().format(record)
