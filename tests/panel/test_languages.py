"""The panel in other languages, chosen by browser, setting or person, and the completeness of its catalogues."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast, get_args

import pytest
from playwright.sync_api import Browser, expect

import aforesaid
from aforesaid.background import LoopStatus
from aforesaid.domain.checks import AlertKind, ComponentStatus, Kind
from aforesaid.domain.memory import CATEGORIES, MATTERS, STATES
from aforesaid.errors import InvalidInput
from aforesaid.facts.habits import TONES
from aforesaid.memory import Memory
from aforesaid.profiles.effective import RUNTIME_SETTINGS
from aforesaid.profiles.recipe import SectionName
from aforesaid.server import ServerOptions, create_app
from aforesaid.server.auth import ROLES
from aforesaid.server.languages import (
    ENGLISH,
    Language,
    OfferedLanguages,
    placeholders,
    read_language,
    translate_error,
    using,
)
from aforesaid.server.panel.health import shown_fact
from aforesaid.server.panel.memories import GROUPINGS
from aforesaid.settings import Serving
from aforesaid.text.languages import LANGUAGES
from aforesaid.upkeep import loops_health
from panel.looking import looking, needs_chromium, served
from panel.texts import SERVER, TEMPLATES, texts, unwrapped

GERMAN = read_language(SERVER / "languages" / "de.toml")
ARABIC = read_language(SERVER / "languages" / "ar.toml")
PIRATE = """
name = "Pirate"
[texts]
"Sign in" = "Come aboard"
"Overview" = "Crow's nest"
"""


@pytest.mark.req("G8")
@pytest.mark.defect("S13")
@pytest.mark.parametrize("language", [GERMAN, ARABIC], ids=lambda language: language.code)
def test_every_text_of_the_panel_has_an_entry(language: Language) -> None:
    missing = sorted({f"{text.file}: {text.english}" for text in texts() if text.english not in language.texts})
    assert not missing, f"add these to src/aforesaid/server/languages/{language.code}.toml:\n" + "\n".join(missing)


@pytest.mark.parametrize(
    "path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.relative_to(TEMPLATES).as_posix()
)
def test_no_template_shows_a_text_that_cannot_be_translated(path: Path) -> None:
    assert unwrapped(path.read_text(encoding="utf-8")) == []


def test_words_that_are_not_wrapped_are_found_and_wrapped_ones_are_not() -> None:
    assert unwrapped('<p class="quiet">Hello {{ name }}</p>') == ["Hello"]
    assert unwrapped('<a title="Go there" href="/x">{{ _("Go") }}</a>') == ["Go", "there"]
    assert (
        unwrapped("""{% if a %}<b data-x='{"y": "z"}'>{{ _("One") }}</b>{% endif %}{# a note #}<code>{{ b }}</code>""")
        == []
    )


VARIABLE = (
    *CATEGORIES, *get_args(Kind), *STATES, *ROLES, "low", "medium", "high", "critical",
    *(word for each in RUNTIME_SETTINGS.values() if each.group for word in (each.label, each.help, each.group)),
    *get_args(AlertKind), *get_args(ComponentStatus), *get_args(SectionName), *GROUPINGS, *LANGUAGES, *TONES, *MATTERS,
)  # fmt: skip
"""Texts of other rooms that templates show through a variable."""


@pytest.mark.parametrize("language", [GERMAN, ARABIC], ids=lambda language: language.code)
def test_words_of_other_rooms_that_pages_show_have_an_entry(language: Language) -> None:
    assert sorted({text for text in VARIABLE if text not in language.texts}) == []


async def test_every_name_on_the_page_of_health_has_a_german_entry(tmp_path: Path) -> None:
    named = {"providers", "breaker", "connections", "distributed by", "index rebuilt"}
    for place in (f"sqlite:{tmp_path / 'memory.db'}", f"json:{tmp_path / 'memory.json'}", ":memory:"):
        async with aforesaid.connect(place) as memory:
            parts = (await memory.health()).components
        named |= {part.name for part in parts} | {name for part in parts for name, _ in part.facts}
    assert sorted(named - GERMAN.texts.keys()) == []


REACHED = (
    "domain/checks.py", "domain/memory.py", "digest/digest.py", "facts/curating.py", "facts/fact_editor.py",
    "front/memories.py", "portability/importing.py", "portability/input_files.py", "portability/json_stream.py",
    "portability/row_codec.py", "profiles/effective.py", "store/people.py", "store/messages.py", "store/memories.py",
    "server/auth.py", "server/authentication.py",
)  # fmt: skip
"""The modules whose errors somebody can meet by what they type into a form, or by an address of a page."""
UNREACHABLE = (
    "must be a string, not", "must be a tuple, not", "must be a datetime, not", "must be a path, not",
    "must be a whole number, not", "must be a number, not", "is not a path: ", "has no time zone;", "surrogate pair",
    "nothing to change was given", "at lies in the future", "at must be later", "until must be later than now",
    "the confidence must", "is set for a whole space", "there is no setting", "is written by Aforesaid itself",
    "is True or False", "of this thread", "this thread has", "a source of the memory is not",
    "use auto or one of", "cannot have active=", "nothing was overwritten", "there is no file", "is a folder",
    "cannot be used: ", "check that the folder exists", "have changed since; read", "was stored since; read",
    "erased since", "by another process first", "extract again", "has walked past", "was edited or taken back since",
    "A key is needed", "The key is unknown", "Too many wrong keys", "exceeds its rate limit",
    "changed by somebody else", "opened every PostgreSQL database", "mend the file, or move it away",
)  # fmt: skip
"""Parts of errors in those modules that programs and other processes can cause, and forms cannot."""


def sentence(node: ast.AST) -> str:
    """Return a text of a source, with {} for each value of an f-string; empty for anything else."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def raised_texts() -> dict[str, str]:
    """Return the texts of the errors that the modules raise, and the module of each."""
    return {
        sentence(part): name
        for name in REACHED
        for node in nodes(SERVER.parent / name)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        for part in node.exc.args
        if " " in sentence(part)
    }


@pytest.mark.req("G8")
def test_every_error_that_a_form_can_lead_to_is_translated() -> None:
    with using(GERMAN):
        english = [
            f"{name}: {text}"
            for text, name in raised_texts().items()
            if not any(part in text for part in UNREACHABLE)
            and translate_error(text.replace("{}", "X")) == text.replace("{}", "X")
        ]
    assert english == [], "add these to the table `errors` of de.toml"


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("the text is empty", "Der Text ist leer"),
        ("the importance must be at most 10, not 11", "Die Wichtigkeit darf höchstens 10 sein, nicht 11"),
        ("memory 7 is not active: it is expired", "Erinnerung 7 ist nicht aktiv: abgelaufen"),
        ("unknown category 'x'; use one of fact, task", "unbekannter Wert 'x' (Kategorie); möglich sind fact, task"),
        ("the id '#7' does not fit the number 8", "die Kennung '#7' passt nicht zur Nummer 8"),
        ("{'day': 2} rows were written, but {} were read", "{'day': 2} Zeilen wurden geschrieben, aber {} gelesen"),
        ("something that nobody listed", "something that nobody listed"),
    ],
)  # fmt: skip
def test_an_error_is_translated_with_its_values(english: str, german: str) -> None:
    assert translate_error(english) == english
    with using(GERMAN):
        assert translate_error(english) == german


@pytest.mark.parametrize(
    ("runs", "line"),
    [
        (1, "1 Lauf, zuletzt erfolgreich: nie"),
        (
            1_200,
            "1.200 Läufe, zuletzt erfolgreich: nie; 2 fehlgeschlagen, letzter Fehler 2026-03-01 12:00:00 UTC: off",
        ),
    ],
)
def test_health_says_in_german_how_often_a_loop_ran(runs: int, line: str) -> None:
    failed = {"failures": 2, "last_error": "off", "last_error_at": datetime(2026, 3, 1, 12, tzinfo=UTC)}
    status = LoopStatus("digest", runs=runs, **(failed if runs > 1 else {}))  # type: ignore[arg-type]
    ((_, fact),) = loops_health([status]).facts
    assert shown_fact(fact) == fact
    with using(GERMAN):
        assert shown_fact(fact) == line


@pytest.mark.parametrize(
    ("fact", "german"),
    [
        ("0 conversations", "0 Gespräche"),
        ("1 conversation", "1 Gespräch"),
        ("1,200 users", "1.200 Personen"),
        (
            "messages: archived after 1 day, deleted after 1,200 days; receipts: deleted after 30 days",
            "Nachrichten: nach 1 Tag archiviert, nach 1.200 Tagen gelöscht; Belege: nach 30 Tagen gelöscht",
        ),
    ],
)
def test_counts_on_the_page_of_health_are_in_german(fact: str, german: str) -> None:
    assert shown_fact(fact) == fact
    with using(GERMAN):
        assert shown_fact(fact) == german


def test_every_translated_error_is_in_the_sources() -> None:
    framework = {"Field required", "Input should be a valid integer, unable to parse string as an integer"}
    written = {sentence(node) for path in SERVER.parent.rglob("*.py") for node in nodes(path)}
    assert [text for text in GERMAN.errors if re.sub(r"\{\w+\}", "{}", text) not in written | framework] == []


def test_every_german_entry_is_used_and_has_the_right_forms() -> None:
    wrong = []
    for text in texts():
        found = GERMAN.texts.get(text.english, text.english)
        if text.counted and isinstance(found, str):
            wrong.append(f"{text.english}: has one form, needs two")
        forms = [found] if isinstance(found, str) else list(found)
        wrong += [
            f"{text.english}: lacks a placeholder" for form in forms if placeholders(form) != placeholders(text.english)
        ]
    wrong += [english for english in GERMAN.errors if placeholders(GERMAN.text(english)) != placeholders(english)]
    assert not wrong


def test_the_language_is_that_of_the_browser_of_the_setting_or_the_chosen_one() -> None:
    offered = OfferedLanguages()
    assert offered.choose(None, None) is ENGLISH
    assert offered.choose(None, "de-AT,de;q=0.9,en;q=0.5").code == "de"
    assert offered.choose(None, "en;q=0.4, de;q=0.8").code == "de"
    assert offered.choose(None, "fr, *;q=0.1").code == "en"
    assert offered.choose("en", "de").code == "en"
    assert offered.choose("klingon", "de").code == "de"
    assert OfferedLanguages("de").choose(None, "en").code == "de"
    assert OfferedLanguages("de").choose("en", "de").code == "en"


def test_an_unknown_language_or_folder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"server\.language is 'xx'; it must be one of .*de"):
        OfferedLanguages("xx")
    with pytest.raises(InvalidInput, match="not a folder"):
        OfferedLanguages(folder=str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[texts]", "name must be a text"),
        ('name = "x"\nplural = "seven"', "plural is 'seven'; it must be one of one-other"),
        ('name = "x"\ndirection = "up"', "direction is 'up'; it must be ltr or rtl"),
        ('name = "x"\n[texts]\n"a {count}" = "{cuont}"', "unknown placeholders: cuont"),
        ('name = "x"\n[texts]\n"a" = "{"', "unpaired braces"),
        ('name = "x"\n[texts]\n"a" = ["1", "2", "3"]', "a list of 2 texts"),
        ("name = ", "cannot be read"),
    ],
)
def test_a_wrong_catalogue_is_refused_at_start(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=words):
        OfferedLanguages(folder=str(tmp_path))


def test_plural_forms_numbers_and_days_follow_the_language(tmp_path: Path) -> None:
    path = tmp_path / "pl.toml"
    path.write_text(
        'name = "Polski"\nplural = "polish"\n[texts]\n"{count} file" = ["plik", "pliki", "plików"]\n', "utf-8"
    )
    polish = read_language(path)
    assert [polish.counted("{count} file", "{count} files", n) for n in (1, 2, 5, 12, 22)] == [
        "plik", "pliki", "plików", "plików", "pliki",
    ]  # fmt: skip
    assert GERMAN.number(1234567.5, 1) == "1.234.567,5"
    assert ENGLISH.number(1234567.5, 1) == "1,234,567.5"


@needs_chromium
def test_a_person_chooses_the_language_and_it_stays(browser: Browser, shown: str) -> None:
    with looking(browser, shown) as looker:
        page = looker.open("/")
        page.get_by_label("Language").select_option("de")
        expect(page.locator("html[lang=de]")).to_be_attached()
        expect(page.get_by_role("link", name="Übersicht")).to_be_visible()
        page.get_by_role("link", name="Personen").first.click()
        expect(page.locator("html[lang=de]")).to_be_attached()
        assert looker.complaints == []


@needs_chromium
@pytest.mark.defect("S13")
def test_pages_are_laid_out_from_right_to_left_in_arabic(browser: Browser, filled: Path) -> None:
    with served(filled, serving={"language": "ar"}) as link:
        for phone in (False, True):
            with looking(browser, link, phone=phone) as looker:
                for path in ("/", "/person?user=ann", "/person/conversation?user=ann", "/memories", "/audit"):
                    page = looker.open(path)
                    expect(page.locator("html[lang=ar][dir=rtl]")).to_be_attached()
                    sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                    assert page.evaluate(sideways) <= 0, path
                page = looker.open("/person/conversation?user=ann")
                own, other = (
                    page.locator(f".turn.{each} .bubble").last.bounding_box() for each in ("own", "assistant")
                )
                assert own is not None
                assert other is not None
                assert own["x"] < other["x"], "what the person said is on the left"
                if not phone:
                    menu, main = (page.locator(each).bounding_box() for each in (".side", "main"))
                    assert menu is not None
                    assert main is not None
                    assert menu["x"] > main["x"]
                assert looker.complaints == []


@needs_chromium
def test_a_german_browser_signs_in_in_german_without_scripts_too(browser: Browser, shown: str) -> None:
    context = browser.new_context(locale="de-DE", java_script_enabled=False)
    page = context.new_page()
    page.goto(shown.partition("/login")[0] + "/")
    expect(page.get_by_role("button", name="Anmelden")).to_be_visible()
    page.get_by_label("Sprache").select_option("en")
    page.get_by_role("button", name="Wählen").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    context.close()


@needs_chromium
def test_a_third_language_comes_from_a_folder(browser: Browser, filled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "languages"
    folder.mkdir()
    (folder / "x-pirate.toml").write_text(PIRATE, encoding="utf-8")
    with served(filled, serving={"languages": str(folder)}) as link, looking(browser, link) as looker:
        page = looker.open("/")
        page.get_by_label("Language").select_option("x-pirate")
        expect(page.get_by_role("link", name="Crow's nest")).to_be_visible()
        # What the catalogue lacks is in English.
        expect(page.get_by_role("link", name="Settings")).to_be_visible()
        expect(page.locator("html")).to_have_attribute("lang", "x-pirate")


def test_a_wrong_setting_stops_the_server_before_it_answers() -> None:
    with pytest.raises(InvalidInput, match=r"server\.language"):
        create_app(cast("Memory", None), ServerOptions(Serving(language="xx")))
