"""Google Takeout's export of Gemini: `MyActivity.json` or `MyActivity.html` of "Gemini Apps", alone or in the archive.

An entry is one question with its answer. The address of its conversation is there in newer exports only: questions
without one share a thread.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from datetime import datetime
from html.parser import HTMLParser
from typing import IO, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability.formats.base import Entry, Format, TextParser, attachment, html_text, in_zone
from aforesaid.portability.import_items import NO_WORDS, ImportedMessage, Item, Skipped
from aforesaid.portability.json_stream import Fields

_PRODUCTS: Final = re.compile(r"gemini|bard", re.IGNORECASE)
_PROMPTED: Final = re.compile(
    r"^(?:Prompted|Asked|Said|Eingegebener Prompt:?|Prompt eingegeben:|Gefragt:|Petición:|Preguntaste:?|Requête\s*:|"
    r"Vous avez demandé\s*:?|Prompt inviato:?|Hai chiesto:?|Comando:|Você perguntou:?|Prompt ingevoerd:|Запрос:|Запит:|"
    r"İstem:|Prompt:|الطلب:|प्रॉम्प्ट:|提示[：:]|プロンプト[：:]|프롬프트[：:])\s*",
    re.IGNORECASE,
)
"""What the app writes before a question, in the language of the account."""
_CONVERSATION: Final = re.compile(r"gemini\.google\.com/(?:app|gem/[^/]+)/([0-9a-f]{8,})")
_OTHER: Final = Skipped("activities that are no questions: feedback, settings, other products")
_CLOCK: Final = r"\d{1,2}:\d{2}:\d{2}"
_DATE_WORDS: Final = re.compile(
    rf"^(?P<month>[A-Z][a-z]{{2,8}})\.? (?P<day>\d{{1,2}}), (?P<year>\d{{4}}), (?P<time>{_CLOCK})\s?(?P<half>[AP]M)?"
    r"(?: (?P<zone>\S+))?$"
    rf"|^(?P<day2>\d{{1,2}})\.? (?P<month2>[A-Z][a-z]{{2,8}})\.? (?P<year2>\d{{4}}),? (?P<time2>{_CLOCK})"
    r"(?: (?P<zone2>\S+))?$"
)
_NUMBERED: Final = re.compile(
    rf"^(?P<day>\d{{1,2}})[./](?P<month>\d{{1,2}})[./](?P<year>\d{{4}}),? (?P<time>{_CLOCK})(?: (?P<zone>\S+))?$"
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def is_activity(name: str) -> bool:
    """Return whether a file of Takeout has the questions to Gemini."""
    folder, _, file = name.rpartition("/")
    return file.replace(" ", "").casefold().startswith("myactivity") and (not folder or bool(_PRODUCTS.search(folder)))


class Gemini(Format):
    app = "gemini"

    def files(self) -> list[str]:
        names = [name for name in self.source.named(".json") if is_activity(name)]
        pages = [name for name in self.source.named(".html") if is_activity(name)]
        return names or pages or self.source.names[:1]

    def entries(self, stream: IO[bytes], name: str) -> Iterator[Entry]:
        if not name.lower().endswith(".html"):
            yield from super().entries(stream, name)
            return
        page = _ActivityPage()
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        number = 0
        while block := stream.read(64 * 1024):
            page.feed(decoder.decode(block))
            cells, page.cells = page.cells, []
            for product, text in cells:
                number += 1
                yield f"entry {number}", {"header": product, "page": text}

    def record(self, found: Fields, where: str) -> Iterator[Item]:
        if not _PRODUCTS.search(f"{found.raw('header')} {found.raw('products')}"):
            yield _OTHER
            return
        page = found.words("page")
        if page is not None:
            yield from self._cell(page, where)
            return
        title = found.words("title") or ""
        answer = "\n".join(
            filter(None, (html_text(each.words("html") or "") for each in found.objects("safeHtmlItem")))
        )
        question = _PROMPTED.sub("", title)
        if question == title and not answer:
            yield _OTHER
            return
        at = self.moment(found.needed("time"), "time")
        links = [str(each.raw("url")) for each in found.objects("details")] + [str(found.raw("titleUrl"))]
        talk = next((match[1] for link in links if (match := _CONVERSATION.search(link))), "activity")
        files = [file.get("name") if isinstance(file, dict) else file for file in found.items("attachedFiles")]
        parts = tuple(attachment(file) for file in files if isinstance(file, str) and file)
        yield from self._exchange(where, f"gemini:{talk}", at, question, answer, parts)

    def _cell(self, text: str, where: str) -> Iterator[Item]:
        """Yield what an entry of a page says: the question, the time on a line of its own, the answer."""
        rows = text.split("\n")
        for place, row in enumerate(rows):
            at = self._page_time(row)
            if at is not None:
                asked, answer = "\n".join(rows[:place]).strip(), "\n".join(rows[place + 1 :]).strip()
                question = _PROMPTED.sub("", asked)
                if question == asked and not answer:
                    yield _OTHER
                else:
                    yield from self._exchange(where, "gemini:activity", at, question, answer)
                return
        raise InvalidInput(
            f"no time was found in {quoted(text[:60])}; choose JSON in Takeout, which is the same in every language"
        )

    def _exchange(
        self, where: str, thread: str, at: datetime | None, question: str, answer: str, parts: tuple[Part, ...] = ()
    ) -> Iterator[Item]:
        """Yield a question and its answer, which have one time: the answer follows as the later of two equal times."""
        number = self.ids.of(at, thread, question)
        if question.strip() or parts:
            yield ImportedMessage(where, thread, "user", question.strip(), at, number, parts=parts)
        if answer:
            yield ImportedMessage(where, thread, "assistant", answer, at, f"{number}-answer", reply_to=number)
        if not question.strip() and not parts and not answer:
            yield NO_WORDS

    def _page_time(self, row: str) -> datetime | None:
        row = row.replace("\u202f", " ").replace("\xa0", " ")
        found = _DATE_WORDS.match(row) or _NUMBERED.match(row)
        if found is None:
            return None
        parts = {name.rstrip("2"): value for name, value in found.groupdict().items() if value is not None}
        month = parts["month"][:3].casefold()
        if not month.isdigit() and month not in _MONTHS:
            return None
        hour, minute, second = map(int, parts["time"].split(":"))
        if "half" in parts:
            hour = hour % 12 + (12 if parts["half"] == "PM" else 0)
        number = int(month) if month.isdigit() else _MONTHS.index(month) + 1
        year, day = int(parts["year"]), int(parts["day"])
        try:
            at = datetime(year, number, day, hour, minute, second)  # noqa: DTZ001 - a wall clock
            zone = self.reading.zone or (ZoneInfo(parts["zone"]) if "zone" in parts else None)
            return in_zone(at, zone, "the time")
        except ZoneInfoNotFoundError:
            return in_zone(at, None, "the time")
        except ValueError as error:
            raise InvalidInput(f"the time does not exist: {error}") from None


class _ActivityPage(HTMLParser):
    """Collects the entries of a page: each is a cell with the class `outer-cell`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.cells: list[tuple[str, str]] = []
        """The product and the text of each complete entry."""
        self._depth = 0
        self._inner: TextParser | None = None
        self._product = ""
        self._text = ""
        self._class = ""
        self._start = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = dict(attrs).get("class") or ""
        if tag == "div":
            if "outer-cell" in kind:
                self._depth, self._product, self._text = 0, "", ""
            self._depth += 1
            if "header-cell" in kind or ("content-cell" in kind and "body-1" in kind and "text-right" not in kind):
                self._inner, self._class, self._start = TextParser(), kind, self._depth
                return
        if self._inner is not None:
            self._inner.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "div":
            if self._inner is not None and self._depth == self._start:
                text, self._inner = self._inner.take(), None
                if "header-cell" in self._class:
                    self._product = text
                else:
                    self._text = text
            self._depth -= 1
            if self._depth == 0 and self._text:
                self.cells.append((self._product, self._text))
                self._text = ""
        if self._inner is not None:
            self._inner.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        if self._inner is not None:
            self._inner.handle_data(data)
