"""Import an export of ChatGPT (or of another app) and ask questions about it.

Run: python examples/ask_my_chats.py export.zip "Which tent did I choose?" …
"""

import sys

import aforesaid

file, *questions = sys.argv[1:] or sys.exit("name an export, and questions")

with aforesaid.open("my-chats.db") as memory:
    try:
        loaded = memory.load(file, user="me")
    except aforesaid.errors.InvalidInput as error:
        sys.exit(f"{file} cannot be imported: {error}")
    print(f"new: {loaded.new}, problems: {loaded.problems}")
    memory.upkeep()  # a script asks at once, so it does not wait for the background
    me = memory.user("me")
    for question in questions:
        print(f"\n{question}")
        for hit in me.search(question, limit=3):
            print(f"  {hit.at:%Y-%m-%d}  {hit.text}")
    print(f"\nKnown: {me.portrait()}")
