"""What the documentation site does beyond its pages: `mkdocs.yml` names this file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

MOVED: Final = {
    "explanation/access-control": "threat-model.html#the-server",
    "how-to/connect-librechat": "connect-open-webui.html#librechat",
    "how-to/delete-a-user": "answer-a-data-request.html#what-a-purge-deletes",
    "how-to/measure-summaries": "measure-recall.html",
    "how-to/migrate-to-another-store": "back-up-and-restore.html#move-to-another-store",
    "how-to/run-a-bot-as-a-service": "run-a-bot.html#run-the-bot-as-a-systemd-service",
    "how-to/run-a-discord-bot": "run-a-bot.html#discord",
    "how-to/run-a-mumble-bot": "run-a-bot.html#mumble",
    "how-to/run-a-telegram-bot": "run-a-bot.html#telegram",
    "how-to/run-the-benchmark": "measure-recall.html",
    "how-to/store-group-chats": "store-and-read-messages.html#group-chats",
    "how-to/trace-with-opentelemetry": "monitor-health.html#traces-with-opentelemetry",
    "how-to/use-anthropic-clients": "use-the-openai-proxy.html#anthropics-messages",
    "how-to/use-ollama-apps": "use-the-openai-proxy.html#ollama",
    "how-to/use-the-responses-api": "use-the-openai-proxy.html#openais-responses",
}
"""Where pages went that were merged, as addresses relative to the old ones."""

BOOSTS: Final = {"how-to": 2, "decisions": 0.01}
"""How much a page counts in a search of the site, by its folder."""


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:  # noqa: ANN401 - a page of mkdocs, which is untyped
    """Let a search prefer pages that say what to do, and show decision records last."""
    folder = page.file.src_uri.partition("/")[0]
    page.meta["search"] = {"boost": BOOSTS.get(folder, 1)}
    return markdown


def on_post_build(config: Any, **_: object) -> None:  # noqa: ANN401 - the configuration of mkdocs, which is untyped
    """Write a page at each old address that leads to the new one."""
    for old, new in MOVED.items():
        path = Path(config["site_dir"], f"{old}.html")
        path.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={new}">\n', encoding="utf-8")
