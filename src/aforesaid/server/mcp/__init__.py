"""The memory for agents, over the Model Context Protocol: tools, resources and a prompt. Needs the extra `mcp`."""

from aforesaid.server.mcp.build import build

__all__ = ["build"]
