"""The TypeScript client: its types are those of the server, and its tests pass against a real one."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CLIENT = ROOT / "clients" / "typescript"
LEAST_NODE = (20, 3)


def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("left out: the TypeScript client needs Node.js, which is not installed here")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < LEAST_NODE:
        pytest.skip(f"left out: the TypeScript client needs Node.js 20.3, and this is {version.strip()}")
    return found


def test_the_types_of_the_client_are_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "typescript_types.py"))["client_types"]()
    assert (CLIENT / "types" / "api.d.ts").read_text(encoding="utf-8") == made, "run: make rest"


def test_the_client_has_no_dependencies() -> None:
    imported = {
        name
        for source in (CLIENT / "src").glob("*.js")
        for name in re.findall(
            r'^(?:import|export|\}) .*?from "(.*?)"', source.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    assert imported
    assert all(name.startswith("./") for name in imported)
    assert '"dependencies"' not in (CLIENT / "package.json").read_text(encoding="utf-8")


@pytest.mark.timeout(600)
def test_the_client_passes_its_tests_against_a_real_server() -> None:
    ran = subprocess.run(
        [node(), "--test", "test/client.test.js"],
        cwd=CLIENT,
        env={**os.environ, "AFORESAID_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^# pass [1-9]\d+$", ran.stdout, re.MULTILINE), ran.stdout


@pytest.mark.defect("I5")
@pytest.mark.parametrize("page", ["clients/typescript/README.md", "docs/how-to/use-the-typescript-client.md"])
def test_the_documented_installation_finds_the_ai_sdk_of_the_app(tmp_path: Path, page: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("left out: npm is not installed here")
    (command,) = re.findall(r"`npm (install [^`]*)/path/to/aforesaid/clients/typescript`", (ROOT / page).read_text())
    (tmp_path / "package.json").write_text('{"name": "app"}')
    options = ["--offline", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=dev"]
    subprocess.run([npm, *command.split(), *options, str(CLIENT)], cwd=tmp_path, capture_output=True, check=True)
    sdk = tmp_path / "node_modules" / "ai"
    sdk.mkdir()
    (sdk / "index.js").write_text("")
    # As TypeScript looks for what the types import: from the real place of the file.
    find = 'require("module").createRequire(require("fs").realpathSync("node_modules/aforesaid/types/ai.d.ts"))'
    found = subprocess.run(
        [node(), "--print", f'{find}.resolve("ai")'], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert Path(found.stdout.strip()) == sdk / "index.js"
