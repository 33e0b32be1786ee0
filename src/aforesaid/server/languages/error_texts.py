"""Translates the texts of errors that are raised below the server.

Rooms below know no languages: they raise English sentences. The ones that a person can meet in the panel are listed
here with names for their values, as they are in the catalogues. A test compares the list with the sources.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from aforesaid.server.languages.catalogue import ENGLISH
from aforesaid.server.languages.current import N_, current

ERROR_TEXTS: Final = (
    N_("{what} is empty"),
    N_("{what} has a NUL character at position {position}; remove it and try again"),
    N_("{what} has the control character U+{code}: {value}"),
    N_("{what} has {count} characters; at most {most} are allowed"),
    N_("the text has {count} bytes; at most {most} are allowed (profile key message_bytes)"),
    N_("{what} lies outside the years 1 to 9999 in UTC"),
    N_("{what} must be at least {least}, not {value}"),
    N_("{what} must be at most {most}"),
    N_("{what} must be at most {most}, not {value}"),
    N_("{what} must be a finite number, not {value}"),
    N_("{what} must be between 0 and 1, not {value}"),
    N_("{what} must be one of {offered}, not {value}"),
    N_("unknown {what} {value}; use one of {offered}"),
    N_("unknown time zone {value}; use a name such as Europe/Berlin"),
    N_("no time can be read in {value}; write one like 'tomorrow at 9' or '2026-12-03 10:00'"),
    N_("{when} ({zone}) is in the past; name a time that is still to come"),
    N_("there is no memory {number}"),
    N_("memory {number} is not active: it is {state}"),
    N_("memory {number} does not wait for approval: it is {state}"),
    N_("memory {number} waits for approval; use approve or reject"),
    N_("memory {number} is no reminder"),
    N_("memory {number} was changed after it was read; read it again"),
    N_("memory {number} has changed since; read it again"),
    N_("others keep changing the facts about {user}; try again in a moment"),
    N_("{user} has no memory {number}"),
    N_("{user} has no message {number}"),
    N_("{user} has no message with the number {number}"),
    N_("{user} has no message #{number}"),
    N_("message {number} was taken back"),
    N_("{user} has no summary {number}"),
    N_("{user} has no receipt {number}; it may have been deleted by age"),
    N_("summary {number} has been rolled back already"),
    N_("summary {number} has a newer version; roll that one back first"),
    N_("summary {above} stands on summary {number}; roll that one back first"),
    N_("summary {number} is not active any more; revise the one that stands for it"),
    N_("the messages below summary {number} have been removed, as old as they were"),
    N_("there is no user {user} in the space {space}"),
    N_("there is no user {user} for this key"),
    N_("there is no space {space} for this key"),
    N_("{value} cannot be a user id: it means all users of a space"),
    N_("{file} is empty: there is nothing to import"),
    N_("{file} has an unrecognised format; name it (one of {offered})"),
    N_("{file} is truncated"),
    N_("{file} is damaged and cannot be decompressed: {error}"),
    N_("{file} is a truncated archive: its end is missing. Download or copy it again"),
    N_("{file} is a damaged archive: {error}"),
    N_("{file} has {count} files in it; at most {most} are allowed"),
    N_("{file} would unpack to {size} bytes: that is an archive bomb, and is not opened"),
    N_("{member} in {file} would unpack from {packed} to {size} bytes: that is an archive bomb, and is not opened"),
    N_("{member} in {file} is encrypted; unpack it first"),
    N_("{member} in {file} cannot be unpacked: {error}"),
    N_("{file} holds more than {most} GiB; refused"),
    N_("this is not an export of Aforesaid"),
    N_(
        "this export has version {version} of the format, but this program supports only version {own}: "
        "install a newer Aforesaid"
    ),
    N_("unknown kind {kind}; this version knows {known}"),
    N_("the id {id} does not fit the number {number}"),
    N_("its hash does not match: it is not what was stored"),
    N_("a summary of messages needs exactly one archive"),
    N_("a version after the first needs the version that it replaces"),
    N_("value must be a text, a number, true or false"),
    N_("{written} rows were written, but {read} were read"),
    N_("the checksum does not match: the file was changed after the export"),
    N_("the file is cut off: its last line is missing"),
    N_("{file} cannot be read as a SQLite database: {error}"),
    N_("{what} (character {position}); the rest is not read"),
    N_("{what} where {wanted} should be (character {position})"),
    N_("a value is missing at character {position}; the rest is not read"),
    N_("the file ends in the middle of a value (character {position})"),
    N_("a key of an object is no text (character {position})"),
    N_("the line is too long to be read"),
    N_("it is not UTF-8 (byte {position} of it)"),
    N_("it is nested too deeply"),
    N_("it is not JSON: {error}"),
    N_("it has more than {most} characters"),
    N_("{name} is missing"),
    N_("{what} must be an object, not {kind}"),
    N_("{name} must be true or false, not {kind}"),
    N_("{name} is not a day: {value}"),
    N_("{name} is {value}; it must be one of {offered}"),
    N_("{name} must be a list, not {kind}"),
    N_("{name} must be hexadecimal digits"),
    N_("{name} is too long: {number}"),
    N_("{name} must be a time in ISO form, not {kind}"),
    N_("{name} is not a time in ISO form: {value}"),
    N_("This needs the role {role}; the key has the role {own}."),
    N_("This concerns all spaces; the key is limited to one of them."),
    N_("The form's token is missing or old; reload the page and try again."),
    N_("There is no such page or route."),
    N_("Something went wrong here; the server's log says what."),
    # Of the framework, for fields that a form has to send.
    N_("Field required"),
    N_("Input should be a valid integer, unable to parse string as an integer"),
)
"""The errors that pages and forms can lead to. Their order does not matter."""

NAMED_VALUES: Final = (
    N_("the text"), N_("the fact"), N_("the summary"), N_("the query"), N_("the user id"), N_("the space"),
    N_("the importance"), N_("the key's name"), N_("the memory"), N_("a tag"), N_("role"), N_("state"), N_("format"),
    N_("the file ends"), N_("Not Found"), N_("Forbidden"), N_("Conflict"), N_("Internal Server Error"),
    N_("Service Unavailable"),
)  # fmt: skip
"""Words inside of errors, and titles of their pages."""


def translate_error(text: str) -> str:
    """Return the text of an error in the language of the request; as it is, if it is in no catalogue."""
    language = current()
    if language is ENGLISH:
        return text
    for english, pattern in _patterns():
        if found := pattern.fullmatch(text):
            values = {name: language.text(value) for name, value in found.groupdict().items()}
            return language.text(english).format(**values)
    return language.text(text)


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Return a pattern for each text, those with the most words of their own first: they say the most."""

    def own_words(english: str) -> int:
        return len(re.sub(r"\{\w+\}", "", english))

    return [
        (english, re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(english)), re.DOTALL))
        for english in sorted(ERROR_TEXTS, key=own_words, reverse=True)
    ]
