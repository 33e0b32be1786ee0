"""A joke about a user, from their portrait: the portrait goes into the prompt.

Run: OPENAI_API_KEY=… python examples/joke_bot.py
"""

import os

from openai import OpenAI

import aforesaid

with aforesaid.open("jokes.db", profile="community") as memory:
    ann = memory.user("ann", space="guild", thread="general")
    ann.add("user", "Going to the gym after work to clear my head.", name="Ann")
    ann.remember("I am a software engineer in Berlin", name="Ann")
    ann.remember("I manage stress with exercise", name="Ann")

    portrait = ann.portrait(name="Ann")
    print(f"Portrait: {portrait}")
    reply = OpenAI().chat.completions.create(
        model=os.environ.get("MODEL", "gpt-4o-mini"),
        messages=[
            {"role": "system", "content": "You make one friendly joke, about what you know of the person."},
            {"role": "user", "content": f"<person>Ann</person>\n<portrait>{portrait}</portrait>"},
        ],
    )
    print(reply.choices[0].message.content)
