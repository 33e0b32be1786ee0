"""The files in deploy/ are valid, start existing commands, and restart only when that can help."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from typer.testing import CliRunner

import aforesaid
import pg
from aforesaid.cli import app
from aforesaid.settings import load_settings

ROOT = Path(__file__).parent.parent.parent
UNITS = sorted((ROOT / "deploy").glob("*.service"))
INSTANCES = {"aforesaid-bot@.service": ("telegram", "discord", "mumble"), "aforesaid-worker@.service": ("1",)}
COMMAND = re.compile(r"^ExecStart=(\S+/aforesaid) (.+)$", re.MULTILINE)


def command(unit: Path) -> list[str]:
    found = COMMAND.search(unit.read_text(encoding="utf-8"))
    assert found is not None
    return shlex.split(found[2])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_finds_nothing_wrong(unit: Path, tmp_path: Path) -> None:
    # Only where the program lies is not known before somebody has installed it.
    here = COMMAND.sub(rf"ExecStart={Path(sys.executable).with_name('aforesaid')} \2", unit.read_text(encoding="utf-8"))
    copy = tmp_path / unit.name
    copy.write_text(here, encoding="utf-8")
    ran = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)  # noqa: S607
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_what_is_started_is_a_command(unit: Path) -> None:
    for instance in INSTANCES.get(unit.name, ("",)):
        words = [word.replace("%i", instance) for word in command(unit)]
        ran = CliRunner().invoke(app, [*words, "--help"])
        assert ran.exit_code == 0, ran.output


@pytest.mark.defect("N6")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_has_a_state_folder_and_does_not_restart_after_wrong_use(unit: Path) -> None:
    lines = unit.read_text(encoding="utf-8").splitlines()
    assert "RestartPreventExitStatus=2" in lines
    assert "StateDirectory=aforesaid" in lines


@pytest.mark.defect("N6")
def test_containers_restart_and_the_server_has_a_health_check() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert {name: service["restart"] for name, service in services.items()} == dict.fromkeys(services, "unless-stopped")
    assert "healthcheck" in services["database"]
    assert "/readyz" in services["server"]["healthcheck"]["test"][-1]


def test_what_the_compose_file_starts_are_commands_and_settings_that_exist() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    for name in ("server", "worker"):
        service = compose["services"][name]
        assert CliRunner().invoke(app, [*service["command"][1:], "--help"]).exit_code == 0
        given = {key: re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value) for key, value in service["environment"].items()}
        known = load_settings(env=given)
        assert known.warnings == ()
        assert (known.background, known.server.keys) == (True, "/keys/keys.json")
        assert known.store == "postgresql://aforesaid:aforesaid@database/aforesaid"
    volumes = [volume.partition(":")[0] for each in compose["services"].values() for volume in each.get("volumes", ())]
    assert all((ROOT / volume).exists() if "/" in volume else volume in compose["volumes"] for volume in volumes)
    build = compose["services"]["server"]["build"]
    assert (ROOT / build["context"] / build["dockerfile"]).is_file()


def test_the_script_of_the_compose_file_prepares_a_database_for_the_server(tmp_path: Path) -> None:
    database = pg.Server(durable=False)
    try:
        with database.admin() as admin:
            admin.execute("DROP ROLE aforesaid")
        place = {"PGHOST": str(database.data), "POSTGRES_USER": "postgres", "AFORESAID_PASSWORD": "aforesaid"}
        path = f"{database._programs}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(
            ["sh", str(ROOT / "deploy/prepare-database.sh")],  # noqa: S607
            env={**os.environ, **place, "PATH": path},
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
        with aforesaid.open(database.dsn("aforesaid"), embedder="none") as memory:
            memory.user("ann").add("user", "I live in Bern.")
            assert memory.user("ann").search("Bern")[0].text == "I live in Bern."
    finally:
        database.remove()


def test_the_page_shows_the_unit_as_it_is() -> None:
    page = (ROOT / "docs/how-to/run-a-bot.md").read_text(encoding="utf-8")
    unit = (ROOT / "deploy/aforesaid-bot@.service").read_text(encoding="utf-8")
    assert f"```\n{unit.partition(chr(10))[2]}```\n" in page
