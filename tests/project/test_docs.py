"""What is documented is true: examples run, links lead somewhere, nothing is left out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from evaluation.commands import commands as evaluations
from typer.testing import CliRunner

from aforesaid import errors
from aforesaid.cli import app
from aforesaid.domain.summary import SUMMARY_KINDS
from aforesaid.memory import Memory, UserMemory
from aforesaid.profiles import BUILT_IN, Profile, load_profile
from aforesaid.testing import ScriptedModel
from project.programs import Programs, programs

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
ELSEWHERE = {"use-with-agent-frameworks"}
"""Pages whose examples need more than this environment: tests/integrations/test_page.py runs them."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DECISIONS = sorted((ROOT / "docs/decisions").glob("0*.md"))
SOURCE = ROOT / "src/aforesaid"
MEDIA_TYPES = {"text/plain"}
"""What looks like a path below a folder of the source."""
LOGGERS = ROOT / "docs/reference/logs.md"
"""Names loggers, which need not be modules."""


def page_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def running() -> Iterator[Programs]:
    with programs() as ready:
        yield ready


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    """What answers programs that use OpenAI's client."""
    with ScriptedModel() as ready:
        yield ready


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in ELSEWHERE], ids=page_name)
def test_every_example_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: Programs, model: ScriptedModel
) -> None:
    monkeypatch.setenv("AFORESAID_STORE", str(tmp_path / "default.db"))
    monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    for language, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            ran = running.code(code, tmp_path)
            assert ran.status == 0, f"{code}\n{ran.err}"
            continue
        if language == "ts":
            continue  # clients/typescript/test/readme.test.js runs them
        assert language == "sh", f"nothing runs {language} blocks"
        for line in code.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["aforesaid"]:
                ran = running.command(words[1:], tmp_path)
                assert ran.status == 0, f"{line}\n{ran.err}"
            elif words[:2] == ["python", "bench/eval.py"]:
                monkeypatch.chdir(tmp_path)
                measured = CliRunner().invoke(evaluations, words[2:])
                assert measured.exit_code == 0, f"{line}\n{measured.output}"
            else:
                recipe = re.compile(rf"^{words[1]}:.*##", re.MULTILINE)
                assert words[0] == "make", line
                assert recipe.search((ROOT / "Makefile").read_text(encoding="utf-8")), line


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_page_of_the_docs_is_linked() -> None:
    linked = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            linked.add((page.parent / target).resolve())
    assert not [page_name(page) for page in PAGES[3:] if page not in linked]


@pytest.mark.parametrize("page", DECISIONS, ids=page_name)
def test_a_decision_fits_on_a_page_and_says_what_replaced_it(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 150
    number, _, title = lines[0].removeprefix("# ").partition(". ")
    assert int(number) == int(page.name[:4])
    status = " ".join(lines[2 : lines.index("", 2)])
    successors = re.findall(r"uperseded by \[\d+\]\(([^)]+)\)", status)
    assert status.startswith(("Accepted, ", "Superseded by "))
    assert len(successors) == status.count("uperseded by")
    for successor in successors:
        start = (page.parent / successor).read_text(encoding="utf-8").partition("**Question.**")[0]
        assert "supersedes" in start, successor
        assert f"]({page.name})" in start, successor
    listed = (page.parent / "README.md").read_text(encoding="utf-8")
    (row,) = [line for line in listed.splitlines() if line.startswith(f"| {number} | [{title}]({page.name}) | ")]
    assert ("superseded by" in row) == bool(successors)
    assert all(f"]({successor})" in row for successor in successors)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_file_and_module_of_the_source_that_is_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "\nSuperseded by " in text:
        return  # it says what was true then
    for path in re.findall(r"(?<![\w/])src/aforesaid/[\w./]*\w/?", text):
        assert (ROOT / path).exists(), path
    rooms = {each.name for each in SOURCE.iterdir() if each.is_dir()}
    for path in set(re.findall(r"`(\w+/[\w./]*)`", text)) - MEDIA_TYPES:
        assert path.partition("/")[0] not in rooms or (SOURCE / path).exists(), path
    for dotted in re.findall(r"(?<![\w./-])aforesaid((?:\.[A-Za-z_]\w*)+)", text):
        first, *rest = dotted[1:].split(".")
        if page != LOGGERS and (rest or first in rooms):
            assert named_in_source([first, *rest]), f"aforesaid{dotted}"


def named_in_source(names: list[str]) -> bool:
    """Return whether names lead to a module, or to a name in one, without importing it: it may need a framework."""
    place = SOURCE
    while names and (place / names[0]).is_dir():
        place /= names.pop(0)
    if names and (place / names[0]).with_suffix(".py").is_file():
        place = (place / names.pop(0)).with_suffix(".py")
    module = place if place.is_file() else place / "__init__.py"
    return not names or (
        place != SOURCE and re.search(rf"\b{names[0]}\b", module.read_text(encoding="utf-8")) is not None
    )


def reference(name: str) -> str:
    return (ROOT / "docs/reference" / name).read_text(encoding="utf-8")


def test_every_command_is_documented() -> None:
    for command in app.registered_commands:
        name = command.name or command.callback.__name__  # type: ignore[union-attr]
        assert f"`aforesaid {name}" in reference("command-line.md"), name


def test_every_method_and_every_error_is_documented() -> None:
    page = reference("api.md")
    for owner in (Memory, UserMemory):
        for name in dir(owner):
            if not name.startswith("_"):
                assert f"`{name}(" in page or f"| `{name}` |" in page, name
    for name in errors.__all__:
        assert f"`{name}`" in page, name


def test_every_key_of_a_profile_is_documented() -> None:
    page = reference("profiles.md")
    for name in [field.name for field in fields(Profile)] + list(BUILT_IN):
        assert f"`{name}`" in page, name


def test_the_kinds_of_summaries_that_a_context_shows_are_documented() -> None:
    (row,) = [line for line in reference("profiles.md").splitlines() if line.startswith("| `kinds` |")]
    assert all(f"`{kind}`" in row for kind in SUMMARY_KINDS)
    for name in BUILT_IN:
        kinds = load_profile(name).context.kinds
        assert (f"`{name}`: `{', '.join(kinds)}`" in row) == bool(kinds), name


def test_every_recipe_explains_itself() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for recipe in re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split():  # type: ignore[index]
        assert re.search(rf"^{recipe}:.*## \S", makefile, re.MULTILINE), recipe
