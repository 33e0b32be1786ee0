"""A first look, cell by cell: editors that support `# %%` run one cell at a time. No model is needed.

Run: python examples/notebook.py
"""

# %% Open a memory and store messages
import aforesaid

memory = aforesaid.open("notebook.db")
ann = memory.user("ann")
for said in ("I moved to Berlin last week.", "My sister Zoe visits on Friday.", "I like tea."):
    ann.add("user", said)
    ann.add("assistant", "Noted.")

# %% Search, and see why each hit was found
for hit in ann.search("where do I live", limit=3):
    print(hit.text, "|", hit.explain())

# %% Extract memories and summarise
print(memory.upkeep())
for known in ann.memories():
    print(known.category, known.importance, known.text)

# %% Preview a context
print(ann.context("Who visits me?", budget=1000).explain())

# %% Correct memories
ann.remember("I prefer coffee over tea")
ann.forget("my sister's visit")
print(ann.portrait())
memory.close()
