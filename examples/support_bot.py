"""A support bot for several customers, each with several conversations, on the command line.

Run: OPENAI_API_KEY=… python examples/support_bot.py, then type lines such as `ann/ticket-1: My printer is broken.`
"""

import os
import sys

from openai import OpenAI

import aforesaid

client = OpenAI()


def answer(chat: aforesaid.SyncUserMemory, question: str) -> str:
    context = chat.context(question, budget=4000, system="You help customers. Be brief.")
    reply = client.chat.completions.create(model=os.environ.get("MODEL", "gpt-4o-mini"), messages=context.messages)
    said = reply.choices[0].message.content or ""
    chat.add("user", question)
    chat.add("assistant", said)
    return said


with aforesaid.open("support.db") as memory:
    for line in sys.stdin:
        who, colon, text = line.strip().partition(":")
        user, slash, ticket = who.partition("/")
        if not (colon and slash and text.strip()):
            print("write CUSTOMER/TICKET: TEXT")
            continue
        try:
            print(f"{who}: {answer(memory.user(user).chat(ticket), text.strip())}")
        except aforesaid.errors.InvalidInput as error:
            print(f"not understood: {error}")
    for customer in memory.users():
        person = memory.user(customer.id)
        print(f"{customer.id}: {customer.messages} messages in {len(person.threads())} conversations")
