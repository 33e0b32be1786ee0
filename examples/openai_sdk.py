"""The OpenAI SDK with memory: `context` builds the request, `add` stores the messages.

Run: OPENAI_API_KEY=… python examples/openai_sdk.py
"""

import os

from openai import OpenAI

import aforesaid

client = OpenAI()


def chat(user: aforesaid.SyncUserMemory, text: str) -> str:
    context = user.context(text, budget=4000, system="You are helpful.")
    reply = client.chat.completions.create(model=os.environ.get("MODEL", "gpt-4o-mini"), messages=context.messages)
    answer = reply.choices[0].message.content or ""
    user.add("user", text)
    user.add("assistant", answer)
    return answer


with aforesaid.open("openai.db") as memory:
    ann = memory.user("ann")
    print(chat(ann.chat("monday"), "I moved to Berlin last week."))
    print(chat(ann.chat("tuesday"), "Where do I live?"))  # another chat of hers recalls it
