"""MCP with the official client for TypeScript, and with the inspector on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from server.agents import environment, mcp_command
from server.npm import installed_packages, run_node, run_program
from server.serving import live
from server.test_mcp import READING, WRITING

PROGRAM = Path(__file__).parent / "node" / "use_mcp.mjs"
SDK = "@modelcontextprotocol/sdk"
INSPECTOR = "@modelcontextprotocol/inspector"
STDIO = "MCP (standard input and output)"
HTTP = "MCP (streamable HTTP)"
USED = ("tools", "paging", "errors in words", "resources", "completion", "prompts", "progress")


@pytest.fixture(scope="module")
def client() -> Path:
    """A folder with the official client, and with the inspector: npm takes as long for one of them as for both."""
    return installed_packages("npm-mcp", f"{SDK}@1", f"{INSPECTOR}@2")


@pytest.fixture(scope="module")
def inspector(client: Path) -> Path:
    """The command line of the official inspector."""
    folder = client / "node_modules" / INSPECTOR
    described = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    return folder / str(described["bin"]["mcp-inspector"])


def check_everything(seen: dict[str, Any]) -> None:
    assert set(seen["tools"]) == READING | WRITING
    assert seen["readOnly"] == len(READING)
    assert sorted(seen["owned"]) == sorted(f"Ann owns book number {number}" for number in range(12))
    assert seen["wrong"][0] is True
    assert "no argument 'person'" in seen["wrong"][1]
    assert "aforesaid://users/ann/portrait" in seen["resources"]
    assert "tea" in seen["portrait"]
    assert seen["completed"] == ["ann"]
    assert "tea" in seen["prompt"]
    assert seen["progress"] >= 1


@pytest.mark.client(STDIO, f"{SDK} (TypeScript)", *USED)
def test_the_client_for_typescript_over_standard_input_and_output(client: Path, tmp_path: Path) -> None:
    ran = run_program(client, PROGRAM, "stdio", *mcp_command(tmp_path / "memory.db", "--user", "ann"))
    assert ran.returncode == 0, ran.stderr
    check_everything(json.loads(ran.stdout))


@pytest.mark.client(HTTP, f"{SDK} (TypeScript)", *USED, "read-only keys", "session ids")
def test_the_client_for_typescript_over_http(client: Path) -> None:
    with live() as server:
        keys = server.key(user="ann"), server.key("reader", user="ann")
        ran = run_program(client, PROGRAM, "http", f"{server.address}/mcp", *keys)
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    check_everything(seen)
    assert set(seen["reading"]) == READING
    assert seen["session"]
    assert seen["refused"][1] == 401


@pytest.mark.client(HTTP, "inspector --cli", "tools", "errors in words", "resources", "prompts")
@pytest.mark.skipif("not config.getoption('--torture')", reason="it takes as long as 200 other tests")
def test_the_inspector_over_http(inspector: Path, tmp_path: Path) -> None:
    with live() as server:

        def inspect(*options: str) -> Any:  # noqa: ANN401
            header = f"Authorization: Bearer {server.key(user='ann')}"
            way = (f"{server.address}/mcp", "--transport", "http", "--header", header)
            ran = run_node(inspector, "--cli", *way, *options, environment=environment() | {"HOME": str(tmp_path)})
            assert ran.stdout, ran.stderr
            return json.loads(ran.stdout)

        assert {tool["name"] for tool in inspect("--method", "tools/list")["tools"]} == READING | WRITING
        call = ("--method", "tools/call", "--tool-name")
        stored = inspect(*call, "remember", "--tool-arg", "fact=prefers tea")
        assert stored["structuredContent"]["outcome"] == "stored"
        assert inspect(*call, "set_reminder", "--tool-arg", "text=x", "when=yesterday")["isError"] is True
        portrait = inspect("--method", "resources/read", "--uri", "aforesaid://users/ann/portrait")
        assert "tea" in portrait["contents"][0]["text"]
        assert len(inspect("--method", "prompts/list")["prompts"]) == 3


@pytest.mark.client(STDIO, "inspector --cli", "tools")
def test_the_inspector_finds_no_fault_with_the_schemas_of_tools(inspector: Path, tmp_path: Path) -> None:
    command, *arguments = mcp_command(tmp_path / "memory.db", "--user", "ann")
    config = tmp_path / "mcp.json"
    servers = {"aforesaid": {"command": command, "args": arguments, "env": environment()}}
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    chosen = ("--config", str(config), "--server", "aforesaid")
    own = environment() | {"HOME": str(tmp_path)}
    ran = run_node(inspector, "--cli", *chosen, "--method", "tools/list", "--strict", environment=own)
    assert ran.returncode == 0, ran.stderr
    assert {tool["name"] for tool in json.loads(ran.stdout)["tools"]} == READING | WRITING
