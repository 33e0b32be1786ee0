"""The OpenAI SDK with memory: the client is the same, streams as before, and remembers.

Run: OPENAI_API_KEY=… python examples/openai_sdk.py
"""

import asyncio
import os

from openai import AsyncOpenAI

import aforesaid

MODEL = os.environ.get("MODEL", "gpt-4o-mini")


async def ask(client: AsyncOpenAI, text: str) -> None:
    stream = await client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": text}], stream=True
    )
    async for chunk in stream:
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()


async def main() -> None:
    async with AsyncOpenAI() as client, aforesaid.connect("openai.db") as memory:
        monday = aforesaid.wrap(client, memory=memory, user="ann", chat="monday")
        await ask(monday, "I moved to Berlin last week.")
        tuesday = aforesaid.wrap(client, memory=memory, user="ann", chat="tuesday")
        await ask(tuesday, "Where do I live?")  # another chat of hers recalls it


asyncio.run(main())
