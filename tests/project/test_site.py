"""The documentation as a site: every page is in it, and no link leads nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    names = {page.with_name("index.html") if page.stem == "README" else page for page in pages}
    made = {page.relative_to(tmp_path / "site") for page in (tmp_path / "site").rglob("*.html")}
    assert names <= made
    assert "https://fonts" not in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
