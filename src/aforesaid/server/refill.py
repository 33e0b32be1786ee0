"""Fills a form of a rendered page with what somebody typed, and puts messages beside its fields.

Only pages of our own are changed. Everything outside of the form stays as it is, but for `details` around it, which
are opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from html.parser import HTMLParser
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

Attributes = Sequence[tuple[str, str | None]]
Typed = Mapping[str, Sequence[str]]
"""The values of each field, by its name. A field can have several: boxes of the same name that are checked."""

_LEFT_ALONE: Final = frozenset({"hidden", "file", "password", "submit", "button"})
"""Types of inputs that keep the value they were rendered with."""
_CHOSEN: Final = frozenset({"checkbox", "radio"})


class _Edit(NamedTuple):
    """A part of a page that is replaced; start and end are positions in its text."""

    start: int
    end: int
    text: str


def refill(
    html: str, *, method: str, path: str, action: Mapping[str, str], typed: Typed, wrong: Mapping[str, str]
) -> str | None:
    """Return a page with its form for `method` and `path` filled in; None if the page has no such form.

    The parameters in `action` are added to the address that the form is sent to. `wrong` has a message for each field
    by its name; messages about something else than a field of the form are shown above all fields.
    """
    found = _Form(html, method.lower(), path, action, typed, wrong)
    if found.start is None:
        return None
    others = [message for name, message in wrong.items() if name not in found.explained]
    above = "".join(f'<p class="notice bad" role="alert">{escape(message)}</p>' for message in others)
    edits = sorted([*found.edits, _Edit(found.start, found.start, above)], key=lambda edit: (edit.start, edit.end))
    pieces, last = [], 0
    for edit in edits:
        pieces += [html[last : edit.start], edit.text]
        last = edit.end
    return "".join([*pieces, html[last:]])


class _Form(HTMLParser):
    """Finds a form in a page, and collects the edits that fill it in."""

    def __init__(
        self, html: str, method: str, path: str, action: Mapping[str, str], typed: Typed, wrong: Mapping[str, str]
    ) -> None:
        super().__init__(convert_charrefs=True)
        self.edits: list[_Edit] = []
        self.explained: set[str] = set()
        """The fields that have their message."""
        self.start: int | None = None
        """Where the contents of the form begin."""
        self._method, self._path, self._action, self._typed, self._wrong = method, path, action, typed, wrong
        self._lines = [0, *(place + 1 for place, character in enumerate(html) if character == "\n")]
        self._inside = False
        self._details: list[tuple[int, int, Attributes]] = []
        self._textarea: tuple[str, int] | None = None
        self._select = ""
        self._option: tuple[int, int, Attributes] | None = None
        self._option_text = ""
        self.feed(html)
        self.close()

    def _place(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        start = self._place()
        end = start + len(self.get_starttag_text() or "")
        values = dict(attrs)
        if tag == "details" and not self._inside:
            self._details.append((start, end, attrs))
        elif tag == "form" and self.start is None and self._is_wanted(values):
            self._inside, self.start = True, end
            self.edits.append(_Edit(start, end, _tag("form", self._sent_on(attrs))))
            self.edits += [
                _Edit(begin, finish, _tag("details", [*given, ("open", None)]))
                for begin, finish, given in self._details
                if "open" not in dict(given)
            ]
        elif self._inside:
            self._fill(tag, attrs, values.get("name") or "", start, end)

    def _is_wanted(self, values: Mapping[str, str | None]) -> bool:
        action = urlsplit(values.get("action") or "").path
        return (values.get("method") or "get").lower() == self._method and action == self._path

    def _sent_on(self, attrs: Attributes) -> Attributes:
        """Return the attributes of the form with the parameters added to its action."""
        address = urlsplit(dict(attrs).get("action") or "")
        query = urlencode(
            [*(each for each in parse_qsl(address.query) if each[0] not in self._action), *self._action.items()]
        )
        return [each if each[0] != "action" else ("action", address._replace(query=query).geturl()) for each in attrs]

    def _fill(self, tag: str, attrs: Attributes, name: str, start: int, end: int) -> None:
        if tag == "option":
            self._option, self._option_text = (start, end, attrs), ""
        elif tag == "input":
            self._input(attrs, name, start, end)
        elif tag in {"textarea", "select"}:
            if name in self._wrong:
                self.edits.append(_Edit(start, end, _tag(tag, _marked(attrs, name))))
            self._textarea = (name, end) if tag == "textarea" else self._textarea
            self._select = name if tag == "select" else self._select

    def _input(self, attrs: Attributes, name: str, start: int, end: int) -> None:
        kind = (dict(attrs).get("type") or "text").lower()
        given = list(attrs)
        if kind in _CHOSEN:
            chosen = (dict(attrs).get("value") or "on") in self._typed.get(name, ())
            given = [each for each in given if each[0] != "checked"] + ([("checked", None)] if chosen else [])
        elif kind not in _LEFT_ALONE and name in self._typed:
            given = [each for each in given if each[0] != "value"] + [("value", self._typed[name][0])]
        if kind != "hidden" and name in self._wrong:
            given = list(_marked(given, name))
        self.edits.append(_Edit(start, end, _tag("input", given)))
        if kind != "hidden":
            self._explain(name, end)

    def handle_data(self, data: str) -> None:
        self._option_text += data

    def handle_endtag(self, tag: str) -> None:
        place = self._place()
        if tag == "details" and not self._inside and self._details:
            self._details.pop()
        elif not self._inside:
            return
        elif tag == "form":
            self._inside = False
        elif tag == "textarea" and self._textarea is not None:
            name, begin = self._textarea
            if name in self._typed:
                # A line break right after the tag is not part of the text.
                self.edits.append(_Edit(begin, place, "\n" + escape(self._typed[name][0])))
            self._explain(name, place + len("</textarea>"))
        elif tag == "option" and self._option is not None and self._select in self._typed:
            start, end, attrs = self._option
            value = dict(attrs).get("value")
            chosen = (self._option_text.strip() if value is None else value) in self._typed[self._select]
            given = [each for each in attrs if each[0] != "selected"] + ([("selected", None)] if chosen else [])
            self.edits.append(_Edit(start, end, _tag("option", given)))
        elif tag == "select":
            self._explain(self._select, place + len("</select>"))

    def _explain(self, name: str, place: int) -> None:
        """Put the message about a field at a place, once."""
        if name in self._wrong and name not in self.explained:
            self.explained.add(name)
            message = escape(self._wrong[name])
            self.edits.append(_Edit(place, place, f'<b class="wrong" id="wrong-{name}" role="alert">{message}</b>'))


def _marked(attrs: Attributes, name: str) -> Attributes:
    """Return the attributes of a field with those that mark it as wrong and point at its message."""
    described = " ".join(filter(None, (dict(attrs).get("aria-describedby"), f"wrong-{name}")))
    kept = [each for each in attrs if each[0] not in {"aria-describedby", "aria-invalid"}]
    return [*kept, ("aria-invalid", "true"), ("aria-describedby", described)]


def _tag(name: str, attrs: Attributes) -> str:
    written = "".join(f" {key}" if value is None else f' {key}="{escape(value)}"' for key, value in attrs)
    return f"<{name}{written}>"
