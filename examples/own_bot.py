"""A bot with memory in twenty lines. It remembers what you type, also after a restart. Ctrl+D ends it.

Run: OPENAI_API_KEY=… AFORESAID_MODEL=openai:gpt-4o-mini python examples/own_bot.py
"""

import asyncio

import aforesaid
from aforesaid.assistant import Assistant


def read_line() -> str:
    try:
        return input("> ").strip()
    except EOFError:  # Ctrl+D
        return ""


async def main() -> None:
    async with aforesaid.connect("own-bot.db") as memory:
        me, assistant = memory.user("me"), Assistant(memory, system="You are Rex, a cheerful bot.")
        while text := await asyncio.to_thread(read_line):
            command = await assistant.command(me, text)
            if command is not None:
                print(command.text)
                continue
            async for piece in assistant.reply(me, text):
                print(piece, end="", flush=True)
            print()


asyncio.run(main())
