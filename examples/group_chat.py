"""A group chat: who said what is kept apart, and what is said in private stays private.

Run: python examples/group_chat.py
"""

import aforesaid

SAID = (
    ("1", "ann", "Ann", "I am allergic to hazelnuts, please no nut cake."),
    ("2", "bob", "Bob", "I will bring a lemon cake on Saturday."),
    ("2", "bob", "Bob", "I will bring a lemon cake on Saturday."),  # delivered twice
    ("3", "ann", "Ann", "Great, I make coffee."),
)

with aforesaid.open("group-chat.db") as memory:
    memory.user("bob", space="friends").add(
        "user", "In private: the cake is a surprise for Ann's birthday.", name="Bob"
    )
    for id_, user, name, text in SAID:
        memory.user(user, space="friends", thread="party").add("user", text, id=id_, name=name)
    memory.upkeep()

    ann = memory.user("ann", space="friends", thread="party")
    print("Everybody:", [f"{each.name}: {each.text}" for each in ann.history(within="thread")])
    print("Cake:", [f"{hit.message.name}: {hit.text}" for hit in ann.search("cake", within="thread") if hit.message])
    print("Ann:", [each.text for each in ann.memories()])
    context = ann.context("Who brings a cake?", budget=2000, system="You are the group's assistant.")
    print("The surprise is in the context:", "surprise" in context.text)
