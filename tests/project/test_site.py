"""The documentation as a site: every page is in it, and no link leads nowhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUESTIONS = Path(__file__).with_name("questions.tsv")
"""What users ask: from whose viewpoint, their words, and the pages that answer, one of which a search should find."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_the_site_is_built_without_a_warning(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    names = {page.with_name("index.html") if page.stem == "README" else page for page in pages}
    made = {page.relative_to(site) for page in (site).rglob("*.html")}
    assert names <= made
    assert "https://fonts" not in (site / "index.html").read_text(encoding="utf-8")


def test_a_search_of_the_site_finds_the_page_for_each_question(site: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("left out: node is not installed here")
    asked = subprocess.run(
        [node, str(QUESTIONS.with_name("search.js")), str(site), str(QUESTIONS)],
        capture_output=True,
        text=True,
        check=True,
    )
    ranks = [line.split("\t") for line in asked.stdout.splitlines()]
    assert len(ranks) >= 40
    assert [each for each in ranks if each[0] not in {"1", "2", "3"}] == []
